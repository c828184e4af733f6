//! Collectives: every node's value, combined or shared along a tree.
//!
//! All nodes call the same collectives and barriers in the same order; both are numbered together.
//! Values travel along a binomial tree whose root is node 0. They go *up*, from a node to its
//! parent, once all its children's values have come; and *down*, from a node to its children. A
//! broadcast goes down, a reduce and a gather go up: n-1 messages. An all-reduce and an all-gather
//! go up and then down: 2(n-1).
//!
//! Each message carries the write notices that its receiver may lack. So what the sender had seen
//! happened before what the receiver does next.
//!
//! A collective that goes one way lets a node run ahead of others. So that no buffer grows, after
//! [`MOST_AHEAD`] of them in a row the next one goes both ways, with nothing to carry on the other.

use std::collections::VecDeque;

use dhole_model::{CallSite, NodeId, NodeMap, VectorTime};
use dhole_wire::Wire;

use crate::WriteNotices;
use crate::collective_call::{Called, CalledAt, CollectiveKind, CollectiveWait, Mismatch};
use crate::error::ProtocolError;

/// So many collectives in a row go one way; the next one goes both.
pub const MOST_AHEAD: u64 = 8;

/// Which collective a node has reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Collective {
    /// Its number among the barriers and collectives of the program, counted from 0.
    pub number: u64,
    /// What is done with the values.
    pub kind: CollectiveKind,
    /// Tells the type of the values from others, the same on every node.
    pub of: u64,
}

/// A value on its way; its bytes are the payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct CollectiveMessage {
    /// Which collective.
    pub at: Collective,
    /// Whether it goes up the tree.
    pub up: bool,
    /// Where the sender called it.
    pub site: CallSite,
    /// What the receiver may lack.
    pub news: WriteNotices,
}

/// What the worker does in a collective.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CollectiveEvent {
    /// It calls one, and waits for the first values that it needs.
    Enter {
        /// What is done with the values.
        kind: CollectiveKind,
        /// Tells the type of the values from others.
        of: u64,
        /// Where in the program.
        site: CallSite,
    },
    /// It has combined its children's values with its own, and gives them to its parent; it waits
    /// for what comes down, if anything does.
    Up,
    /// It has what comes down, and gives it to its children.
    Down,
}

/// Which ways a collective goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Legs {
    /// From the nodes to node 0.
    pub up: bool,
    /// From node 0 to the nodes.
    pub down: bool,
}

/// The parent of a node in the tree.
pub fn parent(node: NodeId) -> Option<NodeId> {
    let index = node.index();
    (index > 0).then(|| NodeId::at(index & (index - 1)))
}

/// The children of a node in the tree, in ascending order. The nodes below one are those that
/// follow it, up to its parent's next child.
pub fn children(node: NodeId, nodes: usize) -> impl Iterator<Item = NodeId> {
    let index = node.index();
    let distances = (0..usize::BITS).map(|bit| 1_usize << bit);
    let below = distances.take_while(move |distance| index & distance == 0 && *distance < nodes);
    below
        .map(move |distance| index + distance)
        .take_while(move |child| *child < nodes)
        .map(NodeId::at)
}

/// The most messages of collectives that may have come to a node before its worker takes them.
pub fn most_early(nodes: usize) -> usize {
    let neighbours = 1 + nodes.next_power_of_two().trailing_zeros() as usize;
    neighbours * 2 * (MOST_AHEAD as usize + 1)
}

/// One node's part in collectives.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Collectives {
    me: NodeId,
    nodes: usize,
    /// How many have gone one way since all nodes met.
    ahead: u64,
    /// The one that the worker is in.
    current: Option<Current>,
    /// Messages that came before the worker waits for them, in the order of their collectives.
    early: Vec<(NodeId, CollectiveMessage)>,
    /// The last ones that the worker has left, and where they were called.
    left: VecDeque<(Collective, CallSite)>,
    /// What each neighbour has seen, or will have when it takes what was sent to it.
    seen_by: NodeMap<VectorTime>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Current {
    at: Collective,
    site: CallSite,
    legs: Legs,
    stage: Stage,
    /// The children that were heard.
    heard: Vec<NodeId>,
}

