//! What is carried out at once, and that it leaves behind what the recorded effects do.

use std::panic::Location;
use std::sync::Arc;

use dhole_heap::{Cluster, Tag};
use dhole_model::ObjectId;
use dhole_net::{Envelope, Outbox, Payload, PayloadPool, Receiver};
use dhole_protocol::Message;
use dhole_protocol::objects::{
    Bytes, Call, CallId, ObjectsEvent, ObjectsMessage, Ordered, PackedResults, Strategy,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
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
                guarded: false,
                takes_worker: false,
                signature: "",
            }
        }
        [writes("add"), writes("take"), writes("panics")]
    };

    fn save(&self) -> Result<Bytes, Malformed> {
        kind::save(self)
    }

    fn restore(bytes: &[u8]) -> Result<Counter, Malformed> {
        kind::restore(bytes)
    }

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
        started: false,
        chain: Bytes::default(),
        arguments: Bytes::default(),
    }
}

/// The message that asks for a call.
fn request(call: &Call, delivered: u64) -> ObjectsMessage {
    let request = OperationRequest {
        call: call.by_ref(),
        delivered,
        time: None,
        news: None,
    };
    request.into()
}

fn reply(call: u64, outcome: Result<&[u8], Refusal>, delivered: u64) -> ObjectsMessage {
    let reply = OperationReply {
        call,
        outcome,
        delivered,
        news: None,
    };
    reply.into()
}

fn bytes_of(message: &ObjectsMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = Message::Objects(Box::new(message.clone()));
    message.encode(&mut bytes);
    bytes
}

/// What comes of a message that comes by its bytes: what goes at once, and what is queued.
fn comes(node: &Node, from: u16, message: &ObjectsMessage) -> [Vec<(NodeId, ObjectsMessage)>; 2] {
    let (mut out, mut sent) = (Outbox::default(), Vec::new());
    let bytes = bytes_of(message);
    let taken = node.deliver_bytes(NodeId(from), &bytes, &[], &mut out, &mut |to, parts, _| {
        let message = Message::decode(&parts.concat()).unwrap();
        sent.push((to, told(message)));
        true
    });
    assert!(taken.is_some(), "{message:?}");
    [sent, queued(&mut out)]
}

fn queued(out: &mut Outbox<Message>) -> Vec<(NodeId, ObjectsMessage)> {
    let all = std::iter::from_fn(|| out.pop());
    // A run that ends is told all.
    let all = all.filter(|sent| !matches!(sent.body, Message::Abort { .. }));
    all.map(|sent| (sent.to, told(sent.body))).collect()
}

fn told(message: Message) -> ObjectsMessage {
    match message {
        Message::Objects(message) => *message,
        other => panic!("{other:?}"),
    }
}

/// Node 0 has ended the run.
fn is_broken(node: &Node) -> bool {
    step(node, |state, _| state.ended().is_some())
}

#[test]
fn a_call_is_executed_and_answered_at_once() {
    let node = node();
    let [sent, queued] = comes(&node, 1, &request(&call(1, 7, ADD), 0));
    assert_eq!(sent, [(NodeId(1), reply(7, Ok(&[1]), 0))]);
    assert_eq!(queued, []);
    assert!(step(&node, |state, _| state
        .here
        .machine
        .take_acquire_due()));
    let [sent, _] = comes(&node, 1, &request(&call(1, 8, PANICS), 0));
    assert!(
        matches!(
            &sent[..],
            [(
                _,
                ObjectsMessage::Reply {
                    call: 8,
                    outcome: Err(Refusal::Poisoned { .. }),
                    ..
                }
            )]
        ),
        "{sent:?}"
    );
    assert_eq!(node.counters().messages, 2);
}

