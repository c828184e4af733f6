//! Sections: every run of small programs, and planted bugs.

use conformance::Bug;
use conformance::model::{Fault, Sight, programs::*};

use dhole::Coherence::Home;

use crate::{caught, sound};

#[test]
fn sections_and_holders_are_alone_under_the_lock() {
    for nodes in [2, 3] {
        sound(sections_and_a_holder(nodes).under(Home), &[]);
    }
    sound(
        section_at_a_home_that_computes().under(Home),
        &[Sight::Deferred],
    );
}

#[test]
fn a_section_passes_on_what_its_caller_has_flushed() {
    sound(sections_pass_on_what_was_flushed().under(Home), &[]);
}

#[test]
fn who_keeps_a_copy_knows_before_a_section_changes_the_object() {
    sound(section_of_a_keeper().under(Home), &[Sight::Outdated]);
    sound(section_beside_a_keeper().under(Home), &[Sight::Outdated]);
}

#[test]
fn sections_that_wait_go_on_when_something_is_written() {
    for nodes in [2, 3] {
        sound(sections_that_wait(nodes).under(Home), &[]);
        sound(section_that_waits_for_a_holder(nodes).under(Home), &[]);
    }
    sound(
        sections_that_wait(2).under(Home).impatient(2),
        &[Sight::Probe],
    );
}

#[test]
fn sections_go_on_with_sections_that_wait() {
    for nodes in [2, 3] {
        sound(sections_that_go_on(nodes).under(Home), &[]);
    }
}

#[test]
fn sections_that_wait_for_ever_are_told() {
    for nodes in [2, 3] {
        sound(
            sections_that_wait_for_ever(nodes).under(Home),
            &[Sight::Deadlock],
        );
    }
}

#[test]
fn bugs_of_sections_are_caught() {
    let [computes, keeper] = [section_at_a_home_that_computes(), section_beside_a_keeper()];
    caught(Bug::RunBesideReader, computes.under(Home), Fault::Presence);
    let held = sections_and_a_holder(2).under(Home);
    caught(Bug::RunWhileHeld, held, Fault::TwoHolders);
    caught(Bug::TellKeepersLater, keeper.under(Home), Fault::StaleRead);
    let own = section_of_a_keeper().under(Home);
    caught(Bug::SkipCaller, own, Fault::StaleRead);
    let waits = section_that_waits_for_a_holder(2).under(Home);
    caught(Bug::ForgetBlocked, waits, Fault::Stuck);
    let waits = sections_that_wait(2).under(Home);
    caught(Bug::SleepOverSection, waits, Fault::Stuck);
    let goes_on = sections_that_go_on(2).under(Home);
    caught(Bug::BeginAgain, goes_on, Fault::Stuck);
    let flushed = || sections_pass_on_what_was_flushed().under(Home);
    caught(Bug::KeepOverSection, flushed(), Fault::StaleRead);
    caught(Bug::SectionBeforeFlush, flushed(), Fault::StaleRead);
}
