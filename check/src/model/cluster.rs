use std::fmt;

use dhole_model::{MessageKind, NodeId};
use dhole_protocol::{BarrierRound, Event, Fetch, FetchReply, Interval, Message};
use stateright::{Model, Property};

use crate::Bug;
use crate::model::node::{Around, Failed};
use crate::model::properties::{Shown, faults, sights};
use crate::model::sealed::Sealed;
use crate::model::waits::Waits;
use crate::model::{
    Fault, History, Network, Node, Parcel, Phase, Program, Sight, Wait, calls, order,
};

/// A program on a cluster: the system whose runs are explored.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The program.
    pub program: Program,
    /// The events that some run must show.
    pub sights: Vec<Sight>,
    /// A mistake that the checker is to find.
    pub bug: Option<Bug>,
}

/// Everything about one moment of a run.
#[derive(Clone, PartialEq, Hash)]
pub struct State {
    nodes: Vec<Sealed<Node>>,
    network: Network,
    history: Sealed<History>,
    /// The number of steps so far, without those of diagnosis. No step leads back. So an
    /// exploration that ends has shown that every run ends.
    steps: u16,
    /// Waits that may still seem long before their time.
    impatience: u8,
    /// Nodes whose wait has seemed long when nothing else could happen any more.
    asked: u8,
    fault: Option<Fault>,
    words: String,
}

/// Something that can happen next.
#[derive(Clone, PartialEq)]
pub enum Action {
    /// The worker of a node goes on with its program.
    Compute(usize),
    /// The worker of a node does the next part of a one-sided read.
    See(usize),
    /// A call whose wait is over returns.
    Resume(usize),
    /// The message at this place of the network arrives.
    Deliver(usize, Sealed<Parcel>),
    /// A wait has lasted long.
    WaitedLong(usize),
    /// The next multicast of a node gets its place in the order of all.
    Order(NodeId),
    /// The next one of that order is delivered to a node.
    Follow(usize),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Compute(node) => write!(f, "n{node} goes on"),
            Action::See(node) => write!(f, "n{node} reads in another's memory"),
            Action::Resume(node) => write!(f, "n{node}'s call returns"),
            Action::Deliver(_, parcel) => write!(f, "{:?}", **parcel),
            Action::WaitedLong(node) => write!(f, "n{node} has waited long"),
            Action::Order(node) => write!(f, "a multicast of {node:?} gets its place"),
            Action::Follow(node) => write!(f, "n{node} gets a multicast"),
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            writeln!(
                f,
                "  n{}: {} operations done, {:?}",
                node.me, node.done, node.phase
            )?;
        }
        if let Some(fault) = self.fault {
            writeln!(f, "  {fault:?}: {}", self.words)?;
        }
        Ok(())
    }
}

impl Cluster {
    /// A program without a bug, of which nothing special must be seen.
    pub fn new(program: Program) -> Cluster {
        Cluster {
            program,
            sights: Vec::new(),
            bug: None,
        }
    }

    /// With events that some run must show.
    pub fn showing(self, sights: &[Sight]) -> Cluster {
        Cluster {
            sights: sights.to_vec(),
            ..self
        }
    }

    /// With a planted mistake.
    pub fn with(self, bug: Bug) -> Cluster {
        Cluster {
            bug: Some(bug),
            ..self
        }
    }
}

impl State {
    fn first(program: &Program) -> State {
        let mut nodes: Vec<Node> = (0..program.nodes.len())
            .map(|me| Node::new(me, program))
            .collect();
        let (mut network, mut history) = (Network::default(), History::default());
        let mut around = Around {
            program,
            bug: None,
            network: &mut network,
            history: &mut history,
        };
        let made = calls::make(&mut nodes, &mut around);
        made.expect("a node may make objects");
        State {
            nodes: nodes.into_iter().map(Sealed::new).collect(),
            network,
            history: Sealed::new(history),
            steps: 0,
            impatience: program.impatience,
            asked: 0,
            fault: None,
            words: String::new(),
        }
    }

