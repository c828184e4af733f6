//! The tables of what nodes publish: a record for each id of a cluster, in memory that takes none
//! before an object is published.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::gate::{GATE_IDS, Gate};
use crate::geometry::PAGE_BYTES;
use crate::mapping::Mapping;
use crate::publication::Publication;
use crate::reservation;
use crate::visible::{self, StorePlace, VisibleMemory, VisibleStore};

/// The log2 of the ids of a cluster of which records are kept; later objects are not published.
const ID_BITS: u32 = 28;

/// The log2 of the address space that tables must leave to everything else.
const ROOM_BITS: u32 = 30;

/// Bytes of a table, of which memory is taken where something is published.
const BYTES: usize = GATES + (size_of::<Gate>() << ID_BITS) / GATE_IDS as usize;

/// Ids whose gates share a page of memory.
pub const IDS_OF_GATES: u64 = PAGE_BYTES / size_of::<Gate>() as u64 * GATE_IDS;

/// Where the gates begin, behind the records.
const GATES: usize = size_of::<Publication>() << ID_BITS;

/// The records of one node's objects, and the gates of their chunks.
///
/// A record never says the same twice, not even where its memory was given back and is zeros
/// again: an id is never used again, nor has a cluster two heaps of one node. So no object is
/// published in a record that was [released](Publications::release) or
/// [cleared](Publications::clear), and a reader between its two looks finds zeros at the second.
/// Where runs of a process use one memory in turn, it is cleared after each, and no reader of one
/// run is left when all processes have come to the next.
pub struct Publications(Mapping);

impl Publications {
    /// An empty table; `None` where the system gives no address space for it.
    fn map() -> Option<Publications> {
        Mapping::new(BYTES).ok().map(Publications::of)
    }

    /// The table that is mapped there.
    ///
    /// # Panics
    /// If it is of another size, or can only be read.
    pub fn of(mapping: Mapping) -> Publications {
        let is_table = mapping.bytes() == BYTES as u64 && mapping.is_writable();
        assert!(is_table, "a table of records");
        Publications(mapping)
    }

    /// Nothing is published any more.
    pub fn clear(&self) {
        // SAFETY: who reads them meanwhile reads atomics, or zeros.
        unsafe { self.0.discard(0, BYTES) };
    }

    /// Gives the memory of so many records back, from the one of this id on; nothing is published
    /// there.
    ///
    /// # Panics
    /// If they fill no whole pages.
    pub fn release(&self, first: u64, count: u64) {
        const RECORD: u64 = size_of::<Publication>() as u64;
        if first.saturating_add(count) > 1 << ID_BITS {
            return;
        }
        let is_whole = |ids: u64| (ids * RECORD).is_multiple_of(PAGE_BYTES);
        assert!(is_whole(first) && is_whole(count), "records fill no pages");
        // SAFETY: who reads them meanwhile reads atomics, or zeros.
        unsafe {
            let bytes = |ids: u64| (ids * RECORD) as usize;
            self.0.discard(bytes(first), bytes(count));
        }
    }

    /// Gives the memory of a page of gates back, which are those of [`IDS_OF_GATES`] ids: the page
    /// of this number. They are open then.
    pub fn release_gates(&self, page: u64) {
        if page < (1 << ID_BITS) / IDS_OF_GATES {
            let at = GATES + page as usize * PAGE_BYTES as usize;
            // SAFETY: who reads them meanwhile reads atomics, or zeros.
            unsafe { self.0.discard(at, PAGE_BYTES as usize) };
        }
    }

    /// The gate of the chunk in which the object with this id is; `None` beyond the table.
    #[inline]
    pub fn gate(&self, id: u64) -> Option<&Gate> {
        if id >> ID_BITS != 0 {
            return None;
        }
        // SAFETY: behind the records the table has a gate for each chunk of ids below
        // `1 << ID_BITS`, by the test above, and stays mapped while it is borrowed. Any bytes are
        // gates, as they are records.
        unsafe {
            let first = self.0.start().byte_add(GATES).cast::<Gate>();
            Some(first.add((id / GATE_IDS) as usize).as_ref())
        }
    }

    /// The record of the object with this id, counted from the first of the cluster's; `None`
    /// beyond the table.
    #[inline]
    pub fn record(&self, id: u64) -> Option<&Publication> {
        if id >> ID_BITS != 0 {
            return None;
        }
        let first = self.0.start().cast::<Publication>();
        // SAFETY: the table has a record for each id below `1 << ID_BITS`, by the test above, and
        // stays mapped while it is borrowed. Any bytes are records: they are atomics, which other
        // processes may write at any time.
        Some(unsafe { first.add(id as usize).as_ref() })
    }
}

/// What a node publishes in, as its heap knows it.
#[derive(Clone)]
pub struct OwnPublications {
    /// The records of its objects.
    pub records: Arc<Publications>,
    /// The bytes of its store that others see: its first.
    pub seen_bytes: u64,
    /// Where the store begins in what they see.
    begins: u64,
}

