//! Takes every step, and says what was found and seen.

use dhole_model::NodeId;
use dhole_protocol::memory::{MemoryKind, Permission};
use dhole_protocol::part::NodePart as _;
use stateright::{Model, Property};

use super::super::found::{Found, found};
use super::super::minipages::Happening;
use super::{
    Copy, Moment, Phase, ReleaseFault, ReleaseModel, ReleaseOp, ReleaseSight, Step, minipage,
};

impl Model for ReleaseModel {
    type State = Moment;
    type Action = Happening;

    fn init_states(&self) -> Vec<Moment> {
        vec![self.first()]
    }

    fn actions(&self, moment: &Moment, actions: &mut Vec<Happening>) {
        if moment.fault.is_some() {
            return;
        }
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
        let takes = |at: usize| moment.nodes[at].commands.is_empty();
        actions.extend(moment.parcels.arrive(takes));
    }

    fn next_state(&self, last: &Moment, action: Happening) -> Option<Moment> {
        let mut step = Step {
            model: self,
            moment: last.clone(),
        };
        match action {
            Happening::Compute(at, thread, at_once) => step.compute(at, thread, at_once),
            Happening::CarryOut(at, _) => step.goes_on(at),
            Happening::Deliver(place, ..) => step.deliver(place),
        }
        if step.moment.fault.is_none() {
            step.moment.fault = self.at_rest(&step.moment);
        }
        Some(step.moment)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! never {
            ($($fault:ident)*) => {[$(
                Property::<Self>::always(ReleaseFault::$fault.property(), |_, moment| {
                    moment.fault != Some(ReleaseFault::$fault)
                }),
            )*]};
        }
        macro_rules! shows {
            ($($sight:ident)*) => {[$(
                Property::<Self>::sometimes(ReleaseSight::$sight.property(), |model, moment| {
                    moment.shows(model, ReleaseSight::$sight)
                }),
            )*]};
        }
        let faults = never!(NotAlone Stale NoTwin Refused Stuck WrongCopies Lost Held);
        let sights =
            shows!(TwoTwins Diff EmptyDiff Dropped TwoRelease Queued HeldBack Lends Withdraws);
        faults.into_iter().chain(sights).collect()
    }
}

impl Moment {
    /// Whether it shows this.
    fn shows(&self, model: &ReleaseModel, sight: ReleaseSight) -> bool {
        let says = |kind: MemoryKind| {
            let mut parcels = self.parcels.iter();
            parcels.find(|parcel| parcel.message.kind == kind)
        };
        match sight {
            ReleaseSight::TwoTwins => {
                let twins = |of: usize| {
                    let has = self
                        .nodes
                        .iter()
                        .filter(|node| node.copies[of].twin.is_some());
                    has.count()
                };
                (0..self.latest.len()).any(|of| twins(of) > 1)
            }
            ReleaseSight::Diff => says(MemoryKind::Diff).is_some(),
            ReleaseSight::EmptyDiff => {
                says(MemoryKind::Diff).is_some_and(|it| it.holds.iter().all(Option::is_none))
            }
            ReleaseSight::Dropped => says(MemoryKind::Dropped).is_some(),
            ReleaseSight::TwoRelease => self.nodes.iter().any(|node| {
                let flushes = |phase: &Phase| matches!(phase, Phase::Flushes(..));
                let waiting = node.threads.iter().filter(|it| flushes(&it.phase));
                waiting.count() > 1
            }),
            ReleaseSight::Queued => self
                .nodes
                .iter()
                .any(|node| node.machine.longest_queue() > 0),
            ReleaseSight::HeldBack => self.nodes.iter().any(|node| node.machine.defers_any()),
            ReleaseSight::Lends => (0..self.nodes.len()).any(|at| {
                let (copies, leader) = (&self.nodes[at].copies, model.leader(at));
                let mut both = copies.iter().zip(&self.nodes[leader].copies);
                let writes = |copy: &Copy| copy.permission == Permission::Write;
                leader != at && both.any(|(copy, led)| writes(copy) && led.twin.is_some())
            }),
            ReleaseSight::Withdraws => self.parcels.iter().any(|parcel| {
                let (from, to) = (parcel.from.index(), parcel.to.index());
                let withdraws = parcel.message.kind == MemoryKind::Invalidate && from != to;
                let mut copies = self.nodes[from].copies.iter();
                withdraws && model.leader(to) == from && copies.any(|copy| copy.twin.is_some())
            }),
        }
    }
}

impl ReleaseModel {
    /// What is wrong where nothing can happen any more.
    fn at_rest(&self, moment: &Moment) -> Option<ReleaseFault> {
        let carried_out = moment.nodes.iter().all(|node| node.commands.is_empty());
        if !moment.parcels.is_empty() || !carried_out {
            return None;
        }
        let mut actions = Vec::new();
        self.actions(moment, &mut actions);
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

    /// Takes every step from every state, until the first fault.
    pub fn explore(self) -> Found<ReleaseFault, ReleaseSight> {
        let faults = ReleaseFault::ALL.map(|fault| (fault, fault.property()));
        let sights = ReleaseSight::ALL.map(|sight| (sight, sight.property()));
        found(self, faults, sights)
    }
}
