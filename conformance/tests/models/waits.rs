//! Locks, barriers and the wait-for graph: every run of small programs.

use conformance::model::{Sight, programs::*};

use crate::sound;

#[test]
fn a_lock_that_all_want_has_one_holder_and_each_gets_it() {
    sound(contention(2, 2), &[Sight::Forwarded]);
    sound(contention(3, 2), &[Sight::Forwarded, Sight::Overtaking]);
    sound(contention(4, 1), &[Sight::Forwarded]);
}

#[test]
fn a_lock_is_acquired_again_by_who_held_it_last() {
    sound(acquired_again(), &[Sight::Forwarded]);
}

#[test]
fn a_lock_may_be_held_over_a_barrier() {
    sound(lock_over_barrier(), &[]);
}

#[test]
fn nodes_that_take_two_locks_crosswise_are_told() {
    sound(crosswise(), &[Sight::Deadlock]);
    sound(crosswise_with_bystander(), &[Sight::Deadlock]);
}

#[test]
fn three_nodes_in_a_circle_are_told() {
    sound(philosophers(), &[Sight::Deadlock]);
}

#[test]
fn a_lock_kept_from_a_barrier_is_told() {
    sound(lock_kept_from_barrier(2), &[Sight::Deadlock]);
    sound(lock_kept_from_barrier(3), &[Sight::Deadlock]);
}

#[test]
fn a_barrier_that_a_node_skips_is_told() {
    sound(skipped_barrier(2), &[Sight::Deadlock]);
    sound(skipped_barrier(3), &[Sight::Deadlock]);
}

#[test]
fn a_lock_kept_for_ever_is_told() {
    sound(lock_kept_for_ever(), &[Sight::Deadlock]);
}

#[test]
fn a_wait_for_a_lock_that_seems_long_is_no_deadlock() {
    for impatience in [1, 2] {
        sound(contention(2, 2).impatient(impatience), &[Sight::Probe]);
        sound(contention(3, 1).impatient(impatience), &[Sight::Probe]);
        sound(two_objects().impatient(impatience), &[Sight::Probe]);
        sound(acquired_again().impatient(impatience), &[Sight::Probe]);
        sound(
            message_passing_by_lock().impatient(impatience),
            &[Sight::Probe],
        );
    }
    sound(hand_over_hand().impatient(1), &[Sight::Probe]);
    sound(chain_of_locks().impatient(1), &[Sight::Probe]);
}

#[test]
fn a_wait_at_a_barrier_that_seems_long_is_no_deadlock() {
    for impatience in [1, 2] {
        sound(
            message_passing_by_barrier().impatient(impatience),
            &[Sight::Probe],
        );
        sound(racing_writers(2, 2).impatient(impatience), &[Sight::Probe]);
        sound(once(2).impatient(impatience), &[Sight::Probe]);
    }
    sound(racing_writers(3, 1).impatient(1), &[Sight::Probe]);
    sound(once(3).impatient(1), &[Sight::Probe]);
}

#[test]
fn waits_for_locks_and_at_barriers_that_seem_long_are_no_deadlock() {
    for impatience in [1, 2] {
        sound(barrier_after_lock(2).impatient(impatience), &[Sight::Probe]);
        sound(lock_over_barrier().impatient(impatience), &[Sight::Probe]);
    }
}

#[test]
fn impatience_hides_no_deadlock() {
    for impatience in [1, 2] {
        sound(crosswise().impatient(impatience), &[Sight::Deadlock]);
        sound(skipped_barrier(2).impatient(impatience), &[Sight::Deadlock]);
        sound(
            lock_kept_from_barrier(2).impatient(impatience),
            &[Sight::Deadlock],
        );
        sound(
            lock_kept_for_ever().impatient(impatience),
            &[Sight::Deadlock],
        );
    }
    sound(skipped_barrier(3).impatient(1), &[Sight::Deadlock]);
    sound(lock_kept_from_barrier(3).impatient(1), &[Sight::Deadlock]);
    sound(philosophers().impatient(1), &[Sight::Deadlock]);
    sound(crosswise_with_bystander().impatient(1), &[Sight::Deadlock]);
}
