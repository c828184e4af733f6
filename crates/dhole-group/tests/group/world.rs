//! A simulated cluster of group members: links that lose, double and reorder, partitions, crashes,
//! a detector that tells of losses late, members that leave and join. One seed decides everything.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use dhole_group::{
    Ending, Group, GroupCommand, GroupError, GroupEvent, GroupMessage, Part, Settings, ViewId,
};
use dhole_model::NodeId;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::bug::Bug;

/// What is broadcast.
pub type Text = Arc<[u8]>;

/// How the links are, and what members rely on.
#[derive(Clone, Debug)]
pub struct Links {
    pub settings: Settings,
    /// Of a hundred messages so many are lost.
    pub loss: u32,
    /// Of a hundred messages so many arrive twice.
    pub doubled: u32,
    /// Messages take up to so long, whatever was sent before them.
    pub delay_ns: u64,
    /// A loss is detected after so long, or up to twice that.
    pub detection_ns: u64,
}

impl Links {
    /// Links that lose nothing, in no order.
    pub fn reliable() -> Links {
        let settings = Settings {
            largest: 64,
            forward_most: 40,
            window: 32,
            acknowledge_every: 8,
            under_way: 4,
            ..Settings::reliable()
        };
        Links {
            settings,
            loss: 0,
            doubled: 0,
            delay_ns: 1000,
            detection_ns: 20_000,
        }
    }

    /// Datagrams.
    pub fn lossy() -> Links {
        let reliable = Links::reliable();
        let settings = Settings {
            reliable: false,
            resend_ns: 5_000,
            ..reliable.settings
        };
        Links {
            settings,
            loss: 15,
            doubled: 10,
            ..reliable
        }
    }
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Happening {
    Arrive {
        from: NodeId,
        to: NodeId,
        message: Box<GroupMessage<Text>>,
    },
    Wake(NodeId),
    Broadcast(NodeId, usize),
    Crash(NodeId),
    /// The first is told that the second, which crashed in this life, is lost.
    Detect(NodeId, NodeId, u64),
    /// The first is told that the second is lost.
    Lost(NodeId, NodeId),
    /// The same, but the link between them goes on.
    Suspect(NodeId, NodeId),
    Leave(NodeId),
    Join(NodeId),
    /// These nodes and the others hear nothing of each other.
    Cut(Vec<NodeId>),
    /// All links are as before.
    Mend,
    /// Links lose nothing any more.
    Calm,
}

/// A view as a member was told of it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub id: ViewId,
    pub members: Vec<NodeId>,
    pub joined: Vec<NodeId>,
    pub after: u64,
}

/// One node.
#[derive(Debug)]
pub struct Node {
    pub group: Group<Text>,
    pub crashed: bool,
    pub stuck: Option<Ending>,
    /// What it delivered: number, originator, text.
    pub log: Vec<(u64, NodeId, Text)>,
    pub views: Vec<Seen>,
    /// What it has broadcast in this life.
    pub sent: Vec<Text>,
    /// The number after which this life began.
    pub began: u64,
    pub life: u64,
    wake_ns: Option<u64>,
    lost: Vec<NodeId>,
}

/// All of it.
pub struct World {
    pub nodes: Vec<Node>,
    pub links: Links,
    pub bug: Option<Bug>,
    /// Whether every happening is printed.
    pub is_traced: bool,
    pub random: Xoshiro256PlusPlus,
    /// What a member called nonsense.
    pub refused: Option<GroupError>,
    /// The longest history that any member has had.
    pub longest: usize,
    /// What some member was told is safe, by number.
    pub safe: BTreeMap<u64, Text>,
    /// Messages that were sent, by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// How often what was stepped with may have come alone, by what it was.
    pub alone: BTreeMap<&'static str, u64>,
    /// The last part that was sent with a number, for a planted bug.
    last: Option<(u64, Part, Text)>,
    now_ns: u64,
    number: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    cut: Vec<NodeId>,
    out: Vec<GroupCommand<Text>>,
}

