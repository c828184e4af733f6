//! Cancellation of threads (`pthread_cancel`). A thread that is to be cancelled ends where it waits
//! or asks (`pthread_testcancel`), as by `pthread_exit`: it unwinds, and what is to be cleaned up
//! on the way runs (`pthread_cleanup_push`).

use std::ffi::{c_int, c_uint};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

use dhole::NodeId;
use dhole::memory::{sync, threads};

use crate::failure::set_errno;
use crate::running::{self, Found, Running, entry};
use crate::site;
use crate::thread::dh_pthread_exit;

const ENABLE: c_int = 0;
const DISABLE: c_int = 1;
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;
/// The value of a thread that was cancelled (`PTHREAD_CANCELED`).
const CANCELED: usize = usize::MAX;

impl Running {
    /// Whether it ends at the next point at which it may be cancelled.
    pub fn is_to_end(&self) -> bool {
        self.is_cancelled.load(SeqCst) != 0 && self.is_open.load(SeqCst)
    }
}

/// Whether this thread is to end.
pub(crate) fn is_to_end() -> bool {
    running::own().is_some_and(|own| own.is_to_end())
}

/// A point at which a thread may be cancelled: it ends here if it is to.
pub(crate) fn point() {
    if is_to_end() {
        running::close();
        dh_pthread_exit(std::ptr::without_provenance_mut(CANCELED));
    }
}

/// A thread of this node is to be cancelled: wakes it where it sleeps or waits.
pub(crate) fn cancel(thread: u64) -> c_int {
    let running = match running::find(thread) {
        Found::Runs(_all, running) => running,
        Found::Ended => return 0,
        Found::None => return libc::ESRCH,
    };
    running.is_cancelled.store(1, SeqCst);
    wake_sleeper(&running);
    if waits_on(&running).is_some() {
        // Its lock may be another thread's for long, for which this one does not wait.
        let node = threads::node().map_or(0, NodeId::index);
        let number = thread & !running::NUMBER;
        let _ended = threads::start(NodeId::at(node), entry::WAKE, number);
    }
    0
}

fn waits_on(running: &Running) -> Option<(u64, u64)> {
    *running
        .waits_on
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Wakes a thread that is cancelled, and waits on a condition. A thread that waits has its lock
/// until its wait has begun: so what has the lock, and signals, wakes it. Others that wait on the
/// condition go on for no reason, as they may.
pub(crate) fn wake(thread: u64) -> c_int {
    let Found::Runs(all, running) = running::find(thread) else {
        return libc::ESRCH;
    };
    drop(all);
    let Some((condition, lock)) = waits_on(&running) else {
        return 0;
    };
    let locked = sync::lock(lock, site::UNKNOWN);
    if locked.is_ok() && waits_on(&running).is_some() {
        let _over = sync::broadcast(condition);
    }
    let _over = locked.and_then(|()| sync::unlock(lock));
    0
}

/// This thread waits on a condition, which wakes it where it is to be cancelled, until this is
/// dropped.
pub(crate) struct WaitsOn;

impl WaitsOn {
    /// The thread has the lock.
    pub fn new(condition: u64, lock: u64) -> WaitsOn {
        set_waits_on(Some((condition, lock)));
        WaitsOn
    }
}

impl Drop for WaitsOn {
    fn drop(&mut self) {
        set_waits_on(None);
    }
}

fn set_waits_on(waits_on: Option<(u64, u64)>) {
    if let Some(own) = running::own() {
        *own.waits_on.lock().unwrap_or_else(PoisonError::into_inner) = waits_on;
    }
}

/// `pthread_testcancel`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_pthread_testcancel() {
    point();
}

/// `pthread_setcancelstate`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int {
    if ![ENABLE, DISABLE].contains(&state) {
        return libc::EINVAL;
    }
    let Some(own) = running::own() else {
        return 0;
    };
    let was = own.is_open.swap(state == ENABLE, SeqCst);
    if !old.is_null() {
        // SAFETY: the caller's, here and below as of the function in the C library.
        unsafe { old.write(if was { ENABLE } else { DISABLE }) };
    }
    if own.is_asynchronous.load(SeqCst) {
        point();
    }
    0
}

/// `pthread_setcanceltype`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
    if ![DEFERRED, ASYNCHRONOUS].contains(&kind) {
        return libc::EINVAL;
    }
    let Some(own) = running::own() else {
        return 0;
    };
    let was = own.is_asynchronous.swap(kind == ASYNCHRONOUS, SeqCst);
    if !old.is_null() {
        // SAFETY: as above.
        unsafe { old.write(if was { ASYNCHRONOUS } else { DEFERRED }) };
    }
    if kind == ASYNCHRONOUS {
        point();
    }
    0
}

fn wake_sleeper(running: &Running) {
    let all = c_int::MAX;
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is the thread's, which is kept.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            running.is_cancelled.as_ptr(),
            operation,
            all,
        )
    };
}

