use dhole_model::{NodeId, NodeMap};
use dhole_wire::Wire;

/// A view of the group: who is in it, from one number on. Its number and its sequencer name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct ViewId {
    /// Counts the views.
    pub number: u64,
    /// Who numbers messages in it.
    pub sequencer: NodeId,
}

/// Which part of which broadcast something is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Wire)]
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

/// One member, as whoever joins has to know it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Which of its lives it is: 0 for the group's first members, more for whoever joins again.
    pub incarnation: u64,
    /// Its next broadcast that is not yet delivered.
    pub serial: u64,
}

/// Why the view should change: nodes, each with the life that is meant. Grows only.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Wire)]
pub struct Wants {
    /// They are lost.
    pub lost: NodeMap<u64>,
    /// They want to leave.
    pub leaving: NodeMap<u64>,
    /// They want to join.
    pub joining: NodeMap<u64>,
}

/// What a member knows when the view changes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct State {
    /// Its view.
    pub view: ViewId,
    /// Who is in that.
    pub members: Vec<NodeId>,
    /// Who had to agree to that view; empty when it is known to be in use.
    pub electors: Vec<NodeId>,
    /// The number after which the view begins.
    pub start: u64,
    /// Up to where it has delivered.
    pub done: u64,
    /// Numbers beyond that of which it has the message.
    pub held: Vec<u64>,
    /// Why it thinks that the view should change.
    pub wants: Wants,
}

/// What one member says to all in the order, as it is passed on along a tree.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub enum Cast<B> {
    /// As [`GroupMessage::Data`].
    Data {
        /// Its place in the order.
        number: u64,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
        /// Up to where all members have delivered.
        stable: u64,
    },
    /// As [`GroupMessage::Announce`].
    Announce {
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
        /// Up to where the originator has delivered.
        done: u64,
    },
    /// As [`GroupMessage::Accept`].
    Accept {
        /// Who broadcasts.
        origin: NodeId,
        /// Which of its broadcasts.
        serial: u64,
        /// How many numbers it takes.
        parts: u32,
        /// The first of them.
        first: u64,
        /// Up to where all members have delivered.
        stable: u64,
    },
}

