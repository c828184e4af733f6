//! The same programs under every protocol: the same results, and the same outcomes forbidden.

use conformance::litmus::{
    CAUSALITY, COHERENCE, Guard, IRIW, LOAD_BUFFERING, MESSAGE_PASSING, STORE_BUFFERING,
};
use conformance::oracle::{Size, execute, expected, generate};
use conformance::{Bug, OnThreads, Platform, Simulated, Tampered, Under, seeds};
use dhole::Coherence::{self, Home, TreadMarks, Update};

fn differ(platform: &dyn Platform, seed: u64) -> Option<String> {
    differ_in(platform, seed, Size::default())
}

fn differ_in(platform: &dyn Platform, seed: u64, size: Size) -> Option<String> {
    let program = generate(seed, size);
    let wanted = expected(&program).expect("generated programs have no race");
    let got = execute(&program, platform, seed);
    let name = platform.name();
    (got.as_ref() != Ok(&wanted)).then(|| format!("{name}, seed {seed}: {got:?}, not {wanted:?}"))
}

/// Every other program mixes protocols by allocation, and one phase in ten switches.
#[test]
fn random_programs_give_the_same_result_under_every_protocol() {
    for seed in seeds(0..1_500) {
        for coherence in Coherence::all() {
            let platform = Under(Simulated::default(), coherence);
            assert_eq!(differ(&platform, seed), None);
        }
    }
}

/// Programs of many phases that read the same elements over and over.
const AGAIN: Size = Size {
    phases: 16,
    actions: 6,
    again: true,
};

/// Copies are kept over acquires, and outdated when a node writes.
#[test]
fn random_programs_that_read_the_same_again_give_the_same_result_under_every_protocol() {
    for seed in seeds(0..500) {
        for coherence in Coherence::all() {
            let platform = Under(Simulated::default(), coherence);
            assert_eq!(differ_in(&platform, seed, AGAIN), None);
        }
    }
    for seed in seeds(0..50) {
        assert_eq!(differ_in(&Under(OnThreads, Home), seed, AGAIN), None);
    }
}

#[test]
fn copies_that_are_kept_and_outdated_show_in_random_programs() {
    for bug in [Bug::KeepOutdated, Bug::KeepUntold] {
        let on = Under(Simulated::default(), Home);
        let platform = Tampered { on, bug, one_in: 1 };
        let caught = |seed| differ_in(&platform, seed, AGAIN).is_some();
        assert!((0..300).any(caught), "{}", platform.name());
    }
}

#[test]
fn random_programs_on_threads_give_the_same_result_under_every_protocol() {
    for seed in seeds(0..150) {
        for coherence in [Update, Home, TreadMarks] {
            assert_eq!(differ(&Under(OnThreads, coherence), seed), None);
        }
    }
}

// An outcome that synchronisation forbids is forbidden under every protocol.

#[test]
fn litmus_outcomes_that_are_forbidden_never_come_under_update() {
    forbidden_outcomes_never_come(Update, 1_000);
}

#[test]
fn litmus_outcomes_that_are_forbidden_never_come_under_home() {
    forbidden_outcomes_never_come(Home, 1_000);
}

#[test]
fn litmus_outcomes_that_are_forbidden_never_come_under_treadmarks() {
    forbidden_outcomes_never_come(TreadMarks, 1_000);
}

/// Each in a process of its own, for the ids of objects do not suffice for ten million runs.
fn in_a_hundred_thousand_seeds(coherence: Coherence) {
    forbidden_outcomes_never_come(coherence, 100_000);
}

#[test]
#[ignore = "too long for CI: 8 minutes, and 1,000 seeds of the same run above; docs/testing.md"]
fn forbidden_outcomes_never_come_in_a_hundred_thousand_seeds_under_lazy() {
    in_a_hundred_thousand_seeds(Coherence::Lazy);
}

#[test]
#[ignore = "too long for CI: 8 minutes, and 1,000 seeds of the same run above; docs/testing.md"]
fn forbidden_outcomes_never_come_in_a_hundred_thousand_seeds_under_update() {
    in_a_hundred_thousand_seeds(Update);
}

#[test]
#[ignore = "too long for CI: 8 minutes, and 1,000 seeds of the same run above; docs/testing.md"]
fn forbidden_outcomes_never_come_in_a_hundred_thousand_seeds_under_home() {
    in_a_hundred_thousand_seeds(Home);
}

#[test]
#[ignore = "too long for CI: 8 minutes, and 1,000 seeds of the same run above; docs/testing.md"]
fn forbidden_outcomes_never_come_in_a_hundred_thousand_seeds_under_treadmarks() {
    in_a_hundred_thousand_seeds(TreadMarks);
}

fn forbidden_outcomes_never_come(coherence: Coherence, all: u64) {
    type Forbidden = fn(&[u64]) -> bool;
    let both = [
        Guard::Locks,
        Guard::OneLock,
        Guard::OneRwLock,
        Guard::OnePermit,
    ];
    let any = [
        Guard::Nothing,
        Guard::Locks,
        Guard::OneRwLock,
        Guard::OnePermit,
    ];
    let flag_without_data: Forbidden = |r| r == [1, 0];
    let none_is_seen: Forbidden = |r| r == [0, 0];
    let from_thin_air: Forbidden = |r| r == [1, 1];
    let they_disagree: Forbidden = |r| r == [1, 0, 1, 0];
    let it_goes_back: Forbidden = |r| r[0] > r[1] || r[1] > r[2];
    let effect_alone: Forbidden = |r| r == [1, 1, 0];
    let platform = Under(Simulated::default(), coherence);
    for (litmus, guards, forbidden) in [
        (MESSAGE_PASSING, both, flag_without_data),
        (STORE_BUFFERING, both, none_is_seen),
        (LOAD_BUFFERING, any, from_thin_air),
        (IRIW, both, they_disagree),
        (COHERENCE, any, it_goes_back),
        (CAUSALITY, both, effect_alone),
    ] {
        for guard in guards {
            let tally = litmus.tally(&platform, guard, seeds(0..all));
            tally.never("what is forbidden", forbidden);
        }
    }
    let tally = STORE_BUFFERING.tally(&platform, Guard::Barrier, seeds(0..all));
    tally.never("one is not seen", |r| r != [1, 1]);
}

#[test]
fn the_oracle_catches_what_is_planted_under_update_and_home() {
    for (coherence, bug) in [
        (Update, Bug::AdvancePush),
        (Update, Bug::HideInterval),
        (Home, Bug::AcknowledgeEarly),
        (Home, Bug::StaleReply),
    ] {
        let on = Under(Simulated::default(), coherence);
        let platform = Tampered { on, bug, one_in: 4 };
        let caught = (0..1_000).any(|seed| differ(&platform, seed).is_some());
        assert!(caught, "{}", platform.name());
    }
}

#[test]
fn lost_pushes_do_no_harm_to_random_programs() {
    for seed in seeds(0..500) {
        let on = Under(Simulated::default(), Update);
        let bug = Bug::LosePush;
        assert_eq!(differ(&Tampered { on, bug, one_in: 3 }, seed), None);
    }
}
