//! Misses of one object that nothing else comes of: they do what the same events do.

use crate::pack::{Pack, acquire, allocated_under, arrive, n, release, site};
use dhole_model::{Coherence, Oid, OidRange, Version};
use dhole_protocol::single::Single;
use dhole_protocol::{
    Command, Event, LogLimits, Message, Protocol, Races, Unread, Wanted, WorkerIs,
};
use proptest::prelude::*;
use smallvec::smallvec;

/// What the event does to a protocol the short way, where it can go it, and the commands that this
/// stands for. Where it cannot nothing has happened.
pub fn singly(
    protocol: &Protocol,
    event: &Event,
    worker: WorkerIs,
) -> Option<(Protocol, Vec<Command>)> {
    let mut after = protocol.clone();
    let commands = take(&mut after, event, worker);
    assert!(
        commands.is_some() || after == *protocol,
        "a trace of {event:?}"
    );
    commands.map(|commands| (after, commands))
}

fn take(protocol: &mut Protocol, event: &Event, worker: WorkerIs) -> Option<Vec<Command>> {
    let (from, message) = match event {
        Event::ReadMiss(miss) => {
            let (to, fetch) = protocol.ask_singly(miss)?;
            let message = fetch.into();
            return Some(vec![Command::Send { to, message }]);
        }
        Event::Deliver { from, message } => (*from, message),
        _ => return None,
    };
    let mut bytes = Vec::new();
    message.encode(&mut bytes).ok()?;
    match dhole_protocol::single::decode(&bytes)?.0 {
        Single::Fetch {
            round,
            wanted,
            beside: 0,
        } => {
            let answer = protocol.answer_singly(from, wanted, worker)?;
            let make_clean = Command::MakeClean(wanted.oid);
            let mut commands = Vec::from_iter(answer.make_clean.then_some(make_clean));
            commands.push(Command::Reply {
                to: from,
                round,
                sent: smallvec![answer.sent],
                pre_images: smallvec![],
                keep: answer.keep,
            });
            Some(commands)
        }
        Single::Reply { round, sent, keep } if protocol.is_answered_singly(from, round, sent) => {
            protocol.install_singly(sent, keep);
            Some(vec![Command::Install(sent), Command::Done])
        }
        _ => None,
    }
}

const NODES: usize = 3;
const OBJECTS: u64 = 6;

fn oid(object: u64) -> Oid {
    Oid(64 + object)
}

/// Each is allocated by another node, and two of three are under the lazy protocol.
fn unread(object: u64) -> Unread {
    Unread {
        oid: oid(object),
        creator: n(object as usize % NODES),
        zero_ok: object == 4,
        coherence: match object {
            2 => Coherence::Home,
            5 => Coherence::Update,
            _ => Coherence::Lazy,
        },
    }
}

/// What somebody else may say, of a message of one object.
fn tampered(message: &Message, how: u64) -> Message {
    let other = |version: &mut Version| match how % 5 {
        0 => version.lamport += 1,
        1 => version.lamport = version.lamport.saturating_sub(1),
        2 => version.lamport = 1 << 46,
        3 => version.node = n(NODES),
        _ => version.node = n(how as usize % NODES),
    };
    let mut message = message.clone();
    match &mut message {
        Message::Fetch {
            round,
            wanted,
            beside,
        } => match how % 4 {
            0 => *round += 1,
            1 => *beside = 1,
            2 => wanted[0].oid = oid(how % 7),
            _ => other(&mut wanted[0].need),
        },
        Message::FetchReply { round, sent, keep } => match how % 4 {
            0 => *round += 1,
            1 => *keep = !*keep,
            2 => sent[0].oid = oid(how % 7),
            _ => other(&mut sent[0].version),
        },
        _ => {}
    }
    message
}

/// A pack whose workers do what chance wants, where they may.
struct Walk {
    pack: Pack,
    waits: [bool; NODES],
    holds: [bool; NODES],
    /// How often the short way was gone: by who asked, who answered, who was answered.
    singly: [usize; 3],
}

impl Walk {
    fn new(races: Races) -> Walk {
        let mut pack = Pack::with_limits(NODES, LogLimits::default());
        if races != Races::Ignore {
            pack.nodes = (0..NODES)
                .map(|me| Protocol::finding(races, n(me), NODES))
                .collect();
        }
        for object in 0..OBJECTS {
            let miss = unread(object);
            if !miss.zero_ok {
                let range = OidRange::one(miss.oid);
                let allocated = allocated_under(range, miss.coherence);
                pack.local(miss.creator.index(), allocated);
            }
        }
        Walk {
            pack,
            waits: [false; NODES],
            holds: [false; NODES],
            singly: [0; 3],
        }
    }

