//! The steps of a worker: it accesses what it may, and begins and ends its calls.

use dhole_model::{CallSite, Coherence, NodeId, Oid, OidRange};
use dhole_protocol::{BarrierId, CollectiveEvent, Event, ReadAhead, Unread};

use crate::Bug;
use crate::model::node::{Around, Failed, number};
use crate::model::program::{creator, lock_id};
use crate::model::{
    Fault, Node, Objects, Op, Part, Phase, Presence, Program, Wait, WriteId, Writes,
};
use crate::model::{elements, pages, waiting};

impl Node {
    /// The computing worker does the next thing: an access that finds what it needs, or the
    /// beginning of a call.
    pub(crate) fn compute(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        use Presence::{Exclusive, Shared};
        let wait_at = |id| (Exclusive, Some(Wait::Barrier(id)));
        let site = self.site();
        if self.collecting.is_some() {
            return self.collect(around);
        }
        if self.settles(around)? {
            return Ok(());
        }
        if let Some(Op::Call(number, what)) = self.next(around.program)
            && self.looks_at_once(number, what, around)?
        {
            return Ok(());
        }
        if let Some((object, presence)) = self.missed(around.program)
            && self.begins_to_see(object, presence, around)
        {
            return Ok(());
        }
        if let Some((part, presence)) = self.missed_part(around.program)
            && self.begins_to_see_part(part, presence, around)
        {
            return Ok(());
        }
        if let Some(Op::Write(object)) = self.next(around.program) {
            let oid = around.program.oid(object);
            if self.is_behind_shut_gate(oid, around.program) {
                self.phase = Phase::Call(Exclusive, None);
                self.call(None, around)?;
                return self.open_gate(oid, around);
            }
        }
        let (call, event) = match self.next(around.program) {
            Some(Op::Read(object) | Op::ReadOrSkip(object, _) | Op::SkipIfWritten(object, _)) => {
                if self.heap.readable(usize::from(object)).is_some() {
                    return self.access(around);
                }
                (
                    (Shared, Some(Wait::Object)),
                    Some(read_miss(object, around.program)),
                )
            }
            Some(Op::Prefetch(objects)) => {
                let absent = self.absent(objects, around.program);
                if absent.is_empty() {
                    self.done += 1;
                    return Ok(());
                }
                (
                    (Shared, Some(Wait::Object)),
                    Some(Event::ReadMisses(absent)),
                )
            }
            Some(Op::Write(object)) if self.heap.is_writable(usize::from(object)) => {
                return self.access(around);
            }
            Some(Op::Write(object)) => match self.heap.readable(usize::from(object)) {
                Some(_) => (
                    (Exclusive, self.waits_to_write(object, around.program)),
                    Some(write_fault(object, site, around.program)),
                ),
                None => (
                    (Exclusive, Some(Wait::Object)),
                    Some(read_miss(object, around.program)),
                ),
            },
            Some(Op::ReadPart(part)) => match self.all_readable(part, around.program) {
                true => return self.access(around),
                false if self.keeps_blocks(around.program) => (
                    (Shared, Some(Wait::Object)),
                    self.next_of_blocks(part, false, true, around.program),
                ),
                false => (
                    (Shared, Some(Wait::Object)),
                    Some(part.read(around.program, true)),
                ),
            },
            Some(Op::WritePart(part)) if self.all_writable(part, around.program) => {
                return self.access(around);
            }
            Some(Op::WritePart(part)) if self.keeps_blocks(around.program) => (
                (Exclusive, Some(Wait::Object)),
                self.next_of_blocks(part, true, true, around.program),
            ),
            Some(Op::WritePart(part)) => match self.all_readable(part, around.program) {
                true => ((Exclusive, None), Some(part.write(site))),
                false => (
                    (Exclusive, Some(Wait::Object)),
                    Some(part.read(around.program, false)),
                ),
            },
            Some(Op::Acquire(lock)) => {
                let event = Event::Acquire {
                    lock: lock_id(lock),
                    site,
                };
                ((Exclusive, Some(Wait::Lock(lock))), Some(event))
            }
            Some(Op::Release(lock)) => (
                (Exclusive, None),
                Some(Event::Release {
                    lock: lock_id(lock),
                }),
            ),
            Some(Op::Barrier) => {
                self.full = self.protocol.is_full_of_pages();
                let event = Event::Arrive { once: false, site };
                (wait_at(BarrierId::Program(self.passed)), Some(event))
            }
            Some(Op::Once) => {
                let event = Event::Arrive { once: true, site };
                (wait_at(BarrierId::Once(self.passed)), Some(event))
            }
            Some(Op::Collect(kind)) => {
                let enter = CollectiveEvent::Enter { kind, of: 0, site };
                let wait = Some(Wait::Collective(self.passed, kind));
                ((Exclusive, wait), Some(Event::Collective(enter)))
            }
            Some(Op::Free(object)) => {
                let range = OidRange::one(around.program.oid(object));
                ((Exclusive, None), Some(Event::Free { range, site }))
            }
            Some(Op::Propagate(object)) => {
                let others = (0..around.program.nodes.len()).filter(|node| *node != self.me);
                let event = Event::Propagate {
                    objects: vec![around.program.oid(object)],
                    elements: Vec::new(),
                    to: others.map(NodeId::at).collect(),
                };
                ((Exclusive, None), Some(event))
            }
            Some(Op::Alloc(object)) => {
                self.heap.allocate(usize::from(object));
                (
                    (Exclusive, None),
                    Some(allocated(around.program.oid(object), around.program)),
                )
            }
            Some(Op::SwitchArray(to)) => {
                let id = elements::barrier(self.passed, to);
                (
                    wait_at(id),
                    Some(elements::switch(to, site, around.program)),
                )
            }
            Some(Op::FreeArray) => ((Exclusive, None), Some(elements::free(site))),
            Some(Op::Switch(to)) => {
                let (number, objects) = (self.passed, around.program.all());
                let id = BarrierId::Switch {
                    number,
                    objects,
                    to,
                };
                (wait_at(id), Some(switch(to, site, around.program)))
            }
            Some(Op::Pause) => ((Exclusive, None), None),
            // As the engine does: where there is nothing to end, nothing is ended.
            Some(op) if op.uses_counter() => {
                let quiet = self.protocol.is_quiescent();
                ((Exclusive, None), (!quiet).then_some(Event::EndInterval))
            }
            None => (wait_at(BarrierId::End(self.passed)), Some(Event::Finish)),
            Some(op) => {
                let (wait, event) = waiting::event(op).expect("no other operations are left");
                ((Exclusive, wait), Some(event))
            }
        };
        let synchronises = event.as_ref().is_some_and(Event::synchronises);
        let skips = around.bug == Some(Bug::SectionBeforeFlush)
            && matches!(self.next(around.program), Some(Op::Section(..)));
        if synchronises && self.protocol.has_unflushed() && !skips {
            self.phase = Phase::Call(Exclusive, Some(Wait::Flush));
            return self.call(Some(Event::Flush), around);
        }
        let unwritten = if synchronises {
            self.unwritten(around)
        } else {
            Vec::new()
        };
        if !unwritten.is_empty() {
            self.phase = Phase::Call(Exclusive, call.1);
            self.step(Event::Unwritten(unwritten), &[], around)?;
        }
        if synchronises && !self.noted.is_empty() {
            self.phase = Phase::Call(Exclusive, call.1);
            let noted = std::mem::take(&mut self.noted);
            let oids = noted.iter().map(|(oid, _)| *oid);
            let alone = oids.filter(|oid| self.protocol.is_exclusive(*oid));
            self.written_alone.extend(alone);
            self.step(Event::WrittenAt(noted), &[], around)?;
        }
        if let Some(Op::Release(lock) | Op::WaitOn(lock)) = self.next(around.program) {
            around.history.released(self.me, lock);
        }
        if let Some(op) = self.next(around.program) {
            around.history.turnstiles.begin(self.me, op);
            around.history.gives_back(self.me, op);
        }
        self.phase = Phase::Call(call.0, call.1);
        if let Some(Wait::Barrier(barrier)) = call.1 {
            around.history.arrived(self.me, number(barrier));
        }
        if let Some(Wait::Collective(number, _)) = call.1 {
            around.history.enters(self.me, number);
        }
        self.call(event, around)?;
        if synchronises {
            self.expect_exclusive(around)?;
        }
        match self.next(around.program) {
            Some(op) if op.uses_counter() => self.use_counter(op, around),
            _ => Ok(()),
        }
    }

