//! Elements of arrays that have a home: races found there, and copies that are kept.

use std::ops::Range;

use crate::pack::{Pack, acquire, from, n, release, site};
use dhole_model::{Coherence, Elements, MessageKind, Oid};
use dhole_protocol::{
    ArrayBlocks, ArrayEvent, Command, Event, Flush, Flushed, Message, Protocol, Race, Raced, Races,
    RacingWrite, RegionCommand, RegionMessage, UnreadElements, WorkerIs,
};

const ARRAY: Oid = Oid(128);

fn part(range: Range<u64>) -> Elements {
    Elements::new(ARRAY, range)
}

/// A pack whose node 0 is home of 100 elements.
fn pack(races: Races) -> Pack {
    let mut pack = Pack::new(3);
    for (me, node) in pack.nodes.iter_mut().enumerate() {
        *node = Protocol::finding(races, n(me), 3);
    }
    let blocks = ArrayBlocks {
        array: ARRAY,
        len: 100,
        per_block: 100,
    };
    let coherence = Coherence::Home;
    let allocated = ArrayEvent::Allocated { blocks, coherence };
    pack.local(0, Event::Array(allocated));
    pack
}

fn miss(range: Range<u64>) -> Event {
    let unread = UnreadElements {
        elements: part(range.clone()),
        within: part(range),
        creator: n(0),
        zero_ok: true,
        coherence: Coherence::Home,
        ahead: None,
    };
    Event::Array(ArrayEvent::Read([unread].into_iter().collect()))
}

fn read(pack: &mut Pack, node: usize, range: Range<u64>) {
    pack.run(node, miss(range));
}

/// A node writes elements at a line.
fn write(pack: &mut Pack, node: usize, range: Range<u64>, line: u32) {
    read(pack, node, range.clone());
    let (elements, site) = (part(range), site(line));
    pack.local(node, Event::Array(ArrayEvent::Write { elements, site }));
}

/// As [`write`], and sends them home.
fn flush(pack: &mut Pack, node: usize, range: Range<u64>, line: u32) {
    write(pack, node, range, line);
    pack.run(node, Event::Flush);
}

/// What the home told of since this was asked last.
fn told(pack: &mut Pack) -> Vec<Race> {
    let race = |command| match command {
        Command::Race(race) => Some(race),
        _ => None,
    };
    std::mem::take(&mut pack.done[0])
        .into_iter()
        .filter_map(race)
        .collect()
}

fn race(range: Range<u64>, sides: [(usize, u32); 2]) -> Race {
    Race {
        raced: Raced::Elements(part(range)),
        writes: sides.map(|(node, line)| RacingWrite {
            node: n(node),
            site: Some(site(line)),
            freed: false,
        }),
    }
}

#[test]
fn of_two_flushes_that_overlap_the_later_one_is_found_to_race() {
    let mut pack = pack(Races::Warn);
    flush(&mut pack, 1, 0..10, 10);
    flush(&mut pack, 2, 10..20, 20);
    assert_eq!(told(&mut pack), [], "neighbours");
    flush(&mut pack, 2, 5..15, 21);
    assert_eq!(told(&mut pack), [race(5..10, [(1, 10), (2, 21)])]);
}

#[test]
fn what_several_lines_wrote_is_told_in_parts_of_one_line_each() {
    let mut pack = pack(Races::Warn);
    write(&mut pack, 1, 0..4, 10);
    flush(&mut pack, 1, 4..8, 11);
    write(&mut pack, 2, 2..6, 20);
    flush(&mut pack, 2, 6..12, 21);
    let parts = [
        race(2..4, [(1, 10), (2, 20)]),
        race(4..6, [(1, 11), (2, 20)]),
        race(6..8, [(1, 11), (2, 21)]),
    ];
    assert_eq!(told(&mut pack), parts);
}

