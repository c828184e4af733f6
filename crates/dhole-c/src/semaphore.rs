//! Semaphores of POSIX. A semaphore is two numbers in shared memory: what it has, and how many
//! threads wait. A lock and a condition of dhole's guard them, by its address.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use dhole::NodeId;
use dhole::memory::sync;
use dhole::memory::threads::{self, ThreadError};
use dhole_protocol::memory::sync::ThreadRefusal;

use crate::cancel::{self, WaitsOn};
use crate::deferred::{self, Inside};
use crate::failure::{cannot, set_errno};
use crate::running::entry;
use crate::sync::{is_alone, key, must};
use crate::{exit, heap, site};

/// What a semaphore has at most (`SEM_VALUE_MAX`).
const MOST: i32 = i32::MAX;

/// The numbers of a semaphore.
struct Numbers<'a> {
    has: &'a AtomicI32,
    waiting: &'a AtomicI32,
}

/// # Safety
/// The pointer is a semaphore.
unsafe fn numbers<'a>(semaphore: *mut c_void) -> Numbers<'a> {
    let numbers: *mut i32 = semaphore.cast();
    // SAFETY: the caller's: a semaphore has 32 bytes, which are only accessed so.
    unsafe {
        Numbers {
            has: AtomicI32::from_ptr(numbers),
            waiting: AtomicI32::from_ptr(numbers.add(1)),
        }
    }
}

/// Fails as functions on semaphores do.
fn failed(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

fn lock(semaphore: *mut c_void, caller: usize) {
    let locked = sync::lock_from(key(semaphore), sync::LockSite::From(caller, site::of));
    must(locked, &"using semaphore", semaphore);
}

fn unlock(semaphore: *mut c_void) {
    must(sync::unlock(key(semaphore)), &"using semaphore", semaphore);
}

/// `sem_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_init(
    semaphore: *mut c_void,
    _shared: c_int,
    count: c_uint,
) -> c_int {
    let _inside = Inside::enter();
    let Ok(count) = i32::try_from(count) else {
        return failed(libc::EINVAL);
    };
    lock(semaphore, 0);
    // SAFETY: the caller's, here and below as of the function in the C library.
    let numbers = unsafe { numbers(semaphore) };
    numbers.has.store(count, Ordering::SeqCst);
    numbers.waiting.store(0, Ordering::SeqCst);
    unlock(semaphore);
    0
}

/// `sem_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_sem_destroy(_semaphore: *mut c_void) -> c_int {
    0
}

/// `sem_post`. A handler of a signal that has interrupted this thread in this library has another
/// thread do it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_post(semaphore: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    if exit::is_child() {
        return 0;
    }
    // A handler that runs while this thread waits may not wait.
    let locked = match sync::is_waiting() {
        true => match sync::lock_at_once(key(semaphore)) {
            Ok(true) => Ok(()),
            _ => return post_later(semaphore),
        },
        false => sync::lock_from(key(semaphore), site::UNKNOWN),
    };
    match locked {
        Ok(()) => {}
        Err(why) if is_alone(&why) => {}
        Err(ThreadError::Sync(ThreadRefusal::Held(_))) => return post_later(semaphore),
        Err(why) => cannot(&format!("releasing semaphore {semaphore:p}"), &why),
    }
    // SAFETY: as above.
    let numbers = unsafe { numbers(semaphore) };
    let has = numbers.has.load(Ordering::SeqCst);
    if has == MOST {
        unlock(semaphore);
        return failed(libc::EOVERFLOW);
    }
    numbers.has.store(has + 1, Ordering::SeqCst);
    wake(semaphore, &numbers);
    unlock(semaphore);
    0
}

/// A thread that waits goes on.
fn wake(semaphore: *mut c_void, numbers: &Numbers<'_>) {
    if numbers.waiting.load(Ordering::SeqCst) > 0 {
        let signalled = sync::signal(key(semaphore));
        must(signalled, &"releasing semaphore", semaphore);
    }
}

