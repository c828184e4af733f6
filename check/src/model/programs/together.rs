//! Programs whose data travel together: objects fetched in one round, those of one page, those that
//! one owns, and intervals sent as differences.

use crate::model::Op::{self, *};
use crate::model::programs::locked;
use crate::model::{Objects, Program};

/// Each node but the last writes its own object in every phase. The last fetches all of them in one
/// round, and with them objects that no node has written.
pub fn fetched_together(nodes: usize, phases: usize) -> Program {
    let last = nodes as u8 - 1;
    let all: Vec<u8> = (0..=last).collect();
    let node = |me| match me == last {
        true => [
            &[Prefetch(Objects::new(&all))],
            &all.iter().map(|object| Read(*object)).collect::<Vec<_>>()[..],
            &[Barrier],
        ]
        .concat(),
        false => vec![Write(me), Barrier],
    };
    let nodes = (0..=last).map(|me| node(me).repeat(phases)).collect();
    let mut program = Program::new("fetched together", nodes).objects(&all).racy();
    program.objects[usize::from(last)] = None;
    program
}

/// The last node has read what lies on its page; others write there, and it reads one object and
/// then the other ones, while the first is being written again.
pub fn fetched_with_its_page(nodes: usize) -> Program {
    let last = nodes as u8 - 1;
    let all = 0..=last;
    let read = |objects: &mut dyn Iterator<Item = u8>| objects.map(Read).collect::<Vec<_>>();
    let reader = [
        read(&mut all.clone()),
        vec![Barrier, Barrier, Read(1), Barrier],
        read(&mut all.clone()),
    ]
    .concat();
    let writer = |me: u8| match me {
        0 => vec![Barrier, Write(0), Write(1), Barrier, Write(0), Barrier],
        _ => vec![Barrier, Write(me + 1), Barrier, Write(me + 1), Barrier],
    };
    let mut all: Vec<_> = (0..last).map(writer).collect();
    all.push(reader);
    let creators = vec![0; nodes];
    Program::new("fetched with its page", all)
        .objects(&creators)
        .aggregating()
}

/// Node 0 writes four objects, of which the others read the first two and, ahead of these, all.
/// Then node 0 writes the third and frees the fourth, where `frees`, and the others read the third.
pub fn objects_read_ahead(nodes: usize, frees: bool) -> Program {
    let all = [Write(0), Write(1), Write(2), Write(3), Barrier];
    let last = if frees { Free(3) } else { Write(3) };
    let zero = [&all[..], &[Write(2), last, Barrier, Read(2)]].concat();
    let other = [Barrier, Read(0), Read(1), Barrier, Read(2), Read(3)];
    let all = std::iter::once(zero).chain(std::iter::repeat_n(other.to_vec(), nodes - 1));
    Program::new("objects read ahead", all.collect())
        .objects(&[0; 4])
        .reading_ahead()
}

/// Node 0 writes two objects by turns, each under its lock; node 1 reads one of them twice.
pub fn two_objects_by_turns() -> Program {
    let write = |object: u8| locked(0, &[Write(object)]);
    let zero = [write(0), write(1), write(0)].concat();
    let read = locked(0, &[Read(0)]);
    Program::new("two objects by turns", vec![zero, read.repeat(2)])
        .objects(&[1, 1])
        .reducing(2)
}

/// Node 0 writes one object and then another one twice, each time under the lock. Node 1 reads the
/// other one. The third interval is sent as the difference from the second. The first lacks what
/// they wrote.
pub fn written_twice_after_another() -> Program {
    let zero = [1, 0, 0].map(|object| locked(0, &[Write(object)])).concat();
    let one = locked(0, &[Read(0)]).repeat(2);
    Program::new("written twice after another", vec![zero, one])
        .objects(&[1, 1])
        .reducing(2)
}

/// Two nodes add to counters that lie on one page, each under its own lock.
pub fn counters_on_one_page() -> Program {
    let add = |of: u8| locked(of, &[Read(of), Write(of)]);
    let zero = [add(0), add(1), add(0)].concat();
    let one = [add(1), add(0)].concat();
    Program::new("counters on one page", vec![zero, one])
        .objects(&[0, 1])
        .aggregating()
}

/// Object 0 owns object 1, which node 1 writes as well: what travels with its owner may be old.
pub fn owned_and_written_by_another() -> Program {
    let zero = locked(0, &[Write(1), Write(0)]);
    let one = locked(0, &[Write(1)]);
    let two = locked(0, &[Read(0), Read(1)]);
    Program::new("owned, and written by another", vec![zero, one, two])
        .objects(&[0, 0])
        .owning(&[(0, 1)])
}

