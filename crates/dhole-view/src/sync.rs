//! Locks, barriers, conditions and semaphores between threads of all nodes, by 64-bit numbers.
//!
//! Any thread of a node may call these that dhole knows: the program's own, those of
//! [`threads::scope`](crate::threads::scope), and those that nodes
//! [start](crate::threads::start). A number means the same on all nodes. That of a lock is no other
//! thing than that of a barrier, a condition or a semaphore. It may be an address, which is never
//! read.
//!
//! A lock stays on the node whose thread held it last: to acquire it there again takes no message.
//! Where all nodes of the run are one domain, each lock is a word of the memory that they have in
//! common, and takes no message at all. A thread that waits for one sleeps in the system.
//!
//! What releases something (to unlock, to arrive at a barrier, to wait on a condition or signal it,
//! to post or set a semaphore, and [`release`] alone) first flushes what the node wrote together
//! with others, in memory that is release consistent.
//!
//! ```
//! # use dhole_model::CallSite;
//! # use dhole_live::Threads;
//! # use dhole_node::{Settings, run_on};
//! # use dhole_view::{MemorySettings, alloc, sync, threads};
//! # use std::sync::atomic::Ordering::Relaxed;
//! # let machine = Threads::new(2, 0);
//! # let mut settings = Settings::nodes(2);
//! # settings.parts = Some(std::sync::Arc::new(MemorySettings::default()));
//! # let run = run_on(&machine, &settings, |w| {
//! const LOCK: u64 = 1;
//! let (cell, nodes) = (w.once(|w| Ok(alloc::<u64>(w)?))?.get(w), w.nodes() as u32);
//! threads::scope(w, |_, scope| {
//!     for _ in 0..3 {
//!         scope.spawn(|| {
//!             sync::lock(LOCK, CallSite::caller())?;
//!             cell.store(cell.load(Relaxed) + 1, Relaxed);
//!             sync::unlock(LOCK)?;
//!             sync::barrier(2, 3 * nodes, CallSite::caller())
//!         })?;
//!     }
//!     Ok::<(), threads::ThreadError>(())
//! })??;
//! let sum = cell.load(Relaxed);
//! # w.barrier()?;
//! # Ok(sum)
//! # })?;
//! # assert_eq!(run.value, 6);
//! # Ok::<(), dhole_node::RunError>(())
//! ```

use std::time::Duration;

use dhole_model::CallSite;

use crate::context::Body;
use crate::held_locks;
use crate::here::{self, Begin, Here};
use crate::interrupts;
use crate::lock_waits;
use crate::thread_error::ThreadError;

pub use crate::held_locks::LockSite;
pub use crate::interrupts::{Interrupts, interrupt_by, run_interrupts};

/// A thread that waits for others of its node at a barrier tells the manager after so long of those
/// that have come.
const GATHERS: Duration = Duration::from_micros(100);

/// A thread whose time is over looks so soon again whether the manager of its condition has heard
/// of it.
const QUEUES: Duration = Duration::from_micros(100);

/// Acquires a lock, and waits until no other thread has it.
///
/// # Errors
/// [`ThreadError`]: this thread has it already, or waits for itself through others.
pub fn lock(key: u64, site: CallSite) -> Result<(), ThreadError> {
    lock_from(key, site)
}

/// As [`lock`], of a place that is only found out where the thread waits.
///
/// # Errors
/// As there.
pub fn lock_from(key: u64, site: impl Into<LockSite>) -> Result<(), ThreadError> {
    let (here, site) = (Here::find()?, site.into());
    let thread = here.body.thread;
    if let Some(locks) = here.locks() {
        lock_waits::lock(&here, locks, key, site)?;
    } else if !here.memory().sync.machine().lock_here(thread, key) {
        let site = site.site();
        here.attempt(|machine, out| machine.lock(thread, key, site, out))?;
    }
    held_locks::acquired(key, site);
    Ok(())
}

/// Acquires a lock unless another thread has it; whether it did. Of a lock that is on another node
/// it asks that node.
///
/// # Errors
/// [`ThreadError`]
pub fn try_lock(key: u64, site: CallSite) -> Result<bool, ThreadError> {
    let here = Here::find()?;
    let thread = here.body.thread;
    let has_it = match here.locks() {
        Some(locks) => lock_waits::try_lock(&here, locks, key)?,
        None if here.memory().sync.machine().lock_here(thread, key) => true,
        None => here.attempt(|machine, out| machine.try_lock(thread, key, site, out))? == 1,
    };
    if has_it {
        held_locks::acquired(key, site.into());
    }
    Ok(has_it)
}

/// Acquires a lock if that takes no wait and no message; whether it did. A thread that
/// [waits](is_waiting) may call this where it is [interrupted](Interrupts).
///
/// # Errors
/// [`ThreadError`]
pub fn lock_at_once(key: u64) -> Result<bool, ThreadError> {
    let here = Here::find()?;
    let thread = here.body.thread;
    match here.locks() {
        Some(locks) => Ok(locks.tries(thread, key)? == Some(true)),
        None => Ok(here.memory().sync.machine().lock_here(thread, key)),
    }
}

/// Whether this thread has a lock.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn holds(key: u64) -> Result<bool, ThreadError> {
    let here = Here::find()?;
    Ok(here.memory().sync.machine().holds(here.body.thread, key))
}

/// Releases a lock.
///
/// # Errors
/// [`ThreadError`]: this thread does not have it.
pub fn unlock(key: u64) -> Result<(), ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    let thread = here.body.thread;
    if let Some(locks) = here.locks() {
        locks.unlock(thread, key)?;
    } else if !here.memory().sync.machine().unlock_here(thread, key) {
        here.tell(|machine, out| machine.unlock(thread, key, out))?;
    }
    held_locks::released(key);
    Ok(())
}

