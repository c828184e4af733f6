use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::{NodeId, SplitMix64};

/// A node's own stream of random numbers decided by the run's seed.
pub(crate) struct Random(AtomicU64);

impl Random {
    pub fn new(seed: u64, node: NodeId) -> Random {
        Random(AtomicU64::new(SplitMix64::after(
            seed ^ SplitMix64::after(u64::from(node.0) + 1),
        )))
    }

    /// Begins anew.
    pub fn reseed(&self, seed: u64, node: NodeId) {
        let begun = Random::new(seed, node).0.into_inner();
        self.0.store(begun, Ordering::Relaxed);
    }

    pub fn next(&self) -> u64 {
        SplitMix64::after(self.0.fetch_add(SplitMix64::STEP, Ordering::Relaxed))
    }
}
