use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// How nodes learn that all have reached a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Barriers {
    /// Every node tells node 0 that it is there, and node 0 then tells every node: 2(n-1) messages,
    /// as in the papers.
    Central,
    /// A dissemination barrier if no node is expected to have news: each node tells one other node
    /// in each of `ceil(log2 n)` rounds. If news is expected, or a node has news all the same, the
    /// barrier is central.
    #[default]
    Dissemination,
}

impl Barriers {
    /// Both kinds.
    pub const ALL: [Barriers; 2] = [Barriers::Central, Barriers::Dissemination];

    /// The name of this kind in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Barriers::Central => "central",
            Barriers::Dissemination => "dissemination",
        }
    }
}

impl fmt::Display for Barriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name of barriers that is unknown.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownBarriers {
    /// The name.
    pub name: String,
}

crate::debug_in_words!(UnknownBarriers);

impl fmt::Display for UnknownBarriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(
            f,
            "'{name}' are no barriers: there are central and dissemination"
        )
    }
}

impl std::error::Error for UnknownBarriers {}

impl FromStr for Barriers {
    type Err = UnknownBarriers;

    fn from_str(name: &str) -> Result<Barriers, UnknownBarriers> {
        let found = Barriers::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| UnknownBarriers {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_an_unknown_one_says_what_there_is() {
        for one in Barriers::ALL {
            assert_eq!(one.name().parse(), Ok(one));
        }
        let unknown = "tree".parse::<Barriers>().unwrap_err().to_string();
        assert!(unknown.contains("central and dissemination"), "{unknown}");
    }
}
