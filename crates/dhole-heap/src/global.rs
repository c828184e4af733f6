//! One global space of addresses, for objects that lie at the same place on every node
//! ([`Placement::Everywhere`](dhole_model::Placement)).
//!
//! A node that allocates takes segments of the space and fills them in program order, as
//! TreadMarks' `malloc` does: objects of all types side by side, large ones from a page on. The
//! address goes into the directory beside what the id is bound to, and is the object's offset in
//! the page store of every node; a page is stored where it is touched. An address is never used
//! again.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use dhole_space::PAGE_BYTES;

use crate::geometry::KEPT_BYTES;

/// What a node takes of the space at a time, unless an object is larger.
const SEGMENT_BYTES: u64 = 16 * PAGE_BYTES;

/// Objects are aligned as by `malloc`, whatever their type asks for.
const LEAST_ALIGN: u64 = 8;

/// The addresses that a cluster's nodes share.
pub(crate) struct GlobalSpace {
    next: AtomicU64,
    end: u64,
}

impl GlobalSpace {
    /// Addresses for stores of `store_bytes` bytes. The first of a store may hold what an earlier
    /// cluster left there, so nothing is put there.
    pub(crate) fn new(store_bytes: u64) -> GlobalSpace {
        GlobalSpace {
            next: AtomicU64::new(KEPT_BYTES),
            end: store_bytes,
        }
    }

    /// A segment with room for `bytes` bytes; `None` when the space is used up.
    fn take(&self, bytes: u64) -> Option<Range<u64>> {
        let bytes = bytes.checked_next_multiple_of(SEGMENT_BYTES)?;
        let within = |start: u64| start.checked_add(bytes).filter(|end| *end <= self.end);
        let (order, load) = (Ordering::Relaxed, Ordering::Relaxed);
        let start = self.next.fetch_update(order, load, within).ok()?;
        Some(start..start + bytes)
    }
}

/// Where the objects of a run lie.
pub(crate) enum Addresses {
    /// Wherever each node puts them.
    Anywhere,
    /// One after the other, from this address on.
    From(u64),
    /// Allocated one by one: each where it was put, or not allocated yet.
    Each(Box<[Option<u64>; 64]>),
}

impl Addresses {
    /// Where the object at `place` of the run lies, each of `bytes` bytes.
    pub(crate) fn at(&self, place: u64, bytes: u64) -> Option<u64> {
        match self {
            Addresses::Anywhere => None,
            Addresses::From(first) => Some(first + place * bytes),
            Addresses::Each(each) => *each.get(place as usize)?,
        }
    }

    pub(crate) fn put(&mut self, slot: usize, address: u64) {
        if let Addresses::Each(each) = self {
            each[slot] = Some(address);
        }
    }
}

/// The addresses that one node fills, in program order.
pub(crate) struct Segment {
    rest: Range<u64>,
    /// Bytes that were given to objects.
    pub(crate) allotted: u64,
}

impl Segment {
    pub(crate) const fn new() -> Segment {
        Segment {
            rest: 0..0,
            allotted: 0,
        }
    }

    /// The next address with room for `bytes` bytes, in program order; `None` when the space is
    /// used up. `align` is a power of two of at most a page.
    pub(crate) fn take(&mut self, space: &GlobalSpace, bytes: u64, align: u64) -> Option<u64> {
        let at = self.next(space, bytes, align)?;
        self.rest.start = at + bytes.max(1);
        self.allotted += bytes;
        Some(at)
    }

