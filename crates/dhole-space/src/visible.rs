//! What a process lets the others of its machine see of its memory: the table of its records, the
//! beginning of its page store, and raw memory. Each is a file without a name, made once for all
//! runs.
//!
//! Neighbours write into the table, where they set their bits; the store they can only read.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::domain_file::DomainFile;
use crate::geometry::{HUGE_BYTES, PAGE_BYTES};
use crate::mapping::{self, Mapping};
use crate::protection::Protection;
use crate::reservation;
use crate::shared_file::SharedFile;
use crate::space::Slot;
use crate::views::Views;

/// Bytes of the file of a store: objects that lie behind it are not published. A huge page more
/// than 64 GiB, for a store begins wherever a huge page of its own does not.
const STORE_BYTES: u64 = (64 << 30) + HUGE_BYTES;

/// The memory of a process that others of its machine map, of one node and one run at a time.
#[derive(Debug)]
pub struct VisibleMemory {
    records: SharedFile,
    store: SharedFile,
    /// What others map as their raw memory, in one domain with this process.
    raw: Arc<DomainFile>,
    used: AtomicBool,
}

impl VisibleMemory {
    /// Memory with a table of so many bytes.
    pub(crate) fn of(records: u64) -> io::Result<VisibleMemory> {
        Ok(VisibleMemory {
            records: SharedFile::make(c"dhole records", records)?,
            store: SharedFile::make(c"dhole store", STORE_BYTES)?,
            raw: Arc::new(DomainFile::make()?),
            used: AtomicBool::new(false),
        })
    }

    /// The files as another process gets them.
    ///
    /// # Errors
    /// The system's own.
    pub fn files(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.records.to_write()?, self.store.to_read()?])
    }

    /// The [files](VisibleMemory::files), and that of the [raw memory](VisibleMemory::raw).
    ///
    /// # Errors
    /// The system's own.
    pub fn all_files(&self) -> io::Result<[OwnedFd; 3]> {
        let [records, store] = self.files()?;
        Ok([records, store, self.raw.to_show()?])
    }

    /// The raw memory of this process's domain, where this process leads it.
    pub fn raw(&self) -> &Arc<DomainFile> {
        &self.raw
    }

    /// The table, mapped.
    pub fn records(&self) -> io::Result<Mapping> {
        Mapping::of(&self.records, true)
    }
}

/// The memory that another process shows, of whose table so many bytes are expected: table and
/// store, mapped.
pub(crate) fn open(files: [OwnedFd; 2], records: u64) -> io::Result<[Mapping; 2]> {
    let [table, store] = files;
    let table = SharedFile::check(table, records)?;
    let store = SharedFile::check(store, STORE_BYTES)?;
    Ok([Mapping::of(&table, true)?, Mapping::of(&store, false)?])
}

/// Where the page store of a node lies.
#[derive(Clone, Copy)]
pub enum StorePlace {
    /// In its slot.
    Slot(Slot),
    /// Behind its views.
    Views(Views),
}

/// The page store of a node, of which the beginning is visible memory.
pub(crate) struct VisibleStore {
    place: StorePlace,
    memory: Arc<VisibleMemory>,
    /// The part of the file that the store begins with.
    part: Range<u64>,
}

impl VisibleStore {
    /// Puts the file of the store where the node's own begins.
    ///
    /// # Errors
    /// The system's own; [`io::ErrorKind::ResourceBusy`] where the memory is another node's.
    ///
    /// # Safety
    /// The slot or the views are the caller's as long as this lives, and nothing refers to the
    /// store now, nor from when this is dropped on.
    pub(crate) unsafe fn map(
        place: StorePlace,
        memory: &Arc<VisibleMemory>,
    ) -> io::Result<VisibleStore> {
        if memory.used.swap(true, Ordering::AcqRel) {
            let why = "the memory that others see is still in use";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        // Where a huge page begins in the file, one begins in the store.
        let (begins, bytes) = match place {
            StorePlace::Slot(slot) => {
                let begins = slot.store().addr().get() as u64 % HUGE_BYTES;
                (begins, slot.store_bytes().min(STORE_BYTES - begins))
            }
            StorePlace::Views(views) => (views.begins(), views.store_bytes()),
        };
        let bytes = bytes / PAGE_BYTES * PAGE_BYTES;
        // From here on what goes wrong is undone when it is dropped.
        let store = VisibleStore {
            place,
            memory: Arc::clone(memory),
            part: begins..begins + bytes,
        };
        let part = store.part.clone();
        // SAFETY: the store has as many bytes, which the caller grants.
        unsafe {
            match place {
                StorePlace::Slot(slot) => {
                    mapping::map_undumped(slot.store(), &memory.store, part, Protection::Open)?;
                }
                StorePlace::Views(views) => views.show(&memory.store)?,
            }
        }
        Ok(store)
    }

    /// The bytes of the store that others see: its first.
    pub(crate) fn bytes(&self) -> u64 {
        self.part.end - self.part.start
    }

    /// Where the store begins in what others see.
    pub(crate) fn begins(&self) -> u64 {
        self.part.start
    }
}

impl Drop for VisibleStore {
    fn drop(&mut self) {
        self.memory.store.clear();
        // Who has views unmaps them.
        if let StorePlace::Slot(slot) = self.place {
            let (at, bytes) = (slot.store(), self.bytes());
            // SAFETY: a part of the slot's place, which was the slot's before. Nothing refers to
            // what is there, as the caller of `map` promises.
            let mapped = unsafe { reservation::map_over(at, bytes as usize) };
            assert!(mapped, "mapping over what is mapped takes nothing");
        }
        self.memory.used.store(false, Ordering::Release);
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests;
