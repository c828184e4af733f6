//! Young objects: their node writes them in the interval in which it allocated them, and nobody is
//! told.

use conformance::Bug;
use conformance::model::{Fault, Program, Sight, programs::*};
use dhole_model::Coherence::{Lazy, Update};

use crate::{caught, sound};

fn programs() -> [Program; 8] {
    [
        written_alone(2, 0),
        written_alone(2, 1),
        counter(2, 2),
        wandering(3),
        read_while_written(),
        written_one_after_the_other(),
        owned_and_exclusive(1),
        followed_and_exclusive(1),
    ]
    .map(Program::young)
}

#[test]
fn what_is_written_of_young_objects_is_seen_by_others() {
    for program in programs() {
        for coherence in [Lazy, Update] {
            sound(program.clone().under(coherence), &[]);
            sound(program.clone().withdrawing().under(coherence), &[]);
        }
    }
}

#[test]
fn young_objects_race_as_others() {
    for program in [
        racing_writers(2, 2),
        racing_writers_and_readers(2),
        written_alone_in_phases(true),
    ] {
        sound(program.young(), &[]);
    }
}

#[test]
fn what_was_young_is_read_one_sided() {
    for coherence in [Lazy, Update] {
        for program in [
            read_between_writes_alone().seeing_clean(1),
            owned_and_exclusive(1).seeing_clean(1),
        ] {
            sound(program.young().under(coherence), &[Sight::ReadThere]);
        }
    }
}

#[test]
fn a_young_object_that_is_asked_for_waits_for_its_worker() {
    sound(counter(2, 2).young(), &[Sight::Deferred]);
    let early = written_alone(2, 0).young();
    caught(Bug::AnswerAtOnce, early, Fault::Presence);
}

#[test]
fn a_young_object_that_stays_writable_makes_a_stale_read() {
    let program = read_while_written().young();
    caught(Bug::SkipMakeClean, program, Fault::StaleRead);
}