/// Sleeps until a moment of a clock, or without end, or until a signal was handled. 0, `EINTR`, or
/// why it cannot be. Where this thread is to be cancelled it ends.
pub(crate) fn sleep_until(clock: libc::clockid_t, moment: Option<libc::timespec>) -> c_int {
    point();
    let Some(own) = running::own() else {
        return sleep_plainly(clock, moment);
    };
    let flag = match clock {
        libc::CLOCK_MONOTONIC => 0,
        libc::CLOCK_REALTIME => libc::FUTEX_CLOCK_REALTIME,
        _ => return sleep_plainly(clock, moment),
    };
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | flag;
    // A sleep without end has one too: others begin again after a signal.
    let until = moment.unwrap_or(libc::timespec {
        tv_sec: CENTURY_S,
        tv_nsec: 0,
    });
    // A thread that is not to be cancelled now sleeps although it was.
    let is = own.is_cancelled.load(SeqCst);
    if is != 0 && own.is_open.load(SeqCst) {
        point();
    }
    loop {
        let any = u32::MAX;
        let none = std::ptr::null::<u32>();
        // SAFETY: the word is this thread's own, the time this function's.
        let slept = unsafe {
            let word = own.is_cancelled.as_ptr();
            let until = &raw const until;
            libc::syscall(libc::SYS_futex, word, operation, is, until, none, any)
        };
        let why = match slept {
            0 => 0,
            // SAFETY: this thread's own.
            _ => unsafe { *libc::__errno_location() },
        };
        point();
        match why {
            libc::ETIMEDOUT if moment.is_some() => return 0,
            libc::ETIMEDOUT => {}
            0 | libc::EAGAIN if own.is_cancelled.load(SeqCst) == is => {}
            // It is to be cancelled, and not now.
            0 | libc::EAGAIN => return sleep_plainly(clock, moment),
            why => return why,
        }
    }
}

fn sleep_plainly(clock: libc::clockid_t, moment: Option<libc::timespec>) -> c_int {
    // SAFETY: the time is this function's own.
    unsafe {
        match moment {
            Some(moment) => {
                let until = &raw const moment;
                libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, until, std::ptr::null_mut())
            }
            None => {
                libc::pause();
                libc::EINTR
            }
        }
    }
}

const CENTURY_S: i64 = 100 * 365 * 24 * 3600;
const SECOND_NS: i64 = 1_000_000_000;

fn now(clock: libc::clockid_t) -> Option<libc::timespec> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes a structure of this type.
    let told = unsafe { libc::clock_gettime(clock, &raw mut now) };
    (told == 0).then_some(now)
}

/// Sleeps for a time of a clock, and says how much of it is left.
fn sleep_for(clock: libc::clockid_t, time: libc::timespec) -> (c_int, libc::timespec) {
    let none = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if !(0..SECOND_NS).contains(&time.tv_nsec) || time.tv_sec < 0 {
        return (libc::EINVAL, none);
    }
    let Some(began) = now(clock) else {
        return (libc::EINVAL, none);
    };
    let nanoseconds = began.tv_nsec + time.tv_nsec;
    let until = libc::timespec {
        tv_sec: began
            .tv_sec
            .saturating_add(time.tv_sec)
            .saturating_add(nanoseconds / SECOND_NS),
        tv_nsec: nanoseconds % SECOND_NS,
    };
    let why = sleep_until(clock, Some(until));
    let now = now(clock).unwrap_or(until);
    let left = (until.tv_sec - now.tv_sec) * SECOND_NS + until.tv_nsec - now.tv_nsec;
    let left = left.max(0);
    let left = libc::timespec {
        tv_sec: left / SECOND_NS,
        tv_nsec: left % SECOND_NS,
    };
    (why, left)
}

/// `nanosleep`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_nanosleep(
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    let (why, rest) = sleep_for(libc::CLOCK_MONOTONIC, unsafe { time.read() });
    if why == 0 {
        return 0;
    }
    if why == libc::EINTR && !left.is_null() {
        // SAFETY: the caller's.
        unsafe { left.write(rest) };
    }
    set_errno(why);
    -1
}

/// `clock_nanosleep`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    let time = unsafe { time.read() };
    if flags & libc::TIMER_ABSTIME != 0 {
        if !(0..SECOND_NS).contains(&time.tv_nsec) {
            return libc::EINVAL;
        }
        return sleep_until(clock, Some(time));
    }
    let (why, rest) = sleep_for(clock, time);
    if why == libc::EINTR && !left.is_null() {
        // SAFETY: the caller's.
        unsafe { left.write(rest) };
    }
    why
}

/// `sleep`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_sleep(seconds: c_uint) -> c_uint {
    let time = libc::timespec {
        tv_sec: seconds.into(),
        tv_nsec: 0,
    };
    match sleep_for(libc::CLOCK_MONOTONIC, time) {
        (0, _) => 0,
        // As the C library: part of a second counts as one from its half on.
        (_, left) => (left.tv_sec + i64::from(left.tv_nsec >= SECOND_NS / 2)) as c_uint,
    }
}

/// `usleep`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_usleep(microseconds: c_uint) -> c_int {
    let nanoseconds = i64::from(microseconds) * 1000;
    let time = libc::timespec {
        tv_sec: nanoseconds / SECOND_NS,
        tv_nsec: nanoseconds % SECOND_NS,
    };
    match sleep_for(libc::CLOCK_MONOTONIC, time) {
        (0, _) => 0,
        (why, _) => {
            set_errno(why);
            -1
        }
    }
}

/// `pause`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_pause_for_signal() -> c_int {
    set_errno(sleep_until(libc::CLOCK_MONOTONIC, None));
    -1
}
