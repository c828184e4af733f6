//! Words about what cannot be done.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;

thread_local! {
    /// What this thread was refused last.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the words for `dh_error`, and `errno`.
pub(crate) fn refused(why: &dyn Display, errno: c_int) {
    let words = CString::new(why.to_string().replace('\0', " "));
    LAST.with(|last| last.replace(words.unwrap_or_default()));
    set_errno(errno);
}

/// Sets `errno` of this thread.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// A mistake of the program after which it cannot go on.
pub(crate) fn fatal(why: &dyn Display) -> ! {
    let words = format!("error: {why}\n");
    // SAFETY: the bytes are the string's.
    unsafe {
        libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
        libc::abort()
    }
}

/// What was refused last to this thread, in words; empty if nothing was. They are valid until the
/// thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn dh_error() -> *const c_char {
    LAST.with(|last| {
        let pointer: *const CStr = last.borrow().as_c_str();
        pointer.cast()
    })
}
