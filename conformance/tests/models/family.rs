//! The update and the home protocol: every run of small programs.

use conformance::model::{Cluster, Fault, Sight, explore, programs::*};
use conformance::{Bug, model};
use dhole::Coherence::{self, Home, Lazy, Update};
use dhole::Races;

use crate::{caught, sound};

/// The programs of the lazy protocol whose outcome does not depend on the protocol.
fn sound_as_lazy(coherence: Coherence) {
    for program in [
        message_passing_by_lock(),
        message_passing_by_barrier(),
        once(3),
        chain_of_locks(),
        two_objects(),
        counter(2, 2),
        read_while_written(),
        read_while_written_again(),
        barrier_after_lock(2),
        hand_over_hand(),
        row_of_zeros(2),
        wandering(3),
        allocated_meanwhile(),
        written_alone(2, 0),
        written_alone(2, 1),
        written_alone_in_phases(false),
        acquired_again(),
    ] {
        sound(program.under(coherence), &[]);
    }
}

#[test]
fn what_is_sound_under_the_lazy_protocol_is_so_under_update() {
    sound_as_lazy(Update);
}

#[test]
fn what_is_sound_under_the_lazy_protocol_is_so_under_home() {
    sound_as_lazy(Home);
}

#[test]
fn readers_of_a_broadcast_read_what_was_pushed() {
    sound(
        broadcast(2, 3).under(Update),
        &[Sight::Pushed, Sight::Overtaking],
    );
    sound(broadcast(3, 2).under(Update), &[Sight::Pushed]);
}

#[test]
fn of_racing_writers_that_push_one_wins_everywhere() {
    sound(racing_writers(2, 2).under(Update), &[]);
    sound(racing_writers_and_readers(2).under(Update), &[]);
}

#[test]
fn a_reader_that_reads_no_more_drops_out_and_finds_the_last_value() {
    sound(read_no_more().under(Update), &[Sight::Pushed]);
}

#[test]
fn a_lost_push_does_no_harm() {
    for program in [broadcast(2, 3), read_no_more(), counter(2, 1)] {
        let cluster = Cluster::new(program.under(Update)).with(Bug::LosePush);
        explore(cluster).assert_sound();
    }
}

#[test]
fn a_push_that_claims_to_be_newer_than_it_is_makes_a_stale_read() {
    caught(
        Bug::AdvancePush,
        broadcast(2, 3).under(Update),
        Fault::StaleRead,
    );
}

#[test]
fn what_is_propagated_is_read_as_it_was_written_also_where_it_is_lost() {
    for (late, protocol) in [(false, Lazy), (true, Lazy), (false, Update), (true, Update)] {
        let program = propagated(2, 2, late).under(protocol);
        sound(program.clone(), &[Sight::Pushed]);
        explore(Cluster::new(program).with(Bug::LosePush)).assert_sound();
    }
    sound(propagated(3, 1, false), &[Sight::Pushed]);
    sound(propagated_when_exclusive(), &[Sight::Pushed]);
}

#[test]
fn what_is_propagated_as_newer_than_it_is_makes_a_stale_read() {
    for late in [false, true] {
        let program = propagated(2, 3, late);
        caught(Bug::AdvancePush, program, Fault::StaleRead);
    }
}

#[test]
fn writers_of_different_leaves_of_one_object_lose_nothing() {
    sound(
        writers_of_one_object(2, 2).under(Home),
        &[Sight::FlushDeferred],
    );
    sound(writers_of_one_object(3, 1).under(Home), &[]);
    sound(locked_leaves().under(Home), &[Sight::FlushDeferred]);
}

#[test]
fn what_is_read_over_and_over_is_kept_until_somebody_writes_it() {
    let phases = [false, false, false, true, false];
    for (nodes, writer) in [(2, 0), (2, 1), (3, 1)] {
        let program = read_over_and_over(nodes, writer, &phases).under(Home);
        let sights = [Sight::Outdated].repeat(usize::from(writer != nodes - 1));
        sound(program.finding(Races::Warn), &sights);
    }
    for phases in 3..=4 {
        sound(
            read_over_and_over_while_written(phases).under(Home),
            &[Sight::Outdated],
        );
    }
    sound(used_by_one_elsewhere(4).under(Home), &[Sight::Outdated]);
    sound(
        leaf_beside_one_that_is_outdated().under(Home),
        &[Sight::Outdated],
    );
}

#[test]
fn an_outdated_copy_that_is_kept_makes_a_stale_read() {
    let phases = [false, false, false, true];
    let program = read_over_and_over(2, 0, &phases).under(Home);
    caught(Bug::KeepOutdated, program.clone(), Fault::StaleRead);
    caught(Bug::KeepUntold, program, Fault::StaleRead);
}

#[test]
fn a_flush_acknowledged_before_it_is_merged_makes_a_stale_read() {
    caught(
        Bug::AcknowledgeEarly,
        counter(2, 1).under(Home),
        Fault::StaleRead,
    );
}

#[test]
fn a_copy_kept_over_an_acquire_makes_a_stale_read() {
    caught(
        Bug::SkipInvalidate,
        broadcast(2, 2).under(Home),
        Fault::StaleRead,
    );
}

#[test]
fn a_whole_object_flushed_overwrites_what_others_wrote() {
    caught(
        Bug::SkipTwin,
        writers_of_one_object(3, 1).under(Home),
        Fault::StaleRead,
    );
}

#[test]
fn objects_change_protocol_between_phases() {
    for before in Coherence::BY_OBJECT {
        for after in Coherence::BY_OBJECT {
            sound(switched(2, after).under(before), &[]);
        }
    }
    sound(switched(3, Home).under(Lazy), &[]);
}

#[test]
fn a_push_from_before_a_switch_is_of_no_use_after_it() {
    sound(
        switched_before_a_push_arrives().under(Update),
        &[Sight::Pushed],
    );
}

#[test]
fn rows_of_zeros_change_protocol() {
    for (before, after) in [(Lazy, Home), (Home, Lazy), (Update, Home)] {
        // Before anything is written, after each node has written, and later.
        for place in [0, 3, 5] {
            let mut program = row_of_zeros(2).under(before);
            let switch = model::Op::Switch(after);
            let nodes = program.nodes.iter_mut();
            nodes.for_each(|node| node.insert(place, switch));
            sound(program, &[]);
        }
    }
}
