//! Takes every step, and says what was found and seen.

use dhole_model::NodeId;
use dhole_protocol::memory::{MemoryKind, MemoryMessage, Permission};
use dhole_protocol::part::NodePart as _;

use super::super::minipages::Happening;
use super::super::world::{self, Found, Scene};
use super::{
    Copy, Ghosts, Moment, Node, Parcel, Phase, ReleaseFault, ReleaseModel, ReleaseOp, ReleaseSight,
    Step, Words, minipage,
};

impl Scene for ReleaseModel {
    type Message = MemoryMessage;
    type Node = Node;
    type Holds = Words;
    type Ghosts = Ghosts;
    type Happens = Happening;
    type Fault = ReleaseFault;
    type Sight = ReleaseSight;

    fn first(&self) -> (Vec<Node>, Ghosts) {
        self.nodes_and_ghosts()
    }

    fn happenings(&self, moment: &Moment, actions: &mut Vec<Happening>) {
        for (at, node) in moment.nodes.iter().enumerate() {
            if let Some(command) = node.commands.front() {
                actions.push(Happening::CarryOut(at, command.clone()));
            }
            // The machine takes one step after the other.
            let rests = node.commands.is_empty();
            for (number, thread) in node.threads.iter().enumerate() {
                let Some(op) = self.nodes[at][number].get(thread.done) else {
                    continue;
                };
                let permission = minipage(*op).map(|of| node.copies[of].permission);
                let goes_on = match (&thread.phase, op) {
                    (Phase::Computes, ReleaseOp::Acquire(event)) => moment.events >> event & 1 == 1,
                    (Phase::Computes, ReleaseOp::Lock(lock)) => moment.locks >> lock & 1 == 0,
                    (Phase::Computes, ReleaseOp::Read(..)) => {
                        rests || permission >= Some(Permission::Read)
                    }
                    (Phase::Computes, ReleaseOp::Write(..)) => {
                        rests || permission == Some(Permission::Write)
                    }
                    (Phase::Computes | Phase::Woken, _) => rests,
                    (Phase::Waits, _) => false,
                    (Phase::Flushes(_, woken), _) => *woken && rests,
                };
                if goes_on {
                    actions.push(Happening::Compute(at, number, true));
                }
                let is_held = matches!(op, ReleaseOp::Hold(_));
                if goes_on && thread.phase == Phase::Woken && !thread.slow && !is_held {
                    actions.push(Happening::Compute(at, number, false));
                }
            }
        }
    }

    fn takes(&self, moment: &Moment, node: usize) -> bool {
        moment.nodes[node].commands.is_empty()
    }

    fn happen(step: &mut Step<'_>, what: Happening) {
        match what {
            Happening::Compute(at, thread, at_once) => step.compute(at, thread, at_once),
            Happening::CarryOut(at, _) => step.goes_on(at),
        }
    }

    fn deliver(step: &mut Step<'_>, parcel: Parcel) {
        let world::Parcel {
            from,
            to,
            message,
            holds: words,
        } = parcel;
        let payload = message.payload_bytes() as usize;
        let mut refused = false;
        step.at(to.index(), |node, out| {
            node.came = words;
            refused = node.machine.deliver(from, message, payload, out).is_err();
        });
        if refused {
            step.fault(ReleaseFault::Refused);
        }
    }

    fn at_rest(&self, moment: &Moment) -> Option<ReleaseFault> {
        let carried_out = moment.nodes.iter().all(|node| node.commands.is_empty());
        if !carried_out {
            return None;
        }
        let mut actions = Vec::new();
        self.happenings(moment, &mut actions);
        if !actions.is_empty() {
            return None;
        }
        let mut nodes = moment.nodes.iter().zip(&self.nodes);
        let is_over = nodes.all(|(node, ops)| {
            let mut threads = node.threads.iter().zip(ops);
            threads.all(|(thread, ops)| thread.done == ops.len())
        });
        if !is_over {
            return Some(ReleaseFault::Stuck);
        }
        let agrees = |of: usize| {
            let manager = &moment.nodes[self.managers[of]].machine;
            let copies = manager.copies_at_rest(self.address(of));
            let has =
                |node: &usize| moment.nodes[*node].copies[of].permission > Permission::Nothing;
            let leaders = (0..self.nodes.len()).filter(|node| self.leader(*node) == *node);
            let readers = leaders.filter(has).map(NodeId::at);
            copies.is_none_or(|copies| copies == readers.collect::<Vec<_>>())
        };
        let all = || 0..self.managers.len();
        let copies = || moment.nodes.iter().map(|node| &node.copies);
        let has_twins = copies().flatten().any(|copy| copy.twin.is_some());
        let rests = moment.nodes.iter().all(|node| node.machine.is_at_rest());
        if has_twins || !rests || !all().all(agrees) {
            return Some(ReleaseFault::WrongCopies);
        }
        let has_all = |of: usize| {
            let has = |at: &usize| moment.nodes[*at].copies[of].permission > Permission::Nothing;
            let mut readable = (0..moment.nodes.len()).filter(has);
            readable.all(|at| moment.nodes[self.leader(at)].copies[of].words == moment.latest[of])
        };
        (!all().all(has_all)).then_some(ReleaseFault::Lost)
    }

    fn shows(&self, moment: &Moment, sight: ReleaseSight) -> bool {
        let says = |kind: MemoryKind| {
            let mut parcels = moment.parcels();
            parcels.find(|parcel| parcel.message.kind == kind)
        };
        match sight {
            ReleaseSight::TwoTwins => {
                let twins = |of: usize| {
                    let has = moment
                        .nodes
                        .iter()
                        .filter(|node| node.copies[of].twin.is_some());
                    has.count()
                };
                (0..moment.latest.len()).any(|of| twins(of) > 1)
            }
            ReleaseSight::Diff => says(MemoryKind::Diff).is_some(),
            ReleaseSight::EmptyDiff => {
                says(MemoryKind::Diff).is_some_and(|it| it.holds.iter().all(Option::is_none))
            }
            ReleaseSight::Dropped => says(MemoryKind::Dropped).is_some(),
            ReleaseSight::TwoRelease => moment.nodes.iter().any(|node| {
                let flushes = |phase: &Phase| matches!(phase, Phase::Flushes(..));
                let waiting = node.threads.iter().filter(|it| flushes(&it.phase));
                waiting.count() > 1
            }),
            ReleaseSight::Queued => moment
                .nodes
                .iter()
                .any(|node| node.machine.longest_queue() > 0),
            ReleaseSight::HeldBack => moment.nodes.iter().any(|node| node.machine.defers_any()),
            ReleaseSight::Lends => (0..moment.nodes.len()).any(|at| {
                let (copies, leader) = (&moment.nodes[at].copies, self.leader(at));
                let mut both = copies.iter().zip(&moment.nodes[leader].copies);
                let writes = |copy: &Copy| copy.permission == Permission::Write;
                leader != at && both.any(|(copy, led)| writes(copy) && led.twin.is_some())
            }),
            ReleaseSight::Withdraws => moment.parcels().any(|parcel| {
                let (from, to) = (parcel.from.index(), parcel.to.index());
                let withdraws = parcel.message.kind == MemoryKind::Invalidate && from != to;
                let mut copies = moment.nodes[from].copies.iter();
                withdraws && self.leader(to) == from && copies.any(|copy| copy.twin.is_some())
            }),
        }
    }
}

impl ReleaseModel {
    /// Takes every step from every state, until the first fault.
    pub fn explore(self) -> Found<ReleaseFault, ReleaseSight> {
        world::explore(self)
    }
}
