//! Messages that no node of a sound cluster sends: sound ones with one thing wrong. A protocol
//! refuses them without a trace, or takes them for what a sound node might have sent; it never
//! panics.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pack::{OBJECT, Pack, arrive, miss, n};
use dhole_model::{MessageKind, NodeId, Oid, OidRange, VectorTime, Version};
use dhole_protocol::{
    Attached, BarrierId, CollectiveKind, Command, Event, Fetch, FetchReply, Interval, LockId,
    Message, Protocol, RegionCommand, RegionMessage, Reply, RwLockId, SyncObject, WaitingFor, Way,
    WorkerIs, WriteNotices,
};

mod moments;

pub use moments::moments;

/// Every way to spoil a message a little.
fn spoiled(message: &Message, to: NodeId) -> Vec<(&'static str, Message)> {
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
    with("with an interval that its receiver has not ended", &|m| {
        if let Some(news) = news(m) {
            let index = news.time.of(to) + 1;
            news.lamport += 1;
            news.intervals.push(std::sync::Arc::new(Interval {
                node: to,
                first: index,
                index,
                lamport: news.lamport,
                written: vec![OidRange::one(OBJECT)],
                elements: vec![],
                freed: vec![],
                attached: Attached::Nothing,
                base: None,
            }));
        }
    });
    with("with an interval of a Lamport time without room", &|m| {
        if let Some(news) = news(m)
            && let Some(interval) = news.intervals.first_mut()
        {
            std::sync::Arc::make_mut(interval).lamport = 1 << 47;
        }
    });
    with("with Lamport times without room", &|m| {
        if let Some(news) = news(m) {
            news.lamport = 1 << 47;
            for interval in &mut news.intervals {
                std::sync::Arc::make_mut(interval).lamport = 1 << 47;
            }
        }
        versions(m).for_each(|version| version.lamport = 1 << 47);
    });
    with("of the last Lamport time that has room", &|m| {
        if let Some(news) = news(m) {
            news.lamport = (1 << 47) - 1;
        }
        versions(m).for_each(|version| version.lamport = (1 << 47) - 1);
    });
    with("of a version of nobody", &|m| {
        versions(m).for_each(|version| {
            version.lamport += 1;
            version.node = nobody;
        });
    });
    with("at another sync object", &|m| {
        if let Some(sync_object) = sync_object(m) {
            *sync_object = SyncObject::Read(RwLockId(3));
        }
    });
    with("in grants without number", &|m| {
        if let Message::SyncGrant { parts, .. } | Message::SyncForward { parts, .. } = m {
            *parts = 0;
        }
    });
    with("that nobody has asked for", &|m| {
        if let Message::Probe(probe) = m {
            probe.edges.asker.node = nobody;
        }
    });
    with("at another barrier", &|m| match m {
        Message::BarrierArrive { barrier, .. } | Message::BarrierDepart { barrier, .. } => {
            *barrier = BarrierId::Program(77);
        }
        Message::BarrierRound(said) => said.number = 77,
        _ => {}
    });
    with("at the barrier after", &|m| {
        if let Message::BarrierRound(said) = m {
            said.number += 1;
        }
    });
    with("at a place that was never told of", &|m| {
        if let Message::BarrierRound(said) = m {
            (said.place, said.site) = (u32::MAX, None);
        }
    });
    with("in the round after", &|m| {
        if let Message::BarrierRound(said) = m {
            said.round = said.round.wrapping_add(1);
        }
    });
    with("in a round that no barrier has", &|m| {
        if let Message::BarrierRound(said) = m {
            said.round = u8::MAX;
        }
    });
    with("of news, or of none", &|m| match m {
        Message::BarrierRound(said) => said.news = !said.news,
        Message::BarrierArrive { has_news, .. } => *has_news = !*has_news,
        _ => {}
    });
    with("with rounds next, or without", &|m| {
        if let Message::BarrierDepart { rounds, .. } = m {
            *rounds = u32::MAX - *rounds;
        }
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
        Message::Fetch(Fetch { wanted, .. }) => wanted[0].region = Oid(700),
        Message::FetchReply(FetchReply { sent, .. }) => sent[0].region = Oid(700),
        _ => {}
    });
    with("about no object", &|m| match m {
        Message::Fetch(Fetch { wanted, .. }) => wanted.clear(),
        Message::FetchReply(FetchReply { sent, .. }) => sent.clear(),
        _ => {}
    });
    with("of a version that never was", &|m| match m {
        Message::Fetch(Fetch { wanted, .. }) => {
            wanted[0].need = Version {
                lamport: 1 << 40,
                node: nobody,
            }
        }
        Message::FetchReply(FetchReply { sent, .. }) => sent[0].version = Version::default(),
        _ => {}
    });
    with("in a round of another time", &|m| match m {
        Message::Fetch(Fetch { round, .. }) | Message::FetchReply(FetchReply { round, .. }) => {
            *round = u32::MAX
        }
        _ => {}
    });
    with("of another collective", &|m| {
        if let Message::Collective(m) = m {
            m.at.number += 1;
        }
    });
    with("of a collective long over, or far ahead", &|m| {
        if let Message::Collective(m) = m {
            m.at.number = m.at.number.wrapping_sub(9);
        }
    });
    with("of another way", &|m| {
        if let Message::Collective(m) = m {
            m.way = match m.way {
                Way::Up => Way::Down,
                Way::Down | Way::Across => Way::Up,
            };
        }
    });
    with("across", &|m| {
        if let Message::Collective(m) = m {
            m.way = Way::Across;
        }
    });
    with("of a tree of nobody's", &|m| {
        if let Message::Collective(m) = m {
            m.at.kind = CollectiveKind::Scatter { from: nobody };
        }
    });
    with("of another type", &|m| {
        if let Message::Collective(m) = m {
            m.at.of += 1;
        }
    });
    with("of waits of nobody", &|m| {
        if let Message::Probe(probe) = m {
            let rounds = probe.edges.first.iter_mut();
            rounds
                .chain([&mut probe.edges.round])
                .flat_map(|round| &mut round.waits)
                .for_each(|waiter| waiter.node = nobody);
        }
    });
    with("about waits that nobody asked about", &|m| {
        if let Message::Probe(probe) = m {
            probe.edges.ending.push(u32::MAX);
        }
    });
    with("after one round", &|m| {
        if let Message::Probe(probe) = m {
            (probe.edges.is_over, probe.edges.first) = (true, None);
        }
    });
    with("about a lock of which nobody heard", &|m| {
        if let Message::Probe(probe) = m {
            for wait in &mut probe.edges.round.waits {
                wait.waiting_for = WaitingFor::Lock(LockId(99));
            }
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

fn news(message: &mut Message) -> Option<&mut WriteNotices> {
    match message {
        Message::LockGrant { news, .. }
        | Message::SyncGrant { news, .. }
        | Message::BarrierArrive { news, .. }
        | Message::BarrierDepart { news, .. } => Some(news),
        Message::Collective(message) => Some(&mut message.news),
        Message::Gossiped { carrier, .. } | Message::After { carrier, .. } => news(carrier),
        _ => None,
    }
}

fn time(message: &mut Message) -> Option<&mut VectorTime> {
    match message {
        Message::LockRequest { time, .. }
        | Message::LockForward { time, .. }
        | Message::SyncRequest { time, .. }
        | Message::SyncForward { time, .. }
        | Message::SyncRelease { time, .. }
        | Message::SyncReleaseAndWake { time, .. } => Some(time),
        Message::Gossiped { carrier, .. } | Message::After { carrier, .. } => time(carrier),
        other => news(other).map(|news| &mut news.time),
    }
}

fn sync_object(message: &mut Message) -> Option<&mut SyncObject> {
    match message {
        Message::SyncRequest { sync_object, .. }
        | Message::SyncForward { sync_object, .. }
        | Message::SyncGrant { sync_object, .. }
        | Message::SyncRelease { sync_object, .. }
        | Message::SyncReleaseAndWake { sync_object, .. } => Some(sync_object),
        Message::Gossiped { carrier, .. } | Message::After { carrier, .. } => sync_object(carrier),
        _ => None,
    }
}

/// The versions of what is sent.
fn versions(message: &mut Message) -> Box<dyn Iterator<Item = &mut Version> + '_> {
    match message {
        Message::FetchReply(FetchReply { sent, .. }) => {
            Box::new(sent.iter_mut().map(|sent| &mut sent.version))
        }
        Message::ElementsReply(FetchReply { sent, .. }) => {
            Box::new(sent.iter_mut().map(|sent| &mut sent.version))
        }
        Message::Region(RegionMessage::Update { pushed }) => {
            Box::new(pushed.iter_mut().map(|pushed| &mut pushed.sent.version))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// What a node does with a message that it should not get.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Taken {
    Harmless,
    WithTrace(String),
    SentToNobody,
    Panicked,
}

fn take(pack: &Pack, from: NodeId, to: NodeId, message: Message) -> Taken {
    let mut node = pack.nodes[to.index()].clone();
    let mut out = Vec::new();
    let event = Event::Deliver { from, message };
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        let taken = node.step(event, WorkerIs::InCall, &mut out);
        let before = (node.clone(), out.len());
        if taken.is_ok() {
            go_on(&mut node, &mut out);
        }
        (taken, before)
    }));
    let sends_to_nobody = |command: &Command| match command {
        Command::Send { to, .. } | Command::Objects(RegionCommand::Reply(Reply { to, .. })) => {
            to.index() >= pack.nodes.len()
        }
        Command::SendUnits { to, .. } => to.iter().any(|to| to.index() >= pack.nodes.len()),
        _ => false,
    };
    match stepped {
        Err(_) => Taken::Panicked,
        Ok(_) if out.iter().any(sends_to_nobody) => Taken::SentToNobody,
        Ok((Err(refused), (node, said))) if said > 0 || node != pack.nodes[to.index()] => {
            Taken::WithTrace(refused.to_string())
        }
        Ok(_) => Taken::Harmless,
    }
}

/// The worker reads and synchronises; what was taken may not make that impossible.
fn go_on(node: &mut Protocol, out: &mut Vec<Command>) {
    for event in [miss(OBJECT, 0), Event::Flush, arrive()] {
        let _ = node.step(event, WorkerIs::InCall, out);
    }
}

/// Sound messages with one thing wrong, and what was done with them, each once.
fn taken() -> BTreeSet<(Taken, String)> {
    let mut all = BTreeSet::new();
    for (pack, (from, to, message)) in moments() {
        let kind = message.kind().name();
        for (what, spoiled) in spoiled(&message, to) {
            all.insert((take(&pack, from, to, spoiled), format!("{kind} {what}")));
        }
        let strangers = (0..3).map(n).chain([n(9)]).filter(|node| *node != from);
        for stranger in strangers {
            let what = format!("{kind} from another node");
            all.insert((take(&pack, stranger, to, message.clone()), what));
        }
        for other in (0..pack.nodes.len()).map(n).filter(|node| *node != to) {
            let what = format!("{kind} at another node");
            all.insert((take(&pack, from, other, message.clone()), what));
        }
    }
    all
}

#[test]
fn the_moments_show_messages_of_every_kind() {
    use MessageKind::*;
    // What operations on objects say to each other is no message of this protocol, nor is what is
    // said of raw memory.
    let others = [
        MemoryRequest,
        MemoryForward,
        MemoryInvalidate,
        MemoryInvalidated,
        MemoryData,
        MemoryGrant,
        MemoryAck,
        MemoryGone,
        MemoryDropped,
        MemoryDiff,
        MemoryMerged,
        ThreadLock,
        ThreadBarrier,
        ThreadCondition,
        ThreadSemaphore,
        ThreadStart,
        OperationRequest,
        OperationReply,
        ObjectState,
        Ordered,
        Digests,
    ];
    let kinds = |messages: &BTreeSet<MessageKind>| {
        let all = MessageKind::ALL.into_iter();
        all.filter(|kind| !messages.contains(kind) && !others.contains(kind))
            .collect::<Vec<_>>()
    };
    let messages = moments().into_iter().map(|(_, (_, _, message))| message);
    let seen = messages.map(|message| message.kind()).collect();
    // A deadlock is told to those who have waited long; an abort is the engine's.
    assert_eq!(kinds(&seen), [Abort]);
}

#[test]
fn no_message_makes_a_protocol_panic() {
    let bad = [Taken::Panicked, Taken::SentToNobody];
    let panicked: Vec<String> = taken()
        .into_iter()
        .filter(|(taken, _)| bad.contains(taken))
        .map(|(taken, what)| format!("{what}: {taken:?}"))
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
