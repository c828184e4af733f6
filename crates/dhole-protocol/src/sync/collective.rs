//! Collectives: every node's value, combined or shared along a tree, or sent to every other node.
//!
//! All nodes call the same collectives and barriers in the same order; both are numbered together.
//! Values travel along a binomial tree, whose root is node 0, or of a scatter the node that has the
//! values. They go *up*, from a node to its parent, once all its children's values have come; and
//! *down*, from a node to its children. A broadcast and a scatter go down, a reduce and a gather go
//! up: n-1 messages. An all-reduce, an all-gather and a scan go up and then down: 2(n-1). What each
//! node has for each other goes *across*, without the tree: n(n-1).
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
use crate::collective_call::{Called, CalledAt, CollectiveKind, CollectiveWait, Mismatch, Way};
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
    /// Which way it goes.
    pub way: Way,
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
    /// It has what comes down, and gives it to its children; or it has what came across.
    Down,
    /// It gives each other node what it has for that; it waits for what the others give.
    Across,
}

/// Which ways a collective goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Legs {
    /// From the nodes to the root of the tree.
    pub up: bool,
    /// From the root to the nodes.
    pub down: bool,
    /// From each node to each other.
    pub across: bool,
}

impl Legs {
    fn have(self, way: Way) -> bool {
        match way {
            Way::Down => self.down,
            Way::Up => self.up,
            Way::Across => self.across,
        }
    }

    /// Whether no node leaves such a collective before all have called it.
    fn meet(self) -> bool {
        self.across || self.up && self.down
    }
}

/// The most messages of collectives that may have come to a node before its worker takes them.
pub fn most_early(nodes: usize) -> usize {
    let neighbours = 1 + nodes.next_power_of_two().trailing_zeros() as usize;
    neighbours * 2 * (MOST_AHEAD as usize + 1) + nodes
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
    /// The children that were heard, or of what goes across the other nodes.
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
    /// It has what goes across.
    Gives,
    /// It waits for all others.
    AwaitsOthers,
    /// It has what goes to its children, or all that came across.
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
            if !self.legs_of(early.at.kind).have(early.way) {
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
        let across = kind.goes_across();
        let both = self.ahead >= MOST_AHEAD && !across;
        Legs {
            up: kind.goes_up() || both,
            down: kind.goes_down() || both,
            across,
        }
    }

    /// The worker calls a collective, which was [checked](Collectives::check_call).
    pub fn enter(&mut self, at: Collective, site: CallSite) {
        let legs = self.legs_of(at.kind);
        let stage = match (legs.up, at.kind.tree(self.nodes).parent(self.me)) {
            _ if legs.across => Stage::Gives,
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
        let Some(current) = &mut self.current else {
            return;
        };
        let children = || current.at.kind.tree(nodes).children(me).count();
        match current.stage {
            Stage::AwaitsChildren if current.heard.len() == children() => {
                current.stage = Stage::Combines;
            }
            Stage::AwaitsOthers if current.heard.len() == nodes - 1 => {
                current.stage = Stage::Shares;
            }
            _ => {}
        }
    }

    /// What the worker waits for in its collective, and where it called that; none where it has
    /// what it needs to go on.
    pub fn wait(&self) -> Option<(CollectiveWait, CallSite)> {
        let current = self.current.as_ref()?;
        let way = match current.stage {
            Stage::AwaitsChildren => Way::Up,
            Stage::AwaitsParent => Way::Down,
            Stage::AwaitsOthers => Way::Across,
            Stage::Combines | Stage::Gives | Stage::Shares => return None,
        };
        let Collective { number, kind, .. } = current.at;
        Some((CollectiveWait { number, kind, way }, current.site))
    }

    /// Whether the node `waiter` needs what the node `me` gives.
    pub fn is_needed(&self, me: NodeId, waiter: NodeId, wait: CollectiveWait) -> bool {
        self.goes(wait.kind, wait.way, me, waiter)
    }

    /// Whether a value that goes this way goes from the one node to the other.
    fn goes(&self, kind: CollectiveKind, way: Way, from: NodeId, to: NodeId) -> bool {
        let tree = kind.tree(self.nodes);
        match way {
            Way::Up => tree.parent(from) == Some(to),
            Way::Down => tree.parent(to) == Some(from),
            Way::Across => from != to,
        }
    }

    /// Whether this node, whose next number is `next`, has sent its part of what `wait` is for.
    pub fn has_given(&self, wait: CollectiveWait, next: u64) -> bool {
        let beyond = |current: &Current| match wait.way {
            Way::Up => current.legs.up && current.stage > Stage::Combines,
            Way::Down => false,
            Way::Across => current.legs.across && current.stage > Stage::Gives,
        };
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
        let CollectiveMessage { at, way, .. } = message;
        if at.kind.tree(self.nodes).root.index() >= self.nodes {
            return Err(bad(from, "a value of a tree whose root is no node"));
        }
        if !self.goes(at.kind, *way, from, self.me) {
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
        if current.is_some_and(|current| !current.legs.have(*way)) {
            return Err(bad(
                from,
                "a value that goes a way which its collective does not",
            ));
        }
        let heard = current.is_some_and(|current| match way {
            Way::Up => current.heard.contains(&from) || current.stage > Stage::AwaitsChildren,
            Way::Down => current.stage > Stage::AwaitsParent,
            Way::Across => current.heard.contains(&from),
        });
        let is_it = |(other, early): &(NodeId, CollectiveMessage)| {
            (*other, early.at.number, early.way) == (from, at.number, *way)
        };
        match heard || self.early.iter().any(is_it) {
            true => Err(bad(from, "a second value for one collective")),
            false => Ok(()),
        }
    }

    /// Whether the worker waits for just this.
    pub fn awaits(&self, message: &CollectiveMessage) -> bool {
        self.wait()
            .is_some_and(|(wait, _)| (wait.number, wait.way) == (message.at.number, message.way))
    }

    /// A message came that the worker does not wait for yet.
    pub fn keep(&mut self, from: NodeId, message: CollectiveMessage) {
        let key =
            |from: NodeId, message: &CollectiveMessage| (message.at.number, message.way, from);
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
            match message.way {
                Way::Up | Way::Across => current.heard.push(from),
                Way::Down => current.stage = Stage::Shares,
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
        let parent = at.kind.tree(self.nodes).parent(self.me);
        match (current.legs.down, parent) {
            (false, _) => self.leave(),
            (true, Some(_)) => current.stage = Stage::AwaitsParent,
            (true, None) => current.stage = Stage::Shares,
        }
        Some((parent?, at, site))
    }

    /// The worker gives each other node what it has for that, and waits for what they give.
    pub fn give_across(&mut self) -> Option<(Collective, CallSite)> {
        let current = self.current.as_mut()?;
        current.stage = Stage::AwaitsOthers;
        let its = (current.at, current.site);
        self.go_on();
        Some(its)
    }

    /// The worker has what goes to its children, and leaves the collective. The children are those
    /// that something goes to.
    pub fn give_down(&mut self) -> Option<(Vec<NodeId>, Collective, CallSite)> {
        let current = self.current.as_ref()?;
        let (at, site) = (current.at, current.site);
        let children = at.kind.tree(self.nodes).children(self.me);
        let children = children.filter(|_| current.legs.down).collect();
        self.leave();
        Some((children, at, site))
    }

    fn leave(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        match current.legs.meet() {
            true => self.ahead = 0,
            false => self.ahead += 1,
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
            CollectiveEvent::Across => stage == Some(Stage::Gives),
        }
    }
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
