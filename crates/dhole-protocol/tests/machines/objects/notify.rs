//! Which messages about objects notify their receivers.

use std::sync::Arc;

use dhole_model::{NodeId, Notify, ObjectId};
use dhole_protocol::Message;
use dhole_protocol::group::{GroupMessage, Part, ViewId};
use dhole_protocol::objects::{Call, CallId, ObjectsMessage, Ordered};

const VIEW: ViewId = ViewId {
    number: 1,
    sequencer: NodeId(0),
};

fn of_group(message: GroupMessage<Arc<Ordered>>) -> Message {
    Message::Objects(Box::new(ObjectsMessage::Group(message)))
}

fn part(origin: NodeId) -> Part {
    Part {
        origin,
        serial: 0,
        part: 0,
        parts: 1,
    }
}

fn data(origin: NodeId, body: Ordered) -> Message {
    of_group(GroupMessage::Data {
        view: VIEW,
        number: 1,
        part: part(origin),
        body: Arc::new(body),
        stable: 0,
    })
}

/// Both ways in which node 1 has something numbered, bytes and all.
fn to_be_numbered(body: Ordered) -> [Message; 2] {
    let (view, part, body, done) = (VIEW, part(NodeId(1)), Arc::new(body), 0);
    let submit = GroupMessage::Submit {
        view,
        part,
        body: Arc::clone(&body),
        done,
    };
    let announce = GroupMessage::Announce {
        view,
        part,
        body,
        done,
    };
    [submit, announce].map(of_group)
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
            started: false,
            chain: Default::default(),
            arguments: [0].into(),
        },
        time: None,
        news: None,
    };
    for message in to_be_numbered(operate.clone()) {
        assert_eq!(message.notify(NodeId(0)), Notify::Lazy);
        assert!(message.is_started(), "its sender notifies before it waits");
    }
    for message in to_be_numbered(Ordered::Free { by: id, object }) {
        assert_eq!(message.notify(NodeId(0)), Notify::Now);
        assert!(!message.is_started());
    }
    let accept = of_group(GroupMessage::Accept {
        view: VIEW,
        origin: NodeId(1),
        serial: 0,
        parts: 1,
        first: 1,
        stable: 0,
    });
    assert_eq!(accept.notify(NodeId(1)), Notify::Lazy);
    assert_eq!(accept.notify(NodeId(2)), Notify::Now);
    let operate = data(NodeId(1), operate);
    assert_eq!(operate.notify(NodeId(2)), Notify::Lazy);
    assert_eq!(operate.notify(NodeId(1)), Notify::Now, "more may follow");
    assert!(!accept.is_started() && !operate.is_started());
    let free = data(NodeId(1), Ordered::Free { by: id, object });
    assert_eq!(free.notify(NodeId(2)), Notify::Now);
}
