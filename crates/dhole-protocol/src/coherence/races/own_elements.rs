//! What a node wrote of arrays, for races over their elements.

use std::collections::VecDeque;

use dhole_model::{Elements, Oid, OidRange, Segments, SortedMap};

use super::{MOST_FREED, Own, Packed, SiteId};

/// The most segments of elements that a node's own writes are remembered in. What it writes
/// beyond them, until the barrier after next, is not looked at.
const MOST_SEGMENTS: usize = 1 << 16;

/// One node's own writes of elements: neighbours written at one time from one place are one
/// segment.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct OwnElements {
    arrays: SortedMap<Oid, Segments<Own>>,
    segments: usize,
    /// Arrays that were freed and are still remembered.
    freed: VecDeque<Oid>,
}

impl OwnElements {
    /// An interval of this node ends that wrote these elements, or freed them with their array.
    pub fn wrote(&mut self, lamport: u64, written: &[(Elements, SiteId)], freed: bool) {
        for (elements, site) in written {
            if self.segments >= MOST_SEGMENTS {
                return;
            }
            let own = self.arrays.get_or_default(elements.array);
            self.segments -= own.len();
            own.update(elements.range(), |_, own| {
                own.wrote(lamport, *site);
                own.last.0 |= if freed { Packed::FREED } else { 0 };
            });
            self.segments += own.len();
        }
    }

    /// The parts of `elements` whose last write here is one that `races`, joined where it was made
    /// in one place, and the first of these writes.
    pub fn racing(
        &self,
        elements: Elements,
        races: impl Fn(Packed) -> bool,
    ) -> Vec<(Elements, Packed)> {
        let mut racing: Vec<(Elements, Packed)> = Vec::new();
        let own = self.arrays.get(&elements.array).into_iter();
        for (range, Own { last, .. }) in own.flat_map(|own| own.of(elements.range())) {
            let is_like = |of: Packed| (of.site(), of.freed()) == (last.site(), last.freed());
            match racing.last_mut() {
                _ if !races(last) => {}
                Some((before, of)) if before.range().end == range.start && is_like(*of) => {
                    before.count += range.end - range.start;
                }
                _ => racing.push((Elements::new(elements.array, range), last)),
            }
        }
        racing
    }

    /// Where the interval of this Lamport time wrote the first of the elements, and how many on
    /// from there it wrote in the same place.
    pub fn written_at(&self, elements: Elements, lamport: u64) -> (Elements, SiteId) {
        let nowhere = (elements, SiteId::default());
        let Some(own) = self.arrays.get(&elements.array) else {
            return nowhere;
        };
        let mut sites = own
            .of(elements.range())
            .map(|(range, own)| (range, own.site_at(lamport)));
        let Some((mut range, site)) = sites.next() else {
            return nowhere;
        };
        if let Some((last, _)) = sites.take_while(|(_, other)| *other == site).last() {
            range.end = last.end;
        }
        (Elements::new(elements.array, range), site)
    }

    /// The arrays among these ids of which something is remembered.
    pub fn arrays_within(&self, ids: OidRange) -> Vec<Oid> {
        let within = self.arrays.range(ids.first..=ids.last());
        within.map(|(array, _)| *array).collect()
    }

    /// An array was freed: it is forgotten when enough others have been.
    pub fn forget_later(&mut self, array: Oid) {
        if self.arrays.contains_key(&array) && !self.freed.contains(&array) {
            self.freed.push_back(array);
        }
        while self.freed.len() > MOST_FREED {
            let oldest = self.freed.pop_front();
            if let Some(own) = oldest.and_then(|array| self.arrays.remove(&array)) {
                self.segments -= own.len();
            }
        }
    }

    /// Forgets what was written up to this Lamport time.
    pub fn forget_up_to(&mut self, lamport: u64) {
        self.arrays.retain(|_, own| {
            own.update(0..u64::MAX, |_, own| {
                if own.last.lamport() <= lamport {
                    *own = Own::default();
                }
            });
            !own.is_empty()
        });
        self.segments = self.arrays.values().map(Segments::len).sum();
        self.freed.retain(|array| self.arrays.contains_key(array));
    }
}