/// Object 0 refers to object 1, which node 1 writes as well. Node 2 follows the reference, and asks
/// node 0 when that has heard of the write: its copy of object 1 is invalid then.
pub fn followed_and_written_by_another() -> Program {
    let zero = [locked(0, &[Write(1), Write(0)]), locked(0, &[Write(0)])].concat();
    let one = locked(0, &[Write(1)]);
    let two = locked(0, &[Read(0), Read(1)]);
    Program::new("followed, and written by another", vec![zero, one, two])
        .objects(&[0, 0])
        .following(&[(0, 1)])
}

/// As [`owned_and_exclusive`], but the objects refer to each other in a circle, and readers follow
/// that.
pub fn followed_and_exclusive(readers: usize) -> Program {
    let mut program = owned_and_exclusive(readers);
    program.name = "followed and exclusive";
    program.owned.clear();
    program.following(&[(0, 1), (1, 2), (2, 0)])
}

/// As [`owned_and_racing`], where the first refers to the second.
pub fn followed_and_racing() -> Program {
    let mut program = owned_and_racing();
    program.name = "followed and racing";
    program.owned.clear();
    program.following(&[(0, 1)])
}

/// Node 0 alone writes an object and the two that it owns, one through the other, until they are
/// exclusive; then the others read them, in phases.
pub fn owned_and_exclusive(readers: usize) -> Program {
    let write = [Write(0), Write(1), Write(2), Barrier];
    let zero = [
        write.repeat(3),
        vec![Barrier],
        vec![Write(1), Barrier, Barrier],
    ]
    .concat();
    let read = [Read(0), Read(2), Read(1), Barrier];
    let one = [
        vec![Barrier; 3],
        read.to_vec(),
        vec![Barrier],
        read.to_vec(),
    ]
    .concat();
    let nodes = [vec![zero], vec![one; readers]].concat();
    Program::new("owned and exclusive", nodes)
        .objects(&[0, 0, 0])
        .owning(&[(0, 1), (1, 2)])
}

/// Node 0 writes three objects one after the other, and again the first two: the third becomes
/// writable with them. Node 1 reads it meanwhile, and all of them later.
pub fn written_one_after_the_other() -> Program {
    let zero = vec![
        Write(0),
        Write(1),
        Write(2),
        Barrier,
        Write(0),
        Write(1),
        Barrier,
        Write(2),
        Barrier,
        Write(1),
        Barrier,
    ];
    let one = vec![
        Barrier,
        Read(2),
        Barrier,
        Read(0),
        Read(1),
        Barrier,
        Read(2),
        Barrier,
        Read(1),
    ];
    Program::new("written one after the other", vec![zero, one]).objects(&[0, 0, 0])
}

/// Node 1 writes three objects that others have, and then again the first two: the third is
/// expected to follow. Node 0 reads it meanwhile. At last node 1 writes all three.
pub fn read_while_expected() -> Program {
    expected(&[Read(2)], &[Write(0), Write(1), Write(2)])
}

/// As above, but node 0 writes the third object meanwhile, and node 1 does not write it again.
pub fn written_while_expected() -> Program {
    expected(&[Write(2)], &[Write(0)])
}

fn expected(meanwhile: &[Op], last: &[Op]) -> Program {
    let all = &[Read(0), Read(1), Read(2)][..];
    let barrier = &[Barrier][..];
    let one = [
        barrier,
        &[Write(0), Write(1), Write(2), Barrier],
        &[Write(0), Write(1), Barrier],
        last,
        barrier,
        all,
    ];
    let zero = [all, barrier, barrier, meanwhile, barrier, barrier, all];
    let nodes = vec![zero.concat(), one.concat()];
    Program::new("expected to be written", nodes).objects(&[1, 1, 1])
}

/// A node writes an owner and the objects that it owns, while another reads them.
pub fn owned_and_racing() -> Program {
    let zero = vec![
        Write(1),
        Write(0),
        Barrier,
        Write(0),
        Write(1),
        Barrier,
        Read(1),
    ];
    let one = vec![
        Read(0),
        Read(1),
        Barrier,
        Read(0),
        Read(1),
        Barrier,
        Write(1),
    ];
    Program::new("owned and racing", vec![zero, one])
        .objects(&[0, 0])
        .owning(&[(0, 1)])
        .racy()
}
