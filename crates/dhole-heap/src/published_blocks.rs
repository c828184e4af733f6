//! One-sided reads of elements: a node copies elements of an array out of the memory of a
//! neighbour, as it does [objects](crate::neighbour).
//!
//! The unit is a *block*: as many elements as fit a page. Each block has an id, and so a record in
//! the table in which objects have theirs. A block is published while nobody may write any of its
//! elements. A reader takes only those elements of it of which the owner is the last writer.
//!
//! Every function here that changes bytes of elements makes their blocks unpublished first. Which
//! blocks these were, and which nodes had read them, is kept until the engine asks.

use dhole_model::{Elements, NodeId, Oid, Version};
use dhole_space::Neighbour;
use dhole_space::publication::{self, FirstLook, Publication};

use crate::array_store::{ElementsRefused, Refusable};
use crate::foreign::Unheard;
use crate::heap::Heap;
use crate::local_array::LocalArray;
use crate::neighbour::{self, version_of, word_of};
use crate::published::{Published, Unpublished};
use crate::{ElementsRefusal, HeapMut, SeenBy};

/// What was found at the first look at a neighbour's block.
#[derive(Clone, Copy, Debug)]
pub struct PublishedBlock {
    of: NodeId,
    /// The elements of the block that are read.
    elements: Elements,
    look: FirstLook,
}

impl PublishedBlock {
    /// The elements of the block that are read.
    pub fn elements(&self) -> Elements {
        self.elements
    }

    /// The version that the neighbour says the block has: that of its newest element.
    pub fn version(&self) -> Version {
        version_of(self.look.version)
    }
}

impl LocalArray {
    /// All elements of the blocks that these lie in.
    fn whole_blocks(&self, elements: Elements) -> Elements {
        let (blocks, per_block) = (self.blocks(elements), self.binding.per_block());
        let end = (blocks.end * per_block).min(self.binding.len);
        Elements::new(elements.array, blocks.start * per_block..end)
    }
}

impl Heap {
    /// The bytes of these elements may change from here on: neighbours read their blocks no more.
    pub(crate) fn unpublish_elements(&mut self, elements: Elements) {
        let Some(Published::Mapped(own)) = &self.published else {
            return;
        };
        let Some(local) = self.arrays.get_mut(&elements.array) else {
            return;
        };
        let blocks = local.blocks(elements);
        if !local.published.meets(blocks.clone()) {
            return;
        }
        let published = local.published.of(blocks.clone());
        let published = published.filter(|(_, is_published)| *is_published);
        let published: Vec<_> = published.map(|(blocks, _)| blocks).collect();
        local.published.set(blocks, false);
        let (array, local) = (elements.array, &*local);
        let record = |block| {
            let id = self.cluster.record_of(array.plus(block));
            Some((block, own.records.record(id)?))
        };
        let records = published.iter().cloned().flatten().filter_map(record);
        let Unpublished { blocks, read } = &mut self.unpublished;
        publication::unpublish_all(records, |block, readers| {
            read.push((local.of_block(array, block), readers));
        });
        for range in published {
            let (first, last) = (range.start, range.end - 1);
            let end = local.of_block(array, last).range().end;
            let start = local.of_block(array, first).first;
            Elements::push(blocks, Elements::new(array, start..end));
        }
    }

    /// As [`unpublish_elements`](Heap::unpublish_elements), of an array that is freed: nobody has
    /// to hear of it.
    pub(crate) fn unpublish_freed(&mut self, array: Oid) {
        self.unpublish_elements(Elements::new(array, 0..u64::MAX));
        let Unpublished { blocks, read } = &mut self.unpublished;
        blocks.retain(|block| block.array != array);
        read.retain(|(block, _)| block.array != array);
    }

