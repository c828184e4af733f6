//! What the layer makes of the port beneath it: whom it wakes, and whom it gives up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use dhole_model::{NodeId, Notify};

use crate::{Layer, Local, Loss, Port, Reliable, ReliableLimits, SendError};

/// Longer than the test may take.
const LONG: Duration = Duration::from_secs(3_600);
const BOUND: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(2);

/// A port that says when somebody sleeps in it, brings one frame at a time, and loses the next few.
struct Beneath {
    port: Local,
    parks: mpsc::SyncSender<()>,
    loses: AtomicU64,
    brings: std::sync::Mutex<Vec<(NodeId, Vec<u8>)>>,
}

impl Layer for Beneath {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        let less = |left: u64| left.checked_sub(1);
        match self
            .loses
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        {
            Ok(_) => Ok(()),
            Err(_) => Port::send_with(&self.port, to, parts, notify),
        }
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let mut brings = self.brings.lock().expect("nobody panicked");
        self.port
            .poll(&mut |from, frame| brings.push((from, frame.to_vec())));
        if brings.is_empty() {
            return 0;
        }
        let (from, frame) = brings.remove(0);
        drop(brings);
        take(from, &frame);
        1
    }

    /// As one that has no connections: nobody learns of it.
    fn close(&self, _: Duration) {}

    fn park(&self, at_most: Duration) {
        // Where nobody counts, it does not matter.
        let _ = self.parks.try_send(());
        self.port.park(at_most);
    }
}

/// Reliable ports by a clock in milliseconds, and what is sent when somebody sleeps in one.
fn ports(nodes: usize) -> (Vec<Reliable<Beneath>>, Arc<AtomicU64>, mpsc::Receiver<()>) {
    let clock = Arc::new(AtomicU64::new(0));
    let (parks, parked) = mpsc::sync_channel(64);
    let limits = ReliableLimits {
        patience: PATIENCE,
        ..ReliableLimits::default()
    };
    let reliable = |port| {
        let clock = clock.clone();
        let now = move || Duration::from_millis(clock.load(Ordering::Relaxed));
        let beneath = Beneath {
            port,
            parks: parks.clone(),
            loses: AtomicU64::new(0),
            brings: std::sync::Mutex::default(),
        };
        Reliable::with_clock(beneath, limits, now)
    };
    let ports = Local::cluster(nodes).expect("ports").into_iter();
    (ports.map(reliable).collect(), clock.clone(), parked)
}

fn losses(port: &impl Port) -> Vec<(NodeId, Loss)> {
    let mut losses = Vec::new();
    port.lost(&mut |peer, loss| losses.push((peer, loss)));
    losses
}

#[test]
fn who_sleeps_already_is_woken_for_what_may_have_to_be_sent_again() {
    let (ports, _, parked) = ports(2);
    let (up, ups) = mpsc::channel();
    thread::scope(|scope| {
        let sleeper = &ports[0];
        scope.spawn(move || {
            sleeper.park(LONG);
            // Nobody waits any more where it is too late.
            let _ = up.send(());
        });
        parked.recv_timeout(BOUND).expect("somebody sleeps");
        let sent = sleeper.send(NodeId(1), &[b"once"]);
        let in_time = ups.recv_timeout(BOUND);
        sleeper.unpark();
        assert_eq!(sent, Ok(()));
        in_time.expect("the sleeper learns that there is something to wait for");
    });
}

#[test]
fn time_in_which_nobody_looked_is_not_held_against_a_peer() {
    let (ports, clock, _parked) = ports(2);
    let nothing = &mut |_: NodeId, _: &[u8]| ();
    ports[0].poll(nothing);
    assert_eq!(ports[0].send(NodeId(1), &[b"hello"]), Ok(()));
    // It was stopped, and has sent nothing again meanwhile.
    clock.fetch_add(60_000, Ordering::Relaxed);
    ports[0].poll(nothing);
    assert_eq!(losses(&ports[0]), []);
    // The same while it only sends.
    clock.fetch_add(60_000, Ordering::Relaxed);
    assert_eq!(ports[0].send(NodeId(1), &[b"hello"]), Ok(()));
    ports[0].poll(nothing);
    assert_eq!(losses(&ports[0]), []);
    // Now it looks, and nothing comes.
    let mut steps = 0;
    let lost = loop {
        clock.fetch_add(100, Ordering::Relaxed);
        steps += 1;
        ports[0].poll(nothing);
        match losses(&ports[0])[..] {
            [] => assert!(steps < 100, "it is never lost"),
            ref lost => break lost.to_vec(),
        }
    };
    assert_eq!(lost, [(NodeId(1), Loss::Silent(PATIENCE))]);
    assert!(steps > 5, "lost after {steps} tenths of a second");
}

#[test]
fn what_has_come_is_read_before_its_absence_is_held_against_anybody() {
    let (ports, clock, _parked) = ports(3);
    let nothing = &mut |_: NodeId, _: &[u8]| ();
    ports[0].poll(nothing);
    assert_eq!(ports[0].send(NodeId(2), &[b"hello"]), Ok(()));
    // Between two looks of node 0 time passes, in steps that all count. Then node 2 answers,
    // behind what node 1 has sent.
    for _ in 0..30 {
        assert_eq!(ports[1].send(NodeId(0), &[b"many"]), Ok(()));
    }
    while ports[2].poll(nothing) == 0 {}
    for _ in 0..30 {
        clock.fetch_add(200, Ordering::Relaxed);
        ports[0].poll(nothing);
        assert_eq!(losses(&ports[0]), []);
    }
}

#[test]
fn who_closes_last_lets_who_has_left_know_that_everything_has_come() {
    let (ports, clock, _parked) = ports(2);
    let (closed, closes) = mpsc::channel();
    thread::scope(|scope| {
        let (stays, leaves) = (&ports[0], &ports[1]);
        assert_eq!(leaves.send(NodeId(0), &[b"last"]), Ok(()));
        scope.spawn(move || {
            leaves.close(LONG);
            let _ = closed.send(());
        });
        // It has all of it, but nothing of what it answers comes, and little of what it says last.
        stays.inner().loses.store(u64::MAX, Ordering::SeqCst);
        let mut lost = Vec::new();
        while lost.is_empty() {
            stays.poll(&mut |_, frame| assert_eq!(frame, b"last"));
            lost = losses(stays);
        }
        assert_eq!(lost, [(NodeId(1), Loss::Left)]);
        stays.inner().loses.store(5, Ordering::SeqCst);
        stays.close(LONG);
        let in_time = closes.recv_timeout(BOUND);
        clock.fetch_add(LONG.as_millis() as u64, Ordering::Relaxed);
        in_time.expect("who left is told, and does not wait for its bound");
    });
}
