//! Every interleaving of a worker that rests in the port and then computes, and of the thread that
//! serves meanwhile. Nobody looks at a clock here: who sleeps for ever is found as a deadlock.
//!
//! ```text
//! worker:   rests in the port until it is woken; computes until another frame was taken; ends
//! service:  does the worker rest? parks; is it in the runtime? backs off; sleeps in the port;
//! takes others:   a frame, whose taker wakes the worker; one more when the worker computes
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

/// The first frame comes before the worker does, or at any time.
fn hand_over(planted: Planted, at_any_time: bool) {
    PLANTED.set(planted);
    let shared = Shared::new();
    let serving = shared.clone();
    let service = thread::spawn(move || serving.serve());
    let sender = at_any_time.then(|| {
        let sending = shared.clone();
        thread::spawn(move || sending.port.send())
    });
    if sender.is_none() {
        shared.port.send();
    }
    shared.work();
    for thread in [Some(service), sender].into_iter().flatten() {
        thread.join().expect("a thread");
    }
}

#[test]
fn nothing_is_left_lying_and_nobody_sleeps_on() {
    explore(4, || hand_over(Planted::Nothing, false));
}

#[test]
fn nor_when_frames_come_at_any_time() {
    explore(2, || hand_over(Planted::Nothing, true));
}

/// Each deadlocks, which the test that follows on it wants.
macro_rules! caught {
    ($($mistake:ident: $planted:ident, $caught:ident;)*) => {$(
        #[test]
        #[ignore = "it deadlocks, which the next test wants"]
        fn $planted() {
            explore(4, || hand_over(Planted::$mistake, false));
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
