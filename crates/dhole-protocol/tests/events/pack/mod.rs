//! A pack of protocols whose messages arrive at once and in order, and are counted.

use std::collections::{BTreeMap, VecDeque};

use dhole_model::{CallSite, Coherence, MessageKind, NodeId, Oid, OidRange, VectorTime};
use dhole_protocol::{
    Command, Event, LockId, LogLimits, Message, PageCommand, Protocol, ProtocolError, Races,
    RegionCommand, Reply, SentDiff, Unit, Unread, WorkerIs, WriteNotices,
};

/// An object that node 0 allocates in [`Pack::with_object`].
pub const OBJECT: Oid = Oid(64);

/// The pages on which objects may lie, in those runs that keep pages consistent.
pub const PAGES: std::ops::Range<u64> = 1..1 << 20;

/// The protocols of some nodes, with the messages between them.
pub struct Pack {
    pub nodes: Vec<Protocol>,
    pub in_flight: VecDeque<(NodeId, NodeId, Message)>,
    pub sent: BTreeMap<MessageKind, usize>,
    /// Commands that messages led to, by node, but for what was sent.
    pub done: Vec<Vec<Command>>,
    /// How many messages carried gossip.
    pub gossiped: usize,
}

/// A node.
pub fn n(index: usize) -> NodeId {
    NodeId::at(index)
}

/// A line of the program.
pub const fn site(line: u32) -> CallSite {
    CallSite {
        file: "program.rs",
        line,
        column: 5,
    }
}

/// An acquire at line 1.
pub fn acquire(lock: u64) -> Event {
    Event::Acquire {
        lock: LockId(lock),
        site: site(1),
    }
}

/// A release.
pub fn release(lock: u64) -> Event {
    Event::Release { lock: LockId(lock) }
}

/// An arrival at a barrier at line 2.
pub fn arrive() -> Event {
    Event::Arrive {
        once: false,
        site: site(2),
    }
}

/// A read of an object that `creator` allocated.
pub fn miss(oid: Oid, creator: usize) -> Event {
    Event::ReadMiss(Unread {
        oid,
        creator: n(creator),
        zero_ok: false,
        coherence: Coherence::Lazy,
    })
}

/// As [`miss`], of an object under another protocol.
pub fn miss_under(oid: Oid, creator: usize, coherence: Coherence) -> Event {
    let creator = n(creator);
    Event::ReadMiss(Unread {
        oid,
        creator,
        zero_ok: false,
        coherence,
    })
}

/// An allocation under the lazy protocol.
pub fn allocated(range: OidRange) -> Event {
    allocated_under(range, Coherence::Lazy)
}

/// An allocation.
pub fn allocated_under(range: OidRange, coherence: Coherence) -> Event {
    Event::Allocated { range, coherence }
}

/// A delivery.
pub fn from(node: usize, message: Message) -> Event {
    Event::Deliver {
        from: n(node),
        message,
    }
}

/// What a releaser tells that has seen nothing.
pub fn no_news(nodes: usize) -> Box<WriteNotices> {
    Box::new(WriteNotices {
        time: VectorTime::zero(nodes),
        lamport: 0,
        intervals: vec![],
    })
}

/// Bytes of a unit behind a message, where each object and element has eight.
fn size(unit: &Unit) -> u64 {
    match unit {
        Unit::Object(_) => 8,
        Unit::Block(elements) => 8 * elements.count,
    }
}

impl Pack {
    pub fn new(nodes: usize) -> Pack {
        Pack::with_limits(nodes, LogLimits::default())
    }

    pub fn with_limits(nodes: usize, limits: LogLimits) -> Pack {
        let protocol = |me| Protocol::with(n(me), nodes, limits, Races::Ignore).paging(PAGES);
        Pack {
            nodes: (0..nodes).map(protocol).collect(),
            in_flight: VecDeque::new(),
            sent: BTreeMap::new(),
            done: vec![Vec::new(); nodes],
            gossiped: 0,
        }
    }

    /// A pack whose node 0 has allocated [`OBJECT`].
    pub fn with_object(nodes: usize) -> Pack {
        let mut pack = Pack::new(nodes);
        assert_eq!(pack.local(0, allocated(OidRange::one(OBJECT))), []);
        pack
    }

