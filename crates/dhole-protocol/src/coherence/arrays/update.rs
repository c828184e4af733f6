//! Arrays under the update protocol: who reads which elements, and pushed copies that wait to be
//! read. What [copysets](crate::coherence::copyset) and the [inbox](crate::coherence::update) are
//! for objects.

use std::collections::BTreeMap;

use dhole_model::{Coherence, Elements, NodeId, Oid, OidRange, RangeSet, Segments, Version};
use smallvec::SmallVec;

use crate::array_command::{ArrayCommand, PushedElements, SentElements};
use crate::coherence::arrays::Arrays;
use crate::coherence::update::{MOST_KEPT_BYTES, MOST_UNREAD};
use crate::command::{Command, Commands};
use crate::message::Message;

/// The elements of each array that other nodes read last where this node wrote them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ElementReaders {
    read: BTreeMap<(Oid, NodeId), RangeSet>,
}

impl ElementReaders {
    fn of_array(&self, array: Oid) -> impl Iterator<Item = (NodeId, &RangeSet)> {
        let all = (array, NodeId(0))..=(array, NodeId(u16::MAX));
        let of_array = self.read.range(all);
        of_array.map(|((_, reader), read)| (*reader, read))
    }

    /// Who reads which of these elements, by node.
    fn of(&self, elements: Elements) -> impl Iterator<Item = (NodeId, Elements)> {
        let of_array = self.of_array(elements.array);
        of_array.flat_map(move |(reader, read)| {
            let parts = read.of(elements.range()).filter(|(_, is_read)| *is_read);
            parts.map(move |(part, _)| (reader, Elements::new(elements.array, part)))
        })
    }

    /// A node has fetched the elements here.
    pub fn join(&mut self, elements: Elements, reader: NodeId) {
        let read = self.read.entry((elements.array, reader)).or_default();
        read.set(elements.range(), true);
    }

    /// A node does not read the elements any more.
    pub fn leave(&mut self, elements: Elements, reader: NodeId) {
        let key = (elements.array, reader);
        if let Some(read) = self.read.get_mut(&key) {
            read.set(elements.range(), false);
            if read.is_empty() {
                self.read.remove(&key);
            }
        }
    }

    /// The arrays with these ids were freed.
    pub fn forget_arrays(&mut self, ids: OidRange) {
        let all = (ids.first, NodeId(0))..=(ids.last(), NodeId(u16::MAX));
        while let Some((&key, _)) = self.read.range(all.clone()).next() {
            self.read.remove(&key);
        }
    }

    /// Another node has written the elements: their readers fetch them there.
    pub fn forget(&mut self, elements: Elements) {
        if self.read.is_empty() {
            return;
        }
        let readers: SmallVec<[NodeId; 4]> = self
            .of_array(elements.array)
            .map(|(reader, _)| reader)
            .collect();
        for reader in readers {
            self.leave(elements, reader);
        }
    }
}

/// A pushed copy of some elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Kept {
    /// Its version; none where nothing was pushed since the elements were read.
    version: Option<Version>,
    /// Bytes of each element kept aside; 0 where the copy was dropped.
    each: u64,
    /// Pushes before this one that were not read.
    unread: u8,
}

/// The pushes of elements since a node last read them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ElementInbox {
    arrays: BTreeMap<Oid, Segments<Kept>>,
    bytes: u64,
}

impl ElementInbox {
    /// Calls `f` with what is kept of the elements, in parts, and the bytes kept in all.
    fn update(&mut self, elements: Elements, mut f: impl FnMut(Elements, &mut Kept, &mut u64)) {
        let (array, bytes) = (elements.array, &mut self.bytes);
        if let Some(segments) = self.arrays.get_mut(&array) {
            segments.update(elements.range(), |range, kept| {
                f(Elements::new(array, range), kept, bytes);
            });
            if segments.is_empty() {
                self.arrays.remove(&array);
            }
        }
    }

    /// Takes a push of a version that is news here; adds to `unread` what its sender should not
    /// push any more.
    fn receive(
        &mut self,
        SentElements { elements, version }: SentElements,
        each: u64,
        unread: &mut Vec<Elements>,
        out: &mut Commands,
    ) {
        self.arrays.entry(elements.array).or_default();
        self.update(elements, |part, kept, all| {
            let bytes = each * part.count;
            if kept.version >= Some(version) {
                out.push(Command::PassOver { bytes });
                return;
            }
            let before = kept.version.map_or(0, |_| kept.unread + 1);
            discard(part, kept, all, out);
            let fits = bytes <= MOST_KEPT_BYTES.saturating_sub(*all);
            out.push(match fits {
                true => Command::Array(ArrayCommand::Keep {
                    elements: part,
                    bytes,
                }),
                false => Command::PassOver { bytes },
            });
            *kept = Kept {
                version: Some(version),
                each: if fits { each } else { 0 },
                unread: before.min(MOST_UNREAD),
            };
            *all += kept.each * part.count;
            if kept.unread == MOST_UNREAD {
                Elements::push(unread, part);
            }
        });
    }

