//! What a member does while it takes an event.

use dhole_model::{MemberId, NodeId, Oid, Version};
use smallvec::SmallVec;

use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::object_table::ObjectTable;
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
    pub fn send(&mut self, to: NodeId, body: Vec<u8>, units: &[Oid]) {
        if to == self.around.me || to.index() >= self.around.nodes {
            return self.fail(format!("it sends a message to {to}"));
        }
        let member = self.around.member;
        let message = Message::Coherence { member, body };
        self.said.commands.push(match units {
            [] => Command::Send { to, message },
            units => Command::SendBytes {
                to,
                message,
                objects: units.into(),
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

    pub fn make_writable(&mut self, oid: Oid) {
        let pre_image = false;
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
