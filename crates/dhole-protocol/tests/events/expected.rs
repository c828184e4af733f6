//! Write sets that are learned: a write of what this node wrote last makes writable what it is
//! expected to write next, and what it did not write of that is not announced.

use dhole_model::{Coherence, Oid, OidRange};
use dhole_protocol::{Command, Event, Protocol, Races, RegionCommand, WorkerIs};

use crate::pack::{Pack, acquire, allocated, from, from_pre_image, miss, n, release, site};

const FIRST: Oid = Oid(64);

/// Two nodes, the first of which allocated so many objects and learns write sets. The other has a
/// copy of each.
fn pack(count: u32, races: Races) -> Pack {
    let mut pack = Pack::new(2);
    pack.nodes[0] = Protocol::finding(races, n(0), 2).expecting_writes();
    pack.nodes[1] = Protocol::finding(races, n(1), 2).expecting_writes();
    let range = OidRange {
        first: FIRST,
        count,
    };
    pack.local(0, allocated(range));
    range.iter().for_each(|oid| {
        pack.run(1, miss(oid, 0));
    });
    pack
}

fn at(place: u64) -> Oid {
    FIRST.plus(place)
}

/// Node 0 writes an object without being able to: what that makes writable.
fn fault(pack: &mut Pack, place: u64) -> Vec<u64> {
    let made = fault_keeping(pack, place);
    made.into_iter().map(|(place, _)| place).collect()
}

/// As above, with whether the bytes are kept.
fn fault_keeping(pack: &mut Pack, place: u64) -> Vec<(u64, bool)> {
    let (oid, site) = (at(place), site(3));
    let made = pack.local(0, Event::WriteFault { oid, site });
    let (first, ahead) = made.split_first().expect("it becomes writable");
    let Command::Objects(RegionCommand::MakeWritable { region, .. }) = first else {
        panic!("{first:?}")
    };
    assert_eq!(*region, oid);
    let ahead = ahead.iter().map(|command| match command {
        Command::ExpectWrite { oid, pre_image } => (oid.0 - FIRST.0, *pre_image),
        other => panic!("{other:?}"),
    });
    ahead.collect()
}

/// Node 0 ends an interval in which these were expected to be written and were not. How many
/// objects it announces.
fn announced(pack: &mut Pack, unwritten: &[u64]) -> usize {
    let unwritten: Vec<Oid> = unwritten.iter().map(|place| at(*place)).collect();
    let clean = unwritten
        .iter()
        .map(|oid| Command::Objects(RegionCommand::MakeClean(*oid)));
    let clean: Vec<Command> = clean.collect();
    assert_eq!(pack.local(0, Event::Unwritten(unwritten)), clean);
    pack.run(0, acquire(1));
    pack.run(0, release(1));
    pack.done[1].clear();
    pack.run(1, acquire(1));
    pack.run(1, release(1));
    let lost = pack.done[1].iter();
    let lost =
        lost.filter(|command| matches!(command, Command::Objects(RegionCommand::Invalidate(_))));
    lost.count()
}

#[test]
fn each_write_that_was_foreseen_makes_twice_as_many_writable() {
    let mut pack = pack(100, Races::Ignore);
    assert_eq!(fault(&mut pack, 0), []);
    assert_eq!(fault(&mut pack, 1), [2]);
    assert_eq!(fault(&mut pack, 3), [4, 5, 6]);
    assert_eq!(fault(&mut pack, 7), (8..15).collect::<Vec<_>>());
    // Another one than was foreseen, but near: half as many.
    assert_eq!(fault(&mut pack, 17), [18, 19, 20]);
    assert_eq!(announced(&mut pack, &[4, 8, 20]), 21 - 2 - 3);
}

#[test]
fn sequences_may_take_turns_and_what_another_node_wrote_is_left_out() {
    let mut pack = pack(100, Races::Ignore);
    pack.write(1, at(3));
    pack.barrier();
    assert_eq!(fault(&mut pack, 0), []);
    assert_eq!(fault(&mut pack, 90), []);
    assert_eq!(fault(&mut pack, 1), [2]);
    assert_eq!(fault(&mut pack, 91), [92]);
    assert_eq!(fault(&mut pack, 4), [5, 6, 7]);
}

