//! Copies of objects as they were before the interval's first write: what a request for an object
//! that is being written is answered from, and the *twin* that its changes are found by. The same
//! store keeps copies that were pushed and not read yet.

use dhole_model::Oid;
use rustc_hash::FxHashMap;

/// Buffers kept for the next pre-images: a program that writes many objects in each interval needs
/// as many in the next one.
const SPARE: usize = 1 << 17;

/// The room that each of these may have.
const SPARE_BYTES: usize = 64 << 10;

/// The room that all of them may have together.
const ALL_SPARE_BYTES: usize = 16 << 20;

/// Objects' copies that are kept aside, packed, in recycled buffers.
#[derive(Default)]
pub(crate) struct PreImages {
    kept: FxHashMap<Oid, Vec<u8>>,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

impl PreImages {
    /// An empty buffer, an old one where there is one.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let buffer = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= buffer.capacity();
        buffer
    }

    pub(crate) fn keep(&mut self, oid: Oid, packed: Vec<u8>) {
        if let Some(old) = self.kept.insert(oid, packed) {
            self.recycle(old);
        }
    }

    pub(crate) fn get(&self, oid: Oid) -> Option<&[u8]> {
        self.kept.get(&oid).map(Vec::as_slice)
    }

    /// The copy of an object, which is not kept any longer.
    pub(crate) fn take(&mut self, oid: Oid) -> Option<Vec<u8>> {
        self.kept.remove(&oid)
    }

    pub(crate) fn forget(&mut self, oid: Oid) {
        if !self.kept.is_empty()
            && let Some(old) = self.kept.remove(&oid)
        {
            self.recycle(old);
        }
    }

    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        let room = buffer.capacity();
        let fits = room <= SPARE_BYTES && self.spare_bytes + room <= ALL_SPARE_BYTES;
        if fits && self.spare.len() < SPARE {
            buffer.clear();
            self.spare_bytes += room;
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_later_is_few_buffers_and_no_large_ones() {
        let mut images = PreImages::default();
        images.keep(Oid(1), Vec::with_capacity(1000));
        images.keep(Oid(2), Vec::with_capacity(SPARE_BYTES + 1));
        images.forget(Oid(1));
        images.forget(Oid(2));
        assert_eq!(images.spare.len(), 1);
        assert_eq!(images.buffer().capacity(), 1000);
        (0..2 * SPARE).for_each(|_| images.recycle(vec![0; 10]));
        assert_eq!(images.spare.len(), SPARE);
        (0..2 * SPARE).for_each(|_| drop(images.buffer()));
        let most = ALL_SPARE_BYTES / SPARE_BYTES;
        (0..2 * most).for_each(|_| images.recycle(vec![0; SPARE_BYTES]));
        assert_eq!(
            (images.spare.len(), images.spare_bytes),
            (most, ALL_SPARE_BYTES)
        );
    }
}
