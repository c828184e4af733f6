//! The checks that every platform must pass.
//!
//! Each check is a function that panics if its name is not true. [`suite!`](crate::suite!) makes a
//! test of each for a platform:
//!
//! ```
//! conformance::suite!(threads, conformance::OnThreads);
//! # fn main() {}
//! ```
//!
//! The checks use only shared objects and the results of runs, so they also hold between processes.

mod arrays;
mod borrowed;
mod bulk;
mod calls;
mod clerks;
mod clients;
mod collections;
mod collectives;
mod combine;
mod constructors;
mod counting;
mod dropped;
mod failing;
mod mailboxes;
mod names;
mod objects;
mod put;
mod resident;
mod sections;
mod sharing;
mod started;
mod tasks;
mod waiting;
mod within;

pub use arrays::*;
pub use borrowed::*;
pub use bulk::*;
pub use calls::*;
pub use clerks::*;
pub use clients::*;
pub use collections::*;
pub use collectives::*;
pub use combine::*;
pub use constructors::*;
pub use counting::*;
pub use dropped::*;
pub use failing::*;
pub use mailboxes::*;
pub use names::*;
pub use objects::*;
pub use put::*;
pub use resident::*;
pub use sections::*;
pub use sharing::*;
pub use started::*;
pub use tasks::*;
pub use waiting::*;
pub use within::*;

use dhole::{Result, Worker};
use dhole_node::{Outcome, RunError};

use crate::{Platform, run};

/// Whether whole pages are kept consistent: then nothing is counted by objects, and of racing
/// writers each keeps what it wrote.
fn keeps_pages(on: &dyn Platform) -> bool {
    on.coherence().properties().keeps_pages()
}

/// Whether a protocol that implements the trait of protocols keeps objects consistent: its messages
/// are not counted as fetches, and no races are looked for.
fn has_member(on: &dyn Platform) -> bool {
    on.coherence().properties().keeps_blocks()
}

/// Whether each object and each element has a home, which counts differently: it is asked again
/// after each acquire.
fn has_home(on: &dyn Platform) -> bool {
    on.coherence().properties().has_home && !has_member(on)
}