/// How far the worker has come in a collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Stage {
    /// It waits for its children.
    AwaitsChildren,
    /// It has what they sent, and combines that.
    Combines,
    /// It waits for its parent.
    AwaitsParent,
    /// It has what goes to its children.
    Shares,
}

impl Collectives {
    pub fn new(me: NodeId, nodes: usize) -> Collectives {
        Collectives {
            me,
            nodes,
            ahead: 0,
            current: None,
            early: Vec::new(),
            left: VecDeque::new(),
            seen_by: NodeMap::new(),
        }
    }

    /// Whether no collective has let a node run ahead of others. All nodes say the same.
    pub fn is_level(&self) -> bool {
        self.ahead == 0
    }

    /// Whether the worker is in a collective.
    pub fn is_in_one(&self) -> bool {
        self.current.is_some()
    }

    /// Which ways the collective goes that the worker is in.
    pub fn legs(&self) -> Option<Legs> {
        self.current.as_ref().map(|current| current.legs)
    }

    /// All nodes have met.
    pub fn met(&mut self) {
        self.ahead = 0;
    }

    /// The worker is about to call this, the next in its order: whether what other nodes have sent
    /// agrees.
    pub fn check_call(&self, next: u64, call: CalledAt, of: u64) -> Result<(), ProtocolError> {
        if let Some(current) = &self.current {
            return Err(ProtocolError::Unfinished {
                what: call.what,
                site: call.site,
                unfinished: current.at.kind,
                begun: current.site,
            });
        }
        let its = self
            .early
            .iter()
            .filter(|(_, early)| early.at.number == next);
        for (from, early) in its {
            let same = call.what == Called::Collective(early.at.kind) && of == early.at.of;
            if !same {
                return Err(mismatch(call, *from, early));
            }
            if !has(self.legs_of(early.at.kind), early.up) {
                return Err(bad(
                    *from,
                    "a value that goes a way which its collective does not",
                ));
            }
        }
        Ok(())
    }

    /// Another node has arrived at a barrier, or at the end, of this number: whether this node
    /// calls a collective there.
    pub fn check_arrival(&self, number: u64, there: CalledAt) -> Result<(), ProtocolError> {
        match self.called(number) {
            Some((at, site)) => {
                let here = CalledAt {
                    node: self.me,
                    what: Called::Collective(at.kind),
                    site,
                };
                Err(ProtocolError::Mismatch(Box::new(Mismatch { here, there })))
            }
            None => Ok(()),
        }
    }

    /// The collective of this number that the worker is in or has left, as far as that is kept.
    fn called(&self, number: u64) -> Option<(Collective, CallSite)> {
        let current = self
            .current
            .iter()
            .map(|current| (current.at, current.site));
        let mut all = current.chain(self.left.iter().copied());
        all.find(|(at, _)| at.number == number)
    }

    fn legs_of(&self, kind: CollectiveKind) -> Legs {
        let both = self.ahead >= MOST_AHEAD;
        Legs {
            up: kind.goes_up() || both,
            down: kind.goes_down() || both,
        }
    }

    /// The worker calls a collective, which was [checked](Collectives::check_call).
    pub fn enter(&mut self, at: Collective, site: CallSite) {
        let legs = self.legs_of(at.kind);
        let stage = match (legs.up, parent(self.me)) {
            (true, _) => Stage::AwaitsChildren,
            (false, Some(_)) => Stage::AwaitsParent,
            (false, None) => Stage::Shares,
        };
        self.current = Some(Current {
            at,
            site,
            legs,
            stage,
            heard: Vec::new(),
        });
        self.go_on();
    }

    /// Ends a stage in which all that it waited for has come.
    fn go_on(&mut self) {
        let (me, nodes) = (self.me, self.nodes);
        if let Some(current) = &mut self.current
            && current.stage == Stage::AwaitsChildren
            && current.heard.len() == children(me, nodes).count()
        {
            current.stage = Stage::Combines;
        }
    }

