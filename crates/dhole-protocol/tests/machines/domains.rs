//! Domains: what their leaders keep for other nodes, and who frees a minipage.

use std::collections::VecDeque;

use dhole_model::NodeId;
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::{
    Accessed, MemoryEffect, MemoryKind, MemoryMessage, MemoryOperation, Millipage, Minipage,
    RequestState,
};
use dhole_protocol::part::NodePart as _;

use MemoryOperation::{Free, Read};

const BYTES: u64 = 1 << 30;

/// Nodes in domains of these leaders.
fn nodes(leaders: &[usize]) -> Vec<Millipage> {
    let ids: Vec<NodeId> = leaders.iter().copied().map(NodeId::at).collect();
    let node = |me| {
        let mut node = Millipage::new(NodeId::at(me), leaders.len(), BYTES, 16);
        node.set_leaders(&ids);
        node
    };
    (0..leaders.len()).map(node).collect()
}

fn sent(node: usize, commands: Vec<MemoryEffect>) -> Vec<(usize, usize, MemoryMessage)> {
    let sent = commands.into_iter().filter_map(|command| match command {
        MemoryEffect::Send { to, message } => Some((node, to.index(), message)),
        _ => None,
    });
    sent.collect()
}

/// These nodes free a minipage at once, each by a thread of its own, which makes its request again
/// where it was another one's. How many of them have freed it.
fn free_at_once(leaders: &[usize], manager: usize, all: &[usize]) -> usize {
    let mut nodes = nodes(leaders);
    let at = nodes[manager].allocate(1, 256, 8).unwrap().at;
    let mut queue = VecDeque::new();
    let (mut own, mut freed) = (vec![false; leaders.len()], 0);
    let mut waiting = all.to_vec();
    let begin = |nodes: &mut Vec<Millipage>, own: &mut Vec<bool>, node: usize| {
        let mut out = Vec::new();
        own[node] = nodes[node].access(at, Free, true, &mut out) == Accessed::Asked;
        sent(node, out)
    };
    for node in all {
        queue.extend(begin(&mut nodes, &mut own, *node));
    }
    for _ in 0..4 * all.len() {
        while let Some((from, to, message)) = queue.pop_front() {
            let mut out = Vec::new();
            let bytes = message.payload_bytes() as usize;
            let taken = nodes[to].deliver(NodeId::at(from), message, bytes, &mut out);
            taken.unwrap_or_else(|refused| panic!("{message:?}: {refused}"));
            queue.extend(sent(to, out));
        }
        for node in std::mem::take(&mut waiting) {
            let state = nodes[node].state(at);
            if state == RequestState::Waits {
                // A thread of its leader goes on first.
                waiting.push(node);
                continue;
            }
            let mut out = Vec::new();
            nodes[node].goes_on(at, &mut out);
            queue.extend(sent(node, out));
            match (state, own[node]) {
                (RequestState::Gone, _) => {}
                (_, true) => freed += 1,
                (_, false) => {
                    queue.extend(begin(&mut nodes, &mut own, node));
                    waiting.push(node);
                }
            }
        }
    }
    assert_eq!(waiting, [], "of {leaders:?}, managed by {manager}");
    freed
}

#[test]
fn of_nodes_that_free_a_minipage_at_once_one_does() {
    for manager in 0..4 {
        for leaders in [[0, 0, 0, 0], [0, 0, 0, 3], [0, 1, 1, 1], [0, 0, 2, 2]] {
            for all in [&[1, 2][..], &[2, 1], &[0, 1, 2], &[3, 2, 1, 0], &[2, 3]] {
                let freed = free_at_once(&leaders, manager, all);
                assert_eq!(freed, 1, "{leaders:?}, managed by {manager}, by {all:?}");
            }
        }
    }
}

#[test]
fn a_leader_asks_again_for_the_second_node_that_frees_and_names_each() {
    let mut nodes = nodes(&[0, 0, 0, 3]);
    let at = nodes[3].allocate(1, 256, 8).unwrap().at;
    let mut queue = VecDeque::new();
    for node in [1, 2] {
        let mut out = Vec::new();
        nodes[node].access(at, Free, true, &mut out);
        queue.extend(sent(node, out));
    }
    let mut log = Vec::new();
    while let Some((from, to, message)) = queue.pop_front() {
        log.push((from, to, message.kind, message.asks_for()));
        let mut out = Vec::new();
        let taken = nodes[to].deliver(NodeId::at(from), message, 0, &mut out);
        taken.unwrap();
        queue.extend(sent(to, out));
    }
    use MemoryKind::{Gone, Grant, Request};
    let (first, second) = (Some(NodeId(1)), Some(NodeId(2)));
    let expected = [
        (1, 0, Request, None),
        (2, 0, Request, None),
        (0, 3, Request, first),
        (3, 0, Grant, None),
        (0, 1, Grant, None),
        (0, 3, Request, second),
        (3, 0, Gone, None),
        (0, 2, Gone, None),
    ];
    assert_eq!(log, expected);
}

fn message(kind: MemoryKind, operation: MemoryOperation, asker: usize) -> MemoryMessage {
    MemoryMessage {
        kind,
        operation,
        asker: NodeId::at(asker),
        number: 0,
        ticket: 1,
        address: 0,
        minipage: Minipage { at: 0, bytes: 0 },
    }
}

#[test]
fn a_leader_keeps_so_many_requests_of_each_node_of_its_domain() {
    const MOST: u64 = 3;
    let mut nodes = nodes(&[0, 0, 0, 3]);
    let mut leader = nodes.remove(0).with_limits(100, MOST as usize);
    // Node 3 manages it, and does not answer.
    let asks = |leader: &mut Millipage, node: usize, page: u64| {
        let address = 3 * BYTES / 4 + page * 4096;
        let request = message(MemoryKind::Request, Read, node);
        let request = MemoryMessage { address, ..request };
        let from = NodeId::at(node);
        let taken = leader.deliver(from, request, 0, &mut Vec::new());
        taken.map_err(|what| ProtocolError::BadMessage { from, what })
    };
    for page in 0..MOST {
        asks(&mut leader, 1, page).unwrap();
    }
    let refused = asks(&mut leader, 1, MOST).unwrap_err().to_string();
    assert!(refused.contains("more requests of a node"), "{refused}");
    assert!(refused.contains("node 1"), "{refused}");
    // What another node asks for is no part of that.
    asks(&mut leader, 2, 0).unwrap();
}

#[test]
fn a_leader_keeps_so_many_copies_of_which_a_node_of_its_domain_speaks() {
    const MOST: u64 = 3;
    let mut nodes = nodes(&[0, 0, 2]);
    let mut leader = nodes.remove(0).with_limits(MOST as usize, 100);
    let reads = |leader: &mut Millipage, page: u64| {
        // Node 1 manages them, and says that node 2 reads what nobody has used.
        let at = (BYTES / 3 / 4096 + 1 + page) * 4096;
        let forward = MemoryMessage {
            number: 1,
            address: at,
            minipage: Minipage { at, bytes: 256 },
            ..message(MemoryKind::Forward, Read, 2)
        };
        leader.deliver(NodeId(1), forward, 0, &mut Vec::new())
    };
    for page in 0..MOST {
        reads(&mut leader, page).unwrap();
    }
    let refused = reads(&mut leader, MOST).unwrap_err().to_string();
    assert!(refused.contains("more copies of minipages"), "{refused}");
}
