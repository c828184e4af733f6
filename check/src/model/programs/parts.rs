//! Programs over the elements of one array.

use dhole_model::Coherence;

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

/// Node 0 writes the elements in the middle of an array of four, and the next one those beside them
/// at once; then all read all of them.
pub fn parts_of_two_blocks(nodes: usize) -> Program {
    let all = [Barrier, ReadPart(Part(0, 4))];
    let zero = [&[WritePart(Part(1, 3))][..], &all].concat();
    let one = [&[WritePart(Part(0, 1)), WritePart(Part(3, 4))][..], &all].concat();
    let two = all.to_vec();
    let all_nodes = [zero, one, two].into_iter().take(nodes).collect();
    Program::new("parts of two blocks", all_nodes).elements(4)
}

/// An array whose elements two nodes have written changes protocol, as in the engine: node 0 gets
/// all elements under the lazy one in between, for the new one may keep blocks consistent.
pub fn parts_change_protocol(to: Coherence) -> Program {
    let all = ReadPart(Part(0, 3));
    let before = |part| vec![WritePart(part), SwitchArray(Coherence::Lazy)];
    let after = |part| vec![SwitchArray(to), all, Barrier, WritePart(part), Barrier, all];
    let zero = [before(Part(0, 1)), vec![all], after(Part(1, 3))].concat();
    let one = [before(Part(1, 3)), after(Part(0, 1))].concat();
    Program::new("parts change protocol", vec![zero, one]).elements(3)
}

/// Node 0 writes an array and then an element in its middle; the others meanwhile read its
/// beginning, element by element, by the second of which the middle is read ahead; then all read
/// all of it.
pub fn parts_read_ahead(nodes: usize) -> Program {
    let end = [Barrier, ReadPart(Part(0, 4))];
    let zero = [WritePart(Part(0, 4)), Barrier, WritePart(Part(2, 3))];
    let other = [Barrier, ReadPart(Part(0, 1)), ReadPart(Part(1, 2))];
    let all = std::iter::once(&zero[..]).chain(std::iter::repeat_n(&other[..], nodes - 1));
    let all = all.map(|node| [node, &end[..]].concat()).collect();
    Program::new("parts read ahead", all)
        .elements(4)
        .reading_ahead()
}
