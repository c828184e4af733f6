//! Arrays that have a home: several nodes write different elements at once, and a release sends
//! home what was written. What the worker asked to write is known by ranges, so there is no twin
//! and nothing to compare: a flush carries the ranges' bytes. Otherwise as [`home`](crate::home).

use std::collections::{BTreeMap, VecDeque};

use dhole_model::{Coherence, Elements, NodeId, Oid, RangeSet};
use smallvec::SmallVec;

use crate::Message;
use crate::array_command::{ArrayCommand, FlushedElements};
use crate::arrays::{Arrays, initial};
use crate::command::{Command, Commands, ProtocolError, WorkerIs};
use crate::lazy::Lazy;

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ElementHome {
    /// The flush list: elements written since the last flush.
    pub written: Vec<Elements>,
    /// Copies of elements whose home is elsewhere.
    cached: BTreeMap<Oid, RangeSet>,
    /// Counts the flushes.
    flush: u32,
    /// The homes that have not acknowledged it yet.
    awaited: Vec<NodeId>,
    /// Flushes that wait for a call of the worker that owns the token; at most one of each node.
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiting {
    from: NodeId,
    number: u32,
    flushed: SmallVec<[FlushedElements; 1]>,
}

impl ElementHome {
    /// A copy of elements at home elsewhere has come.
    pub fn cache(&mut self, elements: Elements) {
        let cached = self.cached.entry(elements.array).or_default();
        cached.set(elements.range(), true);
    }

    /// An array was freed.
    pub fn forget(&mut self, array: Oid) {
        self.written.retain(|elements| elements.array != array);
        self.cached.remove(&array);
    }

    /// Whether homes have yet to acknowledge a flush.
    pub fn is_flushing(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Whether a flush waits for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the flushes that waited for the worker.
    pub fn serve(&mut self, worker: WorkerIs, out: &mut Commands) {
        if worker == WorkerIs::InCall {
            self.waiting
                .drain(..)
                .for_each(|waiting| merge(waiting, true, out));
        }
    }
}

fn merge(waiting: Waiting, held: bool, out: &mut Commands) {
    let Waiting {
        from,
        number,
        flushed,
    } = waiting;
    let merge = ArrayCommand::Merge {
        from,
        flushed,
        held,
    };
    out.push(Command::Array(merge));
    let message = Message::ElementsFlushed { number };
    out.push(Command::Send { to: from, message });
}

impl Arrays {
    /// Sends home what was written since the last flush.
    pub fn flush(&mut self, out: &mut Commands) {
        let mut by_home: Vec<(NodeId, Elements)> = Vec::new();
        for elements in std::mem::take(&mut self.home.written) {
            self.update(elements, |part, state| {
                state.dirty = false;
                by_home.extend(state.held().map(|version| (version.node, part)));
                out.push(Command::Array(ArrayCommand::MakeClean(part)));
            });
        }
        by_home.sort_unstable();
        self.home.flush = self.home.flush.wrapping_add(1);
        for of_home in by_home.chunk_by(|one, next| one.0 == next.0) {
            let to = of_home[0].0;
            if to == self.me {
                continue;
            }
            let mut elements = Vec::with_capacity(of_home.len());
            of_home
                .iter()
                .for_each(|(_, part)| Elements::push(&mut elements, *part));
            out.push(Command::Array(ArrayCommand::Flush {
                to,
                number: self.home.flush,
                elements: elements.into(),
            }));
            self.home.awaited.push(to);
        }
    }

    /// At home: another node flushes. While references of the worker may live, that waits.
    pub fn flushed(
        &mut self,
        from: NodeId,
        number: u32,
        flushed: SmallVec<[FlushedElements; 1]>,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let is_home = |flushed: &FlushedElements| {
            let mut states = self.states(flushed.elements);
            self.is_freed(flushed.elements.array) || states.all(|s| s.is_held_by(self.me))
        };
        if !flushed.iter().all(is_home) {
            let what = "a flush of elements that are not at home here";
            return Err(ProtocolError::BadMessage { from, what });
        }
        if self.home.waiting.iter().any(|other| other.from == from) {
            let what = "a second flush while its first one is open";
            return Err(ProtocolError::BadMessage { from, what });
        }
        let waiting = Waiting {
            from,
            number,
            flushed,
        };
        if worker == WorkerIs::InCall {
            merge(waiting, false, out);
        } else {
            self.home.waiting.push_back(waiting);
            out.push(Command::Array(ArrayCommand::Hold { from }));
            out.push(Command::Deferred);
        }
        Ok(())
    }

    /// A home has made what was flushed part of its elements.
    fn acknowledged(&mut self, from: NodeId, number: u32) -> Result<(), ProtocolError> {
        let home = &mut self.home;
        let place = home.awaited.iter().position(|home| *home == from);
        let Some(place) = place.filter(|_| number == home.flush) else {
            let what = "an acknowledgement of what was not flushed there";
            return Err(ProtocolError::BadMessage { from, what });
        };
        home.awaited.remove(place);
        Ok(())
    }

    /// At an acquire: others may have flushed, so what is cached here may be old.
    pub fn drop_cached(&mut self, out: &mut Commands) {
        for (array, cached) in std::mem::take(&mut self.home.cached) {
            for (range, _) in cached.of(0..u64::MAX).filter(|(_, is_cached)| *is_cached) {
                self.update(Elements::new(array, range), |part, state| {
                    debug_assert!(!state.dirty, "{part}: an acquire begins with a flush");
                    if state.is_valid() {
                        out.push(Command::Array(ArrayCommand::Invalidate(part)));
                    }
                    state.drop_copy();
                });
            }
        }
    }

    /// Before the barrier at which an array gets a home: what nobody has written gets its zeros
    /// where the array was allocated.
    pub fn before_switch(&mut self, array: Elements, creator: NodeId, out: &mut Commands) {
        if creator != self.me || self.is_freed(array.array) {
            return;
        }
        self.update(array, |part, state| {
            if state.held().is_none() && state.known(creator) == initial(creator) {
                state.hold(initial(creator));
                out.push(Command::Array(ArrayCommand::ZeroFill(part)));
            }
        });
    }

    /// After it: the array is kept consistent so from now on (as [`switch`](crate::switch)).
    pub(crate) fn switch(
        &mut self,
        array: Elements,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        let known = self.arrays.entry(array.array).or_default();
        let before = known.coherence.replace(to).unwrap_or(allocated);
        known.had_home |= before == Coherence::Home;
        self.readers.forget(array);
        self.inbox.forget(array, out);
        let me = self.me;
        self.update(array, |part, state| {
            // A node that left the barrier before this one may have asked for the elements.
            state.served_since = true;
            if std::mem::take(&mut state.exclusive) {
                out.push(Command::Array(ArrayCommand::MakeClean(part)));
            }
            if to == Coherence::Home && state.known(creator).node != me {
                if state.is_valid() {
                    out.push(Command::Array(ArrayCommand::Invalidate(part)));
                }
                state.drop_copy();
            }
        });
    }
}

impl Lazy {
    /// A flush is over once all homes have acknowledged its objects and its elements, and all
    /// that keep copies know of it.
    pub fn is_home(&self, out: &mut Commands) {
        if !self.home.is_flushing() && !self.arrays.home.is_flushing() {
            out.push(Command::Done);
        }
    }

    /// A home has acknowledged elements.
    pub fn elements_are_home(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.arrays.acknowledged(from, number)?;
        self.is_home(out);
        Ok(())
    }
}
