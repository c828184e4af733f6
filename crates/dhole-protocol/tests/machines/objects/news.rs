//! What is told of intervals with calls and their results, and what need not be.

use std::collections::VecDeque;

use dhole_model::CallSite;
use dhole_protocol::Attached;
use dhole_protocol::objects::Start;

use super::batches::{begin, deliver, replied, sent};
use super::*;

const ZERO: NodeId = NodeId(0);
const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const ALL: [NodeId; 3] = [ZERO, ONE, TWO];

struct Nodes {
    all: Vec<Node>,
    /// What is to be multicast, and was not yet.
    broadcast: VecDeque<Arc<Ordered>>,
}

impl Nodes {
    fn new() -> Nodes {
        Nodes {
            all: ALL.iter().map(|id| Node::new(id.0, ALL.len())).collect(),
            broadcast: VecDeque::new(),
        }
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        &mut self.all[id.index()]
    }

    fn multicast(&mut self, from: NodeId, body: Arc<Ordered>) {
        let sequence = self.node(ZERO).machine.delivered() + 1;
        for id in ALL {
            let body = Arc::clone(&body);
            let delivered = ObjectsEvent::Delivered {
                sequence,
                from,
                body,
            };
            self.has(id, delivered);
        }
    }

    /// An object that is on the node that makes it.
    fn object(&mut self, on: NodeId) -> ObjectId {
        let object = self.node(on).machine.new_object();
        let create = ObjectsEvent::Create {
            call: 0,
            object,
            kind: 0,
            state: Bytes::default(),
            strategy: Strategy::On(on),
        };
        self.has(on, create);
        object
    }

    /// The worker has ended the first interval in which it wrote.
    fn writes(&mut self, id: NodeId) {
        let mut time = VectorTime::zero(ALL.len());
        time.see(id, 1);
        let interval = Interval {
            node: id,
            first: 1,
            index: 1,
            lamport: 1,
            written: Vec::new(),
            base: None,
            elements: Vec::new(),
            freed: Vec::new(),
            attached: Attached::Nothing,
        };
        self.node(id).learns(&WriteNotices {
            time,
            lamport: 1,
            intervals: vec![Arc::new(interval)],
        });
    }

    /// Something happens, and all that comes of it. What was sent.
    fn has(&mut self, id: NodeId, event: ObjectsEvent) -> Vec<ObjectsMessage> {
        let mut sent = Vec::new();
        let mut coming = VecDeque::from([(id, event)]);
        while let Some((id, event)) = coming.pop_front() {
            for command in self.node(id).step(event).unwrap() {
                match command {
                    ObjectsCommand::Send { to, message } => {
                        sent.push(message.clone());
                        coming.push_back((to, ObjectsEvent::Deliver { from: id, message }));
                    }
                    ObjectsCommand::Start(Start { by, time, .. }) => {
                        let outcome = Ok(Bytes::default());
                        coming.push_back((id, ObjectsEvent::Ended { by, time, outcome }));
                    }
                    ObjectsCommand::Broadcast(body) => self.broadcast.push_back(body),
                    _ => {}
                }
            }
        }
        sent
    }

    fn adds(&mut self, by: NodeId, number: u64, to: ObjectId) -> Vec<ObjectsMessage> {
        let call = call(to, id(by.0, number), ADD);
        self.has(by, ObjectsEvent::Invoke(call))
    }

    /// Starts a process elsewhere, which ends at once.
    fn starts(&mut self, by: NodeId, number: u64, on: NodeId) {
        let start = Start {
            by: id(by.0, number),
            what: 0,
            arguments: Bytes::default(),
            site: CallSite::caller(),
            time: None,
            chain: Bytes::default(),
        };
        self.has(by, ObjectsEvent::Spawn { start, to: on });
    }
}

impl Node {
    fn learns(&mut self, news: &WriteNotices) {
        let seen = self.copies.1.get_or_insert_with(|| WriteNotices {
            intervals: Vec::new(),
            ..news.clone()
        });
        seen.time.merge(&news.time);
        seen.intervals.extend(news.intervals.iter().cloned());
    }

    /// The worker learns what operations have told.
    fn learns_all(&mut self) {
        let time = self.copies.time();
        if let Some(news) = self.machine.unlearned(time.as_ref()) {
            self.learns(&news);
        }
    }
}

/// The nodes of whose intervals the last message tells.
fn told_of(sent: &[ObjectsMessage]) -> Vec<NodeId> {
    match sent.last() {
        Some(
            ObjectsMessage::Reply {
                news: Some(news), ..
            }
            | ObjectsMessage::BatchReply {
                news: Some(news), ..
            },
        ) => news.intervals.iter().map(|it| it.node).collect(),
        _ => Vec::new(),
    }
}

/// Node 1 has told node 0 of its interval: after any reply of node 0 it can tell others too.
fn can_tell_others(mut nodes: Nodes, there: ObjectId, here: ObjectId) {
    nodes.writes(TWO);
    nodes.adds(TWO, 1, there);
    // What node 1 itself wrote need not be told it with this.
    let sent = nodes.adds(ONE, 2, there);
    assert!(tells_nothing(&sent[0]), "{sent:?}");
    assert_eq!(told_of(&sent), [TWO]);
    nodes.node(ONE).learns_all();
    nodes.has(ONE, ObjectsEvent::Wrote(here));
    // But others have to be told it.
    let sent = nodes.adds(TWO, 2, here);
    assert_eq!(told_of(&sent), [ONE]);
}

