//! The machine of objects alone: what all replicas decide alike, and what no sound node says.

mod batches;
mod news;
mod notify;
mod packed;
mod predefined;

use std::collections::BTreeMap;
use std::sync::Arc;

use dhole_model::{NodeId, ObjectId, VectorTime};
use dhole_protocol::objects::{
    Bytes, Call, CallId, Host, MOST_CALLS, Objects, ObjectsCommand, ObjectsEvent, ObjectsMessage,
    Ordered, Outcome, Place, Refusal, Saved, Strategy, Tried,
};
use dhole_protocol::{Interval, ProtocolError, WriteNotices};

/// Tells the value when there is one.
const AWAIT: u16 = 0;
/// Takes one away when there is one.
const TAKE: u16 = 1;
const ADD: u16 = 2;

/// Copies of counters, and what the worker has seen.
#[derive(Default)]
struct Counters(BTreeMap<ObjectId, u32>, Option<WriteNotices>);

impl Host for Counters {
    fn create(&mut self, object: ObjectId, _: u64, _: &[u8]) -> Outcome {
        self.0.insert(object, 0);
        Ok(Bytes::default())
    }

    fn spoil(&mut self, _: ObjectId, _: Refusal) {}

    fn apply(&mut self, call: &Call) -> Tried {
        let Some(value) = self.0.get_mut(&call.object) else {
            return Tried::Done(Err(Refusal::Unknown));
        };
        match (call.operation, *value) {
            (AWAIT | TAKE, 0) => return Tried::Blocked,
            (AWAIT, _) => {}
            (TAKE, _) => *value -= 1,
            _ => *value += 1,
        }
        Tried::Done(Ok(Bytes::default()))
    }

    fn save(&mut self, object: ObjectId) -> Saved {
        self.0.get(&object).ok_or(Refusal::Unknown)?;
        Ok((0, Bytes::default()))
    }

    fn discard(&mut self, object: ObjectId) {
        self.0.remove(&object);
    }

    fn digest(&mut self, _: ObjectId) -> u64 {
        0
    }

    fn name_of(&self, _: ObjectId, _: u16) -> Arc<str> {
        "an operation".into()
    }

    fn time(&self) -> Option<VectorTime> {
        self.1.as_ref().map(|seen| seen.time.clone())
    }

    fn news_since(&self, time: &VectorTime) -> Option<Arc<WriteNotices>> {
        let seen = self.1.as_ref().filter(|seen| !time.covers(&seen.time))?;
        let mut news = seen.clone();
        let lacks = |interval: &Arc<Interval>| interval.index > time.of(interval.node);
        news.intervals.retain(lacks);
        Some(Arc::new(news))
    }
}

/// One node.
struct Node {
    machine: Objects,
    copies: Counters,
}

impl Node {
    fn new(id: u16, nodes: usize) -> Node {
        Node {
            machine: Objects::new(NodeId(id), nodes),
            copies: Counters::default(),
        }
    }

    fn step(&mut self, event: ObjectsEvent) -> Result<Vec<ObjectsCommand>, ProtocolError> {
        let mut out = Vec::new();
        let stepped = self.machine.step(event, &mut self.copies, &mut out);
        stepped.map(|()| out)
    }

    /// The next ordered message is delivered.
    fn ordered(&mut self, from: u16, body: Ordered) -> Result<Vec<ObjectsCommand>, ProtocolError> {
        let delivered = ObjectsEvent::Delivered {
            sequence: self.machine.delivered() + 1,
            from: NodeId(from),
            body: Arc::new(body),
        };
        self.step(delivered)
    }
}

fn id(node: u16, number: u64) -> CallId {
    CallId {
        node: NodeId(node),
        number,
    }
}

fn call(object: ObjectId, by: CallId, operation: u16) -> Call {
    Call {
        id: by,
        object,
        kind: 0,
        operation,
        writes: operation != AWAIT,
        started: false,
        chain: Bytes::default(),
        arguments: Bytes::default(),
    }
}

fn operate(object: ObjectId, by: CallId, operation: u16) -> Ordered {
    Ordered::Operate {
        call: call(object, by, operation),
        time: None,
        news: None,
    }
}

fn create(object: ObjectId, by: CallId) -> Ordered {
    Ordered::Create {
        by,
        object,
        kind: 0,
        state: Bytes::default(),
    }
}

/// Nodes that have replicas of one object, which node 0 made.
fn replicas(nodes: usize) -> (Vec<Node>, ObjectId) {
    let mut all: Vec<Node> = (0..nodes as u16).map(|id| Node::new(id, nodes)).collect();
    let object = all[0].machine.new_object();
    for node in &mut all {
        node.ordered(0, create(object, id(0, 0))).unwrap();
    }
    (all, object)
}

fn refused(commands: &[ObjectsCommand]) -> bool {
    let refused = |outcome: &Outcome| outcome.is_err();
    commands.iter().any(
        |command| matches!(command, ObjectsCommand::Finished { outcome, .. } if refused(outcome)),
    )
}