#[test]
fn what_the_home_itself_writes_races_and_is_told_when_its_interval_ends() {
    for home_first in [false, true] {
        let mut pack = pack(Races::Warn);
        if home_first {
            write(&mut pack, 0, 5..15, 30);
        }
        flush(&mut pack, 1, 0..10, 10);
        if !home_first {
            write(&mut pack, 0, 5..15, 30);
        }
        assert_eq!(told(&mut pack), []);
        pack.run(0, Event::Flush);
        let ended = pack.begin(0, crate::pack::arrive());
        let found = race(5..10, [(0, 30), (1, 10)]);
        assert!(ended.contains(&Command::Race(found)), "{ended:?}");
        assert!(ended.contains(&Command::RacesFound(1)));
    }
}

#[test]
fn a_lock_or_a_barrier_between_them_makes_it_no_race() {
    let mut pack = pack(Races::Fail);
    for node in [1, 2, 0, 1] {
        pack.run(node, acquire(0));
        flush(&mut pack, node, 0..10, 10);
        pack.run(node, release(0));
    }
    pack.barrier();
    flush(&mut pack, 2, 0..10, 20);
    pack.barrier();
    flush(&mut pack, 0, 0..10, 30);
    pack.barrier();
    assert_eq!(told(&mut pack), []);
}

#[test]
fn a_flush_of_elements_says_when_only_where_races_are_looked_for() {
    for (races, says) in [(Races::Ignore, false), (Races::Warn, true)] {
        let mut pack = pack(races);
        write(&mut pack, 1, 0..10, 10);
        pack.begin(1, Event::Flush);
        let at = pack
            .in_flight
            .iter()
            .find_map(|(_, _, message)| match message {
                Message::Elements(RegionMessage::Flush(Flush { at, .. })) => Some(at.is_some()),
                _ => None,
            });
        assert_eq!(at, Some(says));
        pack.settle();
        let done = pack.begin(1, crate::pack::arrive());
        assert_eq!(done.contains(&Command::IntervalEnded), says);
    }
}

#[test]
fn flushes_that_make_no_sense_are_refused() {
    let mut pack = pack(Races::Warn);
    write(&mut pack, 1, 0..10, 10);
    pack.begin(1, Event::Flush);
    let (_, _, flush) = pack.in_flight.pop_back().expect("a flush");
    let Message::Elements(RegionMessage::Flush(Flush { flushed, at, .. })) = flush.clone() else {
        panic!("{flush:?}")
    };
    let more = Flushed {
        region: part(20..21),
        bytes: 8,
    };
    let unsaid = Message::Elements(RegionMessage::Flush(Flush {
        number: 1,
        flushed: flushed.iter().copied().chain([more]).collect(),
        at,
    }));
    let error = pack.refuse(0, from(1, unsaid)).to_string();
    assert!(error.contains("where it was written"), "{error}");
    pack.begin(0, from(1, flush.clone()));
    pack.settle();
    pack.barrier();
    let error = pack.refuse(0, from(1, flush)).to_string();
    assert!(error.contains("has ended"), "{error}");
}

/// Node 1 reads elements in three phases.
fn kept() -> Pack {
    let mut pack = pack(Races::Ignore);
    for _ in 0..3 {
        read(&mut pack, 1, 10..20);
        pack.done[1].clear();
        pack.barrier();
    }
    pack
}

/// What a node drops at a barrier.
fn drops(pack: &mut Pack, node: usize) -> Vec<Elements> {
    pack.done[node].clear();
    pack.barrier();
    let dropped = |command: &Command| match command {
        Command::Array(RegionCommand::Invalidate(elements)) => Some(*elements),
        _ => None,
    };
    pack.done[node].iter().filter_map(dropped).collect()
}

fn count(pack: &Pack, kind: MessageKind) -> usize {
    pack.sent.get(&kind).copied().unwrap_or(0)
}

