//! `sbrk` and `brk`: the end of a region of shared memory, of which each node has its own.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::deferred::Inside;
use crate::failure::set_errno;
use crate::heap;

/// Bytes of a region. Only the pages that are used exist.
const BYTES: usize = 1 << 30;

/// Where the region of this node begins, and where it ends now.
static BREAK: Mutex<Option<(usize, usize)>> = Mutex::new(None);

/// Moves the end to where `to` says, of the start and the end now. The end before, if it moves.
fn moves(to: impl FnOnce(usize, usize) -> Option<usize>) -> Option<usize> {
    let known = *BREAK.lock().unwrap_or_else(PoisonError::into_inner);
    let (start, end) = match known {
        Some(known) => known,
        None => heap::pages(BYTES).map(|start| (start, start))?,
    };
    let next = to(start, end).filter(|next| (start..=start + BYTES).contains(next));
    let next = next.or_else(|| {
        set_errno(libc::ENOMEM);
        None
    })?;
    if next < end {
        let from = std::ptr::with_exposed_provenance_mut::<u8>(next);
        // SAFETY: bytes of the region, which the program gives up. It finds zeros there later.
        unsafe { from.write_bytes(0, end - next) };
    }
    *BREAK.lock().unwrap_or_else(PoisonError::into_inner) = Some((start, next));
    Some(end)
}

/// `sbrk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sbrk(bytes: isize) -> *mut c_void {
    let _inside = Inside::enter();
    if !heap::is_on() {
        // SAFETY: the caller's, here and below as of the function in the C library.
        return unsafe { libc::sbrk(bytes as libc::intptr_t) };
    }
    let failed = std::ptr::without_provenance_mut(usize::MAX);
    moves(|_, end| end.checked_add_signed(bytes))
        .map_or(failed, std::ptr::with_exposed_provenance_mut)
}

/// `brk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_brk(end: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    if !heap::is_on() {
        // SAFETY: as above.
        return unsafe { libc::brk(end) };
    }
    moves(|_, _| Some(end.expose_provenance())).map_or(-1, |_| 0)
}