    /// The object of the next access, if it is not here, and how the worker's call borrows.
    fn missed(&self, program: &Program) -> Option<(u8, Presence)> {
        let (object, presence) = match self.next(program)? {
            Op::Read(object) | Op::ReadOrSkip(object, _) | Op::SkipIfWritten(object, _) => {
                (object, Presence::Shared)
            }
            Op::Write(object) => (object, Presence::Exclusive),
            _ => return None,
        };
        let is_absent = self.heap.readable(usize::from(object)).is_none();
        is_absent.then_some((object, presence))
    }

    /// The elements of the next access, if not all are here, and how the worker's call borrows.
    fn missed_part(&self, program: &Program) -> Option<(Part, Presence)> {
        let (part, presence) = match self.next(program)? {
            Op::ReadPart(part) => (part, Presence::Shared),
            Op::WritePart(part) => (part, Presence::Exclusive),
            _ => return None,
        };
        (!self.all_readable(part, program)).then_some((part, presence))
    }

    /// Where misses are aggregated, all objects lie on one page, in the order of their numbers.
    fn name_beside(&mut self, missed: Oid, program: &Program) {
        let page = program.all().iter().filter(|_| program.aggregates);
        for oid in page.filter(|oid| *oid != missed) {
            if program.leaves(oid).all(|leaf| self.heap.is_invalid(leaf)) {
                self.protocol.lies_beside(oid);
            }
        }
    }

