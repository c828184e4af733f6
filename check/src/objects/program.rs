//! Random programs over objects.

use std::collections::VecDeque;

use dhole_model::NodeId;
use dhole_protocol::objects::Strategy;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Random;

use super::Op;

/// Something that a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Call(usize, Op),
    /// Calls it, and goes on.
    Start(usize, Op),
    /// Calls it, and withdraws the call at some moment, if it is not over then.
    Within(usize, Op),
    Change(usize, Strategy),
}

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: usize,
    /// Counters.
    pub objects: usize,
    /// Acts of each worker.
    pub acts: usize,
    /// Whether objects change where they are kept.
    pub changes: bool,
    /// Whether workers go on before their calls are over.
    pub starts: bool,
    /// Whether workers withdraw some of their calls.
    pub withdraws: bool,
    /// Whether every node has the first counter from the start.
    pub predefined: bool,
}

pub(super) fn strategy(nodes: usize, random: &mut Random) -> Strategy {
    match random.random_range(0..=nodes) {
        node if node < nodes => Strategy::On(NodeId::at(node)),
        _ => Strategy::Replicated,
    }
}

pub(super) fn program(shape: Shape, random: &mut Random) -> VecDeque<Act> {
    let act = |random: &mut Random| {
        let object = random.random_range(0..shape.objects);
        match random.random_range(0..10) {
            0 | 1 if shape.changes => Act::Change(object, strategy(shape.nodes, random)),
            0..=4 => Act::Call(object, Op::Add),
            5 => Act::Call(object, Op::Take),
            6 => Act::Call(object, Op::Await(random.random_range(1..3))),
            _ => Act::Call(object, Op::Read),
        }
    };
    let act = |random: &mut Random| match act(random) {
        Act::Call(object, op) if shape.withdraws && random.random_bool(0.5) => {
            Act::Within(object, op)
        }
        Act::Call(object, op) if shape.starts && random.random_bool(0.8) => Act::Start(object, op),
        act => act,
    };
    (0..shape.acts).map(|_| act(random)).collect()
}
