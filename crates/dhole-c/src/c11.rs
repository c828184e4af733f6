//! Threads of C11 (`threads.h`), by the POSIX names. `mtx_init`, `cnd_init` and what ends them are
//! the C library's: they only write what is never used.

use std::ffi::{c_int, c_uint, c_void};

use crate::deferred::Inside;
use crate::posix;
use crate::thread::{self, Entry};
use crate::{calls, site, threads, timed};

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const TIMED_OUT: c_int = 4;

/// What a function of POSIX returned, as C11 says it.
fn of_posix(code: c_int) -> c_int {
    match code {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// `thrd_create`. The function returns a number, which is the lower half of what a thread returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_thrd_create(
    into: *mut u64,
    entry: Option<Entry>,
    argument: *mut c_void,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's, here and below as of the function in the C library.
    of_posix(unsafe { posix::dh_pthread_create(into, std::ptr::null(), entry, argument) })
}

/// `thrd_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_thrd_join_from(thread: u64, value: *mut c_int, caller: usize) -> c_int {
    let _inside = Inside::enter();
    let mut returned = std::ptr::null_mut();
    // SAFETY: the pointer is this function's own; the other is the caller's.
    unsafe {
        if threads::join_at(thread, &raw mut returned, site::of(caller)) != 0 {
            return ERROR;
        }
        if !value.is_null() {
            value.write(returned.addr() as c_int);
        }
    }
    SUCCESS
}

/// `thrd_exit`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_thrd_exit(value: c_int) -> ! {
    thread::dh_pthread_exit(std::ptr::without_provenance_mut(value as usize))
}

/// `mtx_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mtx_lock_from(mutex: *mut c_void, caller: usize) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    of_posix(unsafe { posix::lock(mutex, caller) })
}

/// `mtx_trylock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mtx_trylock(mutex: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    of_posix(unsafe { posix::dh_pthread_mutex_trylock(mutex) })
}

/// `mtx_timedlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mtx_timedlock(
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    of_posix(unsafe { timed::dh_pthread_mutex_timedlock(mutex, time) })
}

/// `mtx_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_mtx_unlock(mutex: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    of_posix(posix::dh_pthread_mutex_unlock(mutex))
}

/// `cnd_wait`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_cnd_wait_from(
    condition: *mut c_void,
    mutex: *mut c_void,
    caller: usize,
) -> c_int {
    let _inside = Inside::enter();
    of_posix(posix::cond_wait(condition, mutex, caller))
}

/// `cnd_timedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_cnd_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    of_posix(unsafe { timed::cond_timedwait(condition, mutex, time) })
}

/// `cnd_signal`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_cnd_signal(condition: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    of_posix(posix::dh_pthread_cond_signal(condition))
}

/// `cnd_broadcast`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_cnd_broadcast(condition: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    of_posix(posix::dh_pthread_cond_broadcast(condition))
}

/// `call_once`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_call_once(
    control: *mut c_void,
    run: unsafe extern "C-unwind" fn(),
) {
    // SAFETY: as above.
    unsafe { posix::dh_pthread_once(control, run) };
}

/// `tss_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_tss_create(
    into: *mut c_uint,
    destructor: Option<thread::Destructor>,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    of_posix(unsafe { thread::dh_pthread_key_create(into, destructor) })
}

/// `tss_set`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_tss_set(key: c_uint, value: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    of_posix(thread::dh_pthread_setspecific(key, value))
}

/// `tss_get`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_tss_get(key: c_uint) -> *mut c_void {
    let _inside = Inside::enter();
    thread::dh_pthread_getspecific(key)
}

/// `tss_delete`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_tss_delete(key: c_uint) {
    let _inside = Inside::enter();
    thread::dh_pthread_key_delete(key);
}

/// `thrd_detach`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_thrd_detach(thread: u64) -> c_int {
    let _inside = Inside::enter();
    of_posix(calls::dh_pthread_detach(thread))
}

/// `thrd_current`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_thrd_current() -> u64 {
    posix::dh_pthread_self()
}

/// `thrd_yield`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_thrd_yield() {
    posix::dh_sched_yield();
}
