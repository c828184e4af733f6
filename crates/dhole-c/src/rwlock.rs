//! Read-write locks of POSIX. Each keeps its number and its writer in its own memory, under a lock
//! and a condition of dhole's by its address.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use dhole::memory::sync;
use dhole::memory::threads;

use crate::deferred::Inside;
use crate::posix::number;
use crate::site;
use crate::sync::{key, must};

/// What becomes of a number: another one, or why the lock is not taken.
pub(crate) type Next = Result<i32, c_int>;

/// The thread that writes, as one more than its number; 0 is none.
///
/// # Safety
/// The pointer is a read-write lock, which has 56 bytes.
unsafe fn writer<'a>(rwlock: *mut c_void) -> &'a AtomicU64 {
    // SAFETY: the caller's; it begins at a multiple of 8.
    unsafe { AtomicU64::from_ptr(rwlock.cast::<u64>().add(1)) }
}

/// This thread, as a lock's writer is kept.
fn me() -> u64 {
    threads::current().map_or(0, |id| id.0 + 1)
}

/// Takes a read-write lock when its number may become another one: 0, or why not. `EBUSY` is waited
/// for by whoever waits.
///
/// # Safety
/// The pointer is such a lock.
pub(crate) unsafe fn take(
    rwlock: *mut c_void,
    waits: Option<usize>,
    next: impl Fn(i32, bool) -> Next,
) -> c_int {
    let this = key(rwlock);
    let caller = waits.unwrap_or_default();
    must(
        sync::lock_from(this, sync::LockSite::From(caller, site::of)),
        &"locking",
        rwlock,
    );
    // SAFETY: the caller's: the lock of dhole's guards the numbers.
    let (number, writer) = unsafe { (number(rwlock), writer(rwlock)) };
    let code = loop {
        let holders = number.load(Ordering::SeqCst);
        let is_mine = holders < 0 && writer.load(Ordering::SeqCst) == me();
        match next(holders, is_mine) {
            Ok(next) => {
                number.store(next, Ordering::SeqCst);
                if next < 0 {
                    writer.store(me(), Ordering::SeqCst);
                }
                break 0;
            }
            Err(libc::EBUSY) if waits.is_some() => {
                let waited = sync::wait(this, this, site::of(caller));
                must(waited, &"waiting for", rwlock);
            }
            Err(why) => break why,
        }
    };
    must(sync::unlock(this), &"unlocking", rwlock);
    code
}

/// One more reader, unless there is a writer.
pub(crate) fn reads(holders: i32, is_mine: bool) -> Next {
    match holders {
        i32::MAX => Err(libc::EAGAIN),
        0.. => Ok(holders + 1),
        _ if is_mine => Err(libc::EDEADLK),
        _ => Err(libc::EBUSY),
    }
}

/// A writer, unless anybody is there.
pub(crate) fn writes(holders: i32, is_mine: bool) -> Next {
    match holders {
        0 => Ok(-1),
        _ if is_mine => Err(libc::EDEADLK),
        _ => Err(libc::EBUSY),
    }
}

/// What a try says where waiting would be for ever.
fn tries(next: Next) -> Next {
    next.map_err(|why| match why {
        libc::EDEADLK => libc::EBUSY,
        why => why,
    })
}

/// `pthread_rwlock_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_init(rwlock: *mut c_void, _how: *const c_void) -> c_int {
    // SAFETY: the caller's: a read-write lock has 56 bytes.
    unsafe {
        number(rwlock).store(0, Ordering::SeqCst);
        writer(rwlock).store(0, Ordering::SeqCst);
    }
    0
}

/// `pthread_rwlock_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_rwlock_destroy(_rwlock: *mut c_void) -> c_int {
    0
}

/// `pthread_rwlock_rdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_rdlock_from(
    rwlock: *mut c_void,
    caller: usize,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    unsafe { take(rwlock, Some(caller), reads) }
}

/// `pthread_rwlock_wrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_wrlock_from(
    rwlock: *mut c_void,
    caller: usize,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    unsafe { take(rwlock, Some(caller), writes) }
}

/// `pthread_rwlock_tryrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_tryrdlock(rwlock: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    unsafe {
        take(rwlock, None, |holders, is_mine| {
            tries(reads(holders, is_mine))
        })
    }
}

/// `pthread_rwlock_trywrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_trywrlock(rwlock: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    unsafe {
        take(rwlock, None, |holders, is_mine| {
            tries(writes(holders, is_mine))
        })
    }
}

/// `pthread_rwlock_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_rwlock_unlock(rwlock: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    let one_less = |holders: i32, _| Ok(if holders > 0 { holders - 1 } else { 0 });
    // SAFETY: the caller's.
    unsafe { take(rwlock, None, one_less) };
    must(sync::broadcast(key(rwlock)), &"unlocking", rwlock);
    0
}
