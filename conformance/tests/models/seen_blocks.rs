//! One-sided reads of elements: a node reads blocks of an array in another's memory, in parts that
//! fall between any two steps of the owner.

use dhole_model::Coherence;

use conformance::Bug;
use conformance::model::{Cluster, Fault, Program, Sight, explore, programs::*};

use crate::{caught, sound};

#[test]
fn a_block_that_was_read_between_two_writes_is_announced() {
    sound(block_read_between_writes(), &[Sight::ReadThere]);
}

/// An interval that makes elements exclusive is announced, and a block with exclusive elements is
/// not published. So marks keep blocks published, and no read depends on them.
#[test]
fn a_block_that_is_read_without_a_mark_is_announced_as_well() {
    for program in [
        block_read_between_writes(),
        block_into_which_elements_come(),
    ] {
        let explored = explore(Cluster::new(program).with(Bug::SkipMark));
        explored.assert_sound();
    }
}

#[test]
fn a_block_is_read_whole_or_not_at_all() {
    let sights = [Sight::ReadThere, Sight::ChangedThere];
    sound(blocks_read_while_written(1), &sights);
    sound(blocks_read_while_written(2), &sights);
    for bug in [Bug::WritePublished, Bug::SkipSecondLook] {
        caught(bug, blocks_read_while_written(1), Fault::TornRead);
    }
}

#[test]
fn a_block_of_which_others_read_a_part_is_exclusive_in_none() {
    let sights = [Sight::ReadThere, Sight::Exclusive];
    sound(block_of_which_a_part_was_exclusive(), &sights);
}

#[test]
fn of_a_block_of_two_writers_each_element_is_read_where_it_was_written() {
    for rounds in [1, 2] {
        sound(block_of_two_writers(rounds), &[Sight::ReadThere]);
    }
}

#[test]
fn elements_are_taken_for_no_newer_than_they_must_be() {
    sound(block_newer_than_its_elements(), &[Sight::ReadThere]);
    let program = block_newer_than_its_elements();
    caught(Bug::HoldNewest, program, Fault::StaleRead);
}

#[test]
fn a_block_into_which_elements_come_is_read_before_and_after() {
    sound(block_into_which_elements_come(), &[Sight::ReadThere]);
}

#[test]
fn an_array_that_is_freed_is_not_read() {
    sound(
        array_freed_while_read_there(),
        &[Sight::ReadThere, Sight::Gone],
    );
}

#[test]
fn programs_of_old_are_as_sound_where_nodes_see_each_others_arrays() {
    let programs: [Program; 10] = [
        parts_of_one_array(1),
        parts_that_overlap(1),
        parts_that_overlap(2),
        parts_under_a_lock(),
        parts_written_alone(),
        parts_beside_an_object(),
        parts_of_two_blocks(2),
        parts_of_two_blocks(3),
        parts_read_ahead(2),
        parts_read_ahead(3),
    ];
    for program in programs {
        sound(program.seeing(), &[Sight::ReadThere]);
    }
    for to in [Coherence::Update, Coherence::Home] {
        sound(parts_change_protocol(to).seeing(), &[]);
    }
    for coherence in [Coherence::Update, Coherence::Home] {
        sound(parts_under_a_lock().under(coherence).seeing(), &[]);
    }
}
