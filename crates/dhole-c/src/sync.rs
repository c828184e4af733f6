//! Locks, barriers, conditions and semaphores, by the addresses of what the program declares for
//! them. Nobody reads or writes what is there.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use dhole::CallSite;
use dhole::memory::sync;
use dhole::memory::threads::ThreadError;

use crate::deferred::Inside;
use crate::failure::{cannot, refused};
use crate::heap;

/// Files that the program names, each kept once.
static FILES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Where the program is.
///
/// # Safety
/// `file` is null or a string.
pub(crate) unsafe fn site(file: *const c_char, line: c_int) -> CallSite {
    if file.is_null() {
        return CallSite {
            file: "C",
            line: 0,
            column: 0,
        };
    }
    // SAFETY: the caller's.
    let name = unsafe { CStr::from_ptr(file) }.to_string_lossy();
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = files.get(&*name).copied();
    let file = known.unwrap_or_else(|| {
        let kept: &'static str = Box::leak(name.into_owned().into_boxed_str());
        files.insert(kept);
        kept
    });
    CallSite {
        file,
        line: line as u32,
        column: 0,
    }
}

/// The key of what is at an address.
pub(crate) fn key(at: *const c_void) -> u64 {
    at.expose_provenance() as u64
}

/// 0 for what went well; -1 with words where a mistake of the caller's is the cause. Where the run
/// has ended the process does.
fn code(done: Result<(), ThreadError>, doing: &str, at: *const c_void) -> c_int {
    match done {
        Ok(()) => 0,
        Err(why @ ThreadError::Wait(_)) => cannot(&format!("{doing} {at:p}"), &why),
        Err(why) => {
            refused(&format!("{doing} {at:p}: {why}"), libc::EINVAL);
            -1
        }
    }
}

/// Whether a call came to nothing because its process is alone: before the run, after it, or in a
/// child of `fork`. While the run is on, a thread that is none of dhole's is a mistake.
pub(crate) fn is_alone(why: &ThreadError) -> bool {
    *why == ThreadError::NoNode && !heap::is_on()
}

/// What a call brings a process that is alone: nothing waits there.
pub(crate) trait Alone {
    const ALONE: Self;
}

impl Alone for () {
    const ALONE: () = ();
}

impl Alone for bool {
    const ALONE: bool = true;
}

/// What the macros do has no result: a program that cannot go on ends, with words.
pub(crate) fn must<T: Alone>(
    done: Result<T, ThreadError>,
    doing: &dyn Display,
    at: *const c_void,
) -> T {
    match done {
        Err(why) if is_alone(&why) => T::ALONE,
        done => done.unwrap_or_else(|why| cannot(&format!("{doing} {at:p}"), &why)),
    }
}

/// Takes a lock. `file` and `line` say where, for a deadlock's report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_lock_at(
    lock: *const c_void,
    file: *const c_char,
    line: c_int,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    let site = unsafe { site(file, line) };
    code(sync::lock(key(lock), site), "locking", lock)
}

/// Takes a lock if no thread has it: 1, or 0 if one has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_trylock_at(
    lock: *const c_void,
    file: *const c_char,
    line: c_int,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    let site = unsafe { site(file, line) };
    match sync::try_lock(key(lock), site) {
        Ok(taken) => c_int::from(taken),
        Err(why) => code(Err(why), "trying to lock", lock),
    }
}

/// Releases a lock.
#[unsafe(no_mangle)]
pub extern "C" fn dh_unlock(lock: *const c_void) -> c_int {
    let _inside = Inside::enter();
    code(sync::unlock(key(lock)), "unlocking", lock)
}

/// Waits until `parties` threads are there. 1 for one of them, 0 for the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_barrier_at(
    barrier: *const c_void,
    parties: c_long,
    file: *const c_char,
    line: c_int,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    let site = unsafe { site(file, line) };
    let Ok(parties) = u32::try_from(parties) else {
        let why = format!("waiting at barrier {barrier:p} for {parties} threads: out of range");
        refused(&why, libc::EINVAL);
        return -1;
    };
    match sync::barrier(key(barrier), parties, site) {
        Ok(is_one) => c_int::from(is_one),
        Err(why) => code(Err(why), "waiting at barrier", barrier),
    }
}

/// Releases a lock, waits for a condition, and takes the lock again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_cond_wait_at(
    condition: *const c_void,
    lock: *const c_void,
    file: *const c_char,
    line: c_int,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    let site = unsafe { site(file, line) };
    code(
        sync::wait(key(condition), key(lock), site),
        "waiting for condition",
        condition,
    )
}

/// Wakes a thread that waits for a condition.
#[unsafe(no_mangle)]
pub extern "C" fn dh_cond_signal(condition: *const c_void) -> c_int {
    let _inside = Inside::enter();
    code(
        sync::signal(key(condition)),
        "signalling condition",
        condition,
    )
}

/// Wakes all threads that wait for a condition.
#[unsafe(no_mangle)]
pub extern "C" fn dh_cond_broadcast(condition: *const c_void) -> c_int {
    let _inside = Inside::enter();
    code(
        sync::broadcast(key(condition)),
        "signalling condition",
        condition,
    )
}

/// Sets what a semaphore holds.
#[unsafe(no_mangle)]
pub extern "C" fn dh_sem_set(semaphore: *const c_void, count: c_uint) -> c_int {
    let _inside = Inside::enter();
    code(
        sync::set(key(semaphore), count),
        "setting semaphore",
        semaphore,
    )
}

/// Adds one to a semaphore.
#[unsafe(no_mangle)]
pub extern "C" fn dh_sem_release(semaphore: *const c_void) -> c_int {
    let _inside = Inside::enter();
    code(
        sync::post(key(semaphore), 1),
        "releasing semaphore",
        semaphore,
    )
}

/// Takes one of a semaphore, and waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_acquire_at(
    semaphore: *const c_void,
    file: *const c_char,
    line: c_int,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    let site = unsafe { site(file, line) };
    code(
        sync::acquire(key(semaphore), site),
        "taking of semaphore",
        semaphore,
    )
}

/// In a loop that waits for another node's store: takes messages, and ends the process where the
/// run is over.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pause() {
    let _inside = Inside::enter();
    must(sync::pause(), &"pausing", std::ptr::null());
}

/// Microseconds of a clock of this machine that never goes back.
#[unsafe(no_mangle)]
pub extern "C" fn dh_clock_us() -> c_ulong {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes a structure of this type.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as c_ulong * 1_000_000 + now.tv_nsec as c_ulong / 1_000
}
