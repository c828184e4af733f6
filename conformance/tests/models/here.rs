//! Barriers of two nodes, of which one that has nothing to tell says just that it is there: every
//! run of small programs.

use conformance::Bug;
use conformance::model::{Fault, Sight, programs::*};
use dhole::Coherence::{Home, Lazy, Update};
use dhole::Races;

use crate::{caught, sound};

/// Both have nothing to tell, one, the other, and neither, in all orders but two.
const PHASES: [[[bool; 2]; 4]; 4] = [
    [[false, false], [false, true], [true, false], [true, true]],
    [[true, true], [true, false], [false, true], [false, false]],
    [[false, true], [false, false], [true, true], [true, false]],
    [[true, false], [true, true], [false, false], [false, true]],
];

#[test]
fn who_has_nothing_to_tell_passes_barriers_after_the_other_has_come() {
    for phases in 1..=6 {
        let late = [Sight::HereLate].repeat(usize::from(phases > 1));
        sound(only_barriers(phases), &[&[Sight::Here][..], &late].concat());
    }
}

#[test]
fn what_either_writes_in_some_phases_is_seen_in_the_next() {
    for coherence in [Lazy, Update, Home] {
        for phases in PHASES {
            let program = written_in_some_phases(&phases).under(coherence);
            sound(program, &[Sight::Here]);
        }
    }
    let quiet = [false, false];
    for writer in [[true, false], [false, true]] {
        let phases = [quiet, writer, quiet, quiet];
        let program = written_in_some_phases(&phases);
        sound(program.clone(), &[Sight::HereLate, Sight::Invalidated]);
        sound(program.comparing(), &[Sight::HereLate]);
    }
}

#[test]
fn what_was_learnt_by_a_lock_is_told_at_the_barrier_and_no_more() {
    for coherence in [Lazy, Update, Home] {
        for writer in 0..2 {
            sound(learnt_by_a_lock(writer).under(coherence), &[Sight::Here]);
        }
    }
    for writer in 0..2 {
        let program = learnt_by_a_lock(writer).logging(1, 2);
        sound(program, &[Sight::Here, Sight::Floor]);
    }
}

#[test]
fn what_is_sound_where_all_arrive_as_ever_is_so_quietly() {
    for coherence in [Lazy, Update, Home] {
        for program in [
            message_passing_by_barrier(),
            once(2),
            counter(2, 2),
            read_while_written(),
            read_while_written_again(),
            lock_over_barrier(),
            barrier_after_lock(2),
            row_of_zeros(2),
            wandering(2),
            written_alone(2, 0),
            written_alone(2, 1),
            written_alone_in_phases(false),
            broadcast(2, 3),
            read_no_more(),
            read_over_and_over(2, 1, &[false, true, false, false]),
            read_over_and_over_while_written(4),
            switched(2, Home),
            parts_by_rounds(2),
        ] {
            sound(program.under(coherence).quietly(), &[]);
        }
    }
}

#[test]
fn races_are_found_as_ever() {
    for races in [Races::Warn, Races::Fail] {
        for program in [racing_writers(2, 2), written_alone_in_phases(true)] {
            sound(program.quietly().finding(races), &[Sight::Race]);
        }
        for phases in PHASES {
            sound(written_in_some_phases(&phases).finding(races), &[]);
        }
        sound(learnt_by_a_lock(1).logging(1, 2).finding(races), &[]);
    }
}

#[test]
fn waits_that_seem_long_are_no_deadlock() {
    for impatience in [1, 2] {
        let sights = [Sight::Probe, Sight::HereLate];
        sound(only_barriers(3).impatient(impatience), &sights);
        for writes in [false, true] {
            let program = lock_between_barriers(writes).impatient(impatience);
            sound(program, &sights[..1]);
        }
        sound(lock_over_barrier().quietly().impatient(impatience), &[]);
    }
    let program = learnt_by_a_lock(1).impatient(1);
    sound(program, &[Sight::Probe, Sight::Here]);
}

#[test]
fn a_deadlock_at_a_barrier_where_one_says_just_that_it_is_there_is_told() {
    for impatience in 0..=2 {
        for node in 0..2 {
            for program in [
                lock_kept_from_a_later_barrier(node),
                skipped_later_barrier(node),
            ] {
                let program = program.impatient(impatience);
                sound(program, &[Sight::Deadlock, Sight::HereLate]);
            }
        }
        for program in [lock_kept_from_barrier(2), skipped_barrier(2)] {
            let program = program.quietly().impatient(impatience);
            sound(program, &[Sight::Deadlock, Sight::Here]);
        }
    }
}

#[test]
fn who_says_just_that_it_is_there_and_has_more_to_tell_makes_a_stale_read() {
    // Each has a copy of what the other writes then.
    let program = written_in_some_phases(&[[false, false], [true, true]]);
    caught(Bug::HereDespiteNews, program, Fault::StaleRead);
}

#[test]
fn who_is_answered_by_nobody_leaves_the_barrier_early() {
    let fault = Fault::LeftBarrierEarly;
    caught(Bug::AnswerHere, only_barriers(1), fault);
    for phases in PHASES {
        caught(Bug::AnswerHere, written_in_some_phases(&phases), fault);
    }
}
