//! The process's address space for shared objects, and its object ids.
//!
//! One reservation, made on first use, is cut into *slots*, one for each node that lives in the
//! process: a read handle table, a write handle table and a page store. Memory that nobody
//! touches costs nothing. Every table reserves the whole range of ids, so an id of another
//! cluster finds a null handle and needs no bounds check. Slots are recycled; ids never are.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use dhole_model::unpoisoned;
use dhole_model::{CHUNK, MAX_NODES, Oid};

use crate::geometry::{HUGE_BYTES, IDS_PER_PAGE, PAGE_BYTES, SLOT_BITS_PER_ID};
use crate::reservation::{self, Reservation, ReserveError};

/// The log2 of the most ids that a process may ever use.
const MAX_INDEX_BITS: u32 = 36;

/// Where this part of what is left would be exceeded, parts are smaller: the last ids are for all.
const SHARE_OF_LEFT: u64 = 64;

/// One node's part of the reservation.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    number: u32,
    base: NonNull<u8>,
    index_bits: u32,
}

// SAFETY: a slot is an address. What may be done with the memory there, its functions say.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The number of the slot in the process.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "there are no views")
    )]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Entries of each handle table.
    #[inline]
    pub fn entries(&self) -> u64 {
        1 << self.index_bits
    }

    /// Bytes of one handle table.
    fn table_bytes(&self) -> u64 {
        8 << self.index_bits
    }

    fn part(&self, offset: u64) -> NonNull<u8> {
        assert!(offset < 4 * self.table_bytes(), "beyond the slot");
        // SAFETY: a slot has four times the bytes of a table, mapped for as long as the process
        // lives (`Space::slot` alone makes one), and the offset is below that, by the test above.
        unsafe { self.base.add(offset as usize) }
    }

    /// Where the read handle table starts.
    #[inline]
    pub fn read_table(&self) -> NonNull<u8> {
        self.part(0)
    }

    /// Where the write handle table starts.
    #[inline]
    pub fn write_table(&self) -> NonNull<u8> {
        self.part(self.table_bytes() + STAGGER[0])
    }

    /// Where the page store starts; beyond the end of the write table.
    #[inline]
    pub fn store(&self) -> NonNull<u8> {
        const { assert!(STAGGER[0] <= STAGGER[1]) };
        self.part(2 * self.table_bytes() + STAGGER[1])
    }

    /// Bytes of the page store: what is left of the slot.
    #[inline]
    pub fn store_bytes(&self) -> u64 {
        2 * self.table_bytes() - STAGGER[1]
    }

    /// Gives the pages of both tables back in which the handles of these ids are; they read as
    /// null.
    ///
    /// # Safety
    /// The handles are null, or nobody follows one any more; and no other cluster or heap has one
    /// of these ids in the slot.
    ///
    /// # Panics
    /// When the ids are beyond the tables, or fill no whole pages.
    pub unsafe fn release_handles(&self, ids: Range<u64>) {
        let whole = [ids.start, ids.end].map(|id| id % IDS_PER_PAGE) == [0, 0];
        let within = ids.start <= ids.end && ids.end <= self.entries();
        assert!(whole && within, "{ids:?} are no pages of handles");
        for table in [self.read_table(), self.write_table()] {
            // SAFETY: whole pages of a table, by the test above, whose handles are the caller's.
            unsafe {
                let page = table.add(8 * ids.start as usize);
                release(page, 8 * (ids.end - ids.start));
            }
        }
    }

    /// Gives pages of the page store back; they read as zero.
    ///
    /// # Safety
    /// `bytes` are whole pages from its start on, and nothing refers to what is there any more. A
    /// file is behind the first `of_file` bytes of the store, whole pages, and none behind others.
    ///
    /// # Panics
    /// When the store has no such bytes.
    pub unsafe fn release_store(&self, bytes: Range<u64>, of_file: u64) {
        let within = bytes.start <= bytes.end && bytes.end <= self.store_bytes();
        assert!(within, "{bytes:?} are not in the store");
        let between = of_file.clamp(bytes.start, bytes.end);
        // SAFETY: the bytes are in the store, by the test above; the rest the caller promises.
        unsafe {
            let at = |place: u64| self.store().add(place as usize);
            punch(at(bytes.start), between - bytes.start);
            release(at(between), bytes.end - between);
        }
    }
}

