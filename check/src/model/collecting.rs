//! Collectives in the model: a worker calls one, combines the values that arrive, and passes the
//! result on, as the engine does.

use std::ops::Range;

use dhole_protocol::{CollectiveEvent, CollectiveKind, Event, Way};

use crate::model::history::entry;
use crate::model::node::{Around, Failed};
use crate::model::sealed::Sealed;
use crate::model::{Clock, Fault, History, MOST_NODES, Node, Op, Phase, Presence, Wait};
use dhole_model::NodeId;

/// Everything that happened before each node called a collective.
pub(crate) type Called = [Option<Clock>; MOST_NODES];

/// The nodes whose values a node has when it leaves a collective.
pub(crate) fn told_of(kind: CollectiveKind, me: usize, nodes: usize) -> Range<usize> {
    let root = kind.tree(nodes).root.index();
    match (kind.goes_up(), kind.goes_down()) {
        _ if kind.goes_across() => 0..nodes,
        (true, down) if down || me == root => 0..nodes,
        (false, true) => root..root + 1,
        _ => 0..0,
    }
}

impl History {
    /// A node calls the collective of this number.
    pub(crate) fn enters(&mut self, node: usize, number: u64) {
        let clock = self.clock(node);
        entry(&mut self.collectives, number as u8)[node] = Some(clock);
    }

    /// A node leaves a collective. The nodes whose values it has must have called it. Everything
    /// that they did before happened before the node's next step.
    fn leaves(
        &mut self,
        node: usize,
        number: u64,
        of: impl Iterator<Item = usize>,
    ) -> Result<(), Fault> {
        let called = *entry(&mut self.collectives, number as u8);
        for other in of {
            let clock = called[other].ok_or(Fault::LeftBarrierEarly)?;
            self.hear(node, &clock);
        }
        Ok(())
    }
}

impl Node {
    /// The worker goes on in a collective that it has called.
    pub(crate) fn collect(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        let call = |wait| Phase::Call(Presence::Exclusive, wait);
        let Some(Op::Collect(kind)) = self.next(around.program) else {
            return Err((Fault::Heap, "no collective".into()));
        };
        let legs = self.protocol.legs();
        let first = legs.and_then(|legs| match legs.across {
            true => Some(CollectiveEvent::Across),
            false => legs.up.then_some(CollectiveEvent::Up),
        });
        if let (Some(first), Some(false)) = (first, self.collecting) {
            self.collecting = Some(true);
            self.phase = call(Some(Wait::Collective(self.passed, kind)));
            return self.call(Some(Event::Collective(first)), around);
        }
        if legs.is_some() {
            self.phase = call(None);
            self.call(Some(Event::Collective(CollectiveEvent::Down)), around)?;
        }
        let of = told_of(kind, self.me, around.program.nodes.len());
        let left = around.history.leaves(self.me, self.passed, of);
        left.map_err(|fault| (fault, format!("node {} leaves {kind}", self.me)))?;
        self.collecting = None;
        self.phase = Phase::Computing;
        self.passed += 1;
        self.done += 1;
        Ok(())
    }

    /// Whether the node has sent its part of a collective that way.
    fn has_given(&self, number: u64, way: Way) -> bool {
        let first = way != Way::Down && self.collecting == Some(true);
        self.passed > number || (self.passed == number && first)
    }
}

/// The nodes for whose values one waits in a collective.
pub(crate) fn needed_by(
    nodes: &[Sealed<Node>],
    node: usize,
    (number, kind): (u64, CollectiveKind),
) -> Vec<usize> {
    let waiting = &nodes[node];
    let legs = waiting.protocol.legs().unwrap_or_default();
    let way = match waiting.collecting {
        _ if legs.across => Way::Across,
        None if legs.up => Way::Up,
        _ => Way::Down,
    };
    let (tree, me) = (kind.tree(nodes.len()), NodeId::at(node));
    let from: Vec<NodeId> = match way {
        Way::Up => tree.children(me).collect(),
        Way::Down => tree.parent(me).into_iter().collect(),
        Way::Across => (0..nodes.len())
            .map(NodeId::at)
            .filter(|it| *it != me)
            .collect(),
    };
    let missing = |other: &usize| !nodes[*other].has_given(number, way);
    from.iter()
        .map(|node| node.index())
        .filter(missing)
        .collect()
}
