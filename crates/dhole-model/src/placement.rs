use serde::Serialize;

/// Where the copies of an object lie: each node's own business, or the same everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each node stores an object where there is room when it first touches it, so that what it
    /// uses together lies together (DOSA, section 3.3: lazy object storage allocation).
    #[default]
    FirstTouch,
    /// The allocating node decides in program order, and every node stores the object at that
    /// address of one global space: as in TreadMarks, and in DOSA without lazy object storage
    /// allocation.
    Everywhere,
}
