//! Quiescence: whether there is anything to be done when the worker synchronises.

use super::Protocols;

impl Protocols {
    /// Whether the worker wrote objects that have a home since their last flush.
    pub fn has_unflushed(&self) -> bool {
        self.remembered.home.has_written()
            || self.arrays.remembered.home.has_written()
            || self.members.must_release()
    }

    /// Whether requests wait for the worker.
    pub fn has_deferred(&self) -> bool {
        self.fetching.has_deferred()
            || self.remembered.home.deferred() > 0
            || self.treadmarks.has_deferred()
            || self.arrays.fetching.has_deferred()
            || self.arrays.remembered.home.deferred() > 0
            || self.members.have_deferred()
    }

    /// How many requests wait for the worker.
    pub fn deferred(&self) -> usize {
        let objects = self.fetching.deferred.len() + self.remembered.home.deferred();
        let elements = self.arrays.fetching.deferred.len() + self.arrays.remembered.home.deferred();
        objects + elements + self.treadmarks.deferred() + self.members.deferred()
    }

    /// Whether the end of the interval, an acquire and the worker's next call change nothing here:
    /// nothing was written since the last interval, nothing is kept that an acquire drops, and
    /// nobody waits for a call.
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        let written = !self.lazy.dirty.is_empty()
            || !self.lazy.young.is_empty()
            || !self.lazy.gates.are_shut()
            || self.arrays.is_dirty()
            || self.treadmarks.is_writable()
            || self.has_unflushed();
        let to_tell = self.remembered.home.tells
            || self.arrays.remembered.home.tells
            || self.races.has_to_tell();
        let kept = self.remembered.home.has_cached() || self.arrays.remembered.home.has_cached();
        let quiet = self.members.are_quiescent();
        quiet && !(written || to_tell || kept || self.has_deferred())
    }
}
