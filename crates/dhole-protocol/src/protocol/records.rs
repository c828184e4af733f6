//! How much a node keeps in mind. Nothing of it grows for ever.

use super::Protocol;

impl Protocol {
    /// What is kept of objects: chunks of their states, ranges of chunks that are known as freed,
    /// and chunks in which this node's own writes are remembered. None grows while objects come
    /// and go.
    pub fn records_kept(&self) -> [usize; 3] {
        self.coherence.records_kept()
    }

    /// Diffs that are kept, and writers of pages that are remembered. Neither grows over
    /// collections.
    pub fn page_records_kept(&self) -> [usize; 2] {
        self.coherence.treadmarks.kept()
    }

    /// What is kept of arrays: those that this node has met, and ranges of ids of those that were
    /// freed.
    pub fn array_records_kept(&self) -> [usize; 2] {
        self.coherence.arrays.kept()
    }

    /// How many locks this node keeps a record of: those that it manages and have been used, and
    /// those that it holds, waits for, or held last.
    pub fn locks_kept(&self) -> usize {
        self.locks.kept()
    }

    /// What this node keeps as a manager of sync objects: records of read-write locks, and releases
    /// of locks and semaphores, with what their nodes had seen. Neither grows over barriers.
    pub fn sync_records_kept(&self) -> [usize; 2] {
        self.sync_objects.kept()
    }
}
