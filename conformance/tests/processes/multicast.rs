//! An ordered broadcast is one frame to all, if the port sends to all as easily as to one.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use conformance::{OverPorts, ports};
use dhole::{NodeId, replicated};
use dhole_net::{Layer, Port, SendError};

static TO_ALL: AtomicU64 = AtomicU64::new(0);

/// A port over UDP that counts the frames that go to all others at once.
struct Counting(Box<dyn Port>);

impl Layer for Counting {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.0
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        if to.len() + 1 == self.nodes() {
            TO_ALL.fetch_add(1, Ordering::Relaxed);
        }
        Port::send_each(&self.0, to, parts)
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
    if !Port::multicasts(&ports::udp(3)[0]) {
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
