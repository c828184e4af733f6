//! Asking the processor for memory that is needed soon.
#![cfg_attr(
    all(target_arch = "x86_64", not(loom)),
    expect(unsafe_code, reason = "an instruction, to which a word is an address")
)]

use crate::atomic::AtomicU64;

/// Has the line of a word fetched, in the background, to be written soon. That is a hint: nothing
/// is read or written by it.
#[inline(always)]
pub(super) fn to_write(word: &AtomicU64) {
    // SAFETY: the instruction changes no memory, register or flag, and faults nowhere; processors
    // that do not know it take it for one that does nothing.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    unsafe {
        std::arch::asm!(
            "prefetchw [{word}]",
            word = in(reg) word,
            options(readonly, nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = word;
}
