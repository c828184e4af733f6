//! Objects under the lazy protocol: every run of small programs.

use dhole_model::Coherence;
use dhole_protocol::Races;

use conformance::Bug;
use conformance::model::{Fault, Program, Sight, programs::*};

use crate::{caught, sound};

#[test]
fn data_written_before_a_release_is_seen_after_the_acquire() {
    sound(
        message_passing_by_lock(),
        &[Sight::Forwarded, Sight::Overtaking],
    );
}

#[test]
fn data_written_before_a_barrier_is_seen_after_it() {
    sound(message_passing_by_barrier(), &[Sight::Invalidated]);
}

#[test]
fn data_written_before_once_is_seen_after_it() {
    sound(once(2), &[]);
    sound(once(3), &[]);
    sound(once(4), &[]);
}

#[test]
fn happens_before_passes_through_a_node_in_between() {
    sound(chain_of_locks(), &[Sight::Forwarded, Sight::Invalidated]);
}

#[test]
fn two_nodes_write_two_objects_and_read_each_others() {
    sound(two_objects(), &[Sight::Invalidated]);
}

#[test]
fn of_racing_writers_one_wins_everywhere() {
    sound(racing_writers(2, 2), &[Sight::Invalidated, Sight::Deferred]);
    sound(racing_writers(3, 2), &[Sight::Invalidated, Sight::Deferred]);
    sound(racing_writers(4, 1), &[Sight::Invalidated, Sight::Deferred]);
}

#[test]
fn racing_readers_see_an_old_value_or_a_new_one() {
    sound(racing_writers_and_readers(2), &[Sight::Invalidated]);
    sound(racing_writers_and_readers(3), &[Sight::Invalidated]);
}

#[test]
fn a_counter_under_a_lock_loses_nothing() {
    sound(counter(2, 2), &[Sight::Invalidated]);
    sound(
        counter(3, 2),
        &[Sight::Invalidated, Sight::Forwarded, Sight::Overtaking],
    );
}

#[test]
fn a_request_for_an_object_being_written_waits_for_the_next_call() {
    sound(read_while_written(), &[Sight::Deferred]);
}

#[test]
fn a_request_for_an_object_being_written_is_answered_from_its_pre_image() {
    sound(
        read_while_written_again(),
        &[Sight::PreImageReply, Sight::Deferred],
    );
    sound(
        two_read_while_written(),
        &[Sight::PreImageReply, Sight::Deferred],
    );
}

#[test]
fn an_object_written_under_locks_is_seen_after_a_barrier() {
    sound(barrier_after_lock(2), &[]);
    sound(barrier_after_lock(3), &[Sight::Forwarded]);
}

#[test]
fn objects_on_a_list_are_written_hand_over_hand() {
    sound(hand_over_hand(), &[Sight::Invalidated]);
}

#[test]
fn places_of_a_row_start_as_zeros_everywhere() {
    sound(row_of_zeros(2), &[Sight::Invalidated]);
    sound(row_of_zeros(3), &[Sight::Invalidated]);
}

#[test]
fn an_object_wanders_from_writer_to_writer() {
    sound(wandering(2), &[Sight::Invalidated]);
    sound(wandering(3), &[Sight::Invalidated]);
}

#[test]
fn an_object_allocated_meanwhile_can_be_read_by_who_knows_of_it() {
    sound(allocated_meanwhile(), &[]);
}

#[test]
fn an_object_that_one_node_alone_writes_is_seen_by_who_asks_for_it() {
    sound(written_alone(2, 0), &[Sight::Exclusive, Sight::Deferred]);
    sound(written_alone(2, 1), &[Sight::Exclusive, Sight::Deferred]);
    sound(written_alone(3, 0), &[Sight::Exclusive, Sight::Deferred]);
    sound(written_alone(3, 2), &[Sight::Exclusive, Sight::Deferred]);
    sound(written_alone_in_phases(false), &[Sight::Exclusive]);
    // Where races are looked for it is announced once more.
    let looking = written_alone(2, 0).finding(Races::Warn);
    sound(looking, &[Sight::Exclusive, Sight::Deferred]);
    let looking = written_alone_in_phases(false).finding(Races::Warn);
    sound(looking, &[Sight::Exclusive]);
}

/// The third of them is not written while it is asked for, so a request that waits is for what
/// became writable with the others.
#[test]
fn an_object_that_becomes_writable_with_others_is_seen_by_who_asks_for_it() {
    let sights = [Sight::Exclusive, Sight::Deferred, Sight::Invalidated];
    sound(written_one_after_the_other(), &sights);
}

