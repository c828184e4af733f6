//! Litmus tests over two counters with operations, each one copy or replicated. One order of all
//! operations must explain their results.

use dhole_protocol::objects::Strategy;

use crate::model::Op::{self, *};
use crate::model::Program;
use crate::objects::Op as Do;

fn litmus(name: &'static str, kept: [Strategy; 2], nodes: Vec<Vec<Op>>) -> Program {
    let program = Program::new(name, nodes).counters(&kept);
    Program {
        litmus: true,
        ..program
    }
}

fn set(counter: u8) -> Op {
    Call(counter, Do::Add)
}

fn get(counter: u8) -> Op {
    Call(counter, Do::Read)
}

/// Each node writes one counter and reads the other.
pub fn store_buffering(kept: [Strategy; 2]) -> Program {
    let nodes = vec![vec![set(0), get(1)], vec![set(1), get(0)]];
    litmus("store buffering", kept, nodes)
}

/// A node that sees the second write sees the first.
pub fn message_passing(kept: [Strategy; 2]) -> Program {
    let nodes = vec![vec![set(0), set(1)], vec![get(1), get(0)]];
    litmus("message passing", kept, nodes)
}

/// The same, with a second writer that has only seen the first write.
pub fn passed_on(kept: [Strategy; 2]) -> Program {
    let nodes = vec![vec![set(0)], vec![get(0), set(1)], vec![get(1), get(0)]];
    litmus("write to read causality", kept, nodes)
}

/// Two readers do not see two writes in two orders.
pub fn independent_reads(kept: [Strategy; 2]) -> Program {
    let nodes = vec![
        vec![set(0)],
        vec![set(1)],
        vec![get(0), get(1)],
        vec![get(1), get(0)],
    ];
    litmus("independent reads of independent writes", kept, nodes)
}
