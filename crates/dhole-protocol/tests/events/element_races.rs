//! Races for elements of arrays: which node finds them, for which elements, and which are none.

use std::ops::Range;

use crate::pack::{Pack, acquire, from, n, release, site};
use dhole_model::{Coherence, Elements, Oid};
use dhole_protocol::{
    ArrayEvent, Command, Event, Message, Protocol, Race, Raced, Races, RacingWrite, RegionCommand,
    UnreadElements,
};

const ARRAY: Oid = Oid(128);

fn part(range: Range<u64>) -> Elements {
    Elements::new(ARRAY, range)
}

/// A pack that looks for races, whose nodes all have copies of the first 100 elements.
fn finding(races: Races, nodes: usize) -> Pack {
    let mut pack = Pack::new(nodes);
    for me in 0..nodes {
        pack.nodes[me] = Protocol::finding(races, n(me), nodes);
        read(&mut pack, me, 0..100);
    }
    pack.done.iter_mut().for_each(Vec::clear);
    pack
}

fn read(pack: &mut Pack, node: usize, range: Range<u64>) {
    let unread = UnreadElements {
        elements: part(range.clone()),
        within: part(range),
        creator: n(0),
        zero_ok: true,
        coherence: Coherence::Lazy,
        ahead: None,
    };
    let misses = [unread].into_iter().collect();
    pack.run(node, Event::Array(ArrayEvent::Read(misses)));
}

fn write(pack: &mut Pack, node: usize, range: Range<u64>, line: u32) {
    let (elements, site) = (part(range), site(line));
    let event = ArrayEvent::Write { elements, site };
    pack.local(node, Event::Array(event));
}

fn overwrite(pack: &mut Pack, node: usize, range: Range<u64>, line: u32) {
    let event = ArrayEvent::Overwrite {
        elements: part(range),
        creator: n(0),
        coherence: Coherence::Lazy,
        site: site(line),
    };
    pack.local(node, Event::Array(event));
}

fn told(pack: &Pack, node: usize) -> Vec<Race> {
    let race = |command: &Command| match command {
        Command::Race(race) => Some(*race),
        _ => None,
    };
    pack.done[node].iter().filter_map(race).collect()
}

/// Nodes 0 and 1 raced for these elements, from these lines.
fn race(range: Range<u64>, lines: [u32; 2]) -> Race {
    let side = |node: usize| RacingWrite {
        freed: false,
        node: n(node),
        site: Some(site(lines[node])),
    };
    Race {
        raced: Raced::Elements(part(range)),
        writes: [side(0), side(1)],
    }
}

#[test]
fn the_overlap_is_told_by_the_node_with_the_greater_version() {
    for races in [Races::Warn, Races::Fail] {
        let mut pack = finding(races, 2);
        write(&mut pack, 0, 0..10, 10);
        write(&mut pack, 1, 5..15, 20);
        pack.barrier();
        assert_eq!(told(&pack, 0), []);
        assert_eq!(told(&pack, 1), [race(5..10, [10, 20])]);
        assert!(pack.done[1].contains(&Command::RacesFound(1)));
        assert_eq!(pack.done[1].last(), Some(&Command::Done), "it goes on last");
    }
}

#[test]
fn a_node_that_is_ahead_in_time_tells_whatever_its_number() {
    let mut pack = finding(Races::Warn, 2);
    write(&mut pack, 0, 50..51, 9);
    pack.local(0, acquire(2));
    pack.local(0, release(2));
    write(&mut pack, 0, 0..10, 10);
    overwrite(&mut pack, 1, 9..15, 20);
    pack.barrier();
    assert_eq!(told(&pack, 0), [race(9..10, [10, 20])]);
    assert_eq!(told(&pack, 1), []);
}

#[test]
fn neighbours_are_no_race() {
    let mut pack = finding(Races::Fail, 3);
    for round in 0..3_u64 {
        for node in 0..3 {
            let first = 10 * ((node as u64 + round) % 3);
            read(&mut pack, node, first..first + 10);
            write(&mut pack, node, first..first + 10, 10);
        }
        pack.barrier();
    }
    for node in 0..3 {
        let races = |c: &Command| matches!(c, Command::Race(_) | Command::RacesFound(_));
        assert!(!pack.done[node].iter().any(races), "{:?}", pack.done[node]);
    }
}

