//! POSIX names for threads and what they wait for. The memory of a mutex and a condition is left as
//! it is: its address alone counts. A barrier keeps its number there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

use dhole::memory::sync;
use dhole::memory::threads::ThreadError;
use dhole::memory::threads::{self, ThreadId};
use dhole_protocol::memory::sync::ThreadRefusal;

use crate::cancel::{self, WaitsOn};
use crate::deferred::Inside;
use crate::failure::{cannot, fatal};
use crate::scheduling;
use crate::site;
use crate::sync::{is_alone, key, must};
use crate::thread::Entry;
use crate::threads::{begin, start_somewhere};

thread_local! {
    /// How often more than once this thread has locked a mutex.
    static AGAIN: RefCell<BTreeMap<u64, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// `pthread_create`. Of its attributes count whether the thread is detached, and how it is
/// scheduled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_create(
    into: *mut u64,
    attributes: *const libc::pthread_attr_t,
    entry: Option<Entry>,
    argument: *mut c_void,
) -> c_int {
    let _inside = Inside::enter();
    let Some(entry) = entry else {
        return libc::EINVAL;
    };
    // SAFETY: the caller's, as of `pthread_create`.
    let started = match unsafe { scheduling::read(attributes) } {
        Err(why) => return why,
        // SAFETY: as above.
        Ok(None) => unsafe { start_somewhere(entry, argument) },
        Ok(Some((is_detached, scheduling))) => begin(scheduling::Beginning {
            entry,
            argument,
            is_detached,
            scheduling,
        }),
    };
    match started {
        Ok(ThreadId(id)) => {
            // SAFETY: as above.
            unsafe { into.write(id) };
            0
        }
        Err(why) => {
            crate::failure::refused(&why, libc::EAGAIN);
            libc::EAGAIN
        }
    }
}

/// `pthread_join`. A thread that is to be cancelled ends before it waits, and not while it does.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_pthread_join_from(
    thread: u64,
    value: *mut *mut c_void,
    caller: usize,
) -> c_int {
    let _inside = Inside::enter();
    cancel::point();
    // SAFETY: the caller's, as of `pthread_join`.
    unsafe { crate::threads::join_at(thread, value, site::of(caller)) }
}

/// `pthread_self`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_self() -> u64 {
    threads::current().map_or(0, |id| id.0)
}

/// `pthread_setaffinity_np`: threads are where they are.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_setaffinity_np(
    _thread: u64,
    _bytes: usize,
    _cores: *const c_void,
) -> c_int {
    0
}

/// `pthread_setname_np`: threads have no names.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_setname_np(_thread: u64, _name: *const c_void) -> c_int {
    0
}

/// What kind a mutex is, as `pthread_mutex_init` or an initialiser left it.
///
/// # Safety
/// The pointer is a mutex.
unsafe fn kind(mutex: *const c_void) -> c_int {
    // SAFETY: the caller's: glibc's mutex has its kind at byte 16, on x86-64.
    unsafe { mutex.cast::<c_int>().add(4).read() & 3 }
}

/// `pthread_mutex_lock`, `mtx_lock`. Before the run and after it (constructors and destructors of
/// the program) nobody else is there, and it does nothing; so do its kin.
///
/// # Safety
/// The pointer is a mutex.
pub(crate) unsafe fn lock(mutex: *const c_void, caller: usize) -> c_int {
    match sync::lock_from(key(mutex), sync::LockSite::From(caller, site::of)) {
        Ok(()) => 0,
        Err(why) if is_alone(&why) => 0,
        // SAFETY: the caller's.
        Err(ThreadError::Sync(ThreadRefusal::Held(_))) => unsafe { lock_again(mutex, caller) },
        Err(why) => cannot(&format!("locking {mutex:p} at {caller:#x}"), &why),
    }
}

/// # Safety
/// As above; this thread has locked it.
unsafe fn lock_again(mutex: *const c_void, caller: usize) -> c_int {
    // SAFETY: the caller's.
    match unsafe { kind(mutex) } {
        libc::PTHREAD_MUTEX_RECURSIVE => {
            AGAIN.with_borrow_mut(|all| *all.entry(key(mutex)).or_default() += 1);
            0
        }
        libc::PTHREAD_MUTEX_ERRORCHECK => libc::EDEADLK,
        _ => fatal(&format!(
            "locking {mutex:p} at {caller:#x}: this thread has locked it already"
        )),
    }
}

