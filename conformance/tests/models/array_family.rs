//! Arrays under the update and the home protocol, switched and freed: every run of small programs.

use conformance::Bug;
use conformance::model::{Cluster, Fault, Program, Sight, explore, hunt, programs::*};
use dhole::Coherence::{self, Home, Lazy, Update};
use dhole::Races;

/// The protocols of dhole that keep elements consistent, and not pages or blocks.
const OF_ELEMENTS: [Coherence; 3] = [Lazy, Update, Home];

fn sound(program: Program, sights: &[Sight]) {
    let explored = explore(Cluster::new(program).showing(sights));
    println!("{}: {} states", explored.program, explored.states);
    explored.assert_sound();
}

fn caught(bug: Bug, program: Program, fault: Fault) {
    let explored = hunt(Cluster::new(program).with(bug), fault);
    assert!(explored.shows(fault), "{bug:?} is not caught: {explored}");
}

#[test]
fn what_is_sound_under_the_lazy_protocol_is_so_under_update() {
    sound(parts_of_one_array(1).under(Update), &[]);
    sound(parts_that_overlap(2).under(Update), &[Sight::Deferred]);
    sound(parts_under_a_lock().under(Update), &[]);
    sound(parts_written_alone().under(Update), &[]);
}

#[test]
fn what_is_sound_under_the_lazy_protocol_is_so_under_home() {
    sound(parts_of_one_array(1).under(Home), &[Sight::FlushDeferred]);
    sound(parts_under_a_lock().under(Home), &[]);
    sound(parts_written_alone().under(Home), &[]);
}

#[test]
fn readers_of_elements_read_what_was_pushed() {
    sound(
        broadcast_parts(2, 3).under(Update),
        &[Sight::Pushed, Sight::Overtaking],
    );
    sound(locked_parts().under(Update), &[Sight::Invalidated]);
}

#[test]
fn two_readers_of_parts_read_what_was_pushed() {
    sound(broadcast_parts(3, 2).under(Update), &[Sight::Pushed]);
}

#[test]
fn a_lost_push_of_elements_does_no_harm() {
    let cluster = Cluster::new(broadcast_parts(2, 3).under(Update)).with(Bug::LosePush);
    explore(cluster).assert_sound();
}

#[test]
fn a_push_of_elements_that_claims_to_be_newer_makes_a_stale_read() {
    let program = broadcast_parts(2, 3).under(Update);
    caught(Bug::AdvancePush, program, Fault::StaleRead);
}

#[test]
fn writers_of_different_elements_lose_nothing_at_home() {
    sound(parts_by_rounds(2).under(Home), &[Sight::FlushDeferred]);
    sound(locked_parts().under(Home), &[Sight::FlushDeferred]);
}

#[test]
fn mistakes_at_home_make_stale_reads() {
    let program = || locked_parts().under(Home);
    caught(Bug::AcknowledgeEarly, program(), Fault::StaleRead);
    caught(Bug::SkipElementsInvalidate, program(), Fault::StaleRead);
}

#[test]
fn a_flush_of_more_than_was_written_has_no_bytes_for_it() {
    let program = parts_by_rounds(2).under(Home);
    caught(Bug::WidenFlush, program, Fault::Heap);
}

#[test]
fn elements_read_over_and_over_are_kept_until_somebody_writes_them() {
    let phases = [false, false, false, true, false];
    for (nodes, writer) in [(2, 0), (2, 1), (3, 1)] {
        let program = parts_read_over_and_over(nodes, writer, &phases).under(Home);
        let sights = [Sight::Outdated].repeat(usize::from(writer != nodes - 1));
        sound(program.finding(Races::Warn), &sights);
    }
    for phases in 3..=4 {
        let program = parts_read_while_written(phases).under(Home);
        sound(program, &[Sight::Outdated]);
    }
}

#[test]
fn outdated_elements_that_are_kept_make_a_stale_read() {
    let phases = [false, false, false, true];
    let program = || parts_read_over_and_over(2, 0, &phases).under(Home);
    caught(Bug::KeepOutdated, program(), Fault::StaleRead);
    caught(Bug::KeepUntold, program(), Fault::StaleRead);
}

#[test]
fn arrays_change_protocol_between_phases() {
    for before in OF_ELEMENTS {
        for after in OF_ELEMENTS {
            sound(switched_parts(after).under(before), &[]);
        }
    }
}

#[test]
fn a_push_from_before_a_switch_is_of_no_use_after_it() {
    sound(
        array_switched_before_a_push_arrives().under(Update),
        &[Sight::Pushed],
    );
}

#[test]
fn elements_beside_an_object_are_sound_under_every_protocol() {
    for coherence in OF_ELEMENTS {
        sound(parts_beside_an_object().under(coherence), &[]);
    }
}

#[test]
fn a_freed_array_is_told_of_under_every_protocol() {
    for coherence in OF_ELEMENTS {
        sound(freed_array().under(coherence), &[]);
        sound(freed_array_before_a_barrier().under(coherence), &[]);
    }
}

#[test]
fn an_array_whose_freeing_nobody_hears_of_is_used_after_it() {
    let program = freed_array_before_a_barrier().under(Lazy);
    caught(Bug::HideFreedArray, program, Fault::StaleRead);
}
