//! Calls that go packed, and their results: what joins quietly, and what is told otherwise.

use dhole_protocol::objects::{PackedCalls, PackedResults};

use super::batches::{begin, caller_and_copy, deliver, replied, requested, sent};
use super::*;

/// Whether a call of node 1 joins others and nothing else is to be done.
fn joins(caller: &mut Node, object: ObjectId, number: u64, arguments: &[u8]) -> bool {
    let call = call(object, id(1, number), ADD);
    let append = |bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(arguments);
        Ok::<_, ()>(())
    };
    caller.machine.begins_quietly(call.by_ref(), append)
}

/// One call goes alone, and the next as a batch of one: the messages.
fn two_begin(caller: &mut Node, object: ObjectId) -> [ObjectsMessage; 2] {
    [1, 2].map(|number| begin(caller, object, number, ADD).pop().unwrap())
}

/// These calls of node 1, which go as one batch, each of one object.
fn batch(calls: &[(ObjectId, u64, u16)]) -> ObjectsMessage {
    let mut packed = PackedCalls::default();
    for (object, number, operation) in calls {
        packed.push(call(*object, id(1, *number), *operation).by_ref());
    }
    ObjectsMessage::Batch {
        calls: packed,
        delivered: 0,
        time: None,
        news: None,
    }
}

fn results(of: &[u64]) -> ObjectsMessage {
    let mut results = PackedResults::default();
    of.iter().for_each(|call| results.push(*call, &[]));
    ObjectsMessage::BatchReply {
        results,
        refused: Vec::new(),
        blocked: Vec::new(),
        delivered: 0,
        news: None,
    }
}

/// The calls that are over, in this order.
fn over(commands: &[ObjectsCommand]) -> Vec<u64> {
    let over = |command: &ObjectsCommand| match command {
        ObjectsCommand::Finished { call, .. } => Some(*call),
        _ => None,
    };
    commands.iter().filter_map(over).collect()
}

#[track_caller]
fn refuses(node: &mut Node, from: u16, message: ObjectsMessage) {
    let from = NodeId(from);
    let told = node.step(ObjectsEvent::Deliver { from, message });
    assert!(
        matches!(told, Err(ProtocolError::BadMessage { from: liar, .. }) if liar == from),
        "{told:?}"
    );
}

#[test]
fn a_call_joins_quietly_only_those_that_wait_for_an_answer_to_a_batch() {
    let (mut caller, mut copy, object) = caller_and_copy();
    assert!(!joins(&mut caller, object, 1, &[]), "none is under way");
    let [first, second] = two_begin(&mut caller, object);
    assert!(joins(&mut caller, object, 3, &[]));
    let unknown = ObjectId(object.0 + 2);
    assert!(!joins(&mut caller, unknown, 4, &[]), "nobody has named it");
    let here = caller.machine.new_object();
    caller.machine.count(here, true);
    assert!(!joins(&mut caller, here, 4, &[]), "nobody else is asked");
    for message in [first, second] {
        let answer = sent(deliver(&mut copy, 1, &message));
        let rest = sent(deliver(&mut caller, 0, &answer[0]));
        let goes = requested(&rest).map(|(calls, _)| calls);
        assert_eq!(goes, (!rest.is_empty()).then(|| vec![3]));
    }
    // The third is under way, as a batch.
    assert!(joins(&mut caller, object, 4, &[]));
    let answer = results(&[3]);
    let rest = sent(deliver(&mut caller, 0, &answer));
    assert_eq!(requested(&rest), Some((vec![4], true)));
    assert_eq!(over(&deliver(&mut caller, 0, &results(&[4]))), [4]);
    assert!(!joins(&mut caller, object, 5, &[]), "all are over");
}

#[test]
fn no_batch_is_quietly_made_greater_than_it_may_be() {
    let (mut caller, _, object) = caller_and_copy();
    two_begin(&mut caller, object);
    let joined = (3..).take_while(|number| joins(&mut caller, object, *number, &[]));
    assert_eq!(joined.count(), 63);
    let all = begin(&mut caller, object, 66, ADD);
    assert_eq!(requested(&all), Some(((3..=66).collect(), true)));
    assert!(joins(&mut caller, object, 67, &[0; 20_000]));
    assert!(!joins(&mut caller, object, 68, &[]), "it is long enough");
}

#[test]
fn what_has_joined_quietly_goes_with_what_began_loudly_in_one_order() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let [_, second] = two_begin(&mut caller, object);
    assert!(joins(&mut caller, object, 3, &[]));
    assert_eq!(begin(&mut caller, object, 4, ADD), []);
    assert!(joins(&mut caller, object, 5, &[]));
    let answer = sent(deliver(&mut copy, 1, &second));
    let rest = sent(deliver(&mut caller, 0, &answer[0]));
    assert_eq!(requested(&rest), Some((vec![3, 4, 5], true)));
    let answer = sent(deliver(&mut copy, 1, &rest[0]));
    assert_eq!(over(&deliver(&mut caller, 0, &answer[0])), [3, 4, 5]);
}

