//! A malicious peer in raw memory that nodes write together: it forges what it wrote, or says that
//! somebody has merged it. Node 0 refuses that and writes nothing of it, and the run ends on every
//! node.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Barrier, Mutex};

use conformance::ports::{self, Make};
use conformance::run_processes;
use dhole::memory::{self, MemorySettings, sync};
use dhole::{CallSite, MemoryConsistency, NodeId};
use dhole_live::Processes;
use dhole_model::Notify;
use dhole_net::{Layer, Port, SendError};
use dhole_node::{Machine, Settings};
use dhole_protocol::memory::{MemoryKind, MemoryMessage, MemoryOperation, Millipage, Minipage};
use dhole_protocol::{Frame, Message};

use crate::hostile::{Malicious, frame};

const NODES: usize = 3;
const MALICIOUS: usize = 1;
const PORTS: [(&str, Make); 4] = [
    ("in process", ports::local),
    ("shm", ports::shm),
    ("tcp", ports::tcp),
    ("udp", ports::udp),
];

/// Bytes of the head of a frame, before the message.
const HEAD: usize = 16;

/// What becomes of the diff that the malicious node sends: its message, and its bytes.
type Forge = fn(&mut MemoryMessage, &mut Vec<u8>);

/// A port that forges the diffs that it is to send.
struct Forger {
    port: Box<dyn Port>,
    forge: Forge,
}

/// A message about memory as a frame has it.
fn body_of(message: MemoryMessage) -> Vec<u8> {
    let mut body = Vec::new();
    Message::Part(Frame::of::<Millipage>(&message)).encode(&mut body);
    body
}

impl Layer for Forger {
    type Inner = dyn Port;

    fn inner(&self) -> &Self::Inner {
        &*self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        let whole = parts.concat();
        let sample = body_of(about(MemoryKind::Diff, 0));
        let (head, rest) = whole.split_at(HEAD.min(whole.len()));
        let is_diff = rest.len() >= sample.len() && rest[..2] == sample[..2];
        if !is_diff {
            return self.inner().send_with(to, parts, notify);
        }
        let (body, bytes) = rest.split_at(sample.len());
        let Ok(Message::Part(part)) = Message::decode(body) else {
            panic!("a diff is a message of a part");
        };
        let message = part.message::<Millipage>();
        let mut message = message.expect("a message about minipages");
        let mut bytes = bytes.to_vec();
        (self.forge)(&mut message, &mut bytes);
        let parts = [head, &body_of(message), &bytes];
        self.inner().send_with(to, &parts, notify)
    }
}

/// A message about a flush by node 0 of the minipage at an address, for which nobody waits.
fn about(kind: MemoryKind, at: u64) -> MemoryMessage {
    let bytes = if kind == MemoryKind::Diff { 14 } else { 4096 };
    MemoryMessage {
        kind,
        operation: MemoryOperation::Flush,
        asker: NodeId(0),
        number: 2,
        ticket: 1,
        address: at,
        minipage: Minipage { at, bytes },
    }
}