    /// What the worker waits for in its collective, and where it called that; none where it has
    /// what it needs to go on.
    pub fn wait(&self) -> Option<(CollectiveWait, CallSite)> {
        let current = self.current.as_ref()?;
        let up = match current.stage {
            Stage::AwaitsChildren => true,
            Stage::AwaitsParent => false,
            Stage::Combines | Stage::Shares => return None,
        };
        let Collective { number, kind, .. } = current.at;
        Some((CollectiveWait { number, kind, up }, current.site))
    }

    /// Whether the node `waiter` needs what the node `me` gives.
    pub fn is_needed(&self, me: NodeId, waiter: NodeId, wait: CollectiveWait) -> bool {
        match wait.up {
            true => parent(me) == Some(waiter),
            false => parent(waiter) == Some(me),
        }
    }

    /// Whether this node, whose next number is `next`, has sent its part of what `wait` is for.
    pub fn has_given(&self, wait: CollectiveWait, next: u64) -> bool {
        let beyond =
            |current: &Current| wait.up && current.legs.up && current.stage > Stage::Combines;
        let current = self.current.as_ref();
        let in_it = current.filter(|current| current.at.number == wait.number);
        next > wait.number || in_it.is_some_and(beyond)
    }

    /// Whether a message can be what a sound node sends: `next` is the number of what this node
    /// passes next.
    pub fn check(
        &self,
        from: NodeId,
        message: &CollectiveMessage,
        next: u64,
    ) -> Result<(), ProtocolError> {
        let CollectiveMessage { at, up, .. } = message;
        let neighbour = match up {
            true => parent(from) == Some(self.me),
            false => parent(self.me) == Some(from),
        };
        if !neighbour {
            return Err(bad(
                from,
                "a value of a node that is no neighbour in the tree",
            ));
        }
        if let Some((mine, site)) = self.called(at.number)
            && mine != *at
        {
            let here = CalledAt {
                node: self.me,
                what: Called::Collective(mine.kind),
                site,
            };
            return Err(mismatch(here, from, message));
        }
        if at.number < next {
            return Err(bad(from, "a value of a collective that is over"));
        }
        if at.number - next > MOST_AHEAD {
            return Err(bad(
                from,
                "a value of a collective that it cannot have reached",
            ));
        }
        let current = self.current.as_ref().filter(|current| current.at == *at);
        if current.is_some_and(|current| !has(current.legs, *up)) {
            return Err(bad(
                from,
                "a value that goes a way which its collective does not",
            ));
        }
        let heard = current.is_some_and(|current| match up {
            true => current.heard.contains(&from) || current.stage > Stage::AwaitsChildren,
            false => current.stage > Stage::AwaitsParent,
        });
        let is_it = |(other, early): &(NodeId, CollectiveMessage)| {
            (*other, early.at.number, early.up) == (from, at.number, *up)
        };
        match heard || self.early.iter().any(is_it) {
            true => Err(bad(from, "a second value for one collective")),
            false => Ok(()),
        }
    }

    /// Whether the worker waits for just this.
    pub fn awaits(&self, message: &CollectiveMessage) -> bool {
        self.wait()
            .is_some_and(|(wait, _)| (wait.number, wait.up) == (message.at.number, message.up))
    }

    /// A message came that the worker does not wait for yet.
    pub fn keep(&mut self, from: NodeId, message: CollectiveMessage) {
        let key = |from: NodeId, message: &CollectiveMessage| (message.at.number, message.up, from);
        let its = key(from, &message);
        let place = self
            .early
            .partition_point(|(from, early)| key(*from, early) < its);
        self.early.insert(place, (from, message));
    }

    /// A message that came early and that the worker waits for now.
    pub fn next_early(&self) -> Option<&(NodeId, CollectiveMessage)> {
        self.early.iter().find(|(_, early)| self.awaits(early))
    }

    /// What [`next_early`](Collectives::next_early) found, or what has just come, is taken.
    pub fn heard(&mut self, from: NodeId, message: &CollectiveMessage) {
        self.early
            .retain(|(other, early)| *other != from || early != message);
        self.sees(from, &message.news.time);
        if let Some(current) = &mut self.current {
            match message.up {
                true => current.heard.push(from),
                false => current.stage = Stage::Shares,
            }
        }
        self.go_on();
    }

