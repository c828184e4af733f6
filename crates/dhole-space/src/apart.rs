//! Addresses for what this process maps for itself, which the system gives nobody unasked.
//!
//! In programs whose pointers are addresses on all nodes, a node may follow an address that another
//! one has mapped. Where the system chooses, processes map at similar addresses. So what is large
//! here lies apart from them: such an access finds nothing, and faults.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Above all places of raw memory, and below all that the system chooses by itself on x86-64.
const FIRST: usize = 0x3200_0000_0000;
const END: usize = 0x7000_0000_0000;

/// Where a huge page begins.
const ALIGN: usize = 2 << 20;

/// The next free address; 0 where the system chooses.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// From here on memory is mapped apart.
pub(crate) fn begin() {
    // A second call changes nothing.
    let _begun = NEXT.compare_exchange(0, FIRST, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether memory is mapped apart.
pub(crate) fn is_on() -> bool {
    NEXT.load(Ordering::Relaxed) != 0
}

/// Where so many bytes are best mapped; null where the system chooses.
pub(crate) fn hint(bytes: usize) -> *mut libc::c_void {
    // A page more, so that no two lie side by side.
    let room = bytes.saturating_add(1).next_multiple_of(ALIGN);
    let taken = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
        let end = next.checked_add(room)?;
        (next != 0 && end <= END).then_some(end)
    });
    std::ptr::without_provenance_mut(taken.unwrap_or(0))
}
