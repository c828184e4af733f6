//! Minipages that nodes write together: which messages a write and a flush take, and what is
//! refused.

use dhole_model::NodeId;
use dhole_protocol::memory::{
    HoldRefusal, MemoryAct, MemoryEffect, MemoryFlush, MemoryKind, MemoryMessage, MemoryOperation,
    Millipage, Minipage, Permission,
};
use dhole_protocol::part::NodePart as _;

use MemoryKind::{
    Ack, Data, Diff, Dropped, Forward, Grant, Invalidate, Invalidated, Merged, Request,
};
use MemoryOperation::{Flush, Free, Read, Write, WriteTogether};

use super::Pack;

type Log = Vec<(usize, usize, MemoryKind)>;

/// Nodes, and the address of a release consistent minipage that node 0 manages.
fn released(nodes: usize) -> (Pack, u64) {
    let mut pack = Pack::new(nodes);
    pack.nodes[0].allocate_released(true);
    let at = pack.allocate(0).at;
    pack.nodes[0].allocate_released(false);
    (pack, at)
}

impl Pack {
    fn begins_flush(&mut self, node: usize) -> (bool, MemoryFlush) {
        let (mut flush, mut out) = (MemoryFlush::default(), Vec::new());
        let is_over = self.nodes[node].flush(&mut flush, &mut out);
        self.takes(node, out);
        (is_over, flush)
    }

    fn goes_on_with(&mut self, node: usize, flush: &mut MemoryFlush) -> bool {
        let mut out = Vec::new();
        let is_over = self.nodes[node].flush(flush, &mut out);
        self.takes(node, out);
        is_over
    }

    /// A flush until nothing is left to wait for; the messages for it.
    fn flush(&mut self, node: usize) -> Log {
        self.log.clear();
        let (mut is_over, mut flush) = self.begins_flush(node);
        self.deliver();
        is_over |= self.goes_on_with(node, &mut flush);
        assert!(is_over);
        std::mem::take(&mut self.log)
    }
}