pub(crate) fn unlock(mutex: *const c_void) -> c_int {
    let is_again = AGAIN.with_borrow_mut(|all| {
        let left = all.get_mut(&key(mutex))?;
        *left -= 1;
        if *left == 0 {
            all.remove(&key(mutex));
        }
        Some(())
    });
    if is_again.is_some() {
        return 0;
    }
    match sync::unlock(key(mutex)) {
        Ok(()) => 0,
        Err(why) if is_alone(&why) => 0,
        Err(ThreadError::Sync(ThreadRefusal::NotHeld(_))) => libc::EPERM,
        Err(why) => cannot(&format!("unlocking {mutex:p}"), &why),
    }
}

/// # Safety
/// The pointer is a mutex.
pub(crate) unsafe fn try_lock(mutex: *const c_void) -> c_int {
    match sync::try_lock(key(mutex), site::UNKNOWN) {
        Ok(true) => 0,
        // SAFETY: the caller's.
        Ok(false) => match unsafe { kind(mutex) } {
            // SAFETY: as above.
            libc::PTHREAD_MUTEX_RECURSIVE if sync::holds(key(mutex)) == Ok(true) => unsafe {
                lock_again(mutex, 0)
            },
            _ => libc::EBUSY,
        },
        Err(why) if is_alone(&why) => 0,
        Err(why) => cannot(&format!("trying to lock {mutex:p}"), &why),
    }
}

/// `pthread_mutex_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_mutex_lock_from(mutex: *mut c_void, caller: usize) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's, here and below as of the function in the C library.
    unsafe { lock(mutex, caller) }
}

/// `pthread_mutex_trylock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_mutex_trylock(mutex: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { try_lock(mutex) }
}

/// `pthread_mutex_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_mutex_unlock(mutex: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    unlock(mutex)
}

/// `pthread_mutex_destroy`: `EBUSY` where a thread has it.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_mutex_destroy(mutex: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    match sync::try_lock(key(mutex), site::UNKNOWN) {
        Ok(true) => unlock(mutex),
        Ok(false) => libc::EBUSY,
        Err(why) if is_alone(&why) => 0,
        Err(why) => cannot(&format!("destroying {mutex:p}"), &why),
    }
}

/// `pthread_mutexattr_setrobust`: a mutex of a thread that has ended stays its.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_mutexattr_setrobust(_kind: *mut c_void, robust: c_int) -> c_int {
    match robust {
        libc::PTHREAD_MUTEX_STALLED => 0,
        libc::PTHREAD_MUTEX_ROBUST => libc::ENOTSUP,
        _ => libc::EINVAL,
    }
}

/// `pthread_spin_init`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_spin_init(_lock: *mut c_void, _shared: c_int) -> c_int {
    0
}

/// `pthread_spin_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_spin_destroy(_lock: *mut c_void) -> c_int {
    0
}

/// `pthread_spin_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_spin_lock_from(lock: *mut c_void, caller: usize) -> c_int {
    let _inside = Inside::enter();
    let locked = sync::lock_from(key(lock), sync::LockSite::From(caller, site::of));
    if let Err(ThreadError::Sync(ThreadRefusal::Held(_))) = locked {
        return libc::EDEADLK;
    }
    must(locked, &"locking", lock);
    0
}

/// `pthread_spin_trylock`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_spin_trylock(lock: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    match sync::try_lock(key(lock), site::UNKNOWN) {
        Ok(true) => 0,
        Ok(false) => libc::EBUSY,
        Err(why) if is_alone(&why) => 0,
        Err(why) => cannot(&format!("trying to lock {lock:p}"), &why),
    }
}

/// `pthread_spin_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_spin_unlock(lock: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    unlock(lock)
}

/// `pthread_cond_init`. The condition keeps its clock; an initialiser leaves 0, the clock of days.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_cond_init(
    condition: *mut c_void,
    how: *const libc::pthread_condattr_t,
) -> c_int {
    let mut clock = libc::CLOCK_REALTIME;
    // SAFETY: the caller's: attributes, or null; and a condition has 48 bytes.
    unsafe {
        if !how.is_null() {
            libc::pthread_condattr_getclock(how, &raw mut clock);
        }
        number(condition).store(clock, Ordering::SeqCst);
    }
    0
}

