//! A thread of the program from its beginning to its end: `pthread_exit`, and values by keys.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::deferred::Inside;
use crate::running::{self, Runs};
use crate::{exit, keys};

/// Values of a thread by keys, each with the use of its key in which it was set.
type Values = BTreeMap<c_uint, (u64, *mut c_void)>;

/// What a thread of a program runs.
pub(crate) type Entry = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

pub(crate) type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

thread_local! {
    /// Whether this thread was started by the program.
    static IS_STARTED: Cell<bool> = const { Cell::new(false) };
    static VALUES: RefCell<Values> = const { RefCell::new(BTreeMap::new()) };
}

/// What unwinds a thread after `pthread_exit`.
struct ThreadExit(*mut c_void);

// SAFETY: a number to whoever carries it; the program follows it.
unsafe impl Send for ThreadExit {}

/// Runs a thread of the program, and what its values' destructors are.
pub(crate) fn run_thread(run: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let _runs = Runs::new();
    let was = IS_STARTED.replace(true);
    let value = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => value,
        Err(other) => match other.downcast::<ThreadExit>() {
            Ok(exit) => exit.0,
            Err(other) => resume_unwind(other),
        },
    };
    running::close();
    for _ in 0..4 {
        let values = VALUES.take();
        for (key, (use_of, value)) in values {
            let destructor = keys::destructor(key, use_of).filter(|_| !value.is_null());
            let Some(destructor) = destructor else {
                continue;
            };
            let destructor = std::ptr::with_exposed_provenance::<()>(destructor as usize);
            // SAFETY: a function of the program, which lies at the same address in all processes.
            let destructor = unsafe { std::mem::transmute::<*const (), Destructor>(destructor) };
            // SAFETY: the program's, which takes the values of its key.
            unsafe { destructor(value) };
        }
    }
    IS_STARTED.set(was);
    value
}

/// `pthread_exit`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_pthread_exit(value: *mut c_void) -> ! {
    running::close();
    if IS_STARTED.get() {
        resume_unwind(Box::new(ThreadExit(value)));
    }
    exit::exit_main()
}

/// `pthread_key_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_key_create(
    into: *mut c_uint,
    destructor: Option<Destructor>,
) -> c_int {
    let _inside = Inside::enter();
    let destructor = destructor.map_or(0, |it| (it as *const ()).expose_provenance());
    match keys::make(destructor as u64) {
        Some(key) => {
            // SAFETY: the caller's.
            unsafe { into.write(key) };
            0
        }
        None => libc::EAGAIN,
    }
}

/// `pthread_key_delete`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_key_delete(key: c_uint) -> c_int {
    let _inside = Inside::enter();
    match keys::delete(key) {
        true => 0,
        false => libc::EINVAL,
    }
}

/// `pthread_setspecific`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_setspecific(key: c_uint, value: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    let Some(use_of) = keys::use_of(key) else {
        return libc::EINVAL;
    };
    VALUES.with_borrow_mut(|values| values.insert(key, (use_of, value)));
    0
}

/// `pthread_getspecific`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_getspecific(key: c_uint) -> *mut c_void {
    let _inside = Inside::enter();
    let value = VALUES.with_borrow(|values| values.get(&key).copied());
    match value {
        Some((use_of, value)) if keys::is_on(key, use_of) => value,
        _ => std::ptr::null_mut(),
    }
}
