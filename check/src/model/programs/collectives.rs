//! Programs with collectives: nodes share and combine values, and read what others wrote before.

use dhole_protocol::CollectiveKind::{self, AllReduce, Broadcast as FromFirst, Reduce};

use crate::model::Op::*;
use crate::model::Program;
use crate::model::collecting::told_of;
use crate::model::programs::locked;

/// Each node writes an object of its own, all call a collective, and then each reads what it has
/// been told of: of `Broadcast` node 0's, of `Scatter` its sender's, of `Reduce` node 0 all.
pub fn written_before(kind: CollectiveKind, nodes: u8) -> Program {
    let node = |me: u8| {
        let told = told_of(kind, usize::from(me), usize::from(nodes));
        let before = vec![Write(me), Collect(kind)];
        [before, told.map(|node| Read(node as u8)).collect()].concat()
    };
    let creators: Vec<u8> = (0..nodes).collect();
    Program::new(
        "written before a collective",
        (0..nodes).map(node).collect(),
    )
    .objects(&creators)
}

/// As above, with two nodes that had copies of the object that the other writes.
pub fn told_first(kind: CollectiveKind) -> Program {
    let mut program = written_before(kind, 2);
    for (me, body) in program.nodes.iter_mut().enumerate() {
        let seen = [Read(1 - me as u8), Barrier];
        body.splice(0..0, seen);
    }
    program
}

/// Node 0 writes an object again and again, and tells the others each time; they read it after all
/// have met.
pub fn told_again_and_again(nodes: usize, times: usize) -> Program {
    let writer = [Write(0), Collect(FromFirst), Collect(AllReduce)].repeat(times);
    let reader = [Collect(FromFirst), Read(0), Collect(AllReduce)].repeat(times);
    let mut all = vec![reader; nodes];
    all[0] = writer;
    Program::new("told again and again", all).objects(&[0])
}

/// Nodes call collectives of one kind and do nothing else, so that some run ahead.
pub fn running_ahead(kind: CollectiveKind, nodes: usize, times: usize) -> Program {
    Program::new("running ahead", vec![vec![Collect(kind); times]; nodes])
}

/// A counter under a lock, with a collective between.
pub fn counted_between(kind: CollectiveKind, nodes: usize) -> Program {
    let body = locked(0, &[Read(0), Write(0)]);
    let node = [body.clone(), vec![Collect(kind)], body].concat();
    Program::new("counted between collectives", vec![node; nodes]).objects(&[0])
}

/// Collectives among barriers without news.
pub fn among_barriers(kind: CollectiveKind) -> Program {
    let node = vec![
        Barrier,
        Collect(kind),
        Barrier,
        Collect(kind),
        Collect(AllReduce),
        Barrier,
    ];
    Program::new("collectives among barriers", vec![node; 2]).by_rounds()
}

/// A node keeps a lock over a collective, which another needs to reach it.
pub fn lock_kept_from_collective(kind: CollectiveKind, nodes: usize) -> Program {
    let mut all = vec![vec![Collect(AllReduce), Collect(kind)]; nodes];
    all[0] = vec![Acquire(0), Collect(AllReduce), Collect(kind), Release(0)];
    all[1] = vec![Collect(AllReduce), Acquire(0), Release(0), Collect(kind)];
    Program::new("a lock kept from a collective", all).deadlocking()
}

/// Node 0 waits for node 1's value, and node 1 for node 0's.
pub fn crosswise_collectives() -> Program {
    let both = vec![vec![Collect(Reduce)], vec![Collect(FromFirst)]];
    Program::new("crosswise collectives", both).deadlocking()
}
