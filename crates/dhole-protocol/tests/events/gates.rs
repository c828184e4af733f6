//! Gates: what nobody reads goes behind one, which the end of an interval shuts.

use std::ops::Range;

use crate::pack::{Pack, allocated, from, miss, n, site};
use dhole_model::{CHUNK, Oid, OidRange};
use dhole_protocol::{Command, Event, Protocol, Races, RegionCommand, WorkerIs};

const FIRST: Oid = Oid(CHUNK);

/// A pack whose node 0 has allocated so many objects of a chunk, and keeps gates.
fn gating(count: u32) -> Pack {
    let mut pack = Pack::new(2);
    let protocol = Protocol::finding(Races::Warn, n(0), 2);
    pack.nodes[0] = protocol.publishing(16).gating();
    let first = FIRST;
    pack.local(0, allocated(OidRange { first, count }));
    pack
}

fn write(pack: &mut Pack, place: u64) -> Vec<Command> {
    let (oid, site) = (FIRST.plus(place), site(3));
    pack.local(0, Event::WriteFault { oid, site })
}

/// The interval ends: what becomes of gates, and whether it is told of.
fn end(pack: &mut Pack) -> Vec<Command> {
    let mut done = pack.local(0, Event::EndInterval);
    done.retain(|done| {
        use Command::{Gate, IntervalEnded, ShutGate};
        matches!(done, Gate(_) | ShutGate(_) | IntervalEnded)
    });
    done
}

/// Node 0 writes these in three intervals, after which they are behind the gate.
fn written_alone(pack: &mut Pack, places: Range<u64>) {
    let told = Command::IntervalEnded;
    for interval in 1..=3 {
        places.clone().for_each(|place| {
            write(pack, place);
        });
        let mut expected: Vec<Command> = Vec::new();
        if interval == 3 {
            let gates = places.clone().map(|place| Command::Gate(FIRST.plus(place)));
            expected.extend(gates);
        }
        expected.push(told.clone());
        assert_eq!(end(pack), expected, "interval {interval}");
    }
}

/// What node 0 makes clean when node 1 asks for an object, while the worker is in a call.
fn asked(pack: &mut Pack, place: u64) -> Vec<Oid> {
    pack.begin(1, miss(FIRST.plus(place), 0));
    let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
    let done = pack.step(0, from(1, fetch), WorkerIs::InCall);
    let done = done.expect("a sound request");
    let clean = done.iter().filter_map(|done| match done {
        Command::Objects(RegionCommand::MakeClean(oid)) => Some(*oid),
        _ => None,
    });
    let clean = clean.collect();
    pack.settle();
    clean
}

#[test]
fn what_nobody_reads_is_behind_a_gate_which_the_end_of_an_interval_shuts() {
    let mut pack = gating(2);
    written_alone(&mut pack, 0..2);
    let node = &mut pack.nodes[0];
    assert!(node.gated(FIRST).is_some() && node.published(FIRST).is_none());
    assert!(node.is_quiescent());
    node.opened_gate(FIRST.plus(1));
    assert!(
        !node.is_quiescent(),
        "what is written behind it is to be shut in"
    );
    assert_eq!(end(&mut pack), [Command::ShutGate(FIRST)], "nobody is told");
    assert!(pack.nodes[0].is_quiescent());
    assert_eq!(end(&mut pack), []);
}

#[test]
fn what_was_read_behind_a_gate_is_announced_and_goes_behind_it_again() {
    let mut pack = gating(2);
    written_alone(&mut pack, 0..2);
    let node = &mut pack.nodes[0];
    assert!(node.was_read(FIRST, std::iter::empty()), "it was exclusive");
    node.opened_gate(FIRST);
    assert!(node.published(FIRST).is_some() && node.gated(FIRST).is_none());
    assert!(matches!(
        write(&mut pack, 0)[..],
        [Command::Objects(RegionCommand::MakeWritable { .. })]
    ));
    assert_eq!(write(&mut pack, 1), [], "it is behind the open gate");
    let (shut, told) = (Command::ShutGate(FIRST), Command::IntervalEnded);
    assert_eq!(end(&mut pack), [shut, told.clone()]);
    write(&mut pack, 0);
    assert_eq!(end(&mut pack), std::slice::from_ref(&told));
    write(&mut pack, 0);
    assert_eq!(end(&mut pack), [Command::Gate(FIRST), told]);
}

#[test]
fn what_is_asked_for_while_its_gate_is_open_stays_clean_and_a_quarter_ends_the_gate() {
    let quarter = CHUNK / 4;
    let mut pack = gating(CHUNK as u32);
    written_alone(&mut pack, 0..CHUNK);
    // A shut gate lets an object go behind it again.
    let end_of = CHUNK - 1;
    assert_eq!(asked(&mut pack, end_of), [FIRST.plus(end_of)]);
    for _ in 0..2 {
        write(&mut pack, end_of);
        assert_eq!(end(&mut pack), [Command::IntervalEnded]);
    }
    write(&mut pack, end_of);
    assert_eq!(end(&mut pack)[0], Command::Gate(FIRST.plus(end_of)));
    pack.nodes[0].opened_gate(FIRST);
    for place in 0..quarter - 1 {
        assert_eq!(asked(&mut pack, place), [FIRST.plus(place)]);
    }
    let last = asked(&mut pack, quarter - 1);
    let all = (quarter - 1..CHUNK).map(|place| FIRST.plus(place));
    assert!(last.into_iter().eq(all), "they leave it too");
    end(&mut pack);
    for _ in 0..4 {
        (0..CHUNK).for_each(|place| {
            write(&mut pack, place);
        });
        let done = end(&mut pack);
        assert!(!done.iter().any(|done| matches!(done, Command::Gate(_))));
    }
}
