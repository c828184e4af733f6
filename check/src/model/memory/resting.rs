//! Moments in which nothing can happen any more.

use dhole_model::NodeId;
use dhole_protocol::memory::Permission;
use dhole_protocol::part::NodePart as _;

use super::{MemoryFault, MemoryModel, Moment, Node, Phase};
use crate::model::Sealed;

impl MemoryModel {
    fn is_over(&self, moment: &Moment) -> bool {
        let mut nodes = moment.nodes.iter().zip(&self.nodes);
        nodes.all(|(node, ops)| {
            let mut threads = node.threads.iter().zip(ops);
            threads.all(|(thread, ops)| thread.done == ops.len())
        })
    }

    /// What is wrong where nothing can happen any more.
    pub(super) fn wrong_at_rest(&self, moment: &Moment) -> Option<MemoryFault> {
        let carried_out = |node: &Sealed<Node>| node.commands.is_empty();
        if !moment.nodes.iter().all(carried_out) {
            return None;
        }
        if !self.is_over(moment) {
            let nodes = moment.nodes.iter().enumerate();
            let mut woken = nodes.flat_map(|(at, node)| {
                let threads = node.threads.iter().enumerate();
                threads.map(move |(number, thread)| {
                    !matches!(thread.phase, Phase::Waits { .. })
                        && thread.done < self.nodes[at][number].len()
                        && !self.is_locked_out(moment, at, number)
                })
            });
            return (!woken.any(|goes_on| goes_on)).then_some(MemoryFault::Stuck);
        }
        let has = |node: usize, of: usize| moment.nodes[node].copies[of].0 >= Permission::Read;
        let agrees = |of: usize| {
            let manager = &moment.nodes[self.managers[of]].machine;
            let copies = manager.copies_at_rest(self.address(of));
            let all = 0..self.nodes.len();
            let leaders = all.filter(|node| self.leader(*node) == *node);
            let readers = leaders.filter(|node| has(*node, of)).map(NodeId::at);
            copies.is_none_or(|copies| copies == readers.collect::<Vec<_>>())
        };
        let rests = moment.nodes.iter().all(|node| node.machine.is_at_rest());
        let sound = rests && (0..self.managers.len()).all(agrees);
        (!sound).then_some(MemoryFault::WrongCopies)
    }
}
