//! How a handle is followed, under either detector.
//!
//! | handle | means |
//! |---|---|
//! | positive | the address of the object, which may be touched: all there is under `check` |
//! | null | it may not be touched, or the worker must look elsewhere: the slow path |
//! | negative | the address, negated, of the object in one of the node's [views](crate::views) |
//!
//! So the one test of a hit under `check` tells the detectors apart as well. Under `vm` an address
//! is *touched* before it is followed: one instruction that reads, or writes back, the first byte,
//! and that faults where the view does not allow it. The addresses of these instructions, and of
//! where to go on after a fault, stand in the link section `dhole_touch`, and the handler of
//! [faults](crate::fault) leads from one to the other.

use std::ptr::NonNull;

/// Where a handle leads, which may be touched. Not a `NonNull`: where the ways of a hit meet, the
/// compiler would look for the null that stands for no `NonNull` once more.
#[derive(Clone, Copy)]
pub(crate) struct Found(*mut u8);

impl Found {
    /// The address.
    #[inline(always)]
    pub(crate) fn object(self) -> NonNull<u8> {
        // SAFETY: it was made of a handle that is not null, in `to_read` or `to_write`.
        unsafe { NonNull::new_unchecked(self.0) }
    }
}

/// Where a handle leads, if what is there may be read.
#[inline(always)]
pub(crate) fn to_read(handle: *mut u8) -> Option<Found> {
    match handle.addr().cast_signed() {
        1.. => Some(Found(handle)),
        0 => None,
        _ => touched(handle, false),
    }
}

/// Where a handle leads, if what is there may be written.
#[inline(always)]
pub(crate) fn to_write(handle: *mut u8) -> Option<Found> {
    match handle.addr().cast_signed() {
        1.. => Some(Found(handle)),
        0 => None,
        _ => touched(handle, true),
    }
}

/// The handle that leads to `object` in a view.
pub(crate) fn negated(object: *mut u8) -> *mut u8 {
    std::ptr::without_provenance_mut(object.expose_provenance().wrapping_neg())
}

/// Touches what a negative handle leads to; `None` where that faulted.
///
/// The compiler is told that the touch may read (or write) any memory, and knows nothing of the
/// address that comes out. So whatever was written before, through another view, is there before
/// the touch, and what is read or written after it, through this one, comes after: the views are
/// one memory for the program although the compiler takes them for several.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn touched(handle: *mut u8, writes: bool) -> Option<Found> {
    macro_rules! touch {
        ($at:ident, $instruction:literal, $($option:ident),*) => {
            std::arch::asm!(
                concat!("2: ", $instruction),
                ".pushsection dhole_touch,\"aR\",@progbits",
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
    // SAFETY: a negative handle is the negated address of a byte of an object in a view of this
    // node. Reading it reads a valid byte or faults, and then the handler leads to the label. As
    // for writing: where the view allows it the worker may write the object, for it borrows the
    // token mutably, and the byte stays what it is.
    unsafe {
        match writes {
            true => touch!(at, "or byte ptr [{at}], 0", nostack),
            false => touch!(at, "test byte ptr [{at}], 0", nostack, readonly),
        }
    }
    Some(Found(at))
}

/// There are no negative handles where there are no views.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
fn touched(_: *mut u8, _: bool) -> Option<Found> {
    None
}
