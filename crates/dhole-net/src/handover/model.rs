//! Every interleaving of a worker that rests in the port and then computes, of the thread that
//! serves meanwhile, and of another one that takes what it sees. Nobody looks at a clock here: who
//! sleeps for ever is found as a deadlock.
//!
//! ```text
//! worker:   rests in the port until it is woken; computes until another frame was taken; ends
//! service:  does the worker rest? parks; is it in the runtime? backs off; sleeps in the port;
//! takes others:   a frame, whose taker wakes the worker; one more when the worker computes
//! another:  looks once, at any time, and takes what has come
//! ```
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p dhole-net --lib model`

use std::cell::Cell;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{Handover, Planted};
use crate::doorbell::model::{Waker, deadlocks, explore};

std::thread_local! {
    /// What is planted in this test's model, all of whose threads loom runs on this one.
    pub(super) static PLANTED: Cell<Planted> = const { Cell::new(Planted::Nothing) };
}

/// A port as its two threads know it. How it does this is explored elsewhere.
struct Port {
    frames: Mutex<Frames>,
    changed: Condvar,
}

#[derive(Default)]
struct Frames {
    come: usize,
    taken: usize,
    unparked: bool,
}

impl Port {
    fn send(&self) {
        self.frames.lock().expect("a lock").come += 1;
        self.changed.notify_all();
    }

    fn unpark(&self) {
        self.frames.lock().expect("a lock").unparked = true;
        self.changed.notify_all();
    }

    fn park(&self) {
        let mut frames = self.frames.lock().expect("a lock");
        while frames.come == frames.taken && !frames.unparked {
            frames = self.changed.wait(frames).expect("a lock");
        }
        frames.unparked = false;
    }

    /// The numbers of the frames that have come.
    fn poll(&self) -> std::ops::Range<usize> {
        let mut frames = self.frames.lock().expect("a lock");
        let Frames { come, taken, .. } = *frames;
        frames.taken = come;
        taken..come
    }
}

/// What the threads share.
struct Shared {
    port: Port,
    handover: Handover,
    /// The worker is in the runtime.
    inside: AtomicBool,
    /// Where the service thread parks. Loom's threads forget an unpark when they block elsewhere.
    service: Waker,
    /// Rung when the second frame was taken.
    done: Waker,
}

impl Shared {
    fn new() -> Arc<Shared> {
        Arc::new(Shared {
            port: Port {
                frames: Mutex::new(Frames::default()),
                changed: Condvar::new(),
            },
            handover: Handover::default(),
            inside: AtomicBool::new(false),
            service: Waker::new(),
            done: Waker::new(),
        })
    }

    /// Takes what has come.
    fn take(&self) {
        for frame in self.port.poll() {
            match frame {
                0 => self.handover.wake(|| self.port.unpark()),
                _ => self.done.ring(),
            }
        }
    }

    fn serve(&self) {
        while !self.handover.is_over() {
            if self.handover.is_resting() {
                self.service.sleep();
                self.service.hear();
            } else if self.inside.load(Ordering::Relaxed) {
                thread::yield_now();
            } else if self.handover.sleep(|| self.port.park()) {
                self.take();
            }
        }
    }

    fn work(&self) {
        self.inside.store(true, Ordering::Relaxed);
        let rests = || {
            loop {
                self.take();
                if self.handover.take_wake() {
                    break;
                }
                self.port.park();
            }
        };
        let (unpark, serves) = (|| self.port.unpark(), || self.service.ring());
        self.handover.rest(unpark, rests, serves);
        self.inside.store(false, Ordering::Relaxed);
        self.port.send();
        self.done.sleep();
        self.handover.end(unpark);
        self.service.ring();
    }
}

/// When the first frame comes, and who may take it beside worker and service thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// Before the worker does.
    Before,
    /// At any time.
    AtAnyTime,
    /// Before the worker does, and another thread of the node, which never sleeps in the port,
    /// looks at any time.
    Helped,
}

fn hand_over(planted: Planted, first: First) {
    PLANTED.set(planted);
    let shared = Shared::new();
    let serving = shared.clone();
    let service = thread::spawn(move || serving.serve());
    if first != First::AtAnyTime {
        shared.port.send();
    }
    let other = (first != First::Before).then(|| {
        let shared = shared.clone();
        thread::spawn(move || match first {
            First::Helped => shared.take(),
            _ => shared.port.send(),
        })
    });
    shared.work();
    for thread in [Some(service), other].into_iter().flatten() {
        thread.join().expect("a thread");
    }
}

#[test]
fn nothing_is_left_lying_and_nobody_sleeps_on() {
    explore(4, || hand_over(Planted::Nothing, First::Before));
}

#[test]
fn nor_when_frames_come_at_any_time() {
    explore(2, || hand_over(Planted::Nothing, First::AtAnyTime));
}

#[test]
fn nor_when_another_thread_takes_frames() {
    explore(2, || hand_over(Planted::Nothing, First::Helped));
}

/// Each deadlocks, which the test that follows on it wants.
macro_rules! caught {
    ($($mistake:ident: $planted:ident, $caught:ident;)*) => {$(
        #[test]
        #[ignore = "it deadlocks, which the next test wants"]
        fn $planted() {
            explore(4, || hand_over(Planted::$mistake, First::Before));
        }

        #[test]
        fn $caught() {
            assert!(deadlocks(concat!("handover::model::", stringify!($planted))));
        }
    )*};
}

caught! {
    NoBarrier: with_no_barrier, a_wake_without_a_barrier_is_caught;
    NobodyUnparks: with_nobody_unparking, a_service_thread_that_keeps_the_slot_is_caught;
    NobodyServes: with_nobody_serving, a_service_thread_that_is_not_told_to_serve_is_caught;
    EndsInSilence: with_a_silent_end, an_end_that_is_not_told_is_caught;
}
