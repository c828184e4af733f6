use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{Owed, Port, SendError};

use super::{Make, Node, Patience, together};

/// Longer than any check may take: a park that ends because of it has failed.
const LONG: Duration = Duration::from_secs(3_600);
/// Far less than a park of a test may take.
const SHORT: Duration = Duration::from_millis(2);
/// More than any port may keep for a peer that takes nothing.
const FAR_TOO_MUCH: usize = 512 << 20;

/// A sender learns that there is no room, and a refused frame is not sent.
pub fn a_peer_that_takes_nothing_is_busy_after_a_limit(make: Make) {
    let ports = make(2);
    let rest = vec![7; ports[0].offers().largest.min(10_000) - 8];
    let mut accepted = 0u64;
    loop {
        match ports[0].send(NodeId(1), &[&accepted.to_le_bytes(), &rest]) {
            Ok(()) => accepted += 1,
            Err(error) => {
                assert_eq!(error, SendError::Busy { to: NodeId(1) });
                break;
            }
        }
        assert!((accepted as usize) < FAR_TOO_MUCH / rest.len(), "no limit");
    }
    let patience = Patience::default();
    let mut next = 0;
    while next < accepted {
        patience.for_a("what was accepted");
        ports[0].poll(&mut |_, _| ());
        ports[1].poll(&mut |_, frame| {
            assert_eq!(Node::number(&frame[..8]), next);
            next += 1;
        });
    }
    let sent = ports[0].send(NodeId(1), &[&accepted.to_le_bytes(), &rest]);
    assert_eq!(sent, Ok(()), "there is room again");
}

/// While a long frame comes, its sender shows signs of life; a node that sends nothing shows none.
pub fn a_peer_whose_bytes_come_is_heard_and_no_other(make: Make) {
    let ports = make(3);
    let frame = vec![7; ports[0].offers().largest.min(8 << 20)];
    assert_eq!(ports[0].send(NodeId(1), &[&frame]), Ok(()));
    let patience = Patience::default();
    let (mut taken, mut heard) = (false, Vec::new());
    while !taken {
        patience.for_a("the frame");
        ports[0].flush();
        ports[0].poll(&mut |_, _| ());
        ports[1].poll(&mut |_, frame| taken = !frame.is_empty());
        ports[1].heard(&mut |peer| heard.push(peer));
    }
    assert!(!heard.is_empty(), "the sender was not heard");
    assert!(heard.iter().all(|&peer| peer == NodeId(0)), "{heard:?}");
}

/// No node polls: the receiver sleeps until the frame is there, time after time.
pub fn a_frame_ends_the_park_of_its_receiver(make: Make) {
    const ROUNDS: u64 = 200;
    together(&make(2), |node| {
        let to = node.others().next().expect("another node");
        let patience = Patience::default();
        let mut last = None;
        let turn = |last: &mut Option<u64>| {
            let before = *last;
            while *last == before {
                patience.for_a("the ball");
                if node
                    .port
                    .poll(&mut |_, frame| *last = Some(Node::number(frame)))
                    == 0
                {
                    node.port.park(LONG);
                }
            }
        };
        for round in 0..ROUNDS {
            if node.port.me() == NodeId(1) {
                turn(&mut last);
            }
            node.send(to, &[&round.to_le_bytes()], &mut |_, _| ());
            if node.port.me() == NodeId(0) {
                turn(&mut last);
            }
            assert_eq!(last, Some(round));
        }
    });
}

/// Called before a park, it ends that park; called during one, it ends this one.
pub fn an_unpark_ends_a_park_before_and_during_it(make: Make) {
    let ports = make(2);
    let port = &*ports[0];
    port.unpark();
    port.park(LONG);
    let (parks, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                port.park(LONG);
                parks.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..100 {
            let before = parks.load(Ordering::SeqCst);
            port.unpark();
            let patience = Patience::default();
            while parks.load(Ordering::SeqCst) == before {
                patience.for_a("the end of a park");
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::SeqCst);
        port.unpark();
    });
}

/// A port that counts the doorbells that threads are owed and do not hear.
fn owing(port: &dyn Port, within: Duration, is_owed: impl Fn() -> bool + Send + Sync + 'static) {
    let is_owed = Box::new(is_owed);
    port.owe(Owed { is_owed, within });
}

