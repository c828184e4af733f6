//! What a node knows of 64 objects with consecutive ids and one type.

use std::ops::Range;

use crate::Binding;

/// No storage yet: the object was never here.
const NOWHERE: u64 = u64::MAX;

/// The chunk that the next single object of a type and a place in the program goes to.
#[derive(Clone, Copy)]
pub(crate) struct OpenChunk {
    pub(crate) place: usize,
    pub(crate) number: u64,
    pub(crate) next: usize,
}

/// A node's record of one chunk of ids.
pub(crate) struct Chunk {
    /// What the ids are bound to.
    pub(crate) binding: Binding,
    /// Bit `i`: object `i` may be read here.
    present: u64,
    /// Bit `i`: object `i` may be written here. Implies present.
    writable: u64,
    /// Bit `i`: object `i` is behind the [gate](crate::gates) of the chunk, and may be written
    /// while that is open.
    gated: u64,
    /// Where object `i` is in the page store.
    storage: [u64; 64],
    /// Bit `i`: object `i` was freed.
    freed: u64,
    /// Bit `i`: bytes of object `i`, valid or not, are in its storage.
    filled: u64,
    /// Bit `i`: object `i` is set aside for the worker, who gives it its first value.
    aside: u64,
}

impl Chunk {
    pub(crate) fn new(binding: Binding) -> Chunk {
        Chunk {
            binding,
            present: 0,
            writable: 0,
            gated: 0,
            storage: [NOWHERE; 64],
            freed: 0,
            filled: 0,
            aside: 0,
        }
    }

    /// Whether something is known of the object, which nobody has allocated so far: bytes have
    /// named its id before its time.
    pub(crate) fn is_taken(&self, slot: usize) -> bool {
        self.storage(slot).is_some() || self.is_freed(slot)
    }

    /// The object is [set aside](crate::nursery).
    pub(crate) fn set_aside(&mut self, slot: usize) {
        self.aside |= 1 << slot;
    }

    /// Whether the object is set aside, and so gets its storage by [`adopt`](Chunk::adopt) alone.
    pub(crate) fn is_aside(&self, slot: usize) -> bool {
        self.aside >> slot & 1 == 1
    }

    /// The object was set aside, has its first value there, and may be written; `false` where it
    /// is taken for freed.
    pub(crate) fn adopt(&mut self, slot: usize, at: u64) -> bool {
        self.aside &= !(1 << slot);
        if self.is_freed(slot) {
            return false;
        }
        self.set_storage(slot, at);
        self.set_present(slot);
        self.set_writable(slot);
        true
    }

    /// These objects, of a range of slots, may be written no longer; those of them that could.
    pub(crate) fn set_all_clean(&mut self, slots: u64) -> u64 {
        let were = self.writable & slots;
        self.writable &= !slots;
        were
    }

    #[inline]
    pub(crate) fn is_present(&self, slot: usize) -> bool {
        self.present >> slot & 1 == 1
    }

    /// How many objects of a range of slots may be read here.
    pub(crate) fn count_present(&self, slots: Range<u64>) -> u64 {
        let bits = u64::MAX >> (u64::BITS as u64 - (slots.end - slots.start)) << slots.start;
        (self.present & bits).count_ones().into()
    }

    #[inline]
    pub(crate) fn is_writable(&self, slot: usize) -> bool {
        self.writable >> slot & 1 == 1
    }

    #[inline]
    pub(crate) fn is_gated(&self, slot: usize) -> bool {
        self.gated >> slot & 1 == 1
    }

    /// The object goes behind the gate, which is shut.
    pub(crate) fn put_behind_gate(&mut self, slot: usize) {
        self.writable &= !(1 << slot);
        self.gated |= 1 << slot;
    }

    /// What is behind the gate may be written, but for what is marked: the ones that may, and the
    /// others.
    pub(crate) fn open_gate(&mut self, marks: u64) -> [u64; 2] {
        let [opened, marked] = [self.gated & !marks, self.gated & marks];
        self.writable |= opened;
        [opened, marked]
    }

    /// What is behind the gate may be written no longer; what could be.
    pub(crate) fn shut_gate(&mut self) -> u64 {
        let shut = self.writable & self.gated;
        self.writable &= !shut;
        shut
    }

    #[inline]
    pub(crate) fn storage(&self, slot: usize) -> Option<u64> {
        Some(self.storage[slot]).filter(|&at| at != NOWHERE)
    }

    /// Where bytes of the object are, valid or not.
    #[inline]
    pub(crate) fn bytes_at(&self, slot: usize) -> Option<u64> {
        self.storage(slot).filter(|_| self.filled >> slot & 1 == 1)
    }

    pub(crate) fn set_storage(&mut self, slot: usize, at: u64) {
        debug_assert_eq!(self.storage[slot], NOWHERE, "storage never moves");
        self.storage[slot] = at;
    }

    #[inline]
    pub(crate) fn is_freed(&self, slot: usize) -> bool {
        self.freed >> slot & 1 == 1
    }

    /// Object `i` is freed: where it was stored.
    pub(crate) fn free(&mut self, slot: usize) -> Option<u64> {
        self.set_absent(slot);
        self.freed |= 1 << slot;
        self.filled &= !(1 << slot);
        let storage = self.storage(slot);
        self.storage[slot] = NOWHERE;
        storage
    }

    /// The objects of these bits were freed before this node saw the chunk.
    pub(crate) fn set_freed(&mut self, freed: u64) {
        self.freed |= freed;
    }

    /// Whether no id of the chunk names an object any more, and none is here.
    pub(crate) fn is_all_freed(&self) -> bool {
        self.freed == u64::MAX && self.aside == 0 && self.storage.iter().all(|at| *at == NOWHERE)
    }

    pub(crate) fn set_present(&mut self, slot: usize) {
        self.present |= 1 << slot;
        self.filled |= 1 << slot;
    }

    pub(crate) fn set_writable(&mut self, slot: usize) {
        debug_assert!(self.is_present(slot));
        self.writable |= 1 << slot;
        self.gated &= !(1 << slot);
    }

    pub(crate) fn set_clean(&mut self, slot: usize) {
        self.writable &= !(1 << slot);
        self.gated &= !(1 << slot);
    }

    pub(crate) fn set_absent(&mut self, slot: usize) {
        self.set_clean(slot);
        self.present &= !(1 << slot);
    }
}
