//! What the layer makes of the port beneath it: whom it wakes, and whom it gives up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use dhole_model::NodeId;

use crate::{Layer, Local, Port, Reliable, ReliableLimits};

/// Longer than the test may take.
const LONG: Duration = Duration::from_secs(3_600);
const BOUND: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(2);

/// A port that says when somebody sleeps in it, and brings one frame at a time.
struct Beneath {
    port: Local,
    parks: mpsc::SyncSender<()>,
    brings: std::sync::Mutex<Vec<(NodeId, Vec<u8>)>>,
}

impl Layer for Beneath {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
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

    fn park(&self, at_most: Duration) {
        self.parks.send(()).expect("somebody counts");
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
            brings: std::sync::Mutex::default(),
        };
        Reliable::with_clock(beneath, limits, now)
    };
    let ports = Local::cluster(nodes).expect("ports").into_iter();
    (ports.map(reliable).collect(), clock.clone(), parked)
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
