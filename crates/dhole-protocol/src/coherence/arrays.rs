//! Arrays: what holds for objects holds for each element alone.
//!
//! An array costs what its elements differ in, for neighbours that are alike share a *segment*.
//! What the worker asks to write is the write notice; there is no twin and no diff. So nodes may
//! write different elements of one page at once; where two write the same, the greater version
//! wins everywhere, element by element.

mod free;
mod kind;
mod pushes;
mod switch;

use std::collections::VecDeque;

use dhole_model::{
    Coherence, Elements, IdSet, IntervalIndex, NodeId, Oid, OidRange, Segments, SortedMap,
    VectorTime, Version,
};
use smallvec::SmallVec;

use crate::array_command::{
    ArrayCommand, ArrayEvent, SentElements, UnreadElements, WantedElements,
};
use crate::coherence::deferred::defer;
use crate::coherence::home::Home;
use crate::coherence::object_table::{Ended, ObjectState};
use crate::coherence::pending_fetches::{Asked, PendingFetches, Wants};
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::{Table, push};
use crate::coherence::update::Update;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::{Freed, ProtocolError};
use crate::message::Message;

/// One node's part of the protocols for arrays.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Arrays {
    pub(crate) me: NodeId,
    pub(crate) table: ArrayTable,
    /// Written in the current interval, and where.
    pub(crate) dirty: Vec<(Elements, SiteId)>,
    /// Freed in the current interval, and where.
    pub(crate) freeing: Vec<(OidRange, SiteId)>,
    /// Requests for dirty elements; at most one from each other node.
    deferred: VecDeque<Request>,
    pub(crate) fetches: PendingFetches<WantedElements>,
    /// What the round under way asked for and was freed.
    pub(crate) gone: Option<Freed>,
    pub(crate) update: Update<Elements>,
    pub(crate) home: Home<Elements>,
}

/// What a node's protocol knows of all arrays.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ArrayTable {
    arrays: SortedMap<Oid, ArrayState>,
    /// Segments of elements, in all arrays.
    segments: usize,
    /// The ids of blocks of arrays that were freed, and of chunks of objects that were.
    pub freed: IdSet,
}

/// What a node's protocol knows of one array.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ArrayState {
    /// How it is kept consistent, once this node has met it.
    pub coherence: Option<Coherence>,
    /// It had a home once, where it may have been written without versions of its own.
    pub had_home: bool,
    pub elements: Segments<ObjectState>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Request {
    from: NodeId,
    round: u32,
    wanted: Wants<WantedElements>,
}

impl ArrayTable {
    /// How an array is kept consistent, which this node may meet for the first time.
    pub fn meet(&mut self, array: Oid, allocated: Coherence) -> Coherence {
        let state = self.arrays.get_or_default(array);
        *state.coherence.get_or_insert(allocated)
    }

    pub fn coherence(&self, array: Oid) -> Option<Coherence> {
        self.arrays.get(&array).and_then(|state| state.coherence)
    }

    fn states(&self, elements: Elements) -> impl Iterator<Item = (Elements, ObjectState)> {
        let array = self.arrays.get(&elements.array);
        let states = array.map(|array| array.elements.of(elements.range()));
        let nothing = states.is_none().then(|| (elements, ObjectState::default()));
        let part = move |(range, state)| (Elements::new(elements.array, range), state);
        states.into_iter().flatten().map(part).chain(nothing)
    }

    fn has_freed(&self, array: Oid) -> bool {
        self.freed.covers(array.0..array.0 + 1)
    }
}

impl Table<Elements> for ArrayTable {
    fn update(&mut self, elements: Elements, mut f: impl FnMut(Elements, &mut ObjectState)) {
        let array = elements.array;
        let segments = &mut self.arrays.get_or_default(array).elements;
        let before = segments.len();
        segments.update(elements.range(), |range, state| {
            f(Elements::new(array, range), state);
        });
        self.segments = self.segments + segments.len() - before;
    }

    fn each(&self, elements: Elements, mut f: impl FnMut(Elements, ObjectState)) {
        self.states(elements)
            .for_each(|(part, state)| f(part, state));
    }

    fn is_freed(&self, elements: Elements) -> bool {
        self.has_freed(elements.array)
    }
}

impl Arrays {
    pub fn new(me: NodeId) -> Arrays {
        Arrays {
            me,
            table: ArrayTable::default(),
            dirty: Vec::new(),
            freeing: Vec::new(),
            deferred: VecDeque::new(),
            fetches: PendingFetches::new(),
            gone: None,
            update: Update::default(),
            home: Home::default(),
        }
    }

