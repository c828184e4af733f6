//! Millipage's machines: which messages an access takes, case by case, and what no sound node says.

mod managers;
mod release;

use std::collections::VecDeque;

use dhole_model::NodeId;
use dhole_protocol::memory::{
    Accessed, MOST_PREFETCH_BYTES, MOST_PREFETCHES, MemoryAct, MemoryEffect, MemoryEvent,
    MemoryKind, MemoryMessage, MemoryOperation, Millipage, Minipage, MinipageRun, Permission,
    RequestState, VIEW_BITS,
};
use dhole_protocol::part::{NodePart as _, PartEffects};

use MemoryKind::{Ack, Data, Dropped, Forward, Gone, Grant, Invalidate, Invalidated, Request};
use MemoryOperation::{Bring, BringToWrite, Free, Push, Read, Write};

/// Machines whose messages arrive in the order in which they were sent.
struct Pack {
    nodes: Vec<Millipage>,
    /// Permissions by node, of all minipages that were named.
    sent: VecDeque<(usize, usize, MemoryMessage)>,
    /// Kinds of the messages that went, with sender and receiver.
    log: Vec<(usize, usize, MemoryKind)>,
    permitted: Vec<(usize, Permission)>,
}

impl Pack {
    fn new(nodes: usize) -> Pack {
        let node = |me| Millipage::new(NodeId::at(me), nodes, 1 << 30, 16);
        Pack {
            nodes: (0..nodes).map(node).collect(),
            sent: VecDeque::new(),
            log: Vec::new(),
            permitted: Vec::new(),
        }
    }

    /// Nodes in domains of these leaders.
    fn in_domains(leaders: &[usize]) -> Pack {
        let mut pack = Pack::new(leaders.len());
        let leaders: Vec<NodeId> = leaders.iter().copied().map(NodeId::at).collect();
        let all = pack.nodes.iter_mut();
        all.for_each(|node| node.set_leaders(&leaders));
        pack
    }

