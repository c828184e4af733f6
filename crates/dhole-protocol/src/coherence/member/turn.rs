//! What a member does while it takes an event.

use dhole_model::{Elements, MemberId, NodeId, Oid, Version};
use smallvec::SmallVec;

use crate::array_blocks::Unit;
use crate::coherence::blocks::BlockTable;
use crate::coherence::object_table::ObjectTable;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{Message, RegionCommand, Sent};

/// What a member may know of its surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub member: MemberId,
    pub me: NodeId,
    pub nodes: usize,
    pub worker: WorkerIs,
    /// Whose message it takes; this node itself where its worker does something.
    pub from: NodeId,
    /// What that message is.
    pub body: &'a [u8],
    pub objects: &'a ObjectTable,
    pub blocks: &'a BlockTable,
    /// The elements that the worker writes, if it does.
    pub writes: Option<Elements>,
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
        let blocks = self.around.blocks;
        let units: SmallVec<_> = units.iter().map(|unit| blocks.unit(*unit)).collect();
        self.said.commands.push(match (&units[..], what) {
            ([], _) => Command::Send { to, message },
            (_, Behind::Bytes) => Command::SendBytes { to, message, units },
            (_, Behind::Changes) => Command::SendChanges { to, message, units },
        });
    }

    pub fn install(&mut self, unit: Oid, stays: bool) {
        // The version of members' units is their own business.
        let version = Version {
            lamport: 0,
            node: self.around.from,
        };
        fn taken<R>(region: R, version: Version, stays: bool) -> RegionCommand<R> {
            let sent = Sent { region, version };
            match stays {
                true => RegionCommand::Install(sent),
                false => RegionCommand::Skip(sent),
            }
        }
        self.push(
            unit,
            |oid| taken(oid, version, stays),
            |block| taken(block, version, stays),
        );
    }

    pub fn invalidate(&mut self, unit: Oid) {
        self.push(unit, RegionCommand::Invalidate, RegionCommand::Invalidate);
    }

    pub fn merge(&mut self, unit: Oid) {
        self.push(unit, RegionCommand::MergeNext, RegionCommand::MergeNext);
    }

    pub fn make_writable(&mut self, unit: Oid, pre_image: bool) {
        // What the worker asks to write is what it changes.
        let writes = self.around.writes;
        let part = |block: Elements| writes.filter(|it| it.meets(block)).unwrap_or(block);
        self.push(
            unit,
            |region| RegionCommand::MakeWritable { region, pre_image },
            |block| RegionCommand::MakeWritable {
                region: part(block),
                pre_image: false,
            },
        );
    }

    pub fn make_clean(&mut self, unit: Oid) {
        self.push(unit, RegionCommand::MakeClean, RegionCommand::MakeClean);
    }

    fn push(
        &mut self,
        unit: Oid,
        of_object: impl FnOnce(Oid) -> RegionCommand<Oid>,
        of_block: impl FnOnce(Elements) -> RegionCommand<Elements>,
    ) {
        self.said
            .commands
            .push(match self.around.blocks.unit(unit) {
                Unit::Object(oid) => Command::Objects(of_object(oid)),
                Unit::Block(elements) => Command::Array(of_block(elements)),
            });
    }

    pub fn fail(&mut self, what: String) {
        let protocol = self.around.member.name();
        let cause = ProtocolError::Member { protocol, what };
        self.said.commands.push(Command::Fail(Box::new(cause)));
    }
}
