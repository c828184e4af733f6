//! What goes past the machine, and what does not.

use std::panic::Location;
use std::sync::Arc;

use dhole_heap::{Cluster, Tag};
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::ProtocolError;
use dhole_protocol::objects::{
    Bytes, Call, CallId, ObjectsEvent, ObjectsMessage, Ordered, PackedResults, Refusal, Strategy,
};
use serde::{Deserialize, Serialize};

use super::super::abandoned_calls;
use super::super::kind::{self, Applied, Kind, Malformed, ObjectType, OperationInfo};
use super::super::pending::StartedAs;
use super::*;
use crate::node::Node;
use crate::settings::Settings;
use crate::step::Step;

#[derive(Serialize, Deserialize)]
pub(in crate::object) struct Counter(pub(in crate::object) u64);

pub(in crate::object) const ADD: u16 = 0;
pub(in crate::object) const TAKE: u16 = 1;
pub(in crate::object) const PANICS: u16 = 2;

impl ObjectType for Counter {
    type Operations = Tag<Counter>;

    const OPERATIONS: &'static [OperationInfo] = &{
        const fn writes(name: &'static str) -> OperationInfo {
            OperationInfo {
                name,
                writes: true,
                signature: "",
            }
        }
        [writes("add"), writes("take"), writes("panics")]
    };

    fn apply(
        &mut self,
        operation: u16,
        _: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<Applied, Malformed> {
        match operation {
            ADD => self.0 += 1,
            TAKE if self.0 == 0 => return Ok(Applied::Blocked),
            TAKE => self.0 -= 1,
            _ => panic!("on purpose"),
        }
        kind::encode_to("the number", &self.0, result)?;
        Ok(Applied::Done)
    }
}

pub(in crate::object) const COUNTER: ObjectId = ObjectId(0);

/// Node 0 of three, on which the counter is.
fn node() -> Node {
    let cluster = Cluster::new(3).unwrap();
    let pool = Arc::new(PayloadPool::default());
    let node = Node::new(NodeId(0), 3, &Settings::nodes(3), &cluster, &pool);
    let create = ObjectsEvent::Create {
        call: 1,
        object: COUNTER,
        kind: kind::register(Kind::of::<Counter>()),
        state: kind::encode("the counter", &Counter(0)).unwrap(),
        strategy: Strategy::On(NodeId(0)),
    };
    step(&node, |state, step| state.step_objects(create, step)).unwrap();
    node
}

pub(in crate::object) fn step<R>(
    node: &Node,
    f: impl FnOnce(&mut State, &mut Step<'_, '_>) -> R,
) -> R {
    let mut guard = node.monitor.lock();
    let (mut heap, state) = guard.split();
    let mut step = Step {
        from: NodeId(0),
        heap: &mut heap,
        pool: &node.pool,
        out: &mut Outbox::default(),
        payload: &[],
        at_once: None,
    };
    f(state, &mut step)
}

pub(in crate::object) fn call(from: u16, number: u64, operation: u16) -> Call {
    Call {
        id: CallId {
            node: NodeId(from),
            number,
        },
        object: COUNTER,
        kind: kind::register(Kind::of::<Counter>()),
        operation,
        writes: true,
        arguments: Bytes::default(),
    }
}

/// What node 1 is answered at once, if it is.
fn answer(node: &Node, call: &Call, delivered: u64) -> Option<Message> {
    let mut answer = None;
    let head = bare::call_head(call.by_ref(), delivered);
    let bytes = [&head[..], &call.arguments].concat();
    let out = &mut Outbox::default();
    let taken = node.deliver_bytes(NodeId(1), &bytes, out, &mut |_, parts| {
        answer = Some(Message::decode(&parts.concat()).unwrap());
        true
    });
    assert_eq!(taken.is_some(), answer.is_some());
    answer
}

