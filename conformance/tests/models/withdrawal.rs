//! Exclusive objects that are withdrawn from a worker that computes and has not written them.

use conformance::Bug;
use conformance::model::{Fault, Program, Sight, programs::*};
use dhole_model::Coherence::{Lazy, Update};
use dhole_protocol::Races;

use crate::{caught, sound};

/// Programs in which one node alone writes objects, until another one asks for them.
fn written_alone_in_many_ways() -> [Program; 7] {
    [
        written_alone(2, 0),
        written_alone(2, 1),
        written_alone(3, 0),
        written_alone_in_phases(false),
        written_one_after_the_other(),
        owned_and_exclusive(1),
        followed_and_exclusive(1),
    ]
}

#[test]
fn what_is_exclusive_and_not_written_is_sent_while_its_worker_computes() {
    let sights = [Sight::Exclusive, Sight::Withdrawn];
    for program in written_alone_in_many_ways() {
        for coherence in [Lazy, Update] {
            sound(program.clone().withdrawing().under(coherence), &sights);
        }
        sound(program.withdrawing().finding(Races::Warn), &[]);
    }
}

#[test]
fn what_races_or_wanders_is_as_sound_where_objects_are_withdrawn() {
    for program in [
        written_alone_in_phases(true),
        racing_writers(2, 2),
        racing_writers_and_readers(2),
        wandering(3),
        counter(2, 2),
        overwriting_what_is_written_alone(),
        written_alone(2, 1).aggregating(),
    ] {
        sound(program.withdrawing(), &[]);
    }
}

#[test]
fn what_is_withdrawn_is_read_one_sided_from_then_on() {
    for coherence in [Lazy, Update] {
        for program in [
            read_between_writes_alone().seeing_clean(1),
            read_beside_what_was_exclusive(),
            owned_and_exclusive(1).seeing_clean(1),
        ] {
            sound(program.withdrawing().under(coherence), &[Sight::ReadThere]);
        }
    }
}

#[test]
fn what_its_worker_has_written_is_not_withdrawn() {
    let program = written_alone_in_phases(true).withdrawing();
    caught(Bug::WithdrawWritten, program, Fault::Presence);
}

#[test]
fn what_is_withdrawn_is_not_exclusive() {
    let program = written_alone(2, 0).withdrawing();
    caught(Bug::HideWithdrawn, program, Fault::Heap);
}