fn post_later(semaphore: *mut c_void) -> c_int {
    let node = threads::node().map_or(0, NodeId::index);
    let started = threads::start(NodeId::at(node), entry::POST, key(semaphore));
    must(started.map(|_| ()), &"releasing semaphore", semaphore);
    0
}

/// Releases the semaphore of a handler.
pub(crate) fn serve(semaphore: u64) -> u64 {
    let semaphore = std::ptr::with_exposed_provenance_mut(semaphore as usize);
    // SAFETY: whoever had this called has passed a semaphore.
    unsafe { dh_sem_post(semaphore) as u64 }
}

/// When a wait ends that finds nothing.
pub(crate) enum Limit<'a> {
    Never,
    Now,
    /// By the time that is left.
    At(&'a dyn Fn() -> Option<Duration>),
}

/// Takes one of a semaphore: 0, `EAGAIN`, `ETIMEDOUT`; `EINTR` where a handler has run, unless it
/// lets calls go on and there is no limit. This thread may be cancelled meanwhile.
///
/// # Safety
/// The pointer is a semaphore.
pub(crate) unsafe fn take(semaphore: *mut c_void, limit: &Limit<'_>, caller: usize) -> c_int {
    if exit::is_child() {
        // It has none of the shared memory, and is alone.
        return 0;
    }
    lock(semaphore, caller);
    // SAFETY: the caller's.
    let numbers = unsafe { numbers(semaphore) };
    let this = key(semaphore);
    let handled = deferred::handled();
    let is_interrupted = || {
        let [restarting, others] = deferred::handled();
        let ends = matches!(limit, Limit::At(_)) && restarting != handled[0];
        ends || others != handled[1]
    };
    loop {
        let has = numbers.has.load(Ordering::SeqCst);
        if has > 0 {
            numbers.has.store(has - 1, Ordering::SeqCst);
            unlock(semaphore);
            return 0;
        }
        if !heap::is_on() {
            // Nobody else is there before the run, and after it.
            return 0;
        }
        if is_interrupted() {
            unlock(semaphore);
            return libc::EINTR;
        }
        let left = match limit {
            Limit::Never => None,
            Limit::Now => {
                unlock(semaphore);
                return libc::EAGAIN;
            }
            Limit::At(left) => match left() {
                Some(left) => Some(left),
                None => {
                    unlock(semaphore);
                    return libc::ETIMEDOUT;
                }
            },
        };
        let waits = WaitsOn::new(this, this);
        numbers.waiting.fetch_add(1, Ordering::SeqCst);
        let waited = match left {
            _ if cancel::is_to_end() => Ok(()),
            None => sync::wait(this, this, site::of(caller)),
            Some(left) => sync::wait_for(this, this, left, site::of(caller)),
        };
        must(waited, &"taking of semaphore", semaphore);
        numbers.waiting.fetch_sub(1, Ordering::SeqCst);
        drop(waits);
        if cancel::is_to_end() {
            // It may have been this thread's to take.
            if numbers.has.load(Ordering::SeqCst) > 0 {
                wake(semaphore, &numbers);
            }
            unlock(semaphore);
            cancel::point();
            lock(semaphore, caller);
        }
    }
}

/// `sem_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_sem_wait_from(semaphore: *mut c_void, caller: usize) -> c_int {
    let _inside = Inside::enter();
    cancel::point();
    // SAFETY: as above.
    match unsafe { take(semaphore, &Limit::Never, caller) } {
        0 => 0,
        why => failed(why),
    }
}

/// `sem_trywait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_trywait(semaphore: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    match unsafe { take(semaphore, &Limit::Now, 0) } {
        0 => 0,
        why => failed(why),
    }
}

/// `sem_getvalue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_getvalue(semaphore: *mut c_void, into: *mut c_int) -> c_int {
    let _inside = Inside::enter();
    lock(semaphore, 0);
    // SAFETY: as above.
    unsafe {
        let has = numbers(semaphore).has.load(Ordering::SeqCst);
        unlock(semaphore);
        into.write(has);
    }
    0
}
