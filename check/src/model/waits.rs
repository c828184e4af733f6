//! The true wait-for graph, as an outsider sees it.

use dhole_protocol::BarrierId;

use crate::model::sealed::Sealed;
use crate::model::{History, Node, Phase, Wait, collecting};

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
            None | Some(Wait::Object | Wait::Flush | Wait::Learning) => vec![],
            Some(Wait::Operation) => self.others(node),
            Some(Wait::Condition(_) | Wait::Readmission(_)) if !self.is_woken(node) => {
                self.others(node)
            }
            Some(Wait::Readmission(lock)) => {
                let turnstiles = &self.history.turnstiles;
                turnstiles.in_the_way(Wait::Exclude(lock), true)
            }
            Some(Wait::Permit(semaphore)) => match self.history.turnstiles.has_permit(semaphore) {
                true => vec![],
                false => self.others(node),
            },
            Some(Wait::Lock(lock) | Wait::Condition(lock)) => {
                self.history.holder(lock).into_iter().collect()
            }
            Some(wait @ (Wait::Share(lock) | Wait::Exclude(lock))) => {
                let writes = |other: &Sealed<Node>| other.waits_for() == Some(Wait::Exclude(lock));
                let writer_waits = self.nodes.iter().any(writes);
                self.history.turnstiles.in_the_way(wait, writer_waits)
            }
            Some(Wait::Collective(number, kind)) => {
                collecting::needed_by(self.nodes, node, (number, kind))
            }
            Some(Wait::Barrier(barrier)) => {
                let missing = |other: &usize| !self.has_reached(*other, barrier);
                (0..self.nodes.len()).filter(missing).collect()
            }
        }
    }

    fn is_woken(&self, node: usize) -> bool {
        self.history.turnstiles.woken >> node & 1 == 1
    }

    fn others(&self, node: usize) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|other| *other != node)
            .collect()
    }

    /// Whether any node could end the node's wait, and none has.
    fn any_may_wake(&self, node: usize) -> bool {
        match self.nodes[node].waits_for() {
            Some(Wait::Condition(_) | Wait::Readmission(_)) => !self.is_woken(node),
            Some(Wait::Permit(semaphore)) => !self.history.turnstiles.has_permit(semaphore),
            _ => false,
        }
    }

    fn has_reached(&self, node: usize, barrier: BarrierId) -> bool {
        let node = &self.nodes[node];
        let passed = match barrier {
            BarrierId::Program(number)
            | BarrierId::Once(number)
            | BarrierId::Switch { number, .. }
            | BarrierId::SwitchArray { number, .. } => node.passed > number,
            BarrierId::End(_) | BarrierId::Collection(_) => node.phase == Phase::Finished,
        };
        passed || node.waits_for() == Some(Wait::Barrier(barrier))
    }

    /// The nodes that will never move again, whatever messages are delivered.
    pub fn blocked(&self) -> Vec<bool> {
        let mut moves = vec![false; self.nodes.len()];
        loop {
            let before = moves.clone();
            for (node, state) in self.nodes.iter().enumerate() {
                moves[node] = match state.phase {
                    Phase::Computing | Phase::Flushed | Phase::Seeing(_) | Phase::Call(_, None) => {
                        true
                    }
                    Phase::Call(..) if self.any_may_wake(node) => {
                        self.others(node).iter().any(|other| moves[*other])
                    }
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
