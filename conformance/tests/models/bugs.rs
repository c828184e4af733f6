//! The checker catches each planted bug, by the property that is there for it. A checker that finds
//! nothing proves nothing unless it would find something.

use conformance::Bug;
use conformance::model::{Fault, programs::*};
use dhole::Races;

use crate::caught;

#[test]
fn a_lost_interval_is_refused() {
    caught(Bug::LoseInterval, chain_of_locks(), Fault::Refused);
    caught(
        Bug::LoseInterval,
        message_passing_by_barrier(),
        Fault::Refused,
    );
}

#[test]
fn a_hidden_interval_makes_a_stale_read() {
    caught(Bug::HideInterval, chain_of_locks(), Fault::StaleRead);
    caught(Bug::HideInterval, once(2), Fault::StaleRead);
}

#[test]
fn a_copy_that_stays_readable_makes_a_stale_read() {
    caught(
        Bug::SkipInvalidate,
        message_passing_by_barrier(),
        Fault::StaleRead,
    );
}

#[test]
fn a_copy_that_stays_readable_leaves_a_race_undecided() {
    caught(
        Bug::SkipInvalidate,
        message_passing_by_lock(),
        Fault::Undecided,
    );
}

#[test]
fn an_object_that_stays_writable_is_touched_under_its_writer() {
    caught(
        Bug::SkipMakeClean,
        message_passing_by_lock(),
        Fault::Presence,
    );
}

#[test]
fn a_stale_reply_makes_a_stale_read() {
    caught(Bug::StaleReply, two_objects(), Fault::StaleRead);
}

#[test]
fn a_skipped_pre_image_touches_what_is_being_written() {
    caught(
        Bug::SkipPreImage,
        read_while_written_again(),
        Fault::Presence,
    );
}

#[test]
fn an_answer_given_too_early_touches_what_is_being_written() {
    caught(Bug::AnswerAtOnce, read_while_written(), Fault::Presence);
}

#[test]
fn a_request_that_is_never_served_leaves_its_asker_waiting() {
    caught(Bug::NeverServe, read_while_written(), Fault::Stuck);
}

#[test]
fn a_reply_of_another_than_the_last_writer_is_refused() {
    caught(Bug::ForgetLastWriter, wandering(3), Fault::Refused);
}

#[test]
fn a_lock_granted_twice_has_two_holders() {
    caught(Bug::GrantTwice, contention(3, 1), Fault::TwoHolders);
}

#[test]
fn a_lost_forward_leaves_its_requester_waiting() {
    caught(Bug::LoseForward, contention(2, 2), Fault::Stuck);
}

#[test]
fn a_race_that_is_kept_is_missed() {
    for program in [racing_writers(2, 1), parts_that_overlap(1)] {
        caught(
            Bug::KeepRace,
            program.finding(Races::Fail),
            Fault::UntoldRace,
        );
    }
}

#[test]
fn intervals_that_seem_older_than_they_are_make_a_phantom_race() {
    let program = counter(2, 2).finding(Races::Fail);
    caught(Bug::BackdateIntervals, program, Fault::PhantomRace);
}

#[test]
fn a_freeing_that_nobody_hears_of_makes_a_stale_read() {
    caught(Bug::HideFreed, freed_before_a_barrier(2), Fault::StaleRead);
}

#[test]
fn a_lost_answer_leaves_the_finder_of_a_race_waiting() {
    let program = racing_writers(2, 1).finding(Races::Warn);
    caught(Bug::LoseWrittenAt, program, Fault::Stuck);
}

#[test]
fn a_lost_reply_leaves_its_asker_waiting() {
    caught(Bug::LoseReply, once(2), Fault::Stuck);
}

#[test]
fn a_reply_that_lacks_an_object_is_refused() {
    caught(Bug::LackObject, fetched_together(3, 1), Fault::Refused);
}

#[test]
fn a_write_that_a_comparison_overlooks_makes_a_stale_read() {
    let program = || message_passing_by_barrier().comparing();
    caught(Bug::OverlookWrite, program(), Fault::StaleRead);
}

#[test]
fn an_expected_write_that_is_not_announced_makes_a_stale_read() {
    let program = read_while_expected().expecting();
    caught(Bug::OverlookWrite, program, Fault::StaleRead);
}

