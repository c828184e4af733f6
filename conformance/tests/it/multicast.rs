//! An ordered broadcast is one frame to all, if the port sends to all as easily as to one.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conformance::{OverPorts, ports};
use dhole::{NodeId, replicated};
use dhole_model::Notify;
use dhole_net::{Loss, Offers, Port, SendError};

static TO_ALL: AtomicU64 = AtomicU64::new(0);

/// A port over UDP that counts the frames that go to all others at once.
struct Counting(Box<dyn Port>);

impl Port for Counting {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn me(&self) -> NodeId {
        self.0.me()
    }

    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    fn offers(&self) -> Offers {
        self.0.offers()
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        self.0.send_with(to, parts, notify)
    }

    fn multicasts(&self) -> bool {
        self.0.multicasts()
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        if to.len() + 1 == self.nodes() {
            TO_ALL.fetch_add(1, Ordering::Relaxed);
        }
        self.0.send_each(to, parts)
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.0.poll(take)
    }

    fn park(&self, at_most: Duration) {
        self.0.park(at_most);
    }

    fn unpark(&self) {
        self.0.unpark();
    }

    fn beat(&self) -> Duration {
        self.0.beat()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        self.0.give_up(peer, loss);
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.0.lost(tell);
    }

    fn close(&self, at_most: Duration) {
        self.0.close(at_most);
    }
}

fn counted(nodes: usize) -> Vec<Box<dyn Port>> {
    let counting = |port| Box::new(Counting(port)) as _;
    ports::udp(nodes).into_iter().map(counting).collect()
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Sum(u64);

#[dhole::object]
impl Sum {
    pub fn add(&mut self, n: u64) {
        self.0 += n;
    }
    pub fn get(&self) -> u64 {
        self.0
    }
}

/// Frames to all in a run in which `writer` writes so often.
fn frames_to_all(writer: NodeId, writes: u64) -> u64 {
    let before = TO_ALL.load(Ordering::Relaxed);
    let on = OverPorts {
        name: "udp",
        make: counted,
    };
    let run = conformance::run(&on, 4, 1, |w| {
        let sum = w.once(|w| Ok(w.new_object(replicated(), Sum(0))?))?;
        if w.node() == writer {
            for _ in 0..writes {
                sum.add(w, 1)?;
            }
        }
        w.barrier()?;
        Ok(sum.get(w)?)
    });
    assert_eq!(run.unwrap().value, writes);
    TO_ALL.load(Ordering::Relaxed) - before
}

#[test]
fn each_ordered_write_is_one_frame_to_all() {
    if !ports::udp(3)[0].multicasts() {
        // Past the test harness, which shows what a test prints only if it fails.
        let words = "passed over: the system has no multicast on its loopback";
        writeln!(io::stderr(), "{words}").expect("somewhere to say it");
        return;
    }
    for writer in [0, 2].map(NodeId) {
        let (few, many) = (frames_to_all(writer, 10), frames_to_all(writer, 110));
        assert_eq!(many - few, 100, "{writer} writes");
    }
}
