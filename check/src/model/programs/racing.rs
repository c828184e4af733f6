//! Programs with races for objects and elements.

use crate::model::Op::*;
use crate::model::programs::locked;
use crate::model::{Part, Program};

/// All nodes write one object at once, twice; after each barrier all read it.
pub fn racing_writers(nodes: usize, rounds: usize) -> Program {
    let node = [Write(0), Barrier, Read(0)].repeat(rounds);
    Program::new("racing writers", vec![node; nodes])
        .objects(&[0])
        .racy()
}

/// All nodes write one object at once and read it again before the barrier.
pub fn racing_writers_and_readers(nodes: usize) -> Program {
    let node = vec![Read(0), Write(0), Read(0), Barrier, Read(0)];
    Program::new("racing writers and readers", vec![node; nodes])
        .objects(&[0])
        .racy()
}

/// Node 1 writes under a lock again and again, so that its versions grow; node 0 reads what it
/// can see of that, without the lock, and writes over it. After a barrier both read.
pub fn overwriting_what_was_read() -> Program {
    let end = vec![Barrier, Read(0)];
    let zero = [vec![Read(0), Write(0)], end.clone()].concat();
    let one = [locked(0, &[Write(0)]).repeat(3), end].concat();
    Program::new("overwriting what was read", vec![zero, one])
        .objects(&[1])
        .racy()
}

/// Node 1 writes again and again, and node 0 has an old copy; by then its versions have grown as
/// much by other writes. It writes over the copy. After a barrier both read.
pub fn overwriting_what_is_written_alone() -> Program {
    let end = vec![Barrier, Read(0)];
    let others = locked(1, &[Write(1)]).repeat(2);
    let zero = [vec![Read(0)], others, vec![Write(0)], end.clone()].concat();
    let one = [locked(0, &[Write(0)]).repeat(3), end].concat();
    Program::new("overwriting what is written alone", vec![zero, one])
        .objects(&[1, 0])
        .racy()
}

/// Nodes 0 and 1 write before and after a barrier, so that they race twice; node 2 writes only
/// once it has met the others.
pub fn races_and_order() -> Program {
    let racing = vec![Write(0), Barrier, Write(1), Barrier, Read(0)];
    let ordered = vec![Barrier, Write(0), Barrier, Write(1)];
    Program::new("races and order", vec![racing.clone(), racing, ordered])
        .objects(&[0, 2])
        .racy()
}

/// Node 0 writes alone, so that it could keep the object to itself, then node 1 races with it.
pub fn race_for_what_one_node_had() -> Program {
    let zero = [[Write(0), Barrier].repeat(3), vec![Write(0)]].concat();
    let one = [vec![Barrier; 3], vec![Write(0)]].concat();
    Program::new("a race for what one node had", vec![zero, one])
        .objects(&[0])
        .racy()
}

/// Two nodes write different leaves of one object, then the same one, then each the other's.
pub fn a_race_for_a_leaf_and_order() -> Program {
    let node = |leaves: [u8; 3]| leaves.into_iter().flat_map(|leaf| [Write(leaf), Barrier]);
    let nodes = [node([0, 1, 1]), node([1, 1, 0])].map(Iterator::collect);
    Program::new("a race for a leaf and order", nodes.into())
        .objects(&[0, 0])
        .in_leaves(2)
        .racy()
}

/// Two nodes write elements of which one is the same; both read all.
pub fn parts_that_overlap(rounds: usize) -> Program {
    let node = |part| {
        let round = [WritePart(part), Barrier, ReadPart(Part(0, 3))];
        round.repeat(rounds)
    };
    Program::new(
        "parts that overlap",
        vec![node(Part(0, 2)), node(Part(1, 3))],
    )
    .elements(3)
    .racy()
}

/// Two nodes race for the middle one of three elements; after a barrier they write different
/// ones, and after another each the one that the other wrote.
pub fn a_race_for_a_part_and_order() -> Program {
    let node = |parts: [Part; 3]| parts.map(|part| [WritePart(part), Barrier]).concat();
    let zero = node([Part(0, 2), Part(0, 1), Part(1, 3)]);
    let one = node([Part(1, 3), Part(1, 3), Part(0, 1)]);
    Program::new("a race for a part and order", vec![zero, one])
        .elements(3)
        .racy()
}
