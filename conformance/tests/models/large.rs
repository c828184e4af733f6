//! Explorations of up to millions of states, two and a half minutes in all, in release:
//! `cargo test -p conformance --release --test models large:: -- --ignored --nocapture`

use conformance::model::programs::*;

use crate::sound;

#[test]
#[ignore = "too long for every change: 2.3 million states, 17 s in release; \
            cargo test -p conformance --release --test models large:: -- --ignored"]
fn four_nodes_write_under_a_lock_and_meet() {
    sound(barrier_after_lock(4), &[]);
}

#[test]
#[ignore = "too long for every change: 600 thousand states, 5 s in release; \
            cargo test -p conformance --release --test models large:: -- --ignored"]
fn three_waits_that_seem_long_are_no_deadlock_for_two_nodes() {
    for program in [
        message_passing_by_lock(),
        message_passing_by_barrier(),
        contention(2, 2),
        two_objects(),
        lock_over_barrier(),
        barrier_after_lock(2),
        acquired_again(),
        counter(2, 1),
    ] {
        sound(program.impatient(3), &[]);
    }
}

#[test]
#[ignore = "too long for every change: 2.6 million states, 20 s in release; \
            cargo test -p conformance --release --test models large:: -- --ignored"]
fn a_wait_that_seems_long_is_no_deadlock_for_three_nodes() {
    for program in [
        counter(3, 1),
        contention(3, 2),
        barrier_after_lock(3),
        wandering(3),
    ] {
        sound(program.impatient(1), &[]);
    }
}

#[test]
#[ignore = "too long for every change: 6.3 million states, 85 s in release; \
            cargo test -p conformance --release --test models large:: -- --ignored"]
fn two_waits_that_seem_long_are_no_deadlock_for_three_nodes() {
    for program in [
        contention(3, 1),
        counter(3, 1),
        chain_of_locks(),
        racing_writers(3, 1),
        once(3),
    ] {
        sound(program.impatient(2), &[]);
    }
}

#[test]
#[ignore = "too long for every change: 2.4 million states, 19 s in release; \
            cargo test -p conformance --release --test models large:: -- --ignored"]
fn two_waits_that_seem_long_hide_no_deadlock_of_three_nodes() {
    for program in [
        philosophers(),
        crosswise_with_bystander(),
        lock_kept_from_barrier(3),
        skipped_barrier(3),
    ] {
        sound(program.impatient(2), &[]);
    }
}