#[test]
fn each_write_and_each_flush_takes_the_messages_that_it_must() {
    let (mut pack, at) = released(5);
    // Nobody else has a copy: it is written alone, and needs no flush.
    assert_eq!(pack.run(0, at, Write), []);
    assert_eq!(pack.flush(0), []);
    pack.permitted.clear();
    let together = [(1, 0, Request), (0, 1, Data), (1, 0, Ack)];
    assert_eq!(pack.run(1, at, Write), together);
    let last = [
        (0, Permission::Read),
        (1, Permission::Write),
        (1, Permission::Write),
    ];
    assert_eq!(pack.permitted, last);
    let apart = [(2, 0, Request), (0, 2, Data), (2, 0, Ack)];
    assert_eq!(
        pack.run(2, at, Write),
        apart,
        "the manager has a copy still"
    );
    assert_eq!(pack.run(0, at, Write), [], "the manager writes beside them");
    assert_eq!(pack.run(3, at, Read).len(), 3);
    let upgrade = [(3, 0, Request), (0, 3, Grant), (3, 0, Ack)];
    assert_eq!(pack.run(3, at, Write), upgrade, "takes no copy away");
    assert_eq!(pack.run(4, at, Read).len(), 3);
    // Nodes 0 to 3 write together, and node 4 reads. The manager is one of them.
    let flushed = [
        (1, 0, Request),
        (0, 2, Invalidate),
        (0, 3, Invalidate),
        (0, 4, Invalidate),
        (0, 1, Diff),
        (2, 1, Diff),
        (3, 1, Diff),
        (4, 0, Invalidated),
        (1, 0, Merged),
        (1, 0, Merged),
        (1, 0, Merged),
        (0, 1, Grant),
        (1, 0, Ack),
    ];
    assert_eq!(pack.flush(1), flushed);
    assert_eq!(pack.run(1, at, Write), [], "it writes alone");
    assert_eq!(pack.flush(1), [], "and has flushed");
    // The writes of another one are there, and its flush comes to nothing.
    assert_eq!(pack.flush(2), [(2, 0, Request), (0, 2, Dropped)]);
    assert_eq!(pack.flush(2), []);
    assert_eq!(pack.flush(0), [], "the manager asks itself");
    let missed = [(2, 0, Request), (0, 1, Forward), (1, 2, Data), (2, 0, Ack)];
    assert_eq!(pack.run(2, at, Read), missed);
    // Manager, the node that flushes and one that writes too are three: 3 and 3 for each such.
    assert_eq!(pack.run(2, at, Write).len(), 3);
    assert_eq!(pack.run(1, at, Write).len(), 3);
    let three = [
        (2, 0, Request),
        (0, 1, Invalidate),
        (1, 2, Diff),
        (2, 0, Merged),
        (0, 2, Grant),
        (2, 0, Ack),
    ];
    assert_eq!(pack.flush(2), three);
    assert_eq!(pack.flush(1).len(), 2);
    assert_eq!(pack.flush(3).len(), 2);
    assert_eq!(pack.nodes[0].copies_at_rest(at), Some(vec![NodeId(2)]));
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn of_two_flushes_at_once_one_comes_to_nothing() {
    let (mut pack, at) = released(3);
    for node in [1, 2] {
        pack.run(node, at, Write);
    }
    pack.log.clear();
    let (first, mut one) = pack.begins_flush(1);
    let (second, mut two) = pack.begins_flush(2);
    assert_eq!((first, second), (false, false));
    // Another thread of the node waits for what the first has begun.
    let (third, mut other) = pack.begins_flush(1);
    assert!(!third);
    pack.deliver();
    assert!(pack.goes_on_with(1, &mut one));
    assert!(pack.goes_on_with(1, &mut other));
    assert!(pack.goes_on_with(2, &mut two));
    let kinds: Vec<_> = pack.log.iter().map(|(_, _, kind)| *kind).collect();
    let dropped = kinds.iter().position(|kind| *kind == Dropped);
    let granted = kinds.iter().position(|kind| *kind == Grant);
    assert!(
        granted < dropped,
        "the second waits until the first is over: {kinds:?}"
    );
    assert_eq!(kinds.iter().filter(|kind| **kind == Diff).count(), 1);
    assert_eq!(pack.nodes[0].copies_at_rest(at), Some(vec![NodeId(1)]));
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn a_twin_is_made_before_a_node_may_write_and_compared_after() {
    let (mut pack, at) = released(2);
    let mut out = Vec::new();
    pack.nodes[1].access(at, Write, true, &mut out);
    pack.takes(1, std::mem::take(&mut out));
    let (_, _, request) = pack.sent.pop_front().expect("a request");
    pack.nodes[0]
        .deliver(NodeId(1), request, 0, &mut out)
        .unwrap();
    let Some(MemoryEffect::Send { message, .. }) = out.pop() else {
        panic!("{out:?}");
    };
    assert_eq!(message.operation, WriteTogether);
    out.clear();
    pack.nodes[1]
        .deliver(NodeId(0), message, 256, &mut out)
        .unwrap();
    let minipage = message.minipage;
    let permission = Permission::Write;
    let permits = MemoryEffect::Act(MemoryAct::Permit {
        minipage,
        permission,
    });
    let expected = [
        MemoryEffect::Act(MemoryAct::Install(minipage)),
        MemoryEffect::Act(MemoryAct::Owes),
        MemoryEffect::Act(MemoryAct::Twin(minipage)),
        permits,
    ];
    assert_eq!(out[..4], expected);
    out.clear();
    pack.nodes[1].goes_on(at, &mut out);
    pack.takes(1, std::mem::take(&mut out));
    pack.deliver();
    // The other one writes its copy too. It has been made to read.
    pack.run(0, at, Write);
    let (_, mut flush) = pack.begins_flush(0);
    let (_, _, message) = pack.sent.pop_front().expect("its copy is taken away");
    pack.nodes[1]
        .deliver(NodeId(0), message, 0, &mut out)
        .unwrap();
    let permission = Permission::Nothing;
    let permits = MemoryEffect::Act(MemoryAct::Permit {
        minipage,
        permission,
    });
    assert_eq!(out[0], permits);
    let sends_diff = |it: &MemoryEffect| match it {
        MemoryEffect::Send { to, message } => (to.0, message.kind) == (0, MemoryKind::Diff),
        _ => false,
    };
    assert!(sends_diff(&out[1]));
    pack.takes(1, std::mem::take(&mut out));
    let (_, _, diff) = pack.sent.pop_front().expect("a diff");
    pack.nodes[0].deliver(NodeId(1), diff, 0, &mut out).unwrap();
    assert_eq!(out[0], MemoryEffect::Act(MemoryAct::MergeDiff(minipage)));
    assert!(out.contains(&MemoryEffect::Act(MemoryAct::DropTwin(minipage))));
    out.clear();
    assert!(pack.nodes[0].flush(&mut flush, &mut out));
}

#[test]
fn what_a_thread_holds_is_flushed_when_it_does_not_any_more() {
    let (mut pack, at) = released(3);
    for node in [1, 2] {
        pack.run(node, at, Write);
    }
    pack.nodes[1].hold(at, true).unwrap();
    let (is_over, mut flush) = pack.begins_flush(1);
    assert_eq!((is_over, pack.sent.len()), (false, 0));
    let mut out = Vec::new();
    pack.nodes[1].release(at, true, &mut out).unwrap();
    assert_eq!(out, [MemoryEffect::Over(at)]);
    assert!(!pack.goes_on_with(1, &mut flush));
    assert_eq!(pack.sent.len(), 1);
    // Nor is it held while what others wrote is merged.
    assert_eq!(pack.nodes[1].hold(at, true), Err(HoldRefusal::Flushes));
    // One that is to lose its copy does when it does not hold it any more.
    pack.nodes[2].hold(at, true).unwrap();
    pack.deliver();
    assert!(!pack.goes_on_with(1, &mut flush));
    out.clear();
    pack.nodes[2].release(at, true, &mut out).unwrap();
    pack.takes(2, out);
    pack.deliver();
    assert!(pack.goes_on_with(1, &mut flush));
    pack.nodes[1].hold(at, true).unwrap();
}

#[test]
fn writes_of_a_freed_minipage_are_forgotten() {
    let (mut pack, at) = released(3);
    for node in [1, 2] {
        pack.run(node, at, Write);
    }
    let freed = pack.run(1, at, Free);
    let diffs = freed.iter().filter(|(_, _, kind)| *kind == Diff);
    assert_eq!(diffs.count(), 0, "{freed:?}");
    for node in [1, 2] {
        assert_eq!(pack.flush(node), [(node, 0, Request), (0, node, Dropped)]);
    }
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
    // It is allocated again for what is released, and for nothing else.
    assert_ne!(pack.allocate(0).at, at);
    pack.nodes[0].allocate_released(true);
    assert_eq!(pack.allocate(0).at, at);
    assert_eq!(pack.run(2, at, Write).len(), 3);
    assert_eq!(pack.flush(2).len(), 3, "the manager loses its own copy");
}

#[test]
fn what_is_brought_to_a_node_that_writes_is_to_be_read() {
    let mut pack = Pack::new(3);
    pack.nodes[0].allocate_released(true);
    let run = pack.nodes[0].allocate_in_groups(4, 256, 8).unwrap();
    let second = run.minipage(1).unwrap().at;
    let written = pack.run(1, run.at, Write);
    assert_eq!(
        written.iter().filter(|(_, _, kind)| *kind == Data).count(),
        2
    );
    assert_eq!(pack.run(1, second, Read), []);
    assert_eq!(
        pack.run(1, second, Write).len(),
        3,
        "and nobody has lost it"
    );
    assert_eq!(pack.run(0, second, Read), []);
}

/// Domains of nodes 0 and 1, and of 2 and 3, and the address of a release consistent minipage that
/// node 2 manages. All have written it.
fn domains() -> (Pack, u64) {
    let mut pack = Pack::in_domains(&[0, 0, 2, 2]);
    pack.nodes[2].allocate_released(true);
    let at = pack.allocate(2).at;
    let together = [(0, 2, Request), (2, 0, Data), (0, 2, Ack)];
    assert_eq!(pack.run(0, at, Write), together);
    let lent = [(1, 0, Request), (0, 1, Grant), (1, 0, Ack)];
    assert_eq!(pack.run(1, at, Write), lent);
    assert_eq!(pack.run(2, at, Write), [], "it writes beside them");
    let lent = [(3, 2, Request), (2, 3, Grant), (3, 2, Ack)];
    assert_eq!(pack.run(3, at, Write), lent);
    (pack, at)
}

#[test]
fn a_node_of_a_domain_asks_its_leader_to_flush_what_the_domain_wrote() {
    let (mut pack, at) = domains();
    // What the other domain was lent is withdrawn before its diff is made.
    let flushed = [
        (1, 0, Request),
        (0, 2, Request),
        (2, 3, Invalidate),
        (3, 2, Invalidated),
        (2, 0, Diff),
        (0, 2, Merged),
        (2, 0, Grant),
        (0, 2, Ack),
        (0, 1, Dropped),
    ];
    assert_eq!(pack.flush(1), flushed);
    for node in [0, 1] {
        assert_eq!(pack.run(node, at, Write), [], "the domain writes alone");
        assert_eq!(pack.flush(node), [], "and has flushed");
    }
    assert_eq!(pack.flush(3), [(3, 2, Request), (2, 3, Dropped)]);
    assert_eq!(pack.flush(2), [], "and so has its leader");
    // A domain that reads leaves both of this one to write beside it, each when it asks again.
    let read = [
        (3, 2, Request),
        (2, 0, Forward),
        (0, 1, Invalidate),
        (1, 0, Invalidated),
        (0, 2, Data),
        (2, 3, Grant),
        (3, 2, Ack),
    ];
    assert_eq!(pack.run(3, at, Read), read);
    let upgraded = [
        (1, 0, Request),
        (0, 2, Request),
        (2, 0, Grant),
        (0, 1, Grant),
        (0, 2, Ack),
        (1, 0, Ack),
    ];
    assert_eq!(pack.run(1, at, Write), upgraded);
    assert_eq!(pack.run(0, at, Write), [], "its leader may, too");
    // The other domain reads, and has written nothing.
    let flushed = [
        (1, 0, Request),
        (0, 2, Request),
        (2, 3, Invalidate),
        (3, 2, Invalidated),
        (2, 0, Grant),
        (0, 2, Ack),
        (0, 1, Dropped),
    ];
    assert_eq!(pack.flush(1), flushed);
    assert!(pack.nodes.iter().all(Millipage::is_at_rest));
}

#[test]
fn a_leader_withdraws_what_it_lent_before_it_flushes() {
    let (mut pack, at) = domains();
    // A node that is led holds it, and has not asked for a flush.
    pack.nodes[1].hold(at, true).unwrap();
    pack.log.clear();
    let (_, mut flush) = pack.begins_flush(0);
    pack.deliver();
    assert_eq!(pack.log, [(0, 1, Invalidate)]);
    assert_eq!(flush.first(), Some(at), "it is held");
    let mut out = Vec::new();
    pack.nodes[1].release(at, true, &mut out).unwrap();
    pack.takes(1, out);
    pack.deliver();
    assert_eq!(pack.log[1..], [(1, 0, Invalidated)]);
    assert!(!pack.goes_on_with(0, &mut flush));
    assert_eq!(flush.first(), Some(at), "it is under way");
    // Nothing is lent until the flush is over.
    let mut out = Vec::new();
    pack.nodes[1].access(at, Write, true, &mut out);
    pack.takes(1, out);
    pack.deliver();
    let flushed = [
        (0, 2, Request),
        (1, 0, Request),
        (2, 3, Invalidate),
        (3, 2, Invalidated),
        (2, 0, Diff),
        (0, 2, Merged),
        (2, 0, Grant),
        (0, 2, Ack),
        (0, 1, Grant),
    ];
    assert_eq!(pack.log[2..], flushed);
    assert!(pack.goes_on_with(0, &mut flush));
    assert_eq!(flush.first(), None);
    assert!(pack.nodes[1].hold(at, true).is_ok());
}

#[test]
fn a_node_that_waits_for_its_leader_s_flush_holds_nothing_and_goes_on_writing() {
    let (mut pack, at) = domains();
    let (_, mut flush) = pack.begins_flush(1);
    assert_eq!(pack.nodes[1].hold(at, true), Err(HoldRefusal::Flushes));
    pack.permitted.clear();
    pack.deliver();
    let own = pack.permitted.iter().filter(|(node, _)| *node < 2);
    assert_eq!(own.count(), 0, "{:?}", pack.permitted);
    assert!(pack.goes_on_with(1, &mut flush));
    assert!(pack.nodes[1].hold(at, true).is_ok());
}

#[test]
fn what_no_sound_node_says_of_flushes_is_refused() {
    let (mut pack, at) = released(4);
    for node in [1, 2] {
        pack.run(node, at, Write);
    }
    let minipage = Minipage { at, bytes: 256 };
    let message = |kind, operation, asker, number, ticket| MemoryMessage {
        kind,
        operation,
        asker: NodeId(asker),
        number,
        ticket,
        address: at,
        minipage,
    };
    let refused = |node: &Millipage, from, message: MemoryMessage| {
        let (mut after, mut out) = (node.clone(), Vec::new());
        let payload = message.payload_bytes() as usize;
        let taken = after.deliver(NodeId(from), message, payload, &mut out);
        let is_bad = taken.is_err();
        assert!(is_bad, "{message:?}: {taken:?}");
        assert_eq!((after == *node, out), (true, Vec::new()));
    };
    // Nobody asks to write together, and no copy goes away but by a flush.
    refused(&pack.nodes[0], 3, message(Request, WriteTogether, 3, 0, 9));
    refused(&pack.nodes[1], 0, message(Invalidate, Write, 3, 9, 9));
    refused(&pack.nodes[1], 0, message(Forward, Write, 3, 9, 9));
    refused(&pack.nodes[1], 0, message(Forward, Flush, 3, 9, 9));
    // No diff is awaited.
    refused(&pack.nodes[1], 2, message(Diff, Flush, 1, 3, 2));
    refused(&pack.nodes[0], 1, message(Merged, Flush, 1, 3, 2));
    refused(&pack.nodes[1], 0, message(Grant, Flush, 1, 3, 2));
    refused(&pack.nodes[1], 0, message(Dropped, Flush, 1, 3, 2));
    // The first flush begins, and the copies are on their way out.
    let (_, mut flush) = pack.begins_flush(1);
    let (_, _, asks) = pack.sent.pop_front().expect("a request");
    let mut out = Vec::new();
    pack.nodes[0].deliver(NodeId(1), asks, 0, &mut out).unwrap();
    let taken = out.iter().find_map(|command| match command {
        MemoryEffect::Send {
            to: NodeId(2),
            message,
        } => Some(*message),
        _ => None,
    });
    let taken = taken.expect("node 2 loses its copy");
    // One that writes owes its diff, and no answer to the manager.
    let kind = Invalidated;
    refused(&pack.nodes[0], 2, MemoryMessage { kind, ..taken });
    let kind = Merged;
    for (from, ticket) in [(1, 3), (1, 1), (2, 2), (1, 1 << 20)] {
        refused(
            &pack.nodes[0],
            from,
            MemoryMessage {
                kind,
                ticket,
                ..taken
            },
        );
    }
    let diff = MemoryMessage {
        kind: Diff,
        ..taken
    };
    let other = |ticket| MemoryMessage { ticket, ..diff };
    refused(&pack.nodes[1], 2, other(taken.ticket + 1));
    refused(&pack.nodes[1], 1, diff);
    refused(&pack.nodes[2], 1, diff);
    let asker = NodeId(3);
    refused(&pack.nodes[1], 2, MemoryMessage { asker, ..diff });
    let elsewhere = Minipage {
        at: at + 8,
        bytes: 0,
    };
    let minipage = elsewhere;
    refused(&pack.nodes[1], 2, MemoryMessage { minipage, ..diff });
    // The true ones are taken, and each only once.
    pack.takes(0, out);
    let mut out = Vec::new();
    pack.nodes[1]
        .deliver(NodeId(2), diff, 256, &mut out)
        .unwrap();
    refused(&pack.nodes[1], 2, diff);
    pack.takes(1, out);
    assert!(!pack.goes_on_with(1, &mut flush));
}

#[test]
fn one_manager_is_told_what_nodes_may_write_together() {
    let mut pack = Pack::new(3);
    let nodes = std::mem::take(&mut pack.nodes);
    pack.nodes = nodes
        .into_iter()
        .map(|it| it.with_managers(&[NodeId(0)]))
        .collect();
    for releases in [true, false, true] {
        let mut out = Vec::new();
        pack.nodes[1].allocate_released(releases);
        let ticket = pack.nodes[1].ask_to_allocate((1, 256, 8), false, &mut out);
        pack.takes(1, out);
        pack.deliver();
        let run = pack.nodes[1].allocated(ticket.unwrap());
        let at = run.expect("an answer").expect("there is room").at;
        let together = pack.run(1, at, Write);
        assert_eq!(together.len(), 3);
        assert_eq!(pack.flush(1).len(), if releases { 3 } else { 0 });
        pack.nodes[1].allocate_released(false);
    }
}