#[test]
fn what_is_not_there_is_refused_at_once() {
    let node = node();
    let object = ObjectId(3);
    let [sent, _] = comes(
        &node,
        1,
        &request(
            &Call {
                object,
                ..call(1, 1, ADD)
            },
            0,
        ),
    );
    assert_eq!(sent, [(NodeId(1), reply(1, Err(Refusal::Unknown), 0))]);
}

#[test]
fn the_first_reply_of_a_step_goes_at_once_and_others_after_it() {
    let node = node();
    assert_eq!(comes(&node, 2, &request(&call(2, 1, TAKE), 0)), [[], []]);
    let [sent, queued] = comes(&node, 1, &request(&call(1, 2, ADD), 0));
    assert_eq!(sent, [(NodeId(1), reply(2, Ok(&[1]), 0))]);
    // It waited for its guard.
    assert_eq!(queued, [(NodeId(2), reply(1, Ok(&[0]), 0))]);
    assert_eq!(node.counters().messages, 2);
}

#[test]
fn a_call_waits_for_what_was_ordered_before_it() {
    let node = node();
    assert_eq!(comes(&node, 1, &request(&call(1, 1, ADD), 1)), [[], []]);
    step(&node, |state, step| {
        let delivered = ObjectsEvent::Delivered {
            sequence: 1,
            from: NodeId(2),
            body: free_by(2),
        };
        state.step_objects(delivered, step).unwrap();
        assert_eq!(queued(step.out), [(NodeId(1), reply(1, Ok(&[1]), 1))]);
    });
}

#[test]
fn a_call_in_another_nodes_name_breaks_the_run() {
    let node = node();
    comes(&node, 1, &request(&call(2, 1, ADD), 0));
    assert!(is_broken(&node));
}

#[test]
fn what_is_no_call_is_not_taken() {
    let node = node();
    let nothing = node.deliver_bytes(
        NodeId(1),
        &[],
        &[],
        &mut Outbox::default(),
        &mut |_, _, _| true,
    );
    assert_eq!(nothing, None);
    let bytes = bytes_of(&request(&call(1, 1, ADD), 0));
    let short = &bytes[..bytes.len() - 1];
    let nothing = node.deliver_bytes(
        NodeId(1),
        short,
        &[],
        &mut Outbox::default(),
        &mut |_, _, _| true,
    );
    assert_eq!(nothing, None);
}

/// Node 0's worker calls an object of node 1's and waits: what goes at once, and how much is
/// queued.
fn waits_for(node: &Node, number: u64, waits: bool) -> (Vec<ObjectsMessage>, usize) {
    let (mut sent, mut out) = (Vec::new(), Outbox::default());
    let mut guard = node.monitor.lock();
    let (mut heap, state) = guard.split();
    let at_once = &mut |to, parts: [&[u8]; 3], _| {
        assert_eq!(to, NodeId(1));
        sent.push(told(Message::decode(&parts.concat()).unwrap()));
        true
    };
    let mut step = Step {
        from: NodeId(0),
        heap: &mut heap,
        pool: &node.pool,
        out: &mut out,
        payload: &[],
        at_once: Some(at_once),
    };
    let call = Call {
        object: ObjectId(1),
        ..call(0, number, ADD)
    };
    state.here.awaited = Some(number).filter(|_| waits);
    let stepped = state.objects_directly(&mut step, |machine, host, fx| {
        machine.call(call.by_ref(), host, fx);
        Ok(())
    });
    stepped.unwrap();
    (sent, out.len())
}

fn takes_answer(node: &Node, number: u64) -> Option<Vec<u8>> {
    step(node, |state, _| {
        let taken = state.here.takes_answer(number);
        taken.then(|| state.here.result.clone())
    })
}

