//! What was written, by comparison with how it was: page twins, kept object by object (DOSA,
//! section 3.5).

use dhole_model::Oid;

use crate::{GatherError, HeapMut};

impl HeapMut<'_> {
    /// Whether `oid` is as its pre-image, padding aside. An object that was written with what it
    /// held before is.
    ///
    /// # Errors
    /// [`GatherError`]: it may be written at this moment, or no pre-image was kept.
    pub fn is_unwritten(&mut self, oid: Oid) -> Result<bool, GatherError> {
        let mut now = self.heap.pre_images.buffer();
        let gathered = self.gather(oid, &mut now);
        let node = self.heap.node;
        let before = self.heap.pre_images.get(oid);
        let before = before.ok_or(GatherError::NotStored { oid, node });
        let same = gathered.and_then(|_| before.map(|before| before == now));
        self.heap.pre_images.recycle(now);
        same
    }
}
