//! A thread of the program from its beginning to its end: `pthread_exit`, and values by keys.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole::memory::threads;

use crate::exit;

/// Values of a thread by keys.
type Values = BTreeMap<c_uint, *mut c_void>;

pub(crate) type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

/// What is called for the values of a thread that ends, by keys.
type Destructors = BTreeMap<c_uint, Option<Destructor>>;

thread_local! {
    /// Whether this thread was started by the program.
    static IS_STARTED: Cell<bool> = const { Cell::new(false) };
    static VALUES: RefCell<Values> = const { RefCell::new(BTreeMap::new()) };
}

/// Those of the keys that this node has made.
static DESTRUCTORS: Mutex<Destructors> = Mutex::new(BTreeMap::new());
static KEYS: AtomicU32 = AtomicU32::new(1);

fn destructors() -> MutexGuard<'static, Destructors> {
    DESTRUCTORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What unwinds a thread after `pthread_exit`.
struct ThreadExit(*mut c_void);

// SAFETY: a number to whoever carries it; the program follows it.
unsafe impl Send for ThreadExit {}

/// Runs a thread of the program, and what its values' destructors are.
pub(crate) fn run_thread(run: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let was = IS_STARTED.replace(true);
    let value = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => value,
        Err(other) => match other.downcast::<ThreadExit>() {
            Ok(exit) => exit.0,
            Err(other) => resume_unwind(other),
        },
    };
    for _ in 0..4 {
        let values = VALUES.take();
        for (key, value) in values.into_iter().filter(|(_, value)| !value.is_null()) {
            let destructor = destructors().get(&key).copied().flatten();
            if let Some(destructor) = destructor {
                // SAFETY: the program's, which takes the values of its key.
                unsafe { destructor(value) };
            }
        }
    }
    IS_STARTED.set(was);
    value
}

/// `pthread_exit`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_pthread_exit(value: *mut c_void) -> ! {
    if IS_STARTED.get() {
        resume_unwind(Box::new(ThreadExit(value)));
    }
    exit::exit_main()
}

/// `pthread_key_create`. The destructor runs on the node that made the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_key_create(
    into: *mut c_uint,
    destructor: Option<Destructor>,
) -> c_int {
    let number = KEYS.fetch_add(1, Ordering::Relaxed);
    if number >= 1 << 20 {
        return libc::EAGAIN;
    }
    let key = threads::node().map_or(0, |node| node.index() as c_uint) << 20 | number;
    destructors().insert(key, destructor);
    // SAFETY: the caller's.
    unsafe { into.write(key) };
    0
}

/// `pthread_key_delete`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_key_delete(key: c_uint) -> c_int {
    destructors().remove(&key);
    0
}

/// `pthread_setspecific`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_setspecific(key: c_uint, value: *mut c_void) -> c_int {
    VALUES.with_borrow_mut(|values| values.insert(key, value));
    0
}

/// `pthread_getspecific`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_getspecific(key: c_uint) -> *mut c_void {
    VALUES.with_borrow(|values| values.get(&key).copied().unwrap_or(std::ptr::null_mut()))
}
