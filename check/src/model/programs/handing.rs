//! Programs that hand references over through objects with operations.

use dhole_protocol::objects::Strategy;

use crate::model::Op::{self, *};
use crate::model::Program;
use crate::objects::Op as Do;

/// Every node has a copy of the object, and all have met.
fn after_all_have_read(bodies: Vec<Vec<Op>>) -> Vec<Vec<Op>> {
    let both = |body: Vec<Op>| [vec![Read(0), Barrier], body].concat();
    bodies.into_iter().map(both).collect()
}

/// Node 0 writes an object and hands it over through a counter; node 1, which has an old copy,
/// takes it. Any others look on.
pub fn handed_over(kept: Strategy, nodes: usize) -> Program {
    let mut bodies = vec![vec![]; nodes];
    bodies[0] = vec![Write(0), Call(0, Do::Add)];
    bodies[1] = vec![Call(0, Do::Take), Read(0)];
    let nodes = after_all_have_read(bodies);
    let program = Program::new("handed over through a counter", nodes);
    program.objects(&[0]).counters(&[kept])
}

/// Handed over, written, and handed back.
pub fn handed_back(kept: [Strategy; 2]) -> Program {
    let there = vec![Write(0), Call(0, Do::Add), Call(1, Do::Take), Read(0)];
    let back = vec![Call(0, Do::Take), Write(0), Call(1, Do::Add)];
    let nodes = after_all_have_read(vec![there, back]);
    let program = Program::new("handed over and back", nodes);
    program.objects(&[0]).counters(&kept)
}

/// Node 1 hands on what it was handed, and has not looked at: happens-before passes through it.
pub fn handed_on(kept: [Strategy; 2]) -> Program {
    let nodes = vec![
        vec![Write(0), Call(0, Do::Add)],
        vec![Call(0, Do::Take), Call(1, Do::Add)],
        vec![Read(0), Pause, Call(1, Do::Take), Read(0)],
    ];
    let program = Program::new("handed on by a node in between", nodes);
    program.objects(&[0]).counters(&kept).racy()
}

/// As [`handed_over`], to a node that waits by a guard while others go on.
pub fn awaited(kept: Strategy) -> Program {
    let writer = vec![Write(0), Call(0, Do::Add)];
    let reader = vec![Call(0, Do::Await(1)), Read(0)];
    let nodes = after_all_have_read(vec![writer, reader.clone(), reader]);
    let program = Program::new("awaited by two", nodes);
    program.objects(&[0]).counters(&[kept])
}

/// As [`handed_over`], while a node changes the counter's strategy.
pub fn handed_over_while_it_moves(kept: Strategy, to: Strategy, nodes: usize) -> Program {
    let mut bodies = vec![vec![]; nodes];
    bodies[0] = vec![Write(0), Call(0, Do::Add)];
    bodies[1] = vec![Call(0, Do::Take), Read(0)];
    bodies[nodes - 1].insert(0, Move(0, to));
    let program = Program::new(
        "handed over while the counter moves",
        after_all_have_read(bodies),
    );
    program.objects(&[0]).counters(&[kept])
}

/// Node 0 has two calls under way at once; what it wrote before comes with either.
pub fn two_under_way(kept: [Strategy; 2]) -> Program {
    let writer = vec![
        Write(0),
        Start(0, Do::Add),
        Start(1, Do::Add),
        AwaitStarted,
        AwaitStarted,
    ];
    let reader = vec![Call(1, Do::Take), Read(0), Call(0, Do::Take)];
    let nodes = after_all_have_read(vec![writer, reader]);
    let program = Program::new("two calls under way", nodes);
    program.objects(&[0]).counters(&kept)
}

/// A node starts operations whose guard is false before a barrier, as many, behind which another
/// makes it true.
pub fn started_with_a_false_guard(kept: Strategy, many: usize) -> Program {
    let takes = vec![Drop(0, Do::Take); many];
    let adds = vec![Call(0, Do::Add); many];
    let nodes = vec![
        [&takes[..], &[Barrier]].concat(),
        [&[Barrier][..], &adds].concat(),
    ];
    Program::new("started with a false guard", nodes).counters(&[kept])
}

/// A call waits for its guard while its caller makes another, without which that would wait for
/// ever.
pub fn called_while_another_waits(kept: [Strategy; 2]) -> Program {
    let writer = vec![Call(1, Do::Take), Write(0), Call(0, Do::Add)];
    let reader = vec![Start(0, Do::Take), Call(1, Do::Add), AwaitStarted, Read(0)];
    let nodes = after_all_have_read(vec![writer, reader]);
    let program = Program::new("called while another call waits", nodes);
    program.objects(&[0]).counters(&kept)
}

/// Each node has a client of one counter, and a clone of it. All call it at once, by both.
pub fn called_by_clients(kept: Strategy, nodes: usize) -> Program {
    let first = vec![
        Client(0, 0, Do::Add),
        Client(0, 1, Do::Read),
        Client(0, 0, Do::Add),
    ];
    let other = vec![Client(0, 1, Do::Add), Client(0, 0, Do::Take)];
    let mut bodies = vec![other; nodes];
    bodies[0] = first;
    Program::new("called by clients and their clones", bodies).counters(&[kept])
}

/// As [`called_by_clients`], while the last node changes the counter's strategy.
pub fn called_by_clients_while_it_moves(kept: Strategy, to: Strategy) -> Program {
    let bodies = vec![
        vec![Client(0, 0, Do::Add), Client(0, 1, Do::Add)],
        vec![Move(0, to), Client(0, 0, Do::Add)],
    ];
    Program::new("called by clients while the counter moves", bodies).counters(&[kept])
}

/// A client of a counter that no node made, beside one that a node did.
pub fn called_by_a_client_of_nothing(kept: Strategy) -> Program {
    let body = vec![
        Client(0, 0, Do::Add),
        Client(1, 0, Do::Add),
        Client(0, 1, Do::Read),
    ];
    Program::new("called by a client of nothing", vec![body; 2]).counters(&[kept])
}
