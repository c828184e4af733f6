//! Races under the lazy protocol: a race is reported if and only if nothing orders two writes.

use conformance::Bug;
use conformance::model::{Cluster, Fault, Program, Sight, explore, programs::*};
use dhole::Coherence::Home;
use dhole::Races;

use crate::{caught, sound};

#[test]
fn every_race_before_a_barrier_is_told() {
    for races in [Races::Warn, Races::Fail] {
        sound(racing_writers(2, 2).finding(races), &[Sight::Race]);
        sound(racing_writers(3, 1).finding(races), &[Sight::Race]);
        let readers = racing_writers_and_readers(2).finding(races);
        sound(readers, &[Sight::Race, Sight::Invalidated]);
    }
    sound(races_and_order().finding(Races::Fail), &[Sight::Race]);
}

#[test]
fn a_race_for_an_element_is_told_and_none_for_its_neighbours() {
    for races in [Races::Warn, Races::Fail] {
        sound(a_race_for_a_part_and_order().finding(races), &[Sight::Race]);
        sound(parts_that_overlap(1).finding(races), &[Sight::Race]);
        let parts = parts_of_one_array(1).finding(races);
        let explored = explore(Cluster::new(parts).showing(&[Sight::Race]));
        assert!(explored.faults.is_empty(), "{explored}");
        assert_eq!(explored.unseen, [Sight::Race], "there is none");
    }
}

#[test]
fn a_race_for_an_object_that_one_node_had_to_itself_is_told_where_races_are_errors() {
    sound(
        race_for_what_one_node_had().finding(Races::Fail),
        &[Sight::Race],
    );
    sound(race_for_what_one_node_had().finding(Races::Warn), &[]);
}

#[test]
fn writes_that_locks_and_barriers_order_are_no_race() {
    for races in [Races::Warn, Races::Fail] {
        for program in [
            message_passing_by_lock(),
            message_passing_by_barrier(),
            once(2),
            chain_of_locks(),
            two_objects(),
            counter(2, 2),
            barrier_after_lock(2),
            hand_over_hand(),
            wandering(3),
            written_alone(2, 0),
            written_alone_in_phases(false),
            parts_under_a_lock(),
            parts_written_alone(),
        ] {
            let explored = explore(Cluster::new(program.finding(races)));
            explored.assert_sound();
        }
    }
}

#[test]
fn what_was_read_and_written_over_never_comes_back() {
    sound(overwriting_what_was_read(), &[Sight::Invalidated]);
    sound(
        overwriting_what_was_read().finding(Races::Fail),
        &[Sight::Race],
    );
}

#[test]
fn every_race_for_a_leaf_is_told_at_its_home() {
    for program in [
        racing_writers(2, 2),
        racing_writers_and_readers(2),
        a_race_for_a_leaf_and_order(),
        race_for_what_one_node_had(),
    ] {
        sound(
            program.clone().under(Home).finding(Races::Fail),
            &[Sight::Race],
        );
        sound(program.under(Home).finding(Races::Warn), &[]);
    }
    sound(
        racing_writers(3, 1).under(Home).finding(Races::Fail),
        &[Sight::Race],
    );
}

#[test]
fn leaves_side_by_side_or_in_order_are_no_race_at_home() {
    for races in [Races::Warn, Races::Fail] {
        for program in [
            writers_of_one_object(2, 2),
            writers_of_one_object(3, 1),
            locked_leaves(),
            counter(2, 2),
            message_passing_by_barrier(),
            chain_of_locks(),
            barrier_after_lock(2),
            written_alone(2, 0),
            writers_and_readers(2),
        ] {
            sound(program.under(Home).finding(races), &[]);
        }
    }
}

#[test]
fn every_race_for_an_element_is_told_at_its_home() {
    for races in [Races::Warn, Races::Fail] {
        for program in [a_race_for_a_part_and_order(), parts_that_overlap(1)] {
            sound(program.under(Home).finding(races), &[Sight::Race]);
        }
        for program in [
            parts_of_one_array(1),
            parts_under_a_lock(),
            parts_written_alone(),
            locked_parts(),
            parts_by_rounds(2),
        ] {
            let explored = explore(Cluster::new(program.under(Home).finding(races)));
            explored.assert_sound();
        }
    }
}

fn caught_at_home(bug: Bug, program: Program, fault: Fault) {
    caught(bug, program.under(Home).finding(Races::Fail), fault);
}

#[test]
fn a_flush_that_hides_what_its_node_had_seen_makes_a_phantom_race() {
    caught_at_home(Bug::HideSeen, counter(2, 2), Fault::PhantomRace);
    caught_at_home(Bug::HideSeen, locked_parts(), Fault::PhantomRace);
}

#[test]
fn a_home_that_forgets_what_it_wrote_misses_a_race() {
    caught_at_home(Bug::SkipCompare, racing_writers(2, 1), Fault::UntoldRace);
    caught_at_home(Bug::KeepRace, racing_writers(2, 1), Fault::UntoldRace);
}

#[test]
fn a_flush_that_does_not_say_when_it_was_written_keeps_a_race() {
    caught_at_home(Bug::HideWhen, racing_writers(2, 1), Fault::UntoldRace);
    caught_at_home(Bug::HideWhen, parts_that_overlap(1), Fault::UntoldRace);
}
