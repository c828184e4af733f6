use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::NodeId;

/// A node's own stream of random numbers (splitmix64), decided by the run's seed.
pub(crate) struct Random(AtomicU64);

impl Random {
    pub fn new(seed: u64, node: NodeId) -> Random {
        Random(AtomicU64::new(mix(seed ^ mix(u64::from(node.0) + 1))))
    }

    /// Begins anew.
    pub fn reseed(&self, seed: u64, node: NodeId) {
        let begun = Random::new(seed, node).0.into_inner();
        self.0.store(begun, Ordering::Relaxed);
    }

    pub fn next(&self) -> u64 {
        mix(self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
