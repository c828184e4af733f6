//! Arrays under the lazy protocol: what holds for objects holds for each element alone.
//!
//! An array costs what its elements differ in, for neighbours that are alike share a *segment*.
//! What the worker asks to write is the write notice; there is no twin and no diff. So nodes may
//! write different elements of one page at once; where two write the same, the greater version
//! wins everywhere, element by element.

use std::collections::{BTreeMap, VecDeque};

use dhole_model::{Elements, NodeId, Segments, Version};

use crate::array_command::{
    ArrayCommand, ArrayEvent, SentElements, UnreadElements, WantedElements,
};
use crate::command::{Command, Commands, ProtocolError, WorkerIs};
use crate::message::Message;
use crate::object_table::ObjectState;
use crate::races::{self, RaceFinder, SiteId};
use crate::round::{Round, Wants};

/// One node's part of the protocol for arrays.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Arrays {
    me: NodeId,
    arrays: BTreeMap<dhole_model::Oid, Segments<ObjectState>>,
    /// Written in the current interval, and where.
    dirty: Vec<(Elements, SiteId)>,
    /// Requests for dirty elements; at most one from each other node.
    deferred: VecDeque<Request>,
    round: Round<WantedElements>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Request {
    from: NodeId,
    round: u32,
    wanted: Wants<WantedElements>,
}

impl Arrays {
    pub fn new(me: NodeId) -> Arrays {
        Arrays {
            me,
            arrays: BTreeMap::new(),
            dirty: Vec::new(),
            deferred: VecDeque::new(),
            round: Round::new(),
        }
    }

    /// The worker does something with an array.
    pub fn step(&mut self, event: ArrayEvent, races: &mut RaceFinder, out: &mut Commands) {
        match event {
            ArrayEvent::Allocated(elements) => {
                let version = initial(self.me);
                self.update(elements, |_, state| state.hold(version));
            }
            ArrayEvent::Read(misses) => self.read(&misses, out),
            ArrayEvent::Write { elements, site } => self.write(elements, races.site(site), out),
            ArrayEvent::Overwrite {
                elements,
                creator,
                site,
            } => {
                self.update(elements, |_, state| {
                    if !state.is_valid() {
                        state.hold(state.known(creator));
                    }
                });
                self.write(elements, races.site(site), out);
            }
        }
    }

    fn update(&mut self, elements: Elements, mut f: impl FnMut(Elements, &mut ObjectState)) {
        let array = elements.array;
        let segments = self.arrays.entry(array).or_default();
        segments.update(elements.range(), |range, state| {
            f(Elements::new(array, range), state);
        });
    }

    fn read(&mut self, misses: &[UnreadElements], out: &mut Commands) {
        self.round.begin();
        for miss in misses {
            let Elements {
                array,
                first,
                count,
            } = miss.elements;
            let me = self.me;
            let segments = self.arrays.entry(array).or_default();
            let around = |place| segments.around(place, miss.within.range());
            let range = around(first).start..around(first + count.max(1) - 1).end;
            // Segments that differ only in what is held here are asked for as one.
            let mut last: Option<WantedElements> = None;
            segments.update(range, |range, state| {
                let (elements, need) = (Elements::new(array, range), state.known(miss.creator));
                if state.is_valid() {
                    return;
                }
                if need.lamport == 0 && miss.zero_ok {
                    state.hold(need);
                    out.push(Command::Array(ArrayCommand::ZeroFill(elements)));
                    return;
                }
                assert!(
                    need.node != me,
                    "{elements}: a node's own last write is never invalid here"
                );
                match &mut last {
                    Some(last)
                        if last.need == need && last.elements.range().end == elements.first =>
                    {
                        last.elements.count += elements.count;
                    }
                    _ => {
                        let before = last.replace(WantedElements { elements, need });
                        before
                            .into_iter()
                            .for_each(|w| self.round.want(w.need.node, w));
                    }
                }
            });
            last.into_iter()
                .for_each(|w| self.round.want(w.need.node, w));
        }
        self.round
            .ask(|to, round, wanted| out.push(fetch(to, round, wanted)));
        if self.round.is_over() {
            out.push(Command::Done);
        }
    }

