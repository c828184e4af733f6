//! The decoders of foreign bytes, as functions of bytes that panic if a promise is broken. Fuzzers
//! call them (`fuzz`), and `tests/decoders.rs` replays the fuzzers' corpus with them.

#[path = "decoders/memory.rs"]
mod memory;
#[path = "decoders/operation.rs"]
mod operation;

use std::sync::{Arc, OnceLock};

use apps::asp::Graph;
use apps::input::Lines;
use apps::raytrace::Scene;
use apps::tsp::Instance;
use dhole::sim::Description;
use dhole_heap::Cluster;
use dhole_join::decoders as join;
use dhole_model::{Coherence, Detector, NodeId, Oid};
use dhole_net::decoders as net;
use dhole_protocol::objects::ordered_codec;
use dhole_protocol::{
    Command, Event, Message, Protocol, Races, RegionCommand, Reply, Unread, WorkerIs,
};

/// A decoder: its name, and a function that takes any bytes.
pub type Decoder = (&'static str, fn(&[u8]));

/// All decoders.
pub const ALL: [Decoder; 14] = [
    ("message", message),
    ("deliveries", deliveries),
    ("memory", memory::memory),
    ("operation", operation::operation),
    ("catalog", catalog),
    ("frames", net::frames),
    ("datagrams", net::datagrams),
    ("ring", net::ring),
    ("handshake", join::handshake),
    ("terms", join::terms),
    ("network", network),
    ("instance", instance),
    ("graph", graph),
    ("scene", scene),
];

/// A message between protocols. One that decodes has these bytes and no others, but for names of
/// files that are not kept.
fn message(bytes: &[u8]) {
    let Ok(message) = Message::decode(bytes) else {
        return;
    };
    let mut again = Vec::new();
    message.encode(&mut again);
    // An ordered write also says whether its originator waits, beside the message.
    if let Some((write, true)) = ordered_codec::parse(bytes) {
        let mut waits = Vec::new();
        let arguments = ordered_codec::write_head(&write, true, &mut waits);
        waits.extend_from_slice(arguments.expect("it was decoded from one"));
        again = waits;
    }
    assert_eq!(Message::decode(&again).as_ref(), Ok(&message));
    let unnamed = b"a file of another process";
    assert!(again == bytes || again.windows(unnamed.len()).any(|it| it == unnamed));
}

/// Messages to a node of three, each with its sender and length before it. The node accepts or
/// refuses each, and sends only to nodes of the run. The first byte decides what the worker does
/// meanwhile.
fn deliveries(bytes: &[u8]) {
    const NODES: usize = 3;
    let Some((&does, mut rest)) = bytes.split_first() else {
        return;
    };
    let races = [Races::Ignore, Races::Warn][usize::from(does >> 7)];
    let mut node = Protocol::finding(races, NodeId(1), NODES);
    let mut out = Vec::new();
    if does & 1 == 1 {
        let missed = Event::ReadMiss(Unread {
            oid: Oid(640),
            // Another node: what it has made itself it has.
            creator: NodeId(2 * (u16::from(does >> 1) & 1)),
            zero_ok: false,
            coherence: Coherence::default(),
        });
        let _ = node.step(missed, WorkerIs::InCall, &mut out);
    }
    while let Some((&[from, length], behind)) = rest.split_first_chunk() {
        let (message, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let Ok(message) = Message::decode(message) else {
            continue;
        };
        let from = NodeId(u16::from(from));
        let delivered = Event::Deliver { from, message };
        let _ = node.step(delivered, WorkerIs::InCall, &mut out);
        for command in out.drain(..) {
            let to: &[NodeId] = match &command {
                Command::Send { to, .. } => std::slice::from_ref(to),
                Command::Objects(RegionCommand::Reply(Reply { to, .. })) => {
                    std::slice::from_ref(to)
                }
                Command::SendUnits { to, .. } => to,
                _ => &[],
            };
            for to in to {
                assert!(to.index() < NODES, "something is sent to {to}");
            }
        }
    }
}

/// The metadata of another process's objects. It is learnt, or refused.
fn catalog(bytes: &[u8]) {
    // Ids are never used again, so that a cluster for each would use them up.
    static CLUSTER: OnceLock<Arc<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        let cluster = Cluster::part(3, NodeId(1), Detector::Check).expect("room for a node");
        let window = Cluster::window_of(cluster.ids_left());
        cluster.settle(window, 1).expect("it has none yet");
        cluster
    });
    let _ = cluster.learn(NodeId(2), bytes);
}

/// The description of a network.
fn network(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Description::parse("a file", text);
    }
}

fn lines(bytes: &[u8]) -> Option<Lines> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(Lines::of("a file", text))
}

/// Cities in TSPLIB's form.
fn instance(bytes: &[u8]) {
    let _ = lines(bytes).map(|lines| Instance::parse(&lines).is_ok());
}

/// A graph in DIMACS's form.
fn graph(bytes: &[u8]) {
    let _ = lines(bytes).map(|lines| Graph::parse(&lines).is_ok());
}

/// A scene of the ray tracer.
fn scene(bytes: &[u8]) {
    let _ = lines(bytes).map(|lines| Scene::parse(&lines).is_ok());
}
