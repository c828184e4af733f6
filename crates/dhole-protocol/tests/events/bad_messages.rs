//! Messages that no node of a sound cluster sends: sound ones with one thing wrong. A protocol
//! refuses them without a trace, or takes them for what a sound node might have sent; it never
//! panics.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pack::{Pack, acquire, arrive, miss, n, release};
use dhole_model::{NodeId, Oid, OidRange, VectorTime, Version};
use dhole_protocol::{BarrierId, Event, LockId, Message, News, WaitingFor, WorkerIs};

/// The states of a pack and the messages in flight, from a run in which everything happens.
fn moments() -> Vec<(Pack, (NodeId, NodeId, Message))> {
    let mut moments = Vec::new();
    let mut pack = Pack::new(3);
    pack.local(
        0,
        crate::pack::allocated(OidRange {
            first: Oid(64),
            count: 4,
        }),
    );
    let run = |pack: &mut Pack, moments: &mut Vec<_>, node, event| {
        pack.begin(node, event);
        while let Some(message) = pack.in_flight.front().cloned() {
            moments.push((copy(pack), message));
            pack.deliver_next();
        }
    };
    for node in [1, 2] {
        run(&mut pack, &mut moments, node, miss(Oid(64), 0));
    }
    pack.local(0, acquire(0));
    pack.write(0, Oid(64));
    pack.write(0, Oid(66));
    run(&mut pack, &mut moments, 2, acquire(0));
    run(&mut pack, &mut moments, 1, acquire(0));
    run(&mut pack, &mut moments, 2, Event::WaitedLong);
    run(&mut pack, &mut moments, 0, release(0));
    run(&mut pack, &mut moments, 2, miss(Oid(64), 0));
    pack.write(2, Oid(64));
    run(&mut pack, &mut moments, 0, arrive());
    run(&mut pack, &mut moments, 0, Event::WaitedLong);
    run(&mut pack, &mut moments, 2, release(0));
    run(&mut pack, &mut moments, 1, release(0));
    run(&mut pack, &mut moments, 1, arrive());
    run(&mut pack, &mut moments, 2, arrive());
    run(&mut pack, &mut moments, 1, Event::Finish);
    run(&mut pack, &mut moments, 2, arrive());
    run(&mut pack, &mut moments, 0, arrive());
    moments
}

fn copy(pack: &Pack) -> Pack {
    let mut copy = Pack::new(pack.nodes.len());
    copy.nodes.clone_from(&pack.nodes);
    copy
}

/// Every way to spoil a message a little.
fn spoiled(message: &Message) -> Vec<(&'static str, Message)> {
    let nobody = n(9);
    let mut all = Vec::new();
    let mut with = |what, change: &dyn Fn(&mut Message)| {
        let mut spoiled = message.clone();
        change(&mut spoiled);
        if spoiled != *message {
            all.push((what, spoiled));
        }
    };
    with("of another number of nodes", &|m| {
        if let Some(time) = time(m) {
            *time = VectorTime::zero(2);
        }
    });
    with("of far too many nodes", &|m| {
        if let Some(time) = time(m) {
            *time = VectorTime::zero(900);
        }
    });
    with("from the future", &|m| {
        if let Some(time) = time(m) {
            time.see(n(0), u32::MAX);
        }
    });
    with("with a gap", &|m| {
        if let Some(news) = news(m) {
            news.intervals.clear();
        }
    });
    with("with an interval of nobody", &|m| {
        if let Some(news) = news(m)
            && let Some(interval) = news.intervals.first_mut()
        {
            std::sync::Arc::make_mut(interval).node = nobody;
        }
    });
    with("with the last interval of all", &|m| {
        if let Some(news) = news(m)
            && let Some(interval) = news.intervals.first_mut()
        {
            std::sync::Arc::make_mut(interval).index = u32::MAX;
        }
    });
    with("with a range beyond all ids", &|m| {
        if let Some(news) = news(m)
            && let Some(interval) = news.intervals.first_mut()
        {
            std::sync::Arc::make_mut(interval).written = vec![OidRange {
                first: Oid(u64::MAX - 1),
                count: 9,
            }];
        }
    });
    with("with Lamport time at its end", &|m| {
        if let Some(news) = news(m) {
            news.lamport = u64::MAX;
        }
    });
    with("at another barrier", &|m| match m {
        Message::BarrierArrive { barrier, .. } | Message::BarrierDepart { barrier, .. } => {
            *barrier = BarrierId::Program(77);
        }
        _ => {}
    });
    with("about another lock", &|m| match m {
        Message::LockRequest { lock, .. }
        | Message::LockForward { lock, .. }
        | Message::LockGrant { lock, .. } => *lock = LockId(lock.0 + 1),
        _ => {}
    });
    with("for nobody", &|m| {
        if let Message::LockForward { requester, .. } = m {
            *requester = nobody;
        }
    });
    with("about another object", &|m| match m {
        Message::Fetch { wanted, .. } => wanted[0].oid = Oid(700),
        Message::FetchReply { sent, .. } => sent[0].oid = Oid(700),
        _ => {}
    });
    with("about no object", &|m| match m {
        Message::Fetch { wanted, .. } => wanted.clear(),
        Message::FetchReply { sent, .. } => sent.clear(),
        _ => {}
    });
    with("of a version that never was", &|m| match m {
        Message::Fetch { wanted, .. } => {
            wanted[0].need = Version {
                lamport: 1 << 40,
                node: nobody,
            }
        }
        Message::FetchReply { sent, .. } => sent[0].version = Version::default(),
        _ => {}
    });
    with("in a round of another time", &|m| match m {
        Message::Fetch { round, .. } | Message::FetchReply { round, .. } => *round = u32::MAX,
        _ => {}
    });
    with("along no path", &|m| {
        if let Message::Probe { path, .. } = m {
            path.clear();
        }
    });
    with("along a path of nobody", &|m| {
        if let Message::Probe { path, .. } = m {
            path.iter_mut().for_each(|waiter| waiter.node = nobody);
        }
    });
    with("about a lock of which nobody heard", &|m| {
        if let Message::Probe {
            at_manager_of: Some(of),
            ..
        } = m
        {
            *of = WaitingFor::Lock(LockId(99));
        }
    });
    with("in a circle of nobody", &|m| {
        if let Message::Deadlock { cycle } = m {
            let mut waiters = cycle.to_vec();
            waiters.iter_mut().for_each(|waiter| waiter.node = nobody);
            *cycle = waiters.into();
        }
    });
    all
}

