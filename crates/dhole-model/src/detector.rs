use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The way in which the runtime finds reads of copies that are not valid, and an interval's first
/// writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Detector {
    /// Each access tests its handle.
    #[default]
    Check,
    /// The handle leads to one of three views of the node's memory, and the processor's page
    /// protection finds the accesses (DOSA, section 3.4). Linux on x86-64 only.
    Vm,
}

impl Detector {
    /// Both detectors.
    pub const ALL: [Detector; 2] = [Detector::Check, Detector::Vm];

    /// The name of this detector in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Detector::Check => "check",
            Detector::Vm => "vm",
        }
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name of a detector that is unknown.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownDetector {
    /// The name.
    pub name: String,
}

crate::debug_in_words!(UnknownDetector);

impl fmt::Display for UnknownDetector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(f, "'{name}' is no detector: there are check and vm")
    }
}

impl std::error::Error for UnknownDetector {}

impl FromStr for Detector {
    type Err = UnknownDetector;

    fn from_str(name: &str) -> Result<Detector, UnknownDetector> {
        let found = Detector::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| UnknownDetector {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_others_are_refused_by_name() {
        for one in Detector::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        let error = "mmu".parse::<Detector>().unwrap_err();
        assert!(error.to_string().contains("'mmu'"));
    }
}
