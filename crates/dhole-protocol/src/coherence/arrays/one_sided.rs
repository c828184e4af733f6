//! One-sided reads of elements: as of [objects](crate::coherence::one_sided), but block by block.
//!
//! A block is as many elements as have one record. What matters here:
//!
//! - A block is published while no element of it is written, with the version of its newest
//!   element. Other elements of it may be older, and other nodes may have written them since.
//! - So a reader takes elements alone of which the owner is the last writer it knows of. The owner
//!   has their last version, or a newer one. The reader notes the version that it *needs*: it hears
//!   of each newer one.
//! - The reader's clock goes on to the version of the block, which is no older than any of its
//!   bytes.
//! - A mark says which block was read, and not which elements. All elements of it count as read.
//! - A block with an element that is exclusive is not published. So once others have read one of
//!   its elements, none of them is exclusive any more.
//!
//! Under the protocol update elements are fetched by message: it pushes what its readers have read,
//! and a mark names no elements.

use dhole_model::{Coherence, Elements, NodeId, Oid, Version};
use smallvec::SmallVec;

use super::{ArrayTable, Arrays};
use crate::array_event::UnreadElements;
use crate::coherence::object_table::ObjectState;
use crate::coherence::region::Table;
use crate::command::{Command, Commands};
use crate::{RegionCommand, Wanted};

/// Some elements that this node holds, as far as it matters to those who read them here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldElements {
    /// The elements.
    pub elements: Elements,
    /// The Lamport time of their version; 0 where there is none.
    pub lamport: u64,
    /// This node wrote them last, as far as it knows.
    pub is_own: bool,
    /// They may be written here now.
    pub is_open: bool,
    /// They may be written here at any time, and no other node has them.
    pub is_exclusive: bool,
    /// Other nodes have read them here.
    pub is_served: bool,
}

/// Whether elements under this protocol are read without a message.
fn are_seen(coherence: Option<Coherence>) -> bool {
    coherence.is_some_and(|coherence| {
        let properties = coherence.properties();
        properties.announces && !properties.pushes
    })
}

/// The version that a miss of elements needs, unless they are valid or may be filled with zeros.
fn needed(state: &ObjectState, creator: NodeId, zero_ok: bool) -> Option<Version> {
    let need = state.known(creator);
    let is_zero = need.lamport == 0 && zero_ok;
    (!state.is_valid() && !is_zero).then_some(need)
}

impl Arrays {
    /// The missed elements that may be read in the memory of their last writers, who are the
    /// `need.node`s. With them come those of their blocks, which `whole_blocks` names, and of the
    /// blocks around that are read ahead, if the same node wrote them last.
    pub(crate) fn wants_there(
        &mut self,
        miss: &UnreadElements,
        whole_blocks: Elements,
    ) -> SmallVec<[Wanted<Elements>; 1]> {
        let mut wanted = SmallVec::<[Wanted<Elements>; 1]>::new();
        let (missed, array) = (miss.elements, miss.elements.array);
        let (me, table) = (self.me, &mut self.table);
        if table.has_freed(array) || !are_seen(Some(table.meet(array, miss.coherence))) {
            return wanted;
        }
        let zero_ok = miss.zero_ok && table.may_be_zero(array);
        let need = |state: &ObjectState| {
            needed(state, miss.creator, zero_ok).filter(|need| need.node != me)
        };
        let of = table.states(missed).find_map(|(_, state)| need(&state));
        let Some(of) = of.map(|need| need.node) else {
            return wanted;
        };
        let ahead = miss.ahead.as_ref();
        let block = ahead.and_then(|it| table.dense_around(missed, (of, zero_ok), it));
        let (whole, block) = (whole_blocks.range(), block.unwrap_or(missed.range()));
        let range = whole.start.min(block.start)..whole.end.max(block.end);
        for (part, state) in table.states(Elements::new(array, range)) {
            let need = need(&state).filter(|need| need.node == of || part.meets(missed));
            let Some(need) = need else {
                continue;
            };
            match wanted.last_mut() {
                Some(Wanted { region, need: its })
                    if *its == need && region.range().end == part.first =>
                {
                    region.count += part.count;
                }
                _ => wanted.push(Wanted { region: part, need }),
            }
        }
        wanted
    }

    /// Whether elements are missed as they were.
    pub(crate) fn still_wants(&self, wanted: Wanted<Elements>, creator: NodeId) -> bool {
        let Wanted { region, need } = wanted;
        let mut still = !self.table.has_freed(region.array);
        self.table.each(region, |_, state| {
            still &= !state.is_valid() && state.known(creator) == need;
        });
        still
    }

    /// Elements in the version needed, or a newer one, are here now.
    pub(crate) fn read_there(&mut self, wanted: Wanted<Elements>) {
        self.table.update(wanted.region, |_, state| {
            if !state.is_valid() {
                state.hold(wanted.need);
            }
        });
    }

    /// What this node holds of these elements; nothing where others do not read them here without
    /// a message.
    pub(crate) fn held(&self, elements: Elements) -> SmallVec<[HeldElements; 4]> {
        let (me, table) = (self.me, &self.table);
        if !are_seen(table.coherence(elements.array)) || table.has_freed(elements.array) {
            return SmallVec::new();
        }
        let held = |(elements, state): (Elements, ObjectState)| HeldElements {
            elements,
            lamport: state.held().map_or(0, |held| held.lamport),
            is_own: state.is_held_by(me),
            is_open: state.dirty || state.exclusive,
            is_exclusive: state.exclusive,
            is_served: state.is_served(),
        };
        table.states(elements).map(held).collect()
    }

    /// Other nodes may have read elements of this block that this node wrote last.
    pub(crate) fn were_read(&mut self, block: Elements) {
        let me = self.me;
        self.table.update(block, |_, state| {
            if state.held().is_some_and(|held| held.node == me) {
                state.serve();
            }
        });
    }

    /// The elements of this block that this node wrote last are exclusive no more, nor will they
    /// be.
    pub(crate) fn stay_clean(&mut self, block: Elements, out: &mut Commands) {
        let me = self.me;
        self.table.update(block, |part, state| {
            if state.is_held_by(me) {
                state.stay_clean();
            }
            if std::mem::take(&mut state.exclusive) {
                out.push(Command::Array(RegionCommand::MakeClean(part)));
            }
        });
    }
}

impl ArrayTable {
    /// Whether elements that nobody is known to have written may be taken for zeros.
    fn may_be_zero(&self, array: Oid) -> bool {
        self.arrays.get(&array).is_none_or(|state| {
            let has_home = state.coherence.is_some_and(|it| it.properties().has_home);
            !state.had_home && !has_home
        })
    }
}
