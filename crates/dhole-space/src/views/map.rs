//! Where views are mapped: one reservation of the process, in which each slot has four parts of
//! one size, a power of two. So two bits of an address say which view it belongs to, as in DOSA.

use std::io;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};

use dhole_model::unpoisoned;

use super::View;
use crate::fault;
use crate::mapping;
use crate::protection::Protection;
use crate::shared_file::SharedFile;
use crate::space::{self, STAGGER, Slot};

/// The log2 of the most bytes that a view has.
const MOST_BITS: u32 = 36;

/// The log2 of the fewest bytes that are of use.
const LEAST_BITS: u32 = 28;

/// The process's address space for views.
struct Arena {
    base: NonNull<u8>,
    /// The log2 of the bytes of a view.
    bits: u32,
    bytes: usize,
}

// SAFETY: an address; what may be done there is the business of the slots' holders.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

static ARENA: OnceLock<Arena> = OnceLock::new();

/// Whether an address belongs to a view of some node. May be called in a signal handler.
fn contain(address: usize) -> bool {
    let arena = ARENA.get();
    arena.is_some_and(|arena| address.wrapping_sub(arena.base.addr().get()) < arena.bytes)
}

/// The view to which a negative handle leads.
#[inline]
pub fn view_of(handle: *mut u8) -> View {
    let bits = ARENA.get().map_or(0, |arena| arena.bits);
    match handle.addr().wrapping_neg() >> bits & 3 {
        1 => View::Read,
        2 => View::Write,
        _ => View::Nothing,
    }
}

/// The views of one node's store.
#[derive(Clone, Copy, Debug)]
pub struct Views {
    base: NonNull<u8>,
    bits: u32,
}

// SAFETY: an address, as a slot is.
unsafe impl Send for Views {}
// SAFETY: as above.
unsafe impl Sync for Views {}

impl Views {
    /// Maps the views of a slot.
    ///
    /// # Safety
    /// It has none, and is no other cluster's.
    pub unsafe fn map(slot: &Slot) -> io::Result<Views> {
        fault::install(contain)?;
        let arena = arena(slot)?;
        let at = (slot.number() as usize) << (arena.bits + 2);
        assert!(
            at + (4 << arena.bits) <= arena.bytes,
            "the arena has room for every slot"
        );
        // SAFETY: within the arena, by the test above.
        let base = unsafe { arena.base.add(at) };
        let views = Views {
            base,
            bits: arena.bits,
        };
        // SAFETY: the caller promises that the slot has no views.
        if let Err(error) = unsafe { views.show_own() } {
            // SAFETY: nobody else knows the views, which are not returned.
            unsafe { views.unmap() };
            return Err(error);
        }
        Ok(views)
    }

    /// The views show a new file.
    ///
    /// # Safety
    /// Nothing refers to the store.
    unsafe fn show_own(&self) -> io::Result<()> {
        let file = SharedFile::make(c"dhole", 1 << self.bits)?;
        // SAFETY: as the caller promises.
        unsafe { self.map_file(&file) }
    }

    /// The views show the beginning of this file, which is as long as one of them. On an error they
    /// show another new one.
    ///
    /// # Errors
    /// The system's own.
    ///
    /// # Safety
    /// Nothing refers to the store.
    pub(crate) unsafe fn show(&self, file: &SharedFile) -> io::Result<()> {
        // SAFETY: as the caller promises.
        unsafe {
            self.map_file(file).inspect_err(|_| {
                // One of the two views alone may show it.
                self.show_own().expect("a file in place of the one before");
            })
        }
    }

    /// # Safety
    /// Nothing refers to the store.
    unsafe fn map_file(&self, file: &SharedFile) -> io::Result<()> {
        let view = 0..1 << self.bits;
        assert!(view.end <= file.bytes(), "a file as long as a view");
        // SAFETY: parts of the slot's place in the arena, which is reserved. Nothing refers to
        // them, as the caller promises.
        unsafe {
            let (reads, writes) = (Protection::ReadOnly, Protection::Open);
            mapping::map_undumped(self.part(View::Read), file, view.clone(), reads)?;
            mapping::map_undumped(self.part(View::Write), file, view, writes)
        }
    }