    fn write(&mut self, elements: Elements, site: SiteId, out: &mut Commands) {
        let mut dirty = std::mem::take(&mut self.dirty);
        self.update(elements, |part, state| {
            debug_assert!(state.is_valid(), "{part}: only valid elements are written");
            if state.dirty || state.exclusive {
                return;
            }
            state.dirty = true;
            races::push(&mut dirty, part, site);
            push_writable(part, out);
        });
        self.dirty = dirty;
    }

    /// Whether the current interval wrote elements.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
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
        let may_keep = races.allows_exclusive();
        for (elements, _) in dirty.drain(..) {
            Elements::push(&mut written, elements);
            self.update(elements, |part, state| {
                if !state.end_interval(me, version, may_keep) {
                    out.push(Command::Array(ArrayCommand::MakeClean(part)));
                }
            });
        }
        self.dirty = dirty;
        written
    }

    /// Another node's interval of this version has written these elements.
    pub fn notice(&mut self, elements: Elements, version: Version, out: &mut Commands) {
        self.update(elements, |part, state| {
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
        if worker == WorkerIs::Computing && self.must_wait(&request) {
            if self.deferred.iter().any(|other| other.from == from) {
                let what = "a second fetch while its first one is open";
                return Err(ProtocolError::BadMessage { from, what });
            }
            self.deferred.push_back(request);
            out.push(Command::Deferred);
            return Ok(());
        }
        self.reply(&request, out)
    }

    /// Answers the requests that waited for the worker.
    pub fn serve(&mut self, out: &mut Commands) -> Result<(), ProtocolError> {
        while let Some(request) = self.deferred.pop_front() {
            self.reply(&request, out)?;
        }
        Ok(())
    }

    /// Whether requests wait for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn states(&self, elements: Elements) -> impl Iterator<Item = ObjectState> {
        let segments = self.arrays.get(&elements.array);
        let states = segments.map(|segments| segments.of(elements.range()));
        let nothing = states.is_none().then(ObjectState::default);
        states
            .into_iter()
            .flatten()
            .map(|(_, state)| state)
            .chain(nothing)
    }

    fn must_wait(&self, request: &Request) -> bool {
        let mut states = request.wanted.iter().flat_map(|w| self.states(w.elements));
        states.any(|state| state.exclusive || state.dirty)
    }

    fn reply(&mut self, request: &Request, out: &mut Commands) -> Result<(), ProtocolError> {
        let mut sent = Wants::new();
        for &WantedElements { elements, need } in &request.wanted {
            let oldest = self.states(elements).map(|state| state.held()).min();
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
            self.update(*elements, |part, state| {
                state.served_since = true;
                if std::mem::take(&mut state.exclusive) {
                    out.push(Command::Array(ArrayCommand::MakeClean(part)));
                }
            });
        }
        let (to, round) = (request.from, request.round);
        out.push(Command::Array(ArrayCommand::Reply { to, round, sent }));
        Ok(())
    }

    /// Takes a reply, if its round is still awaited. The newest Lamport time that is seen with it.
    pub fn fetch_reply(
        &mut self,
        from: NodeId,
        round: u32,
        sent: &[SentElements],
        out: &mut Commands,
    ) -> Result<u64, ProtocolError> {
        let Some(wanted) = self.round.question(from, round)? else {
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
            self.update(sent.elements, |_, state| state.hold(sent.version));
            out.push(Command::Array(ArrayCommand::Install(sent)));
        }
        self.round
            .answered(from, |to, round, wanted| out.push(fetch(to, round, wanted)));
        if self.round.is_over() {
            out.push(Command::Done);
        }
        let seen = sent.iter().map(|sent| sent.version.lamport);
        Ok(seen.max().unwrap_or(0))
    }
}

fn initial(creator: NodeId) -> Version {
    Version {
        lamport: 0,
        node: creator,
    }
}

fn fetch(to: NodeId, round: u32, wanted: Wants<WantedElements>) -> Command {
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