#[test]
fn what_is_fetched_for_the_third_time_unwritten_is_kept() {
    let mut pack = pack(Races::Ignore);
    for kept in [false, false, true, true] {
        read(&mut pack, 1, 10..20);
        assert_eq!(drops(&mut pack, 1).is_empty(), kept);
    }
    assert_eq!(count(&pack, MessageKind::Fetch), 3);
    read(&mut pack, 1, 15..30);
    assert_eq!(drops(&mut pack, 1), [part(20..30)], "each for itself");
}

#[test]
fn a_write_between_starts_the_count_again_and_one_beside_does_not() {
    let mut pack = pack(Races::Ignore);
    for round in 0..4 {
        for _ in 0..2 {
            read(&mut pack, 1, 10..20);
            assert_eq!(drops(&mut pack, 1), [part(10..20)]);
        }
        flush(&mut pack, 2 * (round % 2), 19..25, 5);
    }
    read(&mut pack, 1, 10..19);
    assert_eq!(drops(&mut pack, 1), [], "these were never written");
    assert_eq!(count(&pack, MessageKind::Outdated), 0);
}

#[test]
fn a_flush_is_over_when_those_that_keep_the_elements_know() {
    for writer in [0, 2] {
        let mut pack = kept();
        write(&mut pack, writer, 15..30, 5);
        let begun = pack.begin(writer, Event::Flush);
        assert!(!begun.contains(&Command::Done), "{begun:?}");
        pack.done[writer].clear();
        pack.settle();
        assert_eq!(pack.done[writer], [Command::Done]);
        assert_eq!(count(&pack, MessageKind::Outdated), 1);
        assert_eq!(count(&pack, MessageKind::OutdatedAck), 1);
        assert_eq!(drops(&mut pack, 1), [part(15..20)], "at the next acquire");
        assert_eq!(drops(&mut pack, 1), []);
    }
}

#[test]
fn who_keeps_elements_and_alone_writes_them_goes_on_keeping_them() {
    let mut pack = kept();
    for _ in 0..3 {
        flush(&mut pack, 1, 10..15, 5);
        assert_eq!(drops(&mut pack, 1), []);
    }
    assert_eq!(count(&pack, MessageKind::Outdated), 0);
}

#[test]
fn what_is_outdated_before_it_comes_is_not_kept() {
    let mut pack = pack(Races::Ignore);
    for _ in 0..2 {
        read(&mut pack, 1, 10..20);
        pack.barrier();
    }
    pack.begin(1, miss(10..20));
    pack.deliver_next();
    let (_, _, reply) = pack.in_flight.pop_back().expect("a reply");
    assert!(matches!(reply, Message::ElementsReply(ref reply) if reply.keep));
    flush(&mut pack, 0, 12..13, 5);
    pack.begin(1, from(0, reply));
    assert_eq!(drops(&mut pack, 1), [part(10..20)]);
}

#[test]
fn nobody_knows_what_it_was_not_told() {
    let mut pack = pack(Races::Ignore);
    let ack = Message::Elements(RegionMessage::OutdatedAck { number: 1 });
    let error = pack.refuse(0, from(1, ack)).to_string();
    assert!(error.contains("of which it was not told"), "{error}");
}

#[test]
fn a_flush_that_waited_for_the_worker_tells_when_it_is_merged() {
    let mut pack = kept();
    write(&mut pack, 2, 15..30, 5);
    pack.begin(2, Event::Flush);
    let (_, _, flush) = pack.in_flight.pop_back().expect("a flush");
    let kept = pack.step(0, from(2, flush.clone()), WorkerIs::Computing);
    let (from, message) = (n(2), flush);
    let again = Event::DeliverAgain {
        from,
        message: message.clone(),
    };
    assert_eq!(kept, Ok(vec![Command::DeliverAgain { from, message }]));
    assert_eq!(count(&pack, MessageKind::Outdated), 0);
    pack.run(0, again);
    assert_eq!(count(&pack, MessageKind::Outdated), 1);
    assert!(pack.done[2].contains(&Command::Done));
}
