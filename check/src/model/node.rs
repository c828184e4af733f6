use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dhole_model::{CallSite, NodeId, Oid, OidRange, Version};
use dhole_protocol::objects::ObjectsEvent;
use dhole_protocol::{
    Along, BarrierId, Behind, CollectiveKind, Command, Commands, DiffId, Event, Follow, Freed,
    Message, Protocol, ProtocolError, RegionCommand, Sent, SentList, Unit, WorkerIs,
};

use crate::model::calls::Calls;
use crate::model::elements;
use crate::model::gates::Gate;
use crate::model::seen::{Published, Seeing};
use crate::model::seen_blocks::{PublishedBlock, SeeingBlocks};
use crate::model::worker::allocated;
use crate::model::{Fault, Heap, History, Network, Op, Parcel, Presence, Program, WriteId, Writes};
use crate::{Bug, Fate};

/// The wait of a worker in a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wait {
    /// The bytes of an object.
    Object,
    /// Homes that make what was written part of their objects.
    Flush,
    /// A lock.
    Lock(u8),
    /// The condition of a lock, and then the lock.
    Condition(u8),
    /// A read-write lock, to read.
    Share(u8),
    /// A read-write lock, to write.
    Exclude(u8),
    /// The condition of a read-write lock, and then the lock, to write.
    Readmission(u8),
    /// A permit of a semaphore.
    Permit(u8),
    /// A barrier.
    Barrier(BarrierId),
    /// Values of the collective of this number and kind.
    Collective(u64, CollectiveKind),
    /// An operation of a counter, or a change of where it is kept.
    Operation,
    /// The write notices of operations, with the other sides of races.
    Learning,
}

/// Where a worker is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Running the program.
    Computing,
    /// In a call that synchronises: what was written is at home, and the call goes on.
    Flushed,
    /// In a call, which returns when nothing is waited for any more.
    Call(Presence, Option<Wait>),
    /// In a call that reads an object in the memory of another node.
    Seeing(Presence),
    /// Past the end of the run.
    Finished,
    /// Told that this wait will never end.
    Deadlocked(Wait),
}

/// One node: protocol, heap and worker.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// Which one.
    pub me: usize,
    /// The machine that is checked.
    pub protocol: Protocol,
    /// Its objects.
    pub heap: Heap,
    /// How many operations of its program the worker has done.
    pub done: usize,
    /// How many barriers and collectives it has passed.
    pub passed: u64,
    /// Where it is.
    pub phase: Phase,
    /// What the worker has written as was expected since it last synchronised, and where.
    pub noted: Vec<(Oid, CallSite)>,
    /// The exclusive objects among them.
    pub written_alone: Vec<Oid>,
    /// The objects that came ahead of its last miss.
    pub came_ahead: Vec<Oid>,
    /// It has withdrawn an object from its worker.
    pub has_withdrawn: bool,
    /// It has found the gate open of an object that it was to read.
    pub has_found_open: bool,
    /// Messages that are taken again at the worker's next call.
    pub again: Vec<(NodeId, Message, Vec<WriteId>)>,
    /// In a collective, once it has what it waits for first: whether it has sent its value up. Or
    /// it meets the others to collect diffs.
    pub collecting: Option<bool>,
    /// Diffs of pages.
    pub diffs: BTreeMap<DiffId, Vec<WriteId>>,
    /// Its memory for diffs was full when it arrived at a barrier.
    pub full: bool,
    /// Its part in keeping counters.
    pub calls: Calls,
    /// What it publishes of each shared object.
    pub(crate) published: Vec<Published>,
    /// The gate of its objects.
    pub(crate) gate: Gate,
    /// The object that it reads in the memory of another node.
    pub(crate) seeing: Option<Seeing>,
    /// What it publishes of each block of the array.
    pub(crate) published_blocks: Vec<PublishedBlock>,
    /// The elements that it reads in the memory of another node.
    pub(crate) seeing_blocks: Option<SeeingBlocks>,
    /// Blocks that were asked for while the worker could write a part of them, as bits.
    pub(crate) asked_blocks: u8,
}

/// A fault, and the words for it where there are any.
pub(crate) type Failed = (Fault, String);

/// The surroundings of a node in a step.
pub(crate) struct Around<'a> {
    pub program: &'a Program,
    pub bug: Option<Bug>,
    pub network: &'a mut Network,
    pub history: &'a mut History,
}

impl Around<'_> {
    /// The command as the planted bug leaves it.
    pub(crate) fn after_bug(&self, command: Command) -> Option<Command> {
        match self.bug {
            Some(bug) => bug.command(command),
            None => Some(command),
        }
    }
}