/// The end of each node's run, and the first numbers of the page that node 0 has then. Nodes 0 and
/// 1 write one each. Node 0 flushes, and then node 1 sends these frames.
fn run(make: Make, forge: Forge, frames: &[Vec<u8>]) -> (Vec<Result<(), String>>, Vec<u64>) {
    let now = Arc::new(AtomicBool::new(false));
    let machine = |(node, port): (usize, Box<dyn Port>)| -> Box<dyn Machine + Send> {
        let port = match node == MALICIOUS {
            true => Box::new(Malicious {
                port: Box::new(Forger { port, forge }),
                frames: frames.to_vec(),
                now: Arc::clone(&now),
            }),
            false => port,
        };
        Box::new(Processes::new(port, 0).expect("the port offers all"))
    };
    let machines = make(NODES).into_iter().enumerate().map(machine).collect();
    let settings = Settings {
        parts: Some(Arc::new(MemorySettings::default())),
        consistency: MemoryConsistency::Release,
        ..Settings::nodes(NODES)
    };
    let (both, flushed) = (Barrier::new(2), AtomicBool::new(false));
    let found = Mutex::new(Vec::new());
    let ended = run_processes(machines, &settings, |w| {
        let rows = w.once(|w| Ok(memory::alloc_contiguous::<u64>(w, 2, 512)?))?;
        let (me, cells) = (w.node().index(), rows.row(0).cells(w));
        assert_eq!(cells[7].load(Relaxed), 0);
        w.barrier()?;
        let mut released = Ok(());
        if me == 0 {
            sync::lock(0, CallSite::caller())?;
            cells[0].store(10, Relaxed);
            both.wait();
            released = sync::unlock(0);
            flushed.store(true, SeqCst);
        } else if me == MALICIOUS {
            cells[1].store(11, Relaxed);
            both.wait();
            while !flushed.load(SeqCst) {
                std::thread::yield_now();
            }
            now.store(true, SeqCst);
        }
        let ended = w.barrier();
        if me == 0 {
            let numbers = cells[..4].iter().map(|cell| cell.load(Relaxed));
            *found.lock().unwrap() = numbers.collect();
        }
        released?;
        Ok(ended?)
    });
    let ended = ended.into_iter();
    let ended = ended.map(|ended| ended.map(drop).map_err(|error| error.to_string()));
    (ended.collect(), found.into_inner().unwrap())
}

/// Every node's run ends with these words about node 1, and node 0 has these numbers.
fn refused(forge: Forge, frames: &[Vec<u8>], why: &str, numbers: [u64; 4]) {
    for (port, make) in PORTS {
        let (ended, found) = run(make, forge, frames);
        for (node, ended) in ended.into_iter().enumerate() {
            let error = ended.expect_err(why);
            let from = format!("a message from node {MALICIOUS} makes no sense");
            let named = error.contains(&from) && error.contains(why);
            assert!(named, "{port}, {why}, node {node}: {error}");
        }
        assert_eq!(found, numbers, "{port}, {why}");
    }
}

const SOUND: Forge = |_, _| ();

#[test]
fn a_diff_that_is_none_of_its_minipage_is_refused_and_not_written() {
    for (port, make) in PORTS {
        let (ended, found) = run(make, SOUND, &[]);
        assert_eq!(
            (ended, found),
            (vec![Ok(()); NODES], vec![10, 11, 0, 0]),
            "{port}"
        );
    }
    // A part within the page comes first, which is not written either.
    let beyond: Forge = |message, bytes| {
        let within = [0, 0, 0, 0, 6, 0, 0, 0, 16, 0, 2, 0, 7, 7];
        let behind = [0, 0, 0, 0, 6, 0, 0, 0, 255, 15, 2, 0, 7, 7];
        *bytes = [within, behind].concat();
        message.minipage.bytes = bytes.len() as u32;
    };
    let next_page: Forge = |_, bytes| bytes[0] = 1;
    let cut_off: Forge = |message, bytes| {
        bytes.pop();
        message.minipage.bytes -= 1;
    };
    let length: Forge = |message, _| message.minipage.bytes += 1;
    let elsewhere: Forge = |message, _| {
        message.minipage.at += 4096;
        message.address += 4096;
    };
    let none = "what it wrote into a minipage, which is no difference of such bytes";
    let other = "a diff of a minipage that is not flushed";
    for (forge, why) in [
        (beyond, none),
        (next_page, none),
        (cut_off, none),
        (length, "a minipage with more bytes, or fewer, than it has"),
        (elsewhere, other),
    ] {
        refused(forge, &[], why, [10, 0, 0, 0]);
    }
}

#[test]
fn a_diff_for_which_nobody_asked_is_refused_and_not_written() {
    let diff = "a diff of a minipage that is not flushed";
    let merged = "a diff is merged that is not awaited";
    for (kind, at, bytes, why) in [
        (MemoryKind::Diff, 0, 14, diff),
        (MemoryKind::Diff, 4096, 14, diff),
        (MemoryKind::Diff, 1 << 60, 14, diff),
        (MemoryKind::Merged, 0, 0, merged),
        (MemoryKind::Merged, 4096, 0, merged),
    ] {
        let message = Message::Part(Frame::of::<Millipage>(&about(kind, at)));
        let frame = frame(&message, bytes);
        refused(SOUND, &[frame], why, [10, 11, 0, 0]);
    }
}
