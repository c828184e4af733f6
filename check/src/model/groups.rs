//! The model of a totally ordered group. It explores every run: broadcasts, messages in any order,
//! and one crash at any moment. Each survivor hears of the crash at any later one.

use std::fmt;

use dhole_model::{NodeId, Variants};
use dhole_protocol::group::{Group, GroupCommand, GroupError, GroupEvent, GroupMessage, Settings};

use super::world::{self, NoSight, ParcelOf, Scene, World};

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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum GroupFault {
    /// Two members that go on deliver different messages with one number.
    #[variants("members that go on deliver the same with each number")]
    Disagreement,
    /// A member delivers a message twice, or out of its originator's order.
    #[variants("a member's broadcasts are delivered once and in order")]
    OutOfOrder,
    /// A member calls a message of a sound member nonsense.
    #[variants("no sound message is refused")]
    Refused,
    /// A member ends although most go on.
    #[variants("whoever has most with it goes on")]
    Stuck,
    /// It is over, and members that go on have not delivered all that they broadcast, alike.
    #[variants("in the end all have delivered all that they broadcast")]
    NotUniform,
}

type Moment = World<Groups>;
type Parcel = ParcelOf<Groups>;
type Step<'a> = world::Step<'a, Groups>;

#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Node {
    group: Group<u8>,
    log: Vec<(u64, NodeId, u8)>,
    sent: usize,
    ended: bool,
}

/// What no member knows.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Ghosts {
    crashed: Option<usize>,
    /// Survivors that have heard of the crash.
    told: u8,
}

/// What can happen next beside a message that arrives.
#[derive(Clone, PartialEq)]
pub(super) enum Happening {
    /// A member broadcasts.
    Broadcast(usize),
    /// A member crashes.
    Crash(usize),
    /// A survivor hears of the crash.
    Hear(usize),
}

impl fmt::Debug for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Broadcast(node) => write!(f, "n{node} broadcasts"),
            Happening::Crash(node) => write!(f, "n{node} crashes"),
            Happening::Hear(node) => write!(f, "n{node} hears of the crash"),
        }
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

fn goes_on(moment: &Moment, node: usize) -> bool {
    moment.crashed != Some(node) && !moment.nodes[node].ended
}

impl Step<'_> {
    fn send(&mut self, at: usize, to: NodeId, mut message: GroupMessage<u8>) {
        let bug = self.model.bug;
        let sent = bug.is_none_or(|bug| bug.tamper(&mut message));
        if sent && self.moment.crashed != Some(to.index()) {
            let (from, holds) = (NodeId::at(at), ());
            self.put(world::Parcel {
                from,
                to,
                message,
                holds,
            });
        }
    }

    fn step(&mut self, at: usize, event: GroupEvent<u8>) {
        let mut out = Vec::new();
        let (stepped, others) = self.node(at, |node| {
            let stepped = node.group.step(event, 0, &mut out);
            (stepped, node.group.others().collect::<Vec<_>>())
        });
        if let Err(GroupError::Message { .. }) = stepped {
            self.moment.fault = Some(GroupFault::Refused);
        }
        for command in out {
            match command {
                GroupCommand::Send { to, message } => self.send(at, to, message),
                GroupCommand::SendAll { message } => {
                    for to in &others {
                        self.send(at, *to, message.clone());
                    }
                }
                GroupCommand::Deliver {
                    sequence,
                    from,
                    body,
                } => self.node(at, |node| node.log.push((sequence, from, body))),
                GroupCommand::Stuck { .. } => {
                    self.node(at, |node| node.ended = true);
                    self.fault(GroupFault::Stuck);
                }
                GroupCommand::View { .. } | GroupCommand::Safe { .. } | GroupCommand::WakeAt(_) => {
                }
            }
        }
        self.look(at);
    }

    /// Checks the deliveries of a member.
    fn look(&mut self, at: usize) {
        let moment = &self.moment;
        let log = &moment.nodes[at].log;
        let in_order = |(origin, sent): (usize, &Vec<u8>)| {
            let own = log.iter().filter(|(_, from, _)| from.index() == origin);
            let own: Vec<u8> = own.map(|(.., body)| *body).collect();
            sent.starts_with(&own)
        };
        let in_order = self.model.broadcasts.iter().enumerate().all(in_order);
        let differs = |other: usize| {
            let mut pairs = log.iter().zip(&moment.nodes[other].log);
            pairs.any(|(one, other)| one != other)
        };
        let others = (0..moment.nodes.len()).filter(|node| *node != at);
        let mut others = others.filter(|node| goes_on(moment, *node));
        let disagrees = goes_on(moment, at) && others.any(differs);
        if !in_order {
            self.fault(GroupFault::OutOfOrder);
        } else if disagrees {
            self.fault(GroupFault::Disagreement);
        }
    }
}

