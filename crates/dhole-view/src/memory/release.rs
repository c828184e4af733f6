//! What goes before a release: other nodes get what this node wrote together with them.

use dhole_model::WaitCause;
use dhole_node::{MemoryConsistency, PartsStep};
use dhole_protocol::memory::{MemoryFlush, MemoryOperation};

use super::{Inside, Memory, waits_at};
use crate::context::{self, MemoryWaitError};
use crate::waiters::WaitsFor;

impl Memory {
    /// A thread is about to release something. It waits until no other node has a copy that lacks
    /// what threads of this node wrote together with others.
    ///
    /// # Errors
    /// [`MemoryWaitError`]
    pub fn flush(&self) -> Result<(), MemoryWaitError> {
        if !self.twins.owes() {
            return Ok(());
        }
        let mut flush = MemoryFlush::default();
        let thread = context::own_number();
        let told = waits_at(WaitCause::Object, None);
        self.steps((WaitsFor::AnyPage, told), &mut |inside, effects| {
            let Inside { machine, waits, .. } = inside;
            machine.flush(&mut flush, effects);
            if !machine.owes_flushes() {
                self.twins.owes_nothing();
            }
            match flush.first() {
                Some(address) => {
                    waits.insert(thread, (address, MemoryOperation::Flush));
                    PartsStep::Waits
                }
                None => {
                    waits.remove(&thread);
                    PartsStep::Over
                }
            }
        })
    }

    /// As [`flush`](Memory::flush), where the run ends if it cannot be.
    pub fn must_flush(&self) {
        let flushed = self.flush();
        context::must(self.threads(), flushed, "flushing memory before a release");
    }

    /// What this node allocates is of this consistency until the result is dropped, by unwinding
    /// too.
    pub fn allocates_with(&self, consistency: MemoryConsistency) -> AllocatesWith<'_> {
        let releases = consistency == MemoryConsistency::Release;
        let before = self.lock().machine.allocate_released(releases);
        AllocatesWith {
            memory: self,
            before,
        }
    }
}

/// What a node allocates is of another consistency until this is dropped.
pub(crate) struct AllocatesWith<'a> {
    memory: &'a Memory,
    before: bool,
}

impl Drop for AllocatesWith<'_> {
    fn drop(&mut self) {
        self.memory.lock().machine.allocate_released(self.before);
    }
}
