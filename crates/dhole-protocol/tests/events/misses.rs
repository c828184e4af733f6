//! Misses at random, and messages of them that no sound node sends.

use crate::pack::{Pack, acquire, allocated_under, arrive, n, release, site};
use dhole_model::{Coherence, Oid, OidRange, Version};
use dhole_protocol::{
    Command, Event, Fetch, FetchReply, LogLimits, Message, Protocol, Races, Unread, WorkerIs,
};
use proptest::prelude::*;

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
        Message::Fetch(Fetch {
            round,
            wanted,
            beside,
            ..
        }) => match how % 4 {
            0 => *round += 1,
            1 => *beside = 1,
            2 => wanted[0].region = oid(how % 7),
            _ => other(&mut wanted[0].need),
        },
        Message::FetchReply(FetchReply { round, sent, keep }) => match how % 4 {
            0 => *round += 1,
            1 => *keep = !*keep,
            2 => sent[0].region = oid(how % 7),
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
    /// How many tampered messages were taken and refused.
    tampered: [usize; 2],
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
            tampered: [0; 2],
        }
    }

    fn step(&mut self, node: usize, event: Event, worker: WorkerIs) {
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

    /// Delivers one of the messages, after others were that its receiver takes whole or not at all.
    fn deliver(&mut self, which: usize, worker: u64, how: u64) {
        let which = which % self.pack.in_flight.len();
        let (from, to, message) = self.pack.in_flight.remove(which).expect("one in flight");
        let is_fetch = matches!(message, Message::Fetch(_));
        let worker = match worker {
            0 if is_fetch && !self.waits[to.index()] => WorkerIs::Computing,
            1 if is_fetch || matches!(message, Message::FetchReply(_)) => WorkerIs::Sharing,
            _ => WorkerIs::InCall,
        };
        for from in [from, n(NODES), n(how as usize % NODES)] {
            let (mut node, mut out) = (self.pack.nodes[to.index()].clone(), Vec::new());
            let message = tampered(&message, how);
            let taken = node.step(Event::Deliver { from, message }, worker, &mut out);
            self.tampered[usize::from(taken.is_err())] += 1;
            if taken.is_err() {
                assert_eq!(out, [], "{taken:?}: nothing is to be done");
                assert!(
                    node == self.pack.nodes[to.index()],
                    "{taken:?}: nothing was done"
                );
            }
        }
        let event = Event::Deliver { from, message };
        self.step(to.index(), event, worker);
        if worker == WorkerIs::Computing && how.is_multiple_of(2) {
            self.step(to.index(), Event::Serve, WorkerIs::InCall);
        }
    }
}

proptest! {
    #[test]
    fn a_step_that_fails_has_changed_nothing_and_called_no_effect(
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
fn messages_that_are_tampered_with_are_refused_as_a_rule() {
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
    let [taken, refused] = walk.tampered;
    assert!(
        taken > 100 && refused > 100,
        "{taken} taken, {refused} refused"
    );
}
