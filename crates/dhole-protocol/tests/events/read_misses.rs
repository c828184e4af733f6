//! `Event::ReadMisses`: one round of questions, one to each node that is asked.

use crate::pack::{Pack, from, n};
use dhole_model::{Coherence, Oid, OidRange, Version};
use dhole_protocol::{
    Command, Event, Fetch, FetchReply, Message, RegionCommand, Sent, Unread, WorkerIs,
};

/// Objects 64 and 65 of node 0 and 128 of node 1, in a pack of three nodes.
fn pack() -> Pack {
    let mut pack = Pack::new(3);
    for (node, first, count) in [(0, 64, 2), (1, 128, 1)] {
        let first = Oid(first);
        pack.local(node, crate::pack::allocated(OidRange { first, count }));
    }
    pack
}

fn unread(oid: u64) -> Unread {
    Unread {
        oid: Oid(oid),
        creator: n(usize::from(oid >= 128)),
        zero_ok: oid == 200,
        coherence: Coherence::Lazy,
    }
}

fn misses(oids: &[u64]) -> Event {
    Event::ReadMisses(oids.iter().map(|oid| unread(*oid)).collect())
}

fn first(oid: u64) -> Sent {
    let node = unread(oid).creator;
    Sent {
        region: Oid(oid),
        version: Version { lamport: 0, node },
    }
}

#[test]
fn each_node_is_asked_once_and_at_once() {
    let mut pack = pack();
    let begun = pack.begin(2, misses(&[65, 128, 200, 64, 65]));
    assert_eq!(
        begun,
        [Command::Objects(RegionCommand::ZeroFill(Oid(200)))],
        "nobody need be asked"
    );
    assert_eq!(pack.in_flight.len(), 2);
    pack.settle();
    let [a, b, c] = [64, 65, 128].map(|oid| Command::Objects(RegionCommand::Install(first(oid))));
    assert_eq!(pack.done[2], [a, b, c, Command::Done], "when all has come");
    assert_eq!(pack.messages(), 4);
    assert_eq!(pack.local(2, misses(&[64, 128])), [Command::Done]);
}

#[test]
fn the_order_of_replies_does_not_matter_and_each_counts_once() {
    let mut pack = pack();
    pack.begin(2, misses(&[64, 128]));
    pack.deliver_next();
    pack.deliver_next();
    let (_, _, of_zero) = pack.in_flight[0].clone();
    let (_, _, of_one) = pack.in_flight[1].clone();
    let install = |oid| Command::Objects(RegionCommand::Install(first(oid)));
    assert_eq!(pack.local(2, from(1, of_one.clone())), [install(128)]);
    assert_eq!(pack.local(2, from(1, of_one)), [], "twice is once");
    assert_eq!(
        pack.local(2, from(0, of_zero)),
        [install(64), Command::Done]
    );
}

#[test]
fn a_reply_to_another_nodes_question_is_refused() {
    let mut pack = pack();
    pack.begin(2, misses(&[64, 128]));
    let Message::Fetch(Fetch { round, .. }) = pack.in_flight[0].2 else {
        panic!("a fetch")
    };
    let reply = |oids: &[u64]| {
        Message::FetchReply(FetchReply {
            keep: false,
            round,
            sent: oids.iter().map(|oid| first(*oid)).collect(),
        })
    };
    pack.refuse(2, from(1, reply(&[64])));
    pack.refuse(2, from(0, reply(&[128])));
    pack.refuse(2, from(0, reply(&[65, 64])));
    pack.settle();
    assert!(
        pack.done[2].ends_with(&[Command::Done]),
        "the true ones count"
    );
}

#[test]
fn what_came_another_way_meanwhile_is_skipped() {
    let mut pack = pack();
    pack.begin(2, misses(&[64, 65]));
    pack.local(2, crate::pack::allocated(OidRange::one(Oid(64))));
    pack.settle();
    let [a, b] = [
        Command::Objects(RegionCommand::Skip(first(64))),
        Command::Objects(RegionCommand::Install(first(65))),
    ];
    assert_eq!(pack.done[2], [a, b, Command::Done]);
}

#[test]
fn a_question_waits_whole_when_one_object_is_being_written() {
    let mut pack = pack();
    pack.write(0, Oid(65));
    pack.begin(2, misses(&[64, 65, 128]));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    let done = pack.step(0, from(2, message), WorkerIs::Computing);
    assert_eq!(done, Ok(vec![Command::Deferred]));
    pack.settle();
    assert!(!pack.done[2].contains(&Command::Done));
    pack.run(0, Event::Serve);
    assert!(pack.done[2].ends_with(&[Command::Done]));
}
