//! Processes that a run starts on nodes.

use dhole::{
    Lock, NodeId, Object, ProcessError, Ref, Refusal, Result, RunError, Worker, anywhere, on, op,
    replicated,
};
use dhole_node::Outcome;
use serde::{Deserialize, Serialize};

use super::{keeps_pages, succeed};
use crate::{Platform, run};

/// Doors that are opened once, and that one may pass when they are open.
#[derive(Serialize, Deserialize, Default)]
struct Doors {
    open: Vec<u32>,
    number: Option<Ref<u64>>,
}

#[dhole::object(crate = "dhole")]
impl Doors {
    pub fn open(&mut self, door: u32) {
        self.open.push(door);
    }

    #[when(self.open.contains(door))]
    pub fn pass(&self, door: u32) {}

    pub fn leave(&mut self, number: Ref<u64>) {
        self.number = Some(number);
    }

    #[when(self.number.is_some())]
    pub fn take(&mut self) -> Ref<u64> {
        self.number.take().expect("the guard is true")
    }
}

/// Adds one to what its parent has written, and hands back what it made.
fn add(w: &mut Worker<'_>, (number, from): (Ref<u64>, u64)) -> Result<Ref<u64>> {
    if number.read(w) != from {
        return Err(dhole::Error::program("its parent's write is not visible"));
    }
    *number.get_mut(w) += 1;
    Ok(w.alloc(from))
}

/// Nodes start processes one after the other that all write one number; how it ended.
///
/// # Errors
/// When a process does not see what its parent wrote, or the parent not what it wrote.
pub fn numbers_go_to_processes_and_come_back(
    on: &dyn Platform,
    seed: u64,
) -> Result<Outcome<()>, RunError> {
    run(on, 3, seed, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        let me = w.node().0;
        for turn in 0..6_u16 {
            if turn % 3 == me {
                let before = number.read(w);
                *number.get_mut(w) = before + 1;
                let to = NodeId((me + 1 + turn % 2) % 3);
                let made = w.spawn(to, (number, before + 1), op!(add))?.join(w)?;
                let seen = (number.read(w), made.read(w));
                if seen != (before + 2, before + 1) {
                    return Err(dhole::Error::program("what a child wrote is not visible"));
                }
            }
            w.barrier()?;
        }
        Ok(())
    })
}

/// References go from node to node through an object: what they point to must be visible.
///
/// # Errors
/// When it is not.
pub fn numbers_are_handed_over_through_an_object(
    on: &dyn Platform,
    seed: u64,
    strategy: dhole::Strategy,
) -> Result<Outcome<()>, RunError> {
    run(on, 3, seed, |w| {
        let (doors, number) =
            w.once(|w| Ok((w.new_object(strategy, Doors::default())?, w.alloc(0_u64))))?;
        // So that each has a copy that can be out of date.
        let _first = number.read(w);
        w.barrier()?;
        if w.node().0 == 0 {
            *number.get_mut(w) = 1;
            doors.leave(w, number)?;
        }
        for _ in 0..4 {
            let number = doors.take(w)?;
            let seen = number.read(w);
            *number.get_mut(w) = seen + 1;
            doors.leave(w, number)?;
        }
        w.barrier()?;
        match number.read(w) {
            13 => Ok(()),
            wrong => Err(dhole::Error::program(format!("{wrong} and not 13"))),
        }
    })
}

