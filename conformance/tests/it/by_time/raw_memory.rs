//! Waits of raw memory, and of its threads.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use conformance::Simulated;
use dhole::memory::sync::{acquire, barrier, lock, post, signal, unlock, wait};
use dhole::memory::threads::{join, run, serve, start};
use dhole::memory::{self, MemorySettings};
use dhole::{CallSite, MessageKind, NodeId};
use dhole_check::Changed;
use dhole_node::Settings;

use super::{Platform, Result, Worker, is_found};

mod beside;

/// A simulated cluster with raw memory.
#[derive(Clone, Copy)]
struct Raw(Simulated);

impl Changed for Raw {
    fn name(&self) -> String {
        "sim, raw memory".into()
    }

    fn on(&self) -> &dyn Platform {
        &self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.parts = Some(Arc::new(MemorySettings::default()));
    }
}

fn raw() -> Raw {
    Raw(Simulated { jitter: 0.0 })
}

#[track_caller]
fn site() -> CallSite {
    CallSite::caller()
}

/// The nodes write a number one after the other, and both read it.
fn passes_a_number(w: &mut Worker<'_>) -> Result<()> {
    let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
    for round in 0..4 {
        if round % 2 == u64::from(w.node().0) {
            cell.fetch_add(1, Relaxed);
        }
        w.barrier()?;
        assert_eq!(cell.load(Relaxed), round + 1);
        w.barrier()?;
    }
    Ok(())
}

#[test]
fn a_fault_that_is_not_woken_is_found() {
    is_found(raw(), MessageKind::MemoryData, passes_a_number);
    is_found(raw(), MessageKind::MemoryGrant, passes_a_number);
}

#[test]
fn a_lock_of_threads_that_is_not_woken_is_found() {
    is_found(raw(), MessageKind::ThreadLock, |w| {
        for _ in 0..5 {
            lock(1, site())?;
            w.work(5_000);
            unlock(1)?;
        }
        w.barrier()?;
        Ok(())
    });
}

#[test]
fn a_barrier_of_threads_that_is_not_woken_is_found() {
    is_found(raw(), MessageKind::ThreadBarrier, |w| {
        w.work(20_000 * u64::from(w.node().0));
        barrier(1, 2, site())?;
        Ok(w.barrier()?)
    });
}

#[test]
fn a_condition_of_threads_that_is_not_woken_is_found() {
    // With the signal comes the lock.
    is_found(raw(), MessageKind::ThreadLock, |w| {
        let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
        lock(1, site())?;
        match w.node() {
            NodeId(0) => {
                while cell.load(Relaxed) == 0 {
                    wait(2, 1, site())?;
                }
            }
            _ => {
                w.work(100_000);
                cell.store(1, Relaxed);
                signal(2)?;
            }
        }
        unlock(1)?;
        Ok(w.barrier()?)
    });
}

#[test]
fn a_semaphore_of_threads_that_is_not_woken_is_found() {
    is_found(raw(), MessageKind::ThreadSemaphore, |w| {
        match w.node() {
            NodeId(0) => acquire(3, site())?,
            _ => {
                w.work(50_000);
                post(3, 1)?;
            }
        }
        Ok(w.barrier()?)
    });
}

#[test]
fn the_end_of_a_thread_that_does_not_wake_is_found() {
    is_found(raw(), MessageKind::ThreadStart, |w| {
        let handler = |entry: u64, argument: u64| entry * argument;
        if w.node() != NodeId(0) {
            return Ok(serve(w, &handler)?);
        }
        let product = run(w, &handler, |_| join(start(NodeId(1), 6, 7)?))??;
        assert_eq!(product, 42);
        Ok(())
    });
}
