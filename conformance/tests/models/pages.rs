//! TreadMarks: every run of small programs over pages.

use conformance::Bug;
use conformance::model::Op::{self, Acquire, Barrier, Read, Release, Write};
use conformance::model::Sight::{Collection, Deferred, WholePage};
use conformance::model::{Cluster, Program, Sight, explore};

/// Diffs are not collected.
const NEVER: u64 = u64::MAX;

fn model(nodes: &[&[Op]], pages: usize, collect_from: u64) -> Program {
    let nodes = nodes.iter().map(|ops| ops.to_vec()).collect();
    Program::new("pages", nodes).on_pages(pages, collect_from)
}

/// Both write a word of one page, meet, and read both; twice.
fn false_sharing() -> Program {
    let again = |mine, theirs| {
        let first = [Write(mine), Barrier, Read(theirs), Barrier];
        let then = [Write(mine), Barrier, Read(theirs), Read(mine)];
        [first, then].concat()
    };
    model(&[&again(0, 1), &again(1, 0)], 1, NEVER)
}

/// A word goes round under a lock.
fn migration(nodes: usize) -> Program {
    let turn = [Acquire(1), Read(0), Write(0), Release(1)];
    model(&vec![&turn[..]; nodes], 1, NEVER)
}

/// One writes a page again and again, and another asks for the diff at any time.
fn rewriting() -> Program {
    let writer = [Write(0), Barrier, Write(1), Barrier, Write(0), Barrier];
    let reader = [Barrier, Read(0), Barrier, Read(1), Barrier, Read(0)];
    model(&[&writer, &reader], 1, NEVER)
}

/// Both write words of two pages; diffs are collected at each barrier.
fn collecting() -> Program {
    let one = [
        Write(0),
        Barrier,
        Read(1),
        Write(2),
        Barrier,
        Read(0),
        Read(3),
    ];
    let two = [
        Write(1),
        Barrier,
        Read(0),
        Write(3),
        Barrier,
        Read(2),
        Read(1),
    ];
    model(&[&one, &two], 2, 1)
}

/// One node fills its memory, which does not manage the barrier.
fn full() -> Program {
    let one = [Barrier, Read(0), Barrier, Read(1)];
    let two = [Write(0), Barrier, Write(1), Barrier, Read(0)];
    model(&[&one, &two], 1, 4096)
}

fn three() -> Program {
    let one = [Write(0), Barrier, Read(1)];
    let two = [Write(1), Barrier, Read(0)];
    let three = [Barrier, Read(0), Read(1)];
    model(&[&one, &two, &three], 1, NEVER)
}

/// A whole page that comes before the notice of what is on it, and is written then and after.
fn early() -> Program {
    let one = [Write(0), Barrier, Write(0), Barrier, Barrier];
    let two = [Barrier, Write(1), Barrier, Write(0), Barrier];
    let three = [Read(1), Barrier, Barrier, Barrier, Read(0)];
    model(&[&one, &two, &three], 1, NEVER)
}

#[track_caller]
fn sound(program: Program, shows: &[Sight]) {
    explore(Cluster::new(program).showing(shows)).assert_sound();
}

#[test]
fn writers_of_one_page_lose_nothing() {
    sound(false_sharing(), &[]);
}

#[test]
fn a_page_that_goes_round_under_a_lock_is_never_old() {
    sound(migration(2), &[WholePage]);
    sound(migration(3), &[WholePage]);
}

#[test]
fn a_page_that_is_written_again_before_its_diff_is_asked_for_is_never_old() {
    sound(rewriting(), &[Deferred]);
}

#[test]
fn collections_lose_nothing() {
    sound(collecting(), &[Collection, WholePage]);
    sound(full(), &[Collection]);
}

#[test]
fn what_came_before_its_notice_is_not_written_under_an_older_name() {
    sound(early(), &[WholePage]);
}

#[test]
fn a_third_node_reads_what_two_wrote() {
    sound(three(), &[WholePage]);
}

#[test]
fn what_is_planted_is_caught() {
    for (bug, model) in [
        (Bug::LoseDiff, false_sharing()),
        (Bug::HideFullMemory, full()),
        (Bug::KeepTwin, rewriting()),
        (Bug::HideInterval, migration(2)),
        (Bug::ReorderDiffs, reordered()),
    ] {
        let explored = explore(Cluster::new(model).with(bug));
        assert!(!explored.faults.is_empty(), "{bug:?} is not caught");
    }
}

/// A node that has the page learns of two writes of one word at once.
fn reordered() -> Program {
    let one = [Acquire(1), Write(0), Release(1), Barrier, Barrier];
    let two = [
        Read(1),
        Barrier,
        Acquire(1),
        Read(0),
        Write(0),
        Release(1),
        Barrier,
    ];
    let three = [Read(1), Barrier, Barrier, Read(0)];
    model(&[&one, &two, &three], 1, NEVER)
}