    /// An event of a node's worker; messages stay in flight.
    pub fn begin(&mut self, node: usize, event: Event) -> Vec<Command> {
        self.step(node, event, WorkerIs::InCall)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// An event that must not send anything.
    pub fn local(&mut self, node: usize, event: Event) -> Vec<Command> {
        let before = self.in_flight.len();
        let done = self.begin(node, event);
        assert_eq!(self.in_flight.len(), before, "an event that stays here");
        done
    }

    /// An event, and everything that follows from it on all nodes; what it led to on its node.
    pub fn run(&mut self, node: usize, event: Event) -> Vec<Command> {
        let mut done = self.begin(node, event);
        let before = self.done[node].len();
        self.settle();
        done.extend_from_slice(&self.done[node][before..]);
        done
    }

    /// Delivers all messages, those that follow among them.
    pub fn settle(&mut self) {
        while self.deliver_next() {}
    }

    /// Delivers the message that was sent first.
    pub fn deliver_next(&mut self) -> bool {
        let Some((from, to, message)) = self.in_flight.pop_front() else {
            return false;
        };
        let done = self.begin(to.index(), Event::Deliver { from, message });
        self.done[to.index()].extend(done);
        true
    }

    /// A step that may be refused; what it led to, but for what was sent.
    pub fn step(
        &mut self,
        node: usize,
        event: Event,
        worker: WorkerIs,
    ) -> Result<Vec<Command>, ProtocolError> {
        let mut commands = Vec::new();
        let before = self.nodes[node].clone();
        if let Err(error) = self.nodes[node].step(event, worker, &mut commands) {
            assert_eq!(commands, [], "{error}: nothing is to be done");
            assert!(self.nodes[node] == before, "{error}: nothing was done");
            return Err(error);
        }
        let mut done = Vec::new();
        for command in commands {
            let (to, message) = match command {
                Command::Send { to, message } => (to, message),
                Command::SendUnits {
                    ref to,
                    ref message,
                    ref units,
                    ..
                } => {
                    let sizes: Vec<u64> = units.iter().map(size).collect();
                    for to in to {
                        let mut message = message.clone();
                        message.set_sizes(&sizes);
                        self.goes(node, *to, message);
                    }
                    if let MessageKind::Flush = message.kind() {
                        done.push(command);
                    }
                    continue;
                }
                Command::Objects(RegionCommand::Reply(Reply { to, message, .. })) => {
                    (to, Message::FetchReply(message))
                }
                Command::Array(RegionCommand::Reply(Reply { to, message, .. })) => {
                    (to, Message::ElementsReply(message))
                }
                Command::Pages(PageCommand::ReplyPage {
                    to,
                    round,
                    page,
                    applied,
                    ..
                }) => {
                    let message = Message::PageReply {
                        round,
                        page,
                        applied,
                    };
                    (to, message)
                }
                Command::Pages(PageCommand::ReplyDiffs {
                    to,
                    round,
                    page,
                    got,
                    diffs,
                }) => {
                    let sent = |(id, lamport)| SentDiff {
                        id,
                        lamport,
                        bytes: 8,
                    };
                    let diffs = diffs.into_iter().map(sent).collect();
                    let message = Message::DiffReply {
                        round,
                        page,
                        got,
                        diffs,
                    };
                    (to, message)
                }
                command => {
                    done.push(command);
                    continue;
                }
            };
            self.goes(node, to, message);
        }
        Ok(done)
    }

    fn goes(&mut self, node: usize, to: NodeId, message: Message) {
        if to != n(node) {
            *self.sent.entry(message.kind()).or_default() += 1;
        }
        self.gossiped += usize::from(matches!(message, Message::Gossiped { .. }));
        self.in_flight.push_back((n(node), to, message));
    }

    /// How many messages went from node to node since this was asked last.
    pub fn messages(&mut self) -> usize {
        std::mem::take(&mut self.sent).values().sum()
    }

    /// A node writes an object of which it has a valid copy, and announces it.
    pub fn write(&mut self, node: usize, oid: Oid) {
        self.local(node, Event::WriteFault { oid, site: site(3) });
    }

    /// All nodes meet at a barrier.
    pub fn barrier(&mut self) {
        for node in 0..self.nodes.len() {
            self.begin(node, arrive());
        }
        self.settle();
    }

    /// A node holds and releases a lock.
    pub fn pass(&mut self, node: usize, lock: u64) {
        assert!(
            self.run(node, acquire(lock)).contains(&Command::Done),
            "the lock is free"
        );
        self.run(node, release(lock));
    }

    /// Delivers a message that must be refused, and must leave no trace.
    pub fn refuse(&mut self, node: usize, event: Event) -> ProtocolError {
        let (before, mut out) = (self.nodes[node].clone(), Vec::new());
        let refused = self.nodes[node].step(event, WorkerIs::InCall, &mut out);
        let error = refused.expect_err("an event that must not happen");
        assert!(out.is_empty(), "{error}: nothing is to be done");
        assert_eq!(self.nodes[node], before, "{error}: nothing was done");
        error
    }
}

/// Whether the bytes of the first object of the first reply are those of its pre-image.
pub fn from_pre_image(commands: &[Command]) -> Option<bool> {
    commands.iter().find_map(|command| match command {
        Command::Objects(RegionCommand::Reply(Reply {
            message,
            pre_images,
            ..
        })) => Some(pre_images.contains(&message.sent[0].region)),
        _ => None,
    })
}
