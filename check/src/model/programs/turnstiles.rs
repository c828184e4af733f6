//! Programs with read-write locks, semaphores and conditions.

use crate::model::Op::{self, *};
use crate::model::Program;
use crate::model::programs::locked;
use crate::model::waiting::lock_of;

/// A read-write lock held to read around what `body` does.
fn shared(lock: u8, body: &[Op]) -> Vec<Op> {
    [&[Share(lock)], body, &[Unshare(lock)]].concat()
}

/// A read-write lock held to write around what `body` does.
fn excluded(lock: u8, body: &[Op]) -> Vec<Op> {
    [&[Exclude(lock)], body, &[Readmit(lock)]].concat()
}

/// A writer and readers of one object.
pub fn readers_and_writer(readers: usize) -> Program {
    let writer = excluded(0, &[Read(0), Write(0)]);
    let mut nodes = vec![shared(0, &[Read(0), Read(0)]); readers + 1];
    nodes[readers] = writer;
    Program::new("readers and a writer", nodes).objects(&[0])
}

/// All nodes write under a read-write lock, and read under it.
pub fn writers_and_readers(nodes: usize) -> Program {
    let node = [excluded(0, &[Read(0), Write(0)]), shared(0, &[Read(0)])].concat();
    Program::new("writers that read", vec![node; nodes]).objects(&[0])
}

/// A writer, a reader that writes another object, and a writer that reads both.
pub fn writer_to_reader_to_writer() -> Program {
    let zero = excluded(1, &[Write(0)]);
    let one = shared(1, &[Read(0), Write(1)]);
    let two = excluded(1, &[Read(1), Read(0), Write(0)]);
    Program::new("writer to reader to writer", vec![zero, one, two]).objects(&[0, 2])
}

/// Two read-write locks taken crosswise.
pub fn read_write_locks_crosswise() -> Program {
    let zero = shared(0, &excluded(1, &[]));
    let one = shared(1, &excluded(0, &[]));
    Program::new("read-write locks crosswise", vec![zero, one]).deadlocking()
}

/// Two nodes read under a read-write lock, one of them with another lock around it and one with it
/// inside.
pub fn readers_that_lock() -> Program {
    let zero = locked(0, &shared(1, &[]));
    let one = shared(1, &locked(0, &[]));
    Program::new("readers that lock", vec![zero, one])
}

/// Two nodes hand an object to each other by semaphores.
pub fn hand_over_by_semaphores() -> Program {
    let zero = vec![Write(0), Give(1), Take(0), Read(0)];
    let one = vec![Take(1), Read(0), Write(0), Give(0)];
    Program::new("hand-over by semaphores", vec![zero, one]).objects(&[0])
}

/// Two nodes release permits that two acquire.
pub fn two_permits(nodes: usize) -> Program {
    let mut all = vec![vec![Take(1), Read(0)]; nodes];
    all[0] = [vec![Write(0)], vec![Give(1); nodes - 1]].concat();
    Program::new("permits for all others", all).objects(&[0])
}

/// A node releases two permits, one after the other, and another acquires both.
pub fn permits_in_turn() -> Program {
    let zero = vec![Write(0), Give(1), Write(1), Give(1)];
    let one = vec![Take(1), Read(0), Take(1), Read(1)];
    Program::new("permits in turn", vec![zero, one]).objects(&[0, 1])
}

/// A node releases two permits and writes in between; their manager has met it meanwhile, and
/// acquires both before it reads.
pub fn permits_that_overtake() -> Program {
    let zero = vec![Barrier, Give(1), Write(0), Give(1)];
    let one = vec![Read(0), Barrier, Take(1), Take(1), Read(0)];
    Program::new("permits that overtake", vec![zero, one]).objects(&[0])
}

/// Nodes wait under a read-write lock until another has written, and read it.
pub fn await_what_is_written(nodes: usize, all: bool) -> Program {
    awaited_under(1, nodes, all).objects(&[0])
}

/// The same under the lock of the object, which its home manages. Its home is the node that writes,
/// or one that waits.
pub fn await_under_an_objects_lock(nodes: usize, home: u8) -> Program {
    awaited_under(lock_of(0, home), nodes, true).objects(&[home])
}

fn awaited_under(lock: u8, nodes: usize, all: bool) -> Program {
    let wake = if all { WakeAll(lock) } else { WakeOne(lock) };
    let waits = excluded(lock, &[SkipIfWritten(0, 1), Await(lock), Read(0)]);
    let mut nodes = vec![waits; nodes];
    nodes[0] = excluded(lock, &[Write(0), wake]);
    Program::new("await what is written", nodes)
}

/// All nodes write an object under its lock, and read it under the lock.
pub fn writers_under_an_objects_lock(nodes: usize) -> Program {
    let lock = lock_of(0, 1);
    let node = [
        excluded(lock, &[Read(0), Write(0)]),
        shared(lock, &[Read(0)]),
    ]
    .concat();
    Program::new("writers under the lock of an object", vec![node; nodes]).objects(&[1])
}

/// A node that waits on the condition of a read-write lock keeps another lock, for which the node
/// waits that would wake it.
pub fn lock_kept_from_whoever_wakes() -> Program {
    let zero = locked(0, &excluded(1, &[Await(1)]));
    let one = excluded(1, &[Acquire(0), WakeOne(1)]);
    Program::new("a lock kept from whoever wakes", vec![zero, one]).deadlocking()
}

/// Nodes wait under a lock until another has written, and read it.
pub fn wait_until_written(nodes: usize, all: bool) -> Program {
    let notify = if all { NotifyAll(1) } else { NotifyOne(1) };
    let waits = locked(1, &[SkipIfWritten(0, 1), WaitOn(1), Read(0)]);
    let mut nodes = vec![waits; nodes];
    nodes[0] = locked(1, &[Write(0), notify]);
    Program::new("wait until written", nodes).objects(&[0])
}