    fn takes(&mut self, node: usize, commands: Vec<MemoryEffect>) {
        for command in commands {
            match command {
                MemoryEffect::Send { to, mut message } => {
                    assert_ne!(to.index(), node);
                    if message.kind == MemoryKind::Diff {
                        // Nothing has changed.
                        message.minipage.bytes = 0;
                    }
                    self.sent.push_back((node, to.index(), message));
                    self.log.push((node, to.index(), message.kind));
                }
                MemoryEffect::Act(MemoryAct::Permit { permission, .. }) => {
                    self.permitted.push((node, permission));
                }
                MemoryEffect::Act(_) | MemoryEffect::Over(_) => {}
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.sent.pop_front() {
            let mut out = Vec::new();
            let payload = message.payload_bytes() as usize;
            let taken = self.nodes[to].deliver(NodeId::at(from), message, payload, &mut out);
            taken.unwrap_or_else(|refused| panic!("{message:?}: {refused}"));
            self.takes(to, out);
        }
    }

    /// An access that is made until it may be; the messages for it.
    fn run(
        &mut self,
        node: usize,
        address: u64,
        operation: MemoryOperation,
    ) -> Vec<(usize, usize, MemoryKind)> {
        self.log.clear();
        loop {
            let mut out = Vec::new();
            let accessed = self.nodes[node].access(address, operation, true, &mut out);
            self.takes(node, out);
            self.deliver();
            if accessed == Accessed::Permitted {
                return std::mem::take(&mut self.log);
            }
            let state = self.nodes[node].state(address);
            assert_ne!(state, RequestState::Waits);
            let mut out = Vec::new();
            self.nodes[node].goes_on(address, &mut out);
            self.takes(node, out);
            self.deliver();
            if state == RequestState::Gone || operation == Free {
                return std::mem::take(&mut self.log);
            }
        }
    }

    fn push(&mut self, node: usize, address: u64) -> Vec<(usize, usize, MemoryKind)> {
        self.log.clear();
        let mut out = Vec::new();
        self.nodes[node].push(address, &mut out);
        self.takes(node, out);
        self.deliver();
        std::mem::take(&mut self.log)
    }

    fn allocate(&mut self, node: usize) -> MinipageRun {
        self.nodes[node].allocate(1, 256, 8).unwrap()
    }
}

#[test]
fn each_case_takes_the_messages_that_it_must() {
    let mut pack = Pack::new(5);
    let at = pack.allocate(0).at;
    // Manager, asker and holder.
    assert_eq!(pack.run(0, at, Write), [], "nobody else has it");
    assert_eq!(
        pack.run(1, at, Read),
        [(1, 0, Request), (0, 1, Data), (1, 0, Ack)]
    );
    let upgrade = [(1, 0, Request), (0, 1, Grant), (1, 0, Ack)];
    assert_eq!(pack.run(1, at, Write), upgrade);
    assert_eq!(pack.run(1, at, Read), [], "a hit");
    let apart = [(2, 0, Request), (0, 1, Forward), (1, 2, Data), (2, 0, Ack)];
    assert_eq!(pack.run(2, at, Read), apart, "all three different");
    assert_eq!(
        pack.run(0, at, Read),
        [(0, 1, Forward), (1, 0, Data)],
        "the manager asks"
    );
    // Copies on 0, 1 and 2; the last owner is 1. Two others beside the source, one of them the
    // manager itself, which takes its own copy away without a message.
    let written = [
        (3, 0, Request),
        (0, 2, Invalidate),
        (2, 0, Invalidated),
        (0, 1, Forward),
        (1, 3, Data),
        (3, 0, Ack),
    ];
    assert_eq!(pack.run(3, at, Write), written);
    assert_eq!(pack.run(4, at, Read).len(), 4);
    assert_eq!(pack.run(2, at, Read).len(), 4);
    let upgraded = [
        (2, 0, Request),
        (0, 3, Invalidate),
        (0, 4, Invalidate),
        (3, 0, Invalidated),
        (4, 0, Invalidated),
        (0, 2, Grant),
        (2, 0, Ack),
    ];
    assert_eq!(pack.run(2, at, Write), upgraded);
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
    assert_eq!(pack.nodes[0].copies_at_rest(at), Some(vec![NodeId(2)]));
}

#[test]
fn a_push_gives_all_a_copy_and_none_where_the_pusher_has_lost_its_own() {
    let mut pack = Pack::new(3);
    let at = pack.allocate(0).at;
    pack.run(1, at, Write);
    let all = [
        (1, 0, Request),
        (0, 1, Forward),
        (1, 0, Data),
        (1, 2, Data),
        (2, 0, Ack),
    ];
    assert_eq!(pack.push(1, at), all);
    for node in 0..3 {
        assert_eq!(pack.run(node, at, Read), [], "node {node} has a copy");
    }
    // Node 1 has a copy when it pushes, and none when the manager hears of it.
    let mut out = Vec::new();
    pack.nodes[1].push(at, &mut out);
    let held_back = std::mem::take(&mut out);
    pack.run(2, at, Write);
    pack.log.clear();
    pack.takes(1, held_back);
    pack.deliver();
    assert_eq!(pack.log, [(1, 0, Request), (0, 1, Dropped)]);
    assert_eq!(pack.push(1, at), [], "it has no copy");
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn what_is_freed_is_gone_for_all_and_what_never_was_is_too() {
    let mut pack = Pack::new(3);
    let at = pack.allocate(0).at;
    pack.run(1, at, Write);
    let freed = [
        (2, 0, Request),
        (0, 1, Invalidate),
        (1, 0, Invalidated),
        (0, 2, Grant),
    ];
    assert_eq!(pack.run(2, at, Free), freed);
    for operation in [Read, Write, Free] {
        assert_eq!(pack.run(1, at, operation), [(1, 0, Request), (0, 1, Gone)]);
        assert_eq!(pack.run(0, at, operation), []);
    }
    // Another view; another page; no node's part of the memory; no view at all.
    for nowhere in [at | (3 << VIEW_BITS), at + 4096] {
        assert_eq!(pack.run(1, nowhere, Read), [(1, 0, Request), (0, 1, Gone)]);
    }
    for nowhere in [(1 << 30) + 4096, at | (16 << VIEW_BITS), u64::MAX] {
        assert_eq!(pack.run(1, nowhere, Write), []);
    }
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn neighbours_of_a_group_come_by_operations_that_nobody_asked_for() {
    let mut pack = Pack::new(3);
    let run = pack.nodes[0].allocate_in_groups(40, 256, 8).unwrap();
    let at = |index| run.minipage(index).unwrap().at;
    // The second of a group is brought, and acknowledged at once.
    let both = [
        (1, 0, Request),
        (0, 1, Data),
        (0, 1, Data),
        (1, 0, Ack),
        (1, 0, Ack),
    ];
    assert_eq!(pack.run(1, at(0), Read), both);
    assert_eq!(pack.run(1, at(1), Read), []);
    // A node that goes on gets twice as many, again and again.
    for (first, size) in [(2, 4), (6, 8), (14, 16)] {
        assert_eq!(pack.run(1, at(first), Read).len(), 1 + 2 * size);
        assert_eq!(pack.nodes[0].group_size(at(0)), size as u64);
        for index in first + 1..first + size as u64 {
            assert_eq!(pack.run(1, at(index), Read), []);
        }
    }
    // One that writes gets the only copies.
    pack.run(2, at(20), Write);
    for index in 20..36 {
        assert_eq!(pack.run(2, at(index), Write), []);
        assert_eq!(
            pack.nodes[0].copies_at_rest(at(index)),
            Some(vec![NodeId(2)])
        );
    }
    assert_eq!(pack.run(1, at(19), Read), []);
    // Where two nodes want one at once, half as many come.
    let mut out = Vec::new();
    for node in [0, 1] {
        pack.nodes[node].access(at(30), Write, true, &mut out);
        let commands = std::mem::take(&mut out);
        pack.takes(node, commands);
    }
    pack.deliver();
    for node in [0, 1] {
        pack.nodes[node].goes_on(at(30), &mut out);
        let commands = std::mem::take(&mut out);
        pack.takes(node, commands);
        pack.deliver();
    }
    assert_eq!(pack.nodes[0].group_size(at(0)), 8);
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn a_freed_group_is_one_only_if_it_is_allocated_as_one_again() {
    let mut pack = Pack::new(3);
    let run = pack.nodes[0].allocate_in_groups(4, 256, 8).unwrap();
    let at = |index| run.minipage(index).unwrap().at;
    // A single one that was freed is one of its group again, whatever it is allocated as.
    pack.run(2, at(1), Free);
    assert_eq!(pack.run(1, at(0), Read).len(), 3, "its neighbour is gone");
    let one = pack.nodes[0].allocate_in_groups(1, 256, 8).unwrap();
    assert_eq!((one.at, pack.nodes[0].group_size(at(0))), (at(1), 2));
    assert_eq!(pack.run(2, at(0), Read).len(), 5);
    (0..4).for_each(|index| _ = pack.run(2, at(index), Free));
    assert_eq!(pack.nodes[0].allocate(4, 256, 8), Ok(run));
    assert_eq!(pack.nodes[0].group_size(at(0)), 1);
    assert_eq!(pack.run(1, at(0), Read).len(), 3);
    (0..4).for_each(|index| _ = pack.run(2, at(index), Free));
    assert_eq!(pack.nodes[0].allocate_in_groups(4, 256, 8), Ok(run));
    assert_eq!(pack.nodes[0].group_size(at(0)), 2);
    assert_eq!(pack.run(1, at(0), Read).len(), 5);
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn a_leader_has_what_is_brought_and_lends_it_to_nodes_of_its_domain() {
    let mut pack = Pack::in_domains(&[0, 0, 2, 2]);
    let run = pack.nodes[0].allocate_in_groups(4, 256, 8).unwrap();
    let at = |index| run.minipage(index).unwrap().at;
    let both = [
        (3, 2, Request),
        (2, 0, Request),
        (0, 2, Data),
        (0, 2, Data),
        (2, 3, Grant),
        (2, 0, Ack),
        (2, 0, Ack),
        (3, 2, Ack),
    ];
    assert_eq!(pack.run(3, at(0), Read), both);
    assert_eq!(pack.run(2, at(1), Read), [], "the leader has it");
    let lent = [(3, 2, Request), (2, 3, Grant), (3, 2, Ack)];
    assert_eq!(pack.run(3, at(1), Read), lent);
    // The neighbour is taken away from the domain for a node that did not ask for it.
    let withdrawn = [
        (0, 2, Invalidate),
        (0, 2, Invalidate),
        (2, 3, Invalidate),
        (2, 3, Invalidate),
        (3, 2, Invalidated),
        (3, 2, Invalidated),
        (2, 0, Invalidated),
        (2, 0, Invalidated),
    ];
    assert_eq!(pack.run(0, at(0), Write), withdrawn);
    assert_eq!(pack.run(0, at(1), Write), []);
    assert_eq!(pack.nodes[0].copies_at_rest(at(1)), Some(vec![NodeId(0)]));
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn what_is_lent_is_withdrawn_before_it_is_brought_to_another_domain() {
    for (operation, withdraws) in [(Read, false), (Write, true)] {
        let mut pack = Pack::in_domains(&[0, 0, 2, 2]);
        let run = pack.nodes[1].allocate_in_groups(4, 256, 8).unwrap();
        let at = |index| run.minipage(index).unwrap().at;
        // Domain 2 has the only copies of rows 1 and 2, and both its nodes read them.
        pack.run(2, at(1), Write);
        for index in [1, 2] {
            let lent = [(3, 2, Request), (2, 3, Grant), (3, 2, Ack)];
            assert_eq!(pack.run(3, at(index), Read), lent);
        }
        // Row 1 is brought to node 0, which uses row 0, as its manager says: node 1.
        let mut expected = vec![(0, 1, Request), (1, 0, Grant), (0, 1, Ack)];
        expected.extend([(1, 2, Forward), (2, 0, Data), (0, 1, Ack)]);
        if withdraws {
            expected.extend([(2, 3, Invalidate), (3, 2, Invalidated)]);
        }
        let mut sent = pack.run(0, at(0), operation);
        sent.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sent, expected);
        assert_eq!(pack.run(0, at(1), operation), []);
        let again = pack.run(3, at(1), Read);
        assert_eq!(again.is_empty(), !withdraws, "{again:?}");
        assert!(pack.nodes.iter().all(Millipage::is_at_rest));
    }
}

#[test]
fn in_a_run_of_one_domain_nothing_is_brought() {
    let of = |in_groups: bool| {
        let mut pack = Pack::in_domains(&[0, 0, 0]);
        let mut sent = Vec::new();
        for manager in [0, 1] {
            let node = &mut pack.nodes[manager];
            let run = match in_groups {
                true => node.allocate_in_groups(8, 256, 8).unwrap(),
                false => node.allocate(8, 256, 8).unwrap(),
            };
            for (node, operation) in [(2, Read), (1, Write), (0, Read)] {
                for index in 0..8 {
                    let at = run.minipage(index).unwrap().at;
                    sent.extend(pack.run(node, at, operation));
                }
            }
        }
        assert!(pack.nodes.iter().all(Millipage::is_at_rest));
        sent
    };
    assert_eq!(of(true), of(false));
}

#[test]
fn no_node_asks_to_bring_and_none_brings_what_is_there() {
    let mut pack = Pack::new(3);
    let run = pack.nodes[0].allocate_in_groups(4, 256, 8).unwrap();
    let minipage = run.minipage(1).unwrap();
    assert_eq!(pack.run(1, run.at, Read).len(), 5);
    let message = |kind, operation, asker, minipage| MemoryMessage {
        kind,
        operation,
        asker: NodeId(asker),
        number: 1,
        ticket: 0,
        address: run.minipage(1).unwrap().at,
        minipage,
    };
    let none = Minipage { at: 0, bytes: 0 };
    let refused = |node: &Millipage, from, message: MemoryMessage| {
        let (mut after, mut out) = (node.clone(), Vec::new());
        let payload = message.payload_bytes() as usize;
        let taken = after.deliver(NodeId(from), message, payload, &mut out);
        let is_bad = taken.is_err();
        assert!(is_bad, "{message:?}: {taken:?}");
        assert_eq!((after == *node, out), (true, Vec::new()));
    };
    for operation in [Bring, BringToWrite] {
        let asks = message(Request, operation, 2, none);
        refused(&pack.nodes[0], 2, asks);
        let there = message(Data, operation, 1, minipage);
        refused(&pack.nodes[1], 2, there);
        let other = message(Data, operation, 0, minipage);
        refused(&pack.nodes[2], 1, other);
        // Only the manager makes a copy the only one.
        let grant = message(Grant, operation, 1, minipage);
        refused(&pack.nodes[1], 2, grant);
    }
    // A leader asks for what nodes of its domain need, and no bytes come to those.
    let mut pack = Pack::in_domains(&[0, 0, 2]);
    assert_eq!(pack.nodes[0].allocate_in_groups(4, 256, 8), Ok(run));
    pack.run(1, minipage.at, Read);
    for operation in [Bring, BringToWrite] {
        refused(&pack.nodes[0], 1, message(Request, operation, 1, none));
        refused(&pack.nodes[1], 0, message(Data, operation, 1, minipage));
        refused(&pack.nodes[1], 0, message(Grant, operation, 1, minipage));
    }
}

#[test]
fn a_round_takes_the_messages_of_its_reads_and_opens_nothing_itself() {
    let mut pack = Pack::new(2);
    let run = pack.nodes[0].allocate(4, 256, 8).unwrap();
    let at = |index| run.minipage(index).unwrap().at;
    assert_eq!(pack.run(1, at(0), Read).len(), 3);
    pack.permitted.clear();
    let mut out = Vec::new();
    for index in 0..4 {
        let expected = match index {
            0 => Accessed::Permitted,
            _ => Accessed::Asked,
        };
        assert_eq!(pack.nodes[1].fetch(at(index), 256, &mut out), expected);
    }
    pack.log.clear();
    pack.takes(1, out);
    pack.deliver();
    let kinds = |of: MemoryKind| pack.log.iter().filter(|(_, _, kind)| *kind == of).count();
    assert_eq!([Request, Data, Ack].map(kinds), [3, 3, 3]);
    // Node 0 goes on to read, and node 1 has yet to open what came.
    assert!(pack.permitted.iter().all(|(node, _)| *node == 0));
    for index in 1..4 {
        let came = pack.nodes[1]
            .came(at(index))
            .map(|(_, permission)| permission);
        assert_eq!(came, Some(Permission::Read));
        assert_eq!(pack.nodes[1].state(at(index)), RequestState::Over);
    }
    // One that was taken away has not come.
    assert_eq!(pack.run(0, at(2), Write).len(), 2);
    assert_eq!(pack.nodes[1].came(at(2)), None);
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

/// Counts what is dropped.
#[derive(Default)]
struct Drops(u64);

impl PartEffects<Millipage> for Drops {
    fn send(&mut self, _: NodeId, _: MemoryMessage) {}

    fn act(&mut self, _: MemoryAct) {}

    fn over(&mut self, _: u64) {}

    fn happens(&mut self, event: MemoryEvent) {
        self.0 += u64::from(event == MemoryEvent::Dropped);
    }
}

#[test]
fn prefetches_are_limited_by_their_bytes_and_counted_where_they_are_dropped() {
    let mut pack = Pack::new(2);
    let bytes = MOST_PREFETCH_BYTES as u32;
    let mut drops = Drops::default();
    // One may have as many bytes as there are, and then no other.
    let one = |page: u64| page << 12;
    let node = &mut pack.nodes[1];
    assert_eq!(node.prefetch(one(0), bytes, &mut drops), Accessed::Asked);
    assert_eq!(node.prefetch(one(1), 1, &mut drops), Accessed::Dropped);
    assert_eq!(node.fetch(one(1), 1, &mut drops), Accessed::Dropped);
    // The thread of a round asks again, so its request is not lost.
    assert_eq!(drops.0, 1);
    // A thread that joins it waits for it alone.
    assert_eq!(
        node.access(one(0), Read, true, &mut drops),
        Accessed::Joined
    );
    let half = bytes / 2;
    assert_eq!(node.prefetch(one(1), half, &mut drops), Accessed::Asked);
    assert_eq!(node.prefetch(one(2), half, &mut drops), Accessed::Asked);
    assert_eq!(node.prefetch(one(3), 1, &mut drops), Accessed::Dropped);
    assert_eq!(drops.0, 2);
}

#[test]
fn prefetches_are_limited_joined_and_acknowledged_without_a_thread() {
    let mut pack = Pack::new(2);
    let count = MOST_PREFETCHES as u64 + 2;
    let run = pack.nodes[0].allocate(count, 4096, 8).unwrap();
    let at = |index| run.minipage(index).unwrap().at;
    let mut out = Vec::new();
    for index in 0..count {
        let accessed = pack.nodes[1].access(at(index), Read, false, &mut out);
        let dropped = index >= MOST_PREFETCHES as u64;
        let expected = if dropped {
            Accessed::Dropped
        } else {
            Accessed::Asked
        };
        assert_eq!(accessed, expected);
    }
    assert_eq!(
        pack.nodes[1].access(at(0), Write, true, &mut out),
        Accessed::Joined
    );
    assert_eq!(out.len(), MOST_PREFETCHES);
    pack.takes(1, out);
    pack.deliver();
    assert_eq!(pack.nodes[1].state(at(0)), RequestState::Over);
    assert_eq!(pack.run(1, at(1), Read), [], "it has come");
    // The thread that joined acknowledges, and asks once more for what it needs.
    let written = pack.run(1, at(0), Write);
    assert_eq!(
        written,
        [(1, 0, Ack), (1, 0, Request), (0, 1, Grant), (1, 0, Ack)]
    );
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn a_minipage_of_several_pages_is_one() {
    let mut pack = Pack::new(2);
    let at = pack.nodes[0].allocate(1, 10_000, 8).unwrap().at;
    assert_eq!(pack.run(1, at + 9_999, Write).len(), 3);
    for place in [0, 4095, 4096, 8192, 12_287] {
        assert_eq!(pack.run(1, at + place, Write), []);
    }
}

/// What no sound node says, at a node that manages a minipage of which another one has a copy, and
/// has asked for one of the other's.
#[test]
fn false_messages_are_refused_and_change_nothing() {
    let mut pack = Pack::new(3);
    let (own, theirs) = (pack.allocate(0), pack.allocate(1));
    pack.run(1, own.at, Read);
    let mut out = Vec::new();
    pack.nodes[0].access(theirs.at, Read, true, &mut out);
    let [MemoryEffect::Send { message: asked, .. }] = out[..] else {
        panic!("{out:?}")
    };
    let minipages = [
        Minipage { at: 0, bytes: 0 },
        Minipage {
            at: own.at,
            bytes: 256,
        },
        Minipage {
            at: own.at,
            bytes: 255,
        },
        Minipage {
            at: own.at + 8,
            bytes: 256,
        },
        Minipage {
            at: theirs.at,
            bytes: 256,
        },
        Minipage {
            at: theirs.at,
            bytes: u32::MAX,
        },
        Minipage {
            at: theirs.at - 8,
            bytes: 256,
        },
        Minipage {
            at: u64::MAX,
            bytes: 256,
        },
    ];
    let (mut taken, mut refused) = (Vec::new(), 0);
    for kind in MemoryKind::ALL {
        for operation in [Read, Write, Push, Free, Bring, BringToWrite] {
            for (asker, from) in [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (9, 1)] {
                for minipage in minipages {
                    for (address, ticket) in [
                        (own.at, 1),
                        (theirs.at, asked.ticket),
                        (theirs.at, 77),
                        (u64::MAX, 1),
                    ] {
                        for payload in [0, 256] {
                            let message = MemoryMessage {
                                kind,
                                operation,
                                asker: NodeId(asker),
                                number: 1,
                                ticket,
                                address,
                                minipage,
                            };
                            let before = pack.nodes[0].clone();
                            let mut node = before.clone();
                            let mut out = Vec::new();
                            match node.deliver(NodeId(from), message, payload, &mut out) {
                                Ok(()) => taken.push((from, message)),
                                Err(_) => {
                                    assert_eq!((node == before, out.len()), (true, 0));
                                    refused += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    // What a sound node may say here: that it asks, the answer to what was asked, a push, and what
    // the manager has another node bring.
    for (from, message) in &taken {
        let is_answer = message.address == theirs.at && message.ticket == asked.ticket;
        let sound = match message.kind {
            Request => message.asker.index() == usize::from(*from),
            Data if message.operation == Push => message.asker.index() == usize::from(*from),
            Data if matches!(message.operation, Bring | BringToWrite) => {
                (message.asker, message.minipage.at) == (NodeId(0), theirs.at)
            }
            Data | Gone => is_answer && message.operation == Read,
            _ => false,
        };
        assert!(sound, "{from}: {message:?}");
    }
    assert!(
        refused > 10 * taken.len(),
        "{refused} refused, {} taken",
        taken.len()
    );
}

/// How often a manager looked something up and found an operation under way.
#[derive(Default)]
struct Counted {
    translated: usize,
    competes: usize,
}

impl PartEffects<Millipage> for Counted {
    fn send(&mut self, _: NodeId, _: MemoryMessage) {}

    fn act(&mut self, _: MemoryAct) {}

    fn over(&mut self, _: u64) {}

    fn happens(&mut self, event: MemoryEvent) {
        match event {
            MemoryEvent::Translated => self.translated += 1,
            MemoryEvent::Dropped | MemoryEvent::Flushes => {}
            MemoryEvent::Competes => self.competes += 1,
        }
    }
}

#[test]
fn a_request_competes_if_another_operation_on_its_minipage_is_under_way() {
    let mut nodes = [0, 1, 2].map(|me| Millipage::new(NodeId(me), 3, 1 << 30, 16));
    let run = nodes[0].allocate(2, 64, 8).unwrap();
    let second = run.minipage(1).unwrap().at;
    let mut asks = |node: usize, address| {
        let mut out = Vec::new();
        nodes[node].access(address, Read, true, &mut out);
        let Some(MemoryEffect::Send { message, .. }) = out.pop() else {
            panic!("it asks")
        };
        message
    };
    let requests = [
        (1, asks(1, run.at)),
        (2, asks(2, run.at)),
        (2, asks(2, second)),
    ];
    let mut out = Counted::default();
    let mut seen = Vec::new();
    for (from, request) in requests {
        let from = NodeId::at(from);
        nodes[0].deliver(from, request, 0, &mut out).unwrap();
        seen.push((out.translated, out.competes));
    }
    assert_eq!(seen, [(1, 0), (2, 1), (3, 1)]);
}

/// A manager that lies gives a node two minipages with bytes in common, seen through two views: one
/// of them may be held.
#[test]
fn minipages_that_overlap_are_refused() {
    let (manager, reader) = (NodeId(0), NodeId(1));
    let mut node = Millipage::new(reader, 2, 1 << 20, 4);
    let mut out = Vec::new();
    for (view, offset, refused) in [
        (0, 64, false),
        (1, 100, true),
        (2, 129, false),
        (3, 3, true),
    ] {
        let at = (view << VIEW_BITS) | offset;
        out.clear();
        node.access(at, MemoryOperation::Read, true, &mut out);
        let Some(MemoryEffect::Send { message, .. }) = out.pop() else {
            panic!("it asks");
        };
        let message = MemoryMessage {
            kind: Data,
            number: 1,
            minipage: Minipage {
                at,
                bytes: 65 - view as u32,
            },
            ..message
        };
        let payload = message.payload_bytes() as usize;
        let taken = node.deliver(manager, message, payload, &mut out);
        assert_eq!(taken.is_err(), refused, "{view}");
        node.goes_on(at, &mut out);
    }
}

#[test]
fn nothing_is_done_for_a_node_that_is_not_in_the_run() {
    let (mut node, mut out) = (Millipage::new(NodeId(0), 2, 1 << 20, 4), Vec::new());
    let at = node.allocate(1, 256, 8).expect("room").at;
    for asker in [2, 1] {
        let request = MemoryMessage {
            kind: Request,
            operation: Read,
            asker: NodeId(asker),
            number: 0,
            ticket: 1,
            address: at,
            minipage: Minipage { at: 0, bytes: 0 },
        };
        let taken = node.deliver(NodeId(1), request, 0, &mut out);
        assert_eq!(taken.is_err(), asker == 2);
        assert_eq!(out.is_empty(), asker == 2);
    }
}