fn news(message: &mut Message) -> Option<&mut News> {
    match message {
        Message::LockGrant { news, .. }
        | Message::BarrierArrive { news, .. }
        | Message::BarrierDepart { news, .. } => Some(news),
        _ => None,
    }
}

fn time(message: &mut Message) -> Option<&mut VectorTime> {
    match message {
        Message::LockRequest { time, .. } | Message::LockForward { time, .. } => Some(time),
        other => news(other).map(|news| &mut news.time),
    }
}

/// What a node does with a message that it should not get.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Taken {
    Harmless,
    WithTrace(String),
    Panicked,
}

fn take(pack: &Pack, from: NodeId, to: NodeId, message: Message) -> Taken {
    let mut node = pack.nodes[to.index()].clone();
    let mut out = Vec::new();
    let event = Event::Deliver { from, message };
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        node.step(event, WorkerIs::InCall, &mut out)
    }));
    match stepped {
        Err(_) => Taken::Panicked,
        Ok(Err(refused)) if !out.is_empty() || node != pack.nodes[to.index()] => {
            Taken::WithTrace(refused.to_string())
        }
        Ok(_) => Taken::Harmless,
    }
}

/// Sound messages with one thing wrong, and what was done with them, each once.
fn taken() -> BTreeSet<(Taken, String)> {
    let mut all = BTreeSet::new();
    for (pack, (from, to, message)) in moments() {
        let kind = message.kind().name();
        for (what, spoiled) in spoiled(&message) {
            all.insert((take(&pack, from, to, spoiled), format!("{kind} {what}")));
        }
        let strangers = (0..3).map(n).chain([n(9)]).filter(|node| *node != from);
        for stranger in strangers {
            let what = format!("{kind} from another node");
            all.insert((take(&pack, stranger, to, message.clone()), what));
        }
        for other in (0..3).map(n).filter(|node| *node != to) {
            let what = format!("{kind} at another node");
            all.insert((take(&pack, from, other, message.clone()), what));
        }
    }
    all
}

#[test]
fn no_message_makes_a_protocol_panic() {
    let panicked: Vec<String> = taken()
        .into_iter()
        .filter(|(taken, _)| *taken == Taken::Panicked)
        .map(|t| t.1)
        .collect();
    assert!(panicked.is_empty(), "{}", panicked.join("\n"));
}

#[test]
fn a_message_that_is_refused_leaves_no_trace() {
    let traces = |(taken, what)| match taken {
        Taken::WithTrace(refused) => Some(format!("{what}: {refused}")),
        _ => None,
    };
    let traces: Vec<String> = taken().into_iter().filter_map(traces).collect();
    assert!(traces.is_empty(), "{}", traces.join("\n"));
}