/// By how much a slot's write table and page store are moved off their round addresses. Some
/// processors guess a cache line's place from bits 12 to 27 of its address: regions that agree in
/// them would take each other's lines away, an object's and its own handle's above all.
#[cfg(not(miri))]
pub(crate) const STAGGER: [u64; 2] = [0x035b << 12, 0x06d9 << 12];
#[cfg(miri)]
pub(crate) const STAGGER: [u64; 2] = [0, 0];

/// A cluster, of which nothing has to be known but whether it lives.
pub type Holder = dyn Any + Send + Sync;

/// Who took some ids.
enum Window {
    /// A cluster that lives.
    Alive(Weak<Holder>),
    /// Clusters that have ended; neighbours are joined.
    Ended,
}

/// A window of ids on which several processes agreed.
struct Shared {
    stamp: u64,
    end: u64,
    /// Up to where its parts that have ended used it.
    used: u64,
    /// Parts of the cluster that live in this process, but for the first.
    others: Vec<Weak<Holder>>,
    /// How many live.
    parts: usize,
}

/// The owner of an id, as the process sees it.
pub struct Owner {
    /// The cluster, if it lives.
    pub cluster: Option<Arc<Holder>>,
    /// How many ids from this one on have the same owner, or owners that have ended like it.
    pub rest: u64,
}

/// The process's reservation.
struct Space {
    base: NonNull<u8>,
    index_bits: u32,
    slots: u32,
    /// Whether each slot was opened: none may be touched before.
    opened: Box<[bool]>,
    free: Vec<u32>,
    next_id: u64,
    windows: BTreeMap<u64, (u64, Window)>,
    shared: BTreeMap<u64, Shared>,
    clusters: u64,
}

// SAFETY: the pointer is an address; the reservation is process-wide.
unsafe impl Send for Space {}

static SPACE: Mutex<Option<Space>> = Mutex::new(None);

fn space() -> MutexGuard<'static, Option<Space>> {
    unpoisoned::lock(&SPACE)
}

/// The slots of a new cluster and the cluster's number in the process. No other cluster has one of
/// them before [`give_back`] or [`give_back_window`] takes it.
///
/// # Errors
/// [`ReserveError`] where the process has no address space, or no room for so many nodes.
pub fn take_slots(nodes: usize) -> Result<(Box<[Slot]>, u64), ReserveError> {
    if nodes == 0 || nodes > MAX_NODES {
        return Err(ReserveError::Nodes { nodes });
    }
    let mut guard = space();
    let space = match &mut *guard {
        Some(space) => space,
        none => none.insert(Space::reserve(nodes)?),
    };
    if space.free.len() < nodes {
        let (free, most) = (space.free.len(), space.slots as usize);
        return Err(ReserveError::Slots { nodes, free, most });
    }
    let rest = space.free.len() - nodes;
    let numbers = space.free.split_off(rest);
    let slots: Box<[Slot]> = numbers
        .into_iter()
        .rev()
        .map(|number| space.slot(number))
        .collect();
    if let Err(cause) = space.open(&slots) {
        space
            .free
            .extend(slots.iter().rev().map(|slot| slot.number));
        return Err(ReserveError::Opening { nodes, cause });
    }
    space.clusters += 1;
    Ok((slots, space.clusters))
}

/// From here on this process maps memory away from the addresses that the system gives out
/// unasked, and its objects get the least room that will do. Programs whose pointers are addresses
/// on all nodes call it before their first run: an address that another node has mapped leads
/// nowhere here then, or to memory of the program's.
#[cfg(not(miri))]
pub fn keep_apart() {
    crate::apart::begin();
}

/// How many slots there are, once there are any.
pub(crate) fn slots() -> u32 {
    space().as_ref().map_or(0, |space| space.slots)
}

