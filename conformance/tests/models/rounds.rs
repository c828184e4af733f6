//! Dissemination barriers: every run of small programs, with and without news.

use conformance::Bug;
use conformance::model::{Fault, Program, Sight, programs::*};
use dhole::Coherence::{Home, Lazy, Update};
use dhole::Races;

use crate::{caught, sound};

/// Neither has news, one, the other, and both, in all orders but two.
const PHASES: [[[bool; 2]; 4]; 4] = [
    [[false, false], [false, true], [true, false], [true, true]],
    [[true, true], [true, false], [false, true], [false, false]],
    [[false, true], [false, false], [true, true], [true, false]],
    [[true, false], [true, true], [false, false], [false, true]],
];

#[test]
fn who_has_no_news_passes_barriers_after_all_others_have_come() {
    for phases in 1..=6 {
        let ahead = [Sight::RoundAhead].repeat(usize::from(phases > 1));
        sound(
            only_barriers(2, phases),
            &[&[Sight::Round][..], &ahead].concat(),
        );
    }
    for phases in 1..=2 {
        sound(only_barriers(3, phases), &[Sight::Round]);
    }
    sound(only_barriers(3, 2), &[Sight::RoundAhead, Sight::Overtaking]);
    sound(only_barriers(3, 2).by_rounds_from(0), &[Sight::Round]);
}

#[test]
#[ignore = "too long for every change; \
            cargo test -p conformance --release --test models rounds:: -- --ignored"]
fn barriers_of_four_nodes_and_several_of_three_are_sound() {
    sound(only_barriers(4, 1), &[Sight::Round]);
    sound(only_barriers(3, 3), &[Sight::RoundAhead]);
    let phases = [[false, true, false], [false; 3], [true, false, false]];
    sound(written_in_some_phases(&phases), &[Sight::RoundOfNews]);
}

#[test]
fn what_either_writes_in_some_phases_is_seen_in_the_next() {
    for coherence in [Lazy, Update, Home] {
        for phases in PHASES {
            let program = written_in_some_phases(&phases).under(coherence);
            sound(program, &[Sight::Round]);
        }
    }
    for phases in PHASES {
        sound(written_in_some_phases(&phases).by_rounds_from(0), &[]);
    }
    let none = [false, false];
    for writer in [[true, false], [false, true]] {
        let phases = [none, writer, none, none];
        let program = written_in_some_phases(&phases);
        sound(
            program.clone(),
            &[Sight::RoundAhead, Sight::RoundOfNews, Sight::Invalidated],
        );
        sound(program.comparing(), &[Sight::RoundAhead]);
    }
}

#[test]
fn what_one_of_three_writes_is_seen_by_all_and_who_has_no_news_hears_that_there_is() {
    for writer in 0..3 {
        let mut writes = [false; 3];
        writes[writer] = true;
        sound(
            written_in_some_phases(&[[false; 3], writes]),
            &[Sight::RoundOfNews, Sight::Invalidated],
        );
    }
    for coherence in [Update, Home] {
        sound(
            written_in_some_phases(&[[true, false, false]]).under(coherence),
            &[Sight::Round],
        );
    }
}

#[test]
fn what_was_learnt_by_a_lock_is_told_at_the_barrier_and_no_more() {
    for coherence in [Lazy, Update, Home] {
        for writer in 0..2 {
            sound(learnt_by_a_lock(writer).under(coherence), &[Sight::Round]);
        }
    }
    for writer in 0..2 {
        let program = learnt_by_a_lock(writer).logging(1, 2);
        sound(program, &[Sight::Round, Sight::Floor]);
    }
}

#[test]
fn what_is_sound_where_barriers_are_central_is_so_with_rounds() {
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
            sound(program.under(coherence).by_rounds(), &[]);
        }
    }
}

#[test]
fn races_are_found_as_ever() {
    for races in [Races::Warn, Races::Fail] {
        for program in [racing_writers(2, 2), written_alone_in_phases(true)] {
            sound(program.by_rounds().finding(races), &[Sight::Race]);
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
        let sights = [Sight::Probe, Sight::RoundAhead];
        sound(only_barriers(2, 3).impatient(impatience), &sights);
        for writes in [false, true] {
            let program = lock_between_barriers(writes).impatient(impatience);
            sound(program, &sights[..1]);
        }
        sound(lock_over_barrier().by_rounds().impatient(impatience), &[]);
    }
    let program = learnt_by_a_lock(1).impatient(1);
    sound(program, &[Sight::Probe, Sight::Round]);
    sound(only_barriers(3, 1).impatient(1), &[Sight::Probe]);
}

/// Each of these, where waits may seem long from none to two times.
fn told(program: Program, impatience: u8) {
    sound(
        program.impatient(impatience),
        &[Sight::Deadlock, Sight::Round],
    );
}

#[test]
fn a_deadlock_at_a_barrier_that_begins_with_rounds_is_told() {
    for impatience in 0..=2 {
        for node in 0..2 {
            told(lock_kept_from_a_later_barrier(2, node), impatience);
            told(skipped_later_barrier(2, node), impatience);
        }
        told(lock_kept_from_barrier(2).by_rounds(), impatience);
        told(skipped_barrier(2).by_rounds(), impatience);
    }
    told(lock_kept_from_barrier(3).by_rounds(), 0);
    told(skipped_barrier(3).by_rounds(), 0);
}

#[test]
fn news_that_a_round_forgets_makes_a_stale_read() {
    // Node 0 has a copy of what node 1 writes then.
    let program = written_in_some_phases(&[[false, false], [false, true]]);
    caught(Bug::ForgetNews, program, Fault::StaleRead);
}

#[test]
fn who_skips_a_round_leaves_the_barrier_early() {
    let fault = Fault::LeftBarrierEarly;
    caught(Bug::SkipRound, only_barriers(4, 1), fault);
}

#[test]
fn an_old_round_that_is_taken_for_one_of_this_barrier_lets_a_node_leave_it_early() {
    let fault = Fault::LeftBarrierEarly;
    caught(Bug::TakeOldRound, only_barriers(2, 2), fault);
    caught(Bug::TakeOldRound, only_barriers(3, 2), fault);
}
