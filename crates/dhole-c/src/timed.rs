//! Waits of POSIX that end at a moment of a clock. The locks of all nodes know no limits of time: a
//! thread that waits with one looks again and again.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::time::Duration;

use dhole::memory::sync;
use libc::clockid_t;

use crate::failure::set_errno;
use crate::posix;
use crate::sync::must;

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
        std::thread::sleep(left.min(LOOKS_AGAIN));
        match tries() {
            libc::EBUSY => {}
            done => return done,
        }
    }
    libc::ETIMEDOUT
}

/// Gives the mutex up, also where the time is over, and has it again when this returns. It returns
/// before the time is over, as a thread may that wakes for no reason.
///
/// # Safety
/// The pointers are a mutex and a time.
unsafe fn wait_on(mutex: *mut c_void, clock: clockid_t, time: *const libc::timespec) -> c_int {
    // SAFETY: the caller's.
    let Some(until) = (unsafe { Until::new(clock, time) }) else {
        return libc::EINVAL;
    };
    let left = until.left();
    let released = posix::unlock(mutex);
    if released != 0 {
        return released;
    }
    must(sync::pause(), &"waiting", std::ptr::null());
    match left {
        Some(left) => std::thread::sleep(left.min(LOOKS_AGAIN)),
        None => std::thread::yield_now(),
    }
    // SAFETY: the caller's.
    match unsafe { posix::lock(mutex, 0) } {
        0 if left.is_none() => libc::ETIMEDOUT,
        locked => locked,
    }
}

/// `pthread_cond_timedwait`, by the condition's own clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_cond_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's, here and below as of the function in the C library.
    unsafe {
        let clock = posix::number(condition).load(Ordering::SeqCst);
        wait_on(mutex, clock, time)
    }
}

/// `pthread_cond_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_cond_clockwait(
    _condition: *mut c_void,
    mutex: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { wait_on(mutex, clock, time) }
}

/// `pthread_mutex_timedlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_mutex_timedlock(
    mutex: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
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
    // SAFETY: as above.
    unsafe { until(clock, time, || posix::try_lock(mutex)) }
}

/// Takes a read-write lock within a time.
///
/// # Safety
/// The pointers are such a lock and a time.
unsafe fn rwlock(
    lock: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
    next: fn(i32) -> Option<i32>,
) -> c_int {
    // SAFETY: the caller's.
    let tries = || match unsafe { posix::take_rwlock(lock, None, next) } {
        true => 0,
        false => libc::EBUSY,
    };
    // SAFETY: the caller's.
    unsafe { until(clock, time, tries) }
}

/// `pthread_rwlock_timedrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_timedrdlock(
    lock: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { rwlock(lock, libc::CLOCK_REALTIME, time, posix::reads) }
}

/// `pthread_rwlock_timedwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_timedwrlock(
    lock: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { rwlock(lock, libc::CLOCK_REALTIME, time, posix::writes) }
}

/// `pthread_rwlock_clockrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_clockrdlock(
    lock: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { rwlock(lock, clock, time, posix::reads) }
}

/// `pthread_rwlock_clockwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_clockwrlock(
    lock: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { rwlock(lock, clock, time, posix::writes) }
}

/// `sem_timedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_timedwait(
    semaphore: *mut c_void,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { dh_sem_clockwait(semaphore, libc::CLOCK_REALTIME, time) }
}

/// `sem_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_clockwait(
    semaphore: *mut c_void,
    clock: clockid_t,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    match unsafe { until(clock, time, || posix::try_acquire(semaphore)) } {
        0 => 0,
        errno => {
            set_errno(errno);
            -1
        }
    }
}
