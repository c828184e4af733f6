//! Every interleaving of those who ring a bell and those who sleep at it.
//!
//! ```text
//! ringer:   says something; sets the flag; raises the event, if the flag was not set
//! sleeper:  was it rung? sleeps until the event is up; lowers it; clears the flag; looks
//! ```
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p dhole-net --lib model`

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::rung::{Event, Rung};

std::thread_local! {
    /// Whether this test's model, all of whose threads loom runs on this one, has the error.
    pub(super) static FLAG_FIRST: Cell<bool> = const { Cell::new(false) };
}

/// An eventfd without a limit of time: who sleeps for ever is found as a deadlock.
pub(crate) struct Waker {
    up: Mutex<bool>,
    changed: Condvar,
}

impl Waker {
    pub fn new() -> Self {
        Waker {
            up: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Sleeps until it is up.
    pub fn sleep(&self) {
        let mut up = self.up.lock().expect("a lock");
        while !*up {
            up = self.changed.wait(up).expect("a lock");
        }
    }
}

impl Event for Waker {
    fn raise(&self) {
        *self.up.lock().expect("a lock") = true;
        self.changed.notify_all();
    }

    fn lower(&self) {
        *self.up.lock().expect("a lock") = false;
    }
}

impl Waker {
    /// What a doorbell does.
    pub fn ring(&self) {
        self.raise();
    }

    /// What who hears it does.
    pub fn hear(&self) {
        self.lower();
    }
}

/// How many are up for good.
pub(crate) struct Up {
    count: Mutex<u32>,
    changed: Condvar,
}

impl Up {
    pub fn new() -> Self {
        Up {
            count: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    pub fn one_more(&self) {
        *self.count.lock().expect("a lock") += 1;
        self.changed.notify_all();
    }

    /// Waits until one is.
    pub fn one(&self) {
        let mut count = self.count.lock().expect("a lock");
        while *count == 0 {
            count = self.changed.wait(count).expect("a lock");
        }
    }
}

/// Explores with at most so many preemptions, which finds what a few threads do to each other.
pub(crate) fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn sleep_at(bell: &Rung<Waker>) {
    bell.wait(|| {
        bell.event().sleep();
        true
    });
}

/// One says something and rings, twice; the other sleeps until it has heard both.
fn say_and_ring() {
    let bell = Arc::new(Rung::new(Waker::new()));
    let said = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let (ringing, saying) = (bell.clone(), said.clone());
    let ringer = thread::spawn(move || {
        for word in saying.iter() {
            word.store(true, Ordering::Relaxed);
            ringing.ring();
        }
    });
    for word in said.iter() {
        while !word.load(Ordering::Relaxed) {
            sleep_at(&bell);
        }
    }
    ringer.join().expect("the ringer");
}

/// Two sleep; who is up does something else. Each ring gets one of them up.
fn two_sleepers_and_two_rings() {
    let bell = Arc::new(Rung::new(Waker::new()));
    let up = Arc::new(Up::new());
    let sleepers = [(); 2].map(|()| {
        let (bell, up) = (bell.clone(), up.clone());
        thread::spawn(move || {
            sleep_at(&bell);
            up.one_more();
        })
    });
    bell.ring();
    up.one();
    bell.ring();
    for sleeper in sleepers {
        sleeper.join().expect("a sleeper");
    }
}

#[test]
fn what_was_said_before_a_ring_is_heard_after_it() {
    explore(3, say_and_ring);
}

#[test]
fn each_ring_gets_one_of_two_sleepers_up() {
    explore(3, two_sleepers_and_two_rings);
}

#[test]
fn a_flag_that_is_cleared_before_the_event_is_caught() {
    FLAG_FIRST.set(true);
    let explored = catch_unwind(AssertUnwindSafe(|| explore(3, two_sleepers_and_two_rings)));
    FLAG_FIRST.set(false);
    assert!(explored.is_err());
}