fn told(message: Message) -> ObjectsMessage {
    match message {
        Message::Objects(message) => *message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_executed_at_once_where_its_result_is_all_that_comes_of_it() {
    let node = node();
    let added = answer(&node, &call(1, 7, ADD), 0).map(told);
    let reply = ObjectsMessage::BareReply {
        call: 7,
        delivered: 0,
        result: Bytes::from([1]),
    };
    assert_eq!(added, Some(reply));
    assert!(step(&node, |state, _| state
        .here
        .machine
        .take_acquire_due()));
    let panicked = answer(&node, &call(1, 8, PANICS), 0).map(told);
    assert!(
        matches!(
            &panicked,
            Some(ObjectsMessage::Reply { answers, .. })
                if matches!(&answers[..], [(8, Err(Refusal::Poisoned { .. }))])
        ),
        "{panicked:?}"
    );
    // Its copy is here, so nobody is asked.
    assert!(!step(&node, |state, _| state.here.bare.is_some()));
    let counters = node.counters();
    assert_eq!(counters.messages, 2);
}

#[test]
fn nothing_happens_where_more_comes_of_a_call() {
    let node = node();
    let none = |call: &Call, delivered| assert_eq!(answer(&node, call, delivered), None);
    // Its guard is false; what was ordered before it has not come; it is another node's; there is
    // no such object.
    none(&call(1, 1, TAKE), 0);
    none(&call(1, 1, ADD), 1);
    none(&call(2, 1, ADD), 0);
    let unknown = ObjectId(3);
    none(
        &Call {
            object: unknown,
            ..call(1, 1, ADD)
        },
        0,
    );
    let nothing = node.deliver_bytes(NodeId(1), &[], &mut Outbox::default(), &mut |_, _| true);
    assert_eq!(nothing, None);
    // Another waits for its guard, which it may make true.
    step(&node, |state, step| {
        let message = ObjectsMessage::Bare {
            call: call(1, 1, TAKE),
            delivered: 0,
        };
        state.deliver_to_objects(NodeId(1), message, step).unwrap();
    });
    none(&call(1, 2, ADD), 0);
    assert_eq!(node.counters().messages, 0);
}

/// What node 1's reply is to node 0, which has made a call there, bare.
fn reply(node: &Node, from: u16, number: u64, delivered: u64) -> Option<Wake> {
    let bytes = [&bare::reply_head(number, delivered)[..], &[9]].concat();
    let out = &mut Outbox::default();
    node.deliver_bytes(NodeId(from), &bytes, out, &mut |_, _| {
        panic!("an answer to a reply")
    })
}

#[test]
fn only_the_reply_that_is_waited_for_is_taken_and_once() {
    let node = node();
    assert_eq!(reply(&node, 1, 5, 0), None);
    let waits = |state: &mut State| {
        state.here.awaited = Some(5);
        let Call { id, kind, .. } = call(0, 5, ADD);
        let call = CallRef {
            id,
            object: COUNTER,
            kind,
            operation: ADD,
            writes: true,
            arguments: &[],
        };
        let to = NodeId(1);
        state.here.bare = Some(BareCall { to, call });
    };
    step(&node, |state, _| waits(state));
    assert_eq!(reply(&node, 1, 4, 0), None);
    assert_eq!(reply(&node, 2, 5, 0), None);
    assert_eq!(reply(&node, 1, 5, 1), None);
    assert_eq!(reply(&node, 1, 5, 0), Some(Wake::Yes));
    step(&node, |state, _| {
        assert_eq!(state.here.answered.take(), Some(5));
        assert_eq!(state.here.result, [9]);
        assert!(state.here.machine.is_acquire_due());
        assert!(state.not_done());
        waits(state);
        // From here on it is the machine's.
        state.hears_of_bare();
    });
    assert_eq!(reply(&node, 1, 5, 0), None);
    step(&node, |state, step| {
        let message = ObjectsMessage::BareReply {
            call: 5,
            delivered: 0,
            result: Bytes::from([9]),
        };
        state.deliver_to_objects(NodeId(1), message, step).unwrap();
        assert_eq!(state.here.take_finished(5), Some(Ok(Bytes::from([9]))));
    });
}

/// Starts so many calls of what is elsewhere, the first of which goes alone and is over.
fn starts(state: &mut State, step: &mut Step<'_, '_>, calls: u64) -> u64 {
    let object = ObjectId(1);
    state.here.machine.count(object, true);
    let called = StartedAs {
        object,
        operation: &Counter::OPERATIONS[usize::from(ADD)],
        site: Location::caller(),
    };
    let mut told = None;
    for _ in 0..calls {
        let id = state.here.machine.new_call();
        told = Some(state.here.begin(id.number, called));
        let call = Call {
            id,
            object,
            ..call(0, id.number, ADD)
        };
        state.step_objects(ObjectsEvent::Begin(call), step).unwrap();
    }
    let message = ObjectsMessage::BareReply {
        call: 1,
        delivered: 0,
        result: Bytes::from([1]),
    };
    state.deliver_to_objects(NodeId(1), message, step).unwrap();
    told.unwrap()
}

/// Node 1 answers a batch: each of these calls came to this number.
fn answers(
    state: &mut State,
    step: &mut Step<'_, '_>,
    all: &[(u64, u8)],
    delivered: u64,
) -> Result<(), ProtocolError> {
    let mut results = PackedResults::default();
    for (call, result) in all {
        results.push(*call, &[*result]);
    }
    let message = ObjectsMessage::BareAnswers { results, delivered };
    state.deliver_to_objects(NodeId(1), message, step)
}

fn has(state: &State, call: u64) -> Option<u8> {
    state.here.result(call).map(|result| result[0])
}

#[test]
fn each_result_of_a_batch_goes_to_its_call() {
    step(&node(), |state, step| {
        starts(state, step, 5);
        state.here.awaited = Some(2);
        state.here.machine.take_acquire_due();
        answers(state, step, &[(4, 40), (2, 20)], 0).unwrap();
        let all = [1, 2, 3, 4, 5].map(|call| has(state, call));
        assert_eq!(all, [Some(1), Some(20), None, Some(40), None]);
        assert!(state.here.machine.is_acquire_due(), "they are to be learnt");
        assert_eq!(state.here.awaited, None);
        // What waited for the answer is under way now.
        answers(state, step, &[(3, 30), (5, 50)], 0).unwrap();
        assert_eq!([3, 5].map(|call| has(state, call)), [Some(30), Some(50)]);
        assert_eq!(state.here.under_way(), 5);
    });
}

#[test]
fn a_second_result_of_a_call_is_refused() {
    step(&node(), |state, step| {
        starts(state, step, 3);
        let told = answers(state, step, &[(2, 20), (2, 21)], 0);
        assert!(
            matches!(told, Err(ProtocolError::BadMessage { .. })),
            "{told:?}"
        );
        assert_eq!(has(state, 2), None, "nothing was done of it");
        answers(state, step, &[(2, 22)], 0).unwrap();
        let told = answers(state, step, &[(2, 23)], 0);
        assert!(
            matches!(told, Err(ProtocolError::BadMessage { .. })),
            "{told:?}"
        );
    });
}

#[test]
fn results_of_a_batch_wait_for_what_was_ordered_before() {
    step(&node(), |state, step| {
        starts(state, step, 2);
        answers(state, step, &[(2, 20)], 1).unwrap();
        assert_eq!(has(state, 2), None);
        let delivered = ObjectsEvent::Delivered {
            sequence: 1,
            from: NodeId(2),
            body: free_by(2),
        };
        state.step_objects(delivered, step).unwrap();
        assert_eq!(has(state, 2), Some(20));
    });
}

#[test]
fn what_was_multicast_is_over_when_it_is_safe_though_a_batch_brings_its_result() {
    let (nodes, pool) = (3, Arc::new(PayloadPool::default()));
    let mut settings = Settings::nodes(nodes);
    settings.survive = true;
    let cluster = Cluster::new(nodes).unwrap();
    let node = Node::new(NodeId(0), nodes, &settings, &cluster, &pool);
    step(&node, |state, step| {
        starts(state, step, 3);
        let delivered = ObjectsEvent::Delivered {
            sequence: 1,
            from: NodeId(2),
            body: free_by(2),
        };
        state.step_objects(delivered, step).unwrap();
        // The object was replicated when it was called, and has one copy now.
        state.here.multicast.insert(2);
        answers(state, step, &[(2, 20), (3, 30)], 0).unwrap();
        assert_eq!([2, 3].map(|call| has(state, call)), [None, Some(30)]);
    });
}

/// Somebody has freed some object.
fn free_by(node: u16) -> Arc<Ordered> {
    let (node, number) = (NodeId(node), 1);
    Arc::new(Ordered::Free {
        by: CallId { node, number },
        object: ObjectId(5),
    })
}

#[test]
fn a_result_that_nobody_looks_after_is_not_kept() {
    step(&node(), |state, step| {
        let told = starts(state, step, 3);
        abandoned_calls::abandon(told, 2);
        state.report_unseen();
        assert_eq!(state.here.under_way(), 3);
        answers(state, step, &[(2, 20)], 0).unwrap();
        assert_eq!(state.here.under_way(), 2);
        assert!(!state.here.is_finished(2));
    });
}
