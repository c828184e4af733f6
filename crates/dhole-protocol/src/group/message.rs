use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

/// A view of the group: who is in it, from one number on. Its number and its sequencer name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ViewId {
    /// Counts the views.
    pub number: u64,
    /// Who numbers messages in it.
    pub sequencer: NodeId,
}

/// Which part of which broadcast something is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Who broadcasts.
    pub origin: NodeId,
    /// Counts the broadcasts of this member.
    pub serial: u64,
    /// Counts the parts of the broadcast.
    pub part: u32,
    /// How many there are.
    pub parts: u32,
}

/// What members of a group say to each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum GroupMessage<B> {
    /// To the sequencer: number this, and multicast it.
    Submit {
        /// The view in which it is said.
        view: ViewId,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
    },
    /// To all: a part of a broadcast, and its number.
    Data {
        /// The view in which it is said.
        view: ViewId,
        /// Its place in the order.
        number: u64,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
    },
}
