use std::fmt;
use std::hash::{Hash, Hasher};

use dhole_model::{CHUNK, Oid, Version};
use rustc_hash::FxHashMap;

/// What one node's protocol knows of one object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ObjectState {
    /// The version of the bytes stored here, valid or not.
    pub held: Option<Version>,
    /// The newest version that a write notice, or our own writing, told of. Lamport 0: as it was
    /// allocated.
    pub known: Version,
    /// Written in the current interval.
    pub dirty: bool,
    /// Sent to another node at some time, so that a first write is worth a pre-image.
    pub served: bool,
    /// Dirty, and its bytes from before the first write are kept.
    pub pre_image: bool,
}

impl ObjectState {
    /// Whether the stored bytes may be read.
    pub fn is_valid(&self) -> bool {
        self.held.is_some_and(|held| held >= self.known)
    }
}

/// The states of all objects that a node has heard of, by chunk.
#[derive(Clone, Default)]
pub(crate) struct ObjectTable {
    chunks: FxHashMap<u64, Box<[ObjectState; CHUNK as usize]>>,
}

impl ObjectTable {
    pub fn get(&self, oid: Oid) -> ObjectState {
        self.chunks
            .get(&oid.chunk())
            .map_or_else(ObjectState::default, |chunk| chunk[oid.slot()])
    }

    pub fn get_mut(&mut self, oid: Oid) -> &mut ObjectState {
        let chunk = self
            .chunks
            .entry(oid.chunk())
            .or_insert_with(|| Box::new([ObjectState::default(); CHUNK as usize]));
        &mut chunk[oid.slot()]
    }

    /// The objects that were heard of, in order of their ids.
    fn known(&self) -> impl Iterator<Item = (Oid, ObjectState)> {
        let mut chunks: Vec<_> = self.chunks.iter().collect();
        chunks.sort_unstable_by_key(|(number, _)| **number);
        chunks
            .into_iter()
            .flat_map(|(number, chunk)| {
                (0..CHUNK).map(move |slot| (Oid(number * CHUNK + slot), chunk[slot as usize]))
            })
            .filter(|(_, state)| *state != ObjectState::default())
    }
}

impl PartialEq for ObjectTable {
    fn eq(&self, other: &Self) -> bool {
        self.known().eq(other.known())
    }
}

impl Eq for ObjectTable {}

impl Hash for ObjectTable {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.known().for_each(|object| object.hash(hasher));
    }
}

impl fmt::Debug for ObjectTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.known()).finish()
    }
}
