use dhole_model::NodeId;
use dhole_wire::Wire;
use smallvec::SmallVec;

/// A set of nodes, a bit for each.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Wire)]
pub struct NodeSet(SmallVec<[u64; 2]>);

impl NodeSet {
    /// Adds a node.
    pub fn insert(&mut self, node: NodeId) {
        let (word, bit) = place(node);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    /// Whether the node is in the set.
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds the nodes of another set; whether any was new.
    pub fn unite(&mut self, other: &NodeSet) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let before = self.len();
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
        self.len() > before
    }

    /// Takes a node out.
    pub fn remove(&mut self, node: NodeId) {
        let (word, bit) = place(node);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
    }

    /// Takes all out but this one.
    pub fn retain_only(&mut self, node: NodeId) {
        let is_in = self.contains(node);
        self.0.fill(0);
        if is_in {
            self.insert(node);
        }
    }

    /// The nodes in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        let bits = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            let is_in = move |bit: &usize| bits >> bit & 1 == 1;
            (0..64)
                .filter(is_in)
                .map(move |bit| NodeId::at(64 * word + bit))
        };
        self.0.iter().enumerate().flat_map(bits)
    }

    /// How many nodes are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether all its nodes are in a cluster of `nodes`.
    pub fn is_within(&self, nodes: usize) -> bool {
        let bits = self.0.len() * 64;
        (nodes.min(bits)..bits).all(|bit| self.0[bit / 64] >> (bit % 64) & 1 == 0)
    }
}

fn place(node: NodeId) -> (usize, u64) {
    (node.index() / 64, 1 << (node.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_once() {
        let (mut a, mut b) = (NodeSet::default(), NodeSet::default());
        a.insert(NodeId(3));
        b.insert(NodeId(3));
        b.insert(NodeId(200));
        assert!(a.unite(&b) && !a.unite(&b));
        assert!(a.contains(NodeId(200)) && !a.contains(NodeId(4)) && a.len() == 2);
        assert!(a.is_within(201) && !a.is_within(200) && !b.is_empty());
    }
}
