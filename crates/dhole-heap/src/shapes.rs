//! What the objects of each chunk are, told in a few bytes.
//!
//! Received bytes name objects of many chunks, and each name is tested. The chunks' records are
//! large and mostly cold. A number for each chunk, and a list of the few shapes that programs
//! have, stay in the cache.

use std::any::TypeId;

use rustc_hash::FxHashMap;

use crate::Binding;

/// What an object is, as far as references to it tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    /// The type of the object, or of each scalar of a row.
    pub(crate) of: TypeId,
    /// Scalars in the row; 1 for an object.
    pub(crate) len: u64,
    /// Whether the object is a row of scalars.
    pub(crate) row: bool,
}

/// The shapes of chunks, by the places of their records.
#[derive(Default)]
pub(crate) struct Shapes {
    of_chunks: Vec<u32>,
    all: Vec<Shape>,
    numbers: FxHashMap<Shape, u32>,
}

impl Shapes {
    /// The record at this place is of a chunk with this binding.
    pub(crate) fn set(&mut self, chunk: usize, binding: &Binding) {
        let shape = Shape {
            of: binding.info.type_id,
            len: binding.len,
            row: binding.row,
        };
        let number = *self.numbers.entry(shape).or_insert_with(|| {
            self.all.push(shape);
            self.all.len() as u32 - 1
        });
        if self.of_chunks.len() <= chunk {
            self.of_chunks.resize(chunk + 1, number);
        }
        self.of_chunks[chunk] = number;
    }

    /// The shape of the objects whose chunk has its record at this place.
    #[inline]
    pub(crate) fn of(&self, chunk: usize) -> Shape {
        self.all[self.of_chunks[chunk] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TypeInfo;
    use dhole_model::Coherence;

    #[test]
    fn each_shape_is_kept_once_and_a_place_may_get_another() {
        let row = |len| Binding {
            info: TypeInfo::of::<u64>(),
            len,
            row: true,
            coherence: Coherence::Lazy,
        };
        let mut shapes = Shapes::default();
        for (chunk, len) in [(0, 3), (2, 5), (1, 3), (2, 3)] {
            shapes.set(chunk, &row(len));
        }
        assert_eq!([0, 1, 2].map(|chunk| shapes.of(chunk).len), [3; 3]);
        assert_eq!(shapes.all.len(), 2);
    }
}
