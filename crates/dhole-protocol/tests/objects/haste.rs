//! How soon messages about objects have to be taken by who computes.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId};
use dhole_protocol::group::{GroupMessage, Part, ViewId};
use dhole_protocol::objects::{Call, CallId, ObjectsMessage, Ordered};
use dhole_protocol::{Haste, Message};

fn data(origin: NodeId, body: Ordered) -> Message {
    let part = Part {
        origin,
        serial: 0,
        part: 0,
        parts: 1,
    };
    let view = ViewId {
        number: 1,
        sequencer: NodeId(0),
    };
    let message = GroupMessage::Data {
        view,
        number: 1,
        part,
        body: Arc::new(body),
        stable: 0,
    };
    Message::Objects(Box::new(ObjectsMessage::Group(message)))
}

#[test]
fn nobody_is_woken_for_an_operation_on_a_replica_but_who_broadcast_it() {
    let id = CallId {
        node: NodeId(1),
        number: 1,
    };
    let object = ObjectId::new(0, NodeId(0), 3, 0);
    let operate = Ordered::Operate {
        call: Call {
            id,
            object,
            kind: 0,
            operation: 0,
            writes: true,
            arguments: [0].into(),
        },
        time: None,
        news: None,
    };
    let operate = data(NodeId(1), operate);
    assert_eq!(operate.haste(NodeId(2)), Haste::Soon);
    assert_eq!(operate.haste(NodeId(1)), Haste::AtOnce, "more may follow");
    let free = data(NodeId(1), Ordered::Free { by: id, object });
    assert_eq!(free.haste(NodeId(2)), Haste::AtOnce);
}