    /// A neighbour's record of the block that some elements of one block lie in, and where in the
    /// block they begin, in bytes.
    fn block_there(
        &self,
        of: NodeId,
        elements: Elements,
    ) -> Option<(&Neighbour, &Publication, u64)> {
        let seen = self.cluster.seen(of).filter(|_| of != self.node)?;
        let binding = &self.arrays.get(&elements.array)?.binding;
        let (block, within) = (
            elements.first / binding.per_block(),
            elements.first % binding.per_block(),
        );
        let id = self.cluster.record_of(elements.array.plus(block));
        let record = seen.records.record(id)?;
        Some((seen, record, within * binding.info.size as u64))
    }

    /// Tests that bytes of a neighbour's are values of elements, and writes them there.
    fn install_copied(&mut self, elements: Elements, copied: &[u8]) -> Refusable<usize> {
        let info = self.array(elements)?.binding.info;
        let wanted = elements.count * info.size as u64;
        if copied.len() as u64 != wanted {
            let bytes = copied.len();
            return Err(ElementsRefusal::Length { bytes, wanted });
        }
        if info.is_dense() {
            self.install_checked(elements, copied, Unheard::IsEarly)?;
            return Ok(copied.len());
        }
        let mut packed = self.pre_images.buffer();
        for element in copied.chunks_exact(info.size) {
            for range in &info.data {
                packed.extend_from_slice(&element[range.offset..][..range.bytes]);
            }
        }
        let installed = self.install_checked(elements, &packed, Unheard::IsEarly);
        let bytes = packed.len();
        self.pre_images.recycle(packed);
        installed.map(|()| bytes)
    }
}

