//! Programs whose objects go behind gates: node 0 writes two objects alone in three phases first.

use crate::model::Op::{self, *};
use crate::model::Program;

/// What node 0 does before, and what the others do meanwhile.
fn alone(zero: &[Op], others: &[&[Op]], name: &'static str) -> Program {
    let written = [Write(0), Write(1), Barrier].repeat(3);
    let waited = [Barrier; 3].to_vec();
    let mut nodes = vec![[written, zero.to_vec()].concat()];
    let others = others.iter().map(|ops| [waited.clone(), ops.to_vec()]);
    nodes.extend(others.map(|ops| ops.concat()));
    Program::new(name, nodes).objects(&[0, 0]).gating()
}

/// Other nodes read one of the objects while node 0 writes neither, and after it has written both
/// again they read both.
pub fn read_behind_a_gate(readers: usize) -> Program {
    let zero = [Barrier, Write(0), Write(1), Barrier];
    let reader: &[Op] = &[Read(0), Barrier, Barrier, Read(0), Read(1)];
    alone(&zero, &vec![reader; readers], "read behind a gate")
}

/// As above, and node 0 writes both once more behind the gate that the second object is still
/// behind.
pub fn read_behind_a_gate_again() -> Program {
    let zero = [
        Barrier,
        Write(1),
        Write(0),
        Barrier,
        Barrier,
        Write(0),
        Write(1),
        Barrier,
    ];
    let one = [Read(0), Barrier, Barrier, Read(1), Barrier, Barrier];
    let one = [&one[..], &[Read(0), Read(1)]].concat();
    alone(&zero, &[&one], "read behind a gate again")
}

/// Node 1 reads one of the objects in the phase in which node 0 writes the other one.
pub fn read_behind_an_open_gate() -> Program {
    let zero = [Write(0), Barrier, Write(0), Write(1), Barrier];
    let one = [Read(1), Barrier, Barrier, Read(0), Read(1)];
    alone(&zero, &[&one], "read behind an open gate")
}

/// Node 0 writes the objects under a lock, under which node 1 reads both.
pub fn read_behind_a_gate_under_a_lock() -> Program {
    let zero = [Acquire(0), Write(0), Write(1), Release(0)];
    let one = [Acquire(0), Read(0), Read(1), Release(0)];
    alone(&zero.repeat(2), &[&one], "read behind a gate, under a lock")
}

/// Node 1 writes one of the objects under a lock under which node 0 does.
pub fn taken_from_behind_a_gate() -> Program {
    let both = [Acquire(0), Read(0), Write(0), Release(0)];
    let end = [Barrier, Read(0), Read(1)];
    let zero = [&both[..], &[Barrier, Write(1)], &end[..]].concat();
    let one = [&both[..], &[Barrier], &end[..]].concat();
    alone(&zero, &[&one], "taken from behind a gate")
}

/// Node 0 frees one of the objects and writes the other one, while node 1 reads both.
pub fn freed_behind_a_gate() -> Program {
    let zero = [Free(0), Write(1)];
    let one = [Read(0), Read(1)];
    alone(&zero, &[&one], "freed behind a gate").racy()
}

/// Node 0 writes an object of two leaves behind a gate while node 1 reads it.
pub fn two_leaves_read_behind_a_gate() -> Program {
    let zero = [Write(0), Write(1), Barrier];
    let one = [Read(0), Read(1), Barrier, Read(0), Read(1)];
    let program = alone(&zero, &[&one], "two leaves read behind a gate");
    program.in_leaves(2).racy()
}

/// As above, and node 0 writes it twice behind the gate.
pub fn two_leaves_read_behind_a_gate_later() -> Program {
    let zero = [Write(0), Write(1), Barrier].repeat(2);
    let one = [Barrier, Read(0), Read(1), Barrier, Read(0), Read(1)];
    let program = alone(&zero, &[&one], "two leaves read behind a gate later");
    program.in_leaves(2).racy()
}

/// All nodes give the objects another protocol, and node 0 writes them on.
pub fn switched_behind_a_gate(to: dhole_model::Coherence) -> Program {
    let zero = [Switch(to), Write(0), Write(1), Barrier];
    let one = [Read(0), Switch(to), Barrier, Read(0), Read(1)];
    alone(&zero, &[&one], "switched behind a gate")
}
