//! How a handle is followed, under either detector.
//!
//! | handle | means |
//! |---|---|
//! | positive | the address of the object, which may be touched: all there is under `check` |
//! | null | it may not be touched, or the worker must look elsewhere: the slow path |
//! | negative | the address, negated, of the object in one of the node's [views](crate::Views) |
//! | negative and even further from 0 | the address of an object that is [expected] to be written, or read: the slow path notes that, without a call; or of one that is [gated]: a call opens its gate |
//!
//! So the one test of a hit under `check` tells the detectors apart as well. Under `vm` an address
//! is *touched* before it is followed: one instruction that reads, or writes back, the first byte,
//! and that faults where the view does not allow it. The addresses of these instructions, and of
//! where to go on after a fault, stand in the link section `dhole_exceptions`, and the handler of
//! faults leads from one to the other.

use std::ptr::NonNull;

#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where a handle leads, which may be touched. Not a `NonNull`: where the ways of a hit meet, the
/// compiler would look for the null that stands for no `NonNull` once more.
#[derive(Clone, Copy)]
pub struct Found(*mut u8);

impl Found {
    /// The address.
    #[inline(always)]
    pub fn object(self) -> NonNull<u8> {
        // SAFETY: this type is made in this module alone, of an address that was found not to be 0.
        unsafe { NonNull::new_unchecked(self.0) }
    }
}

/// The place of a handle, which a node's worker and whoever has the node's lock change.
///
/// The worker, which computes, [notes](HandlePlace::note) its first write of an object that is
/// [`expected`] to be written, while another thread [withdraws](HandlePlace::withdraw) the object.
/// Each exchanges the handle that it has loaded, so one of the two finds it changed. Relaxed is
/// enough: before the exchange the worker wrote the bytes in a call's hold of the lock, or before
/// that; after an exchange in vain it takes the lock.
#[repr(transparent)]
pub struct HandlePlace(AtomicPtr<u8>);

impl HandlePlace {
    /// The handle, or null.
    #[inline(always)]
    pub fn load(&self) -> *mut u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Puts a handle there, whatever was there.
    #[inline]
    pub fn set(&self, handle: *mut u8) {
        self.0.store(handle, Ordering::Relaxed);
    }

    /// For the worker: notes the write of an object that is expected to be written; whether it was,
    /// and is not withdrawn.
    #[inline]
    pub fn note(&self) -> bool {
        let handle = self.load();
        is_expected(handle) && !is_gated(handle) && self.exchange(handle, noted(handle))
    }

    /// Makes the handle of an object null that is expected to be written; whether it was, and its
    /// write is not noted. Or that of one that is gated, which its worker does not change.
    #[inline]
    pub fn withdraw(&self) -> bool {
        let handle = self.load();
        is_expected(handle) && self.exchange(handle, std::ptr::null_mut())
    }

    fn exchange(&self, from: *mut u8, to: *mut u8) -> bool {
        let relaxed = Ordering::Relaxed;
        self.0.compare_exchange(from, to, relaxed, relaxed).is_ok()
    }
}

/// Where a handle leads, if what is there may be read.
///
/// # Safety
/// A negative handle that is not [`expected`] is one that [`negated`] made, of the first byte of an
/// object in a [view](crate::Views) that is mapped. Where the view lets it be read the caller may.
#[inline(always)]
pub unsafe fn to_read(handle: *mut u8) -> Option<Found> {
    match handle.addr().cast_signed() {
        1.. => Some(Found(handle)),
        0 => None,
        _ if is_expected(handle) => None,
        // SAFETY: the caller's promise.
        _ => unsafe { touched(handle, false) },
    }
}

/// Where a handle leads, if what is there may be written.
///
/// # Safety
/// As for [`to_read`]; and where the view lets the object be written the caller may, who alone
/// accesses it.
#[inline(always)]
pub unsafe fn to_write(handle: *mut u8) -> Option<Found> {
    match handle.addr().cast_signed() {
        1.. => Some(Found(handle)),
        0 => None,
        _ if is_expected(handle) => None,
        // SAFETY: the caller's promise.
        _ => unsafe { touched(handle, true) },
    }
}

/// The handle that leads to `object` in a view.
#[inline]
pub fn negated(object: *mut u8) -> *mut u8 {
    std::ptr::without_provenance_mut(object.expose_provenance().wrapping_neg())
}

/// The bit that tells the handle of an object that is expected to be written, or read, from its
/// address: no address has it.
const EXPECTED: usize = 1 << (usize::BITS - 1);

/// The handle of an object that its worker is expected to write, or read, and may, once it has
/// [noted] that.
#[inline]
pub fn expected(object: *mut u8) -> *mut u8 {
    object.map_addr(|address| address | EXPECTED)
}

/// The bit that tells a gated handle from one that is only expected.
const GATED: usize = 1 << (usize::BITS - 3);

/// The write handle of an object that its worker may write once the [gate](crate::gate) of its
/// chunk is open. It is [expected] to, and notes nothing.
#[inline]
pub fn gated(object: *mut u8) -> *mut u8 {
    object.map_addr(|address| address | EXPECTED | GATED)
}