impl OwnPublications {
    /// Where others see so many bytes at a place of the store, if they do.
    #[inline]
    pub fn seen(&self, place: u64, bytes: u64) -> Option<u64> {
        let is_seen = place <= self.seen_bytes && bytes <= self.seen_bytes - place;
        is_seen.then_some(self.begins + place)
    }
}

/// The memory of another node, as it is seen from here.
pub struct Neighbour {
    /// The records of its objects.
    pub records: Arc<Publications>,
    store: NonNull<u8>,
    bytes: u64,
    /// What is mapped there, if it is another process's.
    _mapped: Option<Mapping>,
}

// SAFETY: an address, which is only compared and copied from.
unsafe impl Send for Neighbour {}
// SAFETY: as above.
unsafe impl Sync for Neighbour {}

impl Neighbour {
    /// Where so many bytes begin at a place of the store that is said to be theirs; `None` where
    /// the store does not reach. They are mapped as long as this lives, and may be written by
    /// others at any time.
    #[inline]
    pub fn at(&self, place: u64, bytes: u64) -> Option<NonNull<u8>> {
        let is_within = place <= self.bytes && bytes <= self.bytes - place;
        // SAFETY: within what is mapped (`map`, `open`), by the test.
        is_within.then(|| unsafe { self.store.add(place as usize) })
    }
}

/// The memory of nodes that see each other.
pub struct Neighbours {
    /// By node: where it publishes, if it is in this process.
    published: Box<[Option<OwnPublications>]>,
    /// By node: what others see of it.
    seen: Box<[Option<Neighbour>]>,
    /// The store of the node here, where others are in other processes.
    store: Option<VisibleStore>,
}

impl Neighbours {
    /// Where a node of this process publishes.
    #[inline]
    pub fn published(&self, node: usize) -> Option<&OwnPublications> {
        self.published.get(node)?.as_ref()
    }

    /// The memory of a node, as others see it.
    #[inline]
    pub fn seen(&self, node: usize) -> Option<&Neighbour> {
        self.seen.get(node)?.as_ref()
    }

    /// Bytes at the beginning of the store here that are a file's.
    #[inline]
    pub fn of_file(&self) -> u64 {
        self.store.as_ref().map_or(0, VisibleStore::bytes)
    }

    /// Tables for all nodes of a process, whose stores are these.
    ///
    /// # Safety
    /// The stores are mapped as long as this lives.
    pub unsafe fn map(stores: &[(NonNull<u8>, u64)]) -> Option<Neighbours> {
        let (mut published, mut seen) = (Vec::new(), Vec::new());
        for &(store, bytes) in stores {
            let records = Arc::new(Publications::map()?);
            published.push(Some(OwnPublications {
                records: Arc::clone(&records),
                seen_bytes: bytes,
                begins: 0,
            }));
            seen.push(Some(Neighbour {
                records,
                store,
                bytes,
                _mapped: None,
            }));
        }
        reservation::leaves_room(ROOM_BITS).then_some(Neighbours {
            published: published.into(),
            seen: seen.into(),
            store: None,
        })
    }

    /// Tables and stores of processes: this one's node is `me`, whose memory this is. The memory
    /// of others is as they show it; what cannot be mapped of it is told to `unfit`.
    ///
    /// # Errors
    /// The system's own, where the memory of this process cannot be mapped.
    ///
    /// # Safety
    /// The slot or the views are the caller's as long as this lives, and nothing refers to the
    /// store now, nor from when this is dropped on.
    pub unsafe fn between(
        (me, place): (usize, StorePlace),
        memory: &Arc<VisibleMemory>,
        shown: Vec<Option<[OwnedFd; 2]>>,
        unfit: &mut dyn FnMut(usize, io::Error),
    ) -> io::Result<Neighbours> {
        // SAFETY: as the caller promises.
        let store = unsafe { VisibleStore::map(place, memory)? };
        let own = OwnPublications {
            records: Arc::new(Publications::of(memory.records()?)),
            seen_bytes: store.bytes(),
            begins: store.begins(),
        };
        let published = (0..shown.len()).map(|node| (node == me).then(|| own.clone()));
        let published = published.collect();
        let shown = shown.into_iter().enumerate();
        let seen = shown.map(|(node, files)| match visible::open(files?, BYTES as u64) {
            Ok([records, store]) => Some(Neighbour {
                records: Arc::new(Publications::of(records)),
                store: store.start(),
                bytes: store.bytes(),
                _mapped: Some(store),
            }),
            Err(error) => {
                unfit(node, error);
                None
            }
        });
        let seen = seen.collect();
        match reservation::leaves_room(ROOM_BITS) {
            true => Ok(Neighbours {
                published,
                seen,
                store: Some(store),
            }),
            false => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        }
    }
}

impl VisibleMemory {
    /// Memory that others can map.
    ///
    /// # Errors
    /// The system's own, where it gives no file so long (`ulimit -f`), or none at all.
    pub fn make() -> io::Result<VisibleMemory> {
        VisibleMemory::of(BYTES as u64)
    }
}
