//! Programs with barriers, with and without news.

use crate::model::Op::*;
use crate::model::Program;
use crate::model::programs::locked;

/// Nothing but barriers.
pub fn only_barriers(nodes: usize, phases: usize) -> Program {
    Program::new("only barriers", vec![vec![Barrier; phases]; nodes]).by_rounds()
}

/// In each phase each node writes an object of its own, or does not; after its barrier it reads
/// that of the node before it.
pub fn written_in_some_phases<const NODES: usize>(phases: &[[bool; NODES]]) -> Program {
    let node = |me: usize| {
        let before = Read(((me + NODES - 1) % NODES) as u8);
        let phase = |writes: &[bool; NODES]| match writes[me] {
            true => vec![Write(me as u8), Barrier, before],
            false => vec![Barrier, before],
        };
        phases.iter().flat_map(phase).collect()
    };
    let creators: Vec<u8> = (0..NODES as u8).collect();
    Program::new("written in some phases", (0..NODES).map(node).collect())
        .objects(&creators)
        .racy()
        .by_rounds()
}

/// A node writes under a lock, and the next one learns of that by the lock or at the barrier; then
/// there is no news, and then again.
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
        .by_rounds()
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
        .by_rounds()
}

/// A node keeps a lock over the second barrier, which the next one needs to reach it.
pub fn lock_kept_from_a_later_barrier(nodes: usize, keeper: usize) -> Program {
    let mut all = vec![vec![Barrier; 2]; nodes];
    all[keeper] = vec![Barrier, Acquire(1), Barrier, Release(1)];
    all[(keeper + 1) % nodes] = vec![Barrier, Acquire(1), Release(1), Barrier];
    Program::new("a lock kept from a later barrier", all)
        .deadlocking()
        .by_rounds()
}

/// A node does not come to the last barrier.
pub fn skipped_later_barrier(nodes: usize, absent: usize) -> Program {
    let mut all = vec![vec![Barrier; 2]; nodes];
    all[absent].pop();
    Program::new("a skipped later barrier", all)
        .deadlocking()
        .by_rounds()
}