    /// The parts of which a kept copy may be taken, with their versions; others are dropped.
    fn take(
        &mut self,
        elements: Elements,
        need: Version,
        out: &mut Commands,
    ) -> Vec<(Elements, Version)> {
        let mut taken = Vec::new();
        self.update(elements, |part, kept, all| {
            match kept.version.filter(|v| kept.each > 0 && *v >= need) {
                Some(version) => {
                    *all -= kept.each * part.count;
                    taken.push((part, version));
                }
                None => discard(part, kept, all, out),
            }
            *kept = Kept::default();
        });
        taken
    }

    /// A notice told of `version`: an older copy will never be read.
    pub fn outdate(&mut self, elements: Elements, version: Version, out: &mut Commands) {
        self.update(elements, |part, kept, all| {
            if kept.version < Some(version) {
                discard(part, kept, all, out);
            }
        });
    }

    /// The arrays with these ids were freed.
    pub fn forget_arrays(&mut self, ids: OidRange, out: &mut Commands) {
        let within = self.arrays.range(ids.first..=ids.last());
        let arrays: SmallVec<[Oid; 4]> = within.map(|(array, _)| *array).collect();
        for array in arrays {
            self.forget(Elements::new(array, 0..u64::MAX), out);
        }
    }

    /// The elements are kept consistent otherwise from now on, or were fetched.
    pub fn forget(&mut self, elements: Elements, out: &mut Commands) {
        self.update(elements, |part, kept, all| {
            discard(part, kept, all, out);
            *kept = Kept::default();
        });
    }
}

fn discard(part: Elements, kept: &mut Kept, all: &mut u64, out: &mut Commands) {
    if kept.each > 0 {
        *all -= std::mem::take(&mut kept.each) * part.count;
        out.push(Command::Array(ArrayCommand::Discard(part)));
    }
}

impl Arrays {
    /// Pushes what an interval of this version wrote to those that read it last.
    pub(crate) fn push_written(
        &mut self,
        written: &[Elements],
        version: Version,
        out: &mut Commands,
    ) {
        let mut pushes: Vec<(NodeId, Elements)> = Vec::new();
        for elements in written {
            if self.coherence(elements.array) == Some(Coherence::Update) {
                pushes.extend(self.readers.of(*elements));
            }
        }
        for (_, elements) in &pushes {
            self.update(*elements, |_, state| state.serve());
        }
        pushes.sort_unstable();
        out.extend(pushes.chunk_by(|one, next| one.0 == next.0).map(|of_one| {
            let sent = |(_, elements): &(_, Elements)| SentElements {
                elements: *elements,
                version,
            };
            let (to, sent) = (of_one[0].0, of_one.iter().map(sent).collect());
            Command::Array(ArrayCommand::Push { to, sent })
        }));
    }

    /// Takes pushes of elements that this node read before. Those of before the Lamport time
    /// `useful_from` are of no use.
    pub fn receive(
        &mut self,
        from: NodeId,
        pushed: &[PushedElements],
        useful_from: u64,
        out: &mut Commands,
    ) {
        let mut unread = Vec::new();
        for PushedElements { sent, bytes } in pushed {
            let SentElements { elements, version } = *sent;
            let (array, each) = (elements.array, bytes / elements.count);
            if self.is_freed(array) || version.lamport < useful_from {
                out.push(Command::PassOver { bytes: *bytes });
                continue;
            }
            let known = &self.arrays.entry(array).or_default().elements;
            let parts: SmallVec<[_; 2]> = known.of(elements.range()).collect();
            for (part, state) in parts {
                let elements = Elements::new(array, part);
                if state.held() >= Some(version) || state.known(from) > version {
                    let bytes = each * elements.count;
                    out.push(Command::PassOver { bytes });
                } else {
                    let sent = SentElements { elements, version };
                    self.inbox.receive(sent, each, &mut unread, out);
                }
            }
        }
        if !unread.is_empty() {
            let elements = unread.into();
            let message = Message::DropOutElements { elements };
            out.push(Command::Send { to: from, message });
        }
    }

    /// Makes pushed copies readable where they are new enough; the newest Lamport time of them.
    pub(crate) fn take_pushed(
        &mut self,
        elements: Elements,
        creator: NodeId,
        out: &mut Commands,
    ) -> u64 {
        if !self.inbox.arrays.contains_key(&elements.array) {
            return 0;
        }
        let known = self.arrays[&elements.array].elements.of(elements.range());
        let invalid: Vec<_> = known.filter(|(_, state)| !state.is_valid()).collect();
        let (mut seen, mut taken) = (0, Vec::new());
        for (range, state) in invalid {
            let part = Elements::new(elements.array, range);
            for (part, version) in self.inbox.take(part, state.known(creator), out) {
                self.update(part, |_, state| state.hold(version));
                Elements::push(&mut taken, part);
                seen = seen.max(version.lamport);
            }
        }
        let install = |part| Command::Array(ArrayCommand::InstallKept(part));
        out.extend(taken.into_iter().map(install));
        seen
    }

    /// A node does not read what is pushed to it.
    pub fn drop_out(&mut self, from: NodeId, elements: &[Elements]) {
        for elements in elements {
            self.readers.leave(*elements, from);
        }
    }
}