    /// Where [`take`](Segment::take) will lead.
    pub(crate) fn next(&mut self, space: &GlobalSpace, bytes: u64, align: u64) -> Option<u64> {
        let align = match bytes {
            PAGE_BYTES.. => PAGE_BYTES,
            _ => align.max(LEAST_ALIGN),
        };
        let bytes = bytes.max(1);
        let mut at = self.rest.start.next_multiple_of(align);
        if at.checked_add(bytes)? > self.rest.end {
            let more = space.take(bytes)?;
            match more.start == self.rest.end {
                true => self.rest.end = more.end,
                false => self.rest = more,
            }
            at = self.rest.start.next_multiple_of(align);
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dhole_model::{NodeId, Oid, Placement};

    use super::*;
    use crate::{Cluster, HeapMut, Monitor};

    fn two() -> [Monitor<()>; 2] {
        let cluster = Cluster::placing(Placement::Everywhere, 2).unwrap();
        [0, 1].map(|node| Monitor::new(&cluster, NodeId(node), ()))
    }

    fn on<R>(node: &Monitor<()>, f: impl FnOnce(&mut HeapMut<'_>) -> R) -> R {
        f(&mut node.lock().split().0)
    }

    /// Where a node keeps an object.
    fn stored(node: &Monitor<()>, oid: Oid) -> u64 {
        on(node, |heap| {
            let at = heap.heap.place(oid).unwrap();
            heap.heap.chunks[at.chunk].storage(at.slot).unwrap()
        })
    }

    /// Where an object or array lies in the global space, once that is decided.
    fn address_of(cluster: &Cluster, oid: Oid) -> Option<u64> {
        let array = cluster.address_of_array(oid);
        array.or_else(|| cluster.address(oid))
    }

    #[test]
    fn objects_lie_in_program_order_at_one_address_on_every_node() {
        let [one, two] = two();
        let (a, b, c) = on(&one, |heap| {
            let (a, b) = (heap.alloc(1_u8).unwrap(), heap.alloc([2_u64; 3]).unwrap());
            (a, b, heap.alloc(3_u8).unwrap())
        });
        let first = stored(&one, a.oid());
        assert_eq!(stored(&one, b.oid()), first + 8);
        assert_eq!(
            stored(&one, c.oid()),
            first + 32,
            "of the type of the first"
        );
        on(&two, |heap| heap.install(c.oid(), &[3])).unwrap();
        assert_eq!(stored(&two, c.oid()), first + 32);
        let theirs = on(&two, |heap| heap.alloc(4_u8).unwrap());
        assert_eq!(
            stored(&two, theirs.oid()) % SEGMENT_BYTES,
            0,
            "of a segment of its own"
        );
    }

    #[test]
    fn rows_and_arrays_begin_on_a_page_and_take_the_pages_that_are_touched() {
        let [one, two] = two();
        let (rows, array) = on(&one, |heap| {
            let small = heap.alloc(0_u8).unwrap();
            let rows = heap.alloc_rows::<f64>(3, 1024).unwrap();
            assert_eq!(heap.store_bytes(), PAGE_BYTES, "of {small:?} alone");
            assert_eq!(heap.allotted_bytes(), 1 + 3 * 8192);
            (rows, heap.alloc_array::<u32>(4096).unwrap())
        });
        on(&two, |heap| heap.zero_fill(rows.row(1).oid()).unwrap());
        let at = stored(&two, rows.row(1).oid());
        assert_eq!(at % PAGE_BYTES, 0);
        on(&two, |heap| {
            assert_eq!(heap.store_bytes(), 2 * PAGE_BYTES);
            let part = dhole_model::Elements::new(array.oid(), 5..6);
            heap.zero_fill_elements(part).unwrap();
            assert_eq!(heap.store_bytes(), 3 * PAGE_BYTES);
        });
        assert_eq!(
            on(&two, |heap| address_of(heap.cluster(), array.oid())),
            Some(at + 2 * 8192)
        );
    }

    #[test]
    fn what_is_freed_gives_its_pages_back_and_leaves_its_address_unused() {
        let [one, _two] = two();
        let row = on(&one, |heap| heap.alloc_rows::<u64>(1, 1024).unwrap().row(0));
        on(&one, |heap| heap.zero_fill(row.oid()).unwrap());
        let at = stored(&one, row.oid());
        on(&one, |heap| {
            heap.free(dhole_model::OidRange::one(row.oid())).unwrap();
            assert_eq!(heap.store_bytes(), 0);
        });
        let next = on(&one, |heap| heap.alloc(1_u64).unwrap());
        assert_eq!(stored(&one, next.oid()), at + 8192);
    }

    #[test]
    fn a_full_space_is_an_error_that_says_so() {
        let cluster = Cluster::placing(Placement::Everywhere, 1).unwrap();
        let node = Monitor::new(&Arc::clone(&cluster), NodeId(0), ());
        on(&node, |heap| {
            let most = heap.heap.store.capacity() / 8;
            let refused = heap.alloc_rows::<u64>(2, most / 2).unwrap_err();
            assert!(refused.to_string().contains("is full"), "{refused}");
            assert!(heap.alloc(1_u8).is_ok());
        });
    }

    #[test]
    fn segments_follow_on_each_other_until_the_space_is_used_up() {
        let space = GlobalSpace::new(KEPT_BYTES + 3 * SEGMENT_BYTES);
        let first = space.take(1);
        assert_eq!(first, Some(KEPT_BYTES..KEPT_BYTES + SEGMENT_BYTES));
        assert_eq!(space.take(3 * SEGMENT_BYTES), None);
        let rest = space.take(SEGMENT_BYTES + 1).unwrap();
        assert_eq!(rest.end - rest.start, 2 * SEGMENT_BYTES);
        assert_eq!(space.take(1), None);
        assert_eq!(space.take(u64::MAX), None);
    }
}