    /// What is read ahead of a miss: all objects were allocated one after the other.
    pub(crate) fn dense_around(&self, missed: &Unread, program: &Program) -> Option<OidRange> {
        let all = program.all();
        let ahead = ReadAhead {
            block: 2,
            most: 4,
            least: 1,
            share: ReadAhead::QUARTER,
            first: all.first.0,
            end: all.last().0 + 1,
        };
        let ahead = program.reads_ahead.then_some(ahead)?;
        self.protocol.dense_around(missed, &ahead)
    }

    /// Where writes are compared, the other clean objects of the page become writable.
    fn name_clean_beside(&mut self, written: Oid, program: &Program) {
        let page = program
            .all()
            .iter()
            .filter(|_| program.writes == Writes::Compared);
        for oid in page.filter(|oid| *oid != written) {
            let is_clean =
                |leaf| self.heap.readable(leaf).is_some() && !self.heap.is_writable(leaf);
            if program.leaves(oid).all(is_clean) {
                self.protocol.lies_beside(oid);
            }
        }
    }

    /// The objects that the worker could have written and did not.
    fn unwritten(&self, around: &Around<'_>) -> Vec<Oid> {
        let compares = around.program.writes == Writes::Compared;
        let is_unwritten = |oid: &Oid| {
            let mut leaves = around.program.leaves(*oid);
            let same = |leaf| self.heap.readable(leaf) == self.heap.gather_pre_image(leaf).ok();
            match around.bug {
                Some(Bug::OverlookWrite) => true,
                Some(Bug::AnnounceExpected) => false,
                _ if compares => leaves.all(same),
                _ => leaves.all(|leaf| self.heap.is_untouched(leaf)),
            }
        };
        let mut unwritten: Vec<Oid> = self.protocol.twins().filter(is_unwritten).collect();
        unwritten.sort_unstable();
        unwritten
    }

    /// The objects of a set that the worker cannot read.
    fn absent(&self, objects: Objects, program: &Program) -> Vec<Unread> {
        let objects = objects
            .iter()
            .filter(|o| self.heap.readable(usize::from(*o)).is_none());
        objects.map(|object| unread(object, program)).collect()
    }