/// Makes a test of every check, in a module of this name, for a platform.
#[macro_export]
macro_rules! suite {
    ($module:ident, $platform:expr) => {
        mod $module {
            $crate::suite!(@ $platform;
                what_was_written_before_a_barrier_is_read_after_it
                whoever_has_written_before_a_barrier_is_read_after_it
                what_was_written_under_a_lock_is_read_under_it
                a_lock_that_goes_round_loses_nothing
                a_value_made_once_is_the_same_everywhere
                once_makes_everything_before_it_visible
                locks_go_hand_over_hand_along_a_list
                what_one_node_alone_writes_is_read_now_and_then
                what_one_node_alone_writes_is_read_beside_its_writes
                locks_made_by_nodes_are_all_different
                of_racing_writers_one_wins_everywhere
                a_racing_reader_sees_an_old_value_or_a_new_one_and_never_a_mixture
                a_finished_node_serves_the_others
                a_node_that_computes_answers_at_its_next_call
                one_node_alone_needs_no_message
                many_nodes_meet
                each_object_of_a_range_is_written_by_another_node
                each_row_is_written_by_another_node_and_starts_as_zeros
                a_list_made_by_all_nodes_is_walked_by_all
                four_threads_of_a_node_read_what_is_present
                values_of_all_kinds_arrive_whole
                a_large_row_arrives_whole
                several_objects_are_borrowed_at_once
                an_object_borrowed_twice_for_writing_is_an_error
                objects_allocated_meanwhile_are_found
                a_freed_object_is_an_error_on_every_node_that_learns_of_it
                a_barrier_takes_two_messages_for_each_other_node_or_one_a_round
                a_lock_held_last_here_is_free_of_messages
                a_lock_costs_two_messages_at_its_manager_and_three_elsewhere
                a_miss_costs_two_messages
                objects_fetched_together_cost_two_messages_an_owner
                many_objects_are_fetched_by_several_messages
                a_tree_is_fetched_in_as_many_rounds_as_it_has_levels
                what_an_object_owns_comes_with_it
                no_more_comes_along_than_the_limit
                a_copy_that_nobody_overwrites_stays
                only_what_was_written_becomes_invalid
                an_object_that_one_node_alone_writes_costs_nothing
                nodes_write_different_elements_of_one_block_at_once
                a_slice_over_many_blocks_is_one_slice
                records_of_all_kinds_arrive_whole_in_an_array
                of_racing_writers_of_an_element_one_wins_everywhere
                what_is_overwritten_whole_is_not_fetched
                an_array_is_stored_where_it_is_touched
                bad_ranges_are_errors_that_say_which
                an_array_that_is_too_large_is_an_error
                elements_under_locks_beside_others_lose_nothing
                what_is_prefetched_twice_at_once_comes_once
                a_slice_costs_two_messages_a_writer
                only_the_elements_written_are_fetched_again
                elements_that_one_node_alone_writes_cost_nothing
                a_node_that_writes_elements_serves_their_neighbours
                what_is_scattered_is_gathered_as_from_a_plain_vector
                records_are_gathered_and_scattered_whole
                a_gather_takes_two_messages_an_owner_and_a_scatter_none
                bad_indices_are_errors_that_say_which
                what_is_put_is_read_after_a_barrier
                what_is_put_is_not_fetched
                bad_puts_are_errors_that_say_which
                updates_of_all_nodes_are_read_after_a_barrier
                updates_under_a_lock_are_read_under_it
                updates_before_a_collective_are_read_after_it
                many_updates_take_several_messages
                updates_that_cannot_be_are_errors_that_say_why
                a_deadlock_of_locks_is_told_with_its_places
                a_deadlock_at_a_barrier_is_told_with_its_places
                a_skipped_barrier_is_told
                a_panic_on_one_node_ends_the_run_with_its_words
                an_error_on_one_node_ends_the_run_with_its_words
                a_failure_reaches_nodes_that_wait_for_anything
                a_lock_acquired_twice_is_an_error_with_both_places
                a_lock_dropped_unreleased_is_released_and_told
                a_lock_forgotten_is_released_and_told
                a_value_made_once_within_another_is_an_error
                a_reference_of_another_cluster_is_an_error
                readers_never_see_half_of_what_a_writer_does
                readers_hold_a_lock_at_once
                semaphores_hand_over_what_was_written
                conditions_wake_those_whose_turn_it_is
                conditions_of_read_write_locks_wake_those_whose_turn_it_is
                what_is_written_under_the_locks_of_objects_is_never_lost
                the_condition_of_an_objects_lock_wakes_those_whose_turn_it_is
                the_lock_of_an_object_is_kept_at_its_home
                the_lock_of_a_freed_object_is_still_a_lock
                a_deadlock_of_the_locks_of_objects_names_the_objects
                misused_locks_of_objects_are_errors_with_their_places
                sections_lose_no_increment
                a_section_waits_until_its_condition_is_true
                a_section_that_meets_an_object_of_another_home_runs_at_its_caller
                what_was_written_before_a_section_is_read_after_the_next
                a_section_goes_on_with_one_that_waits
                sections_write_rows_and_what_is_owned
                who_keeps_a_copy_sees_what_sections_write
                a_section_that_fails_has_changed_nothing
                sections_that_wait_for_ever_are_a_deadlock_with_their_places
                sections_under_held_locks_are_errors_with_their_places
                a_section_takes_two_messages
                a_wait_under_a_read_write_lock_takes_two_messages
                a_deadlock_through_a_condition_of_a_read_write_lock_is_told
                locks_of_all_kinds_live_in_objects
                gates_cost_what_they_should
                a_stall_is_told_with_every_wait
                a_deadlock_of_read_write_locks_is_told_with_its_places
                misused_locks_are_errors_with_their_places
                a_read_write_lock_dropped_unreleased_is_released_and_told
                a_process_sees_its_parents_writes_and_its_parent_its_own
                a_reference_in_an_object_brings_what_it_points_to
                processes_of_a_node_take_turns_where_they_wait
                processes_go_on_while_programs_meet
                processes_start_processes
                a_panic_in_a_process_is_an_error_of_its_parent
                calls_take_effect_once_and_tell_all_wherever_an_object_is
                calls_that_go_together_have_each_its_own_result
                borrowed_arguments_reach_the_object_and_come_back
                a_failed_call_leaves_borrowed_arguments_as_they_were
                a_call_with_borrowed_arguments_takes_two_messages
                a_clone_shares_the_prototype_and_not_the_user_half
                a_clone_of_a_clone_on_a_third_node_does_too
                objects_are_constructed_where_they_are_kept
                a_constructor_gives_its_caller_a_user_half
                what_is_bound_is_found_on_every_node
                of_nodes_that_bind_a_name_at_once_one_does
                who_waits_for_a_name_goes_on_when_it_is_bound
                a_value_is_made_once_for_a_name
                a_name_that_no_node_binds_is_a_deadlock_that_names_it
                names_that_cannot_be_are_errors_that_say_why
                a_name_is_bound_by_one_ordered_write_and_looked_up_without_a_message
                messages_of_a_node_arrive_in_the_order_of_sending
                what_was_written_before_a_message_is_read_after_it
                a_message_takes_two_messages_and_a_receive_none
                a_full_mailbox_holds_up_its_sender_and_no_other
                who_has_filled_a_mailbox_can_still_receive
                processes_of_a_node_share_its_mailbox
                reading_calls_that_take_a_worker_are_in_progress_together
                a_writing_call_that_takes_a_worker_is_in_progress_alone
                a_call_that_takes_a_worker_waits_for_its_guard
                what_an_operation_with_a_worker_writes_its_caller_reads
                an_operation_with_a_worker_that_fails_says_so_to_its_caller
                a_call_that_takes_a_worker_is_refused_under_a_lock_of_the_own_node
                an_object_that_takes_a_worker_stays_on_its_node
                a_resident_object_serves_all_nodes
                a_resident_object_stays_on_its_node
                a_call_that_would_wait_for_its_own_caller_is_refused
                services_that_wait_for_each_other_are_an_error
                a_sequential_clerk_admits_one_call_at_a_time
                a_clerk_admits_as_many_readers_as_it_says
                a_clerk_that_cannot_be_is_refused_and_an_object_leaves_its_clerk
                a_call_whose_guard_stays_false_is_withdrawn_when_its_time_is_over
                a_call_after_a_limit_waits_as_long_as_it_takes
                a_call_that_waits_for_a_monitor_is_withdrawn_when_its_time_is_over
                a_call_that_takes_a_worker_takes_two_messages
                a_receive_that_no_node_satisfies_is_a_deadlock_that_names_it
                messages_that_no_node_receives_are_a_warning_with_their_line
                messages_that_cannot_be_are_errors_that_say_why
                who_asks_until_it_hears_that_something_was_written_sees_it
                what_was_started_is_over_where_all_nodes_meet
                what_was_started_is_over_where_something_is_released
                what_was_started_is_over_when_a_later_call_is_made
                what_was_started_is_over_in_processes_and_their_parents
                what_was_started_and_waits_for_its_guard_holds_nobody_up
                what_was_started_and_never_may_be_executed_is_a_deadlock
                a_broadcast_gives_node_0s_value_to_every_node
                values_are_reduced_in_the_order_of_their_nodes
                gathered_values_come_in_the_order_of_their_nodes
                values_up_to_each_node_are_combined_in_their_order
                scattered_values_come_from_any_node_to_each_its_own
                what_each_node_has_for_each_other_comes_there
                what_was_written_before_a_collective_is_read_after_it
                references_in_values_are_known_where_they_arrive
                collectives_take_one_message_for_each_other_node_and_way
                different_collectives_are_an_error_that_names_both_calls
                a_deadlock_of_a_collective_and_a_lock_is_told_with_its_places
                a_collective_that_cannot_be_is_an_error_that_says_why
                a_collective_that_does_not_come_to_its_end_ends_the_run
                processes_go_on_while_programs_are_in_collectives
                every_task_of_a_tree_is_run_once
                tasks_are_run_in_the_order_of_their_priorities
                tasks_are_joined_again_and_again
                what_was_written_before_a_task_was_made_is_read_by_it
                what_a_long_task_makes_is_run_meanwhile_by_another_node
                processes_that_tasks_start_make_tasks_too
                a_task_that_fails_ends_the_run_with_its_words
                elements_are_changed_and_combined_by_parts
                a_task_that_waits_for_all_nodes_is_an_error
                tasks_that_cannot_be_are_errors_that_say_why
                each_number_is_called_with_once_whoever_gets_it
                a_graph_has_the_arcs_that_all_nodes_gave
                neighbours_of_many_vertices_come_in_two_rounds
                entries_are_found_whichever_node_put_them_in
                a_frozen_map_is_read_as_the_map_was
                what_was_written_before_an_entry_is_read_by_who_finds_it
                calls_of_many_keys_take_two_messages_an_owner
                processes_use_a_map_of_their_programs
                a_vector_grows_by_what_all_nodes_add
                containers_that_cannot_be_are_errors_that_say_why
            );
        }
    };
    (@ $platform:expr; $($check:ident)*) => {
        $(
            #[test]
            fn $check() {
                $crate::suite::$check(&$platform);
            }
        )*
    };
}

/// Runs a program that must succeed.
#[track_caller]
fn succeed<R: Send>(
    on: &dyn Platform,
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Outcome<R> {
    match run(on, nodes, 1, program) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{}: {error}", on.name()),
    }
}

/// Runs a program that must fail; its error.
#[track_caller]
fn fail(
    on: &dyn Platform,
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync,
) -> RunError {
    match run(on, nodes, 1, program) {
        Ok(_) => panic!("{}: a run that should fail does not", on.name()),
        Err(error) => error,
    }
}

/// Fails unless the error says all these words.
#[track_caller]
fn assert_says(error: &RunError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in \"{text}\"");
    }
}