impl World {
    pub fn new(seed: u64, nodes: usize, links: Links) -> World {
        let node = |me| Node {
            group: Group::new(NodeId::at(me), nodes, links.settings.clone()),
            crashed: false,
            stuck: None,
            log: Vec::new(),
            views: Vec::new(),
            sent: Vec::new(),
            began: 0,
            life: 0,
            wake_ns: None,
            lost: Vec::new(),
        };
        World {
            nodes: (0..nodes).map(node).collect(),
            links,
            bug: None,
            is_traced: false,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            refused: None,
            longest: 0,
            safe: BTreeMap::new(),
            counts: BTreeMap::new(),
            alone: BTreeMap::new(),
            last: None,
            now_ns: 0,
            number: 0,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            cut: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Plans that something happens.
    pub fn at(&mut self, at_ns: u64, what: Happening) {
        self.number += 1;
        self.queue.push(Reverse((at_ns, self.number)));
        self.happenings.insert(self.number, what);
    }

    /// Lets happen what is planned, and what follows on it; whether it came to an end.
    pub fn run(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(Reverse((at_ns, number))) = self.queue.pop() else {
                return true;
            };
            self.now_ns = at_ns;
            if let Some(what) = self.happenings.remove(&number) {
                self.happen(what);
            }
            if self.refused.is_some() {
                return true;
            }
        }
        self.queue.is_empty()
    }

    fn happen(&mut self, what: Happening) {
        if self.is_traced {
            eprintln!("{:8} {what:?}", self.now_ns);
        }
        match what {
            Happening::Arrive { from, to, message } => self.arrive(from, to, *message),
            Happening::Wake(node) => {
                if self.nodes[node.index()].wake_ns == Some(self.now_ns) {
                    self.nodes[node.index()].wake_ns = None;
                    self.step(node, GroupEvent::Tick);
                }
            }
            Happening::Broadcast(node, bytes) => {
                let of = &mut self.nodes[node.index()];
                let mut text = format!("{} {} {}:", node.0, of.life, of.sent.len()).into_bytes();
                text.resize(bytes.max(text.len()), b'.');
                let body: Text = text.into();
                let ended = of.stuck.is_some() || of.crashed;
                if !ended
                    && self.step(
                        node,
                        GroupEvent::Broadcast {
                            body: body.clone(),
                            bytes: body.len(),
                        },
                    )
                {
                    self.nodes[node.index()].sent.push(body);
                }
            }
            Happening::Crash(node) => {
                self.nodes[node.index()].crashed = true;
                for other in self.others(node) {
                    self.detect(other, node);
                }
            }
            Happening::Detect(at, node, life) => {
                if self.nodes[node.index()].life == life {
                    self.happen(Happening::Lost(at, node));
                }
            }
            Happening::Lost(at, node) => {
                self.nodes[at.index()].lost.push(node);
                self.step(at, GroupEvent::Lost(node));
            }
            Happening::Suspect(at, node) => {
                self.step(at, GroupEvent::Lost(node));
            }
            Happening::Leave(node) => {
                self.step(node, GroupEvent::Leave);
            }
            Happening::Join(node) => self.join(node),
            Happening::Cut(nodes) => {
                self.cut = nodes;
            }
            Happening::Mend => self.cut.clear(),
            Happening::Calm => (self.links.loss, self.links.doubled) = (0, 0),
        }
    }

    /// A node that is no member, or was one in an earlier life, starts and joins.
    fn join(&mut self, node: NodeId) {
        let nodes = self.nodes.len();
        let settings = self.links.settings.clone();
        let of = &mut self.nodes[node.index()];
        if !of.crashed && of.stuck.is_none() {
            return;
        }
        of.life += 1;
        of.group = Group::joining(node, of.life, nodes, settings);
        (of.crashed, of.stuck, of.wake_ns) = (false, None, None);
        (of.log, of.views, of.sent, of.lost) = Default::default();
        for other in &mut self.nodes {
            other.lost.retain(|lost| *lost != node);
        }
        self.step(node, GroupEvent::Tick);
    }

    fn others(&self, node: NodeId) -> Vec<NodeId> {
        let all = (0..self.nodes.len()).map(NodeId::at);
        all.filter(|other| *other != node).collect()
    }

    /// Tells a node of a loss some time from now.
    pub fn detect(&mut self, at: NodeId, lost: NodeId) {
        let least = self.links.detection_ns;
        let wait_ns = self.random.random_range(least..=2 * least);
        let life = self.nodes[lost.index()].life;
        self.at(self.now_ns + wait_ns, Happening::Detect(at, lost, life));
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.contains(&from) != self.cut.contains(&to)
    }

    fn arrive(&mut self, from: NodeId, to: NodeId, message: GroupMessage<Text>) {
        let deaf = self.nodes[to.index()].lost.contains(&from);
        if !deaf && !self.is_cut(from, to) {
            self.step(to, GroupEvent::Message { from, message });
        }
    }

    fn step(&mut self, node: NodeId, event: GroupEvent<Text>) -> bool {
        let of = &mut self.nodes[node.index()];
        if of.crashed {
            return false;
        }
        let mut out = std::mem::take(&mut self.out);
        let alone = of.group.is_uncontended(&event).then(|| {
            let (mut group, mut does) = (of.group.clone(), Vec::new());
            let done = group.general_step(event.clone(), self.now_ns, &mut does);
            assert_eq!(done, Ok(()));
            (alone(&group, &event), group, does)
        });
        let done = of.group.step(event, self.now_ns, &mut out);
        if let Some((how, group, does)) = alone {
            assert_eq!((&does, &group), (&out, &of.group), "{how}");
            *self.alone.entry(how).or_default() += 1;
        }
        self.longest = self.longest.max(of.group.history());
        for command in out.drain(..) {
            self.obey(node, command);
        }
        self.out = out;
        match done {
            Ok(()) => true,
            Err(error @ GroupError::Message { .. }) => {
                self.refused = Some(error);
                false
            }
            Err(_) => false,
        }
    }

    fn obey(&mut self, node: NodeId, command: GroupCommand<Text>) {
        let of = &mut self.nodes[node.index()];
        match command {
            GroupCommand::Send { to, message } => self.send(node, to, message),
            GroupCommand::SendAll { message } => {
                for to in of.group.others().collect::<Vec<_>>() {
                    self.send(node, to, message.clone());
                }
            }
            GroupCommand::Deliver {
                sequence,
                from,
                body,
            } => {
                if from == node && self.bug == Some(Bug::SafeAtOnce) {
                    self.safe.insert(sequence, body.clone());
                }
                of.log.push((sequence, from, body));
            }
            GroupCommand::Safe { sequence } => {
                let log = of.log.iter().filter(|(number, ..)| *number <= sequence);
                let log = log.map(|(number, _, text)| (*number, text.clone()));
                self.safe.extend(log);
            }
            GroupCommand::WakeAt(at_ns) => {
                of.wake_ns = Some(at_ns);
                self.at(at_ns, Happening::Wake(node));
            }
            GroupCommand::View {
                id,
                members,
                joined,
                after,
                ..
            } => {
                if joined.contains(&node) {
                    of.began = after;
                }
                of.views.push(Seen {
                    id,
                    members,
                    joined,
                    after,
                });
            }
            GroupCommand::Stuck { reason } => of.stuck = Some(reason),
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, mut message: GroupMessage<Text>) {
        *self.counts.entry(kind(&message)).or_default() += 1;
        if self
            .bug
            .is_some_and(|bug| !bug.tamper(&mut message, &mut self.last))
        {
            return;
        }
        if self.random.random_range(0..100) < self.links.loss {
            return;
        }
        let copies = match self.random.random_range(0..100) < self.links.doubled {
            true => 2,
            false => 1,
        };
        for _ in 0..copies {
            let delay_ns = self.random.random_range(1..=self.links.delay_ns);
            let message = Box::new(message.clone());
            self.at(
                self.now_ns + delay_ns,
                Happening::Arrive { from, to, message },
            );
        }
    }
}

/// As what an event that is uncontended is counted.
fn alone(group: &Group<Text>, event: &GroupEvent<Text>) -> &'static str {
    match event {
        GroupEvent::Broadcast { .. } if group.view().sequencer == group.me() => "own",
        GroupEvent::Broadcast { .. } => "submitted",
        GroupEvent::Message { message, .. } => match message {
            GroupMessage::Data { part, .. } if part.origin == group.me() => "own data",
            GroupMessage::Data { .. } => "data",
            _ => "numbered",
        },
        _ => "nothing",
    }
}

/// What a message is counted as.
fn kind(message: &GroupMessage<Text>) -> &'static str {
    match message {
        GroupMessage::Submit { .. } => "submit",
        GroupMessage::Ask { .. } => "ask",
        GroupMessage::Grant { .. } => "grant",
        GroupMessage::Announce { .. } => "announce",
        GroupMessage::Accept { .. } => "accept",
        GroupMessage::Data { .. } => "data",
        GroupMessage::Fetch { .. } => "fetch",
        GroupMessage::Token { .. } => "token",
        GroupMessage::Relay { .. } => "relay",
        GroupMessage::Credit { .. } => "credit",
        GroupMessage::Have { .. } => "have",
        _ => "change",
    }
}
