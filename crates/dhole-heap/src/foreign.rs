//! Ids that name no object of a cluster.

use dhole_model::{NodeId, Oid};

/// Why an id names no object of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{oid} {kind}")]
pub struct Foreign {
    /// The id.
    pub oid: Oid,
    /// What it is instead.
    pub kind: ForeignKind,
}

dhole_model::debug_in_words!(Foreign);

/// What an id is that names no object of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ForeignKind {
    /// It was allocated in another cluster of this process.
    #[error("belongs to another cluster of this process, number {ordinal}")]
    OtherCluster {
        /// The number of that cluster in the process, counted from 1.
        ordinal: u64,
    },
    /// It was allocated in a cluster that has ended.
    #[error("belongs to a cluster that has ended")]
    Ended,
    /// It is set aside for a node of this cluster, which has not allocated it.
    #[error("is not allocated yet; it is set aside for {creator}")]
    NotYet {
        /// The node that may allocate it.
        creator: NodeId,
    },
    /// Its object was freed.
    #[error("was freed")]
    Freed,
    /// No cluster of this process ever had it.
    #[error("was never allocated by anyone in this process")]
    Never,
}

/// What a reference is that names ids of another node of which this process knows nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unheard {
    /// One to objects that are freed everywhere: it came in a message, behind the metadata of all
    /// objects that its sender knew.
    IsGone,
    /// One whose metadata may be still to come: it was read in the memory of a neighbour.
    IsEarly,
}
