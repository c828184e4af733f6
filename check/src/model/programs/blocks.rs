//! Programs for nodes that read blocks of an array in the memory of others. A block has two
//! elements.

use crate::model::Op::*;
use crate::model::programs::locked;
use crate::model::{Part, Program};

/// Node 0 writes a block in some rounds, and node 1 reads it after each but the second: what was
/// read in between must not be written without a notice.
pub fn block_read_between_writes() -> Program {
    let write = [WritePart(Part(0, 2)), Barrier, Barrier];
    let read = [Barrier, ReadPart(Part(0, 2)), Barrier];
    let skip = [Barrier, Barrier];
    let zero = write.repeat(4);
    let one = [&read[..], &skip[..], &read[..], &read[..]].concat();
    Program::new("block read between writes", vec![zero, one])
        .elements(2)
        .seeing()
}

/// Node 0 writes both elements of a block until they are exclusive, and then one of them in each
/// round; node 1 reads the other one from then on.
pub fn block_of_which_a_part_was_exclusive() -> Program {
    let both = [WritePart(Part(0, 1)), WritePart(Part(1, 2)), Barrier];
    let one = [WritePart(Part(0, 1)), Barrier];
    let zero = [both.repeat(2), one.repeat(3), vec![ReadPart(Part(0, 2))]].concat();
    let read = [Barrier, ReadPart(Part(1, 2))];
    let other = [vec![Barrier; 2], read.repeat(3), vec![ReadPart(Part(0, 2))]].concat();
    Program::new("block of which a part was exclusive", vec![zero, other])
        .elements(2)
        .seeing()
}

/// Node 0 writes two blocks again while others read them.
pub fn blocks_read_while_written(readers: usize) -> Program {
    let all = Part(0, 3);
    let zero = vec![WritePart(all), Barrier, WritePart(all), Barrier];
    let reader = vec![Barrier, ReadPart(all), Barrier, ReadPart(all)];
    let mut nodes = vec![zero];
    nodes.resize(1 + readers, reader);
    Program::new("blocks read while written", nodes)
        .elements(3)
        .racy()
        .seeing()
}

/// Two nodes write an element of one block each, and read both.
pub fn block_of_two_writers(rounds: usize) -> Program {
    let node = |mine| {
        let round = [WritePart(mine), Barrier, ReadPart(Part(0, 2)), Barrier];
        round.repeat(rounds)
    };
    let nodes = vec![node(Part(0, 1)), node(Part(1, 2))];
    Program::new("block of two writers", nodes)
        .elements(2)
        .seeing()
}

/// Node 0 writes a block, and then its first element again, under a lock; node 1 writes the second
/// element, under another one. Node 2 reads the first, with which the block of node 0 comes, and
/// then the second.
pub fn block_newer_than_its_elements() -> Program {
    let again = locked(0, &[WritePart(Part(0, 1))]);
    let zero = [&[WritePart(Part(0, 2)), Barrier][..], &again.repeat(2)].concat();
    let one = [&[Barrier][..], &locked(1, &[WritePart(Part(1, 2))])].concat();
    let first = locked(0, &[ReadPart(Part(0, 1))]);
    let second = locked(1, &[ReadPart(Part(1, 2))]);
    let two = [&[Barrier][..], &first, &second].concat();
    Program::new("block newer than its elements", vec![zero, one, two])
        .elements(2)
        .seeing()
}

/// Node 0 writes the first element of a block, and node 1 reads it. Node 0 reads the second, which
/// node 2 wrote: so bytes come into the block that node 1 has read. Then node 0 writes the first
/// element again.
pub fn block_into_which_elements_come() -> Program {
    let first = WritePart(Part(0, 1));
    let zero = vec![
        first,
        Barrier,
        Barrier,
        ReadPart(Part(1, 2)),
        first,
        Barrier,
    ];
    let one = vec![
        Barrier,
        ReadPart(Part(0, 1)),
        Barrier,
        Barrier,
        ReadPart(Part(0, 1)),
    ];
    let two = vec![WritePart(Part(1, 2)), Barrier, Barrier, Barrier];
    Program::new("block into which elements come", vec![zero, one, two])
        .elements(2)
        .seeing()
}

/// Node 0 frees the array while node 1 reads it.
pub fn array_freed_while_read_there() -> Program {
    let zero = vec![WritePart(Part(0, 2)), Barrier, FreeArray];
    let one = vec![Barrier, ReadPart(Part(0, 2))];
    Program::new("array freed while read", vec![zero, one])
        .elements(2)
        .racy()
        .seeing()
}
