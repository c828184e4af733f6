//! The numbers that a paper published, and the programs that measure the same in dhole: data, in a
//! file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::variant::Variant;

/// A paper's evaluation.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The problems.
    pub problem: Vec<Problem>,
    /// The effect of hoisting loop-invariant handles (Table 7).
    pub hoisting: Vec<Hoisting>,
    /// The reasons for numbers that differ from the paper's.
    #[serde(default)]
    pub remark: Vec<Remark>,
}

impl Published {
    /// The evaluation of DOSA.
    pub fn dosa() -> Published {
        toml::from_str(include_str!("../../papers/dosa.toml")).expect("a file of this crate")
    }
}

/// A program and its input.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Its name in the paper.
    pub name: String,
    /// How finely its nodes share.
    pub grain: Grain,
    /// The program of dhole that solves it.
    pub program: String,
    /// Its arguments for the paper's input.
    pub size: Vec<String>,
    /// Its arguments for an input that takes seconds.
    pub small: Vec<String>,
    /// The program's further arguments, to do as the paper's did.
    #[serde(default)]
    pub options: Vec<String>,
    /// The arguments under DOSA alone.
    #[serde(default)]
    pub dosa_options: Vec<String>,
    /// Whether the paper's allocated bytes correspond to dhole's allotted bytes, and not to the
    /// touched ones.
    #[serde(default)]
    pub memory_of_all: bool,
    /// The time of the sequential program (Table 1).
    pub sequential_seconds: f64,
    /// Its time with every access through a handle (Table 1).
    pub handle_seconds: f64,
    /// The units that the sequential run charges with [`work`](dhole::Worker::work) at the paper's
    /// size.
    pub units: u64,
    /// The time of TreadMarks, divided by that of DOSA, on 16 processors (section 8.1).
    pub faster_on_16: Option<f64>,
    /// TreadMarks on 32 processors (Tables 3 and 5).
    pub treadmarks: Measures,
    /// DOSA on 32 processors (Tables 3 and 5).
    pub dosa: Measures,
    /// DOSA on 32 processors without each optimisation (Table 6).
    #[serde(default)]
    pub ablation: BTreeMap<Variant, Measures>,
}

impl Problem {
    /// Nanoseconds of a unit of work with which the sequential run takes the paper's time.
    pub fn unit_ns(&self) -> f64 {
        self.sequential_seconds * 1e9 / self.units as f64
    }

    /// Its name in file names.
    pub fn file_name(&self) -> String {
        self.name.to_lowercase().replace('/', "-")
    }
}

/// The grain of sharing of a program.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// Objects much smaller than a page.
    Fine,
    /// Parts of a page or more.
    Coarse,
}

/// The measures of a run.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct Measures {
    /// Seconds.
    pub seconds: f64,
    /// All bytes of all messages, in 10^6.
    pub data_mb: f64,
    /// All messages.
    pub messages: f64,
    /// Overlapped data requests: rounds of fetches.
    pub requests: f64,
    /// Storage for shared objects on the average node, in 10^6 bytes.
    pub memory_mb: f64,
    /// Bytes of write notices, in 10^6.
    #[serde(default)]
    pub notice_mb: Option<f64>,
    /// Write faults.
    #[serde(default)]
    pub write_faults: Option<f64>,
}

impl Measures {
    /// The measures by the paper's names; the last two only if the paper has them.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let always = [
            ("time (s)", self.seconds),
            ("data (MB)", self.data_mb),
            ("messages", self.messages),
            ("overlapped requests", self.requests),
            ("memory a node (MB)", self.memory_mb),
        ];
        let sometimes = [
            ("write notices (MB)", self.notice_mb),
            ("write faults", self.write_faults),
        ];
        let sometimes = sometimes
            .iter()
            .filter_map(|(name, m)| Some((*name, (*m)?)));
        always.into_iter().chain(sometimes).collect()
    }
}

/// Running times of the large SOR in seconds.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Hoisting {
    /// The system that kept the array consistent.
    pub system: String,
    /// Processors.
    pub nodes: u16,
    /// With the optimisation.
    pub with: f64,
    /// Without.
    pub without: f64,
}

/// The reason for a number that differs from the paper's.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// The problem, or the start of its name.
    pub problem: String,
    /// The measure.
    pub measure: String,
    /// The reason, with its evidence.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_ratios_are_those_of_its_text() {
        let paper = Published::dosa();
        assert_eq!(paper.problem.len(), 8);
        let ratio = |name: &str, of: fn(&Measures) -> f64| {
            let problem = paper.problem.iter().find(|p| p.name == name).unwrap();
            of(&problem.treadmarks) / of(&problem.dosa)
        };
        // Section 8.1: "a factor of 11 for Barnes-Hut/lg and 3 for Water-Spatial/lg", "1.3 ...
        // and 4.9".
        assert_eq!(ratio("Barnes-Hut/lg", |m| m.messages).round(), 11.0);
        assert_eq!(ratio("Water-Spatial/lg", |m| m.messages).round(), 3.0);
        assert!((ratio("Barnes-Hut/lg", |m| m.requests) - 1.3).abs() < 0.05);
        assert!((ratio("Water-Spatial/lg", |m| m.requests) - 4.9).abs() < 0.05);
        // Section 8.3: coarse programs are within 6%.
        for name in ["SOR/sm", "SOR/lg", "Water-Nsquared/sm", "Water-Nsquared/lg"] {
            assert!((ratio(name, |m| m.seconds) - 1.0).abs() < 0.06, "{name}");
        }
    }
}
