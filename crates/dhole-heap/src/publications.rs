//! The tables of what nodes publish: a record for each id of a cluster, in memory that takes none
//! before an object is published.

use std::ptr::NonNull;

use dhole_model::NodeId;

use crate::geometry::PAGE_BYTES;
use crate::publication::Publication;
#[cfg(not(miri))]
use crate::reservation::leaves_room;

/// The log2 of the ids of a cluster of which records are kept; later objects are not published.
const ID_BITS: u32 = 28;

/// The records of one node's objects.
#[derive(Clone, Copy)]
pub(crate) struct Publications {
    base: NonNull<Publication>,
}

// SAFETY: a table is a pointer to atomics, which stay mapped as long as a copy of it is used: the
// cluster keeps them, and every heap keeps the cluster.
unsafe impl Send for Publications {}
// SAFETY: as above; a shared table gives only shared access to atomics.
unsafe impl Sync for Publications {}

/// The log2 of the address space that tables must leave to everything else.
#[cfg(not(miri))]
const ROOM_BITS: u32 = 30;

/// Bytes of a table, of which memory is taken where something is published.
const BYTES: usize = size_of::<Publication>() << ID_BITS;

impl Publications {
    /// An empty table; `None` where the system gives no address space for it.
    fn map() -> Option<Publications> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing else.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, rights, flags, -1, 0) };
        let mapped = at != libc::MAP_FAILED;
        let base = mapped.then(|| NonNull::new(at.cast()))?;
        base.map(|base| Publications { base })
    }

    /// # Safety
    /// No copy of the table is used any more.
    unsafe fn unmap(self) {
        // SAFETY: `map` mapped as many bytes there, and the caller promises that nobody uses them.
        unsafe { libc::munmap(self.base.as_ptr().cast(), BYTES) };
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
        // stays mapped (see `Send`). Any bytes are records: they are atomics.
        Some(unsafe { self.base.add(id as usize).as_ref() })
    }
}

/// The memory of nodes that see each other.
pub(crate) struct Neighbours {
    tables: Box<[Publications]>,
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for table in &self.tables {
            // SAFETY: heaps alone use the tables, and each keeps the cluster, which drops this.
            unsafe { table.unmap() };
        }
    }
}

impl Neighbours {
    /// The records of a node.
    pub(crate) fn of(&self, node: NodeId) -> Option<Publications> {
        self.tables.get(node.index()).copied()
    }

    /// Tables for so many nodes of this process.
    pub(crate) fn map(nodes: usize) -> Option<Neighbours> {
        let mut neighbours = Neighbours {
            tables: Box::default(),
        };
        let mut tables = Vec::with_capacity(nodes);
        for _ in 0..nodes {
            match Publications::map() {
                Some(table) => tables.push(table),
                None => break,
            }
        }
        let all = tables.len() == nodes;
        #[cfg(not(miri))]
        let all = all && leaves_room(ROOM_BITS);
        neighbours.tables = tables.into();
        all.then_some(neighbours)
    }
}
