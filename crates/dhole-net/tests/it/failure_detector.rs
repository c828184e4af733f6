//! Silence, by a clock that the test turns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{FailureDetector, Local, Loss, Port, SendError};

const BOUND: Duration = Duration::from_secs(8);
/// What the clock advances by: less than the part of the bound between two heartbeats.
const STEP: Duration = Duration::from_millis(500);

struct Watched {
    ports: Vec<FailureDetector<Local>>,
    clock: Arc<AtomicU64>,
}

impl Watched {
    fn new(nodes: usize) -> Watched {
        let clock = Arc::new(AtomicU64::new(0));
        let watch = |port| {
            let clock = clock.clone();
            let now = move || Duration::from_millis(clock.load(Ordering::Relaxed));
            FailureDetector::with_clock(port, BOUND, now)
        };
        let ports = Local::cluster(nodes).expect("ports").into_iter();
        Watched {
            ports: ports.map(watch).collect(),
            clock: clock.clone(),
        }
    }

    /// Lets time pass, in which these nodes poll.
    fn pass(&self, time: Duration, awake: &[usize]) {
        let mut passed = Duration::ZERO;
        while passed < time {
            passed += STEP;
            let now = self.clock.fetch_add(500, Ordering::Relaxed) + 500;
            for &node in awake {
                self.ports[node].poll(&mut |_, _| panic!("nothing was sent"));
                self.ports[node].tick(Duration::from_millis(now));
            }
        }
    }

    fn lost(&self, node: usize) -> Vec<(NodeId, Loss)> {
        let mut lost = Vec::new();
        self.ports[node].lost(&mut |peer, loss| lost.push((peer, loss)));
        lost
    }
}

#[test]
fn heartbeats_keep_idle_nodes_from_being_lost() {
    let cluster = Watched::new(3);
    cluster.pass(10 * BOUND, &[0, 1, 2]);
    for node in 0..3 {
        assert_eq!(cluster.lost(node), []);
    }
}

#[test]
fn a_silent_node_is_lost_after_the_bound_and_not_before() {
    let cluster = Watched::new(3);
    cluster.pass(BOUND, &[0, 1, 2]);
    // What node 2 sent last is heard once more.
    cluster.pass(STEP, &[0, 1]);
    cluster.pass(BOUND - STEP, &[0, 1]);
    assert_eq!(cluster.lost(0), []);
    cluster.pass(3 * STEP, &[0, 1]);
    for node in [0, 1] {
        assert_eq!(cluster.lost(node), [(NodeId(2), Loss::Silent(BOUND))]);
    }
    let (to, loss) = (NodeId(2), Loss::Silent(BOUND));
    let refused = cluster.ports[0].send(to, &[b"x"]);
    assert_eq!(refused, Err(SendError::Lost { to, loss }));
    // It learns of it when it looks again.
    cluster.ports[2].poll(&mut |_, _| panic!("nothing was sent"));
    let lost: Vec<NodeId> = cluster.lost(2).into_iter().map(|(node, _)| node).collect();
    assert_eq!(lost, [NodeId(0), NodeId(1)]);
}

#[test]
fn who_was_stopped_itself_holds_no_silence_against_others() {
    let cluster = Watched::new(2);
    cluster.pass(BOUND, &[0, 1]);
    // Node 0 alone knows that it was stopped: the clock jumps, and nobody was heard.
    cluster.clock.fetch_add(60_000, Ordering::Relaxed);
    let now = Duration::from_millis(cluster.clock.load(Ordering::Relaxed));
    cluster.ports[0].tick(now);
    assert_eq!(cluster.lost(0), []);
    cluster.pass(2 * BOUND, &[0, 1]);
    assert_eq!(cluster.lost(0), []);
}

#[test]
fn every_frame_is_what_it_was() {
    let cluster = Watched::new(2);
    // All frames of up to five bytes, of the one that is special and one that is not.
    let mut frames: Vec<Vec<u8>> = vec![vec![]];
    for length in 1..=5u32 {
        for bits in 0..1u32 << length {
            let byte = |at| if bits >> at & 1 == 1 { 0xe5 } else { 0 };
            frames.push((0..length).map(byte).collect());
        }
    }
    let mut taken = Vec::new();
    for frame in &frames {
        let (front, back) = frame.split_at(frame.len() / 2);
        let sent = cluster.ports[0].send(NodeId(1), &[front, back]);
        assert_eq!(sent, Ok(()));
        cluster.ports[1].poll(&mut |_, frame| taken.push(frame.to_vec()));
    }
    assert_eq!(taken, frames);
}

/// A port over which a frame is long on its way: of some peers bytes come, and no frame.
struct Slow {
    inner: Local,
    heard: Arc<Mutex<Vec<NodeId>>>,
}

impl dhole_net::Layer for Slow {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.inner
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        let mut heard = self
            .heard
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        heard.drain(..).for_each(tell);
    }
}

#[test]
fn a_long_frame_that_is_on_its_way_keeps_its_sender_alive_and_no_one_else() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let clock = Arc::new(AtomicU64::new(0));
    let now = {
        let clock = clock.clone();
        move || Duration::from_millis(clock.load(Ordering::Relaxed))
    };
    let mut ports = Local::cluster(3).expect("ports");
    let inner = ports.remove(0);
    let slow = Slow {
        inner,
        heard: heard.clone(),
    };
    let port = FailureDetector::with_clock(slow, BOUND, now);
    let steps = 3 * BOUND.as_millis() / STEP.as_millis();
    for _ in 0..steps {
        // Nodes 1 and 2 say nothing; of node 1 a part of a frame comes.
        heard.lock().expect("nobody panicked").push(NodeId(1));
        let now = clock.fetch_add(500, Ordering::Relaxed) + 500;
        port.poll(&mut |_, _| panic!("nothing is whole"));
        port.tick(Duration::from_millis(now));
    }
    let mut lost = Vec::new();
    port.lost(&mut |peer, loss| lost.push((peer, loss)));
    assert_eq!(lost, [(NodeId(2), Loss::Silent(BOUND))]);
}
