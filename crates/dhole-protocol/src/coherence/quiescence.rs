//! Quiescence: whether there is anything to be done when the worker synchronises.

use super::Protocols;
use crate::coherence::rules::PROTOCOLS;

impl Protocols {
    /// Whether something must be done before the worker synchronises: what it wrote of objects that
    /// have a home is flushed, and members do what they must.
    #[inline]
    pub fn must_release(&self) -> bool {
        PROTOCOLS.iter().any(|it| it.must_release(self))
    }

    /// Whether requests wait for the worker.
    #[inline]
    pub fn has_deferred(&self) -> bool {
        self.deferred() > 0
    }

    /// How many requests wait for the worker.
    #[inline]
    pub fn deferred(&self) -> usize {
        let requests = self.deferred.count();
        PROTOCOLS
            .iter()
            .fold(requests, |sum, it| sum + it.deferred(self))
    }

    /// Whether the end of the interval, an acquire and the worker's next call change nothing here:
    /// nothing was written since the last interval, nothing is kept that an acquire drops, and
    /// nobody waits for a call.
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        let mut all = PROTOCOLS.iter();
        all.all(|it| it.is_quiescent(self)) && !self.must_release() && !self.has_deferred()
    }
}
