//! The tables of what nodes publish: a record for each id of a cluster, in memory that takes none
//! before an object is published.

use std::ptr::NonNull;
use std::sync::Arc;

use dhole_model::NodeId;

use crate::geometry::PAGE_BYTES;
use crate::publication::Publication;
use crate::reservation;

/// The log2 of the ids of a cluster of which records are kept; later objects are not published.
const ID_BITS: u32 = 28;

/// The log2 of the address space that tables must leave to everything else.
const ROOM_BITS: u32 = 30;

/// Bytes of a table, of which memory is taken where something is published.
const BYTES: usize = size_of::<Publication>() << ID_BITS;

/// The records of one node's objects.
///
/// A record never says the same twice, not even where its memory was given back and is zeros
/// again: an id is never used again, nor has a cluster two heaps of one node. So no object is
/// published in a record that was [released](Publications::release) or
/// [cleared](Publications::clear), and a reader between its two looks finds zeros at the second.
pub(crate) struct Publications {
    base: NonNull<Publication>,
}

// SAFETY: a table owns its mapping, and gives access to atomics alone.
unsafe impl Send for Publications {}
// SAFETY: as above; a shared table gives only shared access to atomics.
unsafe impl Sync for Publications {}

impl Drop for Publications {
    fn drop(&mut self) {
        // SAFETY: `map` mapped as many bytes there, and what refers to a record borrows the table.
        unsafe { libc::munmap(self.base.as_ptr().cast(), BYTES) };
    }
}

impl Publications {
    /// An empty table; `None` where the system gives no address space for it.
    fn map() -> Option<Publications> {
        let base = reservation::map(BYTES, libc::PROT_READ | libc::PROT_WRITE)?.cast();
        Some(Publications { base })
    }

    /// Nothing is published any more.
    pub(crate) fn clear(&self) {
        // SAFETY: as many bytes are mapped. Who reads them meanwhile reads atomics, or zeros.
        unsafe { libc::madvise(self.base.as_ptr().cast(), BYTES, libc::MADV_DONTNEED) };
    }

    /// Gives the memory of so many records back, from the one of this id on; nothing is published
    /// there.
    ///
    /// # Panics
    /// If they fill no whole pages.
    pub(crate) fn release(&self, first: u64, count: u64) {
        const RECORD: u64 = size_of::<Publication>() as u64;
        if first.saturating_add(count) > 1 << ID_BITS {
            return;
        }
        let is_whole = |ids: u64| (ids * RECORD).is_multiple_of(PAGE_BYTES);
        assert!(is_whole(first) && is_whole(count), "records fill no pages");
        // SAFETY: the table has these records, by the test above. Who reads them meanwhile reads
        // atomics, or zeros.
        unsafe {
            let at = self.base.add(first as usize).as_ptr().cast();
            libc::madvise(at, (count * RECORD) as usize, libc::MADV_DONTNEED);
        }
    }

    /// The record of the object with this id, counted from the first of the cluster's; `None`
    /// beyond the table.
    pub(crate) fn of(&self, id: u64) -> Option<&Publication> {
        if id >> ID_BITS != 0 {
            return None;
        }
        // SAFETY: the table has a record for each id below `1 << ID_BITS`, by the test above, and
        // stays mapped while it is borrowed. Any bytes are records: they are atomics.
        Some(unsafe { self.base.add(id as usize).as_ref() })
    }
}

/// The memory of nodes that see each other.
pub(crate) struct Neighbours {
    tables: Box<[Arc<Publications>]>,
}

impl Neighbours {
    /// The records of a node.
    pub(crate) fn of(&self, node: NodeId) -> Option<&Arc<Publications>> {
        self.tables.get(node.index())
    }

    /// Tables for so many nodes of this process.
    pub(crate) fn map(nodes: usize) -> Option<Neighbours> {
        let tables = (0..nodes).map(|_| Publications::map().map(Arc::new));
        let tables = tables.collect::<Option<_>>()?;
        reservation::leaves_room(ROOM_BITS).then_some(Neighbours { tables })
    }
}
