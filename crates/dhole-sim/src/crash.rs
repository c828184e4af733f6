//! Nodes that crash: from a moment on they do nothing any more, and some time later each of the
//! others is told.

use std::fmt;
use std::str::FromStr;

use dhole_model::NodeId;

/// A node that crashes: `1@2500` is node 1 after 2,500 ns.
///
/// Of what it has sent before and is on its way about half is lost; nothing that comes to it
/// afterwards is heard. Only a run that survives this goes on (`Config::survive`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The node.
    pub node: NodeId,
    /// When, in nanoseconds of virtual time.
    pub at_ns: u64,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.node.0, self.at_ns)
    }
}

/// What is no [`Crash`].
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a crash is a node and a time in nanoseconds, as 1@2500")]
pub struct NoCrash;

dhole_model::debug_in_words!(NoCrash);

impl dhole_node::IntoError for NoCrash {}

impl FromStr for Crash {
    type Err = NoCrash;

    fn from_str(text: &str) -> Result<Crash, NoCrash> {
        let (node, at_ns) = text.split_once('@').ok_or(NoCrash)?;
        let node = node.trim().parse().map(NodeId).map_err(|_| NoCrash)?;
        let at_ns = at_ns.trim().parse().map_err(|_| NoCrash)?;
        Ok(Crash { node, at_ns })
    }
}