impl Scene for Groups {
    type Message = GroupMessage<u8>;
    type Node = Node;
    type Holds = ();
    type Ghosts = Ghosts;
    type Happens = Happening;
    type Fault = GroupFault;
    type Sight = NoSight;

    fn first(&self) -> (Vec<Node>, Ghosts) {
        let nodes = self.broadcasts.len();
        let node = |me| Node {
            group: Group::new(NodeId::at(me), nodes, self.settings.clone()),
            log: Vec::new(),
            sent: 0,
            ended: false,
        };
        let (crashed, told) = (None, 0);
        ((0..nodes).map(node).collect(), Ghosts { crashed, told })
    }

    fn happenings(&self, moment: &Moment, next: &mut Vec<Happening>) {
        for (number, node) in moment.nodes.iter().enumerate() {
            if !goes_on(moment, number) {
                continue;
            }
            if node.sent < self.broadcasts[number].len() {
                next.push(Happening::Broadcast(number));
            }
            match moment.crashed {
                None if self.crash => next.push(Happening::Crash(number)),
                Some(_) if moment.told & (1 << number) == 0 => next.push(Happening::Hear(number)),
                _ => {}
            }
        }
    }

    fn happen(step: &mut Step<'_>, what: Happening) {
        match what {
            Happening::Broadcast(node) => {
                let broadcasts = &step.model.broadcasts[node];
                let body = step.node(node, |of| {
                    of.sent += 1;
                    broadcasts[of.sent - 1]
                });
                step.step(node, GroupEvent::Broadcast { body, bytes: 1 });
            }
            Happening::Crash(node) => {
                step.moment.crashed = Some(node);
                step.lose(|parcel| parcel.to.index() == node);
            }
            Happening::Hear(node) => {
                let Some(crashed) = step.moment.crashed.map(NodeId::at) else {
                    return;
                };
                step.moment.told |= 1 << node;
                step.lose(|parcel| parcel.from == crashed && parcel.to.index() == node);
                step.step(node, GroupEvent::Lost(crashed));
            }
        }
    }

    fn deliver(step: &mut Step<'_>, parcel: Parcel) {
        let (from, message) = (parcel.from, parcel.message);
        step.step(parcel.to.index(), GroupEvent::Message { from, message });
    }

    fn at_rest(&self, moment: &Moment) -> Option<GroupFault> {
        let told = |node: usize| moment.told & (1 << node) != 0;
        let all_told =
            |crashed: usize| (0..moment.nodes.len()).all(|node| node == crashed || told(node));
        let going = (0..moment.nodes.len()).filter(|node| goes_on(moment, *node));
        let going: Vec<usize> = going.collect();
        let all_sent = |node: &usize| moment.nodes[*node].sent == self.broadcasts[*node].len();
        if !going.iter().all(all_sent) || !moment.crashed.is_none_or(all_told) {
            return None;
        }
        let log = |node: usize| &moment.nodes[node].log;
        let has_own = |node: &usize| {
            let own = log(*node)
                .iter()
                .filter(|(_, from, _)| from.index() == *node);
            own.count() == self.broadcasts[*node].len()
        };
        let differ = going.windows(2).any(|pair| log(pair[0]) != log(pair[1]));
        (!going.iter().all(has_own) || differ).then_some(GroupFault::NotUniform)
    }

    fn shows(&self, _: &Moment, sight: NoSight) -> bool {
        match sight {}
    }
}

/// Takes every step from every state, until the first fault: how many states there are, and the
/// fault with the way to it.
pub fn explore_group(model: Groups) -> (usize, Option<(GroupFault, String)>) {
    let found = world::explore(model);
    (found.states, found.fault)
}
