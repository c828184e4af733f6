//! Notices that a process gives when it exits by itself.
#![expect(unsafe_code, reason = "the C library knows when a process exits")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use dhole_model::unpoisoned::lock;

type Last = Box<dyn FnOnce() + Send>;

/// What is still to be done; none until the C library was asked to do it.
static ALL: Mutex<Option<Vec<Last>>> = Mutex::new(None);

/// Has `last` done when this process exits: when `main` has returned, or somebody calls `exit`. It
/// is not done when a signal or an abort ends the process. The other threads are still there, and
/// nothing may wait for long, or for what the thread that exits may hold.
pub fn at_exit(last: impl FnOnce() + Send + 'static) {
    let mut all = lock(&ALL);
    if all.is_none() {
        // SAFETY: the function takes no argument and does not unwind.
        unsafe { libc::atexit(do_all) };
    }
    all.get_or_insert_default().push(Box::new(last));
}

/// What came last is done first, as the C library does it.
extern "C" fn do_all() {
    let all = lock(&ALL).as_mut().map(std::mem::take);
    for last in all.into_iter().flatten().rev() {
        // There is nobody left to tell.
        let _ = catch_unwind(AssertUnwindSafe(last));
    }
}
