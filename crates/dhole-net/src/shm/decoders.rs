use std::sync::atomic::{AtomicU64, Ordering};

use super::inbound::{Behind, Inbound};
use crate::Incoming;
use crate::ring::{CONTROL, Ring};

/// A ring of shared memory in which a peer wrote these words, some before the first look and some
/// between looks: what is taken lies within the limits, and every look ends.
pub fn ring(bytes: &[u8]) {
    const WORDS: usize = 64;
    const LARGEST: usize = 4_096;
    const LOOKS: usize = 8;
    let words: Vec<AtomicU64> = (0..CONTROL + WORDS).map(|_| AtomicU64::new(0)).collect();
    let ring = Ring::new(&words);
    let mut inbound = Inbound::new();
    for look in bytes.chunks(8 * WORDS).take(LOOKS) {
        for (word, bytes) in words[CONTROL..].iter().zip(look.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(whole), Ordering::Release);
        }
        let take = &mut |mut frame: Incoming<'_>| assert!(frame.bytes().len() <= LARGEST);
        if matches!(inbound.poll(ring, LARGEST, take).behind, Behind::Lost(_)) {
            return;
        }
        assert!(inbound.of_a_frame() <= LARGEST);
    }
}
