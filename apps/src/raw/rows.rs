//! Numbers of either precision in raw memory, rows of them, and what is reported of the memory.

use std::sync::atomic::Ordering::Relaxed;

use dhole::Worker;
use dhole::memory::{self, MemoryError, MemoryUsage, SharedNumber, SharedRows};
use serde_json::{Value, json};

use super::{Cut, Granularity};

/// A number of either precision, which programs compute with as `f64`.
pub trait Float: SharedNumber {
    /// The number in a cell.
    fn load(cell: &Self::Atomic) -> f64;
    /// Puts a number into a cell, rounded.
    fn store(cell: &Self::Atomic, number: f64);
}

impl Float for f64 {
    #[inline(always)]
    fn load(cell: &Self::Atomic) -> f64 {
        cell.load(Relaxed)
    }

    #[inline(always)]
    fn store(cell: &Self::Atomic, number: f64) {
        cell.store(number, Relaxed);
    }
}

impl Float for f32 {
    #[inline(always)]
    fn load(cell: &Self::Atomic) -> f64 {
        cell.load(Relaxed).into()
    }

    #[inline(always)]
    fn store(cell: &Self::Atomic, number: f64) {
        cell.store(number as f32, Relaxed);
    }
}

impl Cut {
    /// Allocates `count` rows of `len` numbers that are zero.
    ///
    /// # Errors
    /// [`MemoryError`]
    pub fn rows<N: SharedNumber>(
        self,
        w: &mut Worker<'_>,
        count: usize,
        len: usize,
    ) -> Result<SharedRows<N>, MemoryError> {
        match self.granularity {
            Granularity::Allocation => memory::alloc_chunks(w, count, len, self.chunk),
            Granularity::Adaptive => memory::alloc_groups(w, count, len),
            Granularity::Page => memory::alloc_contiguous(w, count, len),
        }
    }
}

/// What is reported of a node's memory: how faults are caught, how many views its minipages need,
/// and the bytes of its pages and of its minipages.
pub fn shown(usage: &MemoryUsage) -> Value {
    json!({
        "faults": usage.faults,
        "views": usage.views,
        "memory_bytes": usage.bytes,
        "minipage_bytes": usage.minipage_bytes,
    })
}

/// A report with more in it.
pub fn with(mut result: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        result[name] = value.clone();
    }
    result
}
