//! Collectives in the model: a worker calls one, combines the values that arrive, and passes the
//! result on, as the engine does.

use dhole_protocol::{CollectiveEvent, CollectiveKind, Event, children, parent};

use crate::model::history::entry;
use crate::model::node::{Around, Failed};
use crate::model::sealed::Sealed;
use crate::model::{Clock, Fault, History, MOST_NODES, Node, Op, Phase, Presence, Wait};
use dhole_model::NodeId;

/// Everything that happened before each node called a collective.
pub(crate) type Called = [Option<Clock>; MOST_NODES];

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
        let legs = self.protocol.legs();
        if legs.is_some_and(|legs| legs.up) && self.collecting == Some(false) {
            self.collecting = Some(true);
            self.phase = call(Some(Wait::Collective(self.passed)));
            return self.call(Some(Event::Collective(CollectiveEvent::Up)), around);
        }
        if legs.is_some() {
            self.phase = call(None);
            self.call(Some(Event::Collective(CollectiveEvent::Down)), around)?;
        }
        let Some(Op::Collect(kind)) = self.next(around.program) else {
            return Err((Fault::Heap, "no collective".into()));
        };
        let nodes = around.program.nodes.len();
        let of = match (kind.goes_up() && (self.me == 0 || kind.goes_down()), kind) {
            (true, _) => 0..nodes,
            (false, CollectiveKind::Broadcast) => 0..1,
            (false, _) => 0..0,
        };
        let left = around.history.leaves(self.me, self.passed, of);
        left.map_err(|fault| (fault, format!("node {} leaves {kind}", self.me)))?;
        self.collecting = None;
        self.phase = Phase::Computing;
        self.passed += 1;
        self.done += 1;
        Ok(())
    }

    /// Whether the node has sent its part of a collective, up the tree or down.
    fn has_given(&self, number: u64, up: bool) -> bool {
        self.passed > number || (self.passed == number && up && self.collecting == Some(true))
    }
}

/// The nodes for whose values one waits in a collective.
pub(crate) fn needed_by(nodes: &[Sealed<Node>], node: usize, number: u64) -> Vec<usize> {
    let waiting = &nodes[node];
    let legs = waiting.protocol.legs();
    let up = waiting.collecting.is_none() && legs.is_some_and(|legs| legs.up);
    let me = NodeId::at(node);
    let from: Vec<NodeId> = match up {
        true => children(me, nodes.len()).collect(),
        false => parent(me).into_iter().collect(),
    };
    let missing = |other: &usize| !nodes[*other].has_given(number, up);
    from.iter()
        .map(|node| node.index())
        .filter(missing)
        .collect()
}
