//! A process begins on a node whose program does nothing but ask another whether it has.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use conformance::{OverPorts, ports, run};
use dhole::{NodeId, Object, Result, Worker, on, op};
use dhole_net::{Layer, Port};
use dhole_protocol::Message;
use dhole_protocol::objects::ObjectsMessage;

/// What starts a process comes together with what comes next: with an answer, where one is asked
/// for.
struct Together {
    port: Box<dyn Port>,
    kept: Mutex<Vec<(NodeId, Vec<u8>)>>,
}

impl Layer for Together {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.port
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let mut kept = self.kept.lock().unwrap();
        let came = Port::poll(&self.port, &mut |from, frame| {
            kept.push((from, frame.to_vec()));
        });
        let last = kept.last();
        if came == 0 || last.is_some_and(|(_, frame)| starts_a_process(frame)) {
            return 0;
        }
        let came = kept.len();
        for (from, frame) in kept.drain(..) {
            take(from, &frame);
        }
        came
    }
}

/// Whether a frame brings what starts a process. Before its message stand a header, which says at
/// its end how long the others are, and what is told of objects.
fn starts_a_process(frame: &[u8]) -> bool {
    let length = |at: usize| {
        let bytes = frame.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let message = || {
        let begins = 16 + length(8)?;
        Message::decode(frame.get(begins..begins + length(12)?)?).ok()
    };
    matches!(
        message(),
        Some(Message::Objects(about)) if matches!(*about, ObjectsMessage::Spawn { .. })
    )
}

fn together(nodes: usize) -> Vec<Box<dyn Port>> {
    let together = |port| {
        let kept = Mutex::default();
        Box::new(Together { port, kept }) as _
    };
    ports::local(nodes).into_iter().map(together).collect()
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Flag(bool);

#[dhole::object]
impl Flag {
    pub fn raise(&mut self) {
        self.0 = true;
    }

    pub fn is_up(&self) -> bool {
        self.0
    }
}

fn raise(w: &mut Worker<'_>, flag: Object<Flag>) -> Result<()> {
    Ok(flag.raise(w)?)
}

#[test]
fn a_process_begins_though_its_nodes_program_only_asks() {
    let on_ports = OverPorts {
        name: "local",
        make: together,
    };
    for _ in 0..10 {
        let ran = run(&on_ports, 2, 1, |w| {
            let flag: Object<Flag> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Flag(false))?))?;
            if w.node() == NodeId(0) {
                return Ok(w.spawn(NodeId(1), flag, op!(raise))?.join(w)?);
            }
            // Nobody is to hang where it does not begin.
            let asks_since = Instant::now();
            while !flag.is_up(w)? {
                let late = asks_since.elapsed() > Duration::from_secs(10);
                assert!(!late, "the process does not begin");
            }
            Ok(())
        });
        ran.unwrap();
    }
}
