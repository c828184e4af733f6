//! How a program ends: by `exit`, or by returning from `main`. What it has registered with `atexit`
//! runs while its memory is still there.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// What unwinds the program's `main` after a call of `exit`.
struct Exit(c_int);

thread_local! {
    /// Whether this thread runs the program's `main`.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// What is called when the program ends, the last first.
static AT_EXIT: Mutex<Vec<extern "C-unwind" fn()>> = Mutex::new(Vec::new());

/// Runs the program's `main`, and returns its exit code: that of `exit`, or what it returned.
pub(crate) fn run_main(main: impl FnOnce() -> c_int) -> c_int {
    IS_MAIN.set(true);
    let mut code = caught(main);
    loop {
        let last = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(last) = last else { break };
        code = caught(|| {
            last();
            code
        });
    }
    IS_MAIN.set(false);
    flush();
    code
}

fn caught(run: impl FnOnce() -> c_int) -> c_int {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(code) => code,
        Err(other) => match other.downcast::<Exit>() {
            Ok(exit) => exit.0,
            Err(other) => resume_unwind(other),
        },
    }
}

/// Writes what has been printed on standard output. Other files are left: another thread may be
/// reading from one, and has its lock until something comes.
pub(crate) fn flush_output() {
    // SAFETY: the C library's own, which it makes before the program starts.
    unsafe { libc::fflush(stdout) };
}

unsafe extern "C" {
    static mut stdout: *mut libc::FILE;
}

/// Writes what the program has printed on all files.
fn flush() {
    // SAFETY: null is all files.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// `exit`. On the thread that runs the program's `main` it ends the run on all nodes; on another
/// thread it ends the node, and so the run.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_exit(code: c_int) -> ! {
    if IS_MAIN.get() {
        resume_unwind(Box::new(Exit(code & 0xff)));
    }
    flush();
    // SAFETY: it takes a number.
    unsafe { libc::_exit(code) }
}

/// `atexit`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_atexit(last: Option<extern "C-unwind" fn()>) -> c_int {
    let mut all = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(last);
    0
}
