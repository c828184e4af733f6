//! The model of a totally ordered group. It explores every run: broadcasts, messages in any order,
//! and one crash at any moment. Each survivor hears of the crash at any later one.

use std::fmt;

use dhole_model::NodeId;
use dhole_protocol::group::{Group, GroupCommand, GroupError, GroupEvent, GroupMessage, Settings};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::model::Sealed;

/// A group whose runs are explored.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The broadcasts of each member, one after the other.
    pub broadcasts: Vec<Vec<u8>>,
    /// The settings of the members.
    pub settings: Settings,
    /// Whether one of them may crash.
    pub crash: bool,
    /// A mistake that the checker is to find.
    pub bug: Option<GroupBug>,
}

/// A mistake planted in the messages of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupBug {
    /// A member does not tell what it has when the view changes.
    HideHistory,
    /// A broadcast that is sent again under a new sequencer is lost.
    ForgetOwn,
    /// The sequencer numbers the second broadcast as it has numbered the first.
    NumberAlike,
    /// No member answers a coordinator that gathers messages.
    LoseGathered,
}

/// A property that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupFault {
    /// Two members that go on deliver different messages with one number.
    Disagreement,
    /// A member delivers a message twice, or out of its originator's order.
    OutOfOrder,
    /// A member calls a message of a sound member nonsense.
    Refused,
    /// A member ends although most go on.
    Stuck,
    /// It is over, and members that go on have not delivered all that they broadcast, alike.
    NotUniform,
}

impl GroupFault {
    const ALL: [GroupFault; 5] = [
        GroupFault::Disagreement,
        GroupFault::OutOfOrder,
        GroupFault::Refused,
        GroupFault::Stuck,
        GroupFault::NotUniform,
    ];

    /// The property.
    pub fn property(self) -> &'static str {
        match self {
            GroupFault::Disagreement => "members that go on deliver the same with each number",
            GroupFault::OutOfOrder => "a member's broadcasts are delivered once and in order",
            GroupFault::Refused => "no sound message is refused",
            GroupFault::Stuck => "whoever has most with it goes on",
            GroupFault::NotUniform => "in the end all have delivered all that they broadcast",
        }
    }
}

/// A message on its way.
#[derive(Clone, PartialEq, Hash)]
pub struct Parcel {
    from: NodeId,
    to: NodeId,
    message: GroupMessage<u8>,
}

#[derive(Clone, PartialEq, Hash)]
struct Node {
    group: Group<u8>,
    log: Vec<(u64, NodeId, u8)>,
    sent: usize,
    ended: bool,
}

/// Everything about one moment of a run.
#[derive(Clone, PartialEq, Hash)]
pub struct Moment {
    nodes: Vec<Sealed<Node>>,
    /// In the order of their hashes, so that the order of sending is forgotten.
    parcels: Vec<Sealed<Parcel>>,
    crashed: Option<usize>,
    /// Survivors that have heard of the crash.
    told: u8,
    fault: Option<GroupFault>,
}

/// Something that can happen next.
#[derive(Clone, PartialEq)]
pub enum Happening {
    /// A member broadcasts.
    Broadcast(usize),
    /// The message at this place arrives.
    Deliver(usize, Sealed<Parcel>),
    /// A member crashes.
    Crash(usize),
    /// A survivor hears of the crash.
    Hear(usize),
}

impl fmt::Debug for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Broadcast(node) => write!(f, "n{node} broadcasts"),
            Happening::Deliver(_, parcel) => {
                let Parcel { from, to, message } = &**parcel;
                write!(f, "{from:?} -> {to:?}: {message:?}")
            }
            Happening::Crash(node) => write!(f, "n{node} crashes"),
            Happening::Hear(node) => write!(f, "n{node} hears of the crash"),
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, node) in self.nodes.iter().enumerate() {
            let view = node.group.view();
            writeln!(f, "  n{number} in {view:?} has delivered {:?}", node.log)?;
        }
        writeln!(f, "  {:?}", self.fault)
    }
}

