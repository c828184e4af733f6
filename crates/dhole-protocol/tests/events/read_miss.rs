//! `Event::ReadMiss`: whom to ask for an object, and what comes back.

use crate::pack::{OBJECT, Pack, acquire, from, miss, n, release};
use dhole_model::{Coherence, NodeId, Oid, Version};
use dhole_protocol::{
    Command, Event, Fetch, FetchReply, Message, RegionCommand, Sent, Unread, WorkerIs,
};

fn version(lamport: u64, node: usize) -> Version {
    Version {
        lamport,
        node: n(node),
    }
}

fn installed(oid: Oid, version: Version) -> Vec<Command> {
    vec![
        Command::Objects(RegionCommand::Install(Sent {
            region: oid,
            version,
        })),
        Command::Done,
    ]
}

/// A read of an object that is all zeros until somebody writes it.
fn zeros() -> Event {
    Event::ReadMiss(Unread {
        oid: Oid(70),
        creator: n(0),
        zero_ok: true,
        coherence: Coherence::Lazy,
    })
}

#[test]
fn an_object_that_nobody_wrote_comes_from_its_creator_in_two_messages() {
    let mut pack = Pack::with_object(3);
    assert_eq!(
        pack.run(2, miss(OBJECT, 0)),
        installed(OBJECT, version(0, 0))
    );
    assert_eq!(pack.messages(), 2);
}

#[test]
fn an_object_comes_from_its_last_writer() {
    let mut pack = Pack::with_object(3);
    pack.run(1, miss(OBJECT, 0));
    pack.write(1, OBJECT);
    pack.barrier();
    pack.messages();
    pack.begin(2, miss(OBJECT, 0));
    assert_eq!(pack.in_flight[0].1, n(1), "not from its creator");
    pack.settle();
    assert!(pack.done[2].ends_with(&installed(OBJECT, version(1, 1))));
    assert_eq!(pack.messages(), 2);
}

#[test]
fn a_copy_stays_valid_while_nobody_writes() {
    let mut pack = Pack::with_object(2);
    pack.run(1, miss(OBJECT, 0));
    pack.barrier();
    let invalid =
        |command: &Command| matches!(command, Command::Objects(RegionCommand::Invalidate(_)));
    assert!(!pack.done.iter().flatten().any(invalid));
}

#[test]
fn zeros_that_nobody_wrote_are_made_here() {
    let mut pack = Pack::new(2);
    let zeros = zeros();
    assert_eq!(
        pack.local(1, zeros),
        [
            Command::Objects(RegionCommand::ZeroFill(Oid(70))),
            Command::Done
        ]
    );
}

#[test]
fn zeros_that_somebody_wrote_come_from_there() {
    let mut pack = Pack::new(2);
    let zeros = zeros();
    pack.local(1, zeros.clone());
    pack.write(1, Oid(70));
    pack.barrier();
    assert_eq!(pack.run(0, zeros), installed(Oid(70), version(1, 1)));
}

#[test]
fn the_zeros_of_a_reader_become_invalid_when_somebody_wrote_them() {
    let mut pack = Pack::new(2);
    let zeros = zeros();
    pack.local(0, zeros.clone());
    pack.local(1, zeros);
    pack.write(1, Oid(70));
    pack.barrier();
    assert!(pack.done[0].contains(&Command::Objects(RegionCommand::Invalidate(Oid(70)))));
}

#[test]
fn a_reply_to_an_earlier_round_is_left_alone() {
    let mut pack = Pack::with_object(2);
    pack.begin(1, miss(OBJECT, 0));
    pack.deliver_next();
    let (_, _, first) = pack.in_flight[0].clone();
    pack.settle();
    pack.write(1, OBJECT);
    pack.run(0, acquire(1));
    assert_eq!(pack.local(1, from(0, first)), [], "twice is once");
}

#[test]
fn a_reply_of_another_object_or_an_older_version_is_refused() {
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    pack.barrier();
    pack.begin(1, miss(OBJECT, 0));
    let Message::Fetch(Fetch { round, .. }) = pack.in_flight[0].2 else {
        panic!("a fetch")
    };
    let reply = |oid, version| {
        from(
            0,
            Message::FetchReply(FetchReply {
                keep: false,
                round,
                sent: [Sent {
                    region: oid,
                    version,
                }]
                .into_iter()
                .collect(),
            }),
        )
    };
    pack.refuse(1, reply(Oid(65), version(1, 0)));
    pack.refuse(1, reply(OBJECT, version(0, 0)));
    pack.refuse(
        1,
        from(
            0,
            Message::FetchReply(FetchReply {
                keep: false,
                round,
                sent: [].into_iter().collect(),
            }),
        ),
    );
    pack.settle();
    assert!(
        pack.done[1].contains(&Command::Done),
        "the true reply is still awaited"
    );
}

#[test]
fn a_request_for_what_was_never_here_is_refused() {
    let mut pack = Pack::with_object(2);
    pack.begin(1, miss(Oid(65), 0));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    let error = pack.refuse(0, from(1, message));
    assert_eq!(
        error.to_string(),
        "node 1 asks for object 0x41 at version 0 of node 0: there is no copy of it here"
    );
}

#[test]
fn a_writer_answers_for_its_version_after_its_copy_became_invalid() {
    let mut pack = Pack::with_object(3);
    pack.write(0, OBJECT);
    pack.barrier();
    pack.begin(2, miss(OBJECT, 0));
    // Before the request arrives, node 1 writes the object and node 0 hears of it.
    let late = pack.in_flight.pop_front().expect("a fetch");
    pack.run(1, acquire(0));
    pack.run(1, miss(OBJECT, 0));
    pack.write(1, OBJECT);
    pack.run(1, release(0));
    pack.pass(0, 0);
    assert!(pack.done[0].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));
    pack.in_flight.push_back(late);
    pack.settle();
    assert!(pack.done[2].ends_with(&installed(OBJECT, version(1, 0))));
}

#[test]
fn a_clean_object_is_sent_while_its_owner_computes() {
    let mut pack = Pack::with_object(2);
    pack.begin(1, miss(OBJECT, 0));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    let done = pack.step(0, from(1, message), WorkerIs::Computing);
    assert_eq!(done, Ok(vec![]));
    assert_eq!(pack.in_flight[0].1, NodeId(1));
}