#[test]
fn a_call_goes_at_once_if_its_worker_waits_and_its_result_lies_where_the_worker_looks() {
    let node = node();
    let (sent, queued) = waits_for(&node, 5, true);
    assert!(
        matches!(&sent[..], [ObjectsMessage::Request { .. }]),
        "{sent:?}"
    );
    assert_eq!(queued, 0);
    // What node 0 has not come to yet waits.
    assert_eq!(comes(&node, 1, &reply(5, Ok(&[9]), 1)), [[], []]);
    assert_eq!(takes_answer(&node, 5), None);
    let (sent, queued) = waits_for(&node, 6, false);
    assert_eq!((sent, queued), (Vec::new(), 1));
    step(&node, |state, _| state.here.awaited = Some(6));
    assert_eq!(comes(&node, 1, &reply(6, Ok(&[8]), 0)), [[], []]);
    assert_eq!(takes_answer(&node, 6), Some(vec![8]));
    step(&node, |state, _| {
        assert!(state.here.machine.is_acquire_due());
        assert!(state.not_done());
    });
    assert_eq!(node.counters().messages, 2);
}

#[test]
fn the_result_of_one_who_has_given_the_turn_away_is_kept_elsewhere() {
    let node = node();
    waits_for(&node, 5, true);
    comes(&node, 1, &reply(5, Ok(&[9]), 0));
    step(&node, |state, _| state.here.keep_answer());
    waits_for(&node, 6, true);
    comes(&node, 1, &reply(6, Ok(&[7]), 0));
    step(&node, |state, _| {
        assert!(state.here.is_finished(5) && state.here.is_finished(6));
        assert_eq!(state.here.take_finished(5), Some(Ok(Bytes::from([9]))));
        assert_eq!(state.here.take_finished(6), Some(Ok(Bytes::from([7]))));
    });
}

#[test]
fn a_second_reply_and_one_of_a_call_that_was_never_made_break_the_run() {
    let twice = node();
    waits_for(&twice, 5, true);
    comes(&twice, 1, &reply(5, Ok(&[9]), 0));
    assert!(!is_broken(&twice));
    comes(&twice, 1, &reply(5, Ok(&[9]), 0));
    assert!(is_broken(&twice));
    let never = node();
    comes(&never, 1, &reply(5, Ok(&[9]), 0));
    assert!(is_broken(&never));
}

/// All that others are told of random calls, and what is counted of that, where each comes by its
/// bytes or as a message, and the port has room or not.
fn random_calls(seed: u64, direct: bool) -> (Vec<(NodeId, ObjectsMessage)>, u64, u64) {
    let node = node();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut said = Vec::new();
    for number in 0..40 {
        let from = random.random_range(1..3);
        let operation = if random.random_bool(0.6) { ADD } else { TAKE };
        let message = request(&call(from, number, operation), 0);
        let has_room = random.random_bool(0.8);
        let mut out = Outbox::default();
        if direct {
            let bytes = bytes_of(&message);
            let at_once = &mut |to, parts: [&[u8]; 3], _| {
                if has_room {
                    said.push((to, told(Message::decode(&parts.concat()).unwrap())));
                }
                has_room
            };
            let taken = node.deliver_bytes(NodeId(from), &bytes, &[], &mut out, at_once);
            assert!(taken.is_some());
        } else {
            let envelope = Envelope {
                from: NodeId(from),
                to: NodeId(0),
                body: Message::Objects(Box::new(message)),
                payload: Payload::NONE,
            };
            let _wake = Receiver::deliver(&node, envelope, &mut out);
        }
        said.extend(queued(&mut out));
    }
    let counters = node.counters();
    (said, counters.messages, counters.data_bytes)
}

#[test]
fn what_goes_at_once_is_what_is_recorded_in_500_seeds() {
    for seed in 0..500 {
        let [direct, recorded] = [true, false].map(|direct| random_calls(seed, direct));
        assert_eq!(direct, recorded, "seed {seed}");
    }
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
    let message = reply(1, Ok(&[1]), 0);
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
    let message = ObjectsMessage::BatchReply {
        results,
        refused: Vec::new(),
        blocked: Vec::new(),
        delivered,
        news: None,
    };
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
