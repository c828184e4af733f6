//! Objects that one node alone writes: written again after its notice, or after a second one where
//! races are looked for, they stay writable, without faults or notices, until somebody asks for
//! them or writes them.

use crate::pack::{OBJECT, Pack, acquire, allocated, from, from_pre_image, miss, n, release, site};
use dhole_model::{CHUNK, Oid, OidRange, Version};
use dhole_protocol::{
    Command, Event, Fetch, Follow, Message, Protocol, Races, RegionCommand, Wanted, WorkerIs,
};

/// A pack whose node 0 is the only one that writes the object.
fn exclusive() -> Pack {
    let mut pack = Pack::with_object(2);
    assert_eq!(intervals(&mut pack), 1);
    assert_eq!(intervals(&mut pack), 0);
    pack
}

/// Node 0 writes the object under a lock that is here; how many intervals that made.
fn intervals(pack: &mut Pack) -> usize {
    pack.local(0, acquire(0));
    pack.local(
        0,
        Event::WriteFault {
            oid: OBJECT,
            site: site(3),
        },
    );
    let done = pack.local(0, release(0));
    done.iter()
        .filter(|command| **command == Command::IntervalEnded)
        .count()
}

#[test]
fn an_object_that_one_node_alone_writes_is_announced_once_and_then_no_more() {
    let mut pack = exclusive();
    for _ in 0..3 {
        assert_eq!(
            pack.local(
                0,
                Event::WriteFault {
                    oid: OBJECT,
                    site: site(3)
                }
            ),
            [],
            "it stays writable"
        );
        assert_eq!(intervals(&mut pack), 0);
    }
}

#[test]
fn where_races_are_looked_for_it_is_announced_twice() {
    for races in [Races::Ignore, Races::Warn, Races::WarnAll] {
        let mut pack = Pack::new(2);
        pack.nodes[0] = Protocol::finding(races, n(0), 2);
        pack.local(0, allocated(OidRange::one(OBJECT)));
        let announced: usize = (0..4).map(|_| intervals(&mut pack)).sum();
        let expected = match races {
            Races::Ignore => 1,
            Races::Warn => 2,
            _ => 4,
        };
        assert_eq!(announced, expected, "{races:?}");
    }
}

#[test]
fn a_fetch_that_is_refused_leaves_it_writable() {
    let mut pack = exclusive();
    let need = Version::default();
    let wanted = [OBJECT, OBJECT.plus(1)].map(|oid| Wanted { region: oid, need });
    let wanted = wanted.into_iter().collect();
    let (round, beside) = (1, 0);
    let fetch = Message::Fetch(Fetch {
        round,
        wanted,
        beside,
        follow: Follow::default(),
    });
    pack.refuse(0, from(1, fetch));
}

#[test]
fn an_object_that_was_asked_for_in_between_is_announced_again() {
    let mut pack = Pack::with_object(2);
    for _ in 0..4 {
        assert_eq!(intervals(&mut pack), 1);
        pack.run(1, acquire(0));
        pack.run(1, release(0));
        pack.run(1, miss(OBJECT, 0));
        pack.run(0, acquire(0));
        pack.run(0, release(0));
    }
}

#[test]
fn a_request_for_it_waits_for_the_next_call() {
    let mut pack = exclusive();
    pack.run(1, acquire(0));
    pack.begin(1, miss(OBJECT, 0));
    let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
    let node = &mut pack.nodes[0];
    let mut out = Vec::new();
    node.step(from(1, fetch), WorkerIs::Computing, &mut out)
        .expect("a sound request");
    assert_eq!(out, [Command::Deferred], "the worker may be writing it");
    out.clear();
    node.step(Event::Serve, WorkerIs::InCall, &mut out)
        .expect("a call");
    assert_eq!(from_pre_image(&out), Some(false));
}

#[test]
fn whoever_asks_gets_all_that_was_written_and_nothing_is_left_to_announce() {
    let mut pack = exclusive();
    pack.run(1, acquire(0));
    let done = pack.run(1, miss(OBJECT, 0));
    assert!(done.contains(&Command::Done));
    pack.begin(1, release(0));
    let done = pack.begin(0, acquire(1));
    assert!(
        !done.contains(&Command::IntervalEnded),
        "node 0 has written nothing since"
    );
}

