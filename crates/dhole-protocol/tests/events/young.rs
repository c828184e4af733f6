//! Young objects: written without an event, and clean at the end of their interval.

use crate::pack::{Pack, from, n, site};
use dhole_model::{Coherence, Oid, OidRange, Version};
use dhole_protocol::{Command, Event, Message, Protocol, Races, RegionCommand, Unread, WorkerIs};

const FIRST: Oid = Oid(64);

fn range(first: u64, count: u32) -> OidRange {
    let first = FIRST.plus(first);
    OidRange { first, count }
}

fn born(pack: &mut Pack, count: u32) {
    pack.nodes[0].born(range(0, count), Coherence::Lazy);
}

fn ended(first: u64, count: u32) -> Command {
    let (lamport, node) = (0, n(0));
    Command::EndYoung {
        range: range(first, count),
        version: Version { lamport, node },
    }
}

fn read(place: u64) -> Event {
    Event::ReadMiss(Unread {
        oid: FIRST.plus(place),
        creator: n(0),
        zero_ok: false,
        coherence: Coherence::Lazy,
    })
}

/// The objects that were young until the interval ends, which it does.
fn end(pack: &mut Pack) -> Vec<Command> {
    let mut done = pack.local(0, Event::EndInterval);
    done.retain(|done| matches!(done, Command::EndYoung { .. } | Command::IntervalEnded));
    done
}

#[test]
fn young_objects_become_clean_together_and_nobody_is_told() {
    let mut pack = Pack::new(2);
    born(&mut pack, 3);
    assert!(!pack.nodes[0].is_quiescent());
    assert_eq!(end(&mut pack), [ended(0, 3)], "nobody is told");
    assert!(pack.nodes[0].is_quiescent());
    assert_eq!(end(&mut pack), [], "once");
    assert!(pack.nodes[0].published(FIRST).is_some());
}

#[test]
fn a_young_object_that_is_asked_for_is_young_no_longer() {
    let mut pack = Pack::new(2);
    born(&mut pack, 3);
    pack.begin(1, read(1));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    assert!(matches!(message, Message::Fetch(_)));
    let done = pack.step(0, from(1, message), WorkerIs::Computing);
    assert_eq!(done, Ok(vec![Command::Deferred]));
    let done = pack.run(0, Event::Serve);
    let clean = Command::Objects(RegionCommand::MakeClean(FIRST.plus(1)));
    assert!(done.contains(&clean), "{done:?}");
    let (oid, site) = (FIRST.plus(1), site(1));
    let pre_image = true;
    let writable = Command::Objects(RegionCommand::MakeWritable {
        region: oid,
        pre_image,
    });
    assert_eq!(pack.local(0, Event::WriteFault { oid, site }), [writable]);
    let done = [ended(0, 1), ended(2, 1), Command::IntervalEnded];
    assert_eq!(end(&mut pack), done);
    pack.barrier();
    assert!(pack.done[1].contains(&Command::Objects(RegionCommand::Invalidate(oid))));
}

#[test]
fn a_young_object_may_be_freed() {
    let mut pack = Pack::new(2);
    born(&mut pack, 2);
    let (range, site) = (range(0, 1), site(1));
    pack.local(0, Event::Free { range, site });
    assert_eq!(end(&mut pack), [ended(1, 1), Command::IntervalEnded]);
}

#[test]
fn objects_are_young_where_a_first_write_need_not_be_known() {
    let learning = |races| Protocol::finding(races, n(0), 2).expecting_writes();
    for races in [Races::Ignore, Races::Warn] {
        assert!(learning(races).keeps_young(Coherence::Lazy));
        assert!(learning(races).keeps_young(Coherence::Update));
        assert!(!learning(races).keeps_young(Coherence::Home));
        assert!(!learning(races).keeps_young(Coherence::TreadMarks));
    }
    assert!(!learning(Races::WarnAll).keeps_young(Coherence::Lazy));
    let plain = Protocol::finding(Races::Ignore, n(0), 2);
    assert!(!plain.keeps_young(Coherence::Lazy));
}
