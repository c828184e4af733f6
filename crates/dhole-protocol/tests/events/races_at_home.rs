//! Races for objects that have a home: what flushes say, and what the home finds by it.

use crate::pack::{OBJECT, Pack, acquire, allocated_under, from, miss_under, n, release, site};
use dhole_model::{Coherence, OidRange};
use dhole_protocol::{
    Changed, Command, Event, Flush, Flushed, Message, Protocol, Race, Races, RegionCommand,
    RegionMessage,
};

/// Node 0 is home of an object that the others have a copy of.
fn finding(races: Races) -> Pack {
    let mut pack = Pack::new(3);
    for (me, node) in pack.nodes.iter_mut().enumerate() {
        *node = Protocol::finding(races, n(me), 3);
    }
    let home = Coherence::Home;
    pack.local(0, allocated_under(OidRange::one(OBJECT), home));
    (1..3).for_each(|node| drop(pack.run(node, miss_under(OBJECT, 0, home))));
    pack
}

/// A node writes the object at a line, and flushes; the home finds that it changed these bytes.
fn write(pack: &mut Pack, node: usize, line: u32, leaf: u64) -> Vec<Race> {
    let fault = Event::WriteFault {
        oid: OBJECT,
        site: site(line),
    };
    pack.local(node, fault);
    let mut found = Vec::new();
    for command in pack.begin(node, Event::Flush) {
        match command {
            Command::Compare { oid, site } => {
                let (by, leaf) = (n(node), std::iter::once(leaf..leaf + 8));
                let changed = Changed { oid, by, site };
                pack.nodes[0].changed_at_home(changed, leaf, None, &mut found);
            }
            Command::SendUnits {
                message: Message::Region(RegionMessage::Flush(Flush { at: Some(at), .. })),
                ..
            } => {
                let (oid, by, site) = (OBJECT, n(node), at.sites[0]);
                let (leaf, time) = (std::iter::once(leaf..leaf + 8), Some(&at.time));
                let changed = Changed { oid, by, site };
                pack.nodes[0].changed_at_home(changed, leaf, time, &mut found);
            }
            _ => {}
        }
    }
    pack.settle();
    let race = |command| match command {
        Command::Race(race) => Some(race),
        _ => None,
    };
    found.into_iter().filter_map(race).collect()
}

fn sides(race: &Race) -> [(usize, Option<u32>); 2] {
    race.writes
        .map(|side| (side.node.index(), side.site.map(|site| site.line)))
}

#[test]
fn of_two_flushes_of_one_leaf_the_later_one_is_found_to_race() {
    let mut pack = finding(Races::Warn);
    assert_eq!(write(&mut pack, 1, 10, 0), []);
    assert_eq!(write(&mut pack, 2, 20, 8), [], "another leaf");
    let found = write(&mut pack, 2, 21, 0);
    assert_eq!(sides(&found[0]), [(1, Some(10)), (2, Some(21))]);
    let found = write(&mut pack, 0, 30, 8);
    assert_eq!(sides(&found[0]), [(0, Some(30)), (2, Some(20))]);
}

#[test]
fn a_lock_or_a_barrier_between_them_makes_it_no_race() {
    let mut pack = finding(Races::Fail);
    pack.run(1, acquire(0));
    pack.run(1, miss_under(OBJECT, 0, Coherence::Home));
    assert_eq!(write(&mut pack, 1, 10, 0), []);
    pack.run(1, release(0));
    pack.run(2, acquire(0));
    pack.run(2, miss_under(OBJECT, 0, Coherence::Home));
    assert_eq!(write(&mut pack, 2, 20, 0), []);
    pack.run(2, release(0));
    pack.barrier();
    assert_eq!(write(&mut pack, 0, 30, 0), []);
}

#[test]
fn a_race_is_told_once() {
    let mut pack = finding(Races::Warn);
    let told: usize = (0..4)
        .map(|round| write(&mut pack, 1 + round % 2, 10, 0).len())
        .sum();
    assert_eq!(told, 1);
}

#[test]
fn what_is_flushed_makes_an_interval_only_where_races_are_looked_for() {
    for (races, intervals) in [(Races::Ignore, 0), (Races::Warn, 1)] {
        let mut pack = finding(races);
        write(&mut pack, 1, 10, 0);
        let done = pack.begin(1, crate::pack::arrive());
        let ended = |command: &&Command| **command == Command::IntervalEnded;
        assert_eq!(done.iter().filter(ended).count(), intervals);
    }
}

#[test]
fn a_home_keeps_a_twin_of_what_others_have_had() {
    for (races, served, twin) in [
        (Races::Ignore, true, false),
        (Races::Warn, false, false),
        (Races::Warn, true, true),
        (Races::WarnAll, false, true),
        (Races::Fail, false, true),
    ] {
        let mut pack = finding(races);
        let oid = if served { OBJECT } else { OBJECT.plus(64) };
        pack.local(0, allocated_under(OidRange::one(oid), Coherence::Home));
        let site = site(1);
        let made = pack.local(0, Event::WriteFault { oid, site });
        let pre_image = twin;
        assert_eq!(
            made,
            [Command::Objects(RegionCommand::MakeWritable {
                region: oid,
                pre_image
            })]
        );
    }
}

#[test]
fn a_flush_of_an_interval_that_is_over_is_refused() {
    let mut pack = finding(Races::Warn);
    write(&mut pack, 1, 10, 0);
    let mut at = None;
    let fault = Event::WriteFault {
        oid: OBJECT,
        site: site(1),
    };
    pack.local(1, fault);
    for command in pack.begin(1, Event::Flush) {
        if let Command::SendUnits { message, .. } = command
            && let Message::Region(RegionMessage::Flush(flush)) = message
        {
            at = flush.at;
        }
    }
    pack.settle();
    pack.barrier();
    let flushed = [Flushed {
        region: OBJECT,
        bytes: 0,
    }];
    let again = Message::Region(RegionMessage::Flush(Flush {
        number: 9,
        flushed: flushed.into_iter().collect(),
        at,
    }));
    let error = pack.refuse(0, from(1, again)).to_string();
    assert!(error.contains("has ended"), "{error}");
}
