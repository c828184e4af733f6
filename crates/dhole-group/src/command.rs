use dhole_model::NodeId;
use thiserror::Error;

use super::message::{GroupMessage, ViewId};

/// Something that happens to a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GroupEvent<B> {
    /// The member broadcasts.
    Broadcast {
        /// What.
        body: B,
        /// How large it is.
        bytes: usize,
    },
    /// A message arrives.
    Message {
        /// Who sent it.
        from: NodeId,
        /// What it says.
        message: GroupMessage<B>,
    },
    /// The member wants to hear when what it has delivered is [safe](GroupCommand::Safe).
    Confirm,
    /// The time has come that [`GroupCommand::WakeAt`] named.
    Tick,
    /// A node is lost: nothing will come from it any more.
    Lost(NodeId),
    /// The member leaves when what it has broadcast is delivered.
    Leave,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GroupCommand<B> {
    /// Send a message to one member.
    Send {
        /// Who receives it.
        to: NodeId,
        /// What it says.
        message: GroupMessage<B>,
    },
    /// Send a message to every [other member](super::Group::others): with one multicast, where
    /// there is one. Nodes that are no members may receive it too.
    SendAll {
        /// What it says.
        message: GroupMessage<B>,
    },
    /// A broadcast has its turn, the same on all members. Those of one member come in the order
    /// in which it made them.
    Deliver {
        /// Its number; of one that took several, the last.
        sequence: u64,
        /// Who broadcast it.
        from: NodeId,
        /// What.
        body: B,
    },
    /// Everything up to this number will be delivered by whoever goes on when members are lost.
    /// Said of this member's own broadcasts, and of what it wants
    /// [confirmed](GroupEvent::Confirm), where [`Settings::confirm`](super::Settings) is set.
    Safe {
        /// The number.
        sequence: u64,
    },
    /// Step with [`GroupEvent::Tick`] at this time, in nanoseconds. The last such command counts.
    WakeAt(u64),
    /// The members change here: between the same two deliveries on all of them.
    View {
        /// The view that begins.
        id: ViewId,
        /// Its members, by seniority.
        members: Vec<NodeId>,
        /// Those that were no members before, or in an earlier life.
        joined: Vec<NodeId>,
        /// Those of the view before that are members no longer.
        gone: Vec<NodeId>,
        /// The last number of the view before.
        after: u64,
    },
    /// The member is in the group no longer, and delivers nothing any more.
    Stuck {
        /// Why.
        reason: Ending,
    },
}

/// Why a member is in its group no longer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum Ending {
    /// It left.
    #[error("it has left")]
    Left,
    /// It is cut off from so many that the others may go on without it.
    #[error("only {left} of {of} members are left, which are too few to go on")]
    Minority {
        /// Members that are not lost.
        left: usize,
        /// Members of the last view.
        of: usize,
    },
    /// The others have gone on without it.
    #[error("the others took it for lost and have gone on without it")]
    Excluded,
}

/// Why a step was refused. It has changed nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GroupError {
    /// Too many broadcasts of this member wait for their turn.
    #[error("broadcasting to the group: {limit} broadcasts of this node wait already")]
    Full {
        /// The most there may be.
        limit: usize,
    },
    /// The body needs more numbers than may be without acknowledgement.
    #[error("broadcasting {bytes} bytes to the group: at most {most} fit")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most there can be.
        most: usize,
    },
    /// The member is in the group no longer, or leaves.
    #[error("broadcasting to the group: this node is no member: {0}")]
    Ended(Ending),
    /// What no sound member sends. The sender should be cut off.
    #[error("a group message from {from}: {what}")]
    Message {
        /// Who sent it.
        from: NodeId,
        /// What is wrong with it.
        what: &'static str,
    },
}
