//! Programs for nodes that read objects in the memory of others.

use crate::model::Op::*;
use crate::model::Program;

/// Node 0 writes an object, node 1 reads it, node 0 writes it again, node 1 reads it again: what
/// was read in between must not be written without a notice.
pub fn read_between_writes() -> Program {
    let zero = vec![Write(0), Barrier, Barrier, Write(0), Barrier];
    let one = vec![Barrier, Read(0), Barrier, Barrier, Read(0)];
    Program::new("read between writes", vec![zero, one])
        .objects(&[0])
        .seeing()
}

/// Node 0 writes an object in three phases, and then once more; node 1 reads it before and after
/// that. Where it stays clean, nobody is told of the third version, which node 1 reads, and all are
/// told of the fourth.
pub fn read_between_writes_alone() -> Program {
    let write = [Write(0), Barrier, Barrier];
    let zero = [[Write(0), Barrier].repeat(2), write.repeat(2)].concat();
    let one = [vec![Barrier; 2], [Barrier, Read(0), Barrier].repeat(2)].concat();
    Program::new("read between writes, alone", vec![zero, one]).objects(&[0])
}

/// Node 1 alone writes three objects in three phases, and then the first two: the third is
/// expected to follow. Node 0 reads and writes that meanwhile. At last both read it.
pub fn written_by_another_while_expected() -> Program {
    let alone = [Write(0), Write(1), Write(2), Barrier].repeat(3);
    let end = vec![Barrier, Read(2)];
    let zero = [vec![Barrier; 3], vec![Read(2), Write(2)], end.clone()].concat();
    let one = [alone, vec![Write(0), Write(1)], end].concat();
    Program::new("written by another while expected", vec![zero, one]).objects(&[1, 1, 1])
}

/// Node 0 writes two objects until they are exclusive, and node 1 reads them one after the other.
pub fn read_beside_what_was_exclusive() -> Program {
    let alone = [Write(0), Write(1), Barrier];
    let zero = [alone.repeat(3), vec![Barrier], alone.to_vec()].concat();
    let read = [Read(0), Read(1)];
    let one = [
        vec![Barrier; 3],
        read.to_vec(),
        vec![Barrier; 2],
        read.to_vec(),
    ];
    Program::new("read beside what was exclusive", vec![zero, one.concat()])
        .objects(&[0, 0])
        .seeing()
}

/// Node 0 writes two objects, node 1 reads the second, and node 0 writes both again: what becomes
/// writable with the first, because it is expected to be written, was read in between.
pub fn read_beside_what_is_written() -> Program {
    let zero = vec![
        Write(0),
        Write(1),
        Barrier,
        Barrier,
        Write(0),
        Write(1),
        Barrier,
    ];
    let one = vec![Barrier, Read(1), Barrier, Barrier, Read(1)];
    Program::new("read beside what is written", vec![zero, one])
        .objects(&[0, 0])
        .seeing()
}

/// As above, with a third node that reads later.
pub fn read_between_writes_by_two() -> Program {
    let zero = vec![Write(0), Barrier, Barrier, Write(0), Barrier];
    let one = vec![Barrier, Read(0), Barrier, Barrier, Read(0)];
    let two = vec![Barrier, Barrier, Barrier, Read(0)];
    Program::new("read between writes, by two", vec![zero, one, two])
        .objects(&[0])
        .seeing()
}

/// Node 0 writes an object of two leaves while others read it.
pub fn read_while_two_leaves_are_written(readers: usize) -> Program {
    let zero = vec![Write(0), Write(1), Pause, Write(0), Write(1)];
    let reader = vec![Read(0), Read(1), Barrier, Read(0), Read(1)];
    let mut nodes = vec![[zero, vec![Barrier]].concat()];
    nodes.resize(1 + readers, reader);
    Program::new("two leaves read while written", nodes)
        .objects(&[0, 0])
        .in_leaves(2)
        .racy()
        .seeing()
}

/// Node 0 writes one leaf of an object in each phase, node 1 reads the other one meanwhile.
pub fn one_leaf_read_while_the_other_is_written() -> Program {
    let zero = vec![Write(0), Barrier, Write(0), Barrier, Write(0), Barrier];
    let one = vec![
        Read(1),
        Barrier,
        Read(1),
        Barrier,
        Barrier,
        Read(0),
        Read(1),
    ];
    Program::new("one leaf read while the other is written", vec![zero, one])
        .objects(&[0, 0])
        .in_leaves(2)
        .seeing()
}

/// Node 0 frees one of its objects and writes another one, while node 1 reads both.
pub fn freed_while_read_there() -> Program {
    let zero = vec![Free(0), Write(1)];
    let one = vec![Read(0), Read(1)];
    Program::new("freed while read", vec![zero, one])
        .objects(&[0, 0])
        .racy()
        .seeing()
}

/// Two nodes write an object in turns, under a lock, and a third one reads it.
pub fn wanders_and_is_read() -> Program {
    let writer = vec![Acquire(0), Read(0), Write(0), Release(0)];
    let reader = vec![Acquire(0), Read(0), Release(0)];
    Program::new("wanders and is read", vec![writer.clone(), writer, reader])
        .objects(&[0])
        .seeing()
}

/// Node 0 writes an object in three phases, which node 1 reads after each.
pub fn written_and_read_in_phases() -> Program {
    let zero = [Write(0), Barrier, Barrier].repeat(3);
    let one = [Barrier, Read(0), Barrier].repeat(3);
    Program::new("written and read in phases", vec![zero, one])
        .objects(&[0])
        .seeing()
}
