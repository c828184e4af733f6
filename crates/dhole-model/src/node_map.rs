use std::{fmt, slice, vec};

use dhole_wire::{Tail, Wire, WireError};

use crate::NodeId;

/// A map from nodes, in their order: a sorted list. Nodes are few, and the code of such a map is a
/// tenth of that of a `BTreeMap`, which the compiler makes again for each type of value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NodeMap<V>(Vec<(NodeId, V)>);

impl<V> NodeMap<V> {
    /// A map without nodes.
    pub const fn new() -> NodeMap<V> {
        NodeMap(Vec::new())
    }

    /// Where the node is in the list, or would be.
    fn place(&self, node: NodeId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&node, |(node, _)| *node)
    }

    /// The value of a node.
    pub fn get(&self, node: &NodeId) -> Option<&V> {
        self.place(*node).ok().map(|place| &self.0[place].1)
    }

    /// The value of a node, to be changed.
    pub fn get_mut(&mut self, node: &NodeId) -> Option<&mut V> {
        let place = self.place(*node).ok()?;
        Some(&mut self.0[place].1)
    }

    /// Whether the node has a value.
    pub fn contains_key(&self, node: &NodeId) -> bool {
        self.place(*node).is_ok()
    }

    /// Gives a node a value. Returns the value that it had.
    pub fn insert(&mut self, node: NodeId, value: V) -> Option<V> {
        match self.place(node) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (node, value));
                None
            }
        }
    }

    /// The value of a node, which gets this one if it has none.
    pub fn get_or_insert(&mut self, node: NodeId, value: V) -> &mut V {
        self.get_or_insert_with(node, || value)
    }

    /// The value of a node, which gets the default if it has none.
    pub fn get_or_default(&mut self, node: NodeId) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(node, V::default)
    }

    /// The value of a node, which gets one made by `make` if it has none.
    pub fn get_or_insert_with(&mut self, node: NodeId, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.place(node) {
            Ok(place) => place,
            Err(place) => {
                self.0.insert(place, (node, make()));
                place
            }
        };
        &mut self.0[place].1
    }

    /// Takes a node out. Returns its value.
    pub fn remove(&mut self, node: &NodeId) -> Option<V> {
        let place = self.place(*node).ok()?;
        Some(self.0.remove(place).1)
    }

    /// Keeps the nodes of which this is true.
    pub fn retain(&mut self, mut keeps: impl FnMut(&NodeId, &mut V) -> bool) {
        self.0.retain_mut(|(node, value)| keeps(node, value));
    }

    /// Takes all nodes out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many nodes have a value.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no node has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes and their values.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&NodeId, &V)> + Clone {
        self.0.iter().map(|(node, value)| (node, value))
    }

    /// The nodes.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &NodeId> + Clone {
        self.0.iter().map(|(node, _)| node)
    }

    /// The values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The nodes and their values, which can be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&NodeId, &mut V)> {
        self.0.iter_mut().map(|(node, value)| (&*node, value))
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }
}

impl<V: fmt::Debug> fmt::Debug for NodeMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V> Default for NodeMap<V> {
    fn default() -> NodeMap<V> {
        NodeMap::new()
    }
}

impl<V> FromIterator<(NodeId, V)> for NodeMap<V> {
    fn from_iter<I: IntoIterator<Item = (NodeId, V)>>(all: I) -> NodeMap<V> {
        let mut map = NodeMap::new();
        for (node, value) in all {
            map.insert(node, value);
        }
        map
    }
}

impl<V> IntoIterator for NodeMap<V> {
    type Item = (NodeId, V);
    type IntoIter = vec::IntoIter<(NodeId, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a NodeMap<V> {
    type Item = &'a (NodeId, V);
    type IntoIter = slice::Iter<'a, (NodeId, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// In ascending order of the nodes.
impl<V: Wire> Wire for NodeMap<V> {
    type Head = <Vec<(NodeId, V)> as Wire>::Head;

    fn head(&self) -> Self::Head {
        self.0.head()
    }

    fn tail_len(&self) -> usize {
        self.0.tail_len()
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        self.0.write_tail(out);
    }

    fn read(head: &Self::Head, tail: &mut Tail<'_>) -> Result<NodeMap<V>, WireError> {
        let all = Vec::<(NodeId, V)>::read(head, tail)?;
        match all.is_sorted_by(|(one, _), (next, _)| one < next) {
            true => Ok(NodeMap(all)),
            false => Err(WireError::Value("keys that are not in ascending order")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nodes_that_are_not_in_order_are_refused() {
        let [low, high] = [(NodeId(1), 7_u64), (NodeId(2), 8)];
        let bytes = |all: Vec<(NodeId, u64)>| {
            let mut bytes = Vec::new();
            all.write(&mut bytes);
            bytes
        };
        let read = NodeMap::<u64>::parse(&bytes(vec![low, high]));
        assert_eq!(read, Ok([high, low].into_iter().collect()));
        for wrong in [vec![high, low], vec![low, low]] {
            let read = NodeMap::<u64>::parse(&bytes(wrong));
            assert!(matches!(read, Err(WireError::Value(_))), "{read:?}");
        }
    }

    proptest! {
        #[test]
        fn a_map_does_what_an_ordered_map_of_the_standard_library_does(
            steps in prop::collection::vec((0..5, 0..12_u16, 0..100_u64), 0..60)
        ) {
            let (mut ours, mut theirs) = (NodeMap::new(), BTreeMap::new());
            for (what, node, value) in steps {
                let node = NodeId(node);
                match what {
                    0 => prop_assert_eq!(ours.insert(node, value), theirs.insert(node, value)),
                    1 => prop_assert_eq!(ours.remove(&node), theirs.remove(&node)),
                    2 => {
                        let their = theirs.entry(node).or_insert(value);
                        prop_assert_eq!(ours.get_or_insert(node, value), their);
                    }
                    3 => {
                        ours.retain(|_, known| *known != value);
                        theirs.retain(|_, known| *known != value);
                    }
                    _ => {
                        let their = theirs.get_mut(&node);
                        prop_assert_eq!(ours.get_mut(&node), their);
                    }
                }
                prop_assert_eq!(ours.get(&node), theirs.get(&node));
                prop_assert_eq!(ours.contains_key(&node), theirs.contains_key(&node));
            }
            prop_assert!(ours.iter().eq(theirs.iter()));
            prop_assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
            prop_assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
            let mut bytes = Vec::new();
            ours.write(&mut bytes);
            let read = NodeMap::parse(&bytes);
            prop_assert_eq!(read.as_ref(), Ok(&ours));
            prop_assert!(ours.into_iter().eq(theirs));
        }
    }
}
