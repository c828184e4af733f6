//! Programs with sections. The home of the object, and so of its lock, is node 0.

use crate::model::Op::{self, *};
use crate::model::waiting::lock_of;
use crate::model::{Program, Section as Does};

fn lock() -> u8 {
    lock_of(0, 0)
}

fn section(writes: bool, waits: bool) -> Op {
    let object = 0;
    Section(
        lock(),
        Does {
            object,
            writes,
            waits,
            then: None,
        },
    )
}

fn excluded(body: &[Op]) -> Vec<Op> {
    [&[Exclude(lock())], body, &[Readmit(lock())]].concat()
}

/// All nodes write an object in sections, but for the last one, which writes it under the lock.
pub fn sections_and_a_holder(nodes: usize) -> Program {
    let mut all = vec![vec![section(true, false)]; nodes];
    all[nodes - 1] = excluded(&[Read(0), Write(0)]);
    Program::new("sections and a holder", all).objects(&[0])
}

/// A section of another node writes an object at a home that reads and writes it under the lock,
/// and computes.
pub fn section_at_a_home_that_computes() -> Program {
    let home = [
        excluded(&[Read(0), Write(0)]),
        vec![Pause],
        excluded(&[Read(0)]),
    ]
    .concat();
    let caller = vec![section(true, false), section(false, false)];
    Program::new("a section at a home that computes", vec![home, caller]).objects(&[0])
}

/// A node reads what it has cached of another object, which a section's caller has written before.
pub fn sections_pass_on_what_was_flushed() -> Program {
    let home = vec![section(false, true), Read(1)];
    let writer = vec![Write(1), section(true, false)];
    let reader = vec![Read(1), section(false, true), Read(1)];
    Program::new(
        "sections pass on what was flushed",
        vec![home, writer, reader],
    )
    .objects(&[0, 0])
    .racy()
}

/// A node that keeps a copy reads it after a section that has seen another one.
pub fn section_beside_a_keeper() -> Program {
    let acquire = [Share(1), Unshare(1)];
    let keeps = [
        &[Read(0)],
        &acquire[..],
        &[Read(0)],
        &acquire,
        &[Read(0)],
        &[Give(2)],
    ]
    .concat();
    let keeper = [keeps, vec![Take(5), Read(0)]].concat();
    let writer = vec![Take(2), section(true, false), Give(5)];
    Program::new("a section beside a keeper", vec![vec![], keeper, writer]).objects(&[0])
}

/// The caller of a section keeps a copy of what the section writes.
pub fn section_of_a_keeper() -> Program {
    let acquire = [Share(1), Unshare(1)];
    let caller = [
        &[Read(0)],
        &acquire[..],
        &[Read(0)],
        &acquire,
        &[Read(0), section(true, false), Read(0)],
    ];
    Program::new("a section of a keeper", vec![vec![], caller.concat()]).objects(&[0])
}

/// A section waits until a holder has written, and one at its caller until a section has.
pub fn sections_that_wait(nodes: usize) -> Program {
    let waits = excluded(&[SkipIfWritten(0, 1), AwaitWritten(lock()), Read(0)]);
    let mut all = vec![vec![section(false, true)]; nodes];
    all[nodes - 1] = waits;
    all[0] = vec![section(true, false)];
    Program::new("sections that wait", all).objects(&[0])
}

/// A section waits at the home, and the node that writes does so under the lock.
pub fn section_that_waits_for_a_holder(nodes: usize) -> Program {
    let mut all = vec![vec![section(false, true)]; nodes];
    all[nodes - 1] = excluded(&[Write(0)]);
    Program::new("a section that waits for a holder", all).objects(&[0])
}

/// Each node writes its object in a section, which goes on with one that waits for the object of
/// the next node. The last node writes its object under the lock.
pub fn sections_that_go_on(nodes: usize) -> Program {
    let mut all: Vec<Vec<Op>> = (0..nodes as u8)
        .map(|object| {
            let does = Does {
                object,
                writes: true,
                waits: false,
                then: Some((object + 1) % nodes as u8),
            };
            vec![Section(lock(), does)]
        })
        .collect();
    all[nodes - 1] = excluded(&[Write(nodes as u8 - 1)]);
    Program::new("sections that go on", all).objects(&vec![0; nodes])
}

/// No node writes what sections wait for, at the home and at their callers.
pub fn sections_that_wait_for_ever(nodes: usize) -> Program {
    let waits = excluded(&[SkipIfWritten(0, 1), AwaitWritten(lock()), Read(0)]);
    let mut all = vec![waits; nodes];
    all[0] = vec![section(false, true)];
    Program::new("sections that wait for ever", all)
        .objects(&[0])
        .deadlocking()
}
