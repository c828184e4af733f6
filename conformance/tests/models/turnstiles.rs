//! Read-write locks, semaphores and conditions: every run of small programs.

use conformance::Bug;
use conformance::model::{Fault, Sight, programs::*};

use dhole::Coherence::Home;

use crate::{caught, sound};

#[test]
fn readers_see_what_writers_wrote_and_writers_are_alone() {
    sound(readers_and_writer(1), &[Sight::Invalidated]);
    sound(
        readers_and_writer(2),
        &[Sight::Invalidated, Sight::Overtaking],
    );
    sound(writers_and_readers(2), &[Sight::Invalidated]);
    sound(writer_to_reader_to_writer(), &[Sight::Overtaking]);
}

#[test]
fn a_permit_shows_what_was_written_before_its_release() {
    sound(hand_over_by_semaphores(), &[Sight::Invalidated]);
    sound(permits_in_turn(), &[Sight::Overtaking]);
    sound(permits_that_overtake(), &[Sight::Overtaking]);
    sound(two_permits(2), &[]);
    sound(two_permits(3), &[Sight::Overtaking]);
}

#[test]
fn whoever_waits_until_something_is_written_is_woken_and_reads_it() {
    sound(wait_until_written(2, false), &[]);
    sound(wait_until_written(2, true), &[]);
    sound(wait_until_written(3, true), &[Sight::Overtaking]);
}

#[test]
fn whoever_awaits_what_is_written_is_woken_by_its_release_and_reads_it() {
    sound(await_what_is_written(2, false), &[Sight::Invalidated]);
    sound(await_what_is_written(2, true), &[Sight::Invalidated]);
    sound(await_what_is_written(3, true), &[Sight::Overtaking]);
}

#[test]
fn an_objects_lock_excludes_and_wakes_wherever_its_home_is() {
    sound(writers_under_an_objects_lock(2), &[Sight::Invalidated]);
    for home in 0..2 {
        sound(await_under_an_objects_lock(2, home), &[Sight::Invalidated]);
        sound(await_under_an_objects_lock(2, home).under(Home), &[]);
    }
    sound(await_under_an_objects_lock(3, 2), &[Sight::Invalidated]);
}

#[test]
fn waits_that_seem_long_are_no_deadlock() {
    for impatience in [1, 2] {
        sound(readers_and_writer(1).impatient(impatience), &[Sight::Probe]);
        sound(
            hand_over_by_semaphores().impatient(impatience),
            &[Sight::Probe],
        );
        sound(permits_in_turn().impatient(impatience), &[Sight::Probe]);
        sound(
            wait_until_written(2, false).impatient(impatience),
            &[Sight::Probe],
        );
    }
    sound(
        await_what_is_written(2, false).impatient(2),
        &[Sight::Probe],
    );
    sound(writers_and_readers(2).impatient(1), &[Sight::Probe]);
    sound(readers_that_lock().impatient(2), &[Sight::Probe]);
}

#[test]
fn waits_that_never_end_are_told() {
    sound(read_write_locks_crosswise(), &[Sight::Deadlock]);
    sound(permit_that_nobody_gives(2), &[Sight::Deadlock]);
    sound(permit_that_nobody_gives(3), &[Sight::Deadlock]);
    sound(condition_that_nobody_notifies(), &[Sight::Deadlock]);
    sound(
        condition_that_nobody_notifies().impatient(1),
        &[Sight::Deadlock],
    );
    sound(permit_that_nobody_gives(2).impatient(2), &[Sight::Deadlock]);
    sound(lock_kept_from_whoever_wakes(), &[Sight::Deadlock]);
}

#[test]
fn planted_bugs_are_caught() {
    caught(Bug::AdmitReader, readers_and_writer(2), Fault::TwoHolders);
    caught(Bug::CountPermitTwice, permits_in_turn(), Fault::TwoHolders);
    caught(Bug::LoseNotify, wait_until_written(2, false), Fault::Stuck);
    let awaits = |nodes| await_what_is_written(nodes, true);
    caught(Bug::LoseWakes, awaits(2), Fault::Stuck);
    caught(Bug::WakeEarly, awaits(3), Fault::TwoHolders);
    let at_home = |home| await_under_an_objects_lock(2, home);
    caught(Bug::LoseWakes, at_home(1), Fault::Stuck);
    caught(Bug::WaitHolding, at_home(0), Fault::Stuck);
    caught(Bug::SkipSource, hand_over_by_semaphores(), Fault::StaleRead);
    let impatient = hand_over_by_semaphores().impatient(1);
    caught(Bug::ForgetTraffic, impatient, Fault::PhantomDeadlock);
}