impl Node {
    /// A node before the program begins, with the objects that it allocated.
    pub fn new(me: usize, program: &Program) -> Node {
        let protocol = Protocol::with(
            NodeId::at(me),
            program.nodes.len(),
            program.limits,
            program.races,
        );
        let protocol = match program.rounds {
            Some(first) => protocol.disseminating(first),
            None => protocol,
        };
        let protocol = match program.sees {
            true => protocol.publishing(program.exclusive_after),
            false => protocol,
        };
        let protocol = match program.gates {
            true => protocol.gating(),
            false => protocol,
        };
        let protocol = match program.withdraws {
            true => protocol.withdrawing(),
            false => protocol,
        };
        let protocol = match program.is_paged() {
            true => protocol.paging(0..program.pages()),
            false => protocol,
        };
        let mut node = Node {
            me,
            protocol: match program.writes {
                Writes::Compared => protocol.comparing(),
                Writes::Expected => protocol.expecting_writes(),
                Writes::Marked => protocol,
            },
            heap: Heap::new(program.objects.len() + program.elements),
            done: 0,
            passed: 0,
            phase: Phase::Computing,
            noted: Vec::new(),
            written_alone: Vec::new(),
            came_ahead: Vec::new(),
            has_withdrawn: false,
            has_found_open: false,
            again: Vec::new(),
            collecting: None,
            diffs: BTreeMap::new(),
            full: false,
            calls: Calls::new(me, program.nodes.len()),
            published: vec![Published::default(); program.objects.len()],
            gate: Gate::default(),
            seeing: None,
            published_blocks: vec![PublishedBlock::default(); program.elements.div_ceil(2)],
            seeing_blocks: None,
            asked_blocks: 0,
        };
        for oid in program.allocated_before(me) {
            if program.young {
                node.protocol.born(OidRange::one(oid), program.coherence);
                let born = program
                    .leaves(oid)
                    .try_for_each(|leaf| node.heap.bear(leaf));
                born.expect("the object is new");
                continue;
            }
            let allocated = allocated(oid, program);
            let stepped = node.protocol.step(allocated, WorkerIs::InCall, &mut vec![]);
            stepped.expect("a node may allocate");
            program
                .leaves(oid)
                .for_each(|leaf| node.heap.allocate(leaf));
            node.publish(oid, program);
        }
        let has_home = program.coherence.properties().has_home;
        if me == 0 && program.elements > 0 && has_home {
            let allocated = elements::allocated(program);
            let stepped = node.protocol.step(allocated, WorkerIs::InCall, &mut vec![]);
            stepped.expect("a node may allocate");
            let objects = program.objects.len();
            let elements = objects..objects + program.elements;
            elements.for_each(|element| node.heap.allocate(element));
        }
        node
    }

    /// The operation that is next, if the program has not ended.
    pub fn next(&self, program: &Program) -> Option<Op> {
        program.nodes[self.me].get(self.done).copied()
    }

    /// The worker's wait, if it waits.
    pub fn waits_for(&self) -> Option<Wait> {
        match self.phase {
            Phase::Call(_, wait) => wait,
            Phase::Deadlocked(wait) => Some(wait),
            Phase::Computing | Phase::Flushed | Phase::Seeing(_) | Phase::Finished => None,
        }
    }

    pub(crate) fn presence(&self) -> Presence {
        match self.phase {
            Phase::Computing => Presence::Computing,
            Phase::Call(presence, _) | Phase::Seeing(presence) => presence,
            Phase::Flushed | Phase::Finished | Phase::Deadlocked(_) => Presence::Exclusive,
        }
    }

    /// Takes a message.
    pub(crate) fn deliver(
        &mut self,
        parcel: &Parcel,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        let from = parcel.from;
        let message = match parcel.message.clone() {
            Message::After { delivered, carrier } => {
                self.calls.is_after(delivered);
                *carrier
            }
            Message::Objects(message) => {
                let message = *message;
                return self.step_objects(ObjectsEvent::Deliver { from, message }, around);
            }
            message => message,
        };
        if let Message::Fetch(fetch) = &message {
            let missed = fetch.wanted.len() - usize::from(fetch.beside);
            for wanted in &fetch.wanted[..missed] {
                self.withdraw(wanted.region, around)?;
            }
        }
        self.step(Event::Deliver { from, message }, &parcel.payload, around)
    }