/// A process reads the writes before its start, and the joining node reads the writes of the
/// process.
pub fn a_process_sees_its_parents_writes_and_its_parent_its_own(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = numbers_go_to_processes_and_come_back(on, 1);
    let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", on.name()));
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// A node that takes a reference out of an object sees the contents of the referenced object.
pub fn a_reference_in_an_object_brings_what_it_points_to(platform: &dyn Platform) {
    if keeps_pages(platform) {
        return;
    }
    for strategy in [replicated(), on(NodeId(2))] {
        let outcome = numbers_are_handed_over_through_an_object(platform, 1, strategy);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", platform.name()));
        assert!(outcome.races.is_empty(), "{:?}", outcome.races);
    }
}

fn chain(w: &mut Worker<'_>, (doors, door): (Object<Doors>, u32)) -> Result<()> {
    doors.pass(w, door)?;
    doors.open(w, door + 1)?;
    Ok(())
}

/// Each process waits for the one that was started after it, several of them on each node.
pub fn processes_of_a_node_take_turns_where_they_wait(platform: &dyn Platform) {
    if keeps_pages(platform) {
        return;
    }
    for strategy in [replicated(), on(NodeId(1))] {
        succeed(platform, 2, |w| {
            let doors = w.once(|w| Ok(w.new_object(strategy, Doors::default())?))?;
            if w.node().0 == 0 {
                let last_first = (0..8_u32).rev();
                let started = last_first
                    .map(|door| w.spawn(NodeId((door % 2) as u16), (doors, door), op!(chain)));
                let started = started.collect::<Result<Vec<_>, _>>()?;
                doors.open(w, 0)?;
                started
                    .into_iter()
                    .try_for_each(|process| process.join(w))?;
                doors.pass(w, 8)?;
            }
            w.barrier()?;
            Ok(())
        });
    }
}

/// Waits for a door, and counts under a lock.
fn count(w: &mut Worker<'_>, (doors, number, door): (Object<Doors>, Ref<u64>, u32)) -> Result<()> {
    doors.pass(w, door)?;
    Lock::numbered(7).with(w, |w| {
        *number.get_mut(w) += 1;
        Ok(())
    })
}

/// Programs meet at barriers while processes wait and go on.
pub fn processes_go_on_while_programs_meet(platform: &dyn Platform) {
    if keeps_pages(platform) {
        return;
    }
    let outcome = succeed(platform, 3, |w| {
        let (doors, number) = w.once(|w| {
            let doors = w.new_object(on(NodeId(1)), Doors::default())?;
            Ok((doors, w.alloc(0_u64)))
        })?;
        let me = w.node().0;
        let (to, door) = (NodeId((me + 1) % 3), u32::from(me));
        let process = w.spawn(to, (doors, number, door), op!(count))?;
        for round in 0..6 {
            if me == 2 && round % 2 == 0 {
                doors.open(w, round / 2)?;
            }
            w.barrier()?;
        }
        process.join(w)?;
        w.barrier()?;
        assert_eq!(number.read(w), 3);
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// Processes start processes, wherever there are the fewest.
fn sum(w: &mut Worker<'_>, (from, to): (u64, u64)) -> Result<u64> {
    if to - from <= 8 {
        return Ok((from..to).sum());
    }
    let middle = (from + to) / 2;
    let left = w.spawn(anywhere(), (from, middle), op!(sum))?;
    let right = w.spawn(anywhere(), (middle, to), op!(sum))?;
    Ok(left.join(w)? + right.join(w)?)
}

/// A tree of processes.
pub fn processes_start_processes(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    succeed(on, 3, |w| {
        if w.node().0 == 1 {
            let process = w.spawn(anywhere(), (0, 64), op!(sum))?;
            assert_eq!(process.join(w)?, 2016);
        }
        Ok(())
    });
}

/// A panic in a process is an error of the joining node, and the run goes on.
pub fn a_panic_in_a_process_is_an_error_of_its_parent(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    succeed(on, 2, |w| {
        let panics = op!(|w, n: u32| -> Result<u32> { panic!("{n} on {}", w.node()) });
        let to = NodeId(1 - w.node().0);
        let error = w.spawn(to, 5, panics)?.join(w).expect_err("it panics");
        let ProcessError::Ended { on, cause, .. } = &error else {
            panic!("{error}");
        };
        let words = format!("5 on {to}");
        assert_eq!((*on, cause), (to, &Refusal::Panicked(words.into())));
        w.barrier()?;
        Ok(())
    });
}
