//! Waits for memory, as a report tells them.

use dhole_model::{CallSite, WaitCause};
use dhole_node::{PartsStep, PartsWait};

use super::Memory;
use crate::context::MemoryWaitError;
use crate::waiters::WaitsFor;

/// What a step is told for which does not wait.
pub(super) const AT_ONCE: (WaitsFor, PartsWait) = (
    WaitsFor::Page(u64::MAX),
    waits_at(WaitCause::Operation, None),
);

/// A wait of the program for memory, as a report tells it: by a place, if that is known.
pub(crate) const fn waits_at(cause: WaitCause, site: Option<CallSite>) -> PartsWait {
    PartsWait {
        cause,
        what: "raw memory",
        site,
    }
}

impl Memory {
    /// Notes that a thread has waited for this otherwise than by messages, since this time on the
    /// node's clock.
    ///
    /// # Errors
    /// As [`acts`](Memory::acts).
    pub fn waited(&self, told: PartsWait, since_ns: u64) -> Result<(), MemoryWaitError> {
        self.steps(AT_ONCE, &mut |_, effects| {
            effects.out.waits_for = Some(told);
            effects.out.since_ns = Some(since_ns);
            PartsStep::Over
        })
    }

    /// The node's clock. Its errors are those of [`acts`](Memory::acts).
    pub fn now_ns(&self) -> Result<u64, MemoryWaitError> {
        let mut now_ns = 0;
        self.acts(|_, effects| now_ns = effects.out.now_ns)?;
        Ok(now_ns)
    }
}
