//! Programs without races: locks and barriers order all reads and writes.

use crate::model::Op::*;
use crate::model::Program;
use crate::model::programs::locked;

/// Node 0 writes data and then, under a lock, a flag; node 1 reads the data if it sees the flag.
pub fn message_passing_by_lock() -> Program {
    let writer = [vec![Write(0)], locked(0, &[Write(1)])].concat();
    let reader = locked(0, &[ReadOrSkip(1, 1), Read(0)]);
    Program::new("message passing by lock", vec![writer, reader]).objects(&[0, 0])
}

/// Node 0 writes, all meet at a barrier, node 1 reads and writes, all meet, node 0 reads.
pub fn message_passing_by_barrier() -> Program {
    let zero = vec![Write(0), Barrier, Barrier, Read(0), Write(0)];
    let one = vec![Barrier, Read(0), Write(0), Barrier];
    Program::new("message passing by barrier", vec![zero, one]).objects(&[0])
}

/// Node 0 writes an object of node 1 before it brings a value to all; all read the object.
pub fn once(nodes: usize) -> Program {
    let mut all = vec![vec![Once, Read(0)]; nodes];
    all[0].insert(0, Write(0));
    Program::new("once", all).objects(&[1])
}

/// Node 0 writes under lock 0; node 1, if it sees that, writes under lock 1 as well; node 2, if
/// it sees that, reads what node 0 wrote: happens-before through a node in between.
pub fn chain_of_locks() -> Program {
    let zero = locked(0, &[Write(0)]);
    let one = locked(0, &[ReadOrSkip(0, 3), Acquire(1), Write(1), Release(1)]);
    let two = locked(1, &[ReadOrSkip(1, 1), Read(0)]);
    Program::new("chain of locks", vec![zero, one, two]).objects(&[0, 2])
}

/// Two objects of one node, written by two nodes at once, each under its own lock; each reads the
/// other's object.
pub fn two_objects() -> Program {
    let zero = [locked(0, &[Write(0)]), locked(1, &[Read(1)])].concat();
    let one = [locked(1, &[Write(1)]), locked(0, &[Read(0)])].concat();
    Program::new("two objects, two locks", vec![zero, one]).objects(&[0, 0])
}

/// All nodes add to a counter under a lock, then read it after a barrier.
pub fn counter(nodes: usize, rounds: usize) -> Program {
    let add = locked(0, &[Read(0), Write(0)]).repeat(rounds);
    let node = [add, vec![Barrier, Read(0)]].concat();
    Program::new("counter under a lock", vec![node; nodes]).objects(&[1])
}

/// Two nodes write an object in turns, and one of them another one; a third node reads both when
/// it gets the lock.
pub fn written_twice_while_away() -> Program {
    let zero = [locked(0, &[Write(0)]), locked(0, &[Read(0), Write(0)])].concat();
    let one = locked(0, &[Read(0), Write(0), Write(1)]);
    let two = locked(0, &[Read(1), Read(0)]);
    Program::new("written twice while away", vec![zero, one, two]).objects(&[0, 2])
}

/// All nodes want one lock and nothing else.
pub fn contention(nodes: usize, rounds: usize) -> Program {
    Program::new(
        "contention for a lock",
        vec![locked(0, &[]).repeat(rounds); nodes],
    )
}

/// Node 1 reads what node 0 is writing.
pub fn read_while_written() -> Program {
    let zero = vec![Write(0), Write(0), Pause, Write(0), Barrier, Read(0)];
    let one = vec![Read(0), Barrier, Read(0)];
    Program::new("read while written", vec![zero, one])
        .objects(&[0])
        .racy()
}

/// As above, round after round, so that node 0 keeps pre-images of what it has served.
pub fn read_while_written_again() -> Program {
    let zero = vec![
        Write(0),
        Barrier,
        Write(0),
        Barrier,
        Write(0),
        Barrier,
        Read(0),
    ];
    let one = vec![
        Read(0),
        Barrier,
        Read(0),
        Barrier,
        Read(0),
        Barrier,
        Read(0),
    ];
    Program::new("read while written, again", vec![zero, one])
        .objects(&[0])
        .racy()
}

