//! The messages `Update` and `DropOut`: who is pushed to, and what becomes of a push.

use crate::pack::{OBJECT, Pack, from, n};
use dhole_model::{Coherence, MessageKind, OidRange};
use dhole_protocol::{
    Command, Event, Message, ProtocolError, RegionCommand, RegionMessage, WorkerIs,
};

/// A pack whose node 0 has an object under the update protocol.
fn pack(nodes: usize) -> Pack {
    let mut pack = Pack::new(nodes);
    pack.local(
        0,
        crate::pack::allocated_under(OidRange::one(OBJECT), Coherence::Update),
    );
    pack
}

fn miss() -> Event {
    crate::pack::miss(OBJECT, 0)
}

fn updates(pack: &Pack) -> usize {
    pack.sent.get(&MessageKind::Update).copied().unwrap_or(0)
}

#[test]
fn who_fetched_is_pushed_to_before_the_arrival_and_reads_without_a_message() {
    let mut pack = pack(3);
    pack.run(1, miss());
    pack.write(0, OBJECT);
    pack.begin(0, crate::pack::arrive());
    let (_, to, first) = &pack.in_flight[0];
    assert!(matches!(first, Message::Region(RegionMessage::Update { .. })) && *to == n(1));
    assert_eq!(updates(&pack), 1, "node 2 never read it");
    (1..3).for_each(|node| drop(pack.begin(node, crate::pack::arrive())));
    pack.settle();
    let before = pack.in_flight.len();
    let done = pack.begin(1, miss());
    assert!(matches!(
        done[..],
        [
            Command::Objects(RegionCommand::InstallKept(OBJECT)),
            Command::Done
        ]
    ));
    assert_eq!(pack.in_flight.len(), before);
}

#[test]
fn a_push_that_no_notice_has_reached_changes_nothing() {
    let mut pack = pack(2);
    pack.run(1, miss());
    pack.write(0, OBJECT);
    pack.begin(0, crate::pack::arrive());
    let (sender, _, push) = pack.in_flight.pop_front().unwrap();
    let deliver = Event::Deliver {
        from: sender,
        message: push,
    };
    let done = pack.step(1, deliver, WorkerIs::Computing).unwrap();
    assert!(
        matches!(
            done[..],
            [Command::Objects(RegionCommand::Keep { region: OBJECT, .. })]
        ),
        "{done:?}"
    );
}

#[test]
fn a_push_older_than_a_notice_is_dropped_and_the_object_fetched() {
    let mut pack = pack(2);
    pack.run(1, miss());
    pack.write(0, OBJECT);
    pack.begin(0, crate::pack::arrive());
    let late = pack.in_flight.pop_front().unwrap();
    pack.begin(1, crate::pack::arrive());
    pack.settle();
    pack.write(0, OBJECT);
    pack.begin(0, crate::pack::arrive());
    let _lost = pack.in_flight.pop_front().unwrap();
    pack.begin(1, crate::pack::arrive());
    pack.settle();
    let done = pack.begin(1, from(late.0.index(), late.2));
    assert!(matches!(done[..], [Command::PassOver { .. }]), "{done:?}");
    let before = pack.in_flight.len();
    pack.begin(1, miss());
    assert_eq!(pack.in_flight.len(), before + 1, "asks");
}

#[test]
fn a_reader_that_reads_no_more_drops_out_after_three_pushes() {
    let mut pack = pack(2);
    pack.run(1, miss());
    for _ in 0..6 {
        pack.write(0, OBJECT);
        pack.barrier();
    }
    assert_eq!((updates(&pack), pack.sent[&MessageKind::DropOut]), (3, 1));
    assert!(matches!(
        pack.run(1, miss())[..],
        [
            ..,
            Command::Objects(RegionCommand::Install(_)),
            Command::Done
        ]
    ));
}

#[test]
fn another_writer_makes_the_copyset_its_own() {
    let mut pack = pack(3);
    for node in [1, 2] {
        pack.run(node, miss());
    }
    pack.write(1, OBJECT);
    pack.barrier();
    assert_eq!(updates(&pack), 0, "node 1 has no readers yet");
    pack.run(0, miss());
    pack.write(0, OBJECT);
    pack.barrier();
    assert_eq!(updates(&pack), 0, "its readers had gone to node 1");
}

#[test]
fn what_one_node_alone_writes_is_announced_no_more() {
    let mut pack = pack(2);
    pack.write(0, OBJECT);
    pack.barrier();
    pack.write(0, OBJECT);
    assert!(
        !pack
            .begin(0, crate::pack::arrive())
            .contains(&Command::Objects(RegionCommand::MakeClean(OBJECT)))
    );
}

fn propagate(to: usize) -> Event {
    Event::Propagate {
        objects: vec![OBJECT],
        elements: Vec::new(),
        to: vec![n(to)],
    }
}

#[test]
fn what_is_propagated_goes_at_once_or_with_its_version() {
    let mut pack = Pack::with_object(3);
    assert_eq!(pack.begin(0, propagate(1)), []);
    assert_eq!(updates(&pack), 1, "it is clean");
    pack.write(0, OBJECT);
    assert_eq!(pack.begin(0, propagate(2)), []);
    assert_eq!(updates(&pack), 1, "it has no version yet");
    pack.barrier();
    assert_eq!(updates(&pack), 2);
    pack.write(0, OBJECT);
    pack.barrier();
    assert_eq!(updates(&pack), 2, "once");
}

#[test]
fn a_node_that_did_not_write_last_propagates_nothing() {
    let mut pack = Pack::with_object(3);
    let refused = pack.step(1, propagate(2), WorkerIs::InCall);
    let oid = OBJECT;
    let writer = None;
    assert_eq!(refused, Err(ProtocolError::NotLastWriter { oid, writer }));
    pack.run(1, miss());
    pack.write(1, OBJECT);
    pack.barrier();
    let refused = pack.step(0, propagate(2), WorkerIs::InCall);
    let writer = Some(n(1));
    assert_eq!(refused, Err(ProtocolError::NotLastWriter { oid, writer }));
}
