//! Arrays under the lazy protocol, element by element: every run of small programs.

use conformance::model::{Sight, programs::*};

use crate::sound;

#[test]
fn nodes_write_different_elements_of_one_array_at_once() {
    sound(parts_of_one_array(1), &[]);
}

#[test]
fn of_racing_writers_of_an_element_one_wins_everywhere() {
    sound(parts_that_overlap(1), &[]);
    sound(
        parts_that_overlap(2),
        &[Sight::Deferred, Sight::Invalidated],
    );
}

#[test]
fn elements_written_under_a_lock_are_seen_under_it() {
    sound(
        parts_under_a_lock(),
        &[Sight::Invalidated, Sight::Exclusive],
    );
}

#[test]
fn elements_that_one_node_writes_again_are_found_by_others() {
    sound(parts_written_alone(), &[Sight::Exclusive, Sight::Deferred]);
}

#[test]
fn nodes_write_different_elements_round_after_round() {
    sound(
        parts_of_one_array(2),
        &[Sight::Deferred, Sight::Invalidated],
    );
}

#[test]
fn elements_that_are_read_ahead_are_those_of_their_version() {
    sound(
        parts_read_ahead(2),
        &[Sight::AskedBeside, Sight::Invalidated],
    );
    sound(parts_read_ahead(3), &[Sight::AskedBeside]);
}