/// Takes ids for a cluster, of which no other ever gets one. There are at least as many as `size`
/// begins with, and at most as many as it ends with, both multiples of [`IDS_PER_PAGE`].
///
/// # Errors
/// [`ReserveError::Ids`] where too few are left.
///
/// # Panics
/// If no cluster has slots.
pub fn take_ids(size: Range<u64>, cluster: Weak<Holder>) -> Result<Range<u64>, ReserveError> {
    let mut guard = space();
    let space = guard
        .as_mut()
        .expect("a cluster has slots before it has ids");
    let all = 1 << space.index_bits;
    let left = all - space.next_id;
    let Some(ids) = size_of_part(size.clone(), left) else {
        let ids = size.start;
        return Err(ReserveError::Ids { ids, left, all });
    };
    let base = space.next_id;
    space.next_id += ids;
    let end = space.next_id;
    // What follows on ids of the same cluster is one window with them.
    match space.windows.range_mut(..base).next_back() {
        Some((_, (its_end, Window::Alive(its)))) if *its_end == base && its.ptr_eq(&cluster) => {
            *its_end = end;
        }
        _ => drop(space.windows.insert(base, (end, Window::Alive(cluster)))),
    }
    Ok(base..end)
}

/// The ids that no cluster of this process has had.
pub fn ids_left() -> Range<u64> {
    let guard = space();
    let left = guard
        .as_ref()
        .map(|space| space.next_id..1 << space.index_bits);
    left.unwrap_or(0..0)
}

/// Takes these ids for a cluster, and those before them that no one here had: other processes have
/// used them. Clusters of this process with the same stamp are parts of one, and take the same.
///
/// # Errors
/// [`ReserveError::Taken`] where clusters of this process had some of them, [`ReserveError::Ids`]
/// where none are so high.
///
/// # Panics
/// If no cluster has slots.
pub fn take_window(
    window: Range<u64>,
    stamp: u64,
    cluster: Weak<Holder>,
) -> Result<(), ReserveError> {
    let mut guard = space();
    let space = guard
        .as_mut()
        .expect("a cluster has slots before it has ids");
    if let Some(shared) = space.shared.get_mut(&window.start)
        && (shared.stamp, shared.end) == (stamp, window.end)
    {
        shared.parts += 1;
        shared.others.push(cluster);
        return Ok(());
    }
    let (next, all) = (space.next_id, 1 << space.index_bits);
    if window.start < next {
        let first = window.start;
        return Err(ReserveError::Taken { first });
    }
    if window.end > all || window.is_empty() {
        return Err(ReserveError::Ids {
            ids: window.end.saturating_sub(window.start),
            left: all - next,
            all,
        });
    }
    if next < window.start {
        space.windows.insert(next, (window.start, Window::Ended));
        space.end_window(next);
    }
    space.next_id = window.end;
    let alive = Window::Alive(cluster);
    space.windows.insert(window.start, (window.end, alive));
    let shared = Shared {
        stamp,
        end: window.end,
        used: window.start,
        others: Vec::new(),
        parts: 1,
    };
    space.shared.insert(window.start, shared);
    Ok(())
}

