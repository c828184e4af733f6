//! Two nodes at barriers where they have something to tell, or nothing.

use crate::model::Op::*;
use crate::model::Program;
use crate::model::programs::locked;

/// Nothing but barriers.
pub fn only_barriers(phases: usize) -> Program {
    Program::new("only barriers", vec![vec![Barrier; phases]; 2]).quietly()
}

/// In each phase each of two nodes writes an object of its own, or does not; after its barrier it
/// reads the other's.
pub fn written_in_some_phases(phases: &[[bool; 2]]) -> Program {
    let node = |me: u8| {
        let phase = |writes: &[bool; 2]| match writes[usize::from(me)] {
            true => vec![Write(me), Barrier, Read(1 - me)],
            false => vec![Barrier, Read(1 - me)],
        };
        phases.iter().flat_map(phase).collect()
    };
    Program::new("written in some phases", vec![node(0), node(1)])
        .objects(&[0, 1])
        .racy()
        .quietly()
}

/// A node writes under a lock, and the other learns of that by the lock or at the barrier; then
/// there is nothing to tell, and then again.
pub fn learnt_by_a_lock(writer: usize) -> Program {
    let body = |me: usize| {
        let locked = match me == writer {
            true => locked(0, &[Read(0), Write(0)]),
            false => locked(0, &[Read(0)]),
        };
        let both = [&locked[..], &[Barrier, Read(0), Barrier]].concat();
        [both, locked, vec![Barrier, Read(0)]].concat()
    };
    Program::new("learnt by a lock", vec![body(0), body(1)])
        .objects(&[0])
        .quietly()
}

/// Both nodes pass barriers, and use one lock between them.
pub fn lock_between_barriers(writes: bool) -> Program {
    let body = match writes {
        true => locked(1, &[Read(0), Write(0)]),
        false => locked(1, &[]),
    };
    let node = [vec![Barrier], body, vec![Barrier, Barrier]].concat();
    Program::new("a lock between barriers", vec![node; 2])
        .objects(&[0])
        .quietly()
}

/// A node keeps a lock over the second barrier, which the other needs to reach it.
pub fn lock_kept_from_a_later_barrier(keeper: usize) -> Program {
    let mut nodes = vec![vec![Barrier, Acquire(1), Release(1), Barrier]; 2];
    nodes[keeper] = vec![Barrier, Acquire(1), Barrier, Release(1)];
    Program::new("a lock kept from a later barrier", nodes)
        .deadlocking()
        .quietly()
}

/// A node does not come to the third barrier.
pub fn skipped_later_barrier(absent: usize) -> Program {
    let mut nodes = vec![vec![Barrier; 3]; 2];
    nodes[absent].pop();
    Program::new("a skipped later barrier", nodes)
        .deadlocking()
        .quietly()
}