#[test]
fn an_asker_that_writes_it_next_keeps_its_write() {
    // Of the same Lamport time, a version of node 1 is the greater one.
    let mut pack = Pack::new(2);
    pack.local(1, allocated(OidRange::one(OBJECT)));
    for _ in 0..2 {
        pack.local(1, acquire(1));
        pack.write(1, OBJECT);
        pack.local(1, release(1));
    }
    pack.run(0, acquire(1));
    pack.run(0, miss(OBJECT, 1));
    // Node 1 ends an interval after its reply, while node 0 holds the lock and writes.
    pack.run(1, acquire(0));
    pack.local(1, release(0));
    pack.write(0, OBJECT);
    pack.run(0, release(1));
    pack.done[0].clear();
    pack.barrier();
    assert_eq!(pack.done[0], [Command::Done], "node 0 wrote last");
    assert!(
        pack.done[1].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))),
        "the older copy is node 1's"
    );
}

#[test]
fn after_a_reply_the_next_write_is_announced() {
    let mut pack = exclusive();
    pack.run(1, acquire(0));
    pack.run(1, miss(OBJECT, 0));
    pack.run(1, release(0));
    let done = pack.local(
        0,
        Event::WriteFault {
            oid: OBJECT,
            site: site(3),
        },
    );
    assert!(matches!(
        done[..],
        [Command::Objects(RegionCommand::MakeWritable { .. })]
    ));
    let done = pack.begin(0, acquire(0));
    assert!(done.contains(&Command::IntervalEnded));
}

#[test]
fn a_reply_during_a_wait_leaves_nothing_unfinished() {
    let mut pack = exclusive();
    pack.run(1, acquire(0));
    pack.begin(
        0,
        Event::Arrive {
            once: false,
            site: crate::pack::site(4),
        },
    );
    pack.run(1, miss(OBJECT, 0));
    pack.write(1, OBJECT);
    pack.run(1, release(0));
    pack.begin(
        1,
        Event::Arrive {
            once: false,
            site: crate::pack::site(5),
        },
    );
    pack.settle();
    assert_eq!(
        pack.done[0].last_chunk(),
        Some(&[
            Command::Objects(RegionCommand::Invalidate(OBJECT)),
            Command::Done
        ]),
        "node 1 wrote last"
    );
    pack.begin(0, acquire(1));
    let announces = |message: &Message| message.notice_bytes() > 0;
    assert!(
        !pack
            .in_flight
            .iter()
            .any(|(_, _, message)| announces(message))
    );
}

#[test]
fn a_newer_write_of_another_node_ends_it() {
    let mut pack = exclusive();
    pack.run(1, acquire(0));
    pack.run(1, miss(OBJECT, 0));
    pack.write(1, OBJECT);
    pack.run(1, release(0));
    pack.pass(0, 0);
    assert!(pack.done[0].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));
    pack.run(0, miss(OBJECT, 0));
    assert!(matches!(
        pack.local(
            0,
            Event::WriteFault {
                oid: OBJECT,
                site: site(3)
            }
        )[..],
        [Command::Objects(RegionCommand::MakeWritable { .. })]
    ));
}

/// A pack whose node 0 has written so many objects once, from this one on.
fn written(first: Oid, count: u32) -> Pack {
    let mut pack = Pack::new(2);
    let range = OidRange { first, count };
    pack.local(0, allocated(range));
    pack.local(0, acquire(0));
    range.iter().for_each(|oid| pack.write(0, oid));
    let done = pack.local(0, release(0));
    let clean = done
        .iter()
        .filter(|c| matches!(c, Command::Objects(RegionCommand::MakeClean(_))));
    assert_eq!(clean.count(), count as usize);
    pack
}

/// How many objects a write of this one makes writable, itself the first.
fn made(pack: &mut Pack, oid: Oid) -> u64 {
    let site = site(3);
    let made = pack.local(0, Event::WriteFault { oid, site });
    for (command, oid) in made.iter().zip((oid.0..).map(Oid)) {
        let pre_image = false;
        assert_eq!(
            *command,
            Command::Objects(RegionCommand::MakeWritable {
                region: oid,
                pre_image
            })
        );
    }
    made.len() as u64
}

#[test]
fn where_they_are_written_one_after_the_other_ever_more_become_writable() {
    let mut pack = written(OBJECT, 2 * CHUNK as u32);
    let mut at = OBJECT;
    // To the end of the chunk, and on from there.
    for expected in [1, 2, 4, 8, 16, 32, 1, 2, 4] {
        let made = made(&mut pack, at);
        assert_eq!(made, expected, "from {at}");
        at = at.plus(made);
    }
    let done = pack.local(0, acquire(0));
    assert!(!done.contains(&Command::IntervalEnded), "nobody is told");
}

