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
        let node = self.heap.node;
        let absent = InstallError::Absent { oid, node };
        let mut old = self.heap.pre_images.buffer();
        let gathered = self.gather(oid, &mut old);
        let at = self.heap.place(oid).filter(|_| gathered.is_ok());
        let at = at.ok_or(absent)?;
        let binding = &self.heap.chunks[at.chunk].binding;
        if old.len() != packed.len() {
            return Err(InstallError::Length {
                oid,
                node,
                bytes: packed.len(),
                wanted: old.len() as u64,
            });
        }
        let mut changes = Vec::new();
        diff::diff(binding, &old, packed, &mut changes);
        self.heap.pre_images.recycle(old);
        match changes.is_empty() {
            true => Ok(false),
            false => self.merge(oid, &changes).map(|()| true),
        }
    }
}
