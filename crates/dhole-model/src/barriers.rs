use dhole_macros::Variants;
use serde::Serialize;

/// How nodes learn that all have reached a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Variants)]
#[variants(name, setting)]
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
