//! What a writer changed in an object: differences against a twin, in whole leaves.
//!
//! A *diff* is a list of runs of packed bytes, each with its place, in ascending order. Runs are
//! made of whole leaves, the smallest parts of a value that a program can write: never a part of a
//! number, of a `char` or of a reference. So two diffs of different leaves can be applied in any
//! order, and of two writers of one leaf one wins.

use std::ops::Range;

use crate::{Binding, TypeInfo};

/// Bytes of a run's place and length.
const RUN_BYTES: usize = 8 + 4;

/// Bytes that are compared at once where nothing has changed.
const STRETCH: usize = 256;

/// Why bytes are no diff of an object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DiffError {
    /// A run's place or its bytes are missing.
    #[error("it ends within a run")]
    CutOff,
    /// A run lies outside of the object.
    #[error("{bytes} bytes at {packed_offset} are beyond the object's {all}")]
    OutOfBounds {
        /// Where the run starts.
        packed_offset: u64,
        /// Its bytes.
        bytes: u32,
        /// The object's bytes without padding.
        all: usize,
    },
}

/// Appends to `out` how `new` differs from `old`, both packed objects of this kind.
pub(crate) fn diff(binding: &Binding, old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    debug_assert_eq!(old.len(), new.len());
    let mut runs = Runs {
        new,
        out,
        last: None,
    };
    if binding.row || binding.info.is_uniform() {
        let bytes = match binding.row {
            true => binding.info.packed_size,
            false => binding.info.grains[0].bytes,
        };
        uniform(bytes, old, new, &mut runs);
        return;
    }
    let mut changed = Vec::new();
    for grain in &binding.info.grains {
        let places = (0..grain.count).map(|i| grain.packed_offset + i * grain.packed_stride);
        let differs = |at: &usize| old[*at..*at + grain.bytes] != new[*at..*at + grain.bytes];
        changed.extend(places.filter(differs).map(|at| (at, grain.bytes)));
    }
    changed.sort_unstable();
    changed.iter().for_each(|(at, bytes)| runs.add(*at, *bytes));
}

/// As [`diff`], of leaves of `bytes` bytes and nothing else.
fn uniform(bytes: usize, old: &[u8], new: &[u8], runs: &mut Runs<'_>) {
    if bytes == 0 {
        return;
    }
    let stretch = STRETCH.next_multiple_of(bytes);
    for (n, (olds, news)) in old.chunks(stretch).zip(new.chunks(stretch)).enumerate() {
        if olds == news {
            continue;
        }
        let leaves = olds.chunks_exact(bytes).zip(news.chunks_exact(bytes));
        for (i, (old, new)) in leaves.enumerate() {
            if old != new {
                runs.add(n * stretch + i * bytes, bytes);
            }
        }
    }
}

/// A diff that is being written.
struct Runs<'a> {
    new: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Where in `out` the last run starts, and where it ends in the object.
    last: Option<(usize, usize)>,
}

impl Runs<'_> {
    /// Adds a leaf, which lies behind those before.
    fn add(&mut self, at: usize, bytes: usize) {
        let leaf = &self.new[at..at + bytes];
        if let Some((start, end)) = &mut self.last
            && *end == at
        {
            let length = &mut self.out[*start + 8..*start + RUN_BYTES];
            let before = u32::from_le_bytes(length.try_into().expect("4 bytes"));
            if let Some(sum) = before.checked_add(bytes as u32) {
                length.copy_from_slice(&sum.to_le_bytes());
                self.out.extend_from_slice(leaf);
                *end += bytes;
                return;
            }
        }
        self.last = Some((self.out.len(), at + bytes));
        self.out.extend_from_slice(&(at as u64).to_le_bytes());
        self.out.extend_from_slice(&(bytes as u32).to_le_bytes());
        self.out.extend_from_slice(leaf);
    }
}

/// Changes a packed object by a diff. Whether the result is a value is the caller's to test.
///
/// # Errors
/// [`DiffError`]; then some runs may have been applied.
pub(crate) fn apply(mut diff: &[u8], packed: &mut [u8]) -> Result<(), DiffError> {
    while !diff.is_empty() {
        let (place, rest) = diff.split_first_chunk::<8>().ok_or(DiffError::CutOff)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(DiffError::CutOff)?;
        let (packed_offset, bytes) = (u64::from_le_bytes(*place), u32::from_le_bytes(*length));
        let (run, rest) = rest
            .split_at_checked(bytes as usize)
            .ok_or(DiffError::CutOff)?;
        let all = packed.len();
        let start = usize::try_from(packed_offset).ok();
        let to = start.and_then(|start| packed.get_mut(start..start.checked_add(run.len())?));
        to.ok_or(DiffError::OutOfBounds {
            packed_offset,
            bytes,
            all,
        })?
        .copy_from_slice(run);
        diff = rest;
    }
    Ok(())
}

/// Which packed bytes of an object a diff changes, run by run; one that is cut off ends there.
pub fn diff_ranges(mut diff: &[u8]) -> impl Iterator<Item = Range<u64>> {
    std::iter::from_fn(move || {
        let (place, rest) = diff.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (start, bytes) = (u64::from_le_bytes(*place), u32::from_le_bytes(*length));
        diff = rest.get(bytes as usize..)?;
        Some(start..start.checked_add(u64::from(bytes))?)
    })
}

impl TypeInfo {
    /// Bytes of the smallest part of a value that a program can write.
    pub(crate) fn smallest_leaf(&self) -> usize {
        let leaves = self.grains.iter().map(|grain| grain.bytes);
        leaves.min().unwrap_or(usize::MAX)
    }

    /// Whether all leaves are of one size and follow on each other.
    fn is_uniform(&self) -> bool {
        match &self.grains[..] {
            [one] => one.packed_offset == 0 && one.count * one.bytes == self.packed_size,
            _ => false,
        }
    }
}
