//! Collectives: every run of small programs.

use conformance::Bug;
use conformance::model::{Fault, Sight, programs::*};
use dhole::Coherence::{Home, Lazy, Update};
use dhole::CollectiveKind::{self, *};
use dhole::NodeId;

use crate::{caught, sound};

const ALL: [CollectiveKind; 3] = [Broadcast, Reduce, AllReduce];
/// A tree whose root is not node 0.
const FROM_1: CollectiveKind = Scatter { from: NodeId(1) };

#[test]
fn what_was_written_before_a_collective_is_seen_by_who_is_told() {
    for coherence in [Lazy, Update, Home] {
        for kind in ALL {
            sound(written_before(kind, 2).under(coherence), &[]);
        }
    }
    for kind in ALL {
        sound(written_before(kind, 3), &[Sight::Collective]);
    }
    for kind in [Gather, AllGather, Scan, FROM_1] {
        sound(written_before(kind, 2), &[Sight::Collective]);
    }
    for kind in [FROM_1, AllToAll] {
        sound(written_before(kind, 3), &[Sight::Collective]);
    }
    for coherence in [Lazy, Update, Home] {
        sound(written_before(AllToAll, 2).under(coherence), &[]);
    }
}

#[test]
fn what_is_written_again_and_again_is_told_each_time() {
    sound(told_again_and_again(2, 3), &[Sight::Early]);
    sound(told_again_and_again(3, 1), &[Sight::Collective]);
    sound(told_again_and_again(2, 3).logging(1, 2), &[Sight::Early]);
    for kind in ALL {
        sound(counted_between(kind, 2), &[]);
    }
}

#[test]
fn nobody_runs_further_ahead_than_the_limit() {
    sound(running_ahead(AllReduce, 2, 11), &[]);
    sound(running_ahead(AllToAll, 2, 11), &[]);
    sound(running_ahead(AllToAll, 3, 2), &[Sight::Early]);
    for kind in [Broadcast, Reduce, FROM_1] {
        sound(running_ahead(kind, 2, 11), &[Sight::Early]);
        sound(running_ahead(kind, 3, 2), &[Sight::Early]);
        sound(running_ahead(kind, 4, 1), &[]);
    }
    sound(running_ahead(AllReduce, 4, 1), &[]);
}

#[test]
fn barriers_with_nothing_to_tell_and_collectives_keep_their_order() {
    for kind in ALL {
        sound(among_barriers(kind), &[Sight::Round]);
    }
}

#[test]
fn waits_in_collectives_that_seem_long_are_no_deadlock() {
    for kind in ALL.into_iter().chain([FROM_1, AllToAll]) {
        sound(running_ahead(kind, 2, 2).impatient(2), &[Sight::Probe]);
        sound(running_ahead(kind, 3, 1).impatient(1), &[Sight::Probe]);
    }
    sound(counted_between(AllReduce, 2).impatient(1), &[Sight::Probe]);
    sound(among_barriers(Reduce).impatient(1), &[Sight::Probe]);
}

#[test]
fn a_deadlock_in_collectives_is_told() {
    for impatience in 0..=1 {
        for kind in [Reduce, AllReduce, AllToAll] {
            for nodes in [2, 3] {
                let program = lock_kept_from_collective(kind, nodes).impatient(impatience);
                sound(program, &[Sight::Deadlock]);
            }
        }
        // Of more nodes several cycles share node 0, and the model knows no end of a run, by which
        // those hear of it that lie on another one.
        sound(
            crosswise_collectives().impatient(impatience),
            &[Sight::Deadlock],
        );
    }
}

#[test]
fn a_collective_that_hides_what_was_written_makes_a_stale_read() {
    for kind in ALL.into_iter().chain([FROM_1, AllToAll]) {
        let program = told_first(kind);
        caught(Bug::HideFromCollective, program, Fault::StaleRead);
    }
}

#[test]
fn who_is_answered_by_nobody_leaves_the_collective_early() {
    let fault = Fault::LeftBarrierEarly;
    for kind in [AllReduce, AllToAll] {
        caught(Bug::AnswerCollective, running_ahead(kind, 3, 1), fault);
    }
}

#[test]
fn a_lost_value_leaves_its_receiver_waiting() {
    for kind in ALL.into_iter().chain([FROM_1, AllToAll]) {
        caught(Bug::LoseCollective, running_ahead(kind, 2, 1), Fault::Stuck);
    }
}
