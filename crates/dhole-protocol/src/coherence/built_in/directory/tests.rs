//! Messages that no sound node sends.

use super::*;
use crate::{Command, Event, MemberMessage, Message, Protocol, ProtocolError, Unread};

/// A unit of node 0, which node 0 has allocated.
const OWN: Oid = Oid(1 << 20);
/// A unit of node 1, for a copy of which node 0 has asked.
const THEIRS: Oid = Oid(1 << 21);

/// Node 0 of three, under the protocol.
fn node() -> Protocol {
    let mut node = Protocol::new(NodeId(0), 3);
    let coherence = Directory::coherence();
    let range = OidRange::one(OWN);
    let allocated = Event::Allocated { range, coherence };
    let missed = Event::ReadMiss(Unread {
        oid: THEIRS,
        creator: NodeId(1),
        zero_ok: false,
        coherence,
    });
    for event in [allocated, missed] {
        let stepped = node.step(event, WorkerIs::InCall, &mut Vec::new());
        stepped.expect("the worker may do that");
    }
    node
}

fn deliver(node: &mut Protocol, message: DirectoryMessage) -> Result<Vec<Command>, ProtocolError> {
    let member = Directory::coherence().member().expect("it is a member");
    let body = message.to_bytes();
    // As many as any message of the protocol has.
    let sizes = [8].into();
    let message = MemberMessage {
        member,
        body,
        sizes,
    };
    let (from, message) = (NodeId(1), Message::Coherence(message));
    let mut out = Vec::new();
    let stepped = node.step(Event::Deliver { from, message }, WorkerIs::InCall, &mut out);
    stepped.map(|()| out)
}

#[test]
fn a_message_that_no_sound_node_sends_is_refused() {
    let forward = Forward {
        unit: THEIRS,
        to: NodeId(2),
        access: Access::Read,
        grant: 0,
        invalidated: 0,
    };
    let invalidated = |unit, owner| DirectoryMessage::Invalidate(unit, 1, NodeId(owner));
    let unmet = Oid(1 << 22);
    let (mut owned, mut unknown, mut to_itself) = (forward, forward, forward);
    (owned.unit, unknown.unit, to_itself.to) = (OWN, unmet, NodeId(0));
    let (mut beyond, mut to_write) = (forward, forward);
    (beyond.to, to_write.access) = (NodeId(3), Access::Write);
    for message in [
        DirectoryMessage::Forward(owned),
        DirectoryMessage::Forward(unknown),
        DirectoryMessage::Forward(to_itself),
        DirectoryMessage::Forward(beyond),
        DirectoryMessage::Forward(to_write),
        DirectoryMessage::Copy(OWN, 0),
        DirectoryMessage::Grant(forward.granted(true)),
        invalidated(OWN, 2),
        invalidated(unmet, 2),
        invalidated(THEIRS, 0),
        invalidated(THEIRS, u16::MAX),
        DirectoryMessage::Acknowledge(OWN, 1),
        DirectoryMessage::Freed(OWN),
    ] {
        let (mut node, before) = (node(), node());
        let refused = deliver(&mut node, message);
        let is_bad = matches!(
            refused,
            Err(ProtocolError::BadMessage {
                from: NodeId(1),
                ..
            })
        );
        assert!(is_bad, "{message:?}: {refused:?}");
        assert_eq!(node, before, "{message:?} leaves no trace");
    }
}

#[test]
fn a_grant_that_does_not_fit_is_refused() {
    let mut node = node();
    deliver(&mut node, DirectoryMessage::Copy(THEIRS, 0)).expect("it asked");
    let site = dhole_model::CallSite::runtime("a test");
    let fault = Event::WriteFault { oid: THEIRS, site };
    node.step(fault, WorkerIs::InCall, &mut Vec::new())
        .expect("it may write");
    let granted = Grant {
        unit: THEIRS,
        grant: 1,
        invalidated: 4,
        has_bytes: false,
    };
    deliver(&mut node, DirectoryMessage::Grant(granted)).expect_err("there are three nodes");
    let outdated = DirectoryMessage::Invalidate(THEIRS, 1, NodeId(2));
    deliver(&mut node, outdated).expect("another node writes first");
    let granted = Grant {
        invalidated: 0,
        grant: 2,
        ..granted
    };
    deliver(&mut node, DirectoryMessage::Grant(granted)).expect_err("its copy is outdated");
    let has_bytes = true;
    let granted = Grant {
        has_bytes,
        ..granted
    };
    let done = deliver(&mut node, DirectoryMessage::Grant(granted)).expect("it asked");
    assert_eq!(done.last(), Some(&Command::Done));
}