#[test]
fn what_was_written_longer_ago_than_the_first_is_not_expected() {
    let mut pack = pack(10, Races::Ignore);
    for place in [0, 1, 3] {
        pack.write(0, at(place));
    }
    let announced = announced(&mut pack, &[2, 4, 5, 6]);
    assert_eq!(announced, 3, "the others followed on the first two");
    // The copies of the other node go, so that these objects are not the first's alone.
    pack.run(1, miss(at(0), 0));
    pack.run(1, miss(at(1), 0));
    pack.run(1, miss(at(3), 0));
    assert_eq!(fault(&mut pack, 0), []);
    assert_eq!(fault(&mut pack, 1), [3], "nobody has written the third");
}

#[test]
fn a_request_for_what_is_expected_waits_for_nobody() {
    let mut pack = pack(3, Races::Ignore);
    pack.write(1, at(2));
    pack.barrier();
    pack.run(0, miss(at(2), 1));
    pack.write(0, at(2));
    pack.barrier();
    fault(&mut pack, 0);
    pack.begin(1, miss(at(2), 0));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    let asked = from(1, message);
    let mut out = Vec::new();
    assert_eq!(fault(&mut pack, 1), [2]);
    pack.nodes[0]
        .step(asked, WorkerIs::Computing, &mut out)
        .unwrap();
    assert_eq!(from_pre_image(&out), Some(true));
}

#[test]
fn what_is_expected_has_a_pre_image_if_it_was_read_lately() {
    let mut pack = Pack::new(2);
    let protocol = Protocol::finding(Races::Ignore, n(0), 2);
    pack.nodes[0] = protocol.expecting_writes().publishing(8);
    let count = 3;
    let range = OidRange {
        first: FIRST,
        count,
    };
    pack.local(0, allocated(range));
    let end = |pack: &mut Pack| {
        pack.run(0, acquire(0));
        pack.run(0, release(0));
    };
    range.iter().for_each(|oid| pack.write(0, oid));
    end(&mut pack);
    let mut has_pre_image = |was_read| {
        if was_read {
            pack.nodes[0].was_read(at(2), [n(1)].into_iter());
        }
        fault(&mut pack, 0);
        let made = fault_keeping(&mut pack, 1);
        end(&mut pack);
        made[..] == [(2, true)]
    };
    // Nobody is told of the third interval, nor of those that follow.
    let never_read = [false; 3].map(&mut has_pre_image);
    assert_eq!(never_read, [false; 3]);
    // The last one is the second that nobody has read.
    let read_once = [true, false, false].map(&mut has_pre_image);
    assert_eq!(read_once, [true, true, false]);
}

#[test]
fn what_nobody_else_has_becomes_exclusive_on_the_way() {
    let mut pack = Pack::new(2);
    pack.nodes[0] = Protocol::finding(Races::Ignore, n(0), 2).expecting_writes();
    let range = OidRange {
        first: FIRST,
        count: 4,
    };
    pack.local(0, allocated(range));
    range.iter().for_each(|oid| pack.write(0, oid));
    pack.run(0, acquire(0));
    pack.run(0, release(0));
    let writes = |pack: &mut Pack, place| {
        let (oid, site) = (at(place), site(3));
        pack.local(0, Event::WriteFault { oid, site }).len()
    };
    assert_eq!(
        [0, 1, 2, 3].map(|place| writes(&mut pack, place)),
        [1, 2, 0, 1]
    );
    let twins = pack.nodes[0].twins().count();
    assert_eq!(twins, 0, "they are written without notices");
}

#[test]
fn a_home_expects_nothing() {
    let mut pack = Pack::new(2);
    pack.nodes[0] = Protocol::finding(Races::Ignore, n(0), 2).expecting_writes();
    let range = OidRange {
        first: FIRST,
        count: 3,
    };
    let coherence = Coherence::Home;
    pack.local(0, Event::Allocated { range, coherence });
    for place in 0..3 {
        assert_eq!(fault(&mut pack, place), []);
    }
}

#[test]
fn a_race_tells_where_an_expected_object_was_written() {
    let mut pack = pack(3, Races::Warn);
    fault(&mut pack, 0);
    assert_eq!(fault(&mut pack, 1), [2]);
    pack.write(1, at(2));
    pack.local(0, Event::WrittenAt(vec![(at(2), site(77))]));
    pack.barrier();
    let races = pack.done.iter().flatten().filter_map(|done| match done {
        Command::Race(race) => Some(race.writes.map(|side| (side.node, side.site))),
        _ => None,
    });
    let races: Vec<_> = races.collect();
    assert_eq!(races.len(), 1);
    assert!(races[0].contains(&(n(0), Some(site(77)))), "{races:?}");
}
