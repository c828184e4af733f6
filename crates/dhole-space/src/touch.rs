//! How a handle is followed, under either detector.
//!
//! | handle | means |
//! |---|---|
//! | positive | the address of the object, which may be touched: all there is under `check` |
//! | null | it may not be touched, or the worker must look elsewhere: the slow path |
//! | negative | the address, negated, of the object in one of the node's [views](crate::Views) |
//! | negative and even further from 0 | the address of an object that is [expected] to be written, or read: the slow path notes that, without a call |
//!
//! So the one test of a hit under `check` tells the detectors apart as well. Under `vm` an address
//! is *touched* before it is followed: one instruction that reads, or writes back, the first byte,
//! and that faults where the view does not allow it. The addresses of these instructions, and of
//! where to go on after a fault, stand in the link section `dhole_exceptions`, and the handler of
//! faults leads from one to the other.

use std::ptr::NonNull;

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

/// Whether it is such a handle. A negated address is close to 0, and so has both of the two highest
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
