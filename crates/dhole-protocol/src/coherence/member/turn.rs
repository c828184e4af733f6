//! What a member does while it takes an event.

use dhole_model::{MemberId, NodeId, Oid, Version};
use smallvec::SmallVec;

use crate::coherence::object_table::ObjectTable;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{Message, Sent};

/// What a member may know of its surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub member: MemberId,
    pub me: NodeId,
    pub nodes: usize,
    pub worker: WorkerIs,
    /// Whose message it takes; this node itself where its worker does something.
    pub from: NodeId,
    pub objects: &'a ObjectTable,
}

/// What goes behind a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Behind {
    /// The bytes of units.
    Bytes,
    /// What the worker has changed in them.
    Changes,
}

/// What a member says while it takes an event.
#[derive(Default)]
pub(crate) struct Said {
    pub commands: Commands,
    pub ready: SmallVec<[Oid; 1]>,
    pub released: bool,
    pub gone: Option<Oid>,
    pub deferred: bool,
}

/// One event that a member takes: what it sees, and what it has said so far.
pub(crate) struct Turn<'a> {
    pub around: Around<'a>,
    pub said: &'a mut Said,
}

impl Turn<'_> {
    pub fn send(&mut self, to: NodeId, body: Vec<u8>, units: &[Oid], what: Behind) {
        if to == self.around.me || to.index() >= self.around.nodes {
            return self.fail(format!("it sends a message to {to}"));
        }
        let member = self.around.member;
        let message = Message::Coherence { member, body };
        let objects = units.into();
        self.said.commands.push(match (units, what) {
            ([], _) => Command::Send { to, message },
            (_, Behind::Bytes) => Command::SendBytes {
                to,
                message,
                objects,
            },
            (_, Behind::Changes) => Command::SendChanges {
                to,
                message,
                objects,
            },
        });
    }

    pub fn install(&mut self, oid: Oid, stays: bool) {
        // The version of members' objects is their own business.
        let version = Version {
            lamport: 0,
            node: self.around.from,
        };
        let sent = Sent { oid, version };
        self.said.commands.push(match stays {
            true => Command::Install(sent),
            false => Command::Skip(sent),
        });
    }

    pub fn invalidate(&mut self, unit: Oid) {
        self.said.commands.push(Command::Invalidate(unit));
    }

    pub fn merge(&mut self, unit: Oid) {
        self.said.commands.push(Command::MergeNext(unit));
    }

    pub fn make_writable(&mut self, oid: Oid, pre_image: bool) {
        self.said
            .commands
            .push(Command::MakeWritable { oid, pre_image });
    }

    pub fn make_clean(&mut self, unit: Oid) {
        self.said.commands.push(Command::MakeClean(unit));
    }

    pub fn fail(&mut self, what: String) {
        let protocol = self.around.member.name();
        let cause = ProtocolError::Member { protocol, what };
        self.said.commands.push(Command::Fail(Box::new(cause)));
    }
}
