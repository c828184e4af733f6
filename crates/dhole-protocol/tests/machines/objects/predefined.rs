//! Objects that every node has from the start, or of which the program knows where they are.

use dhole_protocol::objects::Predefined;

use super::*;

const NAMES: ObjectId = ObjectId::NAMES;

fn node(id: u16, nodes: usize) -> Node {
    let mut node = Node::new(id, nodes);
    node.machine.predefine(Predefined {
        object: NAMES,
        kind: 0,
        state: Bytes::default(),
    });
    node
}

fn finished(commands: &[ObjectsCommand]) -> Vec<&Outcome> {
    fn outcome(command: &ObjectsCommand) -> Option<&Outcome> {
        match command {
            ObjectsCommand::Finished { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
    commands.iter().filter_map(outcome).collect()
}

#[test]
fn a_replica_is_made_where_it_is_first_needed() {
    // By a write that another node has ordered.
    let mut other = node(1, 3);
    assert_eq!(other.machine.records_kept(), [0, 0]);
    other.ordered(0, operate(NAMES, id(0, 1), ADD)).unwrap();
    assert_eq!(other.machine.place(NAMES), Some(Place::Replicated));
    assert_eq!(other.copies.0[&NAMES], 1);
    // By a call of the own worker, which was counted before.
    let mut reader = node(2, 3);
    reader.machine.count(NAMES, false);
    let read = reader.step(ObjectsEvent::Invoke(call(NAMES, id(2, 1), AWAIT)));
    assert!(finished(&read.unwrap()).is_empty());
    let freed = reader.ordered(0, operate(NAMES, id(0, 1), ADD)).unwrap();
    assert_eq!(finished(&freed), [&Ok(Bytes::default())]);
    // By a call that was started.
    let mut starter = node(2, 3);
    starter.machine.count(NAMES, true);
    let begun = Call {
        started: true,
        ..call(NAMES, id(2, 1), ADD)
    };
    let begun = starter.step(ObjectsEvent::Begin(begun)).unwrap();
    assert!(matches!(begun[..], [ObjectsCommand::Broadcast(_)]));
    // A single node has one copy.
    let mut alone = node(0, 1);
    let added = alone.step(ObjectsEvent::Invoke(call(NAMES, id(0, 1), ADD)));
    assert_eq!(finished(&added.unwrap()), [&Ok(Bytes::default())]);
    assert_eq!(alone.machine.place(NAMES), Some(Place::Here));
}

#[test]
fn it_stays_where_it_is_whatever_a_program_or_a_peer_says() {
    let change = Ordered::Change {
        by: id(0, 1),
        object: NAMES,
        to: Strategy::On(NodeId(0)),
        asks: false,
    };
    let free = Ordered::Free {
        by: id(0, 1),
        object: NAMES,
    };
    for begun in [false, true] {
        let mut node = node(1, 3);
        if begun {
            node.ordered(0, operate(NAMES, id(0, 1), ADD)).unwrap();
        }
        for body in [create(NAMES, id(0, 1)), change.clone(), free.clone()] {
            let refused = node.ordered(0, body);
            assert!(
                matches!(refused, Err(ProtocolError::BadMessage { .. })),
                "{refused:?}"
            );
        }
        let (from, by) = (NodeId(0), id(0, 1));
        let message = ObjectsMessage::Create {
            by,
            object: NAMES,
            kind: 0,
            state: Bytes::default(),
        };
        let refused = node.step(ObjectsEvent::Deliver { from, message });
        assert!(
            matches!(refused, Err(ProtocolError::BadMessage { .. })),
            "{refused:?}"
        );
        let (call, object, to) = (7, NAMES, Strategy::Replicated);
        for event in [
            ObjectsEvent::Free { call, object },
            ObjectsEvent::Change { call, object, to },
        ] {
            let said = node.step(event).unwrap();
            assert_eq!(finished(&said), [&Err(Refusal::Unknown)]);
        }
        node.ordered(0, operate(NAMES, id(0, 2), ADD)).unwrap();
        assert_eq!(node.copies.0[&NAMES], 1 + u32::from(begun));
    }
}

#[test]
fn who_knows_where_an_object_is_asks_there() {
    let mut caller = Node::new(2, 3);
    let object = Node::new(0, 3).machine.new_object();
    let asked = |commands: Vec<ObjectsCommand>| match commands[..] {
        [ObjectsCommand::Send { to, .. }] => to,
        _ => panic!("{commands:?}"),
    };
    let unheard = caller.step(ObjectsEvent::Invoke(call(object, id(2, 1), ADD)));
    assert_eq!(asked(unheard.unwrap()), NodeId(0), "the node that made it");
    caller.machine.suppose(object, NodeId(1));
    let supposed = caller.step(ObjectsEvent::Invoke(call(object, id(2, 2), ADD)));
    assert_eq!(asked(supposed.unwrap()), NodeId(1));
    // What was heard counts more.
    caller.machine.suppose(object, NodeId(0));
    assert_eq!(caller.machine.place(object), Some(Place::At(NodeId(1))));
    caller.machine.suppose(object, NodeId(2));
    assert_eq!(caller.machine.place(object), Some(Place::At(NodeId(1))));
}
