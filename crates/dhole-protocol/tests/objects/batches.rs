//! Calls that are started while others are under way.

use dhole_protocol::objects::{Answers, Calls, MOST_CALLS};

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
        [
            ObjectsMessage::Request {
                calls, together, ..
            },
        ] => Some((calls.iter().map(|call| call.id.number).collect(), *together)),
        [ObjectsMessage::Bare { call, .. }] => Some((vec![call.id.number], false)),
        [ObjectsMessage::BareBatch { calls, .. }] => {
            let numbers = calls.iter(NodeId(1)).map(|call| call.id.number);
            Some((numbers.collect(), true))
        }
        other => panic!("{other:?}"),
    }
}

/// The calls that are answered, and whether as a batch.
pub(super) fn replied(messages: &[ObjectsMessage]) -> (Vec<u64>, bool) {
    match messages {
        [
            ObjectsMessage::Reply {
                answers, together, ..
            },
        ] => (answers.iter().map(|answer| answer.0).collect(), *together),
        [ObjectsMessage::BareReply { call, .. }] => (vec![*call], false),
        [ObjectsMessage::BareAnswers { results, .. }] => {
            (results.iter().map(|(call, _)| call).collect(), true)
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
fn what_is_no_batch_and_what_nobody_asked_for_is_refused() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let begun: Vec<_> = (1..=2)
        .flat_map(|number| begin(&mut caller, object, number, ADD))
        .collect();
    let request = |calls, together| ObjectsMessage::Request {
        calls,
        together,
        delivered: 0,
        time: None,
        news: None,
    };
    let by = |node, number| call(object, id(node, number), ADD);
    let so_many = |calls: usize| (1..=calls as u64).map(|number| by(1, number)).collect();
    let requests = [
        request(so_many(MOST_CALLS + 1), true),
        request(Calls::new(), true),
        request(Calls::new(), false),
        request(Calls::from_vec(vec![by(1, 8), by(1, 9)]), false),
        request(Calls::from_vec(vec![by(1, 8), by(0, 9)]), true),
    ];
    for message in requests {
        let from = NodeId(1);
        let told = copy.step(ObjectsEvent::Deliver { from, message });
        assert!(
            matches!(told, Err(ProtocolError::BadMessage { .. })),
            "{told:?}"
        );
    }
    assert_eq!(copy.copies.0[&object], 0, "none of it was executed");
    deliver(&mut copy, 1, &request(so_many(MOST_CALLS), true));
    assert_eq!(copy.copies.0[&object], MOST_CALLS as u32);
    let reply = |answers: &[u64], together| ObjectsMessage::Reply {
        answers: answers
            .iter()
            .map(|it| (*it, Ok(Bytes::default())))
            .collect::<Answers>(),
        together,
        delivered: 0,
        news: None,
    };
    let refuses = |caller: &mut Node, message: ObjectsMessage| {
        let from = NodeId(0);
        let told = caller.step(ObjectsEvent::Deliver { from, message });
        assert!(
            matches!(told, Err(ProtocolError::BadMessage { .. })),
            "{told:?}"
        );
    };
    for (answers, together) in [(&[][..], false), (&[1, 2], false), (&[1, 7], true)] {
        refuses(&mut caller, reply(answers, together));
    }
    for message in &begun {
        let answer = sent(deliver(&mut copy, 1, message));
        deliver(&mut caller, 0, &answer[0]);
    }
    // No batch is under way.
    refuses(&mut caller, reply(&[], true));
}
