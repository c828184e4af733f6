//! Many words at once, by the processor's string move. The compiler takes it for a black box that
//! reads and writes memory, so that another process which writes the same words makes no undefined
//! behaviour, as a plain copy would.
#![cfg(all(target_arch = "x86_64", not(loom)))]
#![expect(unsafe_code, reason = "an instruction, to which words are addresses")]

use std::arch::asm;

use crate::atomic::AtomicU64;

/// The fewest words for which it is faster than word by word.
pub(super) const LEAST: usize = 64;

/// Writes `from`, in the order of its bytes.
///
/// # Panics
/// When the two are not equally long.
pub(super) fn into_words(to: &[AtomicU64], from: &[[u8; 8]]) {
    assert_eq!(to.len(), from.len());
    // SAFETY: `to` is as long as `from`, by the test above, and holds atomics, which may be written
    // through a shared reference. The two do not overlap: of bytes that are borrowed as plain ones
    // none are borrowed as atomics.
    unsafe {
        move_bytes(
            to.as_ptr() as *mut u8,
            from.as_ptr().cast(),
            size_of_val(from),
        )
    };
}

/// Reads `to`, in the order of its bytes.
///
/// # Panics
/// When the two are not equally long.
pub(super) fn out_of_words(from: &[AtomicU64], to: &mut [[u8; 8]]) {
    assert_eq!(to.len(), from.len());
    let bytes = size_of_val(to);
    // SAFETY: `to` is as long as `from`, by the test above, and borrowed mutably, so by nobody
    // else.
    unsafe { move_bytes(to.as_mut_ptr().cast(), from.as_ptr().cast(), bytes) };
}

/// # Safety
/// `bytes` bytes may be read at `from` and written at `to`, and the two do not overlap.
unsafe fn move_bytes(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's promise. The direction flag is clear wherever Rust code runs, the
    // registers that the instruction moves on are given up, and no stack is used.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}
