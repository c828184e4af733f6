//! Copies of objects as they were before the interval's first write: what a request for an object
//! that is being written is answered from, and the *twin* that its changes are found by. The same
//! store keeps copies that were pushed and not read yet.

use dhole_model::{CHUNK, Oid};
use rustc_hash::FxHashMap;

/// Buffers kept for the next pre-images: a program that writes many objects in each interval needs
/// as many in the next one.
const SPARE: usize = 1 << 17;

/// The room that each of these may have.
const SPARE_BYTES: usize = 64 << 10;

/// The room that all of them may have together.
const ALL_SPARE_BYTES: usize = 16 << 20;

/// Tables of chunks kept for the next ones.
const SPARE_CHUNKS: usize = 1 << 12;

/// Objects' copies that are kept aside, packed, in recycled buffers.
#[derive(Default)]
pub(crate) struct PreImages {
    /// By chunk, so that what is kept of neighbours is found with one look into the table.
    kept: FxHashMap<u64, Box<OfChunk>>,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    #[expect(
        clippy::vec_box,
        reason = "they come from the table and go there again, uncopied"
    )]
    spare_chunks: Vec<Box<OfChunk>>,
}

/// The copies of the objects of one chunk.
struct OfChunk {
    copies: [Option<Vec<u8>>; CHUNK as usize],
    count: usize,
}

impl PreImages {
    /// An empty buffer, an old one where there is one.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let buffer = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= buffer.capacity();
        buffer
    }

    pub(crate) fn keep(&mut self, oid: Oid, packed: Vec<u8>) {
        let chunk = self.kept.entry(oid.chunk()).or_insert_with(|| {
            self.spare_chunks.pop().unwrap_or_else(|| {
                let copies = [const { None }; CHUNK as usize];
                Box::new(OfChunk { copies, count: 0 })
            })
        });
        match chunk.copies[oid.slot()].replace(packed) {
            Some(old) => self.recycle(old),
            None => chunk.count += 1,
        }
    }

    pub(crate) fn get(&self, oid: Oid) -> Option<&[u8]> {
        self.kept.get(&oid.chunk())?.copies[oid.slot()].as_deref()
    }

    /// The copy of an object, which is not kept any longer.
    pub(crate) fn take(&mut self, oid: Oid) -> Option<Vec<u8>> {
        if self.kept.is_empty() {
            return None;
        }
        let chunk = self.kept.get_mut(&oid.chunk())?;
        let copy = chunk.copies[oid.slot()].take()?;
        chunk.count -= 1;
        if chunk.count == 0
            && let Some(empty) = self.kept.remove(&oid.chunk())
            && self.spare_chunks.len() < SPARE_CHUNKS
        {
            self.spare_chunks.push(empty);
        }
        Some(copy)
    }

    pub(crate) fn forget(&mut self, oid: Oid) {
        if let Some(old) = self.take(oid) {
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
    fn the_copies_of_a_chunk_are_kept_apart_and_its_table_is_used_again() {
        let mut images = PreImages::default();
        let (one, next) = (Oid(CHUNK + 3), Oid(CHUNK + 4));
        images.keep(one, vec![1]);
        images.keep(next, vec![2]);
        images.keep(one, vec![3]);
        assert_eq!(images.get(one), Some(&[3][..]));
        images.forget(one);
        assert_eq!(images.take(one), None);
        assert_eq!(images.get(Oid(2 * CHUNK + 4)), None);
        assert_eq!(images.take(next), Some(vec![2]));
        assert!(images.kept.is_empty());
        images.keep(Oid(7), vec![4]);
        assert!(images.spare_chunks.is_empty() && images.get(Oid(7)).is_some());
    }

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
