//! What a section at a home leaves in an object (Jackal, section 6).
//!
//! A section works on copies, which [`HeapMut::gather`] and [`HeapMut::unpack`] make, and the heap
//! merges what it has changed in them, as it merges the differences that another node has flushed.

use dhole_model::Oid;

use crate::diff;
use crate::{HeapMut, InstallError};

impl HeapMut<'_> {
    /// Makes the node's copy of `oid` equal to these packed bytes. Whether it was not.
    ///
    /// # Errors
    /// [`InstallError`]: the worker may use the object, it is not here, or the bytes are not a
    /// value of it; nothing was written.
    pub fn change(&mut self, oid: Oid, packed: &[u8]) -> Result<bool, InstallError> {
        let images = &mut self.heap.pre_images;
        let (mut old, mut changes) = (images.buffer(), images.buffer());
        let differs = self.differs(oid, packed, &mut old, &mut changes);
        let changed = match differs {
            Ok(true) => self.merge(oid, &changes).map(|()| true),
            other => other,
        };
        self.heap.pre_images.recycle(old);
        self.heap.pre_images.recycle(changes);
        changed
    }

    /// Whether these packed bytes differ from the node's copy, whose bytes go to `old`, and how.
    fn differs(
        &mut self,
        oid: Oid,
        packed: &[u8],
        old: &mut Vec<u8>,
        changes: &mut Vec<u8>,
    ) -> Result<bool, InstallError> {
        let node = self.heap.node;
        let gathered = self.gather(oid, old);
        let at = self.heap.place(oid).filter(|_| gathered.is_ok());
        let at = at.ok_or(InstallError::Absent { oid, node })?;
        if old.len() != packed.len() {
            return Err(InstallError::Length {
                oid,
                node,
                bytes: packed.len(),
                wanted: old.len() as u64,
            });
        }
        let binding = &self.heap.chunks[at.chunk].binding;
        diff::diff(binding, old, packed, changes);
        Ok(!changes.is_empty())
    }
}
