//! Every interleaving of a worker that settles before it waits, and of the thread that serves
//! beside it and sends something lazily at any time.
//!
//! ```text
//! worker:   settles: notifies the receiver of what it finds
//! service:  writes a frame; notes that it is owed a notification; notifies, if the worker settled
//! receiver: each notification has it take what was written before
//! ```
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p dhole-net --lib model`

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dhole_model::NodeId;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering, fence};
use loom::thread;

use super::{Deferred, Planted};
use crate::doorbell::model::explore;

std::thread_local! {
    /// What is planted in this test's model, all of whose threads loom runs on this one.
    pub(super) static PLANTED: Cell<Planted> = const { Cell::new(Planted::Nothing) };
}

const RECEIVER: NodeId = NodeId(0);

struct Shared {
    deferred: Deferred,
    written: AtomicBool,
    taken: AtomicBool,
}

impl Shared {
    /// Wakes the receiver, which sees what the notifying thread sees.
    fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.written.load(Ordering::Relaxed) {
            self.taken.store(true, Ordering::Relaxed);
        }
    }

    fn send(&self) {
        self.written.store(true, Ordering::Relaxed);
        if self.deferred.start(RECEIVER) {
            self.notify();
        }
    }
}

/// What is sent while the worker begins to wait has its receiver notified.
fn defer(planted: Planted) {
    PLANTED.set(planted);
    let shared = Arc::new(Shared {
        deferred: Deferred::new(1),
        written: AtomicBool::new(false),
        taken: AtomicBool::new(false),
    });
    let serving = shared.clone();
    let service = thread::spawn(move || serving.send());
    shared.deferred.settle(|_| shared.notify());
    service.join().expect("a thread");
    assert!(shared.taken.load(Ordering::Relaxed), "it is not notified");
}

#[test]
fn what_is_deferred_while_the_worker_begins_to_wait_is_notified() {
    explore(4, || defer(Planted::Nothing));
}

#[test]
fn a_deferral_without_a_barrier_is_caught() {
    let explored = || explore(4, || defer(Planted::NoBarrier));
    assert!(catch_unwind(AssertUnwindSafe(explored)).is_err());
}

#[test]
fn a_worker_that_settles_in_silence_is_caught() {
    let explored = || explore(4, || defer(Planted::SettlesInSilence));
    assert!(catch_unwind(AssertUnwindSafe(explored)).is_err());
}