    /// Withdraws an exclusive object from the worker if it computes and has not written the object.
    pub(crate) fn withdraw(&mut self, oid: Oid, around: &Around<'_>) -> Result<(), Failed> {
        let all = around.program.all();
        let withdraws = around.program.withdraws && all.contains(oid);
        let computes = self.presence() == Presence::Computing;
        if !withdraws || !computes || !self.protocol.is_exclusive(oid) {
            return Ok(());
        }
        let mut leaves = around.program.leaves(oid);
        let is_untouched = leaves.clone().all(|leaf| self.heap.is_untouched(leaf));
        if is_untouched || around.bug == Some(Bug::WithdrawWritten) {
            self.leaves_gate(oid, around.program);
            let withdrawn = leaves.try_for_each(|leaf| self.heap.withdraw(leaf));
            withdrawn.map_err(|fault| (fault, format!("{oid} is withdrawn")))?;
            self.has_withdrawn = true;
            if around.bug != Some(Bug::HideWithdrawn) {
                self.protocol.withdrawn(oid);
                self.publish(oid, around.program);
            }
        }
        Ok(())
    }

    /// The worker has synchronised: its exclusive objects are expected to be written from here on.
    pub(crate) fn expect_exclusive(&mut self, around: &Around<'_>) -> Result<(), Failed> {
        let mut alone = self.protocol.take_written_alone();
        alone.append(&mut self.written_alone);
        for oid in alone {
            let presence = self.presence();
            if self.protocol.is_exclusive(oid) {
                let mut leaves = around.program.leaves(oid);
                let expected = leaves.try_for_each(|leaf| self.heap.expect_again(leaf, presence));
                expected.map_err(|fault| (fault, format!("{oid} is expected to be written")))?;
            }
        }
        Ok(())
    }

    /// Takes an event and does what it leads to, as the engine does.
    pub(crate) fn step(
        &mut self,
        event: Event,
        payload: &[WriteId],
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        let worker = self.worker_is(around);
        let became = match event {
            Event::WriteFault { oid, .. } => {
                self.ends_unless(oid, around);
                None
            }
            Event::Allocated { range, .. } => Some(range),
            _ => None,
        };
        let mut commands = Commands::new();
        let protocol = &mut self.protocol;
        // By the method that the engine calls, where there is one.
        let stepping = || match event {
            Event::ReadMiss(missed) => protocol.read_misses(&[missed], &mut commands),
            Event::ReadMisses(missed) => protocol.read_misses(&missed, &mut commands),
            Event::Arrive { once: false, site } if protocol.begins_with_rounds() => {
                protocol.arrive_at_rounds(site, &mut commands)
            }
            event => protocol.step(event, worker, &mut commands),
        };
        match catch_unwind(AssertUnwindSafe(stepping)) {
            Ok(Ok(())) => {}
            Ok(Err(ProtocolError::Freed(freed))) => {
                let told = self.told_freed(freed, around);
                return told.map_err(|fault| (fault, freed.to_string()));
            }
            Ok(Err(refused)) => return Err((Fault::Refused, refused.to_string())),
            Err(_) => return Err((Fault::Panicked, String::new())),
        }
        let mut payload = payload.iter().copied();
        for command in commands {
            let told = command.clone();
            let carried_out = around.after_bug(command).map_or(Ok(()), |command| {
                self.carry_out(command, &mut payload, around)
            });
            carried_out.map_err(|fault| (fault, format!("{told:?} on node {}", self.me)))?;
        }
        let all = around.program.all();
        let objects = became.into_iter().flat_map(OidRange::iter);
        for oid in objects.filter(|oid| all.contains(*oid)) {
            self.publish(oid, around.program);
        }
        Ok(())
    }

    /// The worker's operation is left out: its object was freed.
    fn told_freed(&mut self, freed: Freed, around: &Around<'_>) -> Result<(), Fault> {
        let mut leaves = elements::freed(freed.oid, around.program);
        let was_freed = leaves.any(|leaf| around.history.was_freed(leaf));
        self.phase = Phase::Computing;
        self.done += 1;
        match was_freed {
            true => Ok(()),
            false => Err(Fault::PhantomFree),
        }
    }

    /// Forgets objects. Where the worker itself frees them, that is an event of the history.
    pub(crate) fn free(&mut self, range: OidRange, around: &mut Around<'_>) -> Result<(), Fault> {
        if range.contains(elements::ARRAY) {
            return self.free_array(around);
        }
        if around.bug != Some(Bug::FreePublished) {
            range.iter().for_each(|oid| {
                self.unpublish(oid);
            });
        }
        let mut leaves = range.iter().flat_map(|oid| around.program.leaves(oid));
        leaves.try_for_each(|leaf| self.free_place(leaf, around))
    }