/// As [`give_back`], of a cluster that has used its window only up to `used`.
///
/// # Safety
/// As there; the caller took the window, and nothing has an id of it from `used` on.
pub unsafe fn give_back_window(slots: &[Slot], window: Range<u64>, used: u64) {
    if let Some(space) = space().as_mut()
        && let Some(shared) = space.shared.get_mut(&window.start)
    {
        shared.used = shared.used.max(used);
        shared.parts -= 1;
        if shared.parts == 0 {
            let used = shared.used;
            space.shared.remove(&window.start);
            if space.next_id == window.end {
                space.next_id = used;
                space.windows.insert(window.start, (used, Window::Ended));
            }
            match used == window.start {
                true => drop(space.windows.remove(&used)),
                false => space.end_window(window.start),
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { give_back(slots, std::iter::empty()) };
}

/// A cluster has ended: its slots are free and its ids name nothing any more. `windows` are the
/// first ids of its windows.
///
/// # Safety
/// The caller took the slots, gives them back once, and uses them no more. Their tables hold nulls,
/// and no file is behind their stores.
pub unsafe fn give_back(slots: &[Slot], windows: impl Iterator<Item = u64>) {
    let mut guard = space();
    let Some(space) = guard.as_mut() else { return };
    space
        .free
        .extend(slots.iter().rev().map(|slot| slot.number));
    for base in windows {
        space.end_window(base);
    }
}

/// Which cluster of this process `oid` belongs to; `None` if nobody ever had it.
pub fn owner(oid: Oid) -> Option<Owner> {
    // The lock is released before the caller can drop the cluster, which takes it again.
    let guard = space();
    let (_, (end, window)) = guard.as_ref()?.windows.range(..=oid.0).next_back()?;
    let rest = end.checked_sub(oid.0).filter(|&rest| rest > 0)?;
    let cluster = match window {
        Window::Alive(cluster) => cluster.upgrade(),
        Window::Ended => None,
    };
    Some(Owner { cluster, rest })
}

/// The parts of the cluster that [`owner`] names which live in this process beside the one that it
/// names: there are none but where processes are played by one.
pub fn other_parts(oid: Oid) -> Vec<Arc<Holder>> {
    // The lock is released before the caller can drop one, which takes it again.
    let guard = space();
    let shared = guard
        .as_ref()
        .and_then(|it| it.shared.range(..=oid.0).next_back());
    let parts = shared.into_iter().flat_map(|(_, shared)| &shared.others);
    parts.filter_map(Weak::upgrade).collect()
}

impl Space {
    fn reserve(nodes: usize) -> Result<Space, ReserveError> {
        let Reservation {
            base,
            bits,
            slot_bits,
        } = Reservation::map(nodes)?;
        let index_bits = MAX_INDEX_BITS.min(bits - SLOT_BITS_PER_ID - slot_bits);
        let slots = 1 << slot_bits;
        Ok(Space {
            base,
            index_bits,
            slots,
            opened: (0..slots).map(|_| false).collect(),
            free: (0..slots).rev().collect(),
            next_id: IDS_PER_PAGE.max(CHUNK),
            windows: BTreeMap::new(),
            shared: BTreeMap::new(),
            clusters: 0,
        })
    }

    fn slot(&self, number: u32) -> Slot {
        assert!(number < self.slots, "the process has no slot {number}");
        let offset = u64::from(number) << (self.index_bits + SLOT_BITS_PER_ID);
        // SAFETY: `number` is below `slots`, by the test above, and so many slots lie within the
        // reservation, which `reserve` alone makes and which stays mapped.
        let base = unsafe { self.base.add(offset as usize) };
        Slot {
            number,
            base,
            index_bits: self.index_bits,
        }
    }

    /// Lets slots be touched from here on. They stay open: their tables hold nulls when they are
    /// given back.
    fn open(&mut self, slots: &[Slot]) -> Result<(), String> {
        for slot in slots {
            let opened = &mut self.opened[slot.number as usize];
            if !*opened {
                // SAFETY: the slot is a part of the reservation, of which it has these bytes.
                unsafe { reservation::open(slot.base, 4 * slot.table_bytes())? };
                *opened = true;
            }
        }
        Ok(())
    }

    fn end_window(&mut self, base: u64) {
        let Some((mut end, _)) = self.windows.remove(&base) else {
            return;
        };
        let mut start = base;
        if let Some((&before, &(its_end, Window::Ended))) = self.windows.range(..base).next_back()
            && its_end == base
        {
            self.windows.remove(&before);
            start = before;
        }
        if let Some(&(next_end, Window::Ended)) = self.windows.get(&end) {
            self.windows.remove(&end);
            end = next_end;
        }
        self.windows.insert(start, (end, Window::Ended));
    }
}

/// How many ids a part gets of so many that are left, where it should have at least and at most so
/// many; `None` where there are too few.
pub fn size_of_part(size: Range<u64>, left: u64) -> Option<u64> {
    let share = left / SHARE_OF_LEFT / IDS_PER_PAGE * IDS_PER_PAGE;
    (size.start <= left).then(|| size.end.min(share).max(size.start))
}

/// Gives the pages of `bytes` bytes from `at` on back to the system; they read as zero again.
///
/// # Safety
/// `at` is page-aligned, no file is behind the range, and nothing refers to it any more.
pub(crate) unsafe fn release(at: NonNull<u8>, bytes: u64) {
    #[cfg(not(miri))]
    // SAFETY: the range is the caller's to clear.
    unsafe {
        give_up(at, bytes, libc::MADV_DONTNEED);
    }
    #[cfg(miri)]
    // SAFETY: the range is the caller's to clear.
    unsafe {
        at.as_ptr().write_bytes(0, bytes as usize);
    }
}

/// As [`release`], where a file without a name is behind the range: in all processes that map it.
///
/// # Safety
/// As there; and whoever else maps the file expects that it becomes zeros.
pub(crate) unsafe fn punch(at: NonNull<u8>, bytes: u64) {
    // SAFETY: the range is the caller's to clear.
    unsafe { give_up(at, bytes, libc::MADV_REMOVE) };
}

/// # Safety
/// The range is the caller's to clear.
unsafe fn give_up(at: NonNull<u8>, bytes: u64, advice: libc::c_int) {
    if bytes == 0 {
        return;
    }
    // SAFETY: as the caller promises.
    let failed = unsafe { libc::madvise(at.as_ptr().cast(), bytes as usize, advice) };
    let error = std::io::Error::last_os_error();
    assert_eq!(failed, 0, "releasing shared memory: {error}");
}

/// The first place at or behind `bytes` from `base` where a huge page begins, from `base`.
pub fn huge_from(base: NonNull<u8>, bytes: u64) -> u64 {
    let base = base.addr().get() as u64;
    (base + bytes).next_multiple_of(HUGE_BYTES) - base
}

/// Lets the system use huge pages for `bytes` bytes of the reservation from `at` on; a hint, so
/// that a system without them is as good.
///
/// # Safety
/// They are mapped.
pub unsafe fn advise_huge(at: NonNull<u8>, bytes: u64) {
    // SAFETY: as the caller promises.
    let whole = unsafe { whole_huge_pages(at, bytes) };
    #[cfg(not(miri))]
    if let Some((at, bytes)) = whole {
        // SAFETY: the advice changes no byte and no right of any range, mapped or not.
        let _hint = unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    #[cfg(miri)]
    let _ = whole;
}

/// As [`advise_huge`], of memory of a file without a name, for which most systems have no huge
/// pages but where they are asked for: takes the memory at once.
///
/// # Safety
/// The bytes are mapped.
pub(crate) unsafe fn make_huge(at: NonNull<u8>, bytes: u64) {
    /// Linux has it from 6.1 on.
    const MADV_COLLAPSE: libc::c_int = 25;
    // SAFETY: as the caller promises.
    let whole = unsafe {
        advise_huge(at, bytes);
        whole_huge_pages(at, bytes)
    };
    let Some((at, bytes)) = whole else {
        return;
    };
    for page in (0..bytes).step_by(HUGE_BYTES as usize) {
        // SAFETY: within the range, which is mapped. What is advised takes memory, and
        // changes no byte and no right of any range, mapped or not. A page becomes huge only where
        // a part of it is there.
        unsafe {
            let at = at.as_ptr().add(page).cast();
            let is_there = libc::madvise(at, PAGE_BYTES as usize, libc::MADV_POPULATE_WRITE) == 0;
            if !is_there || libc::madvise(at, HUGE_BYTES as usize, MADV_COLLAPSE) != 0 {
                return;
            }
        }
    }
}

/// The huge pages that lie within a range, if any do.
///
/// # Safety
/// The range is mapped.
unsafe fn whole_huge_pages(at: NonNull<u8>, bytes: u64) -> Option<(NonNull<u8>, usize)> {
    let (start, huge) = (at.addr().get(), HUGE_BYTES as usize);
    let end = start + bytes as usize;
    let first = start.next_multiple_of(huge);
    let bytes = (end / huge * huge).checked_sub(first)?;
    // SAFETY: within the range, which is mapped, or at its end.
    (bytes > 0).then(|| (unsafe { at.add(first - start) }, bytes))
}
