//! Interval records that are dropped or compacted between barriers: every run of small programs
//! whose nodes keep short logs.

use conformance::Bug;
use conformance::model::{Fault, Sight, programs::*};

use crate::{caught, sound};

#[test]
fn what_is_below_the_floor_is_never_missed() {
    sound(counter(2, 2).logging(1, 1000), &[Sight::Floor]);
    sound(counter(3, 2).logging(1, 1000), &[Sight::Floor]);
    sound(chain_of_locks().logging(1, 1000), &[]);
    sound(message_passing_by_lock().logging(1, 1000), &[]);
}

#[test]
fn what_a_later_write_stands_for_is_never_missed() {
    sound(counter(2, 2).logging(1000, 2), &[Sight::Compacted]);
    sound(counter(3, 1).logging(1000, 2), &[]);
    sound(
        written_twice_while_away().logging(1000, 2),
        &[Sight::Compacted],
    );
    sound(chain_of_locks().logging(1000, 2), &[]);
}

#[test]
fn dropping_and_compacting_go_together() {
    sound(
        written_twice_while_away().logging(1, 2),
        &[Sight::Compacted],
    );
    sound(counter(2, 3).logging(1, 2), &[Sight::Floor]);
}

#[test]
fn a_floor_that_is_one_too_high_is_caught() {
    let program = counter(3, 2).logging(1, 1000);
    caught(Bug::FloorTooHigh, program, Fault::Refused);
}

#[test]
fn an_interval_told_against_an_earlier_one_is_restored_whole() {
    sound(two_objects_by_turns(), &[Sight::Reduced]);
    sound(written_twice_after_another(), &[Sight::Reduced]);
    sound(counter(2, 2).reducing(1), &[Sight::Reduced]);
    sound(counter(3, 2).reducing(2), &[Sight::Reduced]);
    sound(written_twice_while_away().reducing(2), &[]);
    sound(
        counter(2, 3).reducing(1).logging(1000, 2),
        &[Sight::Reduced, Sight::Compacted],
    );
    sound(
        counter(2, 2).reducing(1).logging(1, 1000),
        &[Sight::Reduced, Sight::Floor],
    );
}