    /// The nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().map(|node| &**node)
    }

    /// The first thing that went wrong in a step, and the words for it.
    pub fn fault(&self) -> Option<(Fault, &str)> {
        self.fault.map(|fault| (fault, &*self.words))
    }

    fn waits(&self) -> Waits<'_> {
        Waits::new(&self.nodes, &self.history)
    }

    fn is_at_rest(&self) -> bool {
        let moves = |phase| {
            matches!(
                phase,
                Phase::Computing | Phase::Flushed | Phase::Seeing(_) | Phase::Call(_, None)
            )
        };
        let rests = |node: &Node| !moves(node.phase) && !node.lags(&self.network);
        self.network.is_empty() && self.nodes().all(rests)
    }

    fn may_seem_long(&self, node: usize, program: &Program) -> bool {
        let waits = match self.nodes[node].phase {
            Phase::Call(_, Some(Wait::Object | Wait::Flush | Wait::Operation | Wait::Learning)) => {
                return false;
            }
            Phase::Call(_, Some(_)) => true,
            _ => return false,
        };
        let at_rest = !program.deadlock_free && self.is_at_rest();
        let first_time = self.asked & (1 << node) == 0;
        waits && (self.impatience > 0 || (at_rest && first_time))
    }

    /// Whether nothing can happen any more and a node waits that should not.
    fn is_stuck(&self, program: &Program) -> bool {
        if !self.is_at_rest() || (0..self.nodes.len()).any(|n| self.may_seem_long(n, program)) {
            return false;
        }
        let waiting = |node: &usize| matches!(self.nodes[*node].phase, Phase::Call(..));
        let mut waiting = (0..self.nodes.len()).filter(waiting);
        if program.deadlock_free {
            return waiting.next().is_some();
        }
        let (waits, blocked) = (self.waits(), self.waits().blocked());
        waiting.any(|node| !blocked[node] || waits.is_on_cycle(node))
    }

    fn is_undecided(&self, program: &Program) -> bool {
        let all_finished = self.nodes().all(|node| node.phase == Phase::Finished);
        let differ = |object: usize| {
            let mut copies = self.nodes().filter_map(|node| node.heap.readable(object));
            copies
                .next()
                .is_some_and(|first| copies.any(|other| other != first))
        };
        all_finished && (0..program.objects.len() + program.elements).any(differ)
    }

    /// Whether all have finished, and a race was not reported.
    fn keeps_a_race(&self) -> bool {
        let all_finished = self.nodes().all(|node| node.phase == Phase::Finished);
        all_finished && self.history.keeps_a_race()
    }

    /// Whether all have finished, and no order explains what a litmus test's operations told.
    fn has_no_order(&self, program: &Program) -> bool {
        program.litmus
            && self.nodes().all(|node| node.phase == Phase::Finished)
            && !order::explains(&program.nodes, self.history.told())
    }

    fn shows(&self, sight: Sight) -> bool {
        let sent = |is: fn(&Message) -> bool| self.network.parcels().any(|p| is(&p.message));
        match sight {
            Sight::ReadThere => self.has_seen(true),
            Sight::ChangedThere => self.has_seen(false),
            Sight::ReadBehindGate => self.nodes().any(|node| {
                let seeing = node.seeing.as_ref();
                seeing.is_some_and(|seeing| {
                    let finds = seeing.finds(&self.nodes[seeing.of()]);
                    seeing.copies_gated() && finds == Some(true)
                })
            }),
            Sight::OpenGate => self.nodes().any(|node| node.has_found_open),
            Sight::Pushed => self.nodes().any(|node| node.heap.has_kept()),
            Sight::FlushDeferred => {
                let mut again = self.nodes().flat_map(|node| &node.again);
                again.any(|(_, message, _)| message.kind() == MessageKind::Flush)
            }
            Sight::Deferred => self.nodes().any(|node| node.protocol.has_deferred()),
            Sight::PreImageReply => self.network.parcels().any(|parcel| parcel.from_pre_image),
            Sight::Invalidated => self.nodes().any(|node| node.heap.has_invalid()),
            Sight::Exclusive => self.nodes().any(|node| {
                let synchronises =
                    matches!(node.waits_for(), Some(Wait::Lock(_) | Wait::Barrier(_)));
                synchronises && node.heap.has_writable()
            }),
            Sight::Withdrawn => self.nodes().any(|node| node.has_withdrawn),
            Sight::Overtaking => {
                let way = |parcel: &Parcel| (parcel.from, parcel.to);
                let mut ways: Vec<_> = self.network.parcels().map(way).collect();
                ways.sort_unstable();
                ways.windows(2).any(|pair| pair[0] == pair[1])
            }
            Sight::Forwarded => sent(|m| matches!(m, Message::LockForward { .. })),
            Sight::Deadlock => self
                .nodes()
                .any(|node| matches!(node.phase, Phase::Deadlocked(_))),
            Sight::Race => self.history.has_told(),
            Sight::Outdated => sent(|m| m.kind() == MessageKind::Outdated),
            Sight::Gone => sent(|m| m.kind() == MessageKind::Gone),
            Sight::Probe => sent(|m| matches!(m, Message::Probe(_))),
            Sight::Floor => {
                sent(|m| matches!(m, Message::Gossiped { gossip, .. } if gossip.epoch > 0))
            }
            Sight::Reduced => sent(|m| {
                let based = |i: &std::sync::Arc<Interval>| i.base.is_some();
                m.news()
                    .is_some_and(|news| news.intervals.iter().any(based))
            }),
            Sight::AskedBeside => sent(|m| match m {
                Message::Fetch(Fetch { beside, .. }) | Message::FetchElements { beside, .. } => {
                    *beside > 0
                }
                _ => false,
            }),
            Sight::LeftOut => sent(
                |m| matches!(m, Message::FetchReply(FetchReply { sent, .. }) if sent.is_empty()),
            ),
            Sight::WholePage => sent(|m| matches!(m, Message::PageReply { .. })),
            Sight::Collection => {
                sent(|m| matches!(m, Message::BarrierDepart { collect: true, .. }))
            }
            Sight::Round => sent(|m| matches!(m, Message::BarrierRound(_))),
            Sight::RoundAhead => self.network.parcels().any(|parcel| match parcel.message {
                Message::BarrierRound(BarrierRound { number, .. }) => {
                    number > self.nodes[parcel.to.index()].passed
                }
                _ => false,
            }),
            Sight::RoundOfNews => {
                sent(|m| matches!(m, Message::BarrierRound(BarrierRound { news: true, .. })))
            }
            Sight::Collective => sent(|m| collective(m).is_some()),
            Sight::Early => self.network.parcels().any(|parcel| {
                let behind = |number| number > self.nodes[parcel.to.index()].passed;
                collective(&parcel.message).is_some_and(behind)
            }),
            Sight::Compacted => sent(|m| {
                let several = |i: &std::sync::Arc<Interval>| i.first < i.index;
                m.news()
                    .is_some_and(|news| news.intervals.iter().any(several))
            }),
        }
    }

    /// Whether a node is about to find that what it copied is as it was, or is not.
    fn has_seen(&self, unchanged: bool) -> bool {
        let finds = |node: &Node| match (&node.seeing, &node.seeing_blocks) {
            (Some(seeing), _) => seeing.finds(&self.nodes[seeing.of()]),
            (_, Some(seeing)) => seeing.finds(&self.nodes[seeing.of()]),
            _ => None,
        };
        self.nodes().any(|node| finds(node) == Some(unchanged))
    }

    /// The next part of a one-sided read.
    fn see(&mut self, reader: usize, cluster: &Cluster) {
        let node = &self.nodes[reader];
        let of_blocks = node.seeing_blocks.as_ref().map(|seeing| seeing.of());
        let of = of_blocks.or(node.seeing.as_ref().map(|seeing| seeing.of()));
        let of = of.expect("a read is under way");
        let mut owner = Node::clone(&self.nodes[of]);
        self.act(reader, cluster, |node, around| match of_blocks {
            Some(_) => node.see_blocks(&mut owner, around),
            None => node.see(&mut owner, around),
        });
        if owner != *self.nodes[of] {
            self.nodes[of] = Sealed::new(owner);
        }
    }

    fn act(
        &mut self,
        of: usize,
        cluster: &Cluster,
        f: impl FnOnce(&mut Node, &mut Around<'_>) -> Result<(), Failed>,
    ) {
        let mut node = Node::clone(&self.nodes[of]);
        let mut history = History::clone(&self.history);
        let mut around = Around {
            program: &cluster.program,
            bug: cluster.bug,
            network: &mut self.network,
            history: &mut history,
        };
        let done = f(&mut node, &mut around);
        let told = matches!(node.phase, Phase::Deadlocked(_)) && node.phase != self.nodes[of].phase;
        let phantom = told && !self.waits().blocked()[of];
        self.nodes[of] = Sealed::new(node);
        if history != *self.history {
            self.history = Sealed::new(history);
        }
        if phantom {
            self.fault = Some(Fault::PhantomDeadlock);
            self.words = format!("node {of} is told that it is deadlocked");
        }
        if let Err((fault, words)) = done {
            (self.fault, self.words) = (Some(fault), words);
        }
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.program)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.fault.is_some() {
            return;
        }
        for (number, node) in state.nodes().enumerate() {
            match node.phase {
                Phase::Computing => actions.push(Action::Compute(number)),
                Phase::Flushed => actions.push(Action::Resume(number)),
                Phase::Seeing(_) => actions.push(Action::See(number)),
                Phase::Call(_, None) if !node.calls.is_behind() => {
                    actions.push(Action::Resume(number));
                }
                _ => {}
            }
            if node.lags(&state.network) {
                actions.push(Action::Follow(number));
            }
            if state.may_seem_long(number, &self.program) {
                actions.push(Action::WaitedLong(number));
            }
        }
        actions.extend(state.network.order.waits().map(Action::Order));
        let deliver = |at| Action::Deliver(at, state.network.at(at).clone());
        actions.extend(state.network.places().map(deliver));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        state.steps += 1;
        match action {
            Action::Compute(node) => state.act(node, self, Node::compute),
            Action::See(node) => state.see(node, self),
            Action::Resume(node) => state.act(node, self, Node::resume),
            Action::Deliver(place, _) => {
                let parcel = state.network.take(place);
                if matches!(
                    parcel.message,
                    Message::Probe(_)
                        | Message::Deadlock { .. }
                        | Message::WhereWritten { .. }
                        | Message::WrittenAt { .. }
                ) {
                    state.steps -= 1;
                }
                let to = parcel.to.index();
                state.act(to, self, |node, around| node.deliver(&parcel, around));
            }
            Action::Order(node) => state.network.order.order(node),
            Action::Follow(node) => state.act(node, self, Node::follow),
            Action::WaitedLong(node) => {
                state.steps -= 1;
                if state.is_at_rest() && !self.program.deadlock_free {
                    state.asked |= 1 << node;
                } else {
                    state.impatience -= 1;
                }
                state.act(node, self, |node, around| {
                    node.step(Event::WaitedLong, &[], around)
                });
                // What comes between that and the visit of the probe to its own node has come
                // before it as well.
                let network = &state.network;
                let own = network.places().find(|place| {
                    let parcel = network.at(*place);
                    parcel.to == parcel.from && matches!(parcel.message, Message::Probe(_))
                });
                if let Some(parcel) = own.map(|place| state.network.take(place)) {
                    state.act(node, self, |node, around| node.deliver(&parcel, around));
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        faults::<Cluster, Fault>()
            .chain(sights(&self.sights))
            .collect()
    }
}

impl Shown<Cluster> for Fault {
    fn is_shown(self, cluster: &Cluster, state: &State) -> bool {
        match self {
            Fault::Stuck => state.fault.is_none() && state.is_stuck(&cluster.program),
            Fault::NoOrder => state.has_no_order(&cluster.program),
            Fault::Undecided => state.is_undecided(&cluster.program),
            Fault::UntoldRace => cluster.program.tells_all_races() && state.keeps_a_race(),
            _ => state.fault == Some(self),
        }
    }
}

impl Shown<Cluster> for Sight {
    fn is_shown(self, _: &Cluster, state: &State) -> bool {
        state.shows(self)
    }
}

/// The number of the collective whose value this brings.
fn collective(message: &Message) -> Option<u64> {
    match message {
        Message::Collective(message) => Some(message.at.number),
        Message::Gossiped { carrier, .. } => collective(carrier),
        _ => None,
    }
}