impl GroupBug {
    /// Tampers with a message, and returns whether it is sent.
    fn tamper(self, message: &mut GroupMessage<u8>) -> bool {
        match (self, message) {
            (GroupBug::HideHistory, GroupMessage::State { state, .. }) => {
                state.held.clear();
                state.done = state.start;
            }
            (GroupBug::ForgetOwn, GroupMessage::Submit { view, .. }) => return view.number == 1,
            (GroupBug::ForgetOwn, GroupMessage::Ask { view, .. }) => return view.number == 1,
            (GroupBug::NumberAlike, GroupMessage::Data { number, .. }) => *number = 1,
            (GroupBug::LoseGathered, GroupMessage::Gathered { .. }) => return false,
            _ => {}
        }
        true
    }
}

impl Moment {
    fn goes_on(&self, node: usize) -> bool {
        self.crashed != Some(node) && !self.nodes[node].ended
    }

    fn send(&mut self, parcel: Parcel, model: &Groups) {
        let Parcel {
            from,
            to,
            mut message,
        } = parcel;
        let sent = model.bug.is_none_or(|bug| bug.tamper(&mut message));
        if !sent || self.crashed == Some(to.index()) {
            return;
        }
        let parcel = Sealed::new(Parcel { from, to, message });
        let before = |other: &Sealed<Parcel>| other.fingerprint() < parcel.fingerprint();
        let place = self.parcels.partition_point(before);
        self.parcels.insert(place, parcel);
    }

    fn step(&mut self, at: usize, event: GroupEvent<u8>, model: &Groups) {
        let mut node = Node::clone(&self.nodes[at]);
        let (from, mut out) = (NodeId::at(at), Vec::new());
        if let Err(GroupError::Message { .. }) = node.group.step(event, 0, &mut out) {
            self.fault = Some(GroupFault::Refused);
        }
        for command in out {
            match command {
                GroupCommand::Send { to, message } => {
                    self.send(Parcel { from, to, message }, model);
                }
                GroupCommand::SendAll { message } => {
                    for to in node.group.others() {
                        let message = message.clone();
                        self.send(Parcel { from, to, message }, model);
                    }
                }
                GroupCommand::Deliver {
                    sequence,
                    from,
                    body,
                } => node.log.push((sequence, from, body)),
                GroupCommand::Stuck { .. } => {
                    node.ended = true;
                    self.fault = self.fault.or(Some(GroupFault::Stuck));
                }
                GroupCommand::View { .. } | GroupCommand::Safe { .. } | GroupCommand::WakeAt(_) => {
                }
            }
        }
        self.nodes[at] = Sealed::new(node);
        self.look(at, model);
    }

    /// Checks the deliveries of a member.
    fn look(&mut self, at: usize, model: &Groups) {
        let log = &self.nodes[at].log;
        let in_order = |(origin, sent): (usize, &Vec<u8>)| {
            let own = log.iter().filter(|(_, from, _)| from.index() == origin);
            let own: Vec<u8> = own.map(|(.., body)| *body).collect();
            sent.starts_with(&own)
        };
        let in_order = model.broadcasts.iter().enumerate().all(in_order);
        let differs = |other: usize| {
            let mut pairs = log.iter().zip(&self.nodes[other].log);
            pairs.any(|(one, other)| one != other)
        };
        let mut others = (0..self.nodes.len()).filter(|node| *node != at && self.goes_on(*node));
        let disagrees = self.goes_on(at) && others.any(differs);
        if !in_order {
            self.fault = self.fault.or(Some(GroupFault::OutOfOrder));
        } else if disagrees {
            self.fault = self.fault.or(Some(GroupFault::Disagreement));
        }
    }

    /// Whether nothing can happen any more, and something is not as it should be then.
    fn ends_badly(&self, model: &Groups) -> bool {
        let told = |node: usize| self.told & (1 << node) != 0;
        let all_told =
            |crashed: usize| (0..self.nodes.len()).all(|node| node == crashed || told(node));
        let going: Vec<usize> = (0..self.nodes.len()).filter(|n| self.goes_on(*n)).collect();
        let all_sent = |node: &usize| self.nodes[*node].sent == model.broadcasts[*node].len();
        let rests = self.parcels.is_empty() && going.iter().all(all_sent);
        if !rests || !self.crashed.is_none_or(all_told) {
            return false;
        }
        let log = |node: usize| &self.nodes[node].log;
        let has_own = |node: &usize| {
            let own = log(*node)
                .iter()
                .filter(|(_, from, _)| from.index() == *node);
            own.count() == model.broadcasts[*node].len()
        };
        !going.iter().all(has_own) || going.windows(2).any(|pair| log(pair[0]) != log(pair[1]))
    }
}

