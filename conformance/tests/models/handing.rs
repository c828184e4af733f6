//! References handed over through objects with operations: every run of small programs, under each
//! strategy, also while the objects move.

use conformance::Bug;
use conformance::model::{Fault, Sight, programs::*};
use dhole_model::{Coherence, NodeId};
use dhole_protocol::objects::Strategy;

use crate::{caught, sound};

const REPLICATED: Strategy = Strategy::Replicated;

fn on(node: u16) -> Strategy {
    Strategy::On(NodeId(node))
}

#[test]
fn what_is_handed_over_is_seen_however_the_object_is_kept() {
    for kept in [REPLICATED, on(0), on(1)] {
        sound(handed_over(kept, 2), &[Sight::Invalidated]);
    }
    for kept in [REPLICATED, on(2)] {
        sound(handed_over(kept, 3), &[Sight::Invalidated]);
    }
    for coherence in [Coherence::Update, Coherence::Home] {
        for kept in [REPLICATED, on(0), on(1)] {
            sound(handed_over(kept, 2).under(coherence), &[]);
        }
    }
}

#[test]
fn what_is_handed_back_is_seen() {
    for kept in [
        [REPLICATED; 2],
        [REPLICATED, on(0)],
        [on(0), on(1)],
        [on(1), REPLICATED],
    ] {
        sound(handed_back(kept), &[Sight::Invalidated]);
    }
}

#[test]
#[ignore = "two minutes: three nodes and two objects; \
            cargo test -p conformance --release --test models handing -- --ignored"]
fn what_is_handed_on_is_seen() {
    for kept in [
        [REPLICATED; 2],
        [on(0), on(2)],
        [REPLICATED, on(1)],
        [on(1), REPLICATED],
    ] {
        sound(handed_on(kept), &[Sight::Invalidated]);
    }
}

#[test]
fn whoever_waits_by_a_guard_sees_what_comes_with_its_end() {
    for kept in [REPLICATED, on(0), on(1)] {
        sound(awaited(kept), &[Sight::Invalidated]);
    }
}

#[test]
fn what_is_handed_over_is_seen_while_the_object_moves() {
    for (kept, to) in [
        (REPLICATED, on(1)),
        (on(0), REPLICATED),
        (on(0), on(1)),
        (on(1), on(0)),
    ] {
        sound(
            handed_over_while_it_moves(kept, to, 2),
            &[Sight::Invalidated],
        );
    }
}

#[test]
fn calls_that_are_under_way_at_once_hand_over_too() {
    for kept in [
        [REPLICATED; 2],
        [REPLICATED, on(1)],
        [on(0), on(1)],
        [on(1), on(0)],
    ] {
        sound(two_under_way(kept), &[Sight::Invalidated]);
        sound(called_while_another_waits(kept), &[Sight::Invalidated]);
    }
}

#[test]
fn what_is_started_with_a_false_guard_holds_up_no_barrier() {
    for kept in [REPLICATED, on(0), on(1)] {
        for many in 1..=3 {
            sound(started_with_a_false_guard(kept, many), &[]);
        }
    }
}

#[test]
fn what_is_not_told_with_operations_makes_a_stale_read() {
    caught(Bug::HideFromObject, handed_over(on(1), 2), Fault::StaleRead);
    caught(Bug::HideFromCaller, handed_over(on(0), 2), Fault::StaleRead);
    for kept in [on(0), on(1)] {
        caught(Bug::BareDespiteNews, handed_over(kept, 2), Fault::StaleRead);
    }
    caught(
        Bug::HideFromReplicas,
        handed_over(REPLICATED, 2),
        Fault::StaleRead,
    );
    caught(
        Bug::HideFromObject,
        two_under_way([on(1); 2]),
        Fault::StaleRead,
    );
}

#[test]
#[ignore = "two minutes: three nodes, of which one moves the counter; \
            cargo test -p conformance --release --test models handing -- --ignored"]
fn what_is_handed_over_is_seen_while_a_third_moves_the_object() {
    for (kept, to) in [(REPLICATED, on(2)), (on(2), REPLICATED), (on(0), on(2))] {
        sound(
            handed_over_while_it_moves(kept, to, 3),
            &[Sight::Invalidated],
        );
    }
}

#[test]
fn a_user_half_comes_back_to_its_client_and_to_no_clone() {
    for kept in [REPLICATED, on(0), on(1)] {
        sound(called_by_clients(kept, 2), &[]);
        sound(called_by_a_client_of_nothing(kept), &[]);
    }
    for (kept, to) in [
        (REPLICATED, on(1)),
        (on(0), REPLICATED),
        (on(0), on(1)),
        (on(1), on(0)),
    ] {
        sound(called_by_clients_while_it_moves(kept, to), &[]);
    }
}

#[test]
fn a_user_half_that_goes_astray_is_found() {
    for kept in [REPLICATED, on(0), on(1)] {
        for bug in [Bug::KeepUserHalf, Bug::ShareUserHalf] {
            caught(bug, called_by_clients(kept, 2), Fault::WrongUserHalf);
        }
        let nothing = called_by_a_client_of_nothing(kept);
        caught(Bug::ChangeRefused, nothing, Fault::WrongUserHalf);
    }
    let replicated = called_by_clients(REPLICATED, 2);
    let fault = Fault::WrongUserHalf;
    caught(Bug::TakeAnothersUserHalf, replicated, fault);
}
