//! Words about what cannot be done.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use dhole::memory::threads::ThreadError;
use dhole::memory::{CANNOT_ACCESS, MemoryAccessError, MemoryError};

use crate::{ending, site};

thread_local! {
    /// What this thread was refused last.
    static LAST: RefCell<CString> = RefCell::default();
    /// This thread tells the program of a mistake.
    static TELLS: Cell<bool> = const { Cell::new(false) };
}

/// What a program wants called before its process ends because of a mistake.
type OnError = unsafe extern "C" fn(*const c_char);

static ON_ERROR: Mutex<Option<OnError>> = Mutex::new(None);

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

/// Tells the program of a mistake after which its process ends, once.
pub(crate) fn tell(words: &str) {
    let told = ON_ERROR
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(told) = told {
        let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
        TELLS.set(true);
        // SAFETY: the program's, which takes a string (`dh_on_error`).
        unsafe { told(words.as_ptr()) };
        TELLS.set(false);
    }
}

/// Whether this thread is in the function that the program wants called then. `exit` ends the
/// process there at once, for the thread may be anywhere.
pub(crate) fn is_telling() -> bool {
    TELLS.get()
}

/// The exit code of a process whose run has failed, on whichever node: that of an access that
/// cannot be made, for either may be the first to say so.
pub(crate) const RUN_HAS_FAILED: c_int = CANNOT_ACCESS;

/// An access of the program cannot be made.
pub(crate) fn cannot_access(error: &MemoryAccessError) -> ! {
    say(error);
    // SAFETY: the call is allowed in a handler.
    unsafe { libc::_exit(RUN_HAS_FAILED) }
}

/// A mistake of the program after which it cannot go on.
pub(crate) fn fatal(why: &dyn Display) -> ! {
    say(why);
    // SAFETY: it takes nothing.
    unsafe { libc::abort() }
}

/// Says why the process ends, unless the whole run ends at once.
fn say(why: &dyn Display) {
    ending::end_quietly();
    let words = site::in_words(&why.to_string());
    tell(&words);
    let words = format!("error: {words}\n");
    // SAFETY: the bytes are the string's; the call is allowed in a handler.
    unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
}

/// What a call could not do.
pub(crate) trait Refused: Display {
    /// Whether the run has failed, and not the call alone.
    fn has_failed_run(&self) -> bool;
}

impl Refused for ThreadError {
    fn has_failed_run(&self) -> bool {
        ThreadError::has_failed_run(self)
    }
}

impl Refused for MemoryError {
    fn has_failed_run(&self) -> bool {
        MemoryError::has_failed_run(self)
    }
}

/// The program cannot go on without what was being done: because of a mistake of its own, or
/// because the run has failed.
pub(crate) fn cannot(doing: &dyn Display, why: &dyn Refused) -> ! {
    let words = format!("{doing}: {why}");
    if !why.has_failed_run() {
        fatal(&words);
    }
    say(&words);
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(RUN_HAS_FAILED) }
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

/// Has a function called with words before the process ends because of a mistake, or because an
/// access cannot be made. Null has none called.
#[unsafe(no_mangle)]
pub extern "C" fn dh_on_error(told: Option<OnError>) {
    *ON_ERROR.lock().unwrap_or_else(PoisonError::into_inner) = told;
}
