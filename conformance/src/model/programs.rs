//! The programs that are explored.

use dhole_model::Coherence;

use crate::model::Op::{self, *};
use crate::model::{Objects, Part, Program};

/// A lock held around what `body` does.
fn locked(lock: u8, body: &[Op]) -> Vec<Op> {
    [&[Acquire(lock)], body, &[Release(lock)]].concat()
}

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

/// Node 0 allocates an object and, under a lock, says so; node 1 reads it if it knows of it.
pub fn allocated_meanwhile() -> Program {
    let zero = [vec![Alloc(1)], locked(0, &[Write(0)]), vec![Write(1)]].concat();
    let one = locked(0, &[ReadOrSkip(0, 1), Read(1)]);
    Program::new("allocated meanwhile", vec![zero, one])
        .objects(&[1, 0])
        .racy()
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

/// Nodes write the places of a row that nobody has written, and read their neighbours'.
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

/// Node 0 writes an object in every phase, and the others read it after each.
pub fn broadcast(nodes: usize, phases: usize) -> Program {
    let writer = [Write(0), Barrier, Barrier].repeat(phases);
    let reader = [Barrier, Read(0), Barrier].repeat(phases);
    let mut all = vec![reader; nodes];
    all[0] = writer;
    Program::new("broadcast", all).objects(&[0])
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

/// As above, and what is written is written while it is read.
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

/// Two nodes write different leaves of one object, then the same one, then each the other's.
pub fn a_race_for_a_leaf_and_order() -> Program {
    let node = |leaves: [u8; 3]| leaves.into_iter().flat_map(|leaf| [Write(leaf), Barrier]);
    let nodes = [node([0, 1, 1]), node([1, 1, 0])].map(Iterator::collect);
    Program::new("a race for a leaf and order", nodes.into())
        .objects(&[0, 0])
        .in_leaves(2)
        .racy()
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

/// Each node but the last writes its own object in every phase; the last fetches all of them in
/// one round, and what nobody has written among them.
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

/// Node 0 writes two objects by turns, each under its lock; node 1 reads one of them twice.
pub fn two_objects_by_turns() -> Program {
    let write = |object: u8| locked(0, &[Write(object)]);
    let zero = [write(0), write(1), write(0)].concat();
    let read = locked(0, &[Read(0)]);
    Program::new("two objects by turns", vec![zero, read.repeat(2)])
        .objects(&[1, 1])
        .reducing(2)
}

/// Node 0 writes one object and then another one twice, each time under the lock; node 1 reads the
/// other one. The third interval is told against the second; the first one lacks what they wrote.
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

/// Object 0 owns object 1, which node 1 writes as well: what travels with its owner may be old.
pub fn owned_and_written_by_another() -> Program {
    let zero = locked(0, &[Write(1), Write(0)]);
    let one = locked(0, &[Write(1)]);
    let two = locked(0, &[Read(0), Read(1)]);
    Program::new("owned, and written by another", vec![zero, one, two])
        .objects(&[0, 0])
        .owning(&[(0, 1)])
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

/// An owner and what it owns are written by one node while another reads them.
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

/// A lock is held over a barrier, and is free afterwards.
pub fn lock_over_barrier() -> Program {
    let zero = vec![Acquire(1), Write(0), Barrier, Write(0), Release(1)];
    let one = vec![Barrier, Acquire(1), Read(0), Release(1)];
    Program::new("lock over a barrier", vec![zero, one]).objects(&[0])
}

/// Two nodes take two locks in different orders.
pub fn crosswise() -> Program {
    let node = |first, second| {
        vec![
            Acquire(first),
            Acquire(second),
            Write(0),
            Release(second),
            Release(first),
        ]
    };
    Program::new("crosswise", vec![node(0, 1), node(1, 0)])
        .objects(&[0])
        .deadlocking()
}

/// As above, and a third node wants one of the locks.
pub fn crosswise_with_bystander() -> Program {
    let Program { mut nodes, .. } = crosswise();
    nodes.push(locked(1, &[]));
    Program::new("crosswise with bystander", nodes)
        .objects(&[0])
        .deadlocking()
}

/// Three nodes around a table, each with the fork of its neighbour.
pub fn philosophers() -> Program {
    let node = |me: u8| {
        let next = (me + 1) % 3;
        vec![Acquire(me), Acquire(next), Release(next), Release(me)]
    };
    Program::new("three philosophers", (0..3).map(node).collect()).deadlocking()
}

/// Node 1 holds a lock over a barrier that node 0 needs the lock to reach.
pub fn lock_kept_from_barrier(nodes: usize) -> Program {
    let mut all = vec![vec![Barrier]; nodes];
    all[0] = [locked(1, &[]), vec![Barrier]].concat();
    all[1] = locked(1, &[Barrier]);
    Program::new("a lock kept from a barrier", all).deadlocking()
}

/// The last node does not come to a barrier.
pub fn skipped_barrier(nodes: usize) -> Program {
    let mut all = vec![vec![Barrier]; nodes];
    all[nodes - 1].clear();
    Program::new("a skipped barrier", all).deadlocking()
}

/// Node 1 finishes with a lock that node 0 wants.
pub fn lock_kept_for_ever() -> Program {
    let nodes = vec![locked(1, &[]), vec![Acquire(1)]];
    Program::new("a lock kept for ever", nodes).deadlocking()
}

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

/// A node waits for a permit that nobody releases.
pub fn permit_that_nobody_gives(nodes: usize) -> Program {
    let mut all = vec![vec![]; nodes];
    all[nodes - 1] = vec![Take(0)];
    Program::new("a permit that nobody gives", all).deadlocking()
}

/// Nodes wait under a lock until another has written, and read it.
pub fn wait_until_written(nodes: usize, all: bool) -> Program {
    let notify = if all { NotifyAll(1) } else { NotifyOne(1) };
    let waits = locked(1, &[SkipIfWritten(0, 1), WaitOn(1), Read(0)]);
    let mut nodes = vec![waits; nodes];
    nodes[0] = locked(1, &[Write(0), notify]);
    Program::new("wait until written", nodes).objects(&[0])
}

/// A node waits on a condition that nobody notifies, and another for a permit.
pub fn condition_that_nobody_notifies() -> Program {
    let zero = locked(0, &[WaitOn(0)]);
    let one = [locked(0, &[]), vec![Take(0)]].concat();
    Program::new("a condition that nobody notifies", vec![zero, one]).deadlocking()
}

/// Node 0 writes elements in each round, and the others read parts of them: who reads what is
/// pushed that.
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

/// Under a lock, a node writes what another one wrote, and what nobody did.
pub fn locked_parts() -> Program {
    let node = |part| locked(0, &[ReadPart(Part(0, 3)), WritePart(part)]).repeat(2);
    let nodes = vec![node(Part(1, 3)), node(Part(0, 2))];
    Program::new("locked parts", nodes).elements(3)
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

/// Elements and an object, written together and read together under a lock.
pub fn parts_beside_an_object() -> Program {
    let node = |part| locked(0, &[ReadPart(part), Read(0), WritePart(part), Write(0)]).repeat(2);
    let nodes = vec![node(Part(0, 1)), node(Part(0, 2))];
    Program::new("parts beside an object", nodes)
        .objects(&[1])
        .elements(2)
}

/// Node 0 frees an array that node 1 has read, and will read again.
pub fn freed_array_before_a_barrier() -> Program {
    let read = ReadPart(Part(0, 2));
    let zero = vec![Barrier, WritePart(Part(0, 1)), FreeArray, Barrier];
    let one = vec![read, Barrier, Barrier, read, WritePart(Part(1, 2))];
    Program::new("freed array before a barrier", vec![zero, one]).elements(2)
}

/// An array is read by all and freed by one of them, who has written it; others may still use it
/// under the same lock, and are told.
pub fn freed_array() -> Program {
    let zero = locked(0, &[WritePart(Part(0, 2)), FreeArray]);
    let one = locked(0, &[ReadPart(Part(0, 1)), WritePart(Part(1, 2))]);
    let again = |node: Vec<Op>| [node, vec![Barrier, ReadPart(Part(0, 2))]].concat();
    Program::new("freed array", vec![again(zero), again(one)]).elements(2)
}
