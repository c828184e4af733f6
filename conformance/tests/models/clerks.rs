//! Clerks and monitors, in every order of calls, messages and processes.

use conformance::model::{ClerkProgram, Clerked, Does, Mistake};

use Does::{Adds, Calls, CallsBack, Reads, Starts, Takes, TakesWithin};

fn program(nodes: u8, callers: &[&[Does]]) -> ClerkProgram {
    ClerkProgram {
        nodes,
        objects: 2,
        most: None,
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
fn calls_of_two_callers_that_hold_each_other_up_are_stuck() {
    for nodes in [2, 3] {
        let each_other: [&[Does]; 2] = [&[Calls(0, 1)], &[Calls(1, 0)]];
        assert_eq!(program(nodes, &each_other).explore(), Clerked::Stuck);
    }
}

#[test]
fn a_call_that_waits_for_its_own_caller_is_refused() {
    for nodes in [2, 3] {
        for does in [Calls(0, 0), Starts(0, 0), CallsBack(0, 1)] {
            let all: [&[Does]; 3] = [&[does, Adds(0)], &[Adds(0), Reads(1)], &[Takes(0)]];
            assert_sound(&program(nodes, &all), 30);
        }
    }
}

#[test]
fn a_clerk_admits_so_many_calls_and_no_more() {
    for (nodes, most) in [(1, 1), (1, 2), (2, 1), (3, 1)] {
        let all: [&[Does]; 3] = [
            &[Adds(0), Reads(1), Reads(0)],
            &[Reads(0), Takes(0), Adds(1)],
            &[Reads(0), Reads(1), Takes(1)],
        ];
        let program = ClerkProgram {
            most: Some(most),
            ..program(nodes, &all)
        };
        assert_sound(&program, 500);
        // Within its own clerk that is refused, and between two nodes it is not.
        let nested: [&[Does]; 2] = [&[Calls(0, 1), Adds(1)], &[Reads(0), Adds(1)]];
        let program = ClerkProgram {
            callers: nested.iter().map(|it| it.to_vec()).collect(),
            ..program
        };
        assert_sound(&program, 30);
    }
}

#[test]
fn a_call_that_is_withdrawn_is_executed_or_refused() {
    for nodes in [2, 3] {
        let all: [&[Does]; 3] = [
            &[TakesWithin(0), Reads(0)],
            &[Adds(0), TakesWithin(0)],
            &[Reads(0), Adds(1), TakesWithin(1)],
        ];
        assert_sound(&program(nodes, &all), 500);
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
    let itself: [&[Does]; 3] = [&[Calls(0, 0)], &[], &[]];
    let back: [&[Does]; 3] = [&[CallsBack(0, 1)], &[], &[]];
    let started: [&[Does]; 3] = [&[Starts(0, 0)], &[], &[]];
    let within: [&[Does]; 3] = [&[TakesWithin(0)], &[Adds(0)], &[]];
    for (mistake, callers, lost, fault) in [
        (Mistake::TwoWriters, writers, None, Clerked::Together),
        (Mistake::Overtakes, readers, None, Clerked::Overtaken),
        (Mistake::KeepsMonitor, guarded, None, Clerked::Stuck),
        (Mistake::DeadKeepsMonitor, dead, Some(2), Clerked::Stuck),
        (Mistake::NoChain, itself, None, Clerked::Stuck),
        (Mistake::NoChain, back, None, Clerked::Stuck),
        (Mistake::NoChainOfStarted, started, None, Clerked::Stuck),
        (Mistake::ExecutesWithdrawn, within, None, Clerked::Withdrawn),
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

#[test]
fn a_clerk_without_its_group_is_caught() {
    let callers: [&[Does]; 2] = [&[Adds(0)], &[Adds(1)]];
    let sound = ClerkProgram {
        most: Some(1),
        ..program(1, &callers)
    };
    assert_sound(&sound, 10);
    let mistaken = ClerkProgram {
        mistake: Some(Mistake::NoGroup),
        ..sound
    };
    assert_eq!(mistaken.explore(), Clerked::TooMany);
}

/// Which of its two faults is found first depends on the order of the search.
#[test]
fn a_call_that_is_withdrawn_while_it_writes_is_caught() {
    let callers: [&[Does]; 3] = [&[Adds(0), TakesWithin(0)], &[Adds(0)], &[Adds(0)]];
    for nodes in [2, 3] {
        let mistaken = ClerkProgram {
            mistake: Some(Mistake::WithdrawsBegun),
            ..program(nodes, &callers)
        };
        let found = mistaken.explore();
        let is_caught = matches!(found, Clerked::Together | Clerked::Stuck);
        assert!(is_caught, "{found:?} on {nodes} nodes");
        assert_sound(&program(nodes, &callers), 100);
    }
}
