//! Remote procedures and memory, over every port.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{Loss, Port};
use dhole_rpc::{Capability, Doing, Memory, Rights, Rpc, RpcError, RpcLimits, RpcRefusal};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Make, Patience};

/// A time that no call of these checks takes.
fn long() -> Duration {
    Patience::bound()
}

const ECHO: u16 = 0;
const NOTE: u16 = 1;
const PANIC: u16 = 2;
const ENDLESS: u16 = 3;
const MISSING: u16 = 4;

/// A node that echoes, and records one-way calls.
struct Remote {
    rpc: Rpc,
    noted: Arc<Mutex<Vec<(NodeId, u64)>>>,
}

impl Remote {
    fn new(port: Box<dyn Port>, limits: RpcLimits) -> Remote {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&noted);
        let largest = port.offers().largest;
        let rpc = Rpc::with_limits(port, limits)
            .expect("a port that is reliable and ordered")
            .procedure(|_, arguments| arguments.iter().rev().copied().collect())
            .procedure(move |from, arguments| {
                let number = super::Node::number(arguments);
                notes.lock().expect("no panic").push((from, number));
                Vec::new()
            })
            .procedure(|_, _| panic!("as intended"))
            .procedure(move |_, _| vec![0; largest]);
        Remote { rpc, noted }
    }
}

fn remotes(make: Make, nodes: usize, limits: RpcLimits) -> Vec<Remote> {
    let ports = make(nodes).into_iter();
    ports.map(|port| Remote::new(port, limits)).collect()
}

