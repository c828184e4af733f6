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

/// As [`set`], and goes on.
fn start(counter: u8) -> Op {
    Drop(counter, Do::Add)
}

/// What a node has started before a barrier is seen behind it, by all: also what waits there until
/// others are answered that go before.
pub fn started_before_a_barrier(kept: Strategy, many: usize) -> Program {
    let starts = vec![start(0); many];
    let meets = [Barrier, get(0)];
    let nodes = vec![[&starts[..], &meets].concat(), meets.to_vec()];
    litmus("started before a barrier", [kept; 2], nodes)
}

/// As [`store_buffering`]; each node starts its write.
pub fn started_stores(kept: [Strategy; 2]) -> Program {
    let nodes = vec![vec![start(0), get(1)], vec![start(1), get(0)]];
    litmus("store buffering with started writes", kept, nodes)
}

/// As [`message_passing`]; the first write is started.
pub fn started_message(kept: [Strategy; 2]) -> Program {
    let nodes = vec![vec![start(0), set(1)], vec![get(1), get(0)]];
    litmus("message passing with a started write", kept, nodes)
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
