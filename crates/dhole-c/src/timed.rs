//! Waits of POSIX that end at a moment of a clock. The locks of all nodes know no limits of time: a
//! thread that waits for a lock with one looks again and again. One that waits on a condition
//! signals that itself when its time is over.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::time::Duration;

use dhole::memory::sync;
use libc::clockid_t;

use crate::cancel::{self, WaitsOn};
use crate::deferred::{Inside, interruptible};
use crate::failure::set_errno;
use crate::semaphore::{self, Limit};
use crate::sync::{key, must};
use crate::{posix, rwlock, site};

/// How long a thread sleeps that waits with a limit, before it looks again.
const LOOKS_AGAIN: Duration = Duration::from_micros(200);

/// The moment at which a wait ends.
struct Until {
    clock: clockid_t,
    moment: Duration,
}

impl Until {
    /// `None` where it is no time, or the clock is none that can be waited by.
    ///
    /// # Safety
    /// The pointer is a time.
    unsafe fn new(clock: clockid_t, time: *const libc::timespec) -> Option<Until> {
        // SAFETY: the caller's.
        let time = unsafe { time.read() };
        let is_time = (0..1_000_000_000).contains(&time.tv_nsec);
        let is_clock = [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(&clock);
        let moment = Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32);
        (is_time && is_clock).then_some(Until { clock, moment })
    }

    /// How long until then; `None` once it is over.
    fn left(&self) -> Option<Duration> {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: it writes a structure of this type.
        unsafe { libc::clock_gettime(self.clock, &raw mut now) };
        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        let left = self.moment.checked_sub(now);
        left.filter(|left| !left.is_zero())
    }
}

/// Tries until it succeeds, or the time is over.
///
/// # Safety
/// The pointer is a time.
unsafe fn until(
    clock: clockid_t,
    time: *const libc::timespec,
    mut tries: impl FnMut() -> c_int,
) -> c_int {
    // What can be had at once is had whatever the time is.
    match tries() {
        libc::EBUSY => {}
        done => return done,
    }
    // SAFETY: the caller's.
    let Some(until) = (unsafe { Until::new(clock, time) }) else {
        return libc::EINVAL;
    };
    while let Some(left) = until.left() {
        must(sync::pause(), &"waiting", std::ptr::null());
        interruptible();
        std::thread::sleep(left.min(LOOKS_AGAIN));
        match tries() {
            libc::EBUSY => {}
            done => return done,
        }
    }
    libc::ETIMEDOUT
}

/// Waits on a condition until it is signalled, or the time is over. It may return before, as a
/// thread may that wakes for no reason.
///
/// # Safety
/// The pointers are a condition, a mutex and a time.
unsafe fn wait_on(
    condition: *mut c_void,
    mutex: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    let Some(until) = (unsafe { Until::new(clock, time) }) else {
        return libc::EINVAL;
    };
    let waits = WaitsOn::new(key(condition), key(mutex));
    let left = until.left().unwrap_or_default();
    let waited = match cancel::is_to_end() {
        true => Ok(()),
        false => sync::wait_for(key(condition), key(mutex), left, site::UNKNOWN),
    };
    drop(waits);
    match posix::after_wait(condition, waited) {
        0 if until.left().is_none() => {
            // A signal may have been another thread's to find.
            must(sync::signal(key(condition)), &"signalling", condition);
            libc::ETIMEDOUT
        }
        code => code,
    }
}

/// As `pthread_cond_timedwait`, by the condition's own clock.
///
/// # Safety
/// As there.
pub(crate) unsafe fn cond_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's, here and below as of the function in the C library.
    unsafe {
        let clock = posix::number(condition).load(Ordering::SeqCst);
        wait_on(condition, mutex, clock, time)
    }
}

/// `pthread_cond_timedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_pthread_cond_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { cond_timedwait(condition, mutex, time) }
}

/// `pthread_cond_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_pthread_cond_clockwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { wait_on(condition, mutex, clock, time) }
}

/// `pthread_mutex_timedlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_mutex_timedlock(
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { dh_pthread_mutex_clocklock(mutex, libc::CLOCK_REALTIME, time) }
}

/// `pthread_mutex_clocklock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_mutex_clocklock(
    mutex: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { until(clock, time, || posix::try_lock(mutex)) }
}

/// Takes a read-write lock within a time.
///
/// # Safety
/// The pointers are such a lock and a time.
unsafe fn take(
    lock: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
    next: fn(i32, bool) -> rwlock::Next,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { until(clock, time, || rwlock::take(lock, None, next)) }
}

/// `pthread_rwlock_timedrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_timedrdlock(
    lock: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { take(lock, libc::CLOCK_REALTIME, time, rwlock::reads) }
}

/// `pthread_rwlock_timedwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_timedwrlock(
    lock: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { take(lock, libc::CLOCK_REALTIME, time, rwlock::writes) }
}

/// `pthread_rwlock_clockrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_clockrdlock(
    lock: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { take(lock, clock, time, rwlock::reads) }
}

/// `pthread_rwlock_clockwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_clockwrlock(
    lock: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { take(lock, clock, time, rwlock::writes) }
}

/// `sem_timedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_sem_timedwait(
    semaphore: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { dh_sem_clockwait(semaphore, libc::CLOCK_REALTIME, time) }
}

/// `sem_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_sem_clockwait(
    semaphore: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    let _inside = Inside::enter();
    cancel::point();
    // SAFETY: as above.
    let taken = unsafe {
        // What can be had at once is had whatever the time is.
        match (
            semaphore::take(semaphore, &Limit::Now, 0),
            Until::new(clock, time),
        ) {
            (libc::EAGAIN, Some(until)) => {
                semaphore::take(semaphore, &Limit::At(&|| until.left()), 0)
            }
            (libc::EAGAIN, None) => libc::EINVAL,
            (taken, _) => taken,
        }
    };
    if taken == 0 {
        return 0;
    }
    set_errno(taken);
    -1
}