    /// Forgets one place of the heap.
    pub(crate) fn free_place(&mut self, leaf: usize, around: &mut Around<'_>) -> Result<(), Fault> {
        let (at, own) = (self.presence(), self.next(around.program));
        self.heap.free(leaf, at)?;
        let frees = match own {
            Some(Op::Free(object)) => usize::from(object) == leaf,
            Some(Op::FreeArray) => leaf >= around.program.objects.len(),
            _ => false,
        };
        if frees {
            let alone = around.history.is_alone(self.me, leaf as u8);
            around.history.free(self.me, leaf as u8, self.done + 1);
            if around.program.race_free && !alone {
                return Err(Fault::Race);
            }
        }
        Ok(())
    }

    pub(crate) fn carry_out(
        &mut self,
        command: Command,
        payload: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let at = self.presence();
        match command {
            Command::Send { to, message } => self.send(to, message, vec![], false, around),
            // No program here allocates.
            Command::HandOutIds { .. } | Command::TakeIds(_) => return Err(Fault::Heap),
            Command::Pages(command) => self.carry_out_on_page(command, payload, around)?,
            Command::Objects(command) => self.carry_out_on(command, payload, around)?,
            Command::Array(command) => self.carry_out_on(command, payload, around)?,
            Command::EndYoung { range, .. } => {
                let mut ended = range.iter().map(RegionCommand::MakeClean);
                ended.try_for_each(|clean| {
                    self.carry_out(Command::Objects(clean), payload, around)
                })?;
            }
            Command::InstallAlong(sent) => {
                self.carry_out_on(RegionCommand::Install(sent), payload, around)?;
            }
            Command::SendUnits {
                to,
                mut message,
                units,
                what,
            } => {
                let (mut values, mut sizes) = (Vec::new(), Vec::new());
                for unit in units {
                    let places = elements::of_unit(unit, around.program);
                    sizes.push(places.len() as u64);
                    for place in places {
                        values.push(self.gather(place, (unit, what), around)?);
                    }
                }
                message.set_sizes(&sizes);
                for to in to {
                    self.send(to, message.clone(), values.clone(), false, around);
                }
            }
            Command::DeliverAgain { from, message } => {
                self.again.push((from, message, payload.collect()));
            }
            Command::Fail(_) => return Err(Fault::Refused),
            Command::PassOver { bytes } => {
                for _place in 0..bytes {
                    payload.next().ok_or(Fault::Heap)?;
                }
            }
            Command::Compare { oid, site } => self.compare(oid, site, around)?,
            Command::ExpectWrite { oid, pre_image } => {
                self.ends_unless(oid, around);
                let mut leaves = around.program.leaves(oid);
                leaves.try_for_each(|leaf| self.heap.expect_write(leaf, pre_image, at))?;
            }
            Command::Gate(oid) => self.put_behind_gate(oid, around.program)?,
            Command::ShutGate(_) => self.shut_gate(around)?,
            // No worker of these models sends updates.
            Command::Combine { .. } => return Err(Fault::Refused),
            Command::IntervalEnded
            | Command::Deferred
            | Command::RacesFound(_)
            | Command::Collected { .. } => {}
            Command::TrySections(lock) => {
                let tried = self.try_sections(lock, around);
                tried.map_err(|(fault, _)| fault)?;
            }
            Command::Gone(freed) => self.told_freed(freed, around)?,
            Command::Race(race) => {
                let mut parts = around.program.raced(race.raced).into_iter();
                let each = around.program.coherence.properties().has_home;
                parts.try_for_each(|part| around.history.told_of_race(race, part, each))?;
            }
            Command::Done => self.wait_is_over(around)?,
            Command::Deadlock(_) => {
                let wait = self.waits_for().ok_or(Fault::PhantomDeadlock)?;
                self.phase = Phase::Deadlocked(wait);
            }
        }
        Ok(())
    }

    /// What of a place goes behind a message.
    fn gather(
        &self,
        place: usize,
        what: (Unit, Behind),
        around: &Around<'_>,
    ) -> Result<WriteId, Fault> {
        let at = self.presence();
        match what {
            (Unit::Object(_), Behind::Changes) if around.bug != Some(Bug::SkipTwin) => {
                self.heap.diff(place, at)
            }
            // Elements have no pre-images: those that are writable are written.
            (Unit::Block(_), Behind::Changes) if !self.heap.is_writable(place) => {
                Ok(WriteId::UNCHANGED)
            }
            _ => self.heap.gather(place, at),
        }
    }