#[test]
fn written_in_another_order_they_become_writable_one_by_one() {
    let mut pack = written(OBJECT, 16);
    for at in [9, 0, 14, 3, 5, 1] {
        assert_eq!(made(&mut pack, OBJECT.plus(at)), 1, "{at}");
    }
    // It follows on the last one, and what follows on it is writable.
    assert_eq!(made(&mut pack, OBJECT.plus(2)), 1);
    assert_eq!(made(&mut pack, OBJECT.plus(4)), 1);
}

#[test]
fn that_ends_before_what_somebody_else_has_or_wrote_and_what_is_freed() {
    let mut pack = written(OBJECT, 11);
    pack.run(1, acquire(0));
    pack.run(1, miss(OBJECT.plus(4), 0));
    pack.run(1, miss(OBJECT.plus(6), 0));
    pack.write(1, OBJECT.plus(6));
    pack.run(1, release(0));
    pack.run(0, acquire(0));
    let (range, site) = (OidRange::one(OBJECT.plus(9)), site(7));
    pack.local(0, Event::Free { range, site });
    for (at, expected) in [(0, 1), (1, 2), (3, 1), (5, 1), (7, 1), (8, 1), (10, 1)] {
        assert_eq!(made(&mut pack, OBJECT.plus(at)), expected, "{at}");
    }
}

#[test]
fn what_others_read_without_a_message_stays_clean_and_is_announced_once_it_was_read() {
    let pack = |exclusive_after| {
        let mut pack = Pack::new(2);
        let protocol = Protocol::finding(Races::Warn, n(0), 2);
        pack.nodes[0] = protocol.publishing(exclusive_after);
        pack.local(0, allocated(OidRange::one(OBJECT)));
        pack
    };
    let mut reads = pack(9);
    assert_eq!([(); 4].map(|()| intervals(&mut reads)), [1, 1, 0, 0]);
    assert!(reads.nodes[0].published(OBJECT).is_some());
    let was_exclusive = reads.nodes[0].was_read(OBJECT, [n(1)].into_iter());
    assert!(!was_exclusive);
    assert_eq!([(); 4].map(|()| intervals(&mut reads)), [1, 1, 0, 0]);
    // The last interval that is announced leaves the object exclusive.
    let mut alone = pack(2);
    assert_eq!([(); 6].map(|()| intervals(&mut alone)), [1, 1, 0, 1, 0, 0]);
    assert_eq!(alone.nodes[0].published(OBJECT), None);
}

#[test]
fn what_was_withdrawn_is_sent_while_the_worker_computes_and_then_announced() {
    let withdrawing = || {
        let mut pack = Pack::new(2);
        let protocol = Protocol::finding(Races::Ignore, n(0), 2);
        pack.nodes[0] = protocol.expecting_writes().withdrawing();
        pack.local(0, allocated(OidRange::one(OBJECT)));
        assert_eq!([(); 3].map(|()| intervals(&mut pack)), [1, 0, 0]);
        pack
    };
    let mut pack = withdrawing();
    assert_eq!(pack.nodes[0].take_written_alone(), [OBJECT]);
    assert_eq!(pack.nodes[0].take_written_alone(), []);
    assert!(pack.nodes[0].is_exclusive(OBJECT));
    pack.run(1, acquire(0));
    pack.begin(1, miss(OBJECT, 0));
    let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
    let node = &mut pack.nodes[0];
    node.withdrawn(OBJECT);
    assert!(!node.is_exclusive(OBJECT));
    let mut out = Vec::new();
    node.step(from(1, fetch), WorkerIs::Computing, &mut out)
        .expect("a sound request");
    assert_eq!(from_pre_image(&out), Some(false), "{out:?}");
    assert!(!out.contains(&Command::Objects(RegionCommand::MakeClean(OBJECT))));
    let (oid, site) = (OBJECT, site(3));
    let made = pack.local(0, Event::WriteFault { oid, site });
    assert!(matches!(
        made[..],
        [Command::Objects(RegionCommand::MakeWritable { .. })]
    ));
    let done = pack.begin(0, acquire(1));
    assert!(done.contains(&Command::IntervalEnded), "it is announced");
}
