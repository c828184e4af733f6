//! Which thread of a process is parked in its port, and what ends its park.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use dhole_net::{Handover, Owed};

/// A thread that parks in the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Who {
    Nobody,
    Worker,
    Service,
    /// The service thread, which need not hear of every frame.
    CoarseService,
    /// The thread that takes what comes while no run is on.
    Keeper,
}

/// What the threads that park in a port are told by others, which then end the park.
pub(super) struct Parks {
    who: AtomicU8,
    pub handover: Handover,
    /// Processes were started on this node beside the program.
    pub several: AtomicBool,
    /// No run is on, and none is about to begin.
    pub idle: AtomicBool,
}

impl Parks {
    pub fn new() -> Parks {
        Parks {
            who: AtomicU8::new(Who::Nobody as u8),
            handover: Handover::default(),
            several: AtomicBool::new(false),
            idle: AtomicBool::new(true),
        }
    }

    /// This thread parks. One does at a time.
    pub fn by(&self, who: Who, park: impl FnOnce()) {
        self.who.store(who as u8, Ordering::SeqCst);
        park();
        self.who.store(Who::Nobody as u8, Ordering::SeqCst);
    }

    /// Whether another thread has said something for which it ends the park that is on.
    fn is_owed(&self) -> bool {
        let is = |who: Who| self.who.load(Ordering::SeqCst) == who as u8;
        if is(Who::Worker) {
            return self.handover.is_woken();
        }
        if is(Who::Keeper) {
            return !self.idle.load(Ordering::SeqCst);
        }
        let is_coarse = is(Who::CoarseService);
        let serves = is_coarse || is(Who::Service);
        let several = is_coarse && self.several.load(Ordering::SeqCst);
        serves && (several || self.handover.is_resting() || self.handover.is_over())
    }

    /// The same for the port.
    pub fn owed(parks: &Arc<Parks>, within: Duration) -> Owed {
        let parks = Arc::clone(parks);
        Owed {
            is_owed: Box::new(move || parks.is_owed()),
            within,
        }
    }
}