    /// The worker does something with an array. The newest Lamport time that it sees with it.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when the array is; then nothing was done.
    pub fn step(
        &mut self,
        event: ArrayEvent,
        (races, time): (&mut RaceFinder, &VectorTime),
        out: &mut Commands,
    ) -> Result<u64, ProtocolError> {
        match event {
            ArrayEvent::Allocated {
                elements,
                coherence,
            } => {
                let version = initial(self.me);
                self.table.meet(elements.array, coherence);
                self.table.update(elements, |_, state| state.hold(version));
            }
            ArrayEvent::Read(misses) => {
                let mut arrays = misses.iter().map(|miss| miss.elements.array);
                arrays.try_for_each(|array| self.check_not_freed(array))?;
                return Ok(self.read(&misses, out));
            }
            ArrayEvent::Write { elements, site } => {
                self.check_not_freed(elements.array)?;
                self.write(elements, races.site(site), (races, time), out);
            }
            ArrayEvent::Overwrite {
                elements,
                creator,
                coherence,
                site,
            } => {
                self.check_not_freed(elements.array)?;
                self.table.meet(elements.array, coherence);
                self.overwrite(elements, creator, out);
                self.write(elements, races.site(site), (races, time), out);
            }
            ArrayEvent::Switched {
                array,
                creator,
                allocated,
                to,
            } => self.switch(array, creator, [allocated, to], out),
            ArrayEvent::Blocks(event) => {
                unreachable!("{event:?} is of a member, which keeps no elements consistent")
            }
            ArrayEvent::Free { ids, site } => {
                let site = races.site(site);
                self.free(ids, site, races, out)?
            }
        }
        Ok(0)
    }

    fn read(&mut self, misses: &[UnreadElements], out: &mut Commands) -> u64 {
        let mut seen = 0;
        self.fetches.begin();
        self.home.asks();
        for miss in misses {
            let Elements {
                array,
                first,
                count,
            } = miss.elements;
            let coherence = self.table.meet(array, miss.coherence);
            let state = &self.table.arrays[&array];
            let zero_ok = miss.zero_ok && !state.had_home && coherence != Coherence::Home;
            let around = |place| state.elements.around(place, miss.within.range());
            let range = around(first).start..around(first + count.max(1) - 1).end;
            let elements = Elements::new(array, range);
            seen = seen.max(self.take_pushed(elements, miss.creator, out));
            self.want(elements, miss.creator, zero_ok, out);
        }
        self.fetches
            .ask(|to, round, asked| out.push(fetch(to, round, asked)));
        if self.fetches.is_over() {
            out.push(Command::Done);
        }
        seen
    }

    /// Fills with zeros what nobody has written, and asks for the rest of what is not valid.
    fn want(&mut self, elements: Elements, creator: NodeId, zero_ok: bool, out: &mut Commands) {
        // Segments that differ only in what is held here are asked for as one.
        let (me, mut last) = (self.me, None::<WantedElements>);
        let mut wanted: SmallVec<[WantedElements; 1]> = SmallVec::new();
        self.table.update(elements, |elements, state| {
            let need = state.known(creator);
            if state.is_valid() {
                return;
            }
            if need.lamport == 0 && zero_ok {
                state.hold(need);
                out.push(Command::Array(ArrayCommand::ZeroFill(elements)));
                return;
            }
            assert!(
                need.node != me,
                "{elements}: a node's own last write is never invalid here"
            );
            match &mut last {
                Some(last) if last.need == need && last.elements.range().end == elements.first => {
                    last.elements.count += elements.count;
                }
                _ => wanted.extend(last.replace(WantedElements { elements, need })),
            }
        });
        wanted.extend(last);
        wanted
            .into_iter()
            .for_each(|w| self.fetches.want(w.need.node, w));
    }

    /// All of these elements are written, whatever they were before.
    fn overwrite(&mut self, elements: Elements, creator: NodeId, out: &mut Commands) {
        let (me, mut cached) = (self.me, Vec::new());
        let at_home = self.table.coherence(elements.array) == Some(Coherence::Home);
        self.table.update(elements, |part, state| {
            if !state.is_valid() {
                let version = state.known(creator);
                state.hold(version);
                if at_home && version.node != me {
                    cached.push(part);
                }
            }
        });
        cached
            .into_iter()
            .for_each(|part| self.home.cache(part, false));
        self.update.inbox.forget(elements, out);
    }