impl Model for Groups {
    type State = Moment;
    type Action = Happening;

    fn init_states(&self) -> Vec<Moment> {
        let nodes = self.broadcasts.len();
        let node = |me| Node {
            group: Group::new(NodeId::at(me), nodes, self.settings.clone()),
            log: Vec::new(),
            sent: 0,
            ended: false,
        };
        vec![Moment {
            nodes: (0..nodes).map(|me| Sealed::new(node(me))).collect(),
            parcels: Vec::new(),
            crashed: None,
            told: 0,
            fault: None,
        }]
    }

    fn actions(&self, state: &Moment, actions: &mut Vec<Happening>) {
        if state.fault.is_some() {
            return;
        }
        for (number, node) in state.nodes.iter().enumerate() {
            if !state.goes_on(number) {
                continue;
            }
            if node.sent < self.broadcasts[number].len() {
                actions.push(Happening::Broadcast(number));
            }
            match state.crashed {
                None if self.crash => actions.push(Happening::Crash(number)),
                Some(_) if state.told & (1 << number) == 0 => {
                    actions.push(Happening::Hear(number));
                }
                _ => {}
            }
        }
        for (place, parcel) in state.parcels.iter().enumerate() {
            let again = place > 0 && state.parcels[place - 1] == *parcel;
            if !again {
                actions.push(Happening::Deliver(place, parcel.clone()));
            }
        }
    }

    fn next_state(&self, last: &Moment, action: Happening) -> Option<Moment> {
        let mut state = last.clone();
        match action {
            Happening::Broadcast(node) => {
                let mut of = Node::clone(&state.nodes[node]);
                let body = self.broadcasts[node][of.sent];
                of.sent += 1;
                state.nodes[node] = Sealed::new(of);
                state.step(node, GroupEvent::Broadcast { body, bytes: 1 }, self);
            }
            Happening::Deliver(place, _) => {
                let parcel = state.parcels.remove(place);
                let (from, message) = (parcel.from, parcel.message.clone());
                let event = GroupEvent::Message { from, message };
                state.step(parcel.to.index(), event, self);
            }
            Happening::Crash(node) => {
                state.crashed = Some(node);
                state.parcels.retain(|parcel| parcel.to.index() != node);
            }
            Happening::Hear(node) => {
                let crashed = NodeId::at(state.crashed?);
                state.told |= 1 << node;
                let late =
                    |parcel: &Sealed<Parcel>| parcel.from == crashed && parcel.to.index() == node;
                state.parcels.retain(|parcel| !late(parcel));
                state.step(node, GroupEvent::Lost(crashed), self);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let never = |fault: GroupFault| -> fn(&Groups, &Moment) -> bool {
            match fault {
                GroupFault::Disagreement => |_, s| s.fault != Some(GroupFault::Disagreement),
                GroupFault::OutOfOrder => |_, s| s.fault != Some(GroupFault::OutOfOrder),
                GroupFault::Refused => |_, s| s.fault != Some(GroupFault::Refused),
                GroupFault::Stuck => |_, s| s.fault != Some(GroupFault::Stuck),
                GroupFault::NotUniform => |model, s| s.fault.is_some() || !s.ends_badly(model),
            }
        };
        let all = GroupFault::ALL.into_iter();
        all.map(|fault| Property::always(fault.property(), never(fault)))
            .collect()
    }
}

/// Takes every step from every state, until the first fault: how many states there are, and the
/// fault with the way to it.
pub fn explore_group(model: Groups) -> (usize, Option<(GroupFault, String)>) {
    let checker = model.checker().threads(2).finish_when(HasDiscoveries::Any);
    let checker = checker.spawn_dfs().join();
    let discoveries = checker.discoveries();
    let found = GroupFault::ALL.into_iter().find_map(|fault| {
        let path = discoveries.get(fault.property())?;
        let actions = path.clone().into_actions();
        let way = actions
            .iter()
            .map(|action| format!("{action:?}\n"))
            .collect::<String>();
        Some((fault, format!("{way}{:?}", path.last_state())))
    });
    (checker.unique_state_count(), found)
}
