//! Litmus tests and the oracle catch bugs that are planted between live nodes.

use conformance::litmus::{
    CAUSALITY, COHERENCE, Guard, Litmus, MESSAGE_PASSING, STORE_BUFFERING, UNREAD,
};
use conformance::oracle::{Size, execute, expected, generate};
use conformance::{Bug, OnThreads, Platform, Simulated, Tampered, Under, run};

/// The first seed of `seeds` whose random program goes wrong.
fn oracle_catches(platform: &dyn Platform, seeds: u64) -> Option<u64> {
    (0..seeds).find(|seed| {
        let program = generate(*seed, Size::default());
        let wanted = expected(&program).expect("generated programs have no race");
        execute(&program, platform, *seed) != Ok(wanted)
    })
}

/// The first seed of `seeds` at which the reads return what they must not, whatever becomes of
/// the run afterwards.
fn litmus_catches(
    litmus: Litmus,
    platform: &dyn Platform,
    seeds: u64,
    forbidden: impl Fn(&[u64]) -> bool,
) -> Option<u64> {
    (0..seeds).find(|seed| forbidden(&litmus.once(platform, Guard::Locks, *seed).0))
}

#[track_caller]
fn report(platform: &dyn Platform, caught: Option<u64>) {
    let name = platform.name();
    match caught {
        Some(seed) => println!("{name}: caught by seed {seed}"),
        None => panic!("{name}: not caught"),
    }
}

#[test]
fn the_oracle_catches_what_is_planted_in_a_simulated_cluster() {
    for bug in [
        Bug::LoseInterval,
        Bug::HideInterval,
        Bug::StaleReply,
        Bug::ForgetLastWriter,
        Bug::GrantTwice,
        Bug::DepartEarly,
    ] {
        let platform = Tampered {
            on: Simulated::default(),
            bug,
            one_in: 20,
        };
        report(&platform, oracle_catches(&platform, 1_000));
    }
}

#[test]
fn the_oracle_catches_what_is_planted_between_threads() {
    for bug in [
        Bug::HideInterval,
        Bug::StaleReply,
        Bug::DepartEarly,
        Bug::LoseInterval,
    ] {
        let platform = Tampered {
            on: OnThreads,
            bug,
            one_in: 10,
        };
        report(&platform, oracle_catches(&platform, 500));
    }
}

#[test]
fn the_oracle_catches_what_is_planted_between_pages_writers() {
    for bug in [Bug::LoseDiff, Bug::ReorderDiffs, Bug::HideInterval] {
        let platform = Tampered {
            on: Under(Simulated::default(), dhole::Coherence::TreadMarks),
            bug,
            one_in: 5,
        };
        report(&platform, oracle_catches(&platform, 1_000));
    }
}

#[test]
fn litmus_tests_catch_what_is_planted_in_a_simulated_cluster() {
    type Forbidden = fn(&[u64]) -> bool;
    let flag_without_data: Forbidden = |r| r == [1, 0];
    let none_is_seen: Forbidden = |r| r == [0, 0];
    let effect_without_cause: Forbidden = |r| r == [1, 1, 0];
    let goes_back: Forbidden = |r| !r.contains(&UNREAD) && (r[0] > r[1] || r[1] > r[2]);
    for (bug, litmus, forbidden) in [
        (Bug::StaleReply, MESSAGE_PASSING, flag_without_data),
        (Bug::StaleReply, STORE_BUFFERING, none_is_seen),
        (Bug::StaleReply, CAUSALITY, effect_without_cause),
        (Bug::StaleReply, COHERENCE, goes_back),
        (Bug::HideInterval, STORE_BUFFERING, none_is_seen),
        (Bug::GrantTwice, STORE_BUFFERING, none_is_seen),
    ] {
        let platform = Tampered {
            on: Simulated::default(),
            bug,
            one_in: 5,
        };
        report(
            &platform,
            litmus_catches(litmus, &platform, 10_000, forbidden),
        );
    }
}

#[test]
fn what_is_hidden_from_processes_and_through_objects_is_found() {
    use conformance::suite::{
        numbers_are_handed_over_through_an_object, numbers_go_to_processes_and_come_back,
    };
    use dhole::{NodeId, on, replicated};

    for bug in [
        Bug::HideFromProcess,
        Bug::HideFromCaller,
        Bug::HideFromObject,
        Bug::BareDespiteNews,
        Bug::HideFromReplicas,
    ] {
        let platform = Tampered {
            on: Simulated::default(),
            bug,
            one_in: 2,
        };
        let strategy = match bug {
            Bug::HideFromReplicas => replicated(),
            _ => on(NodeId(2)),
        };
        let goes_wrong = |seed: &u64| {
            numbers_go_to_processes_and_come_back(&platform, *seed).is_err()
                || numbers_are_handed_over_through_an_object(&platform, *seed, strategy).is_err()
        };
        report(&platform, (0..100).find(goes_wrong));
    }
}

#[test]
fn an_object_that_nothing_in_its_reply_owns_is_refused() {
    let platform = Tampered {
        on: Simulated::default(),
        bug: Bug::SendUnowned,
        one_in: 1,
    };
    let refused = run(&platform, 2, 1, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(2, |i| i)))?;
        Ok(w.node().index() == 1 && numbers.at(0).read(w) == 0)
    });
    let error = refused.expect_err("node 1 asked for one").to_string();
    assert!(error.contains("nothing in the reply leads to"), "{error}");
}

#[test]
fn a_reply_with_a_slice_of_another_length_writes_nothing_into_what_was_lent() {
    use dhole::{NodeId, on};

    let platform = Tampered {
        on: Simulated::default(),
        bug: Bug::ShortenResult,
        one_in: 1,
    };
    let outcome = run(&platform, 2, 1, |w| {
        let pairs = w.once(|w| Ok(w.new_object(on(NodeId(0)), Pairs(7))?))?;
        if w.node() == NodeId(1) {
            let (mut numbers, mut bytes) = ([1, 2], [3; 4]);
            let refused = pairs.read(w, &mut numbers, &mut bytes);
            let words = refused.expect_err("three bytes came back").to_string();
            assert!(
                words.contains("`bytes` has 4 elements, and 3 came back"),
                "{words}"
            );
            assert_eq!((numbers, bytes), ([1, 2], [3; 4]));
        }
        w.barrier()?;
        Ok(())
    });
    outcome.expect("the run goes on");
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Pairs(u8);

#[dhole::object(crate = "dhole")]
impl Pairs {
    pub fn read(&self, numbers: &mut [u64], bytes: &mut [u8]) {
        numbers.fill(u64::MAX);
        bytes.fill(self.0);
    }
}