impl HeapMut<'_> {
    /// Whether neighbours read blocks of arrays here: where they see this node's memory. In a
    /// window they find copies of objects alone.
    #[inline]
    pub fn publishes_blocks(&self) -> bool {
        matches!(self.heap.published, Some(Published::Mapped(_)))
    }

    /// All elements of the blocks that these lie in; `None` where there are no such elements.
    pub fn whole_blocks(&mut self, elements: Elements) -> Option<Elements> {
        let local = self.heap.array(elements).ok()?;
        Some(local.whole_blocks(elements))
    }

    /// The parts of elements that lie in one block each. None where this node has nothing of the
    /// array.
    pub fn parts_in_blocks(&self, elements: Elements) -> impl Iterator<Item = Elements> + use<> {
        let local = self.heap.arrays.get(&elements.array);
        let per_block = local.map_or(1, |local| local.binding.per_block());
        let blocks = local.map_or(0..0, |local| local.blocks(elements));
        let range = elements.range();
        blocks.map(move |block| {
            let first = range.start.max(block * per_block);
            let end = range.end.min((block + 1) * per_block);
            Elements::new(elements.array, first..end)
        })
    }

    /// Lets neighbours read these blocks, whose newest element has this version, until one of their
    /// elements may change. Nothing happens to a block that may be written, is not stored here, is
    /// published already, or lies where neighbours do not see it.
    pub fn publish_blocks(&mut self, whole_blocks: Elements, version: Version) {
        let (array, word) = (whole_blocks.array, word_of(version));
        let Heap {
            published,
            arrays,
            extents,
            cluster,
            ..
        } = &mut *self.heap;
        let Some(Published::Mapped(own)) = published else {
            return;
        };
        let Some(local) = arrays.get_mut(&array) else {
            return;
        };
        let blocks = local.blocks(whole_blocks);
        for block in blocks {
            let one = block..block + 1;
            if local.published.covers(one.clone()) || !local.stored.covers(one.clone()) {
                continue;
            }
            let of_block = local.of_block(array, block);
            // SAFETY: whoever has the heap has the node lock.
            if unsafe { extents.write.meets(of_block) } {
                continue;
            }
            let size = local.binding.info.size as u64;
            let place = local.storage + of_block.first * size;
            let place = own.seen(place, of_block.count * size);
            let record = own.records.record(cluster.record_of(array.plus(block)));
            if let Some((place, record)) = place.zip(record) {
                record.publish(place, word);
                local.published.set(one, true);
            }
        }
    }

    /// Whether neighbours may read all blocks of these elements.
    pub fn are_published(&self, elements: Elements) -> bool {
        let local = self.heap.arrays.get(&elements.array);
        local.is_some_and(|local| local.published.covers(local.blocks(elements)))
    }

    /// Neighbours read these elements no more, as before their bytes change.
    pub fn unpublish_elements(&mut self, elements: Elements) {
        self.heap.unpublish_elements(elements);
    }

    /// Takes what was made unpublished since the last time: calls `read` with the blocks that nodes
    /// may have read, and returns all of them, range by range.
    #[inline]
    pub fn take_unpublished(&mut self, mut read: impl FnMut(Elements, SeenBy)) -> Vec<Elements> {
        if self.heap.unpublished.blocks.is_empty() {
            return Vec::new();
        }
        let taken = std::mem::take(&mut self.heap.unpublished);
        taken
            .read
            .into_iter()
            .for_each(|(block, by)| read(block, SeenBy::of_bits(by)));
        taken.blocks
    }

    /// Looks at what `of` publishes of the block that these elements of one block lie in, and marks
    /// the block as read by this node. `None` where it publishes nothing there, or cannot be seen
    /// from here.
    pub fn look_at_block(&self, of: NodeId, elements: Elements) -> Option<PublishedBlock> {
        let (_, record, _) = self.heap.block_there(of, elements)?;
        let look = record.look().filter(|look| !look.is_gated())?;
        record.mark(SeenBy::of_node(self.heap.node));
        Some(PublishedBlock { of, elements, look })
    }

    /// Appends what was looked at to `copied`, as it lies there. Whether there is such a place.
    pub fn copy_block(&self, block: &PublishedBlock, copied: &mut Vec<u8>) -> bool {
        let elements = block.elements;
        let Some((seen, _, within)) = self.heap.block_there(block.of, elements) else {
            return false;
        };
        let size = self.heap.arrays[&elements.array].binding.info.size as u64;
        let bytes = elements.count * size;
        // A place has 63 bits.
        let Some(from) = seen.at(block.look.place() + within, bytes) else {
            return false;
        };
        copied.reserve(bytes as usize);
        // SAFETY: as many bytes are mapped there as long as the neighbour is seen, which is as long
        // as the cluster lives (`Neighbour::at`). `copied` has room for as many, and is initialised
        // as far as it was written. No reference to either is formed.
        unsafe {
            let to = copied.as_mut_ptr().add(copied.len());
            neighbour::copy(from.as_ptr(), to, bytes as usize);
            copied.set_len(copied.len() + bytes as usize);
        }
        true
    }

    /// Whether what was copied is whole, and of what was looked at.
    pub fn is_still_there(&self, block: &PublishedBlock) -> bool {
        let found = self.heap.block_there(block.of, block.elements);
        found.is_some_and(|(_, record, _)| record.still(block.look))
    }

    /// Makes what was [copied](HeapMut::copy_block) of one or more blocks the node's valid copy of
    /// absent elements, as [`install_elements`](HeapMut::install_elements) does. Its bytes as they
    /// travel.
    ///
    /// # Errors
    /// [`ElementsRefused`]; nothing was written. The bytes may be no values, or name objects of
    /// which this node has yet to hear.
    pub fn install_copied(
        &mut self,
        elements: Elements,
        copied: &[u8],
    ) -> Result<usize, ElementsRefused> {
        self.refusable("installing", elements, |heap| {
            heap.install_copied(elements, copied)
        })
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use std::sync::Arc;

    use dhole_model::{Oid, OidRange};

    use super::*;
    use crate::neighbour::tests::{OWNER, READER, nodes, version};
    use crate::{Array, Monitor};

    /// Elements of a block of `u32`.
    const BLOCK: u64 = 1024;

    /// An array of two blocks and a half on the owner, all of which is published.
    fn published(owner: &Monitor<()>) -> Elements {
        let mut guard = owner.lock();
        let mut heap = guard.split().0;
        let array: Array<u32> = heap.alloc_array_with(5 * BLOCK / 2, |i| i as u32).unwrap();
        let all = array.range(..).elements();
        heap.publish_blocks(all, version(3));
        assert!(heap.are_published(all));
        all
    }

    /// What the reader copies of these elements, if the second looks find what the first found.
    fn read(reader: &Monitor<()>, elements: Elements) -> Option<Vec<u8>> {
        let mut guard = reader.lock();
        let mut heap = guard.split().0;
        heap.whole_blocks(elements).expect("there are such");
        let mut copied = Vec::new();
        let parts: Vec<Elements> = heap.parts_in_blocks(elements).collect();
        for part in parts {
            let block = heap.look_at_block(OWNER, part)?;
            assert_eq!((block.elements(), block.version()), (part, version(3)));
            let is_whole = heap.copy_block(&block, &mut copied) && heap.is_still_there(&block);
            is_whole.then_some(())?;
        }
        Some(copied)
    }

    #[test]
    fn published_blocks_are_read_and_their_readers_are_known() {
        let [owner, reader] = &nodes();
        let all = published(owner);
        let some = Elements::new(all.array, BLOCK - 10..BLOCK + 10);
        let copied = read(reader, some).expect("they are published");
        let expected = some.range().flat_map(|i| (i as u32).to_ne_bytes());
        assert!(copied.iter().copied().eq(expected));
        {
            let mut guard = reader.lock();
            let mut heap = guard.split().0;
            assert_eq!(heap.install_copied(some, &copied), Ok(80));
            assert!(heap.gets_elements(some));
        }
        let mut guard = owner.lock();
        let mut heap = guard.split().0;
        heap.unpublish_elements(all);
        let mut by = Vec::new();
        let blocks = heap.take_unpublished(|block, readers| {
            by.push((block.first, readers.of(2).collect::<Vec<_>>()));
        });
        assert_eq!(blocks, [all]);
        assert_eq!(by, [(0, vec![READER]), (BLOCK, vec![READER])]);
        assert!(heap.take_unpublished(|_, _| ()).is_empty());
    }

    /// Whatever changes bytes of elements makes their blocks unpublished, and a reader that has
    /// looked before finds that out.
    #[test]
    fn no_byte_of_a_published_block_changes() {
        type Change = (&'static str, fn(&mut HeapMut<'_>, Elements));
        let changes: [Change; 5] = [
            ("write", |heap, it| heap.make_elements_writable(it).unwrap()),
            ("overwrite", |heap, it| {
                heap.overwrite_elements(it, &[7_u32; 5]).unwrap();
            }),
            ("merge", |heap, it| {
                heap.merge_elements(it, &[1; 20]).unwrap()
            }),
            ("install", |heap, it| {
                heap.invalidate_elements(it).unwrap();
                heap.install_elements(it, &[1; 20]).unwrap();
            }),
            ("free", |heap, it| {
                let (first, count) = (it.array, 3);
                heap.free_array(OidRange { first, count }).unwrap();
            }),
        ];
        for (what, change) in changes {
            let [owner, reader] = &nodes();
            let all = published(owner);
            let changed = Elements::new(all.array, BLOCK..BLOCK + 5);
            let beside = Elements::new(all.array, 2 * BLOCK - 1..2 * BLOCK);
            let look = {
                let mut guard = reader.lock();
                let mut heap = guard.split().0;
                heap.whole_blocks(all).expect("there are such");
                heap.look_at_block(OWNER, beside).expect("it is published")
            };
            change(&mut owner.lock().split().0, changed);
            let mut guard = reader.lock();
            let heap = guard.split().0;
            assert!(!heap.is_still_there(&look), "{what}");
            assert!(heap.look_at_block(OWNER, beside).is_none(), "{what}");
            let first = Elements::new(all.array, 0..1);
            let is_there = heap.look_at_block(OWNER, first).is_some();
            assert_eq!(is_there, what != "free", "{what}");
        }
    }

    /// A block of which a part may be written is not published, nor one that is not stored.
    #[test]
    fn a_block_that_may_be_written_is_not_published() {
        let [owner, _] = &nodes();
        let mut guard = owner.lock();
        let mut heap = guard.split().0;
        let array: Array<u32> = heap.alloc_array(3 * BLOCK).unwrap();
        let all = array.range(..).elements();
        let part = |blocks: std::ops::Range<u64>| {
            Elements::new(all.array, blocks.start * BLOCK..blocks.end * BLOCK)
        };
        heap.zero_fill_elements(part(0..2)).unwrap();
        let one = Elements::new(all.array, 5..6);
        heap.make_elements_writable(one).unwrap();
        heap.publish_blocks(all, version(1));
        assert_eq!(
            [0, 1, 2].map(|i| heap.are_published(part(i..i + 1))),
            [false, true, false]
        );
        heap.make_elements_clean(one).unwrap();
        heap.publish_blocks(all, version(1));
        assert!(heap.are_published(part(0..2)));
    }

    #[test]
    fn a_record_that_names_a_place_beyond_the_store_is_not_followed() {
        let [owner, reader] = &nodes();
        let all = published(owner);
        let mut guard = reader.lock();
        let mut heap = guard.split().0;
        heap.whole_blocks(all).expect("there are such");
        let cluster = Arc::clone(&heap.heap.cluster);
        let seen = cluster.seen(OWNER).unwrap();
        let record = seen.records.record(cluster.record_of(all.array)).unwrap();
        let two = Elements::new(all.array, 2..4);
        let copies = |place| {
            record.unpublish();
            record.publish(place, 1 << 16);
            let block = heap.look_at_block(OWNER, two).expect("it is published");
            heap.copy_block(&block, &mut Vec::new())
        };
        let end = cluster.store_bytes();
        assert!(copies(end - 16), "the last bytes of the store");
        let most = u64::MAX >> 1;
        for beyond in [end - 15, end, end + 1, most - 7, most] {
            assert!(!copies(beyond), "{beyond} of {end}");
        }
        // No block of an array is behind a gate.
        record.unpublish();
        record.publish_gated(0, 1 << 16);
        assert!(heap.look_at_block(OWNER, two).is_none());
    }

    #[test]
    fn bytes_that_are_no_values_are_not_installed() {
        let [owner, reader] = &nodes();
        let all = {
            let mut guard = owner.lock();
            let mut heap = guard.split().0;
            let array: Array<bool> = heap.alloc_array_with(100, |_| true).unwrap();
            array.range(..).elements()
        };
        let mut guard = reader.lock();
        let mut heap = guard.split().0;
        heap.whole_blocks(all).expect("there are such");
        let ten = Elements::new(all.array, 0..10);
        for copied in [&[2_u8; 10][..], &[1; 9], &[1; 11]] {
            assert!(heap.install_copied(ten, copied).is_err());
            assert!(!heap.gets_elements(ten));
        }
        assert_eq!(heap.install_copied(ten, &[1; 10]), Ok(10));
    }

    /// An array whose storage goes to another one is not taken for it.
    #[test]
    fn what_is_freed_between_two_looks_is_not_taken() {
        let [owner, reader] = &nodes();
        let all = published(owner);
        let look = {
            let mut guard = reader.lock();
            let mut heap = guard.split().0;
            heap.whole_blocks(all).expect("there are such");
            let first = Elements::new(all.array, 0..1);
            heap.look_at_block(OWNER, first).expect("it is published")
        };
        let ids = OidRange {
            first: all.array,
            count: 3,
        };
        owner.lock().split().0.free_array(ids).unwrap();
        let next = published(owner);
        assert!(next.array > Oid(0) && next.array != all.array);
        let mut copied = Vec::new();
        let mut guard = reader.lock();
        let heap = guard.split().0;
        heap.copy_block(&look, &mut copied);
        assert!(!heap.is_still_there(&look));
    }
}
