//! The values of collectives on a node.

use std::ops::Range;

use dhole_model::NodeId;
use dhole_protocol::{Message, Way};

use crate::step::Step;

/// The bytes of collectives that a node sends next, and those that have come.
#[derive(Default)]
pub(crate) struct Values {
    /// What goes with the messages of the next step.
    sends: Vec<u8>,
    /// What of it goes to which node, where not all of it goes to each.
    parts: Vec<Part>,
    /// What has come and was not taken: the collective's number, its way, the sender.
    came: Vec<((u64, Way, NodeId), Vec<u8>)>,
}

/// The bytes that go to a node.
pub(crate) type Part = (NodeId, Range<usize>);

impl Values {
    /// What goes with the messages of the next step: all of it to each node, or to each its part.
    pub fn send(&mut self, bytes: &[u8], parts: &[Part]) {
        self.sends.extend_from_slice(bytes);
        self.parts.extend_from_slice(parts);
        self.parts.sort_unstable_by_key(|(to, _)| *to);
    }

    /// The step is taken; so much memory is kept.
    pub fn sent(&mut self, most_kept: usize) {
        self.sends.clear();
        self.sends.shrink_to(most_kept);
        self.parts.clear();
    }

    /// The payload of a message to a node, where it is one of a collective.
    pub fn payload_of(&self, message: &Message, to: NodeId) -> &[u8] {
        match message {
            Message::Collective(_) => {
                match self.parts.binary_search_by_key(&to, |(node, _)| *node) {
                    Ok(place) => &self.sends[self.parts[place].1.clone()],
                    Err(_) => &self.sends,
                }
            }
            Message::Gossiped { carrier, .. } => self.payload_of(carrier, to),
            _ => &[],
        }
    }

    /// Keeps the payload of a message.
    pub fn collect(&mut self, from: NodeId, (number, way): (u64, Way), step: &Step<'_, '_>) {
        let its = (number, way, from);
        self.came.push((its, step.payload.to_vec()));
    }

    /// What has come from these nodes for the collective of the smallest number, in their order.
    pub fn take(&mut self, way: Way, from: impl Iterator<Item = NodeId>) -> Vec<(NodeId, Vec<u8>)> {
        from.filter_map(|from| {
            let its =
                |((_, its, node), _): &&((u64, Way, NodeId), Vec<u8>)| (*its, *node) == (way, from);
            let ((number, ..), _) = self.came.iter().filter(its).min_by_key(|(key, _)| *key)?;
            let key = (*number, way, from);
            let place = self.came.iter().position(|(other, _)| *other == key)?;
            Some((from, self.came.swap_remove(place).1))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_came_early_are_taken_in_the_order_of_their_collectives() {
        let mut values = Values::default();
        for (number, node) in [(4, 1), (3, 2), (3, 1)] {
            let its = (number, Way::Up, NodeId(node));
            values.came.push((its, vec![number as u8, node as u8]));
        }
        let both = || [NodeId(1), NodeId(2)].into_iter();
        let first = vec![(NodeId(1), vec![3, 1]), (NodeId(2), vec![3, 2])];
        assert_eq!(values.take(Way::Up, both()), first);
        assert_eq!(values.take(Way::Down, both()), []);
        assert_eq!(values.take(Way::Up, both()), [(NodeId(1), vec![4, 1])]);
    }
}