/// Runs what each node does in a thread of its own; all serve until all are done.
fn all(remotes: &[Remote], role: impl Fn(&Remote) + Sync) {
    struct Done<'a>(&'a AtomicUsize);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for remote in remotes {
            let (role, done) = (&role, &done);
            scope.spawn(move || {
                let mine = Done(done);
                role(remote);
                drop(mine);
                let patience = Patience::default();
                while done.load(Ordering::SeqCst) < remotes.len() {
                    patience.for_a("the other nodes");
                    if remote.rpc.poll() == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
}

/// Those that others have: all but this one.
fn others(rpc: &Rpc) -> impl Iterator<Item = NodeId> + use<> {
    let me = rpc.me();
    (0..rpc.nodes()).map(NodeId::at).filter(move |&n| n != me)
}

/// Each calls each, one after the other, many at once, and with what has no answer.
pub fn each_calls_each_and_is_answered(make: Make) {
    const TOLD: u64 = 200;
    let remotes = remotes(make, 3, RpcLimits::default());
    all(&remotes, |Remote { rpc, .. }| {
        for peer in others(rpc) {
            for call in 0..50u64 {
                let asked = [&call.to_le_bytes()[..], &[rpc.me().0 as u8]].concat();
                let mut wanted = asked.clone();
                wanted.reverse();
                assert_eq!(rpc.call(peer, ECHO, &asked, long()), Ok(wanted));
            }
            let begin = |call: u64| rpc.begin(peer, ECHO, &call.to_le_bytes(), long());
            let many: Vec<_> = (0..60).map(|c| (c, begin(c).expect("room"))).collect();
            for (call, pending) in many.into_iter().rev() {
                assert_eq!(pending.wait(), Ok(call.to_be_bytes().to_vec()));
            }
            for number in 0..TOLD {
                let told = rpc.tell(peer, NOTE, &number.to_le_bytes(), long());
                assert_eq!(told, Ok(()));
            }
            // What was told before a call came before it.
            assert_eq!(rpc.call(peer, ECHO, b"", long()), Ok(Vec::new()));
        }
    });
    for remote in &remotes {
        let noted = remote.noted.lock().expect("no panic");
        for peer in others(&remote.rpc) {
            let of_it = noted.iter().filter(|(from, _)| *from == peer);
            let numbers: Vec<u64> = of_it.map(|(_, number)| *number).collect();
            assert_eq!(numbers, (0..TOLD).collect::<Vec<_>>(), "of {peer}");
        }
    }
}

/// A call that cannot be answered is refused by name, and the peer goes on.
pub fn what_a_peer_refuses_it_says(make: Make) {
    let remotes = remotes(make, 2, RpcLimits::default());
    all(&remotes, |Remote { rpc, .. }| {
        let peer = NodeId(1 - rpc.me().0);
        for (procedure, refusal) in [
            (PANIC, RpcRefusal::Panicked),
            (ENDLESS, RpcRefusal::AnswerTooLong),
            (MISSING, RpcRefusal::NoProcedure),
        ] {
            let doing = Doing::Calling { procedure };
            let refused = Err(RpcError::Refused {
                doing,
                peer,
                refusal,
            });
            assert_eq!(rpc.call(peer, procedure, b"x", long()), refused);
        }
        assert_eq!(rpc.call(peer, ECHO, b"ab", long()), Ok(b"ba".to_vec()));
        let peer = rpc.me();
        let itself = rpc.call(peer, ECHO, b"", long());
        assert!(matches!(itself, Err(RpcError::Unsent { .. })), "{itself:?}");
        let nobody = rpc.call(NodeId(9), ECHO, b"", long());
        assert!(matches!(nobody, Err(RpcError::Unsent { .. })), "{nobody:?}");
    });
}

/// A peer that does not serve is not waited for beyond the deadline, nor asked without a limit.
pub fn a_peer_that_does_not_serve_is_given_its_time(make: Make) {
    let limits = RpcLimits {
        unanswered: 3,
        ..RpcLimits::default()
    };
    let remotes = remotes(make, 2, limits);
    let (rpc, peer) = (&remotes[0].rpc, NodeId(1));
    let within = Duration::from_millis(20);
    for _ in 0..limits.unanswered {
        let doing = Doing::Calling { procedure: ECHO };
        let late = Err(RpcError::Late {
            doing,
            peer,
            within,
        });
        assert_eq!(rpc.call(peer, ECHO, b"x", within), late);
    }
    let crowded = rpc.call(peer, ECHO, b"x", within);
    assert!(
        matches!(crowded, Err(RpcError::Crowded { most: 3, .. })),
        "{crowded:?}"
    );
    // The late answers make room again, and are no answers to what is asked then.
    all(&remotes, |remote| {
        if remote.rpc.me() == NodeId(0) {
            for call in 0..10u64 {
                let asked = call.to_le_bytes();
                let answer = remote.rpc.call(peer, ECHO, &asked, long());
                assert_eq!(answer, Ok(call.to_be_bytes().to_vec()));
            }
        }
    });
}

/// The loss of a peer ends the calls to it, by name.
pub fn a_lost_peer_ends_the_calls_of_it(make: Make) {
    let mut remotes = remotes(make, 2, RpcLimits::default());
    let gone = remotes.pop();
    let (rpc, peer) = (&remotes[0].rpc, NodeId(1));
    let pending = rpc.begin(peer, ECHO, b"x", long()).expect("room");
    drop(gone);
    let lost = pending.wait();
    let is_lost = |e: &Result<Vec<u8>, RpcError>| {
        matches!(
            e,
            Err(RpcError::Lost {
                peer: NodeId(1),
                ..
            })
        )
    };
    assert!(is_lost(&lost), "{lost:?}");
    for _ in 0..2 * RpcLimits::default().unanswered {
        let lost = rpc.call(peer, ECHO, b"x", long());
        assert!(is_lost(&lost), "{lost:?}");
    }
    assert!(rpc.lost(peer).is_some());
}

/// A memory of random bytes on node 0, and what it granted, handed over by calls.
fn granted(remotes: &[Remote], memory: &Memory, rights: Rights) -> Capability {
    let bytes = memory.read(<[u8]>::len);
    let capability = memory.grant(0..bytes, rights).expect("a capability");
    assert_eq!(
        (capability.owner(), capability.len()),
        (remotes[0].rpc.me(), bytes)
    );
    let handed = Capability::from_bytes(&capability.to_bytes());
    assert_eq!(handed.as_ref(), Some(&capability));
    capability
}

/// Large memories go both ways at once, whole, from several nodes.
pub fn memory_is_fetched_and_stored_whole(make: Make) {
    const BYTES: usize = 1_500_000;
    let remotes = remotes(make, 3, RpcLimits::default());
    let mut random = SmallRng::seed_from_u64(5);
    let mut original = vec![0; BYTES];
    random.fill(&mut original[..]);
    let source = remotes[0].rpc.memory(original.clone());
    let target = remotes[0].rpc.memory(vec![0; BYTES]);
    let read = granted(&remotes, &source, Rights::Read);
    let write = granted(&remotes, &target, Rights::Write);
    let half = BYTES / 2 + 1;
    all(&remotes, |Remote { rpc, .. }| {
        let mine = match rpc.me().0 {
            0 => return,
            1 => 0..half,
            _ => half..BYTES,
        };
        let mut all = vec![0; BYTES];
        rpc.fetch(&read, 0, &mut all, long()).expect("all of it");
        assert!(all == original, "{} has what node 0 has", rpc.me());
        let mut some = vec![0; 1_000];
        let from = mine.start + 77;
        rpc.fetch(&read, from, &mut some, long())
            .expect("some of it");
        assert!(some == original[from..from + 1_000]);
        let stored = rpc.store(&write, mine.start, &all[mine.clone()], long());
        assert_eq!(stored, Ok(()));
        assert_eq!(rpc.fetch(&read, BYTES, &mut [], long()), Ok(()));
    });
    target.read(|bytes| assert!(bytes == original, "both halves are there"));
}

/// No node gets more than a capability allows, and nothing once it is revoked.
pub fn memory_is_used_only_as_far_as_allowed(make: Make) {
    let remotes = remotes(make, 2, RpcLimits::default());
    let memory = remotes[0].rpc.memory((0..100).collect());
    let grant = |range, rights| memory.grant(range, rights).expect("a capability");
    let (read, write) = (grant(10..20, Rights::Read), grant(10..20, Rights::Write));
    let both = grant(0..100, Rights::ReadWrite);
    let taken_back = grant(0..100, Rights::ReadWrite);
    assert!(memory.revoke(&taken_back) && !memory.revoke(&taken_back));
    let dropped = remotes[0].rpc.memory(vec![1; 10]);
    let of_dropped = dropped
        .grant(0..10, Rights::ReadWrite)
        .expect("a capability");
    drop(dropped);
    let mut forged = both.to_bytes();
    forged[Capability::BYTES - 1] ^= 1;
    let forged = Capability::from_bytes(&forged).expect("its form is right");
    // Who says that it may more than it was granted.
    let mut more = read.to_bytes();
    more[2] = both.to_bytes()[2];
    more[3..11].copy_from_slice(&u64::MAX.to_le_bytes());
    let more = Capability::from_bytes(&more).expect("its form is right");
    assert!(memory.grant(90..101, Rights::Read).is_err());
    assert!(!format!("{both:?}").contains(&format!("{:?}", &both.to_bytes()[11..])));
    all(&remotes, |Remote { rpc, .. }| {
        let refusal = |result: Result<(), RpcError>| match result {
            Err(RpcError::Refused { refusal, .. }) => refusal,
            other => panic!("{}: {other:?}", rpc.me()),
        };
        let fetch = |from, offset, bytes| {
            let mut into = vec![0; bytes];
            rpc.fetch(from, offset, &mut into, long()).map(|()| into)
        };
        let refused = |from, offset, bytes| refusal(fetch(from, offset, bytes).map(drop));
        let stored = |to, offset, bytes: &[u8]| rpc.store(to, offset, bytes, long());
        assert_eq!(fetch(&read, 0, 10), Ok((10..20).collect()));
        assert_eq!(refused(&read, 0, 11), RpcRefusal::TooFar);
        assert_eq!(refused(&read, 11, 0), RpcRefusal::TooFar);
        assert_eq!(refused(&read, usize::MAX, 2), RpcRefusal::TooFar);
        assert_eq!(refused(&more, 0, 11), RpcRefusal::TooFar);
        assert_eq!(refused(&write, 0, 1), RpcRefusal::NotAllowed);
        assert_eq!(refusal(stored(&read, 0, b"x")), RpcRefusal::NotAllowed);
        assert_eq!(refusal(stored(&more, 0, b"x")), RpcRefusal::NotAllowed);
        assert_eq!(refusal(stored(&write, 9, b"xy")), RpcRefusal::TooFar);
        // The pieces behind the one that is refused are neither stored nor a reason to be cut off.
        let much = vec![0; 5_000_000];
        assert_eq!(refusal(stored(&read, 0, &much)), RpcRefusal::NotAllowed);
        for wrong in [&forged, &taken_back, &of_dropped] {
            assert_eq!(refused(wrong, 0, 1), RpcRefusal::NotGood);
            assert_eq!(refusal(stored(wrong, 0, b"x")), RpcRefusal::NotGood);
        }
        assert_eq!(fetch(&both, 0, 100), Ok((0..100).collect()));
    });
    memory.read(|bytes| assert_eq!(bytes, (0..100).collect::<Vec<u8>>(), "nothing changed"));
}

/// While its owner uses a memory, a node that asks for it asks again.
pub fn memory_in_use_is_waited_for(make: Make) {
    let remotes = remotes(make, 2, RpcLimits::default());
    let memory = remotes[0].rpc.memory(vec![1; 1_000]);
    let capability = memory
        .grant(0..1_000, Rights::ReadWrite)
        .expect("a capability");
    let asked = AtomicU64::new(0);
    all(&remotes, |Remote { rpc, .. }| {
        if rpc.me() == NodeId(0) {
            memory.write(|bytes| {
                let patience = Patience::default();
                // Serves while it has the memory, and so must not wait for it itself.
                let mut served = 0;
                while served < 3 {
                    patience.for_a("a request");
                    served += rpc.poll();
                }
                bytes.fill(2);
            });
            return;
        }
        asked.fetch_add(1, Ordering::SeqCst);
        let mut into = [0; 1_000];
        assert_eq!(rpc.fetch(&capability, 0, &mut into, long()), Ok(()));
        assert!(
            into.iter().all(|&byte| byte == 2),
            "never what is half done"
        );
    });
    assert_eq!(asked.into_inner(), 1);
}

/// A peer that sends a false frame is cut off, or refused. No node panics, and nothing grows.
pub fn who_says_what_nobody_says_is_cut_off(make: Make) {
    let place = |bytes: u64| [&[7; 16][..], &0u64.to_le_bytes(), &bytes.to_le_bytes()].concat();
    let head = |kind: u8, more: u16| {
        let more = more.to_le_bytes();
        [
            kind, 0, more[0], more[1], 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
        ]
    };
    let store = [&head(6, 1)[..], &place(5), b"four"].concat();
    let cut_off: [&[u8]; 7] = [
        b"",
        b"GET / HTTP/1.1",
        &head(0, 0),
        &head(77, 0),
        &head(4, 999),
        &[&head(5, 0)[..], b"no place"].concat(),
        &store,
    ];
    let much = [&head(3, 0)[..], &vec![1; (1 << 20) + 1]].concat();
    let cut_off = cut_off.into_iter().chain([&much[..]]);
    let told: [&[u8]; 4] = [
        // Answers and refusals of what nobody asked.
        &[&head(3, 0)[..], b"here you are"].concat(),
        &head(4, 0),
        &[&head(5, 0)[..], &place(u64::MAX)].concat(),
        &[&head(6, 1)[..], &place(4), b"four"].concat(),
    ];
    let told = told.iter().map(|f| (*f, true));
    for (frames, goes_on) in cut_off.map(|f| (f, false)).chain(told) {
        let mut ports = make(2);
        let hostile = ports.pop().expect("two ports");
        if frames.len() > hostile.offers().largest {
            continue;
        }
        let node = Remote::new(ports.pop().expect("two ports"), RpcLimits::default());
        let patience = Patience::default();
        let refused = hostile.send(NodeId(0), &[frames]);
        assert_eq!(refused, Ok(()));
        let marker = [&head(2, NOTE)[..], &1u64.to_le_bytes()].concat();
        let _ = hostile.send(NodeId(0), &[&marker]);
        let is_over = || match goes_on {
            true => !node.noted.lock().expect("no panic").is_empty(),
            false => node.rpc.lost(NodeId(1)).is_some(),
        };
        while !is_over() {
            patience.for_a("a verdict");
            node.rpc.poll();
            hostile.poll(&mut |_, _| ());
        }
        let loss = node.rpc.lost(NodeId(1));
        match goes_on {
            true => assert_eq!(loss, None, "{frames:?}"),
            false => assert!(
                matches!(loss, Some(Loss::CutOff(_))),
                "{frames:?}: {loss:?}"
            ),
        }
        assert_eq!(
            node.noted.lock().expect("no panic").len(),
            usize::from(goes_on)
        );
    }
}