#[test]
fn a_replicated_object_of_one_node_is_one_copy_whose_writes_are_ordered_by_nobody() {
    let ordered = |command: ObjectsCommand| match command {
        ObjectsCommand::Broadcast(body) => Some(Ordered::clone(&body)),
        _ => None,
    };
    for nodes in [1, 2] {
        let mut node = Node::new(0, nodes);
        let object = node.machine.new_object();
        let made = node.step(ObjectsEvent::Create {
            call: 1,
            object,
            kind: 0,
            state: Bytes::default(),
            strategy: Strategy::Replicated,
        });
        let create = made.unwrap().into_iter().find_map(ordered);
        assert_eq!(create.is_none(), nodes == 1);
        create.map(|create| node.ordered(0, create).unwrap());
        assert_eq!(node.machine.is_local(object, true), nodes == 1);
        let changed = node.step(ObjectsEvent::Change {
            call: 2,
            object,
            to: Strategy::Replicated,
        });
        let change = changed.unwrap().into_iter().find_map(ordered);
        node.ordered(0, change.expect("a change is ordered"))
            .unwrap();
        assert_eq!(node.machine.is_local(object, true), nodes == 1);
        let added = node.step(ObjectsEvent::Invoke(call(object, id(0, 3), ADD)));
        let write = added.unwrap().into_iter().find_map(ordered);
        assert_eq!(write.is_none(), nodes == 1);
    }
}

#[test]
fn replicas_decide_alike_how_many_writes_may_wait() {
    let (mut nodes, object) = replicas(2);
    let most = MOST_CALLS as u64 + 1;
    for number in 1..=most {
        let read = call(object, id(0, number), AWAIT);
        assert_eq!(nodes[0].step(ObjectsEvent::Invoke(read)), Ok(vec![]));
    }
    for node in &mut nodes {
        for number in 1..=most {
            let waits = node.ordered(1, operate(object, id(1, number), TAKE));
            assert_eq!(waits, Ok(vec![]), "call {number}");
        }
        for number in 0..most {
            let added = node.ordered(0, operate(object, id(0, most + number), ADD));
            assert!(!refused(&added.unwrap()));
        }
    }
    let left = nodes.iter().map(|node| node.copies.0[&object]);
    assert_eq!(left.collect::<Vec<_>>(), [0, 0]);
}

/// The node that is blamed for what is delivered so.
fn blamed(node: &mut Node, from: u16, body: Ordered) -> Option<NodeId> {
    let before = node.copies.0.clone();
    let delivered = node.machine.delivered();
    let blamed = match node.ordered(from, body) {
        Err(ProtocolError::BadMessage { from, .. }) => Some(from),
        done => {
            done.unwrap();
            return None;
        }
    };
    assert_eq!(node.copies.0, before, "what is a lie changes nothing");
    assert_eq!(node.machine.delivered(), delivered + 1, "and has its place");
    blamed
}

#[test]
fn what_is_multicast_in_anothers_name_is_blamed_on_who_multicast_it() {
    let (mut nodes, object) = replicas(3);
    let node = &mut nodes[1];
    let liar = Some(NodeId(2));
    let to = Strategy::Replicated;
    for by in [id(0, 5), id(1, 5)] {
        assert_eq!(blamed(node, 2, operate(object, by, ADD)), liar);
        assert_eq!(blamed(node, 2, Ordered::Compare { by, object }), liar);
        let change = Ordered::Change {
            by,
            object,
            to,
            asks: false,
        };
        assert_eq!(blamed(node, 2, change), liar);
    }
    assert_eq!(blamed(node, 2, create(object, id(2, 1))), liar);
    assert_eq!(blamed(node, 0, create(object, id(0, 1))), Some(NodeId(0)));
    assert_eq!(blamed(node, 2, operate(object, id(2, 5), ADD)), None);
}

#[test]
fn a_state_comes_only_from_where_the_object_was() {
    let install = |object| Ordered::Install {
        object,
        state: Ok((0, Bytes::default())),
        blocked: Vec::new(),
        news: None,
    };
    let change = |object, to| Ordered::Change {
        by: id(2, 1),
        object,
        to,
        asks: true,
    };
    let (mut nodes, object) = replicas(3);
    let node = &mut nodes[1];
    assert_eq!(blamed(node, 2, install(object)), Some(NodeId(2)));
    node.ordered(2, change(object, Strategy::On(NodeId(0))))
        .unwrap();
    node.ordered(2, change(object, Strategy::Replicated))
        .unwrap();
    assert_eq!(blamed(node, 2, install(object)), Some(NodeId(2)));
    assert_eq!(blamed(node, 0, install(object)), None);
    assert_eq!(node.machine.place(object), Some(Place::Replicated));

    // Of this one node 1 has never heard: node 0 made it, and keeps it wherever it likes.
    let unheard_of = ObjectId(object.0 + 3);
    node.ordered(2, change(unheard_of, Strategy::Replicated))
        .unwrap();
    assert_eq!(blamed(node, 2, install(unheard_of)), None);
    assert_eq!(node.machine.place(unheard_of), Some(Place::Replicated));
}

#[test]
fn no_more_requests_wait_for_a_copy_than_there_may_be_calls() {
    let mut node = Node::new(1, 3);
    let object = ObjectId(0);
    let change = Ordered::Change {
        by: id(1, 1),
        object,
        to: Strategy::On(NodeId(1)),
        asks: false,
    };
    node.ordered(1, change).unwrap();
    let mut request = |number| {
        let message = ObjectsMessage::Request {
            call: call(object, id(2, number), ADD),
            delivered: 1,
            time: None,
            news: None,
        };
        let from = NodeId(2);
        node.step(ObjectsEvent::Deliver { from, message }).unwrap()
    };
    let most = 3 * (MOST_CALLS as u64 + 1);
    assert!((0..most).all(|number| request(number).is_empty()));
    let answer = request(most);
    assert!(
        matches!(
            &answer[..],
            [ObjectsCommand::Send {
                to: NodeId(2),
                message: ObjectsMessage::Reply {
                    outcome: Err(Refusal::TooMany(_)),
                    ..
                }
            }]
        ),
        "{answer:?}"
    );
}
