//! What a node makes of frames that no sound node sends, by seed, and who may touch which bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole_model::NodeId;

use super::frame::{self, Place};
use super::memory::Grants;
use super::{Memory, Rights, Rpc, RpcRefusal};
use crate::{Local, Port};

/// SplitMix64.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

const ALL: usize = 100;
const GRANTED: std::ops::Range<usize> = 20..40;

/// A memory of zeros, of which some may be written.
fn memory(rpc: &Rpc) -> (Memory, super::Capability) {
    let memory = rpc.memory(vec![0; ALL]);
    let granted = memory.grant(GRANTED, Rights::Write).expect("a capability");
    (memory, granted)
}

#[test]
fn mutated_frames_take_neither_a_panic_nor_what_was_not_granted() {
    let seeds = std::env::var("DHOLE_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok());
    for seed in 0..seeds.unwrap_or(5_000) {
        let random = &mut Seeded(seed);
        let mut ports = Local::cluster(2).expect("two bells").into_iter();
        let told = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&told);
        let mut port = || Box::new(ports.next().expect("two ports"));
        let rpc = Rpc::new(port()).procedure(move |_, arguments| {
            count.fetch_add(1, Ordering::Relaxed);
            arguments.to_vec()
        });
        let hostile = port();
        let (memory, granted) = memory(&rpc);
        for _ in 0..10 {
            let place = |bytes| Place::of(&granted, random_offset(seed), bytes).to_bytes();
            let mut sent = match random.below(5) {
                0 => [&frame::call(0, 7)[..], b"arguments"].concat(),
                1 => frame::answer(1).to_vec(),
                2 => frame::refused(1, RpcRefusal::TooFar).to_vec(),
                3 => [&frame::fetch(3)[..], &place(4)].concat(),
                _ => [&frame::store(3, true)[..], &place(4), b"4444"].concat(),
            };
            for _ in 0..random.below(4) {
                let at = random.below(sent.len());
                sent[at] ^= 1 << random.below(8);
            }
            sent.truncate(sent.len() - random.below(2) * random.below(sent.len()));
            let _ = hostile.send(NodeId(0), &[&sent]);
            rpc.poll();
            hostile.poll(&mut |_, _| ());
        }
        memory.read(|bytes| {
            let outside = bytes
                .iter()
                .enumerate()
                .filter(|(at, _)| !GRANTED.contains(at));
            let touched = outside.filter(|(_, byte)| **byte != 0).count();
            assert_eq!(touched, 0, "DHOLE_SEEDS: seed {seed}");
        });
    }
}

/// Offsets at and around the end of what was granted.
fn random_offset(seed: u64) -> usize {
    [0, 16, 17, 19, 20, 80, usize::MAX][seed as usize % 7]
}

#[test]
fn a_range_and_a_right_are_the_owners_to_say() {
    let grants = Arc::new(Grants::default());
    let memory = Memory::new(NodeId(0), (0..100).collect(), &grants);
    let read = memory.grant(GRANTED, Rights::Read).expect("a capability");
    let write = memory.grant(GRANTED, Rights::Write).expect("a capability");
    let seen = |offset, bytes| grants.read(&Place::of(&read, offset, bytes), <[u8]>::to_vec);
    assert_eq!(seen(0, 20), Ok((20..40).collect()));
    assert_eq!(seen(19, 1), Ok(vec![39]));
    assert_eq!(seen(20, 0), Ok(vec![]));
    assert_eq!(seen(19, 2), Err(RpcRefusal::TooFar));
    assert_eq!(seen(usize::MAX, 2), Err(RpcRefusal::TooFar));
    let stored = |to, offset| grants.write(&Place::of(to, offset, 1), b"x");
    assert_eq!(stored(&write, 19), Ok(()));
    assert_eq!(stored(&write, 20), Err(RpcRefusal::TooFar));
    assert_eq!(stored(&read, 0), Err(RpcRefusal::NotAllowed));
    let of_write = Place::of(&write, 0, 1);
    assert_eq!(
        grants.read(&of_write, <[u8]>::to_vec),
        Err(RpcRefusal::NotAllowed)
    );
    memory.read(|_| assert_eq!(stored(&write, 0), Err(RpcRefusal::InUse)));
    assert!(memory.revoke(&write));
    assert_eq!(stored(&write, 0), Err(RpcRefusal::NotGood));
    drop(memory);
    assert_eq!(seen(0, 1), Err(RpcRefusal::NotGood));
}

#[test]
fn keys_differ_and_are_not_shown() {
    let grants = Arc::new(Grants::default());
    let memory = Memory::new(NodeId(3), vec![0; 8], &grants);
    let grant = || memory.grant(0..8, Rights::Read).expect("a capability");
    let (one, other) = (grant(), grant());
    assert_ne!(one.key(), other.key());
    assert_eq!(
        format!("{one:?}"),
        format!("Capability(Read 8 bytes of {})", NodeId(3))
    );
}

#[test]
fn a_wait_without_a_peer_ends_at_its_deadline() {
    let mut ports = Local::cluster(2).expect("two bells").into_iter();
    let rpc = Rpc::new(Box::new(ports.next().expect("a port")));
    let within = Duration::from_millis(5);
    let error = rpc
        .call(NodeId(1), 4, b"", within)
        .expect_err("nobody serves");
    let peer = NodeId(1);
    let wanted = format!("calling procedure 4 of {peer}: no answer within 5ms");
    assert_eq!(error.to_string(), wanted);
    assert!(!rpc.serve_until(within, &|| false));
}