    /// Where the store begins in the file.
    pub(crate) fn begins(&self) -> u64 {
        STAGGER[1]
    }

    #[inline]
    fn part(&self, view: View) -> NonNull<u8> {
        // SAFETY: a slot's place in the arena has four parts of this size (`map` alone makes views,
        // of a whole place).
        unsafe { self.base.add((view as usize) << self.bits) }
    }

    /// Where the store starts: in the view through which the runtime reads and writes, too.
    pub fn store(&self) -> NonNull<u8> {
        // SAFETY: a view is larger.
        unsafe { self.part(View::Write).add(STAGGER[1] as usize) }
    }

    /// Bytes of the store.
    pub fn store_bytes(&self) -> u64 {
        (1 << self.bits) - STAGGER[1]
    }

    /// Where something in the store is in this view.
    #[inline]
    pub fn of(&self, object: NonNull<u8>, view: View) -> NonNull<u8> {
        let writable = self.part(View::Write).addr().get();
        let within = object.addr().get().wrapping_sub(writable) <= 1 << self.bits;
        assert!(within, "an object is in the store");
        let back = (View::Write as usize - view as usize) << self.bits;
        // SAFETY: the object is in the writable view, by the test above, and the part of this view
        // lies so far before that.
        unsafe { object.sub(back) }
    }

    /// Gives pages of the store back to the system; they read as zero again.
    ///
    /// # Safety
    /// `at` is page-aligned, the range lies within the store, and nothing refers to it any more.
    pub unsafe fn release(&self, at: NonNull<u8>, bytes: u64) {
        // SAFETY: the range is the caller's to clear, in all views.
        unsafe { space::punch(at, bytes) };
    }

    /// Gives everything back to the system.
    ///
    /// # Safety
    /// Nothing refers to the store any more, and nobody uses any copy of these views.
    pub unsafe fn unmap(&self) {
        // SAFETY: the slot's place in the arena is reserved again; nothing refers to what was
        // mapped there, as the caller promises.
        let unmapped = unsafe { reserved(Some(self.base), 4 << self.bits) };
        unmapped.expect("mapping over what is mapped takes nothing");
    }
}

/// The reservation, made at first, for as many slots as there are.
fn arena(slot: &Slot) -> io::Result<&'static Arena> {
    static RESERVING: Mutex<()> = Mutex::new(());
    let _one = unpoisoned::lock(&RESERVING);
    if let Some(arena) = ARENA.get() {
        return Ok(arena);
    }
    let most = (slot.store_bytes().ilog2() - 2).min(MOST_BITS);
    let mut refused = io::Error::from_raw_os_error(libc::ENOMEM);
    for bits in (LEAST_BITS..=most).rev() {
        let of_slot = 4_usize << bits;
        let bytes = of_slot * space::slots() as usize;
        // SAFETY: at an address of the system's choice, so it touches nothing else.
        match unsafe { reserved(None, bytes + of_slot) } {
            Ok(at) => {
                let to_round = at.addr().get().next_multiple_of(of_slot) - at.addr().get();
                // SAFETY: a slot more than is needed was reserved.
                let base = unsafe { at.add(to_round) };
                return Ok(ARENA.get_or_init(|| Arena { base, bits, bytes }));
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Address space that nobody may touch.
///
/// # Safety
/// If `at` is given, so many bytes from there on are the caller's to map, and nothing refers to
/// what is there.
unsafe fn reserved(at: Option<NonNull<u8>>, bytes: usize) -> io::Result<NonNull<u8>> {
    let fixed = at.map_or(0, |_| libc::MAP_FIXED);
    let at = at.map_or(std::ptr::null_mut(), NonNull::as_ptr);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: as the caller promises.
    result(unsafe { libc::mmap(at.cast(), bytes, libc::PROT_NONE, flags, -1, 0) })
}

fn result(at: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    match NonNull::new(at.cast()) {
        Some(mapped) if at != libc::MAP_FAILED => Ok(mapped),
        _ => Err(io::Error::last_os_error()),
    }
}