#[test]
fn a_lock_orders_writes_of_the_same_elements() {
    let mut pack = finding(Races::Fail, 2);
    for round in 0..4 {
        let node = round % 2;
        pack.run(node, acquire(0));
        read(&mut pack, node, 0..20);
        let first = 5 * node as u64;
        write(&mut pack, node, first..first + 10, 10);
        pack.run(node, release(0));
    }
    pack.barrier();
    assert_eq!((told(&pack, 0), told(&pack, 1)), (vec![], vec![]));
}

#[test]
fn what_several_lines_wrote_is_told_in_parts_of_one_line_each() {
    let mut pack = finding(Races::Warn, 2);
    write(&mut pack, 0, 0..4, 10);
    write(&mut pack, 0, 4..9, 11);
    write(&mut pack, 1, 2..6, 20);
    write(&mut pack, 1, 6..20, 21);
    pack.barrier();
    let mut all = told(&pack, 1);
    all.sort_unstable();
    let parts = [
        race(2..4, [10, 20]),
        race(4..6, [11, 20]),
        race(6..9, [11, 21]),
    ];
    assert_eq!(all, parts);
}

#[test]
fn a_race_counts_each_time_and_is_asked_about_once() {
    let mut pack = finding(Races::Warn, 2);
    for _ in 0..3 {
        for (node, line) in [(0, 10), (1, 20)] {
            read(&mut pack, node, 0..10);
            write(&mut pack, node, 0..10, line);
        }
        pack.barrier();
    }
    assert_eq!(told(&pack, 1).len(), 1);
    let found = Command::RacesFound(1);
    let times = pack.done[1].iter().filter(|c| **c == found).count();
    assert_eq!(times, 3);
}

#[test]
fn a_node_still_knows_after_one_barrier_where_it_wrote_before() {
    let mut pack = finding(Races::Fail, 2);
    let asked = |pack: &mut Pack, lamport| {
        let raced = Raced::Elements(part(0..20));
        pack.begin(0, from(1, Message::WhereWritten { raced, lamport }));
        match pack.in_flight.pop_back() {
            Some((_, _, Message::WrittenAt { raced, site, .. })) => (raced.elements(), site),
            other => panic!("{other:?}"),
        }
    };
    write(&mut pack, 0, 0..10, 10);
    pack.barrier();
    write(&mut pack, 0, 0..5, 11);
    pack.local(0, acquire(2));
    pack.local(0, release(2));
    assert_eq!(asked(&mut pack, 1), (Some(part(0..10)), Some(site(10))));
    pack.barrier();
    assert_eq!(asked(&mut pack, 1), (Some(part(0..5)), Some(site(10))));
    pack.barrier();
    assert_eq!(
        asked(&mut pack, 1),
        (Some(part(0..20)), None),
        "too long ago"
    );
}

#[test]
fn where_all_races_are_found_no_write_of_elements_goes_unannounced() {
    let clean = Command::Array(RegionCommand::MakeClean(part(0..10)));
    for (races, times) in [(Races::Warn, 1), (Races::WarnAll, 4), (Races::Fail, 4)] {
        let (mut pack, mut cleaned) = (finding(races, 2), 0);
        for _ in 0..4 {
            write(&mut pack, 0, 0..10, 10);
            let done = pack.begin(0, crate::pack::arrive());
            cleaned += usize::from(done.contains(&clean));
            pack.begin(1, crate::pack::arrive());
            pack.settle();
        }
        assert_eq!(cleaned, times);
    }
}

#[test]
fn an_answer_about_other_elements_is_refused() {
    let mut pack = finding(Races::Warn, 2);
    write(&mut pack, 0, 0..10, 10);
    write(&mut pack, 1, 0..10, 20);
    pack.begin(0, crate::pack::arrive());
    pack.begin(1, crate::pack::arrive());
    let asks = |m: &Message| matches!(m, Message::WhereWritten { .. });
    while !pack.in_flight.iter().any(|(_, _, message)| asks(message)) {
        assert!(pack.deliver_next(), "node 1 asks");
    }
    for (range, lamport) in [(0..11, 1), (1..10, 1), (0..10, 2)] {
        let answer = Message::WrittenAt {
            raced: Raced::Elements(part(range)),
            lamport,
            site: None,
        };
        let error = pack.refuse(1, from(0, answer)).to_string();
        assert!(error.contains("which was not asked"), "{error}");
    }
}