/// The handle once the gate is open.
#[inline]
pub fn ungated(handle: *mut u8) -> *mut u8 {
    handle.map_addr(|address| address & !(EXPECTED | GATED))
}

/// Whether it is such a handle.
#[inline]
pub fn is_gated(handle: *mut u8) -> bool {
    handle.addr() >> (usize::BITS - 3) == 0b101
}

/// Whether it is the handle of an object that is expected to be written or read, or gated. A
/// negated address is close to 0, and so has both of the two highest
/// bits.
#[inline]
pub fn is_expected(handle: *mut u8) -> bool {
    handle.addr() >> (usize::BITS - 2) == 0b10
}

/// The handle once that is noted.
#[inline]
pub fn noted(handle: *mut u8) -> *mut u8 {
    handle.map_addr(|address| address & !EXPECTED)
}

/// Touches what a negative handle leads to; `None` where that faulted.
///
/// The compiler is told that the touch may read (or write) any memory, and knows nothing of the
/// address that comes out. So whatever was written before, through another view, is there before
/// the touch, and what is read or written after it, through this one, comes after: the views are
/// one memory for the program although the compiler takes them for several.
///
/// # Safety
/// As for [`to_read`], or [`to_write`] where it `writes`.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn touched(handle: *mut u8, writes: bool) -> Option<Found> {
    macro_rules! touch {
        ($at:ident, $instruction:literal, $($option:ident),*) => {
            std::arch::asm!(
                concat!("2: ", $instruction),
                ".pushsection dhole_exceptions,\"aR\",@progbits",
                ".balign 4",
                ".long 2b - .",
                ".long {missed} - .",
                ".popsection",
                at = in(reg) $at,
                missed = label { return None },
                options($($option),*)
            )
        };
    }
    let at: *mut u8 = std::ptr::with_exposed_provenance_mut(handle.addr().wrapping_neg());
    // SAFETY: a negative handle is the negated address of the first byte of an object in a mapped
    // view (the caller's promise). Reading it reads a valid byte or faults, and then the handler,
    // which views are not mapped without (`Views::map`), leads to the label. As for writing: where
    // the view allows it the caller may write the object, and the byte stays what it is.
    unsafe {
        match writes {
            true => touch!(at, "or byte ptr [{at}], 0", nostack),
            false => touch!(at, "test byte ptr [{at}], 0", nostack, readonly),
        }
    }
    Some(Found(at))
}

/// There are no negative handles where there are no views.
///
/// # Safety
/// None.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
unsafe fn touched(_: *mut u8, _: bool) -> Option<Found> {
    None
}

#[cfg(all(test, loom))]
mod model {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// What the worker or the other thread does wrong.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mistake {
        Nothing,
        /// The worker stores the handle instead of exchanging it.
        NoteByStore,
        /// The other thread stores null.
        WithdrawByStore,
    }

    /// The place of a handle, and the object to which it leads.
    struct Shared {
        place: HandlePlace,
        object: UnsafeCell<u64>,
        mistake: Mistake,
    }

    impl Shared {
        /// As an exchange does, but by a load and a store.
        fn stores(&self, to: impl Fn(*mut u8) -> *mut u8) -> bool {
            let handle = self.place.load();
            let expected = is_expected(handle);
            if expected {
                self.place.set(to(handle));
            }
            expected
        }

        /// The worker writes the object, if it may.
        fn write(&self) -> bool {
            let is_mine = match self.mistake {
                Mistake::NoteByStore => self.stores(noted),
                _ => self.place.note(),
            };
            if is_mine {
                // SAFETY: the note is the worker's, and loom finds out whether that is enough.
                self.object.with_mut(|object| unsafe { *object = 7 });
            }
            is_mine
        }

        /// Another thread reads the object for a node that asks for it, if it may.
        fn read(&self) -> bool {
            let is_mine = match self.mistake {
                Mistake::WithdrawByStore => self.stores(|_| std::ptr::null_mut()),
                _ => self.place.withdraw(),
            };
            if is_mine {
                // SAFETY: as above.
                let read = self.object.with(|object| unsafe { *object });
                assert_eq!(read, 5, "what was there before the write");
            }
            is_mine
        }
    }

    fn explore(mistake: Mistake) {
        loom::model(move || {
            let object: *mut u8 = std::ptr::without_provenance_mut(64);
            let shared = Arc::new(Shared {
                place: HandlePlace(AtomicPtr::new(expected(object))),
                object: UnsafeCell::new(5),
                mistake,
            });
            let other = Arc::clone(&shared);
            let withdraws = thread::spawn(move || other.read());
            let is_written = shared.write();
            let is_withdrawn = withdraws.join().unwrap();
            assert_ne!(is_written, is_withdrawn, "one of the two");
            let left = if is_written {
                object
            } else {
                std::ptr::null_mut()
            };
            assert_eq!(shared.place.load(), left);
        });
    }

    #[test]
    fn an_object_is_either_written_or_withdrawn() {
        explore(Mistake::Nothing);
    }

    #[test]
    #[should_panic]
    fn a_note_that_is_stored_is_caught() {
        explore(Mistake::NoteByStore);
    }

    #[test]
    #[should_panic]
    fn a_withdrawal_that_is_stored_is_caught() {
        explore(Mistake::WithdrawByStore);
    }
}
