//! Gates: exclusive objects that other nodes read between the intervals in which their owner writes
//! them.

use conformance::Bug;
use conformance::model::{Fault, Program, Sight, programs::*};
use dhole_model::Coherence::{Home, Lazy, Update};
use dhole_protocol::Races;

use crate::{caught, sound};

#[test]
fn what_is_read_behind_a_gate_is_announced_next() {
    for coherence in [Lazy, Update] {
        let sights = [Sight::ReadBehindGate, Sight::ReadThere];
        for program in [
            read_behind_a_gate(1),
            read_behind_a_gate_again(),
            read_behind_a_gate_under_a_lock(),
        ] {
            sound(program.under(coherence), &sights);
        }
    }
}

#[test]
fn several_read_behind_a_gate() {
    for coherence in [Lazy, Update] {
        let program = read_behind_a_gate(2).under(coherence);
        sound(program, &[Sight::ReadBehindGate]);
    }
}

#[test]
fn a_reader_that_finds_a_gate_open_asks() {
    for coherence in [Lazy, Update] {
        let program = read_behind_an_open_gate().under(coherence);
        sound(
            program,
            &[Sight::ReadBehindGate, Sight::OpenGate, Sight::Deferred],
        );
    }
}

#[test]
fn what_is_behind_a_shut_gate_is_sent_while_its_worker_computes() {
    let mut program = read_behind_an_open_gate();
    program.sees = false;
    sound(program, &[Sight::Withdrawn]);
}

#[test]
fn what_leaves_a_gate_in_any_way_is_seen_by_others() {
    for coherence in [Lazy, Update] {
        let program = taken_from_behind_a_gate().under(coherence);
        sound(program, &[Sight::ReadBehindGate]);
        let program = freed_behind_a_gate().under(coherence);
        sound(program, &[Sight::ReadBehindGate, Sight::Gone]);
        for to in [Lazy, Update, Home]
            .into_iter()
            .filter(|to| *to != coherence)
        {
            let program = switched_behind_a_gate(to).under(coherence);
            sound(program, &[Sight::ReadBehindGate]);
        }
    }
}

#[test]
fn a_reader_behind_a_gate_sees_one_write_whole() {
    let sights = [Sight::ReadBehindGate, Sight::ChangedThere, Sight::OpenGate];
    sound(two_leaves_read_behind_a_gate(), &sights);
    sound(two_leaves_read_behind_a_gate_later(), &sights);
}

#[test]
fn programs_of_old_are_as_sound_where_there_are_gates() {
    for program in [
        read_between_writes(),
        read_between_writes_by_two(),
        read_between_writes_alone(),
        written_by_another_while_expected(),
        read_beside_what_was_exclusive(),
        read_beside_what_is_written(),
        wanders_and_is_read(),
        written_and_read_in_phases(),
        owned_and_exclusive(1),
        followed_and_exclusive(1),
        written_alone(2, 1),
        written_alone_in_phases(true),
        overwriting_what_is_written_alone(),
        racing_writers(2, 2),
        racing_writers_and_readers(2),
    ] {
        for coherence in [Lazy, Update] {
            sound(program.clone().gating().under(coherence), &[]);
            sound(program.clone().gating().young().under(coherence), &[]);
        }
        sound(program.gating().finding(Races::Warn), &[]);
    }
}

fn planted() -> [Program; 3] {
    [
        read_behind_a_gate(1),
        read_behind_a_gate_again(),
        read_behind_an_open_gate(),
    ]
}

#[test]
fn a_marked_object_that_stays_behind_its_gate_is_read_stale() {
    let [program, ..] = planted();
    caught(Bug::KeepMarked, program, Fault::StaleRead);
}

#[test]
fn a_reader_that_does_not_mark_the_gate_reads_a_stale_object() {
    let [program, ..] = planted();
    caught(Bug::SkipGateMark, program, Fault::StaleRead);
}

#[test]
fn a_sent_object_that_stays_behind_its_gate_is_read_stale() {
    let [.., program] = planted();
    caught(Bug::KeepServed, program, Fault::StaleRead);
}

#[test]
fn a_gate_that_is_shut_for_readers_alone_lets_them_read_what_is_written() {
    let program = two_leaves_read_behind_a_gate_later();
    caught(Bug::ShutForReadersAlone, program, Fault::TornRead);
}

#[test]
fn a_reader_that_does_not_look_at_the_gate_again_reads_a_mixture() {
    let program = two_leaves_read_behind_a_gate();
    caught(Bug::SkipGateLook, program, Fault::TornRead);
}
