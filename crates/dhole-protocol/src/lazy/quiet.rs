//! Whether there is anything to be done when the worker synchronises.

use dhole_model::{IntervalIndex, NodeId};

use super::Lazy;
use crate::News;

impl Lazy {
    /// Whether the worker wrote objects that have a home since their last flush.
    pub fn has_unflushed(&self) -> bool {
        self.home.has_written() || !self.arrays.home.written.is_empty()
    }

    /// Whether requests wait for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
            || self.home.has_deferred()
            || self.treadmarks.has_deferred()
            || self.arrays.has_deferred()
    }

    /// Whether all nodes have seen what this one has.
    pub fn is_known_to_all(&self) -> bool {
        self.seen_by_all.covers(&self.time)
    }

    /// Whether the end of the interval, an acquire and the worker's next call change nothing here:
    /// nothing was written since the last interval, nothing is kept that an acquire drops, and
    /// nobody waits for a call.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        let written = !self.dirty.is_empty()
            || self.arrays.is_dirty()
            || self.treadmarks.is_writable()
            || self.has_unflushed();
        let to_tell = self.home.tells || self.arrays.home.tells || self.races.has_to_tell();
        let kept = self.home.has_cached() || self.arrays.home.has_cached();
        !(written || to_tell || kept || self.has_deferred())
    }

    /// What this node tells that has ended no interval since this one.
    pub fn nothing_since(&self, last: IntervalIndex) -> News {
        debug_assert_eq!(last, self.time.of(self.me), "it has ended none");
        News {
            time: self.time.clone(),
            lamport: self.lamport,
            intervals: Vec::new(),
        }
    }

    /// What a node knows at least that has nothing to tell: all its own intervals that this one has
    /// seen, and of others what all have.
    pub fn known_of(&self, node: NodeId) -> News {
        let mut time = self.seen_by_all.clone();
        time.see(node, self.time.of(node));
        News {
            time,
            lamport: 0,
            intervals: Vec::new(),
        }
    }
}
