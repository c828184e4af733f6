//! Objects that come along with one that is asked for.

use crate::pack::{OBJECT, Pack, acquire, allocated, from, miss, n, release};
use dhole_model::{Coherence, Oid, OidRange, Version};
use dhole_protocol::{
    Along, Command, Event, FetchReply, Follow, FollowedReferences, MOST_ALONG, Message,
    RegionCommand, Sent, WorkerIs,
};

const PART: Oid = Oid(65);

/// Node 0 has allocated an object and a part of it; node 2 has asked for the object.
fn asked() -> Pack {
    let mut pack = Pack::with_object(3);
    pack.local(0, allocated(OidRange::one(PART)));
    pack.begin(2, miss(OBJECT, 0));
    pack
}

/// The reply to node 2, with these objects behind the one that it asked for.
fn with_along(pack: &mut Pack, along: impl IntoIterator<Item = Sent>) -> Event {
    pack.deliver_next();
    let (_, _, mut reply) = pack.in_flight.pop_back().expect("a reply");
    let Message::FetchReply(FetchReply { sent, .. }) = &mut reply else {
        panic!("a reply")
    };
    sent.extend(along);
    from(0, reply)
}

fn part(lamport: u64, node: usize) -> Sent {
    let version = Version {
        lamport,
        node: n(node),
    };
    Sent {
        region: PART,
        version,
    }
}

#[test]
fn what_is_missing_is_taken_and_then_no_miss() {
    let mut pack = asked();
    let reply = with_along(&mut pack, [part(0, 0)]);
    let done = pack.local(2, reply);
    let [
        Command::Objects(RegionCommand::Install(_)),
        Command::InstallAlong(along),
        Command::Done,
    ] = done[..]
    else {
        panic!("{done:?}")
    };
    assert_eq!(along, part(0, 0));
    let version = part(0, 0).version;
    let make_clean = false;
    let along = pack.nodes[2].send_along(PART, n(2), WorkerIs::Computing);
    assert_eq!(
        along,
        Some(Along {
            version,
            make_clean
        }),
        "a valid copy"
    );
}

#[test]
fn what_is_older_than_a_notice_is_left() {
    let mut pack = asked();
    pack.settle();
    pack.run(1, miss(PART, 0));
    pack.run(1, acquire(1));
    pack.write(1, PART);
    pack.write(0, OBJECT);
    pack.run(0, acquire(0));
    pack.run(0, release(0));
    pack.run(1, release(1));
    pack.pass(2, 0);
    pack.pass(2, 1);
    pack.begin(2, miss(OBJECT, 0));
    let reply = with_along(&mut pack, [part(0, 0)]);
    let done = pack.local(2, reply);
    assert_eq!(
        done[1..],
        [
            Command::Objects(RegionCommand::Skip(part(0, 0))),
            Command::Done
        ]
    );
}

#[test]
fn what_is_here_already_is_left() {
    let mut pack = asked();
    pack.settle();
    pack.run(2, miss(PART, 0));
    pack.write(0, OBJECT);
    pack.barrier();
    pack.begin(2, miss(OBJECT, 0));
    let reply = with_along(&mut pack, [part(0, 0)]);
    let done = pack.local(2, reply);
    assert_eq!(
        done[1..],
        [
            Command::Objects(RegionCommand::Skip(part(0, 0))),
            Command::Done
        ]
    );
}

#[test]
fn only_valid_copies_that_nobody_is_writing_go_along() {
    let mut pack = asked();
    let along = |pack: &mut Pack, worker| pack.nodes[0].send_along(PART, n(2), worker);
    assert!(along(&mut pack, WorkerIs::Computing).is_some());
    assert_eq!(pack.nodes[1].send_along(PART, n(2), WorkerIs::InCall), None);
    pack.write(0, PART);
    assert_eq!(along(&mut pack, WorkerIs::InCall), None, "it is dirty");
}

#[test]
fn what_is_at_home_somewhere_goes_from_there_by_itself() {
    let mut pack = Pack::with_object(2);
    let (range, coherence) = (OidRange::one(PART), Coherence::Home);
    pack.local(0, Event::Allocated { range, coherence });
    let along = pack.nodes[0].send_along(PART, n(1), WorkerIs::InCall);
    assert_eq!(along, None);
}

#[test]
fn an_exclusive_object_goes_along_in_a_call_and_is_clean_then() {
    let mut pack = Pack::with_object(2);
    for _ in 0..2 {
        pack.write(0, OBJECT);
        pack.barrier();
    }
    let node = &mut pack.nodes[0];
    assert_eq!(node.send_along(OBJECT, n(1), WorkerIs::Computing), None);
    let along = node.send_along(OBJECT, n(1), WorkerIs::InCall);
    assert!(along.is_some_and(|along| along.make_clean));
    let again = node.send_along(OBJECT, n(1), WorkerIs::Computing);
    assert!(again.is_some_and(|along| !along.make_clean));
}

#[test]
fn more_than_go_along_are_refused_and_so_is_a_node_that_is_not() {
    let mut pack = asked();
    let many = (0..=MOST_ALONG as u64).map(|i| Sent {
        region: Oid(100 + i),
        ..part(0, 0)
    });
    let reply = with_along(&mut pack, many);
    pack.refuse(2, reply);
    let mut pack = asked();
    let reply = with_along(&mut pack, [part(0, 7)]);
    pack.refuse(2, reply);
}

/// What a fetch says of references, and whether that is refused.
fn follows(most: usize, types: usize) -> Follow {
    let of_type = |shipped| FollowedReferences {
        shipped,
        slots: u64::MAX,
    };
    Follow {
        most: most as u16,
        references: (0..types as u32).map(of_type).collect(),
    }
}

#[test]
fn what_a_fetch_says_of_references_comes_to_the_engine_with_the_reply() {
    for (most, types) in [(0, 0), (MOST_ALONG, Follow::MOST_TYPES)] {
        let mut pack = Pack::with_object(2);
        pack.nodes[1].follow(follows(most, types));
        pack.begin(1, miss(OBJECT, 0));
        let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
        let mut done = Vec::new();
        let answered = pack.nodes[0].step(from(1, fetch), WorkerIs::InCall, &mut done);
        answered.expect("a fetch");
        let [Command::Objects(RegionCommand::Reply(reply))] = &done[..] else {
            panic!("{done:?}")
        };
        assert_eq!(reply.follow, follows(most, types));
    }
}

#[test]
fn a_fetch_with_more_than_goes_along_is_refused() {
    for (most, types) in [(MOST_ALONG + 1, 1), (1, Follow::MOST_TYPES + 1)] {
        let mut pack = Pack::with_object(2);
        pack.nodes[1].follow(follows(most, types));
        pack.begin(1, miss(OBJECT, 0));
        let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
        let error = pack.refuse(0, from(1, fetch)).to_string();
        assert!(
            error.contains("more should come than goes along"),
            "{error}"
        );
    }
}

#[test]
fn what_is_followed_goes_with_the_next_miss_alone() {
    let mut pack = Pack::with_object(2);
    pack.local(0, allocated(OidRange::one(PART)));
    pack.nodes[1].follow(follows(1, 1));
    pack.run(1, miss(OBJECT, 0));
    pack.begin(1, miss(PART, 0));
    let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
    let Message::Fetch(fetch) = fetch else {
        panic!("{fetch:?}")
    };
    assert!(fetch.follow.is_none());
}