/// Waits until as many threads have called this as it takes: `parties`. True for one of them.
///
/// # Errors
/// [`ThreadError`]: others wait that say another number.
pub fn barrier(key: u64, parties: u32, site: CallSite) -> Result<bool, ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    let thread = here.body.thread;
    let arrive: Begin<'_> = &mut |machine, out| machine.arrive(thread, key, parties, site, out);
    let first = here.attempt_then(arrive, &mut |machine, waited, out| {
        // As many of this node as the last time are expected.
        let left = GATHERS.saturating_sub(waited);
        let gathers = machine.has_unsent(key) && !left.is_zero();
        if !gathers {
            machine.flush(key, out);
        }
        gathers.then_some(left)
    })?;
    Ok(first == 1)
}

/// Gives up a lock that this thread holds, waits until the condition is signalled, and acquires the
/// lock again. As everywhere it may go on without a signal: test what it waits for in a loop. It
/// does where something has [interrupted](Interrupts) it.
///
/// # Errors
/// [`ThreadError`]: this thread does not have the lock.
pub fn wait(condition: u64, lock: u64, site: CallSite) -> Result<(), ThreadError> {
    wait_until(condition, lock, None, site)
}

/// As [`wait`], for about so long at most: then all threads go on that wait on the condition, which
/// find no signal of what they wait for.
///
/// # Errors
/// As there.
pub fn wait_for(
    condition: u64,
    lock: u64,
    at_most: Duration,
    site: CallSite,
) -> Result<(), ThreadError> {
    wait_until(condition, lock, Some(at_most), site)
}

fn wait_until(
    condition: u64,
    lock: u64,
    at_most: Option<Duration>,
    site: CallSite,
) -> Result<(), ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    let thread = here.body.thread;
    let wait: Begin<'_> = &mut |machine, out| {
        let attempt = machine.wait_on(thread, condition, lock, site, out);
        if at_most.is_some() {
            machine.wait_is_timed(thread);
        }
        attempt
    };
    let interrupted = interrupts::count();
    let mut is_over = false;
    here.attempt_then(wait, &mut |machine, waited, out| {
        let left = at_most.map(|at_most| at_most.saturating_sub(waited));
        let ends = left.is_some_and(|left| left.is_zero()) || interrupts::count() != interrupted;
        if is_over || !ends {
            return left.filter(|_| !is_over);
        }
        if !machine.is_queued(thread) {
            // The manager has not heard of it, and would forget the signal.
            return Some(QUEUES);
        }
        is_over = true;
        machine.signal(condition, true, out);
        None
    })?;
    // The machine has released it, unless the signal came before the wait had begun.
    match here.locks() {
        Some(locks) if !locks.holds(thread, lock) => {
            lock_waits::lock(&here, locks, lock, site.into())
        }
        _ => Ok(()),
    }
}

/// Lets the thread go on that has waited longest on a condition, if there is one.
///
/// # Errors
/// [`ThreadError`]
pub fn signal(condition: u64) -> Result<(), ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    here.tell(|machine, out| {
        machine.signal(condition, false, out);
        Ok(())
    })
}

/// Lets all threads go on that wait on a condition.
///
/// # Errors
/// [`ThreadError`]
pub fn broadcast(condition: u64) -> Result<(), ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    here.tell(|machine, out| {
        machine.signal(condition, true, out);
        Ok(())
    })
}

/// Adds to a semaphore. One that was never set has 0.
///
/// # Errors
/// [`ThreadError`]
pub fn post(semaphore: u64, count: u32) -> Result<(), ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    here.tell(|machine, out| machine.post(semaphore, count, out))
}

/// Releases what this node has written, and nothing else: other nodes find it from here on, also
/// those that acquire nothing.
///
/// # Errors
/// [`ThreadError`]
pub fn release() -> Result<(), ThreadError> {
    Ok(Here::find()?.memory().flush()?)
}

/// Takes one of a semaphore, and waits until it has one.
///
/// # Errors
/// [`ThreadError`]
pub fn acquire(semaphore: u64, site: CallSite) -> Result<(), ThreadError> {
    let here = Here::find()?;
    let thread = here.body.thread;
    here.attempt(|machine, out| machine.acquire(thread, semaphore, false, site, out))?;
    Ok(())
}

/// Takes one of a semaphore if it has one; whether it did.
///
/// # Errors
/// [`ThreadError`]
pub fn try_acquire(semaphore: u64) -> Result<bool, ThreadError> {
    let here = Here::find()?;
    let (thread, site) = (here.body.thread, CallSite::runtime("a try"));
    let taken = here.attempt(|machine, out| machine.acquire(thread, semaphore, true, site, out))?;
    Ok(taken == 1)
}

/// Sets what a semaphore has from here on.
///
/// # Errors
/// [`ThreadError`]
pub fn set(semaphore: u64, count: u32) -> Result<(), ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    let (thread, site) = (here.body.thread, CallSite::runtime("setting a semaphore"));
    here.attempt(|machine, out| machine.set(thread, semaphore, count, site, out))?;
    Ok(())
}

/// Whether this thread waits in a function of this module, or of [`threads`](crate::threads): in a
/// handler of a signal, which may not wait then.
pub fn is_waiting() -> bool {
    here::is_waiting()
}

/// For loops that wait for another node's store: takes what has come.
///
/// # Errors
/// [`ThreadError::Wait`] once the run has ended.
pub fn pause() -> Result<(), ThreadError> {
    let body = Body::current().ok_or(ThreadError::NoNode)?;
    Ok(body.look()?)
}