    /// Does what the engine does in a call: it answers the requests that waited for one, and then
    /// takes the event.
    pub(crate) fn call(
        &mut self,
        event: Option<Event>,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        match &event {
            Some(Event::ReadMiss(missed)) => {
                self.name_beside(missed.oid, around.program);
                if let Some(range) = self.dense_around(missed, around.program) {
                    let others = range.iter().filter(|oid| *oid != missed.oid);
                    self.came_ahead = others.collect();
                    self.protocol.reads_ahead(range);
                }
                self.protocol.follow(around.program.follow());
            }
            Some(Event::WriteFault { oid, .. }) => self.name_clean_beside(*oid, around.program),
            _ => {}
        }
        self.publish_asked(around);
        if self.protocol.has_deferred() && around.bug != Some(Bug::NeverServe) {
            for (from, message, payload) in std::mem::take(&mut self.again) {
                self.step(Event::DeliverAgain { from, message }, &payload, around)?;
            }
            self.step(Event::Serve, &[], around)?;
        }
        event.map_or(Ok(()), |event| self.step(event, &[], around))
    }

    /// A call whose wait is over goes on: it returns to the program, unless the object that it
    /// waited for has yet to be made writable.
    pub(crate) fn resume(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        if self.phase == Phase::Flushed {
            return self.compute(around);
        }
        if let Some(pages) = self.protocol.pages_to_validate() {
            return self.collect_diffs(&pages, around);
        }
        if self.full {
            return Err((Fault::Heap, "it goes on, and its memory was full".into()));
        }
        match self.next(around.program) {
            Some(Op::Write(object)) if !self.heap.is_writable(usize::from(object)) => {
                let wait = self.waits_to_write(object, around.program);
                self.phase = Phase::Call(Presence::Exclusive, wait);
                let fault = write_fault(object, self.site(), around.program);
                self.call(Some(fault), around)
            }
            Some(Op::ReadPart(part) | Op::WritePart(part))
                if self.keeps_blocks(around.program)
                    && let Some(event) = self.rest_of_blocks(part, around.program) =>
            {
                self.phase = Phase::Call(self.presence(), Some(Wait::Object));
                self.call(Some(event), around)
            }
            Some(Op::WritePart(part)) if !self.all_writable(part, around.program) => {
                self.call(Some(part.write(self.site())), around)
            }
            Some(
                Op::Read(_)
                | Op::ReadOrSkip(..)
                | Op::SkipIfWritten(..)
                | Op::Write(_)
                | Op::ReadPart(_)
                | Op::WritePart(_),
            ) => {
                self.phase = Phase::Computing;
                self.access(around)
            }
            Some(op) if op.uses_counter() => self.learn(around),
            Some(Op::Collect(_)) => {
                self.collecting.get_or_insert(false);
                self.phase = Phase::Computing;
                Ok(())
            }
            next => {
                if let Some(Op::Switch(to)) = next {
                    self.call(Some(switched(to, around.program)), around)?;
                }
                if let Some(Op::SwitchArray(to)) = next {
                    self.call(Some(elements::switched(to, around.program)), around)?;
                }
                self.phase = Phase::Computing;
                self.done += 1;
                Ok(())
            }
        }
    }

    /// What the worker's access to elements still needs, where blocks are units.
    fn rest_of_blocks(&self, part: Part, program: &Program) -> Option<Event> {
        let to_write = matches!(self.next(program), Some(Op::WritePart(_)));
        self.next_of_blocks(part, to_write, false, program)
    }

    /// The wait of a worker that makes an object writable, if its protocol says when it may.
    fn waits_to_write(&self, object: u8, program: &Program) -> Option<Wait> {
        let waits = self.protocol.waits_to_write(program.oid(object));
        waits.then_some(Wait::Object)
    }

    fn all_readable(&self, part: Part, program: &Program) -> bool {
        let mut elements = part.objects(program);
        elements.all(|element| self.heap.readable(usize::from(element)).is_some())
    }