#[test]
fn an_object_that_one_node_alone_writes_can_be_raced_for() {
    sound(
        written_alone_in_phases(true),
        &[Sight::Exclusive, Sight::Deferred],
    );
}

#[test]
fn objects_of_several_nodes_are_fetched_in_one_round() {
    sound(fetched_together(2, 2), &[Sight::Invalidated]);
    sound(fetched_together(3, 1), &[]);
}

#[test]
fn what_lies_on_one_page_is_fetched_together() {
    sound(fetched_with_its_page(2), &[Sight::AskedBeside]);
    sound(
        fetched_with_its_page(3),
        &[Sight::AskedBeside, Sight::LeftOut],
    );
    sound(counters_on_one_page(), &[Sight::AskedBeside]);
    sound(written_twice_while_away().aggregating(), &[]);
    sound(racing_writers(3, 2).aggregating(), &[Sight::Deferred]);
    sound(written_alone(2, 1).aggregating(), &[Sight::Exclusive]);
    sound(freed_under_a_lock().aggregating(), &[]);
}

#[test]
fn objects_that_are_read_ahead_are_those_of_their_version() {
    let sights = [Sight::AskedBeside, Sight::Invalidated, Sight::LeftOut];
    sound(objects_read_ahead(2, false), &sights[..2]);
    sound(objects_read_ahead(2, true), &[Sight::AskedBeside]);
    let aggregating = objects_read_ahead(2, false).aggregating();
    sound(aggregating, &[Sight::AskedBeside]);
    let expecting = objects_read_ahead(2, false).expecting();
    sound(expecting.young(), &[Sight::AskedBeside]);
    caught(
        Bug::KeepAhead,
        objects_read_ahead(2, false),
        Fault::StaleRead,
    );
}

/// Programs that write objects under locks, between barriers, alone on a page and beside others.
fn written_in_many_ways() -> [Program; 8] {
    [
        message_passing_by_lock(),
        message_passing_by_barrier(),
        two_objects(),
        chain_of_locks(),
        counters_on_one_page(),
        written_twice_while_away().aggregating(),
        counter(3, 1),
        freed_under_a_lock(),
    ]
}

#[test]
fn what_was_written_on_a_page_is_found_by_its_twin() {
    for program in written_in_many_ways() {
        sound(program.comparing(), &[]);
    }
    sound(read_while_written().comparing(), &[Sight::PreImageReply]);
    sound(racing_writers(2, 2).comparing(), &[Sight::PreImageReply]);
    sound(fetched_with_its_page(2).comparing(), &[Sight::AskedBeside]);
}

#[test]
fn what_is_expected_to_be_written_is_announced_once_it_was() {
    let more = [written_while_expected(), written_one_after_the_other()];
    for program in written_in_many_ways().into_iter().chain(more) {
        for coherence in [Coherence::Lazy, Coherence::Update, Coherence::Home] {
            sound(program.clone().under(coherence).expecting(), &[]);
        }
    }
    sound(read_while_expected().expecting(), &[Sight::PreImageReply]);
    sound(racing_writers(2, 2).expecting(), &[Sight::Invalidated]);
}

#[test]
fn no_race_is_imagined_of_what_was_expected_to_be_written() {
    for races in [Races::Warn, Races::Fail] {
        sound(read_while_expected().expecting().finding(races), &[]);
        sound(written_while_expected().expecting().finding(races), &[]);
        sound(racing_writers(2, 2).expecting().finding(races), &[]);
    }
}

#[test]
fn what_travels_with_its_owner_is_as_new_as_what_is_fetched() {
    sound(
        owned_and_written_by_another(),
        &[Sight::Forwarded, Sight::Invalidated],
    );
    sound(owned_and_exclusive(1), &[Sight::Exclusive, Sight::Deferred]);
    sound(owned_and_racing(), &[Sight::Invalidated]);
    for coherence in [Coherence::Update, Coherence::Home] {
        sound(owned_and_written_by_another().under(coherence), &[]);
    }
}

#[test]
fn what_is_followed_is_as_new_as_what_is_fetched() {
    sound(
        followed_and_written_by_another(),
        &[Sight::Forwarded, Sight::Invalidated],
    );
    sound(
        followed_and_exclusive(1),
        &[Sight::Exclusive, Sight::Deferred],
    );
    sound(followed_and_racing(), &[Sight::Invalidated]);
    sound(followed_and_racing().expecting(), &[]);
    for coherence in [Coherence::Update, Coherence::Home] {
        sound(followed_and_written_by_another().under(coherence), &[]);
        sound(followed_and_exclusive(1).under(coherence), &[]);
    }
}
