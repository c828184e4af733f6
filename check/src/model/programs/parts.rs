//! Programs over the elements of one array.

use crate::model::Op::{self, *};
use crate::model::programs::locked;
use crate::model::{Part, Program};

/// Two nodes write different elements of one array, round after round; a reader reads them all.
pub fn parts_of_one_array(rounds: usize) -> Program {
    let zero = [WritePart(Part(0, 1)), Barrier].repeat(rounds);
    let one = [WritePart(Part(1, 3)), Barrier].repeat(rounds);
    let two = [ReadPart(Part(0, 3)), Barrier].repeat(rounds);
    let read = |node: Vec<Op>| [node, vec![ReadPart(Part(0, 3))]].concat();
    Program::new("parts of one array", vec![read(zero), read(one), read(two)])
        .elements(3)
        .racy()
}

/// Each node writes its own elements without others; in the end, under a lock, those of its
/// neighbour as well.
pub fn parts_under_a_lock() -> Program {
    let node = |mine, all| {
        let body = [ReadPart(all), WritePart(mine)];
        [
            locked(0, &body),
            locked(0, &[WritePart(all), ReadPart(all)]),
        ]
        .concat()
    };
    let nodes = vec![node(Part(0, 1), Part(0, 2)), node(Part(1, 2), Part(0, 2))];
    Program::new("parts under a lock", nodes).elements(2)
}

/// Node 0 alone writes some elements again and again, and others twice; node 1 reads both under
/// the lock that they are written under.
pub fn parts_written_alone() -> Program {
    let again = locked(0, &[WritePart(Part(0, 2))]).repeat(2);
    let zero = [again, locked(0, &[WritePart(Part(1, 3))])].concat();
    let one = locked(0, &[ReadPart(Part(1, 2)), WritePart(Part(2, 3))]);
    let end = [Barrier, ReadPart(Part(0, 3))];
    let nodes = [zero, one].map(|node| [node, end.to_vec()].concat());
    Program::new("parts written alone", nodes.to_vec()).elements(3)
}

/// Elements and an object, written together and read together under a lock.
pub fn parts_beside_an_object() -> Program {
    let node = |part| locked(0, &[ReadPart(part), Read(0), WritePart(part), Write(0)]).repeat(2);
    let nodes = vec![node(Part(0, 1)), node(Part(0, 2))];
    Program::new("parts beside an object", nodes)
        .objects(&[1])
        .elements(2)
}
