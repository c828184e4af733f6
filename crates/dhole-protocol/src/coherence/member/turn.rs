//! What a member does while it takes an event.

use dhole_model::{Elements, MemberId, NodeId, Oid, Version};
use smallvec::SmallVec;

use crate::array_blocks::{Behind, Unit};
use crate::coherence::blocks::BlockTable;
use crate::coherence::inbox::{Inbox, MOST_KEPT_BYTES};
use crate::coherence::kind::Kind;
use crate::coherence::object_table::ObjectTable;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{MemberMessage, Message, RegionCommand, Sent};

/// What a member may know of its surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub member: MemberId,
    pub me: NodeId,
    pub nodes: usize,
    pub worker: WorkerIs,
    /// Whose message it takes; this node itself where its worker does something.
    pub from: NodeId,
    /// That message.
    pub message: Option<&'a MemberMessage>,
    pub objects: &'a ObjectTable,
    pub blocks: &'a BlockTable,
    /// The elements that the worker writes, if it does.
    pub writes: Option<Elements>,
}

/// What a member says while it takes an event.
#[derive(Default)]
pub(crate) struct Said {
    pub commands: Commands,
    pub ready: SmallVec<[Oid; 1]>,
    pub released: bool,
    pub gone: Option<Oid>,
    pub deferred: bool,
    /// How many units it has taken from behind the message.
    pub taken: usize,
}

/// One event that a member takes: what it sees, and what it has said so far.
pub(crate) struct Turn<'a> {
    pub around: Around<'a>,
    pub said: &'a mut Said,
    pub inboxes: Inboxes<'a>,
}

/// Pushes that wait to be read, of objects and of blocks.
pub(crate) type Inboxes<'a> = (&'a mut Inbox<Oid>, &'a mut Inbox<Elements>);

/// Keeps bytes of a version; whether they are as many bytes for each part.
fn keep<R: Kind>(
    inbox: &mut Inbox<R>,
    (region, version): (R, Version),
    bytes: u64,
    out: &mut Commands,
) -> bool {
    let each = bytes / region.units();
    let are_alike = bytes.is_multiple_of(region.units());
    if are_alike {
        let limits = (each, MOST_KEPT_BYTES);
        inbox.receive((region, version), limits, &mut Vec::new(), out);
    }
    are_alike
}

/// Whether bytes were kept that are as new as needed. They are installed.
fn take<R: Kind>(inbox: &mut Inbox<R>, region: R, need: Version, out: &mut Commands) -> bool {
    let mut is_kept = false;
    inbox.take(region, need, out, |_, _| is_kept = true);
    out.extend(is_kept.then(|| R::command(RegionCommand::InstallKept(region))));
    is_kept
}

impl Turn<'_> {
    pub fn send(&mut self, to: &[NodeId], body: Vec<u8>, units: &[Oid], what: Behind) {
        let Around {
            member,
            me,
            nodes,
            blocks,
            ..
        } = self.around;
        if let Some(to) = to.iter().find(|to| **to == me || to.index() >= nodes) {
            return self.fail(format!("it sends a message to {to}"));
        }
        let sizes = SmallVec::new();
        let message = Message::Coherence(MemberMessage {
            member,
            body,
            sizes,
        });
        let said = &mut self.said.commands;
        if to.is_empty() {
            return;
        }
        if units.is_empty() {
            let send = |to: &NodeId| Command::Send {
                to: *to,
                message: message.clone(),
            };
            return said.extend(to.iter().map(send));
        }
        said.push(Command::SendUnits {
            to: to.into(),
            message,
            units: units.iter().map(|unit| blocks.unit(*unit)).collect(),
            what,
        });
    }

    /// How many bytes the next unit has behind the message; nothing where there is none.
    fn next_size(&mut self) -> Option<u64> {
        let sizes = self.around.message.map(|it| &it.sizes);
        let size = sizes.and_then(|sizes| sizes.get(self.said.taken).copied());
        if size.is_none() {
            self.refuse("a message of a protocol with fewer units behind it than it takes");
        }
        self.said.taken += 1;
        size
    }

    /// The message is none of a sound node.
    fn refuse(&mut self, what: &'static str) {
        let from = self.around.from;
        let cause = ProtocolError::BadMessage { from, what };
        self.said.commands.push(Command::Fail(Box::new(cause)));
    }

    pub fn install(&mut self, unit: Oid) {
        if self.next_size().is_none() {
            return;
        }
        // The version of members' units is their own business.
        let version = Version {
            lamport: 0,
            node: self.around.from,
        };
        fn install<R>(region: R, version: Version) -> RegionCommand<R> {
            RegionCommand::Install(Sent { region, version })
        }
        self.push(
            unit,
            |oid| install(oid, version),
            |block| install(block, version),
        );
    }

    pub fn skip(&mut self) {
        if let Some(bytes) = self.next_size() {
            self.said.commands.push(Command::PassOver { bytes });
        }
    }

    pub fn keep(&mut self, unit: Oid, number: u64) {
        if self.around.objects.get(unit).freed {
            return self.skip();
        }
        let Some(bytes) = self.next_size() else {
            return;
        };
        let version = Version {
            lamport: number,
            node: self.around.from,
        };
        let (objects, blocks) = &mut self.inboxes;
        let out = &mut self.said.commands;
        let are_alike = match self.around.blocks.unit(unit) {
            Unit::Object(oid) => keep(objects, (oid, version), bytes, out),
            Unit::Block(block) => keep(blocks, (block, version), bytes, out),
        };
        if !are_alike {
            self.refuse("a block of elements that are not all of one length");
        }
    }

    pub fn take_kept(&mut self, unit: Oid, oldest: u64) -> bool {
        let need = Version {
            lamport: oldest,
            node: NodeId(0),
        };
        let (objects, blocks) = &mut self.inboxes;
        let out = &mut self.said.commands;
        match self.around.blocks.unit(unit) {
            Unit::Object(oid) => take(objects, oid, need, out),
            Unit::Block(block) => take(blocks, block, need, out),
        }
    }

    pub fn discard(&mut self, unit: Oid) {
        let (objects, blocks) = &mut self.inboxes;
        let out = &mut self.said.commands;
        match self.around.blocks.unit(unit) {
            Unit::Object(oid) => objects.forget(oid, out),
            Unit::Block(block) => blocks.forget(block, out),
        }
    }

    pub fn invalidate(&mut self, unit: Oid) {
        self.push(unit, RegionCommand::Invalidate, RegionCommand::Invalidate);
    }

    pub fn merge(&mut self, unit: Oid) {
        let Some(bytes) = self.next_size() else {
            return;
        };
        fn merge<R>(region: R, bytes: u64) -> RegionCommand<R> {
            let (form, made) = (Behind::Changes, None);
            RegionCommand::MergeNext {
                region,
                bytes,
                form,
                made,
            }
        }
        self.push(unit, |oid| merge(oid, bytes), |block| merge(block, bytes));
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
