//! What the system does for threads that sleep on a word, for loom: one that sleeps has found the
//! value, and no wake comes between.

use std::time::Duration;

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

#[derive(Default)]
pub(super) struct Sleepers {
    looks: Mutex<()>,
    changed: Condvar,
}

impl Sleepers {
    /// Sleeps until it is woken. No time passes: who is never woken sleeps for ever.
    pub(super) fn sleep(&self, word: &AtomicU32, value: u32, _at_most: Duration) {
        let looks = self.looks.lock().unwrap();
        if word.load(Ordering::SeqCst) == value {
            drop(self.changed.wait(looks).unwrap());
        }
    }

    pub(super) fn wake_one(&self, _word: &AtomicU32) {
        let _looks = self.looks.lock().unwrap();
        self.changed.notify_one();
    }

    pub(super) fn wake_all(&self, _word: &AtomicU32) {
        let _looks = self.looks.lock().unwrap();
        self.changed.notify_all();
    }
}