#[test]
fn no_batch_goes_whose_only_call_could_not_be_written() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let [_, second] = two_begin(&mut caller, object);
    let fails = call(object, id(1, 3), ADD);
    assert!(!caller.machine.begins_quietly(fails.by_ref(), |_| Err(())));
    let answer = sent(deliver(&mut copy, 1, &second));
    assert_eq!(sent(deliver(&mut caller, 0, &answer[0])), []);
    // The next one is a batch of one, as if nothing had been.
    let next = begin(&mut caller, object, 4, ADD);
    assert_eq!(requested(&next), Some((vec![4], true)));
}

#[test]
fn of_arguments_that_cannot_be_written_nothing_is_left() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let [_, second] = two_begin(&mut caller, object);
    assert!(joins(&mut caller, object, 3, &[7; 100]));
    let half = |bytes: &mut Vec<u8>| {
        bytes.extend([9; 70]);
        Err(())
    };
    let fails = call(object, id(1, 4), TAKE);
    assert!(!caller.machine.begins_quietly(fails.by_ref(), half));
    assert!(joins(&mut caller, object, 5, &[8]));
    let answer = sent(deliver(&mut copy, 1, &second));
    let rest = sent(deliver(&mut caller, 0, &answer[0]));
    let [ObjectsMessage::Batch { calls, .. }] = &rest[..] else {
        panic!("{rest:?}");
    };
    let calls = calls
        .iter(NodeId(1))
        .map(|it| (it.id.number, it.operation, it.arguments));
    let expected = [(3, ADD, &[7; 100][..]), (5, ADD, &[8])];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    refuses(&mut caller, 0, results(&[4]));
}

#[test]
fn what_a_batch_leaves_waiting_is_answered_by_itself() {
    let (mut caller, mut copy, object) = caller_and_copy();
    for number in 1..=4 {
        let call = call(object, id(1, number), TAKE);
        caller.step(ObjectsEvent::Invoke(call)).unwrap();
    }
    let calls = batch(&[
        (object, 1, ADD),
        (object, 2, TAKE),
        (object, 3, TAKE),
        (object, 4, AWAIT),
    ]);
    let answer = sent(deliver(&mut copy, 1, &calls));
    assert_eq!(replied(&answer), (vec![1, 2], true));
    // Once something waits, what comes next is tried as by itself, and may let it go on.
    let calls = batch(&[(object, 5, ADD), (object, 6, TAKE), (object, 7, ADD)]);
    let answer = sent(deliver(&mut copy, 1, &calls));
    assert_eq!(replied(&answer), (vec![5, 3, 7, 4, 6], true));
    let added = sent(deliver(&mut copy, 1, &batch(&[(object, 8, ADD)])));
    assert_eq!(replied(&added), (vec![8], true), "nobody waits any more");
}

#[test]
fn one_refusal_in_a_batch_says_so_and_the_others_have_their_results() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let broken = copy.machine.new_object();
    let create = ObjectsEvent::Create {
        call: 2,
        object: broken,
        kind: 0,
        state: Bytes::default(),
        strategy: Strategy::On(NodeId(0)),
    };
    copy.step(create).unwrap();
    copy.copies.0.remove(&broken);
    caller.machine.count(broken, true);
    let [_, second] = two_begin(&mut caller, object);
    for (number, object) in [(3, object), (4, broken), (5, object)] {
        assert!(joins(&mut caller, object, number, &[]));
    }
    let answer = sent(deliver(&mut copy, 1, &second));
    let rest = sent(deliver(&mut caller, 0, &answer[0]));
    let answer = sent(deliver(&mut copy, 1, &rest[0]));
    let [
        ObjectsMessage::BatchReply {
            results, refused, ..
        },
    ] = &answer[..]
    else {
        panic!("{answer:?}");
    };
    let results = results.iter().collect::<Vec<_>>();
    assert_eq!(results, [(3, &[][..]), (5, &[])]);
    assert_eq!(*refused, [(4, Refusal::Unknown)]);
    assert_eq!(copy.copies.0[&object], 3);
    let told = deliver(&mut caller, 0, &answer[0]);
    assert_eq!(over(&told), [3, 5, 4]);
    // The batch was answered: the next call is alone again.
    assert!(!joins(&mut caller, object, 6, &[]));
}