    /// What a neighbour is known to have seen, beside what all have.
    pub fn seen_by(&self, node: NodeId) -> Option<&VectorTime> {
        self.seen_by.get(&node)
    }

    /// A neighbour has seen this, or will have.
    pub fn sees(&mut self, node: NodeId, time: &VectorTime) {
        match self.seen_by.get_mut(&node) {
            Some(seen) => seen.merge(time),
            None => drop(self.seen_by.insert(node, time.clone())),
        }
    }

    /// The worker has combined what has come: the message to its parent, if it has one.
    pub fn give_up(&mut self) -> Option<(NodeId, Collective, CallSite)> {
        let current = self.current.as_mut()?;
        let (at, site) = (current.at, current.site);
        let parent = parent(self.me);
        match (current.legs.down, parent) {
            (false, _) => self.leave(),
            (true, Some(_)) => current.stage = Stage::AwaitsParent,
            (true, None) => current.stage = Stage::Shares,
        }
        Some((parent?, at, site))
    }

    /// The worker has what goes to its children, and leaves the collective.
    pub fn give_down(&mut self) -> Option<(Collective, CallSite)> {
        let current = self.current.as_ref()?;
        let its = (current.at, current.site);
        self.leave();
        Some(its)
    }

    fn leave(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        match current.legs {
            Legs {
                up: true,
                down: true,
            } => self.ahead = 0,
            _ => self.ahead += 1,
        }
        if self.left.len() > MOST_AHEAD as usize {
            self.left.pop_front();
        }
        self.left.push_back((current.at, current.site));
    }

    /// Whether this step of the worker's is the one that is next.
    pub fn is_next(&self, event: CollectiveEvent) -> bool {
        let stage = self.current.as_ref().map(|current| current.stage);
        match event {
            CollectiveEvent::Enter { .. } => stage.is_none(),
            CollectiveEvent::Up => stage == Some(Stage::Combines),
            CollectiveEvent::Down => stage == Some(Stage::Shares),
        }
    }
}

fn has(legs: Legs, up: bool) -> bool {
    if up { legs.up } else { legs.down }
}

fn bad(from: NodeId, what: &'static str) -> ProtocolError {
    ProtocolError::BadMessage { from, what }
}

/// A node has called another collective than this one.
pub(crate) fn mismatch(here: CalledAt, from: NodeId, message: &CollectiveMessage) -> ProtocolError {
    let there = CalledAt {
        node: from,
        what: Called::Collective(message.at.kind),
        site: message.site,
    };
    ProtocolError::Mismatch(Box::new(Mismatch { here, there }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_every_node_once_and_each_subtree_is_a_row_of_nodes() {
        for nodes in 1..=70 {
            let mut seen = vec![0; nodes];
            for node in (0..nodes).map(NodeId::at) {
                let mut last = node.index();
                for child in children(node, nodes) {
                    assert_eq!(parent(child), Some(node));
                    assert_eq!(child.index(), last + 1, "the row goes on");
                    last = last_below(child, nodes);
                    seen[child.index()] += 1;
                }
                assert_eq!(last, last_below(node, nodes));
            }
            assert_eq!(seen[0], 0, "the root has no parent");
            assert!(seen[1..].iter().all(|times| *times == 1));
        }
    }

    fn last_below(node: NodeId, nodes: usize) -> usize {
        let last = children(node, nodes).last();
        last.map_or(node.index(), |last| last_below(last, nodes))
    }

    #[test]
    fn the_tree_is_as_deep_as_nodes_can_be_halved() {
        let depth = |node| std::iter::successors(Some(node), |at| parent(*at)).count() - 1;
        for (nodes, most) in [(1, 0), (2, 1), (4, 2), (5, 2), (8, 3), (1024, 10)] {
            let deepest = (0..nodes).map(NodeId::at).map(depth).max();
            assert_eq!(deepest, Some(most), "{nodes} nodes");
            assert!(children(NodeId(0), nodes).count() <= 10);
        }
    }
}
