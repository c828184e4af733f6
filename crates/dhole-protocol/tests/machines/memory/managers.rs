//! Runs in which node 0 manages all minipages.

use dhole_model::NodeId;
use dhole_protocol::memory::{
    MemoryEffect, MemoryKind, MemoryMessage, MemoryOperation, Millipage, Minipage, MinipageRefusal,
    MinipageRun, VIEW_BITS,
};
use dhole_protocol::part::NodePart as _;

use MemoryKind::{Ack, Data, Forward, Gone, Grant, Request};
use MemoryOperation::{Free, Read, Write};

use super::Pack;

/// As [`Pack::new`], in a run whose node 0 manages all minipages.
fn with_one_manager(nodes: usize) -> Pack {
    let mut pack = Pack::new(nodes);
    let all = std::mem::take(&mut pack.nodes).into_iter();
    pack.nodes = all.map(|it| it.with_managers(&[NodeId(0)])).collect();
    pack
}

/// A node asks the manager of all for new minipages.
fn asks(
    pack: &mut Pack,
    node: usize,
    shape: (u64, u64, u64),
) -> Result<MinipageRun, MinipageRefusal> {
    let mut out = Vec::new();
    let ticket = pack.nodes[node].ask_to_allocate(shape, false, &mut out)?;
    pack.log.clear();
    pack.takes(node, out);
    assert_eq!(pack.nodes[node].allocated(ticket), None);
    pack.deliver();
    assert_eq!(pack.log, [(node, 0, Request), (0, node, Grant)]);
    pack.nodes[node].allocated(ticket).unwrap()
}

#[test]
fn one_manager_allocates_for_the_others_and_knows_all_copies() {
    let mut pack = with_one_manager(3);
    let mut alone = Pack::new(1);
    // It lays them out as it does its own: on pages that have room, and on new ones.
    for shape in [
        (40, 256, 8),
        (1, 148, 4),
        (3, 9_000, 8),
        (5, 100, 4),
        (2, 8, 8),
    ] {
        let run = asks(&mut pack, 2, shape).unwrap();
        let (count, bytes, align) = shape;
        let own = alone.nodes[0].allocate(count, bytes, align).unwrap();
        for index in 0..=count {
            assert_eq!(run.minipage(index), own.minipage(index), "{shape:?}");
        }
    }
    let at = asks(&mut pack, 2, (1, 256, 8)).unwrap().at;
    assert_eq!(pack.nodes[2].manager_of(at), Some(NodeId(0)));
    // A node that manages what it has allocated writes it without a message, and is asked itself.
    let write = [(2, 0, Request), (0, 2, Data), (2, 0, Ack)];
    assert_eq!(pack.run(2, at, Write), write);
    let read = [(1, 0, Request), (0, 2, Forward), (2, 1, Data), (1, 0, Ack)];
    assert_eq!(pack.run(1, at, Read), read);
    let mut own = Pack::new(3);
    let at = own.allocate(2).at;
    assert_eq!(own.run(2, at, Write), []);
    assert_eq!(
        own.run(1, at, Read),
        [(1, 2, Request), (2, 1, Data), (1, 2, Ack)]
    );
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn one_manager_allocates_again_what_any_node_has_freed_and_says_when_it_is_full() {
    let mut pack = with_one_manager(3);
    let first = asks(&mut pack, 1, (1, 256, 8)).unwrap();
    pack.run(2, first.at, Write);
    pack.run(2, first.at, Free);
    assert_eq!(
        asks(&mut pack, 2, (1, 256, 8)).unwrap().minipage(0),
        first.minipage(0)
    );
    let mut out = Vec::new();
    let node = &mut pack.nodes[1];
    for (count, bytes, align) in [(0, 8, 8), (1, 0, 8), (1, (64 << 20) + 1, 8), (1, 8, 3)] {
        let refused = node.ask_to_allocate((count, bytes, align), false, &mut out);
        assert_eq!(refused, Err(MinipageRefusal::Size { count, bytes }));
    }
    assert_eq!(out, []);
    let (count, bytes) = (1 << 40, 4096);
    let ticket = node.ask_to_allocate((count, bytes, 8), true, &mut out);
    pack.log.clear();
    pack.takes(1, out);
    pack.deliver();
    assert_eq!(pack.log, [(1, 0, Request), (0, 1, Gone)]);
    let (used, left) = (4096, (1 << 30) - 4096);
    let full = MinipageRefusal::Full {
        count,
        bytes,
        used,
        left,
    };
    assert_eq!(pack.nodes[1].allocated(ticket.unwrap()), Some(Err(full)));
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn only_the_manager_of_all_is_asked_to_allocate_and_answers_once() {
    let mut pack = with_one_manager(3);
    let mut out = Vec::new();
    let ticket = pack.nodes[1]
        .ask_to_allocate((2, 256, 8), false, &mut out)
        .unwrap();
    let Some(MemoryEffect::Send { message: asks, .. }) = out.pop() else {
        panic!("it asks");
    };
    let refused = |node: &Millipage, from, message: MemoryMessage| {
        let (mut after, mut out) = (node.clone(), Vec::new());
        let payload = message.payload_bytes() as usize;
        let taken = after.deliver(NodeId(from), message, payload, &mut out);
        let is_bad = taken.is_err();
        assert!(is_bad, "{message:?}: {taken:?}");
        assert_eq!((after == *node, out), (true, Vec::new()));
    };
    // Another node; one that each node asks of what it has allocated; for another; of no size.
    refused(&pack.nodes[2], 1, asks);
    refused(&Pack::new(3).nodes[0], 1, asks);
    refused(&pack.nodes[0], 2, asks);
    refused(&pack.nodes[0], 1, MemoryMessage { address: 0, ..asks });
    refused(&pack.nodes[0], 1, MemoryMessage { number: 3, ..asks });
    let minipage = Minipage { at: 0, bytes: 256 };
    let grant = MemoryMessage {
        kind: Grant,
        address: 0,
        minipage,
        ..asks
    };
    refused(&pack.nodes[1], 2, grant);
    refused(&pack.nodes[1], 0, MemoryMessage { ticket: 9, ..grant });
    refused(&pack.nodes[1], 0, MemoryMessage { kind: Ack, ..grant });
    let other = Minipage { at: 0, bytes: 255 };
    refused(
        &pack.nodes[1],
        0,
        MemoryMessage {
            minipage: other,
            ..grant
        },
    );
    // The second of the two would be behind the last view, or the last byte.
    let last = Minipage {
        at: 15 << VIEW_BITS,
        bytes: 256,
    };
    let beyond = MemoryMessage {
        address: last.at,
        minipage: last,
        ..grant
    };
    refused(&pack.nodes[1], 0, beyond);
    pack.nodes[1]
        .deliver(NodeId(0), grant, 0, &mut out)
        .unwrap();
    refused(&pack.nodes[1], 0, grant);
    assert!(pack.nodes[1].allocated(ticket).unwrap().is_ok());
    refused(&pack.nodes[1], 0, grant);
}
