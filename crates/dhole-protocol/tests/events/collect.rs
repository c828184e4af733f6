//! Interval records are dropped below what every node has seen, and made fewer while a node has
//! not seen them.

use std::collections::BTreeSet;

use crate::pack::*;
use dhole_model::{Oid, OidRange, VectorTime};
use dhole_protocol::{
    Command, Event, Fetch, Gossip, LockId, LogLimits, Message, NodeSet, ProtocolError, Reach,
    RegionCommand,
};
use dhole_wire::Wire;

const SMALL: LogLimits = LogLimits {
    collect_from: 8,
    compact_from: 32,
    collect_pages_from: u64::MAX,
    reach: Reach::of(0),
    most_heard: usize::MAX,
};

/// Nodes that write objects under lock 1.
struct Writers {
    pack: Pack,
    /// The objects of which each node has a valid copy.
    valid: Vec<BTreeSet<Oid>>,
}

impl Writers {
    fn new(nodes: usize, objects: u32) -> Writers {
        let mut pack = Pack::with_limits(nodes, SMALL);
        let range = OidRange {
            first: OBJECT,
            count: objects,
        };
        pack.local(0, crate::pack::allocated(range));
        let mut valid = vec![BTreeSet::new(); nodes];
        valid[0].extend(range.iter());
        Writers { pack, valid }
    }

    fn read(&mut self, node: usize, oid: Oid) {
        if self.valid[node].insert(oid) {
            let done = self.pack.run(node, miss(oid, 0));
            assert!(done.contains(&Command::Done), "{oid} came");
        }
    }

    fn acquire(&mut self, node: usize) {
        let done = self.pack.run(node, acquire(1));
        assert!(done.contains(&Command::Done), "the lock is free");
        for command in done {
            if let Command::Objects(RegionCommand::Invalidate(oid)) = command {
                self.valid[node].remove(&oid);
            }
        }
    }

    fn write(&mut self, node: usize, oid: Oid) {
        self.acquire(node);
        self.read(node, oid);
        self.pack.write(node, oid);
        self.pack.run(node, release(1));
    }

    /// The most records that a node keeps.
    fn kept(&self) -> usize {
        let kept = self.pack.nodes.iter().map(|node| node.intervals_kept());
        kept.max().unwrap_or(0)
    }
}

#[test]
fn records_of_lock_transfers_are_collected_without_a_barrier() {
    for nodes in [2, 3, 5] {
        let mut writers = Writers::new(nodes, 1);
        let mut most = 0;
        for transfer in 0..2000 {
            writers.write(transfer % nodes, OBJECT);
            most = most.max(writers.kept());
        }
        assert!(most <= 8 + 4 * nodes, "{nodes} nodes: {most} records");
    }
}

#[test]
fn a_node_that_takes_no_part_costs_no_more_records_than_objects() {
    let mut writers = Writers::new(3, 7);
    let mut most = 0;
    for transfer in 0..2000_u64 {
        writers.write((transfer % 2) as usize, OBJECT.plus(transfer / 2 % 7));
        most = most.max(writers.kept());
    }
    assert!(most <= 32, "{most} records");
    let gossiped = writers.pack.gossiped;
    assert!(
        gossiped < 20,
        "{gossiped} messages told again what was known"
    );
    for transfer in 0..200 {
        writers.write(transfer % 3, OBJECT);
    }
    assert!(
        writers.kept() <= 20,
        "{} records when it does",
        writers.kept()
    );
}

#[test]
fn who_was_away_is_told_the_newest_write_of_each_object() {
    let mut writers = Writers::new(3, 2);
    let objects = [OBJECT, OBJECT.plus(1)];
    objects.iter().for_each(|oid| writers.read(2, *oid));
    writers.write(1, objects[1]);
    for transfer in 0..101 {
        writers.write(transfer % 2, OBJECT);
    }
    writers.acquire(2);
    assert!(writers.valid[2].is_empty(), "both were written");
    for (oid, last, newest) in [(objects[0], 0, 102), (objects[1], 1, 1)] {
        assert_eq!(writers.pack.begin(2, miss(oid, 0)), []);
        let (_, to, message) = writers.pack.in_flight.pop_back().expect("a fetch");
        let Message::Fetch(Fetch { wanted, .. }) = message else {
            panic!("{message:?}")
        };
        assert_eq!((to, wanted[0].need.lamport), (n(last), newest));
    }
}

#[test]
fn records_are_gone_after_every_barrier() {
    let mut writers = Writers::new(2, 1);
    for _ in 0..100 {
        writers.pack.write(0, OBJECT);
        writers.pack.barrier();
        assert_eq!(writers.kept(), 0);
        writers.pack.run(1, miss(OBJECT, 0));
    }
}

#[test]
fn short_programs_send_no_gossip() {
    let mut writers = Writers::new(2, 1);
    writers.pack = Pack::with_object(2);
    for transfer in 0..100 {
        writers.write(transfer % 2, OBJECT);
    }
    assert_eq!(writers.pack.gossiped, 0);
}

fn gossip(nodes: usize) -> Gossip {
    Gossip {
        epoch: 0,
        reported: NodeSet::default(),
        minimum: VectorTime::zero(nodes),
        floor: VectorTime::zero(nodes),
    }
}

fn carried(gossip: Gossip, carrier: Message) -> Event {
    from(
        1,
        Message::Gossiped {
            gossip: gossip.into(),
            carrier: carrier.into(),
        },
    )
}

fn request() -> Message {
    Message::LockRequest {
        lock: LockId(0),
        time: VectorTime::zero(2),
    }
}

#[test]
fn gossip_that_cannot_be_true_is_refused() {
    let mut pack = Pack::with_object(2);
    let mut floor = gossip(2);
    floor.floor.see(n(1), 1);
    let mut epoch = gossip(2);
    epoch.epoch = 1;
    let mut claim = gossip(2);
    claim.reported.insert(n(0));
    let mut stranger = gossip(2);
    stranger.reported.insert(n(2));
    let bad = [
        (floor, "a floor above what this node has seen"),
        (epoch, "an epoch that ended without this node's report"),
        (claim, "a report that this node has not made"),
        (stranger, "a report of a node that is not in the cluster"),
        (gossip(3), "a floor of a cluster of another size"),
    ];
    for (gossip, why) in bad {
        let error = pack.refuse(0, carried(gossip, request()));
        assert_eq!(
            error,
            ProtocolError::BadMessage {
                from: n(1),
                what: why
            }
        );
    }
    let twice = Message::Gossiped {
        gossip: gossip(2).into(),
        carrier: request().into(),
    };
    pack.refuse(0, carried(gossip(2), twice));
}

#[test]
fn gossip_takes_bytes() {
    let (plain, gossip) = (request(), gossip(2));
    // The epoch, an empty set, and two times of two nodes, each list with its count.
    let bytes = 8 + 4 + 2 * (4 + 2 * 4);
    assert_eq!(gossip.wire_len(), bytes);
    let carried = Message::Gossiped {
        gossip: gossip.into(),
        carrier: plain.clone().into(),
    };
    assert_eq!(carried.wire_len(), plain.wire_len() + 1 + bytes);
    assert_eq!(carried.kind(), plain.kind());
}
