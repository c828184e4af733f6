//! `Event::Free`: who learns of it, what is refused then, and what is kept.

use crate::pack::{OBJECT, Pack, acquire, allocated, from, miss, n, release, site};
use dhole_model::{Oid, OidRange};
use dhole_protocol::{
    Command, Event, Freed, Message, Protocol, ProtocolError, Races, RegionCommand, RegionMessage,
    Unread, WorkerIs,
};

fn free(oid: Oid) -> Event {
    Event::Free {
        range: OidRange::one(oid),
        site: site(7),
    }
}

/// The error of an access by a node.
fn error(pack: &mut Pack, node: usize, event: Event) -> ProtocolError {
    let stepped = pack.step(node, event, WorkerIs::InCall);
    stepped.expect_err("it was freed")
}

#[test]
fn a_freed_object_is_an_error_here_at_once_and_elsewhere_once_it_is_heard_of() {
    let mut pack = Pack::new(2);
    pack.nodes[0] = Protocol::finding(Races::Warn, n(0), 2);
    pack.local(0, allocated(OidRange::one(OBJECT)));
    pack.run(1, miss(OBJECT, 0));
    assert_eq!(
        pack.local(0, free(OBJECT)),
        [Command::Objects(RegionCommand::Free(OidRange::one(OBJECT)))]
    );
    let (oid, by, at) = (OBJECT, Some(n(0)), Some(site(7)));
    let freed = |at| ProtocolError::Freed(Freed { oid, by, at });
    assert_eq!(error(&mut pack, 0, miss(OBJECT, 0)), freed(at));
    assert_eq!(error(&mut pack, 0, free(OBJECT)), freed(at), "freed twice");
    pack.done[1].clear();
    pack.barrier();
    assert!(
        pack.done[1].contains(&Command::Objects(RegionCommand::Free(OidRange::one(
            OBJECT
        ))))
    );
    assert_eq!(error(&mut pack, 1, miss(OBJECT, 0)), freed(None));
    assert_eq!(
        error(&mut pack, 1, free(OBJECT)),
        freed(None),
        "freed twice"
    );
}

#[test]
fn whoever_asks_for_a_freed_object_is_told() {
    let mut pack = Pack::with_object(2);
    pack.local(0, free(OBJECT));
    let done = pack.run(1, miss(OBJECT, 0));
    let (oid, by, at) = (OBJECT, Some(n(0)), None);
    assert_eq!(done, [Command::Gone(Freed { oid, by, at })]);
}

#[test]
fn a_request_that_waited_is_told_too() {
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    pack.begin(1, miss(OBJECT, 0));
    let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
    let computing = pack.step(0, from(1, fetch), WorkerIs::Computing);
    assert_eq!(computing, Ok(vec![Command::Deferred]));
    pack.local(0, free(OBJECT));
    pack.begin(0, Event::Serve);
    assert!(matches!(
        pack.in_flight[0].2,
        Message::Region(RegionMessage::Gone { oid: OBJECT, .. })
    ));
}

#[test]
fn of_a_round_in_which_something_is_gone_the_rest_is_awaited() {
    let mut pack = Pack::new(3);
    let oids = [Oid(64), Oid(128)];
    for (node, oid) in oids.into_iter().enumerate() {
        pack.local(node, allocated(OidRange::one(oid)));
    }
    pack.local(0, free(oids[0]));
    let unread: Vec<Unread> = oids
        .into_iter()
        .enumerate()
        .filter_map(|(node, oid)| match miss(oid, node) {
            Event::ReadMiss(unread) => Some(unread),
            _ => None,
        })
        .collect();
    let done = pack.run(2, Event::ReadMisses(unread));
    assert!(
        matches!(
            done[..],
            [
                Command::Objects(RegionCommand::Install(_)),
                Command::Gone(_)
            ]
        ),
        "{done:?}"
    );
}

#[test]
fn what_is_written_and_freed_in_one_interval_is_told_as_freed() {
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    pack.local(0, free(OBJECT));
    let done = pack.begin(0, acquire(1));
    assert_eq!(
        done,
        [Command::IntervalEnded],
        "nothing is left to make clean"
    );
    pack.settle();
    pack.begin(0, release(1));
    pack.begin(1, acquire(1));
    while let Some((_, _, message)) = pack.in_flight.front() {
        if let Some(news) = message.news() {
            let told = |interval: &std::sync::Arc<dhole_protocol::Interval>| {
                (interval.written.len(), interval.freed.len())
            };
            assert_eq!(
                news.intervals.iter().map(told).collect::<Vec<_>>(),
                [(0, 1)]
            );
        }
        pack.deliver_next();
    }
}

#[test]
fn a_freeing_that_nothing_orders_with_a_write_is_a_race() {
    for writer in 0..2 {
        let mut pack = Pack::new(2);
        for (me, node) in pack.nodes.iter_mut().enumerate() {
            *node = Protocol::finding(Races::Warn, n(me), 2);
        }
        pack.local(0, allocated(OidRange::one(OBJECT)));
        pack.run(1, miss(OBJECT, 0));
        pack.write(writer, OBJECT);
        pack.local(1 - writer, free(OBJECT));
        pack.barrier();
        let told = |command: &Command| match command {
            Command::Race(race) => Some(race.writes.map(|side| side.site.map(|s| s.line))),
            _ => None,
        };
        let races: Vec<_> = pack.done.iter().flatten().filter_map(told).collect();
        let lines = if writer == 0 { [3, 7] } else { [7, 3] };
        assert_eq!(races, [lines.map(Some)]);
        for node in 0..2 {
            assert!(matches!(
                error(&mut pack, node, miss(OBJECT, 0)),
                ProtocolError::Freed(_)
            ));
        }
    }
}

#[test]
fn of_a_chunk_that_is_all_freed_its_number_is_kept() {
    let mut pack = Pack::new(2);
    for number in 1..=1000 {
        let range = OidRange {
            first: Oid(64 * number),
            count: 64,
        };
        pack.local(0, allocated(range));
        pack.run(1, miss(range.first, 0));
        let site = site(7);
        for range in [
            OidRange { count: 40, ..range },
            OidRange {
                first: range.first.plus(40),
                count: 24,
            },
        ] {
            pack.local(0, Event::Free { range, site });
        }
        pack.barrier();
        for node in 0..2 {
            assert_eq!(pack.nodes[node].records_kept(), [0, 1, 0]);
        }
    }
    let refused = error(&mut pack, 1, miss(Oid(64 * 500), 0)).to_string();
    assert_eq!(refused, "object 0x7d00 was freed", "by whom is forgotten");
}