/// What members of a group say to each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub enum GroupMessage<B> {
    /// To the sequencer: number this, and multicast it.
    Submit {
        /// The view in which it is said.
        view: ViewId,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
        /// Up to where the sender has delivered.
        done: u64,
    },
    /// To the sequencer: give me numbers for a broadcast.
    Ask {
        /// The view in which it is said.
        view: ViewId,
        /// Which of the sender's broadcasts.
        serial: u64,
        /// How many numbers it takes.
        parts: u32,
        /// Up to where the sender has delivered.
        done: u64,
    },
    /// From the sequencer: these numbers are yours.
    Grant {
        /// The view in which it is said.
        view: ViewId,
        /// Which of the receiver's broadcasts.
        serial: u64,
        /// The first of its numbers.
        first: u64,
        /// Up to where all members have delivered.
        stable: u64,
    },
    /// To all: a part of a broadcast, which the sequencer is to number.
    Announce {
        /// The view in which it is said.
        view: ViewId,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
        /// Up to where the sender has delivered.
        done: u64,
    },
    /// From the sequencer: the numbers of a broadcast that its sender has multicast, or will.
    Accept {
        /// The view in which it is said.
        view: ViewId,
        /// Who broadcasts.
        origin: NodeId,
        /// Which of its broadcasts.
        serial: u64,
        /// How many numbers it takes.
        parts: u32,
        /// The first of them.
        first: u64,
        /// Up to where all members have delivered.
        stable: u64,
    },
    /// A part of a broadcast, and its number.
    Data {
        /// The view in which it is said.
        view: ViewId,
        /// Its place in the order.
        number: u64,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
        /// Up to where all members have delivered.
        stable: u64,
    },
    /// To the sequencer or an originator: send me these again.
    Fetch {
        /// The view in which it is said.
        view: ViewId,
        /// The first number.
        first: u64,
        /// The last number.
        last: u64,
        /// Up to where the sender has delivered.
        done: u64,
    },
    /// From member to member and back to the sequencer: whoever passes it on has delivered so far.
    Token {
        /// The view in which it is said.
        view: ViewId,
        /// Counts the tokens of the view.
        round: u64,
        /// The number that is acknowledged.
        high: u64,
        /// Up to where all members have delivered.
        stable: u64,
    },
    /// A multicast on its way along a tree.
    Relay {
        /// The view in which it is said.
        view: ViewId,
        /// Who multicasts it.
        root: NodeId,
        /// Counts the messages from this sender to this receiver.
        link: u64,
        /// What is multicast.
        cast: Cast<B>,
    },
    /// To whoever passes messages on to the sender: up to this one they are passed on.
    Credit {
        /// The view in which it is said.
        view: ViewId,
        /// The last message.
        link: u64,
    },
    /// To any member: take me in.
    Join {
        /// Which life of the sender it is, above all before.
        incarnation: u64,
    },
    /// To whoever should change the view: this is why.
    Suspect {
        /// The sender's view.
        view: ViewId,
        /// Why.
        wants: Wants,
    },
    /// From the coordinator of a change: stop, and tell me what you know.
    Collect {
        /// The coordinator's view.
        view: ViewId,
        /// Which life of the receiver is meant.
        life: u64,
        /// Counts what this coordinator tries.
        attempt: u64,
        /// Why the view changes.
        wants: Wants,
    },
    /// The answer.
    State {
        /// What it answers.
        attempt: u64,
        /// What the member knows.
        state: Box<State>,
    },
    /// From the coordinator: send me these, nobody else may have them.
    Gather {
        /// What it belongs to.
        attempt: u64,
        /// The numbers.
        numbers: Vec<u64>,
    },
    /// The answer, part for part.
    Gathered {
        /// What it answers.
        attempt: u64,
        /// Its place in the order.
        number: u64,
        /// What it is.
        part: Part,
        /// The part itself.
        body: B,
    },
    /// From the coordinator: the next view, and how the last one ends.
    Install {
        /// What it belongs to.
        attempt: u64,
        /// The next view.
        view: ViewId,
        /// Its members, by seniority.
        members: Vec<Member>,
        /// Who told the coordinator what they knew, itself included.
        electors: Vec<NodeId>,
        /// The last number of the view before.
        end: u64,
    },
    /// To the coordinator: I have all of the view before, and do not go back to it.
    Installed {
        /// The view that is installed.
        view: ViewId,
    },
    /// From the coordinator: all have; go on.
    Active {
        /// The view that is in use now.
        view: ViewId,
    },
    /// To whoever broadcast something that the sender has delivered, or to all from whoever wants
    /// to know what they have.
    Have {
        /// The view in which it is said.
        view: ViewId,
        /// Up to where the sender has delivered.
        done: u64,
        /// Whether the receiver is to say so when it has delivered as much.
        asks: bool,
    },
    /// To a node that the sender does not count among the members, or takes for lost.
    Out {
        /// The sender's view.
        view: ViewId,
        /// Whether the receiver is a member of that view.
        listed: bool,
        /// Which lives of the sender and of the receiver are meant.
        lives: (u64, u64),
    },
}

impl<B> GroupMessage<B> {
    /// What is broadcast, or a part of it, if the message carries it.
    pub fn body(&self) -> Option<&B> {
        match self {
            GroupMessage::Submit { body, .. }
            | GroupMessage::Announce { body, .. }
            | GroupMessage::Data { body, .. }
            | GroupMessage::Gathered { body, .. }
            | GroupMessage::Relay {
                cast: Cast::Data { body, .. } | Cast::Announce { body, .. },
                ..
            } => Some(body),
            _ => None,
        }
    }
}

impl<B> Cast<B> {
    /// The message in this view.
    pub(super) fn into_message(self, view: ViewId) -> GroupMessage<B> {
        match self {
            Cast::Data {
                number,
                part,
                body,
                stable,
            } => GroupMessage::Data {
                view,
                number,
                part,
                body,
                stable,
            },
            Cast::Announce { part, body, done } => GroupMessage::Announce {
                view,
                part,
                body,
                done,
            },
            Cast::Accept {
                origin,
                serial,
                parts,
                first,
                stable,
            } => GroupMessage::Accept {
                view,
                origin,
                serial,
                parts,
                first,
                stable,
            },
        }
    }
}

impl Wants {
    /// Takes over what another knows.
    pub(super) fn merge(&mut self, other: &Wants) {
        let merge = |mine: &mut NodeMap<u64>, theirs: &NodeMap<u64>| {
            for (node, incarnation) in theirs {
                let known = mine.get_or_insert(*node, *incarnation);
                *known = (*known).max(*incarnation);
            }
        };
        merge(&mut self.lost, &other.lost);
        merge(&mut self.leaving, &other.leaving);
        merge(&mut self.joining, &other.joining);
    }
}
