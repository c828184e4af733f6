//! Programs that allocate and free objects and arrays while other nodes use them.

use crate::model::Op::{self, *};
use crate::model::programs::locked;
use crate::model::{Part, Program};

/// Node 0 allocates an object and, under a lock, says so; node 1 reads it if it knows of it.
pub fn allocated_meanwhile() -> Program {
    let zero = [vec![Alloc(1)], locked(0, &[Write(0)]), vec![Write(1)]].concat();
    let one = locked(0, &[ReadOrSkip(0, 1), Read(1)]);
    Program::new("allocated meanwhile", vec![zero, one])
        .objects(&[1, 0])
        .racy()
}

/// Node 0 frees what node 1 has read; after a barrier node 1 reads and writes it.
pub fn freed_before_a_barrier(nodes: usize) -> Program {
    let mut all = vec![vec![Read(0), Barrier, Barrier, Read(0), Write(0)]; nodes];
    all[0] = vec![Barrier, Write(0), Free(0), Barrier];
    Program::new("freed before a barrier", all).objects(&[1])
}

/// Node 0 frees what node 1 reads, and node 1 what it read.
pub fn freed_while_read() -> Program {
    let nodes = vec![vec![Free(0), Read(1)], vec![Read(0), Free(1), Read(0)]];
    Program::new("freed while read", nodes)
        .objects(&[0, 1])
        .racy()
}

/// Node 0 frees what node 1 writes, and the last node frees it too.
pub fn freed_while_written(nodes: usize) -> Program {
    let mut all = vec![vec![Write(0), Barrier, Read(0)]; nodes];
    all[0] = vec![Read(0), Free(0), Barrier, Read(0)];
    if nodes > 2 {
        all[nodes - 1] = all[0].clone();
    }
    Program::new("freed while written", all)
        .objects(&[0])
        .racy()
}

/// Node 0 frees an object under a lock; node 1 reads it under the lock, before or after.
pub fn freed_under_a_lock() -> Program {
    let zero = locked(0, &[Write(0), Free(0)]);
    let one = [locked(0, &[Read(0), Write(0)]), locked(0, &[Free(0)])].concat();
    Program::new("freed under a lock", vec![zero, one]).objects(&[1])
}

/// Node 0 frees an array that node 1 has read, and will read again.
pub fn freed_array_before_a_barrier() -> Program {
    let read = ReadPart(Part(0, 2));
    let zero = vec![Barrier, WritePart(Part(0, 1)), FreeArray, Barrier];
    let one = vec![read, Barrier, Barrier, read, WritePart(Part(1, 2))];
    Program::new("freed array before a barrier", vec![zero, one]).elements(2)
}

/// All nodes read an array, and one that has written it frees it. Others may still use it under the
/// same lock, and get an error.
pub fn freed_array() -> Program {
    let zero = locked(0, &[WritePart(Part(0, 2)), FreeArray]);
    let one = locked(0, &[ReadPart(Part(0, 1)), WritePart(Part(1, 2))]);
    let again = |node: Vec<Op>| [node, vec![Barrier, ReadPart(Part(0, 2))]].concat();
    Program::new("freed array", vec![again(zero), again(one)]).elements(2)
}