    fn all_writable(&self, part: Part, program: &Program) -> bool {
        let mut elements = part.objects(program);
        elements.all(|element| self.heap.is_writable(usize::from(element)))
    }

    /// The worker reads or writes what it may.
    fn access(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        self.done += 1;
        match self.next_before(around.program) {
            Op::Write(object) => self.write(object, around),
            Op::Read(object) => self.read(object, around).map(drop),
            Op::ReadOrSkip(object, skipped) => {
                let value = self.read(object, around)?;
                self.done += usize::from(skipped) * usize::from(value == WriteId::INITIAL);
                Ok(())
            }
            Op::SkipIfWritten(object, skipped) => {
                let value = self.read(object, around)?;
                self.done += usize::from(skipped) * usize::from(value != WriteId::INITIAL);
                Ok(())
            }
            Op::ReadPart(part) => part
                .objects(around.program)
                .try_for_each(|element| self.read(element, around).map(drop)),
            Op::WritePart(part) => part
                .objects(around.program)
                .try_for_each(|element| self.write(element, around)),
            _ => unreachable!("only an access accesses"),
        }
    }

    /// The operation that was just done.
    fn next_before(&self, program: &Program) -> Op {
        program.nodes[self.me][self.done - 1]
    }

    fn must_be_alone(&self, object: u8, around: &Around<'_>) -> Result<(), Failed> {
        match around.program.race_free && !around.history.is_alone(self.me, object) {
            true => Err((Fault::Race, format!("{object} on node {}", self.me))),
            false => Ok(()),
        }
    }

    fn write(&mut self, object: u8, around: &mut Around<'_>) -> Result<(), Failed> {
        self.must_be_alone(object, around)?;
        let at = usize::from(object);
        let over = self.heap.readable(at);
        let over = over.expect("a writable object is readable");
        let value = around.history.write(self.me, object, self.done, over);
        if self.heap.is_untouched(at) {
            let line = self.done as u32;
            let at = CallSite {
                line,
                ..self.site()
            };
            self.noted.push((around.program.oid(object), at));
        }
        self.heap.write(at, value);
        Ok(())
    }

    fn read(&mut self, object: u8, around: &mut Around<'_>) -> Result<WriteId, Failed> {
        self.must_be_alone(object, around)?;
        let value = self.heap.readable(usize::from(object));
        let value = value.expect("a call made the object readable");
        let read = around.history.read(self.me, object, value);
        let words = |fault| {
            let words = format!("node {} reads {value:?} of {object}", self.me);
            (fault, words)
        };
        read.map(|()| value).map_err(words)
    }

    /// The place of the next operation in the node's program.
    pub(crate) fn site(&self) -> CallSite {
        CallSite {
            file: "model",
            line: self.done as u32 + 1,
            column: 1,
        }
    }
}

pub(crate) fn unread(object: u8, program: &Program) -> Unread {
    Unread {
        oid: program.oid(object),
        creator: creator(program, object),
        zero_ok: program.objects[usize::from(object)].is_none(),
        coherence: program.coherence,
    }
}

fn read_miss(object: u8, program: &Program) -> Event {
    match program.is_paged() {
        true => pages::read(object, program),
        false => Event::ReadMiss(unread(object, program)),
    }
}

fn write_fault(object: u8, site: CallSite, program: &Program) -> Event {
    let oid = program.oid(object);
    match program.is_paged() {
        true => pages::write(object, program),
        false => Event::WriteFault { oid, site },
    }
}

pub(crate) fn allocated(oid: Oid, program: &Program) -> Event {
    Event::Allocated {
        range: OidRange::one(oid),
        coherence: program.coherence,
    }
}

fn switch(to: Coherence, site: CallSite, program: &Program) -> Event {
    Event::Switch {
        range: program.all(),
        creator: creator(program, 0),
        zero_ok: program.objects[0].is_none(),
        to,
        site,
    }
}

fn switched(to: Coherence, program: &Program) -> Event {
    let (range, creator) = (program.all(), creator(program, 0));
    Event::Switched {
        range,
        creator,
        allocated: program.coherence,
        to,
    }
}
