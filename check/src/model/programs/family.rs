//! Programs for the `update` and `home` protocols: pushes, leaves, copies that are kept, and
//! changes of the protocol.

use dhole_model::Coherence;

use crate::model::Op::{self, *};
use crate::model::programs::locked;
use crate::model::{Part, Program};

/// Node 0 writes an object in every phase, and the others read it after each.
pub fn broadcast(nodes: usize, phases: usize) -> Program {
    let writer = [Write(0), Barrier, Barrier].repeat(phases);
    let reader = [Barrier, Read(0), Barrier].repeat(phases);
    let mut all = vec![reader; nodes];
    all[0] = writer;
    Program::new("broadcast", all).objects(&[0])
}

/// As [`broadcast`], and node 0 sends the object to the others, before they may read it or as they
/// may (`late`).
pub fn propagated(nodes: usize, phases: usize, late: bool) -> Program {
    let writer = match late {
        false => [Write(0), Propagate(0), Barrier, Barrier],
        true => [Write(0), Barrier, Propagate(0), Barrier],
    };
    let reader = [Barrier, Read(0), Barrier].repeat(phases);
    let mut all = vec![reader; nodes];
    all[0] = writer.repeat(phases);
    Program::new("propagated", all).objects(&[0])
}

/// Node 0 writes an object alone until it is exclusive, sends it to node 1, which reads it, and
/// writes it again.
pub fn propagated_when_exclusive() -> Program {
    let zero = [
        &[Write(0), Barrier].repeat(3)[..],
        &[Propagate(0), Barrier, Barrier, Write(0), Barrier],
    ]
    .concat();
    let one = [&[Barrier; 4][..], &[Read(0), Barrier, Barrier, Read(0)]].concat();
    Program::new("propagated when exclusive", vec![zero, one]).objects(&[0])
}

/// Node 1 reads an object once, and node 0 goes on writing it; then both read it.
pub fn read_no_more() -> Program {
    let zero = [
        &[Barrier][..],
        &[Write(0), Barrier].repeat(4)[..],
        &[Read(0)],
    ]
    .concat();
    let one = [&[Read(0)][..], &[Barrier; 5], &[Read(0)]].concat();
    Program::new("read no more", vec![zero, one]).objects(&[0])
}

/// Each node writes a leaf of its own of one object, and after a barrier reads the others'.
pub fn writers_of_one_object(nodes: usize, rounds: usize) -> Program {
    let leaves = nodes as u8;
    let node = |me: u8| {
        let read = (0..leaves).map(Read);
        let round = [vec![Write(me), Barrier], read.collect(), vec![Barrier]].concat();
        round.repeat(rounds)
    };
    let all = (0..leaves).map(node).collect();
    Program::new("writers of one object", all)
        .objects(&vec![0; nodes])
        .in_leaves(leaves)
}

/// The last node reads an object of node 0 in every phase; after some of them `writer` writes it,
/// and after the others `between` happens there.
pub fn read_over_and_over(nodes: usize, writer: usize, phases: &[bool]) -> Program {
    let mut all = vec![Vec::new(); nodes];
    for writes in phases {
        all[nodes - 1].push(Read(0));
        all.iter_mut().for_each(|node| node.push(Barrier));
        if *writes {
            all[writer].push(Write(0));
            all.iter_mut().for_each(|node| node.push(Barrier));
        }
    }
    all[nodes - 1].push(Read(0));
    Program::new("read over and over", all).objects(&[0])
}

/// As above, and the object is written while it is read.
pub fn read_over_and_over_while_written(phases: usize) -> Program {
    let reader = [Read(0), Barrier].repeat(phases);
    let mut writer = vec![Barrier; phases];
    writer.insert(phases - 1, Write(0));
    let nodes = vec![writer, [reader, vec![Read(0)]].concat()];
    Program::new("read over and over while written", nodes)
        .objects(&[0])
        .racy()
}

/// Node 1 alone uses what is at home at node 0, under a lock that both pass; node 0 reads it last.
pub fn used_by_one_elsewhere(rounds: usize) -> Program {
    let one = [vec![Read(0), Write(0)], vec![Barrier]]
        .concat()
        .repeat(rounds);
    let zero = [vec![Barrier; rounds], vec![Read(0), Write(0), Barrier]].concat();
    let nodes = vec![zero, [one, vec![Barrier, Read(0)]].concat()];
    Program::new("used by one elsewhere", nodes).objects(&[0])
}

/// Two nodes each write a leaf of one object under a lock of its own, and read the other's.
pub fn locked_leaves() -> Program {
    let node = |own: u8, other: u8| {
        [
            locked(own, &[Read(own), Write(own)]),
            locked(other, &[Read(other)]),
        ]
        .concat()
    };
    Program::new("locked leaves", vec![node(0, 1), node(1, 0)])
        .objects(&[0, 0])
        .in_leaves(2)
}

/// A node keeps an object at home at node 0, which writes one leaf of it. A third node writes the
/// other leaf, and tells the node that keeps it, while that may still have to hear of the first.
pub fn leaf_beside_one_that_is_outdated() -> Program {
    let acquire = [Share(1), Unshare(1)];
    let keeps = [
        &[Read(1)],
        &acquire[..],
        &[Read(1)],
        &acquire,
        &[Read(1), Give(2), Give(5)],
    ]
    .concat();
    let keeper = [keeps, vec![Take(8), Read(1)]].concat();
    let home = vec![Take(2), Write(0), Give(3)];
    let writer = vec![Take(5), Write(1), Give(8)];
    Program::new(
        "a leaf beside one that is outdated",
        vec![home, keeper, writer],
    )
    .objects(&[0, 0])
    .in_leaves(2)
}

