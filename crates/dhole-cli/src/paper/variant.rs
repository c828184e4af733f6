//! The systems that an evaluation compares.

use serde::Deserialize;

/// A protocol with its optimisations.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The page-based baseline.
    Treadmarks,
    /// DOSA with all its optimisations (section 3).
    #[serde(rename = "all-on")]
    Dosa,
    /// DOSA without read aggregation: it fetches one object at a time (section 9.2).
    NoReadAggregation,
    /// DOSA without lazy allocation: every object has one place on all nodes (section 9.1).
    NoLazyAllocation,
    /// DOSA without write aggregation: it detects a write of each object by itself (section 9.3).
    NoWriteAggregation,
    /// DOSA without notice reduction: it sends all write notices in full (section 9.4).
    NoNoticeReduction,
}

impl Variant {
    /// The variants of DOSA that lack one optimisation.
    pub const ABLATED: [Variant; 4] = [
        Variant::NoReadAggregation,
        Variant::NoLazyAllocation,
        Variant::NoWriteAggregation,
        Variant::NoNoticeReduction,
    ];

    /// Its name in tables and figures.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Treadmarks => "TreadMarks",
            Variant::Dosa => "DOSA",
            Variant::NoReadAggregation => "no read aggregation",
            Variant::NoLazyAllocation => "no lazy allocation",
            Variant::NoWriteAggregation => "no write aggregation",
            Variant::NoNoticeReduction => "no notice reduction",
        }
    }

    /// Whether objects have the same place on every node.
    pub fn places_everywhere(self) -> bool {
        matches!(self, Variant::Treadmarks | Variant::NoLazyAllocation)
    }

    /// The program's options for it.
    pub fn options(self) -> Vec<&'static str> {
        if self == Variant::Treadmarks {
            return vec!["--protocol", "treadmarks"];
        }
        let unless = |without, on, off| if self == without { off } else { on };
        vec![
            "--protocol",
            "lazy",
            "--read-aggregation",
            unless(Variant::NoReadAggregation, "on", "off"),
            "--allocation",
            unless(Variant::NoLazyAllocation, "first-touch", "everywhere"),
            "--write-detection",
            unless(Variant::NoWriteAggregation, "twins", "objects"),
            "--notice-reduction",
            unless(Variant::NoNoticeReduction, "16", "0"),
            "--learn",
            "off",
        ]
    }
}
