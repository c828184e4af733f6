//! The protocols that run, explored exhaustively.

#[path = "../announcing/mod.rs"]
mod announcing;
mod array_family;
mod arrays;
mod bugs;
mod clerks;
mod collection;
mod collectives;
mod directory;
mod family;
mod freeing;
mod gates;
mod handing;
mod large;
mod litmus;
mod members;
mod memory;
mod memory_threads;
mod objects;
mod pages;
mod parts;
mod races;
mod random;
mod release;
mod rounds;
mod sections;
mod seen;
mod seen_blocks;
mod turnstiles;
mod waits;
mod withdrawal;
mod young;

use conformance::Bug;
use conformance::model::{Cluster, Fault, Program, Sight, explore, hunt};

/// Every run of a program is as it must be, and some show each of these.
#[track_caller]
fn sound(program: Program, sights: &[Sight]) {
    let explored = explore(Cluster::new(program).showing(sights));
    println!("{}: {} states", explored.program, explored.states);
    explored.assert_sound();
}

/// A bug shows in some run of a program, as this fault.
#[track_caller]
fn caught(bug: Bug, program: Program, fault: Fault) {
    let explored = hunt(Cluster::new(program).with(bug), fault);
    assert!(explored.shows(fault), "{bug:?} is not caught: {explored}");
    println!(
        "{bug:?} is caught after {} states of {}",
        explored.states, explored.program
    );
}
