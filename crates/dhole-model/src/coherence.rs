use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the copies of an object are kept consistent: a member of the family of protocols. All
/// promise the same, release consistency; they differ in what travels, and when.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Coherence {
    /// One writer at a time; a release announces what was written, and who reads it next fetches
    /// it from its last writer (DOSA, section 3.1).
    #[default]
    Lazy,
    /// As lazy, and at a release the writer sends what it wrote to those that read it last, so
    /// that they need not fetch it.
    Update,
    /// Several writers at a time, of different parts; at a release what was written goes to the
    /// object's home, and at an acquire copies elsewhere are dropped (Jackal, section 3.1).
    Home,
    /// Not objects but the pages that they lie in are kept consistent, with several writers each;
    /// for a whole run only (TreadMarks: Keleher et al. 1994). The baseline.
    TreadMarks,
}

impl Coherence {
    /// Every member of the family.
    pub const ALL: [Coherence; 4] = [
        Coherence::Lazy,
        Coherence::Update,
        Coherence::Home,
        Coherence::TreadMarks,
    ];

    /// Those that each object may have for itself.
    pub const BY_OBJECT: [Coherence; 3] = [Coherence::Lazy, Coherence::Update, Coherence::Home];

    /// The name by which options and reports call it.
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

/// A name that no protocol has.
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
