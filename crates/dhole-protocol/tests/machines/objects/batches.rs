//! Calls that are started while others are under way.

use dhole_protocol::objects::PackedResults;

use super::*;

/// Node 0, which has an object, and node 1, which calls it.
pub(super) fn caller_and_copy() -> (Node, Node, ObjectId) {
    let (mut copy, mut caller) = (Node::new(0, 2), Node::new(1, 2));
    let object = copy.machine.new_object();
    let create = ObjectsEvent::Create {
        call: 1,
        object,
        kind: 0,
        state: Bytes::default(),
        strategy: Strategy::On(NodeId(0)),
    };
    copy.step(create).unwrap();
    caller.machine.count(object, true);
    (caller, copy, object)
}

/// What goes to the other node.
pub(super) fn sent(commands: Vec<ObjectsCommand>) -> Vec<ObjectsMessage> {
    let message = |command| match command {
        ObjectsCommand::Send { message, .. } => Some(message),
        _ => None,
    };
    commands.into_iter().filter_map(message).collect()
}

pub(super) fn begin(
    caller: &mut Node,
    object: ObjectId,
    number: u64,
    operation: u16,
) -> Vec<ObjectsMessage> {
    let call = call(object, id(1, number), operation);
    sent(caller.step(ObjectsEvent::Begin(call)).unwrap())
}

pub(super) fn deliver(to: &mut Node, from: u16, message: &ObjectsMessage) -> Vec<ObjectsCommand> {
    let (from, message) = (NodeId(from), message.clone());
    to.step(ObjectsEvent::Deliver { from, message }).unwrap()
}

/// The calls that go, and whether as a batch.
pub(super) fn requested(messages: &[ObjectsMessage]) -> Option<(Vec<u64>, bool)> {
    match messages {
        [] => None,
        [ObjectsMessage::Request { call, .. }] => Some((vec![call.id.number], false)),
        [ObjectsMessage::Batch { calls, .. }] => {
            let numbers = calls.iter(NodeId(1)).map(|call| call.id.number);
            Some((numbers.collect(), true))
        }
        other => panic!("{other:?}"),
    }
}

/// The calls that are answered, and whether as a batch.
pub(super) fn replied(messages: &[ObjectsMessage]) -> (Vec<u64>, bool) {
    match messages {
        [ObjectsMessage::Reply { call, .. }] => (vec![*call], false),
        [
            ObjectsMessage::BatchReply {
                results, refused, ..
            },
        ] => {
            let refused = refused.iter().map(|(call, _)| *call);
            let calls = results.iter().map(|(call, _)| call).chain(refused);
            (calls.collect(), true)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_goes_at_once_and_those_that_are_started_meanwhile_go_together() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let first = begin(&mut caller, object, 1, ADD);
    assert_eq!(requested(&first), Some((vec![1], false)));
    let second = begin(&mut caller, object, 2, ADD);
    assert_eq!(requested(&second), Some((vec![2], true)));
    for number in 3..=5 {
        assert_eq!(begin(&mut caller, object, number, ADD), []);
    }
    let answer = sent(deliver(&mut copy, 1, &first[0]));
    assert_eq!(replied(&answer), (vec![1], false));
    // That is no answer to a batch.
    assert_eq!(sent(deliver(&mut caller, 0, &answer[0])), []);
    let answer = sent(deliver(&mut copy, 1, &second[0]));
    assert_eq!(replied(&answer), (vec![2], true));
    let rest = sent(deliver(&mut caller, 0, &answer[0]));
    assert_eq!(requested(&rest), Some((vec![3, 4, 5], true)));
    let answer = sent(deliver(&mut copy, 1, &rest[0]));
    assert_eq!(replied(&answer), (vec![3, 4, 5], true));
    assert_eq!(copy.copies.0[&object], 5);
    let over = deliver(&mut caller, 0, &answer[0]);
    assert_eq!(over.len(), 3);
    // Nothing is under way: the next is alone again.
    let next = begin(&mut caller, object, 6, ADD);
    assert_eq!(requested(&next), Some((vec![6], false)));
}

#[test]
fn no_guard_holds_up_the_calls_behind_a_batch() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let first = begin(&mut caller, object, 1, TAKE);
    let second = begin(&mut caller, object, 2, TAKE);
    assert_eq!(begin(&mut caller, object, 3, ADD), []);
    assert_eq!(begin(&mut caller, object, 4, ADD), []);
    assert_eq!(sent(deliver(&mut copy, 1, &first[0])), []);
    let answer = sent(deliver(&mut copy, 1, &second[0]));
    assert_eq!(replied(&answer), (vec![], true));
    let rest = sent(deliver(&mut caller, 0, &answer[0]));
    assert_eq!(requested(&rest), Some((vec![3, 4], true)));
    // Whoever waited goes on as soon as it may.
    let answer = sent(deliver(&mut copy, 1, &rest[0]));
    assert_eq!(replied(&answer), (vec![3, 1, 4, 2], true));
    assert_eq!(deliver(&mut caller, 0, &answer[0]).len(), 4);
}

#[test]
fn so_many_calls_go_together_and_no_more() {
    let (mut caller, _, object) = caller_and_copy();
    let sizes = (1..=200).filter_map(|number| {
        let sent = begin(&mut caller, object, number, ADD);
        requested(&sent).map(|(calls, _)| calls.len())
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [1, 1, 64, 64, 64]);
    let long = Call {
        arguments: Bytes::from(&[0; 20_000][..]),
        ..call(object, id(1, 201), ADD)
    };
    let sent = sent(caller.step(ObjectsEvent::Begin(long)).unwrap());
    assert_eq!(requested(&sent).map(|(calls, _)| calls.len()), Some(7));
}

#[test]
fn what_nobody_asked_for_is_refused() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let begun: Vec<_> = (1..=2)
        .flat_map(|number| begin(&mut caller, object, number, ADD))
        .collect();
    let request = ObjectsMessage::Request {
        call: call(object, id(0, 9), ADD),
        delivered: 0,
        time: None,
        news: None,
    };
    let refuses = |node: &mut Node, from: u16, message: ObjectsMessage| {
        let from = NodeId(from);
        let told = node.step(ObjectsEvent::Deliver { from, message });
        assert!(
            matches!(told, Err(ProtocolError::BadMessage { .. })),
            "{told:?}"
        );
    };
    refuses(&mut copy, 1, request);
    assert_eq!(copy.copies.0[&object], 0, "it was not executed");
    let reply = |call| ObjectsMessage::Reply {
        call,
        outcome: Ok(Bytes::default()),
        delivered: 0,
        news: None,
    };
    let batch_reply = |refused: &[u64]| ObjectsMessage::BatchReply {
        results: PackedResults::default(),
        refused: refused.iter().map(|it| (*it, Refusal::Unknown)).collect(),
        blocked: Vec::new(),
        delivered: 0,
        news: None,
    };
    refuses(&mut caller, 0, reply(7));
    refuses(&mut caller, 0, batch_reply(&[1, 7]));
    for message in &begun {
        let answer = sent(deliver(&mut copy, 1, message));
        deliver(&mut caller, 0, &answer[0]);
    }
    // No batch is under way.
    refuses(&mut caller, 0, batch_reply(&[]));
}
