//! What is told of intervals with calls and their results, and what need not be.

use dhole_model::CallSite;
use dhole_protocol::objects::Start;

use super::*;

const ZERO: NodeId = NodeId(0);
const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const ALL: [NodeId; 3] = [ZERO, ONE, TWO];

struct Nodes(Vec<Node>);

impl Nodes {
    fn new() -> Nodes {
        Nodes(ALL.iter().map(|id| Node::new(id.0, ALL.len())).collect())
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        &mut self.0[id.index()]
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
            freed_arrays: Vec::new(),
            pages: None,
        };
        self.node(id).learns(&News {
            time,
            lamport: 1,
            intervals: vec![Arc::new(interval)],
        });
    }

    /// Something happens, and all that comes of it. What was sent.
    fn has(&mut self, id: NodeId, event: ObjectsEvent) -> Vec<ObjectsMessage> {
        let mut sent = Vec::new();
        let mut coming = vec![(id, event)];
        while let Some((id, event)) = coming.pop() {
            for command in self.node(id).step(event).unwrap() {
                match command {
                    ObjectsCommand::Send { to, message } => {
                        sent.push(message.clone());
                        coming.push((to, ObjectsEvent::Deliver { from: id, message }));
                    }
                    ObjectsCommand::Start(Start { by, time, .. }) => {
                        let outcome = Ok(Bytes::default());
                        coming.push((id, ObjectsEvent::Ended { by, time, outcome }));
                    }
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
        };
        self.has(by, ObjectsEvent::Spawn { start, to: on });
    }
}

impl Node {
    fn learns(&mut self, news: &News) {
        let seen = self.copies.1.get_or_insert_with(|| News {
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

    /// What comes at once of a bare call of an operation that adds.
    fn serves_bare(&mut self, by: CallId, object: ObjectId) -> Option<ObjectsMessage> {
        let call = call(object, by, ADD);
        (self.machine).serve_bare(by.node, &call, 0, &mut self.copies)
    }
}

/// The nodes of whose intervals the last message tells.
fn told_of(sent: &[ObjectsMessage]) -> Vec<NodeId> {
    match sent.last() {
        Some(ObjectsMessage::Reply {
            news: Some(news), ..
        }) => news.intervals.iter().map(|it| it.node).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_process_is_told_what_its_starter_can_tell_others_after_any_reply() {
    let mut nodes = Nodes::new();
    let (there, here) = (nodes.object(ZERO), nodes.object(ONE));
    nodes.writes(ONE);
    nodes.starts(ONE, 1, ZERO);
    nodes.writes(TWO);
    nodes.adds(TWO, 1, there);
    // What node 1 itself wrote need not be told it with this.
    let sent = nodes.adds(ONE, 2, there);
    assert!(matches!(sent[0], ObjectsMessage::Bare { .. }), "{sent:?}");
    assert_eq!(told_of(&sent), [TWO]);
    nodes.node(ONE).learns_all();
    nodes.has(ONE, ObjectsEvent::Wrote(here));
    // But others have to be told it.
    let sent = nodes.adds(TWO, 2, here);
    assert_eq!(told_of(&sent), [ONE]);
}

#[test]
fn a_bare_call_is_not_served_at_once_where_its_caller_is_to_be_told_something() {
    let mut nodes = Nodes::new();
    let object = nodes.object(ZERO);
    assert!(nodes.node(ZERO).serves_bare(id(1, 1), object).is_some());
    nodes.writes(TWO);
    nodes.adds(TWO, 1, object);
    assert_eq!(nodes.node(ZERO).serves_bare(id(1, 2), object), None);
    // It hears of that with an answer, and has to say so.
    assert_eq!(told_of(&nodes.adds(ONE, 3, object)), [TWO]);
    nodes.node(ONE).learns_all();
    assert_eq!(nodes.node(ZERO).serves_bare(id(1, 4), object), None);
    nodes.adds(ONE, 5, object);
    let served = nodes.node(ZERO).serves_bare(id(1, 6), object);
    let bare = |message| matches!(message, &ObjectsMessage::BareReply { call: 6, .. });
    assert!(served.as_ref().is_some_and(bare), "{served:?}");
    assert_eq!(nodes.node(ZERO).copies.0[&object], 5);
}
