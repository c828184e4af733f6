//! Programs whose waits end, and programs whose waits do not.

use crate::model::Op::*;
use crate::model::Program;
use crate::model::programs::locked;

/// A lock is held over a barrier, and is free afterwards.
pub fn lock_over_barrier() -> Program {
    let zero = vec![Acquire(1), Write(0), Barrier, Write(0), Release(1)];
    let one = vec![Barrier, Acquire(1), Read(0), Release(1)];
    Program::new("lock over a barrier", vec![zero, one]).objects(&[0])
}

/// Each node may wait for a lock that the next one has, but they never do so at one moment: node 1
/// has no lock while it waits.
pub fn waits_of_two_moments() -> Program {
    let zero = locked(0, &locked(1, &[]));
    let one = [locked(2, &[]), locked(1, &[])].concat();
    let two = locked(2, &locked(0, &[]));
    Program::new("waits of two moments", vec![zero, one, two])
}

/// Two nodes take two locks in different orders.
pub fn crosswise() -> Program {
    let node = |first, second| {
        vec![
            Acquire(first),
            Acquire(second),
            Write(0),
            Release(second),
            Release(first),
        ]
    };
    Program::new("crosswise", vec![node(0, 1), node(1, 0)])
        .objects(&[0])
        .deadlocking()
}

/// As above, and a third node wants one of the locks.
pub fn crosswise_with_bystander() -> Program {
    let Program { mut nodes, .. } = crosswise();
    nodes.push(locked(1, &[]));
    Program::new("crosswise with bystander", nodes)
        .objects(&[0])
        .deadlocking()
}

/// Three nodes around a table, each with the fork of its neighbour.
pub fn philosophers() -> Program {
    let node = |me: u8| {
        let next = (me + 1) % 3;
        vec![Acquire(me), Acquire(next), Release(next), Release(me)]
    };
    Program::new("three philosophers", (0..3).map(node).collect()).deadlocking()
}

/// Node 1 holds a lock over a barrier that node 0 needs the lock to reach.
pub fn lock_kept_from_barrier(nodes: usize) -> Program {
    let mut all = vec![vec![Barrier]; nodes];
    all[0] = [locked(1, &[]), vec![Barrier]].concat();
    all[1] = locked(1, &[Barrier]);
    Program::new("a lock kept from a barrier", all).deadlocking()
}

/// The last node does not come to a barrier.
pub fn skipped_barrier(nodes: usize) -> Program {
    let mut all = vec![vec![Barrier]; nodes];
    all[nodes - 1].clear();
    Program::new("a skipped barrier", all).deadlocking()
}

/// Node 1 finishes with a lock that node 0 wants.
pub fn lock_kept_for_ever() -> Program {
    let nodes = vec![locked(1, &[]), vec![Acquire(1)]];
    Program::new("a lock kept for ever", nodes).deadlocking()
}

/// A node waits for a permit that no node releases.
pub fn permit_that_nobody_gives(nodes: usize) -> Program {
    let mut all = vec![vec![]; nodes];
    all[nodes - 1] = vec![Take(0)];
    Program::new("a permit that nobody gives", all).deadlocking()
}

/// A node waits on a condition that no node notifies, and another for a permit.
pub fn condition_that_nobody_notifies() -> Program {
    let zero = locked(0, &[WaitOn(0)]);
    let one = [locked(0, &[]), vec![Take(0)]].concat();
    Program::new("a condition that nobody notifies", vec![zero, one]).deadlocking()
}