/// Two readers ask for what node 0 writes for the second time.
pub fn two_read_while_written() -> Program {
    let zero = vec![Write(0), Barrier, Write(0), Barrier];
    let reader = vec![Read(0), Barrier, Read(0), Barrier, Read(0)];
    let nodes = vec![zero, reader.clone(), reader];
    Program::new("two read while written", nodes)
        .objects(&[0])
        .racy()
}

/// Node 1 acquires a lock of node 0 again and again; node 0 wants it once.
pub fn acquired_again() -> Program {
    let zero = locked(0, &[Read(0), Write(0)]);
    let one = locked(0, &[Read(0), Write(0)]).repeat(3);
    Program::new("a lock acquired again", vec![zero, one]).objects(&[0])
}

/// Each node writes its own object under a lock and, after a barrier, reads those of the others.
pub fn barrier_after_lock(nodes: usize) -> Program {
    let node = |me: u8| {
        let read = (0..nodes as u8).map(Read);
        [locked(0, &[Write(me)]), vec![Barrier], read.collect()].concat()
    };
    let objects: Vec<u8> = (0..nodes as u8).collect();
    let all = (0..nodes as u8).map(node).collect();
    Program::new("barrier after lock", all).objects(&objects)
}

/// One node writes an object again and again, so that it stays writable and is announced no more;
/// the others read and write it under the same lock, and all read it after a barrier.
pub fn written_alone(nodes: usize, writer: usize) -> Program {
    let again = locked(0, &[Write(0)]).repeat(3);
    let asks = locked(0, &[Read(0), Write(0)]);
    let node = |me| {
        let body = if me == writer { &again } else { &asks };
        [body.clone(), vec![Barrier, Read(0)]].concat()
    };
    let all = (0..nodes).map(node).collect();
    Program::new("written alone", all).objects(&[writer as u8])
}

/// Node 0 writes an object in every phase; node 1 reads it, or races to write it, in the last one.
pub fn written_alone_in_phases(races: bool) -> Program {
    let zero = [Write(0), Barrier].repeat(4);
    let last = if races {
        vec![Write(0), Read(0)]
    } else {
        vec![]
    };
    let one = [vec![Barrier; 3], last, vec![Barrier, Read(0)]].concat();
    let zero = [zero, vec![Read(0)]].concat();
    let program = Program::new("written alone in phases", vec![zero, one]).objects(&[1]);
    if races { program.racy() } else { program }
}

/// Locks taken hand over hand along a list of three objects.
pub fn hand_over_hand() -> Program {
    let mut walk = vec![Acquire(0), Write(0)];
    for next in 1..3 {
        walk.extend([Acquire(next), Release(next - 1), Write(next)]);
    }
    walk.push(Release(2));
    Program::new("hand over hand", vec![walk; 2]).objects(&[0, 1, 0])
}

/// Nodes write places of a row that no node has written, and read their neighbours'.
pub fn row_of_zeros(nodes: usize) -> Program {
    let node = |me: u8| {
        let next = (me + 1) % nodes as u8;
        vec![
            Read(me),
            Write(me),
            Barrier,
            Read(next),
            Barrier,
            Write(next),
            Barrier,
            Read(me),
        ]
    };
    Program::new("row of zeros", (0..nodes as u8).map(node).collect()).zeros(nodes)
}

/// An object wanders: each node writes it in turn, between barriers.
pub fn wandering(nodes: usize) -> Program {
    let node = |me| {
        let phase = |turn| {
            if turn == me {
                vec![Read(0), Write(0), Barrier]
            } else {
                vec![Barrier]
            }
        };
        [(0..nodes).flat_map(phase).collect(), vec![Read(0)]].concat()
    };
    Program::new("wandering object", (0..nodes).map(node).collect()).objects(&[0])
}
