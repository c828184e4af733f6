//! What a node makes of frames that no sound node sends, by seed, and who may touch which bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::lock;
use dhole_model::{NodeId, SplitMix64};
use dhole_testkit::seeds;

use super::frame::{self, Said};
use super::memory::Grants;
use super::{Capability, Memory, Rights, Rpc, RpcError, RpcRefusal};
use dhole_net::{Chances, Incoming, Local, Lossy, Port};

const ALL: usize = 100;
const GRANTED: std::ops::Range<usize> = 20..40;

/// A memory of zeros, of which some may be written.
fn memory(rpc: &Rpc) -> (Memory, Capability) {
    let memory = rpc.memory(vec![0; ALL]);
    let granted = memory.grant(GRANTED, Rights::Write).expect("a capability");
    (memory, granted)
}

#[test]
fn mutated_frames_take_neither_a_panic_nor_what_was_not_granted() {
    for seed in seeds(0..5_000) {
        let random = &mut SplitMix64(seed);
        let mut ports = Local::cluster(2).expect("two doorbells").into_iter();
        let mut port = || Box::new(ports.next().expect("two ports"));
        let rpc = Rpc::new(port()).expect("a fit port");
        let rpc = rpc.procedure(|_, arguments| arguments.to_vec());
        let hostile = port();
        let (memory, granted) = memory(&rpc);
        for _ in 0..10 {
            let place = |bytes| granted.place(random_offset(seed), bytes).to_bytes();
            let mut sent = match random.below(5) {
                0 => [&frame::call(0, 7)[..], b"arguments"].concat(),
                1 => frame::answer(1).to_vec(),
                2 => frame::refused(1, RpcRefusal::TooFar).to_vec(),
                3 => [&frame::fetch(3)[..], &place(4)].concat(),
                _ => [&frame::store(3, true)[..], &place(4), b"4444"].concat(),
            };
            let len = sent.len() as u64;
            for _ in 0..random.below(4) {
                let at = random.below(len) as usize;
                sent[at] ^= 1 << random.below(8);
            }
            sent.truncate((len - random.below(2) * random.below(len)) as usize);
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
            assert_eq!(touched, 0, "DHOLE_SEED={seed}");
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
    let seen = |offset, bytes| grants.read(&read.place(offset, bytes), <[u8]>::to_vec);
    assert_eq!(seen(0, 20), Ok((20..40).collect()));
    assert_eq!(seen(19, 1), Ok(vec![39]));
    assert_eq!(seen(20, 0), Ok(vec![]));
    assert_eq!(seen(19, 2), Err(RpcRefusal::TooFar));
    assert_eq!(seen(usize::MAX, 2), Err(RpcRefusal::TooFar));
    let stored =
        |to: &Capability, offset| grants.write(&to.place(offset, 1), |into| into.fill(b'x'));
    assert_eq!(stored(&write, 19), Ok(()));
    assert_eq!(stored(&write, 20), Err(RpcRefusal::TooFar));
    assert_eq!(stored(&read, 0), Err(RpcRefusal::NotAllowed));
    let of_write = write.place(0, 1);
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
    assert_ne!(one.place(0, 1), other.place(0, 1));
    assert_eq!(
        format!("{one:?}"),
        format!("Capability(Read 8 bytes of {})", NodeId(3))
    );
}

#[test]
fn a_wait_without_a_peer_ends_at_its_deadline() {
    let mut ports = Local::cluster(2).expect("two doorbells").into_iter();
    let rpc = Rpc::new(Box::new(ports.next().expect("a port"))).expect("a fit port");
    let within = Duration::from_millis(5);
    let error = rpc
        .call(NodeId(1), 4, b"", within)
        .expect_err("nobody serves");
    let peer = NodeId(1);
    let wanted = format!("calling procedure 4 of {peer}: no answer within 5ms");
    assert_eq!(error.to_string(), wanted);
    assert!(!rpc.serve_until(within, &|| false));
}

/// A node, and the other end of its port, at which a test says what it likes.
fn beside_hostile() -> (Rpc, Local) {
    let mut ports = Local::cluster(2).expect("two doorbells").into_iter();
    let mut port = || ports.next().expect("two ports");
    let rpc = Rpc::new(Box::new(port())).expect("a fit port");
    (rpc, port())
}

#[test]
fn a_piece_of_another_length_is_not_taken_for_one() {
    let whole = GRANTED.len();
    for said in [0, whole - 1, whole + 1] {
        let (rpc, hostile) = beside_hostile();
        let grants = Arc::new(Grants::default());
        let theirs = Memory::new(NodeId(1), vec![0; ALL], &grants);
        let granted = theirs.grant(GRANTED, Rights::Read).expect("a capability");
        let fetched = std::thread::scope(|scope| {
            let hostile = &hostile;
            scope.spawn(move || {
                let mut asked = None;
                while asked.is_none() {
                    hostile.park(Duration::from_millis(1));
                    hostile.poll(&mut |_, bytes| {
                        if let Some((call, Said::Fetch(_))) = frame::parse(&mut Incoming::of(bytes))
                        {
                            asked = Some(call);
                        }
                    });
                }
                let call = asked.expect("a fetch");
                let sent = hostile.send(NodeId(0), &[&frame::answer(call), &vec![7; said]]);
                sent.expect("room for an answer");
            });
            rpc.fetch(&granted, 0, &mut vec![0; whole], Duration::from_secs(60))
        });
        let lost = matches!(fetched, Err(RpcError::Lost { .. }));
        assert!(lost, "{said} bytes for {whole}: {fetched:?}");
    }
}

#[test]
fn a_fetch_that_is_never_sent_leaves_nothing_behind() {
    let (rpc, _hostile) = beside_hostile();
    let grants = Arc::new(Grants::default());
    for _ in 0..100 {
        let theirs = Memory::new(NodeId(7), vec![0; ALL], &grants);
        let nobodys = theirs.grant(GRANTED, Rights::Read).expect("a capability");
        let fetched = rpc.fetch(&nobodys, 0, &mut [0; 4], Duration::from_secs(60));
        assert!(
            matches!(fetched, Err(RpcError::Unsent { .. })),
            "{fetched:?}"
        );
    }
    assert!(lock(&rpc.calls).is_empty());
}

#[test]
fn deadlines_are_kept_while_others_say_something_all_the_time() {
    let (rpc, hostile) = beside_hostile();
    let (is_over, refuses) = (AtomicBool::new(false), AtomicBool::new(false));
    let theirs = Memory::new(NodeId(1), vec![0; ALL], &Arc::default());
    let granted = theirs.grant(GRANTED, Rights::Read).expect("a capability");
    std::thread::scope(|scope| {
        let (hostile, is_over, refuses) = (&hostile, &is_over, &refuses);
        let telling = scope.spawn(move || {
            let end = Instant::now() + Duration::from_secs(60);
            while !is_over.load(Ordering::Relaxed) && Instant::now() < end {
                let _ = hostile.send(NodeId(0), &[&frame::tell(0)]);
                let mut asked = None;
                hostile.poll(&mut |_, bytes| {
                    if let Some((call, Said::Fetch(_))) = frame::parse(&mut Incoming::of(bytes)) {
                        asked = Some(call);
                    }
                });
                if let Some(call) = asked.filter(|_| refuses.load(Ordering::Relaxed)) {
                    let refused = frame::refused(call, RpcRefusal::NotAllowed);
                    while hostile.send(NodeId(0), &[&refused]).is_err() && Instant::now() < end {}
                }
            }
            is_over.load(Ordering::Relaxed)
        });
        let within = Duration::from_millis(20);
        let called = rpc.call(NodeId(1), 0, b"", within);
        assert!(matches!(called, Err(RpcError::Late { .. })), "{called:?}");
        let fetch = |within| rpc.fetch(&granted, 0, &mut [0; 4], within);
        let fetched = fetch(within);
        assert!(matches!(fetched, Err(RpcError::Late { .. })), "{fetched:?}");
        refuses.store(true, Ordering::Relaxed);
        let fetched = fetch(Duration::from_secs(60));
        assert!(
            matches!(fetched, Err(RpcError::Refused { .. })),
            "{fetched:?}"
        );
        assert!(!rpc.serve_until(within, &|| false));
        is_over.store(true, Ordering::Relaxed);
        assert!(
            telling.join().expect("no panic"),
            "it outlasted the telling"
        );
    });
}

#[test]
fn a_port_that_may_lose_frames_is_refused() {
    let mut ports = Local::cluster(2).expect("two doorbells").into_iter();
    let inner = ports.next().expect("a port");
    let Err(unfit) = Rpc::new(Box::new(Lossy::new(inner, 1, Chances::default()))) else {
        panic!("it is taken");
    };
    assert_eq!((unfit.port, unfit.offers.reliable), ("lossy", false));
    let words = "the port lossy offers too little for remote procedures";
    assert!(unfit.to_string().starts_with(words), "{unfit}");
}

#[test]
fn a_node_spins_only_while_as_many_as_share_its_cores_could() {
    let (rpc, _other) = beside_hostile();
    let rpc = rpc.neighbours(1);
    assert!(rpc.spins, "bound to a core of its own");
    assert!(!rpc.neighbours(1 << 20).spins, "among more than any cores");
}
