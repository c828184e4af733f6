//! The values of collectives on a node.

use dhole_model::NodeId;
use dhole_protocol::Message;

use crate::step::Step;

/// The bytes of collectives that a node sends next, and those that have come.
#[derive(Default)]
pub(crate) struct Values {
    /// What goes with the messages of the next step.
    pub sends: Vec<u8>,
    /// What has come and was not taken: the collective's number, whether it went up, the sender.
    came: Vec<((u64, bool, NodeId), Vec<u8>)>,
}

impl Values {
    /// The payload of a message, where it is one of a collective.
    pub fn payload_of(&self, message: &Message) -> &[u8] {
        match message {
            Message::Collective(_) => &self.sends,
            Message::Gossiped { carrier, .. } => self.payload_of(carrier),
            _ => &[],
        }
    }

    /// Keeps the payload of a message.
    pub fn collect(&mut self, from: NodeId, (number, up): (u64, bool), step: &Step<'_, '_>) {
        let its = (number, up, from);
        self.came.push((its, step.payload.to_vec()));
    }

    /// What has come from these nodes for the collective of the smallest number, in their order.
    pub fn take(&mut self, up: bool, from: impl Iterator<Item = NodeId>) -> Vec<(NodeId, Vec<u8>)> {
        from.filter_map(|from| {
            let its =
                |((_, way, node), _): &&((u64, bool, NodeId), Vec<u8>)| (*way, *node) == (up, from);
            let ((number, ..), _) = self.came.iter().filter(its).min_by_key(|(key, _)| *key)?;
            let key = (*number, up, from);
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
            let its = (number, true, NodeId(node));
            values.came.push((its, vec![number as u8, node as u8]));
        }
        let both = || [NodeId(1), NodeId(2)].into_iter();
        let first = vec![(NodeId(1), vec![3, 1]), (NodeId(2), vec![3, 2])];
        assert_eq!(values.take(true, both()), first);
        assert_eq!(values.take(false, both()), []);
        assert_eq!(values.take(true, both()), [(NodeId(1), vec![4, 1])]);
    }
}
