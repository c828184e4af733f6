//! The numbers of `for_each` in a run that survives the loss of nodes.
//!
//! One object, replicated on every node. A node takes a part of the numbers, calls the closure with
//! each, and ends the part. If it is lost before, its part waits again, whole.

use std::collections::VecDeque;
use std::ops::Range;

use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

use super::schedule::{Schedule, own_part};

/// The numbers that no node has, and which node has which.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Parts {
    schedule: Schedule,
    /// Numbers that any node may take; no extent is empty.
    waiting: VecDeque<Range<u64>>,
    members: Vec<Member>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
struct Member {
    /// The numbers that only this node may take, as long as it is there.
    own: Option<Range<u64>>,
    /// The numbers that it has.
    part: Option<Range<u64>>,
    is_lost: bool,
}

impl Parts {
    pub fn new(range: Range<u64>, schedule: Schedule, nodes: usize) -> Parts {
        let many = range.end - range.start;
        let own = |node: usize| {
            let own = own_part(many, NodeId::at(node), nodes as u64);
            let own = range.start + own.start..range.start + own.end;
            (schedule == Schedule::Static && !own.is_empty()).then_some(own)
        };
        let member = |node| Member {
            own: own(node),
            part: None,
            is_lost: false,
        };
        let any = (schedule != Schedule::Static && many > 0).then_some(range.clone());
        Parts {
            schedule,
            waiting: any.into_iter().collect(),
            members: (0..nodes).map(member).collect(),
        }
    }
}

#[dhole_macros::object(crate = "dhole_node")]
impl Parts {
    /// The node has done its part, if it has one. It gets the next part, if there is one.
    pub fn next_part(&mut self, node: NodeId) -> Option<Range<u64>> {
        self.members.get_mut(node.index())?.part = None;
        self.take(node)
    }

    /// Waits for numbers, or until all are done: `None`. The node has no part.
    #[when(self.can_take())]
    pub fn await_part(&mut self, node: NodeId) -> Option<Range<u64>> {
        self.take(node)
    }

    #[on_loss]
    fn lost(&mut self, node: NodeId) {
        let Some(member) = self.members.get_mut(node.index()) else {
            return;
        };
        member.is_lost = true;
        let lost = [member.part.take(), member.own.take()];
        self.waiting.extend(lost.into_iter().flatten());
    }

    pub(super) fn can_take(&self) -> bool {
        !self.waiting.is_empty() || self.is_over()
    }

    fn is_over(&self) -> bool {
        let mut members = self.members.iter();
        let is_done = |it: &Member| it.part.is_none() && it.own.is_none();
        self.waiting.is_empty() && members.all(is_done)
    }

    /// The next part for a node, as the schedule says.
    fn take(&mut self, node: NodeId) -> Option<Range<u64>> {
        let most = self.most();
        let member = self.members.get_mut(node.index())?;
        let part = match (member.own.take(), self.waiting.front_mut()) {
            (Some(own), _) => own,
            (None, Some(first)) => {
                let ends = first.start + most.min(first.end - first.start);
                let part = first.start..ends;
                first.start = ends;
                if first.is_empty() {
                    self.waiting.pop_front();
                }
                part
            }
            (None, None) => return None,
        };
        member.part = Some(part.clone());
        Some(part)
    }

    /// How many numbers a part has at most. Of a lost node's own ones each other node takes as many
    /// as each other.
    fn most(&self) -> u64 {
        let left = self.waiting.iter().map(|it| it.end - it.start);
        let nodes = self.members.iter().filter(|it| !it.is_lost).count() as u64;
        self.schedule.many(left.sum(), nodes.max(1))
    }
}

#[cfg(test)]
mod tests;
