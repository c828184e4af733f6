use std::collections::BTreeMap;

use crate::model::Op;

/// Whether one order of all operations, in which those of each node follow each other as its
/// program says, explains what they `told`: sequential consistency, for programs that do nothing
/// but call counters, start calls of which nobody is told, and meet at barriers.
pub fn explains(nodes: &[Vec<Op>], told: &[Vec<u8>]) -> bool {
    let mut order = Order {
        nodes,
        told,
        done: vec![0; nodes.len()],
        values: BTreeMap::new(),
    };
    order.goes_on()
}

struct Order<'a> {
    nodes: &'a [Vec<Op>],
    told: &'a [Vec<u8>],
    /// How many operations of each node are in the order.
    done: Vec<usize>,
    values: BTreeMap<u8, u8>,
}

impl Order<'_> {
    /// Whether what is not in the order yet can follow on what is.
    fn goes_on(&mut self) -> bool {
        let done = |node: usize| self.done[node] == self.nodes[node].len();
        (0..self.nodes.len()).all(done) || (0..self.nodes.len()).any(|node| self.goes_on_by(node))
    }

    fn goes_on_by(&mut self, node: usize) -> bool {
        let at = self.done[node];
        let (counter, what, is_told) = match self.nodes[node].get(at).copied() {
            Some(Op::Call(counter, what)) => (counter, what, true),
            Some(Op::Drop(counter, what)) => (counter, what, false),
            Some(Op::Barrier) if self.have_met(node) => {
                self.done[node] += 1;
                let explained = self.goes_on();
                self.done[node] -= 1;
                return explained;
            }
            _ => return false,
        };
        let before_it = self.nodes[node][..at].iter();
        let calls = before_it.filter(|op| matches!(op, Op::Call(..)));
        let told = self.told[node].get(calls.count()).copied();
        let before = self.values.get(&counter).copied().unwrap_or(0);
        let mut value = before;
        let tells = what.apply(&mut value);
        if tells.is_none() || (is_told && tells != told) {
            return false;
        }
        self.values.insert(counter, value);
        self.done[node] += 1;
        let explained = self.goes_on();
        self.done[node] -= 1;
        self.values.insert(counter, before);
        explained
    }

    /// Whether all other nodes have come to the barrier that comes next here.
    fn have_met(&self, node: usize) -> bool {
        let passed = |node: usize| barriers(&self.nodes[node][..self.done[node]]);
        let here = passed(node);
        (0..self.nodes.len()).all(|other| {
            let is_there = self.nodes[other].get(self.done[other]) == Some(&Op::Barrier);
            passed(other) > here || (passed(other) == here && is_there)
        })
    }
}

fn barriers(ops: &[Op]) -> usize {
    ops.iter().filter(|op| **op == Op::Barrier).count()
}
