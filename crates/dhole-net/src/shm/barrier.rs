use std::sync::atomic::{Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

/// The barriers between "I wrote" and "are you parked?" on the side that writes, and between "I
/// sleep" and "did you write?" on the side that goes to sleep. One of the two must see the other.
///
/// Writing is frequent and sleeping is not, so the sleeper pays for both: it has the kernel run a
/// barrier on every thread of every process that asked for it, and the writer needs none.
pub(super) struct Barriers {
    registered: bool,
}

impl Barriers {
    pub fn new() -> Self {
        Barriers {
            registered: membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok(),
        }
    }

    /// The writer's, before it looks whether the other side sleeps.
    #[inline]
    pub fn light(&self) {
        if self.registered {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The sleeper's, before it looks whether there is something to do. False when it may not have
    /// reached the others: then no sleep may be long.
    #[must_use]
    pub fn heavy(&self) -> bool {
        fence(Ordering::SeqCst);
        membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    }
}
