//! Sections in the model: critical sections under an object's lock that the lock's home executes on
//! its own copies.

use dhole_model::{CallSite, NodeId, ObjectId, VectorTime};
use dhole_protocol::objects::{Bytes, Call, CallRef, ObjectsEvent, Ran, Refusal};
use dhole_protocol::{Command, WaitingFor};
use dhole_protocol::{
    Commands, Event, MayRun, Message, Operation, Protocol, RegionMessage, RwLockId,
};

use crate::Bug;
use crate::model::node::{Around, Failed};
use crate::model::waiting::rw_lock;
use crate::model::{Fault, Heap, History, Node, Phase, Presence, Program, Wait, WriteId};

/// What a section does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Section {
    /// The object that it reads, and may write.
    pub object: u8,
    /// Whether it writes the object.
    pub writes: bool,
    /// Whether it waits until the object was written.
    pub waits: bool,
    /// The object for which another section waits until it was written, with which it goes on.
    pub then: Option<u8>,
}

impl Section {
    /// A section that waits until an object was written.
    fn waiting_for(object: u8) -> Section {
        Section {
            object,
            writes: false,
            waits: true,
            then: None,
        }
    }

    fn bytes(self, lock: u8) -> Bytes {
        Bytes::from([
            lock,
            self.object,
            u8::from(self.writes),
            u8::from(self.waits),
            self.then.map_or(0, |object| object + 1),
        ])
    }

    fn of(bytes: &[u8]) -> Option<(u8, Section)> {
        let [lock, object, writes, waits, then] = *bytes else {
            return None;
        };
        let section = Section {
            object,
            writes: writes == 1,
            waits: waits == 1,
            then: then.checked_sub(1),
        };
        Some((lock, section))
    }
}

/// What sections work with at a home.
pub(crate) struct AtHome<'a> {
    pub heap: &'a mut Heap,
    pub protocol: &'a mut Protocol,
    pub presence: Presence,
    pub program: &'a Program,
    pub history: &'a mut History,
    pub bug: Option<Bug>,
    /// What the protocol wants done.
    pub commands: Commands,
    pub fault: Option<Fault>,
}

impl AtHome<'_> {
    /// Tries a section, as the engine does.
    pub fn section(
        &mut self,
        call: CallRef<'_>,
        time: Option<&VectorTime>,
    ) -> Result<Ran, Refusal> {
        let id = RwLockId(call.object.0);
        let Some((lock, section)) = Section::of(call.arguments) else {
            return Err(Refusal::Malformed("no section".into()));
        };
        match self.protocol.may_run_section(id, time) {
            MayRun::Later if self.bug != Some(Bug::RunWhileHeld) => return Ok(Ran::Not),
            MayRun::Elsewhere => return Err(Refusal::Elsewhere),
            MayRun::Now | MayRun::Later => {}
        }
        let in_use = self.presence != Presence::Exclusive;
        if in_use && self.bug != Some(Bug::RunBesideReader) {
            self.protocol.defer_section();
            return Ok(Ran::Not);
        }
        let at = usize::from(section.object);
        let value = self.heap.stored(at);
        if section.waits && value == WriteId::INITIAL {
            return Ok(Ran::Not);
        }
        let caller = usize::from(call.id.node.0);
        let objects = [self.program.oid(section.object)];
        if section.writes && !self.may_change(&objects, call.id.node) {
            return Ok(Ran::Not);
        }
        let mut ran = || {
            self.history.enters_section(caller, lock)?;
            self.history.read(caller, section.object, value)?;
            if section.writes {
                if self.program.race_free && !self.history.is_alone(caller, section.object) {
                    return Err(Fault::Race);
                }
                let written = self.history.write(caller, section.object, 0, value);
                self.heap.merge(at, written, self.presence)?;
            }
            self.history.leaves_section(caller, lock, section.writes);
            Ok(())
        };
        if let Err(fault) = ran() {
            self.fault.get_or_insert(fault);
        }
        let wakes = section.writes && self.bug != Some(Bug::SleepOverSection);
        let by = (call.id.node, time);
        self.protocol.section_ran(id, by, wakes, &mut self.commands);
        Ok(match section.then {
            None => Ran::Whole,
            Some(_) if self.bug == Some(Bug::BeginAgain) => Ran::Not,
            Some(object) => Ran::Then {
                kind: 0,
                arguments: Section::waiting_for(object).bytes(lock),
            },
        })
    }

    /// Whether the nodes that keep copies know.
    fn may_change(&mut self, objects: &[dhole_model::Oid; 1], caller: NodeId) -> bool {
        let mut told = Commands::new();
        let may = self.protocol.before_section(objects, &mut told);
        let is_for = |command: &Command, node: NodeId| {
            let Command::Send { to, message } = command else {
                return false;
            };
            let outdated = matches!(message, Message::Region(RegionMessage::Outdated { .. }));
            outdated && *to == node
        };
        let others = told.iter().any(|command| !is_for(command, caller));
        let may = match self.bug {
            Some(Bug::TellKeepersLater) => true,
            Some(Bug::SkipCaller) if !told.is_empty() && !others => {
                told.clear();
                true
            }
            _ => may,
        };
        self.commands.append(&mut told);
        may
    }
}

impl History {
    /// A section of a node begins, as if it had acquired the lock.
    fn enters_section(&mut self, caller: usize, lock: u8) -> Result<(), Fault> {
        self.passes(caller, Wait::Exclude(lock))
    }

    /// It ends. Nodes that wait until one has written under the lock go on, if it wrote.
    fn leaves_section(&mut self, caller: usize, lock: u8, wrote: bool) {
        self.gives_back(caller, crate::model::Op::Readmit(lock));
        if wrote {
            self.turnstiles.wrote(lock);
        }
    }
}

impl Node {
    /// The worker calls a section, in a call that has begun.
    pub(crate) fn call_section(
        &mut self,
        lock: u8,
        section: Section,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        let object = ObjectId(rw_lock(lock).0);
        let id = self.new_call_id(around);
        self.phase = Phase::Call(Presence::Exclusive, Some(Wait::Operation));
        let name = CallSite::runtime("model");
        let made = None;
        let what = WaitingFor::Operation(Operation { object, name, made });
        self.step(Event::Await { what, site: name }, &[], around)?;
        let call = Call {
            id,
            object,
            kind: 0,
            operation: 0,
            writes: true,
            started: false,
            chain: Bytes::default(),
            arguments: section.bytes(lock),
        };
        self.step_objects(ObjectsEvent::Invoke(call), around)
    }
}