#[test]
fn calls_of_a_batch_go_on_to_where_the_object_has_gone_with_what_they_bring() {
    let mut nodes: Vec<Node> = (0..3).map(|id| Node::new(id, 3)).collect();
    let object = nodes[0].machine.new_object();
    let create = ObjectsEvent::Create {
        call: 1,
        object,
        kind: 0,
        state: Bytes::default(),
        strategy: Strategy::On(NodeId(2)),
    };
    nodes[0].step(create).unwrap();
    let [_, caller, _] = &mut nodes[..] else {
        unreachable!("there are three");
    };
    caller.machine.count(object, true);
    let [_, second] = two_begin(caller, object);
    assert!(joins(caller, object, 3, &[3; 3]));
    assert!(joins(caller, object, 4, &[4; 80]));
    let answer = sent(deliver(&mut nodes[0], 1, &second));
    let [elsewhere @ ObjectsMessage::Elsewhere { .. }, done] = &answer[..] else {
        panic!("{answer:?}");
    };
    let again = sent(deliver(&mut nodes[1], 0, elsewhere));
    assert_eq!(requested(&again), Some((vec![2], false)));
    let rest = sent(deliver(&mut nodes[1], 0, done));
    assert_eq!(requested(&rest), Some((vec![3, 4], true)));
    let answer = sent(deliver(&mut nodes[0], 1, &rest[0]));
    assert_eq!(answer.len(), 3);
    for (answer, (number, arguments)) in answer.iter().zip([(3, &[3; 3][..]), (4, &[4; 80])]) {
        let told = deliver(&mut nodes[1], 0, answer);
        let [
            ObjectsCommand::Send {
                to: NodeId(2),
                message: ObjectsMessage::Request { call, .. },
            },
        ] = &told[..]
        else {
            panic!("{told:?}");
        };
        assert_eq!((call.id.number, &call.arguments[..]), (number, arguments));
    }
    assert_eq!(deliver(&mut nodes[1], 0, &answer[2]), []);
}

#[test]
fn a_batch_of_none_and_one_of_more_than_there_may_be_are_refused() {
    let (_, mut copy, object) = caller_and_copy();
    let so_many = |calls: usize| {
        let calls = (1..=calls as u64).map(|number| (object, number, ADD));
        batch(&calls.collect::<Vec<_>>())
    };
    refuses(&mut copy, 1, so_many(0));
    refuses(&mut copy, 1, so_many(MOST_CALLS + 1));
    assert_eq!(copy.copies.0[&object], 0, "none of it was executed");
    assert_eq!(deliver(&mut copy, 1, &so_many(MOST_CALLS)).len(), 1);
    assert_eq!(copy.copies.0[&object], MOST_CALLS as u32);
}

#[test]
fn results_that_nobody_waits_for_are_refused() {
    let (mut caller, _, object) = caller_and_copy();
    refuses(&mut caller, 0, results(&[]));
    two_begin(&mut caller, object);
    refuses(&mut caller, 0, results(&[2, 3]));
    refuses(&mut caller, 0, results(&[u64::MAX]));
    assert_eq!(over(&deliver(&mut caller, 0, &results(&[2]))), [2]);
    refuses(&mut caller, 0, results(&[2]));
    // No batch is under way.
    refuses(&mut caller, 0, results(&[]));
}

#[test]
fn a_call_has_one_result() {
    let (mut caller, _, object) = caller_and_copy();
    two_begin(&mut caller, object);
    for number in 3..=5 {
        assert!(joins(&mut caller, object, number, &[]));
    }
    for twice in [&[2, 2][..], &[2, 1, 2], &[1, 2, 2, 1]] {
        refuses(&mut caller, 0, results(twice));
        let reply = ObjectsMessage::BatchReply {
            results: PackedResults::default(),
            refused: twice.iter().map(|it| (*it, Refusal::Unknown)).collect(),
            blocked: Vec::new(),
            delivered: 0,
            news: None,
        };
        refuses(&mut caller, 0, reply);
    }
    // Of all that nothing was done.
    let told = deliver(&mut caller, 0, &results(&[2, 1]));
    assert_eq!(over(&told), [2, 1]);
    assert_eq!(requested(&sent(told)), Some((vec![3, 4, 5], true)));
    refuses(&mut caller, 0, results(&[2]));
}

#[test]
fn results_wait_for_what_was_ordered_before_them() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let other = ObjectId(object.0 + 2);
    copy.ordered(0, create(other, id(0, 9))).unwrap();
    let [_, second] = two_begin(&mut caller, object);
    let answer = sent(deliver(&mut copy, 1, &second));
    assert_eq!(replied(&answer), (vec![2], true));
    assert_eq!(deliver(&mut caller, 0, &answer[0]), []);
    assert_eq!(
        over(&caller.ordered(0, create(other, id(0, 9))).unwrap()),
        [2]
    );
}

#[test]
fn calls_wait_for_what_was_ordered_before_them() {
    let (mut caller, mut copy, object) = caller_and_copy();
    let other = ObjectId(object.0 + 2);
    caller.ordered(0, create(other, id(0, 9))).unwrap();
    let [_, second] = two_begin(&mut caller, object);
    assert_eq!(deliver(&mut copy, 1, &second), []);
    assert_eq!(copy.copies.0[&object], 0);
    let answer = sent(copy.ordered(0, create(other, id(0, 9))).unwrap());
    assert_eq!(replied(&answer), (vec![2], true));
}

#[test]
fn what_a_batch_did_to_a_copy_is_for_its_node_to_learn() {
    let (_, mut copy, object) = caller_and_copy();
    copy.machine.take_acquire_due();
    deliver(&mut copy, 1, &batch(&[(object, 1, ADD)]));
    assert!(copy.machine.is_acquire_due());
}
