//! The end of this process, where all processes of the run end at once.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// The exit code with which the run ends at once, and [`ENDS`] beside it.
static ENDING: AtomicU64 = AtomicU64::new(0);
const ENDS: u64 = 1 << 32;

/// From here on the run ends with this exit code, whatever fails meanwhile.
pub(crate) fn prepare(code: c_int) {
    ENDING.store(ENDS | u64::from(code as u32), Ordering::SeqCst);
}

/// The exit code with which the run ends at once, if it does.
pub(crate) fn code() -> Option<c_int> {
    let ending = ENDING.load(Ordering::SeqCst);
    (ending & ENDS != 0).then_some(ending as u32 as c_int)
}

/// Where the run ends at once, this process does, without a word.
pub(crate) fn end_quietly() {
    if let Some(code) = code() {
        end_process(code);
    }
}

/// Writes what has been printed on all files, also those that other threads use now, and ends the
/// process.
pub(crate) fn end_process(code: c_int) -> ! {
    unsafe extern "C" {
        /// What the C library does itself at the end of a process.
        fn _IO_cleanup() -> c_int;
    }
    // SAFETY: they take nothing, and a number. The first one waits for no lock of a file.
    unsafe {
        _IO_cleanup();
        libc::_exit(code)
    }
}