    fn write(
        &mut self,
        elements: Elements,
        site: SiteId,
        at: (&mut RaceFinder, &VectorTime),
        out: &mut Commands,
    ) {
        let at_home = self.table.coherence(elements.array) == Some(Coherence::Home);
        let (me, mut here) = (self.me, SmallVec::<[Elements; 2]>::new());
        let looks = at.0.is_looking();
        let mut dirty = std::mem::take(&mut self.dirty);
        let mut written = std::mem::take(&mut self.home.written);
        self.table.update(elements, |part, state| {
            debug_assert!(state.is_valid(), "{part}: only valid elements are written");
            if state.dirty || state.exclusive {
                return;
            }
            state.dirty = true;
            match at_home {
                true => {
                    push(&mut written, part, site);
                    here.extend((looks && state.is_held_by(me)).then_some(part));
                }
                false => push(&mut dirty, part, site),
            }
            push_writable(part, out);
        });
        (self.dirty, self.home.written) = (dirty, written);
        let (races, time) = at;
        here.into_iter()
            .for_each(|part| self.writes_at_home(part, site, (&mut *races, time), out));
    }

    /// The worker begins to write elements that are at home here: nobody flushes them, so races
    /// are looked for at once. `time` is what this node has seen.
    pub(crate) fn writes_at_home(
        &mut self,
        elements: Elements,
        site: SiteId,
        (races, time): (&mut RaceFinder, &VectorTime),
        out: &mut Commands,
    ) {
        self.home.tells = true;
        let open = time.of(self.me) + 1;
        races.elements_changed_at_home(elements, (self.me, open), site, (time, open), out);
    }