#[test]
fn who_has_started_a_process_can_tell_others_what_it_told_with_that() {
    let mut nodes = Nodes::new();
    let (there, here) = (nodes.object(ZERO), nodes.object(ONE));
    nodes.writes(ONE);
    nodes.starts(ONE, 1, ZERO);
    can_tell_others(nodes, there, here);
}

#[test]
fn who_has_multicast_an_operation_can_tell_others_what_it_told_with_that() {
    let mut nodes = Nodes::new();
    let here = nodes.object(ONE);
    let there = nodes.node(ZERO).machine.new_object();
    nodes.multicast(ZERO, Arc::new(create(there, id(0, 1))));
    nodes.writes(ONE);
    nodes.adds(ONE, 1, there);
    let operate = nodes.broadcast.pop_front().unwrap();
    // It comes when only node 0 has a copy.
    let change = Ordered::Change {
        by: id(0, 2),
        object: there,
        to: Strategy::On(ZERO),
        asks: false,
    };
    nodes.multicast(ZERO, Arc::new(change));
    nodes.multicast(ONE, operate);
    assert_eq!(nodes.node(ZERO).copies.0[&there], 1);
    can_tell_others(nodes, there, here);
}

/// Whether a request or reply brings no notices.
fn tells_nothing(message: &ObjectsMessage) -> bool {
    match message {
        ObjectsMessage::Request { time, news, .. } | ObjectsMessage::Batch { time, news, .. } => {
            time.is_none() && news.is_none()
        }
        message => message.news().is_none(),
    }
}

#[test]
fn a_caller_is_told_what_it_has_not_said_that_it_has_heard() {
    let mut nodes = Nodes::new();
    let object = nodes.object(ZERO);
    assert!(nodes.adds(ONE, 1, object).iter().all(tells_nothing));
    nodes.writes(TWO);
    nodes.adds(TWO, 1, object);
    // It hears of that with an answer, and has to say so.
    assert_eq!(told_of(&nodes.adds(ONE, 3, object)), [TWO]);
    assert_eq!(told_of(&nodes.adds(ONE, 4, object)), [TWO]);
    nodes.node(ONE).learns_all();
    let sent = nodes.adds(ONE, 5, object);
    assert!(!tells_nothing(&sent[0]), "{sent:?}");
    assert_eq!(told_of(&sent), []);
    assert!(nodes.adds(ONE, 6, object).iter().all(tells_nothing));
    assert_eq!(nodes.node(ZERO).copies.0[&object], 6);
}

/// Node 1 begins two calls, the second of which goes as a batch, and two that wait for its answer.
fn begins(nodes: &mut Nodes, object: ObjectId) -> ObjectsMessage {
    let caller = nodes.node(ONE);
    caller.machine.count(object, true);
    let mut went = (1..=4).flat_map(|number| begin(caller, object, number, ADD));
    let batch = went.nth(1);
    assert_eq!(went.count(), 0);
    batch.unwrap()
}

#[test]
fn a_batch_says_what_its_caller_has_written_meanwhile_and_the_next_need_not() {
    let mut nodes = Nodes::new();
    let object = nodes.object(ZERO);
    let batch = begins(&mut nodes, object);
    assert!(tells_nothing(&batch));
    nodes.writes(ONE);
    let answer = sent(deliver(nodes.node(ZERO), 1, &batch));
    let rest = sent(deliver(nodes.node(ONE), 0, &answer[0]));
    let [
        request @ ObjectsMessage::Batch {
            calls,
            news: Some(_),
            ..
        },
    ] = &rest[..]
    else {
        panic!("{rest:?}");
    };
    let calls = calls.iter(ONE).map(|call| call.id.number);
    assert_eq!(calls.collect::<Vec<_>>(), [3, 4]);
    assert_eq!(begin(nodes.node(ONE), object, 5, ADD), []);
    let answer = sent(deliver(nodes.node(ZERO), 1, request));
    assert!(tells_nothing(&answer[0]));
    let rest = sent(deliver(nodes.node(ONE), 0, &answer[0]));
    assert!(tells_nothing(&rest[0]));
    // What one has said oneself one is not told.
    let answer = sent(deliver(nodes.node(ZERO), 1, &rest[0]));
    assert!(tells_nothing(&answer[0]));
}

#[test]
fn the_answer_to_a_batch_says_what_its_caller_has_not_heard() {
    let mut nodes = Nodes::new();
    let object = nodes.object(ZERO);
    nodes.writes(TWO);
    nodes.adds(TWO, 1, object);
    let batch = begins(&mut nodes, object);
    let answer = sent(deliver(nodes.node(ZERO), 1, &batch));
    assert_eq!(replied(&answer), (vec![2], true));
    assert_eq!(told_of(&answer), [TWO]);
    // Before the worker has learnt it there is nothing to tell.
    let rest = sent(deliver(nodes.node(ONE), 0, &answer[0]));
    assert!(tells_nothing(&rest[0]), "{rest:?}");
    let answer = sent(deliver(nodes.node(ZERO), 1, &rest[0]));
    assert_eq!(told_of(&answer), [TWO], "nobody has said that it was heard");
    nodes.node(ONE).learns_all();
    assert_eq!(begin(nodes.node(ONE), object, 5, ADD), []);
    let rest = sent(deliver(nodes.node(ONE), 0, &answer[0]));
    let [request @ ObjectsMessage::Batch { news: Some(_), .. }] = &rest[..] else {
        panic!("{rest:?}");
    };
    let answer = sent(deliver(nodes.node(ZERO), 1, request));
    assert!(tells_nothing(&answer[0]), "{answer:?}");
}