/// `pthread_cond_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_cond_destroy(_condition: *mut c_void) -> c_int {
    0
}

/// Waits on a condition, where this thread may be cancelled. It has the mutex then.
pub(crate) fn cond_wait(condition: *mut c_void, mutex: *mut c_void, caller: usize) -> c_int {
    let waits = WaitsOn::new(key(condition), key(mutex));
    let waited = match cancel::is_to_end() {
        true => Ok(()),
        false => sync::wait(key(condition), key(mutex), site::of(caller)),
    };
    drop(waits);
    after_wait(condition, waited)
}

/// What comes of a wait on a condition.
pub(crate) fn after_wait(condition: *mut c_void, waited: Result<(), ThreadError>) -> c_int {
    if let Err(ThreadError::Sync(ThreadRefusal::NotHeld(_))) = waited {
        return libc::EPERM;
    }
    must(waited, &"waiting for condition", condition);
    if cancel::is_to_end() {
        // The signal may have been another thread's to find.
        must(sync::signal(key(condition)), &"signalling", condition);
        cancel::point();
    }
    0
}

/// `pthread_cond_wait`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_pthread_cond_wait_from(
    condition: *mut c_void,
    mutex: *mut c_void,
    caller: usize,
) -> c_int {
    let _inside = Inside::enter();
    cond_wait(condition, mutex, caller)
}

/// `pthread_cond_signal`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_cond_signal(condition: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    must(sync::signal(key(condition)), &"signalling", condition);
    0
}

/// `pthread_cond_broadcast`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_cond_broadcast(condition: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    must(sync::broadcast(key(condition)), &"signalling", condition);
    0
}

/// A number in shared memory.
///
/// # Safety
/// The pointer is to such a number, which is only accessed so.
pub(crate) unsafe fn number<'a>(at: *mut c_void) -> &'a AtomicI32 {
    // SAFETY: the caller's.
    unsafe { AtomicI32::from_ptr(at.cast()) }
}

/// `pthread_barrier_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_barrier_init(
    barrier: *mut c_void,
    _how: *const c_void,
    parties: c_uint,
) -> c_int {
    if parties == 0 || parties > 1 << 30 {
        return libc::EINVAL;
    }
    // SAFETY: the caller's: a barrier is 32 bytes.
    unsafe { number(barrier) }.store(parties as i32, Ordering::SeqCst);
    0
}

/// `pthread_barrier_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_barrier_destroy(_barrier: *mut c_void) -> c_int {
    0
}

/// `pthread_barrier_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_barrier_wait_from(
    barrier: *mut c_void,
    caller: usize,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's, as above.
    let parties = unsafe { number(barrier) }.load(Ordering::SeqCst);
    let waited = sync::barrier(key(barrier), parties as u32, site::of(caller));
    match must(waited, &"waiting at barrier", barrier) {
        true => libc::PTHREAD_BARRIER_SERIAL_THREAD,
        false => 0,
    }
}

/// `pthread_once`, `call_once`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_pthread_once(
    control: *mut c_void,
    run: unsafe extern "C-unwind" fn(),
) -> c_int {
    const DONE: i32 = 2;
    // SAFETY: the caller's: an `int`.
    let number = unsafe { number(control) };
    if number.load(Ordering::SeqCst) == DONE {
        return 0;
    }
    let inside = Inside::enter();
    must(
        sync::lock(key(control), site::UNKNOWN),
        &"running once",
        control,
    );
    drop(inside);
    if number.load(Ordering::SeqCst) != DONE {
        // SAFETY: the caller's.
        let ran = || crate::stacks::on_shared(|| unsafe { run() });
        if let Err(ends) = catch_unwind(AssertUnwindSafe(ran)) {
            // The thread was cancelled, say: another one runs it.
            must(sync::unlock(key(control)), &"running once", control);
            resume_unwind(ends);
        }
        let _inside = Inside::enter();
        // A thread that finds the number acquires nothing, so all that was written goes before it.
        must(sync::release(), &"running once", control);
        number.store(DONE, Ordering::SeqCst);
    }
    let _inside = Inside::enter();
    must(sync::unlock(key(control)), &"running once", control);
    0
}

/// `sched_yield`, `thrd_yield`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_sched_yield() -> c_int {
    crate::sync::dh_pause();
    std::thread::yield_now();
    0
}
