//! Who really waits for whom: the wait-for graph as an outsider sees it.

use dhole_protocol::BarrierId;

use crate::model::sealed::Sealed;
use crate::model::{History, Node, Phase, Wait};

/// The true wait-for graph of a moment.
pub(crate) struct Waits<'a> {
    nodes: &'a [Sealed<Node>],
    history: &'a History,
}

impl<'a> Waits<'a> {
    pub fn new(nodes: &'a [Sealed<Node>], history: &'a History) -> Waits<'a> {
        Waits { nodes, history }
    }

    /// The nodes that a waiting node needs to move; none when what it waits for is on its way.
    fn needed_by(&self, node: usize) -> Vec<usize> {
        match self.nodes[node].waits_for() {
            None | Some(Wait::Object | Wait::Flush) => vec![],
            Some(Wait::Lock(lock)) => self.history.holder(lock).into_iter().collect(),
            Some(Wait::Barrier(barrier)) => {
                let missing = |other: &usize| !self.has_reached(*other, barrier);
                (0..self.nodes.len()).filter(missing).collect()
            }
        }
    }

    fn has_reached(&self, node: usize, barrier: BarrierId) -> bool {
        let node = &self.nodes[node];
        let passed = match barrier {
            BarrierId::Program(number)
            | BarrierId::Once(number)
            | BarrierId::Switch { number, .. } => node.passed > number,
            BarrierId::End => node.phase == Phase::Finished,
        };
        passed || node.waits_for() == Some(Wait::Barrier(barrier))
    }

    /// Which nodes will never move again, whatever is delivered.
    pub fn blocked(&self) -> Vec<bool> {
        let mut moves = vec![false; self.nodes.len()];
        loop {
            let before = moves.clone();
            for (node, state) in self.nodes.iter().enumerate() {
                moves[node] = match state.phase {
                    Phase::Computing | Phase::Flushed | Phase::Call(_, None) => true,
                    Phase::Call(..) => self.needed_by(node).iter().all(|other| moves[*other]),
                    Phase::Finished | Phase::Deadlocked(_) => false,
                };
            }
            if moves == before {
                return moves.iter().map(|moves| !moves).collect();
            }
        }
    }

    /// Whether the node is blocked, directly or through others, by itself.
    pub fn is_on_cycle(&self, node: usize) -> bool {
        let mut reached = self.needed_by(node);
        let mut next = 0;
        while let Some(&other) = reached.get(next) {
            for further in self.needed_by(other) {
                if !reached.contains(&further) {
                    reached.push(further);
                }
            }
            next += 1;
        }
        reached.contains(&node)
    }
}