#[test]
fn an_expected_write_that_is_announced_and_was_not_made_is_a_race_that_never_was() {
    let program = || written_while_expected().expecting();
    caught(Bug::AnnounceExpected, program(), Fault::StaleRead);
    let program = program().finding(Races::Fail);
    caught(Bug::AnnounceExpected, program, Fault::PhantomRace);
}

#[test]
fn an_interval_told_against_one_that_is_not_kept_is_refused() {
    caught(Bug::OldBase, counter(2, 2).reducing(1), Fault::Refused);
}

#[test]
fn an_interval_told_against_the_wrong_one_makes_a_stale_read() {
    let program = written_twice_after_another();
    caught(Bug::WrongBase, program, Fault::StaleRead);
}

#[test]
fn a_missed_object_that_is_taken_for_one_beside_is_missed_in_the_reply() {
    let program = || read_while_written().aggregating();
    caught(Bug::MarkAllBeside, program(), Fault::Refused);
}

#[test]
fn missed_elements_that_are_taken_for_some_beside_are_missed_in_the_reply() {
    caught(Bug::MarkAllBeside, parts_read_ahead(2), Fault::Refused);
}

#[test]
fn a_stale_reply_of_a_whole_page_makes_a_stale_read() {
    caught(Bug::StaleReply, fetched_with_its_page(2), Fault::StaleRead);
}

#[test]
fn a_notice_that_forgets_its_range_makes_a_stale_read() {
    caught(Bug::ForgetRange, parts_under_a_lock(), Fault::StaleRead);
}

#[test]
fn a_notice_that_claims_more_than_was_written_is_refused() {
    caught(Bug::WidenRange, parts_under_a_lock(), Fault::Refused);
}

#[test]
fn a_reply_of_more_elements_than_were_asked_for_is_refused() {
    caught(Bug::WidenReply, parts_under_a_lock(), Fault::Refused);
}

#[test]
fn an_object_that_became_writable_with_others_answered_too_early_is_touched_under_its_writer() {
    let program = written_one_after_the_other();
    caught(Bug::AnswerAtOnce, program, Fault::Presence);
}

#[test]
fn an_exclusive_element_answered_too_early_is_touched_under_its_writer() {
    caught(Bug::AnswerAtOnce, parts_written_alone(), Fault::Presence);
}

#[test]
fn a_stale_object_that_came_along_makes_a_stale_read() {
    caught(
        Bug::TakeStaleAlong,
        owned_and_written_by_another(),
        Fault::StaleRead,
    );
}

#[test]
fn an_object_sent_along_from_an_invalid_copy_makes_a_stale_read() {
    caught(
        Bug::SendInvalidAlong,
        followed_and_written_by_another(),
        Fault::StaleRead,
    );
    caught(
        Bug::TakeStaleAlong,
        followed_and_written_by_another(),
        Fault::StaleRead,
    );
}

#[test]
fn an_early_departure_leaves_others_behind() {
    caught(
        Bug::DepartEarly,
        racing_writers(3, 1),
        Fault::LeftBarrierEarly,
    );
}

#[test]
fn an_unconfirmed_cycle_is_a_phantom() {
    caught(
        Bug::SkipConfirmation,
        waits_of_two_moments().impatient(1),
        Fault::PhantomDeadlock,
    );
}

#[test]
fn lost_probes_leave_a_deadlock_untold() {
    caught(Bug::LoseProbe, philosophers(), Fault::Stuck);
}

#[test]
fn every_bug_is_planted_in_a_test_of_its_own() {
    const TESTS: [&str; 17] = [
        include_str!("array_family.rs"),
        include_str!("bugs.rs"),
        include_str!("collection.rs"),
        include_str!("collectives.rs"),
        include_str!("family.rs"),
        include_str!("gates.rs"),
        include_str!("handing.rs"),
        include_str!("litmus.rs"),
        include_str!("pages.rs"),
        include_str!("races.rs"),
        include_str!("rounds.rs"),
        include_str!("sections.rs"),
        include_str!("seen.rs"),
        include_str!("seen_blocks.rs"),
        include_str!("turnstiles.rs"),
        include_str!("withdrawal.rs"),
        include_str!("../it/tampered.rs"),
    ];
    for (place, bug) in Bug::ALL.into_iter().enumerate() {
        assert_eq!(bug as usize, place, "all are there, in their order");
        let planted = [",", ")", "]"].map(|end| format!("Bug::{bug:?}{end}"));
        let is_planted = |test: &&str| planted.iter().any(|words| test.contains(words));
        assert!(TESTS.iter().any(is_planted), "{bug:?}");
    }
}