    /// Whether the current interval wrote elements, or freed arrays.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.freeing.is_empty()
    }

    /// Ends the current interval, which has this version; what it wrote.
    pub fn end_interval(
        &mut self,
        version: Version,
        races: &mut RaceFinder,
        out: &mut Commands,
    ) -> Vec<Elements> {
        let (me, mut written) = (self.me, Vec::new());
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        races.wrote_elements(version.lamport, &dirty);
        let may_keep = races.allows_exclusive().then_some(0);
        for (elements, _) in dirty.drain(..) {
            Elements::push(&mut written, elements);
            self.table.update(elements, |part, state| {
                if state.end_interval(me, version, may_keep) == Ended::Shared {
                    out.push(Command::Array(ArrayCommand::MakeClean(part)));
                }
            });
        }
        self.dirty = dirty;
        self.push_written(&written, version, out);
        written
    }

    /// Another node's interval of this version has written these elements.
    pub fn notice(&mut self, elements: Elements, version: Version, out: &mut Commands) {
        if self.table.has_freed(elements.array) {
            return;
        }
        self.update.copysets.forget(elements);
        self.update.inbox.outdate(elements, version, out);
        self.table.update(elements, |part, state| {
            if state.hear(version) {
                state.exclusive = false;
                out.push(Command::Array(ArrayCommand::Invalidate(part)));
            }
        });
    }

    pub fn fetch(
        &mut self,
        from: NodeId,
        round: u32,
        wanted: Wants<WantedElements>,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let request = Request {
            from,
            round,
            wanted,
        };
        let waits = worker == WorkerIs::Computing && self.must_wait(&request);
        if waits || self.leaves_a_member(&request) {
            let what = "a second fetch while its first one is open";
            return defer(&mut self.deferred, request, |it| it.from, what, out);
        }
        self.reply(&request, out)
    }

    /// Answers the requests that waited for the worker.
    pub fn serve(
        &mut self,
        worker: WorkerIs,
        at: (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.home.serve(worker, &self.table, at, out);
        let mut leaving = VecDeque::new();
        while let Some(request) = self.deferred.pop_front() {
            match self.leaves_a_member(&request) {
                true => leaving.push_back(request),
                false => self.reply(&request, out)?,
            }
        }
        self.deferred = leaving;
        Ok(())
    }

    /// Whether elements are asked for that this node knows as parts of blocks: their asker has left
    /// the barrier first at which the array changed protocol.
    fn leaves_a_member(&self, request: &Request) -> bool {
        let mut wanted = request.wanted.iter();
        wanted.any(|wanted| {
            let known = self.table.coherence(wanted.elements.array);
            known.is_some_and(|coherence| coherence.member().is_some())
        })
    }

    /// Whether requests wait for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty() || self.home.has_deferred()
    }

    fn must_wait(&self, request: &Request) -> bool {
        let mut states = request
            .wanted
            .iter()
            .flat_map(|w| self.table.states(w.elements));
        states.any(|(_, state)| state.exclusive || state.dirty)
    }

    fn reply(&mut self, request: &Request, out: &mut Commands) -> Result<(), ProtocolError> {
        let arrays = || request.wanted.iter().map(|wanted| wanted.elements.array);
        if let Some(array) = arrays().find(|array| self.table.has_freed(*array)) {
            let round = request.round;
            let message = Message::ElementsGone { round, array };
            let to = request.from;
            out.push(Command::Send { to, message });
            return Ok(());
        }
        let mut sent = Wants::new();
        for &WantedElements { elements, need } in &request.wanted {
            let oldest = self
                .table
                .states(elements)
                .map(|(_, state)| state.held())
                .min();
            let Some(version) = oldest.flatten().filter(|held| *held >= need) else {
                return Err(ProtocolError::NoElements {
                    from: request.from,
                    elements,
                    need,
                });
            };
            sent.push(SentElements { elements, version });
        }
        for SentElements { elements, .. } in &sent {
            if self.table.coherence(elements.array) == Some(Coherence::Update) {
                self.update.copysets.join(*elements, request.from);
            }
            self.table.update(*elements, |part, state| {
                state.serve();
                if std::mem::take(&mut state.exclusive) {
                    out.push(Command::Array(ArrayCommand::MakeClean(part)));
                }
            });
        }
        let (to, round) = (request.from, request.round);
        let keep = self.is_to_keep(to, &request.wanted);
        out.push(Command::Array(ArrayCommand::Reply {
            to,
            round,
            sent,
            keep,
        }));
        Ok(())
    }

    /// A node fetches elements. Whether they are at home here, and it is to keep them.
    fn is_to_keep(&mut self, from: NodeId, wanted: &[WantedElements]) -> bool {
        let at_home = |wanted: &WantedElements| {
            let has_home = self.table.coherence(wanted.elements.array) == Some(Coherence::Home);
            has_home && self.table.is_at_home(wanted.elements, self.me)
        };
        let elements = wanted.iter().map(|wanted| wanted.elements);
        wanted.iter().all(at_home) && self.home.fetched(from, elements)
    }

    /// Takes a reply, if its round is still awaited. The newest Lamport time that is seen with it.
    pub fn fetch_reply(
        &mut self,
        from: NodeId,
        round: u32,
        (sent, keep): (&[SentElements], bool),
        out: &mut Commands,
    ) -> Result<u64, ProtocolError> {
        let Some(wanted) = self.fetches.question(from, round)? else {
            return Ok(0);
        };
        let fits = |(sent, (_, wanted)): (&SentElements, &(NodeId, WantedElements))| {
            sent.elements == wanted.elements && sent.version >= wanted.need
        };
        if sent.len() != wanted.len() || !sent.iter().zip(wanted).all(fits) {
            let what = "a reply to another question";
            return Err(ProtocolError::BadMessage { from, what });
        }
        for &sent in sent {
            self.table
                .update(sent.elements, |_, state| state.hold(sent.version));
            match self.table.coherence(sent.elements.array) {
                Some(Coherence::Home) => self.home.cache(sent.elements, keep),
                _ => self.update.inbox.forget(sent.elements, out),
            }
            out.push(Command::Array(ArrayCommand::Install(sent)));
        }
        self.answered(from, out);
        let seen = sent.iter().map(|sent| sent.version.lamport);
        Ok(seen.max().unwrap_or(0))
    }

    /// A question of the round was answered.
    pub(crate) fn answered(&mut self, from: NodeId, out: &mut Commands) {
        self.fetches
            .answered(from, |to, round, wanted| out.push(fetch(to, round, wanted)));
        if self.fetches.is_over() {
            let gone = self.gone.take();
            out.push(gone.map_or(Command::Done, Command::Gone));
        }
    }
}

pub(crate) fn initial(creator: NodeId) -> Version {
    Version {
        lamport: 0,
        node: creator,
    }
}

fn fetch(to: NodeId, round: u32, asked: Asked<'_, WantedElements>) -> Command {
    let wanted = asked.iter().map(|(_, wanted)| *wanted).collect();
    let message = Message::FetchElements { round, wanted };
    Command::Send { to, message }
}

/// What follows on what the command before made writable is one write.
fn push_writable(elements: Elements, out: &mut Commands) {
    match out.last_mut() {
        Some(Command::Array(ArrayCommand::MakeWritable(last)))
            if last.array == elements.array && last.range().end == elements.first =>
        {
            last.count += elements.count;
        }
        _ => out.push(Command::Array(ArrayCommand::MakeWritable(elements))),
    }
}