/// All nodes write an object in turn, under one protocol and then under another.
pub fn switched(nodes: usize, to: Coherence) -> Program {
    let node = |me: usize| {
        let phase = |turn| match turn == me {
            true => vec![Read(0), Write(0), Barrier],
            false => vec![Barrier],
        };
        let before: Vec<Op> = (0..nodes).flat_map(phase).collect();
        let after = [vec![Switch(to)], (0..nodes).rev().flat_map(phase).collect()].concat();
        [before, after, vec![Read(0)]].concat()
    };
    Program::new("switched", (0..nodes).map(node).collect()).objects(&[0])
}

/// Node 0 writes what node 1 has read, and both switch the object to a home there: a push may
/// arrive long after the switch. Node 0 goes on writing, and node 1 reads after the next barrier.
pub fn switched_before_a_push_arrives() -> Program {
    let home = Switch(Coherence::Home);
    let zero = vec![
        Write(0),
        Barrier,
        Barrier,
        Write(0),
        home,
        Write(0),
        Barrier,
    ];
    let one = vec![Barrier, Read(0), Barrier, home, Barrier, Read(0)];
    Program::new("switched before a push arrives", vec![zero, one]).objects(&[0])
}

/// Node 0 writes elements in each round, and the others read parts of them. Each reader gets pushes
/// of the part that it reads.
pub fn broadcast_parts(nodes: usize, rounds: usize) -> Program {
    let writer = [WritePart(Part(0, 3)), Barrier, Barrier].repeat(rounds);
    let reader = |part| [Barrier, ReadPart(part), Barrier].repeat(rounds);
    let parts = [Part(0, 2), Part(1, 3)];
    let readers = parts.into_iter().cycle().take(nodes - 1).map(reader);
    let all = std::iter::once(writer).chain(readers).collect();
    Program::new("broadcast of parts", all).elements(3)
}

/// Nodes write different elements at once, round after round, and read them all.
pub fn parts_by_rounds(rounds: usize) -> Program {
    let node = |part| {
        let round = [WritePart(part), Barrier, ReadPart(Part(0, 3)), Barrier];
        round.repeat(rounds)
    };
    let nodes = vec![node(Part(1, 3)), node(Part(0, 1))];
    Program::new("parts by rounds", nodes).elements(3)
}

/// Under a lock, a node writes elements that another node wrote, and elements that no node wrote.
pub fn locked_parts() -> Program {
    let node = |part| locked(0, &[ReadPart(Part(0, 3)), WritePart(part)]).repeat(2);
    let nodes = vec![node(Part(1, 3)), node(Part(0, 2))];
    Program::new("locked parts", nodes).elements(3)
}

/// The last node reads two elements in every phase; after some of them `writer` writes the second
/// of them and another one.
pub fn parts_read_over_and_over(nodes: usize, writer: usize, phases: &[bool]) -> Program {
    let mut all = vec![Vec::new(); nodes];
    for writes in phases {
        all[nodes - 1].push(ReadPart(Part(0, 2)));
        all.iter_mut().for_each(|node| node.push(Barrier));
        if *writes {
            all[writer].push(WritePart(Part(1, 3)));
            all.iter_mut().for_each(|node| node.push(Barrier));
        }
    }
    all[nodes - 1].push(ReadPart(Part(0, 3)));
    Program::new("parts read over and over", all).elements(3)
}

/// As above, and the elements are written while they are read.
pub fn parts_read_while_written(phases: usize) -> Program {
    let reader = [ReadPart(Part(0, 2)), Barrier].repeat(phases);
    let mut writer = vec![Barrier; phases];
    writer.insert(phases - 1, WritePart(Part(1, 3)));
    let nodes = vec![writer, [reader, vec![ReadPart(Part(0, 3))]].concat()];
    Program::new("parts read while written", nodes)
        .elements(3)
        .racy()
}

/// An array changes protocol between two phases, in each of which nodes write parts of it.
pub fn switched_parts(to: Coherence) -> Program {
    let node = |first, second| {
        let all = ReadPart(Part(0, 3));
        vec![
            WritePart(first),
            SwitchArray(to),
            all,
            Barrier,
            WritePart(second),
            Barrier,
            all,
        ]
    };
    let nodes = vec![node(Part(0, 2), Part(1, 2)), node(Part(2, 3), Part(0, 1))];
    Program::new("switched parts", nodes).elements(3)
}

/// As [`switched_before_a_push_arrives`], of elements.
pub fn array_switched_before_a_push_arrives() -> Program {
    let (home, part) = (SwitchArray(Coherence::Home), Part(0, 2));
    let zero = vec![
        WritePart(part),
        Barrier,
        Barrier,
        WritePart(part),
        home,
        WritePart(part),
        Barrier,
    ];
    let read = ReadPart(Part(1, 2));
    let one = vec![Barrier, read, Barrier, home, Barrier, read];
    Program::new("array switched before a push arrives", vec![zero, one]).elements(2)
}