/// Another thread has said something for which it ends a park, which ends by its time. It is late
/// with that, or loses it.
pub fn a_park_that_ends_only_by_its_time_is_counted(make: Make) {
    let ports = make(2);
    let port = &*ports[0];
    owing(port, LONG, || false);
    let parks = || {
        port.poll(&mut |_, _| ());
        port.park(SHORT);
    };
    (0..10).for_each(|_| parks());
    assert_eq!(port.lost_doorbells(), 0, "none is owed");
    let asked = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&asked);
    owing(port, LONG, move || {
        asks.store(true, Ordering::SeqCst);
        true
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            while !asked.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            port.unpark();
        });
        // It may return early for no reason.
        while !asked.load(Ordering::SeqCst) {
            parks();
        }
    });
    assert_eq!(port.lost_doorbells(), 0, "it comes late");
    owing(port, SHORT, || true);
    let patience = Patience::default();
    while port.lost_doorbells() == 0 {
        patience.for_a("a lost doorbell");
        parks();
    }
    assert_eq!(port.lost_doorbells(), 1);
}

/// Frames and ends of parks come whenever the time of a park is over.
pub fn no_doorbell_is_lost_where_parks_are_short(make: Make) {
    const ROUNDS: u64 = 300;
    let ports = make(2);
    let said = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    for (port, said) in ports.iter().zip(&said) {
        let said = Arc::clone(said);
        owing(&**port, LONG, move || said.load(Ordering::SeqCst));
    }
    together(&ports, |node| {
        let (me, to) = (
            node.port.me().index(),
            node.others().next().expect("a node"),
        );
        let patience = Patience::default();
        let mut come = 0;
        for round in 1..=ROUNDS {
            // Another thread of each node has something for it each round, and so has the other.
            thread::scope(|scope| {
                scope.spawn(|| {
                    said[me].store(true, Ordering::SeqCst);
                    node.port.unpark();
                });
                let mut take = |_, frame: &[u8]| come = Node::number(frame);
                node.send(to, &[&round.to_le_bytes()], &mut take);
                let told = || said[me].load(Ordering::SeqCst);
                while come < round || !told() {
                    patience.for_a("the frame of a round");
                    let taken = node.port.poll(&mut |_, frame| come = Node::number(frame));
                    if taken == 0 && !told() {
                        node.port.park(Duration::from_micros(round % 5 * 40));
                    }
                }
            });
            said[me].store(false, Ordering::SeqCst);
        }
        assert_eq!(node.port.lost_doorbells(), 0);
    });
}

/// A sender that was refused may sleep until the peer has taken something.
pub fn room_ends_the_park_of_who_was_refused(make: Make) {
    let ports = make(2);
    let rest = vec![7; ports[0].offers().largest.min(10_000)];
    let full = Barrier::new(2);
    together(&ports, |node| {
        if node.port.me() == NodeId(0) {
            while node.port.send(NodeId(1), &[&rest]).is_ok() {}
            full.wait();
            let patience = Patience::default();
            loop {
                match node.port.send(NodeId(1), &[b"end"]) {
                    Ok(()) => break,
                    Err(error) => assert_eq!(error, SendError::Busy { to: NodeId(1) }),
                }
                patience.for_a("room");
                if node.port.poll(&mut |_, _| ()) == 0 {
                    node.port.park(LONG);
                }
            }
        } else {
            full.wait();
            let ended = std::cell::Cell::new(false);
            let mut done = || ended.get();
            node.take_until("the end", &mut done, &mut |_, frame| {
                ended.set(frame == b"end");
            });
        }
    });
}

/// Of two threads that poll, one takes and the other comes back at once with nothing.
pub fn while_one_polls_another_gets_nothing(make: Make) {
    let ports = make(2);
    let port = &*ports[1];
    let sender = Node::new(&*ports[0]);
    sender.send(NodeId(1), &[b"x"], &mut |_, _| ());
    let patience = Patience::default();
    let mut taken = 0;
    while taken == 0 {
        patience.for_a("a frame");
        ports[0].poll(&mut |_, _| ());
        taken = port.poll(&mut |_, _| {
            let other = || port.poll(&mut |_, _| panic!("taken by another"));
            let got = thread::scope(|scope| scope.spawn(other).join());
            assert_eq!(got.ok(), Some(0));
        });
    }
    assert_eq!(taken, 1);
}