    /// Adds to a reply what its objects own, and what is followed from them.
    pub(crate) fn add_along(
        &mut self,
        (to, follow): (NodeId, &Follow),
        sent: &mut SentList,
        values: &mut Vec<WriteId>,
        around: &Around<'_>,
    ) -> Result<(), Fault> {
        let (at, mut next) = (self.presence(), 0);
        let worker = self.worker_is(around);
        while let Some(of) = sent.get(next).copied() {
            next += 1;
            let program = around.program;
            let followed = program.followed.iter().filter(|_| !follow.is_none());
            let named = program.owned.iter().chain(followed);
            let named = named.filter(|(by, _)| program.oid(*by) == of.region);
            for oid in named.map(|(_, named)| program.oid(*named)) {
                if sent.iter().any(|sent| sent.region == oid) {
                    continue;
                }
                self.withdraw(oid, around).map_err(|(fault, _)| fault)?;
                let along = match self.protocol.send_along(oid, to, worker) {
                    None if around.bug == Some(Bug::SendInvalidAlong) => Some(Along {
                        // As if it had it from whoever wrote it since.
                        version: Version {
                            lamport: of.version.lamport + 2,
                            ..of.version
                        },
                        make_clean: false,
                    }),
                    along => along,
                };
                let Some(along) = along else {
                    continue;
                };
                if along.make_clean {
                    self.leaves_gate(oid, program);
                }
                for leaf in program.leaves(oid) {
                    if along.make_clean {
                        self.heap.make_clean(leaf, at)?;
                    }
                    values.push(self.heap.gather(leaf, at)?);
                }
                self.publish(oid, program);
                let version = along.version;
                sent.push(Sent {
                    region: oid,
                    version,
                });
            }
        }
        Ok(())
    }

    fn worker_is(&self, around: &Around<'_>) -> WorkerIs {
        match self.presence() {
            Presence::Computing if around.bug != Some(Bug::AnswerAtOnce) => WorkerIs::Computing,
            Presence::Shared => WorkerIs::Sharing,
            _ => WorkerIs::InCall,
        }
    }

    fn wait_is_over(&mut self, around: &mut Around<'_>) -> Result<(), Fault> {
        let Phase::Call(presence, Some(wait)) = self.phase else {
            return Err(Fault::Heap);
        };
        self.phase = match wait {
            Wait::Flush => Phase::Flushed,
            _ => Phase::Call(presence, None),
        };
        match wait {
            Wait::Object
            | Wait::Flush
            | Wait::Operation
            | Wait::Learning
            | Wait::Collective(..) => Ok(()),
            Wait::Lock(lock) => around.history.acquired(self.me, lock),
            Wait::Condition(lock) => {
                around.history.turnstiles.woken &= !(1 << self.me);
                around.history.acquired(self.me, lock)
            }
            Wait::Readmission(lock) => {
                around.history.turnstiles.woken &= !(1 << self.me);
                around.history.passes(self.me, Wait::Exclude(lock))
            }
            Wait::Share(_) | Wait::Exclude(_) | Wait::Permit(_) => {
                around.history.passes(self.me, wait)
            }
            Wait::Barrier(barrier) => {
                self.passed += 1;
                if matches!(barrier, BarrierId::End(_)) {
                    self.phase = Phase::Finished;
                }
                let nodes = around.program.nodes.len();
                around.history.departed(self.me, number(barrier), nodes)
            }
        }
    }

    pub(crate) fn send(
        &self,
        mut to: NodeId,
        mut message: Message,
        mut payload: Vec<WriteId>,
        from_pre_image: bool,
        around: &mut Around<'_>,
    ) {
        let from = NodeId::at(self.me);
        message = message.after(self.calls.order());
        let fate = match around.bug {
            Some(bug) => bug.message(from, &mut to, &mut message),
            None => Fate::default(),
        };
        if fate.stale {
            payload.fill(WriteId::INITIAL);
        }
        if let Some((from, to, message)) = fate.more {
            around.network.send(Parcel {
                from,
                to,
                message,
                payload: Vec::new(),
                from_pre_image: false,
            });
        }
        if !fate.lost {
            around.network.send(Parcel {
                from,
                to,
                message,
                payload,
                from_pre_image,
            });
        }
    }
}

/// A barrier's number in the history. The end is one of those that can be counted.
pub(crate) fn number(barrier: BarrierId) -> u8 {
    match barrier {
        BarrierId::End(_) | BarrierId::Collection(_) => 0,
        BarrierId::Program(number) => 1 + 3 * number as u8,
        BarrierId::Once(number) => 2 + 3 * number as u8,
        BarrierId::Switch { number, .. } | BarrierId::SwitchArray { number, .. } => {
            3 + 3 * number as u8
        }
    }
}