    /// The general way, which the pack compares with the short one.
    fn step(&mut self, node: usize, event: Event, worker: WorkerIs) {
        if singly(&self.pack.nodes[node], &event, worker).is_some() {
            let kind = match &event {
                Event::ReadMiss(_) => 0,
                Event::Deliver { message, .. } => match message {
                    Message::Fetch { .. } => 1,
                    _ => 2,
                },
                _ => unreachable!("no such event goes the short way"),
            };
            self.singly[kind] += 1;
        }
        let done = self.pack.step(node, event, worker).expect("a sound event");
        if done.contains(&Command::Done) {
            self.waits[node] = false;
        }
    }

    /// A worker that does not wait does something.
    fn work(&mut self, node: usize, what: u64, object: u64) {
        let miss = unread(object);
        let event = match what {
            0..6 => Event::ReadMiss(miss),
            6 if self.pack.nodes[node].has_unflushed() => Event::Flush,
            6 if self.holds[node] => release(1),
            6 => acquire(1),
            7 if self.pack.nodes[node].has_unflushed() => Event::Flush,
            7 => arrive(),
            8 => Event::EndInterval,
            _ => {
                // What it has no copy of it may not write.
                self.waits[node] = true;
                self.step(node, Event::ReadMiss(miss), WorkerIs::InCall);
                if !self.waits[node] {
                    let (oid, site) = (miss.oid, site(3));
                    self.step(node, Event::WriteFault { oid, site }, WorkerIs::InCall);
                }
                return;
            }
        };
        let lock = event == release(1);
        self.waits[node] = !lock && event != Event::EndInterval;
        if what == 6 && !matches!(event, Event::Flush) {
            self.holds[node] = !lock;
        }
        self.step(node, event, WorkerIs::InCall);
    }

    /// Delivers one of the messages, after it was compared what others would do.
    fn deliver(&mut self, which: usize, worker: u64, how: u64) {
        let which = which % self.pack.in_flight.len();
        let (from, to, message) = self.pack.in_flight.remove(which).expect("one in flight");
        let is_fetch = matches!(message, Message::Fetch { .. });
        let worker = match worker {
            0 if is_fetch && !self.waits[to.index()] => WorkerIs::Computing,
            1 if is_fetch || matches!(message, Message::FetchReply { .. }) => WorkerIs::Sharing,
            _ => WorkerIs::InCall,
        };
        let protocol = &self.pack.nodes[to.index()];
        for from in [from, n(NODES), n(how as usize % NODES)] {
            let message = tampered(&message, how);
            let event = Event::Deliver { from, message };
            compare(protocol, event, worker);
        }
        let event = Event::Deliver { from, message };
        self.step(to.index(), event, worker);
        if worker == WorkerIs::Computing && how.is_multiple_of(2) {
            self.step(to.index(), Event::Serve, WorkerIs::InCall);
        }
    }
}

/// Where the short way can be gone, the general one leads to the same.
pub fn compare(protocol: &Protocol, event: Event, worker: WorkerIs) {
    if let Some((after, commands)) = singly(protocol, &event, worker) {
        let (mut whole, mut out) = (protocol.clone(), Vec::new());
        let stepped = whole.step(event.clone(), worker, &mut out);
        assert_eq!((stepped, &out), (Ok(()), &commands), "{event:?}");
        assert!(whole == after, "{event:?}");
    }
}

proptest! {
    #[test]
    fn the_short_way_leads_where_the_general_one_does(
        steps in prop::collection::vec((0..NODES, 0..12_u64, 0..OBJECTS, 0..100_u64), 1..400),
        finds in any::<bool>(),
    ) {
        let mut walk = Walk::new(if finds { Races::Warn } else { Races::Ignore });
        for (node, what, object, how) in steps {
            if !walk.waits[node] && what < 10 {
                walk.work(node, what, object);
            } else if !walk.pack.in_flight.is_empty() {
                walk.deliver(object as usize, what % 3, how);
            }
        }
    }
}

#[test]
fn most_misses_go_the_short_way() {
    let mut walk = Walk::new(Races::Ignore);
    for round in 0..50 {
        for node in 0..NODES {
            walk.work(node, 9, 0);
            while !walk.pack.in_flight.is_empty() {
                walk.deliver(0, 2, round);
            }
            walk.work(node, 8, 0);
        }
        (0..NODES).for_each(|node| walk.work(node, 7, 0));
        while !walk.pack.in_flight.is_empty() {
            walk.deliver(0, 2, round);
        }
    }
    assert!(
        walk.singly.iter().all(|times| *times > 50),
        "{:?}",
        walk.singly
    );
}

#[test]
fn one_object_that_is_wanted_lies_in_its_bytes() {
    let wanted = Wanted {
        oid: oid(1),
        need: Version {
            lamport: 7,
            node: n(2),
        },
    };
    let fetch = Single::Fetch {
        round: 3,
        wanted,
        beside: 0,
    };
    let bytes = dhole_protocol::single::bytes(fetch);
    let behind = [&bytes[..], &[1, 2]].concat();
    assert_eq!(
        dhole_protocol::single::decode(&behind),
        Some((fetch, &[1, 2][..]))
    );
}
