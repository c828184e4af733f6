//! Races: which node finds them, whom it asks, and when its worker goes on.

use crate::pack::{OBJECT, Pack, acquire, allocated, arrive, from, miss, n, release, site};
use dhole_model::{CallSite, Oid, OidRange};
use dhole_protocol::{
    Command, Event, Message, Protocol, Race, Raced, Races, RacingWrite, RegionCommand,
};

/// A pack that looks for races, whose nodes all have a copy of the object.
fn finding(races: Races, nodes: usize) -> Pack {
    let mut pack = Pack::new(nodes);
    for (me, node) in pack.nodes.iter_mut().enumerate() {
        *node = Protocol::finding(races, n(me), nodes);
    }
    pack.local(0, allocated(OidRange::one(OBJECT)));
    (1..nodes).for_each(|node| drop(pack.run(node, miss(OBJECT, 0))));
    pack.done.iter_mut().for_each(Vec::clear);
    pack
}

fn write(pack: &mut Pack, node: usize, line: u32) {
    let site = site(line);
    pack.local(node, Event::WriteFault { oid: OBJECT, site });
}

fn told(pack: &Pack, node: usize) -> Vec<Race> {
    let race = |command: &Command| match command {
        Command::Race(race) => Some(*race),
        _ => None,
    };
    pack.done[node].iter().filter_map(race).collect()
}

fn race(writes: [(usize, Option<CallSite>); 2]) -> Race {
    Race {
        raced: Raced::Object(OBJECT),
        writes: writes.map(|(node, site)| RacingWrite {
            freed: false,
            node: n(node),
            site,
        }),
    }
}

#[test]
fn of_two_racing_nodes_the_one_with_the_greater_version_tells() {
    let mut pack = finding(Races::Warn, 2);
    write(&mut pack, 0, 10);
    write(&mut pack, 1, 20);
    pack.barrier();
    assert_eq!(told(&pack, 0), []);
    let both = race([(0, Some(site(10))), (1, Some(site(20)))]);
    assert_eq!(told(&pack, 1), [both]);
    assert!(pack.done[1].contains(&Command::RacesFound(1)));
    assert_eq!(pack.done[1].last(), Some(&Command::Done), "it goes on last");
}

#[test]
fn three_nodes_are_three_pairs() {
    let mut pack = finding(Races::Warn, 3);
    for node in 0..3 {
        write(&mut pack, node, 10 + node as u32);
    }
    pack.barrier();
    let found: Vec<usize> = (0..3).map(|node| told(&pack, node).len()).collect();
    assert_eq!(found, [0, 1, 2]);
}

#[test]
fn a_write_after_an_acquire_does_not_race_with_what_came_before_the_release() {
    let mut pack = finding(Races::Warn, 2);
    for round in 0..4 {
        let node = round % 2;
        pack.run(node, acquire(0));
        if pack.done[node].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))) {
            pack.run(node, miss(OBJECT, 0));
        }
        write(&mut pack, node, 10);
        pack.run(node, release(0));
        pack.done[node].clear();
    }
    pack.barrier();
    assert_eq!((told(&pack, 0), told(&pack, 1)), (vec![], vec![]));
}

#[test]
fn a_race_is_found_at_an_acquire_already_and_the_lock_comes_with_the_answer() {
    let mut pack = finding(Races::Warn, 2);
    write(&mut pack, 0, 10);
    pack.run(0, acquire(0));
    pack.run(0, release(0));
    write(&mut pack, 1, 20);
    pack.begin(1, acquire(0));
    while !matches!(
        pack.in_flight.front(),
        Some((_, _, Message::WrittenAt { .. }))
    ) {
        assert!(
            !pack.done[1].contains(&Command::Done),
            "it waits for the answer"
        );
        assert!(pack.deliver_next(), "the answer comes");
    }
    pack.settle();
    assert_eq!(told(&pack, 1).len(), 1);
    assert_eq!(pack.done[1].last(), Some(&Command::Done));
}

#[test]
fn a_race_counts_each_time_and_is_asked_about_once() {
    let mut pack = finding(Races::Warn, 2);
    for _ in 0..3 {
        for (node, line) in [(0, 10), (1, 20)] {
            write(&mut pack, node, line);
        }
        pack.barrier();
        pack.run(0, miss(OBJECT, 0));
    }
    assert_eq!(told(&pack, 1).len(), 1);
    let found = Command::RacesFound(1);
    let times = pack.done[1].iter().filter(|c| **c == found).count();
    assert_eq!(times, 3);
}

#[test]
fn at_most_sixteen_races_are_asked_about() {
    let objects = OidRange {
        first: Oid(128),
        count: 100,
    };
    let mut pack = finding(Races::Warn, 2);
    pack.local(0, allocated(objects));
    for oid in objects.iter() {
        pack.run(1, miss(oid, 0));
        for node in 0..2 {
            let site = site(5);
            pack.local(node, Event::WriteFault { oid, site });
        }
    }
    pack.barrier();
    assert_eq!(told(&pack, 1).len(), 16);
    assert!(pack.done[1].contains(&Command::RacesFound(100)));
}

#[test]
fn a_node_remembers_the_last_two_places_of_an_object() {
    let mut pack = finding(Races::Fail, 2);
    for line in [10, 11, 12] {
        write(&mut pack, 0, line);
        pack.local(0, acquire(2));
        pack.local(0, release(2));
    }
    let mut asked = |lamport| {
        let raced = Raced::Object(OBJECT);
        let question = Message::WhereWritten { raced, lamport };
        pack.begin(0, from(1, question));
        match pack.in_flight.pop_back() {
            Some((_, _, Message::WrittenAt { site, .. })) => site,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(asked(3), Some(site(12)));
    assert_eq!(asked(2), Some(site(11)));
    assert_eq!(asked(1), None);
    assert_eq!(asked(4), None, "it never wrote that");
}

#[test]
fn an_answer_that_nobody_asked_for_is_refused() {
    let mut pack = finding(Races::Warn, 2);
    let answer = Message::WrittenAt {
        raced: Raced::Object(OBJECT),
        lamport: 1,
        site: None,
    };
    let error = pack.refuse(0, from(1, answer)).to_string();
    assert!(error.contains("which was not asked"), "{error}");
}

#[test]
fn nothing_is_told_where_races_are_ignored() {
    let mut pack = finding(Races::Ignore, 2);
    write(&mut pack, 0, 10);
    write(&mut pack, 1, 20);
    pack.barrier();
    assert_eq!((told(&pack, 0), told(&pack, 1)), (vec![], vec![]));
}

#[test]
fn where_races_are_errors_no_write_goes_unannounced() {
    let mut pack = finding(Races::Fail, 2);
    for _ in 0..3 {
        write(&mut pack, 0, 10);
        let done = pack.begin(0, arrive());
        assert!(done.contains(&Command::Objects(RegionCommand::MakeClean(OBJECT))));
        pack.begin(1, arrive());
        pack.settle();
    }
}
