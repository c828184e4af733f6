//! Clerks and monitors, in every order of calls, messages and processes.

use conformance::model::{ClerkProgram, Clerked, Does, Mistake};

use Does::{Adds, Calls, Reads, Takes};

fn program(nodes: u8, callers: &[&[Does]]) -> ClerkProgram {
    ClerkProgram {
        nodes,
        objects: 2,
        callers: callers.iter().map(|it| it.to_vec()).collect(),
        may_lose: None,
        mistake: None,
    }
}

fn assert_sound(program: &ClerkProgram, at_least: usize) {
    match program.explore() {
        Clerked::Sound(states) => assert!(states >= at_least, "{states} states: {program:?}"),
        fault => panic!("{fault:?}: {program:?}"),
    }
}

#[test]
fn readers_together_and_writers_alone_come_to_their_ends() {
    for nodes in [2, 3] {
        let all: [&[Does]; 3] = [
            &[Adds(0), Reads(1), Reads(0)],
            &[Reads(0), Takes(0), Adds(1)],
            &[Reads(0), Reads(1), Takes(1)],
        ];
        assert_sound(&program(nodes, &all), 500);
    }
}

#[test]
fn nested_calls_of_three_callers_come_to_their_ends() {
    for nodes in [2, 3] {
        let all: [&[Does]; 3] = [
            &[Calls(0, 1), Reads(0)],
            &[Adds(0), Reads(1)],
            &[Calls(0, 1), Adds(1)],
        ];
        assert_sound(&program(nodes, &all), 500);
    }
}

#[test]
fn calls_that_hold_each_other_up_are_stuck() {
    for nodes in [2, 3] {
        let each_other: [&[Does]; 2] = [&[Calls(0, 1)], &[Calls(1, 0)]];
        assert_eq!(program(nodes, &each_other).explore(), Clerked::Stuck);
        let itself: [&[Does]; 1] = [&[Calls(0, 0)]];
        assert_eq!(program(nodes, &itself).explore(), Clerked::Stuck);
    }
}

#[test]
fn a_lost_caller_holds_up_nobody() {
    let all: [&[Does]; 3] = [
        &[Adds(0), Reads(0)],
        &[Reads(0), Adds(1), Reads(1)],
        &[Calls(0, 1), Takes(1), Adds(0)],
    ];
    let program = ClerkProgram {
        may_lose: Some(2),
        ..program(3, &all)
    };
    assert_sound(&program, 500);
}

#[test]
fn every_mistake_planted_in_clerks_is_caught() {
    let writers: [&[Does]; 3] = [&[Adds(0)], &[Adds(0)], &[]];
    let dead: [&[Does]; 3] = [&[], &[Adds(0)], &[Adds(0)]];
    let guarded: [&[Does]; 3] = [&[Takes(0)], &[Adds(0)], &[Reads(0)]];
    let readers: [&[Does]; 3] = [&[Reads(0)], &[Adds(0)], &[Reads(0)]];
    for (mistake, callers, lost, fault) in [
        (Mistake::TwoWriters, writers, None, Clerked::Together),
        (Mistake::Overtakes, readers, None, Clerked::Overtaken),
        (Mistake::KeepsMonitor, guarded, None, Clerked::Stuck),
        (Mistake::DeadKeepsMonitor, dead, Some(2), Clerked::Stuck),
    ] {
        for nodes in [2, 3] {
            if lost.is_some_and(|node| node >= nodes) {
                continue;
            }
            let program = ClerkProgram {
                mistake: Some(mistake),
                may_lose: lost,
                ..program(nodes, &callers)
            };
            assert_eq!(program.explore(), fault, "{mistake:?} on {nodes} nodes");
            let sound = ClerkProgram {
                mistake: None,
                ..program
            };
            assert_sound(&sound, 1);
        }
    }
}
