use dhole_wire::Wire;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The protocol that keeps the copies of an object consistent. All protocols give release
/// consistency. They differ in which messages travel, and when.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize, Wire,
)]
#[serde(rename_all = "lowercase")]
pub enum Coherence {
    /// One writer at a time. A release announces what was written, and the next reader fetches it
    /// from the last writer (DOSA, section 3.1).
    #[default]
    Lazy,
    /// As lazy, and at a release the writer sends the new bytes to the nodes that read the last
    /// ones, so that they need not fetch.
    Update,
    /// Several writers at a time, of different parts. A release sends the changed bytes to the
    /// object's home, and an acquire drops copies elsewhere (Jackal, section 3.1).
    Home,
    /// Keeps the pages consistent that objects lie in, with several writers each, and not the
    /// objects. For a whole run only: the baseline (TreadMarks: Keleher et al. 1994).
    TreadMarks,
}

impl Coherence {
    /// Every protocol.
    pub const ALL: [Coherence; 4] = [
        Coherence::Lazy,
        Coherence::Update,
        Coherence::Home,
        Coherence::TreadMarks,
    ];

    /// The protocols that an allocation can choose for its objects.
    pub const BY_OBJECT: [Coherence; 3] = [Coherence::Lazy, Coherence::Update, Coherence::Home];

    /// The name of this protocol in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Coherence::Lazy => "lazy",
            Coherence::Update => "update",
            Coherence::Home => "home",
            Coherence::TreadMarks => "treadmarks",
        }
    }
}

impl fmt::Display for Coherence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name of a protocol that is unknown.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownCoherence {
    /// The name.
    pub name: String,
}

crate::debug_in_words!(UnknownCoherence);

impl fmt::Display for UnknownCoherence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(
            f,
            "'{name}' is no protocol: there are lazy, update, home and treadmarks"
        )
    }
}

impl std::error::Error for UnknownCoherence {}

impl FromStr for Coherence {
    type Err = UnknownCoherence;

    fn from_str(name: &str) -> Result<Coherence, UnknownCoherence> {
        let found = Coherence::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| UnknownCoherence {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_others_are_refused_by_name() {
        for one in Coherence::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        let error = "Lazy".parse::<Coherence>().unwrap_err();
        assert!(error.to_string().contains("'Lazy'"));
    }
}
