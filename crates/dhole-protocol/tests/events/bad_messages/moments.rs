//! Runs in which everything happens, message by message.

use crate::collectives::{self, ACROSS, DOWN, UP};
use crate::members::Moving;
use crate::pack::{
    OBJECT, Pack, acquire, allocated, allocated_under, arrive, miss, miss_under, n, release, site,
};
use dhole_model::{Coherence, Elements, NodeId, Oid, OidRange, PageId};
use dhole_protocol::{
    ArrayEvent, CoherenceProtocol, CollectiveKind, ConditionId, Event, LockId, LogLimits, Message,
    PageEvent, Protocol, Races, RwLockId, SemaphoreId, SyncObject, UnreadElements,
};

/// A pack, and a message that is about to arrive there: from whom and where.
pub type Moment = (Pack, (NodeId, NodeId, Message));

struct Run {
    pack: Pack,
    moments: Vec<Moment>,
}

impl Run {
    fn new(pack: Pack) -> Run {
        let moments = Vec::new();
        Run { pack, moments }
    }

    /// An event, and all messages that follow from it.
    fn run(&mut self, node: usize, event: Event) {
        self.pack.begin(node, event);
        while let Some(message) = self.pack.in_flight.front().cloned() {
            let mut copy = Pack::new(self.pack.nodes.len());
            copy.nodes.clone_from(&self.pack.nodes);
            self.moments.push((copy, message));
            self.pack.deliver_next();
        }
    }

    fn read_and_write(&mut self, node: usize, (oid, coherence): (Oid, Coherence)) {
        self.run(node, miss_under(oid, 0, coherence));
        self.pack.write(node, oid);
    }

    fn all_meet(&mut self) {
        (0..self.pack.nodes.len()).for_each(|node| self.run(node, arrive()));
    }
}

/// A run in which everything happens.
pub fn moments() -> Vec<Moment> {
    let mut moments = locks_and_barriers();
    moments.extend(all_others());
    moments.extend(pages());
    moments.extend(untold());
    moments.extend(rounds());
    moments.extend(collectives());
    moments.extend(ids());
    moments.extend(members());
    moments.extend(notified());
    moments
}

/// A node waits on the condition of a read-write lock, and another one wakes it.
fn notified() -> Vec<Moment> {
    let mut of = Run::new(Pack::with_object(3));
    let (lock, all, site) = (RwLockId(0), true, site(8));
    let write = SyncObject::Write(lock);
    of.run(2, enter(write));
    let until_written = false;
    of.run(
        2,
        Event::WaitOnRwLock {
            lock,
            until_written,
            site,
        },
    );
    of.run(1, enter(write));
    of.run(1, Event::NotifyRwLock { lock, all, site });
    of.run(1, leave(write));
    of.moments
}

/// An object under a protocol that the program brings, which moves, and of which notices tell.
fn members() -> Vec<Moment> {
    let mut of = Run::new(crate::members::pack(3));
    let coherence = Moving::coherence();
    for node in [1, 2, 0] {
        of.run(node, acquire(1));
        of.run(node, miss_under(OBJECT, 0, coherence));
        of.run(node, release(1));
    }
    of.moments
}

/// Barriers of three nodes that begin with rounds, with news and without.
fn rounds() -> Vec<Moment> {
    let mut of = Run::new(Pack::with_object(3));
    let all = of.pack.nodes.iter_mut();
    all.for_each(|node| *node = node.clone().disseminating(u32::MAX));
    let arrive = |line| Event::Arrive {
        once: false,
        site: site(line),
    };
    of.run(1, miss(OBJECT, 0));
    for nodes in [[0, 1, 2], [2, 1, 0]] {
        nodes.into_iter().for_each(|node| of.run(node, arrive(3)));
        of.pack.write(nodes[0], OBJECT);
        nodes.into_iter().for_each(|node| of.run(node, arrive(4)));
        of.run(nodes[2], miss(OBJECT, nodes[0]));
    }
    of.moments
}

/// Node 2 asks for object ids, and is handed some.
fn ids() -> Vec<Moment> {
    let mut of = Run::new(Pack::with_object(3));
    of.run(2, Event::AskIds { ids: 64 });
    let handed = (n(0), n(2), Message::HandIdsOut(crate::ids::HANDED));
    of.pack.in_flight.push_back(handed);
    of.run(1, Event::EndInterval);
    of.moments
}

/// Collectives that go either way and both, called early and late.
fn collectives() -> Vec<Moment> {
    use CollectiveKind::{AllReduce, AllToAll, Broadcast, Reduce, Scatter};
    let mut of = Run::new(Pack::with_object(3));
    of.run(1, miss(OBJECT, 0));
    of.pack.write(1, OBJECT);
    let calls = |kind| collectives::enter(kind, 5);
    for (node, event) in [
        (0, calls(Broadcast)),
        (0, DOWN),
        (1, calls(Broadcast)),
        (1, DOWN),
        (1, calls(Reduce)),
        (1, UP),
        (2, calls(Broadcast)),
        (2, DOWN),
        (2, calls(Reduce)),
        (2, UP),
        (0, calls(Reduce)),
        (0, UP),
        (0, calls(AllReduce)),
        (2, calls(AllReduce)),
        (2, UP),
        (1, calls(AllReduce)),
        (1, UP),
        (0, UP),
        (0, DOWN),
        (1, DOWN),
        (2, DOWN),
        (0, calls(AllToAll)),
        (0, ACROSS),
        (2, calls(AllToAll)),
        (1, calls(AllToAll)),
        (1, ACROSS),
        (2, ACROSS),
        (0, DOWN),
        (1, DOWN),
        (2, DOWN),
        (1, calls(Scatter { from: n(1) })),
        (1, DOWN),
        (2, calls(Scatter { from: n(1) })),
        (2, DOWN),
        (0, calls(Scatter { from: n(1) })),
        (0, DOWN),
    ] {
        of.run(node, event);
    }
    of.moments
}

/// A barrier at which node 1 has seen what node 2 has told of by a message that is late.
fn untold() -> Vec<Moment> {
    let mut run = Run::new(Pack::with_object(3));
    run.run(2, miss(OBJECT, 0));
    run.run(2, arrive());
    run.pack.write(2, OBJECT);
    run.pack.begin(2, Event::EndInterval);
    run.pack.in_flight.clear();
    run.run(0, arrive());
    run.pack.begin(1, arrive());
    for (_, _, message) in &mut run.pack.in_flight {
        if let Message::BarrierArrive { news, .. } = message {
            news.time.see(n(2), 1);
        }
    }
    run.pack.settle();
    run.run(0, Event::WaitedLong);
    run.moments
}

/// A page that all write, and what is asked for of it.
fn pages() -> Vec<Moment> {
    let limits = LogLimits {
        collect_pages_from: 4,
        ..LogLimits::default()
    };
    let mut of = Run::new(Pack::with_limits(3, limits));
    of.pack.local(0, allocated(OidRange::one(OBJECT)));
    let (page, creator) = (PageId(7), None);
    let (read, write) = (PageEvent::Read { page, creator }, PageEvent::Write { page });
    for _ in 0..3 {
        for node in [0, 1] {
            of.run(node, acquire(0));
            of.run(node, Event::Pages(read));
            of.run(node, Event::Pages(write));
            of.run(node, release(0));
        }
        of.all_meet();
        of.run(2, Event::Pages(read));
    }
    of.moments
}

fn locks_and_barriers() -> Vec<Moment> {
    let mut of = Run::new(Pack::new(3));
    let (first, count) = (Oid(64), 4);
    of.pack.local(0, allocated(OidRange { first, count }));
    for node in [1, 2] {
        of.run(node, miss(Oid(64), 0));
    }
    of.pack.local(0, acquire(0));
    of.pack.write(0, Oid(64));
    of.pack.write(0, Oid(66));
    of.run(2, acquire(0));
    of.run(1, acquire(0));
    of.run(2, Event::WaitedLong);
    of.run(0, release(0));
    of.run(2, miss(Oid(64), 0));
    of.pack.write(2, Oid(64));
    of.run(0, arrive());
    of.run(0, Event::WaitedLong);
    of.run(2, release(0));
    of.run(1, release(0));
    of.run(1, arrive());
    of.run(2, arrive());
    of.run(1, Event::Finish);
    of.run(2, arrive());
    of.run(0, arrive());
    of.moments
}

/// Sync objects, conditions, pushes, flushes, arrays, races, freed objects and probes, and gossip.
fn all_others() -> Vec<Moment> {
    let limits = LogLimits {
        collect_from: 1,
        compact_from: 4,
        ..LogLimits::default()
    };
    let mut pack = Pack::new(3);
    for (me, node) in pack.nodes.iter_mut().enumerate() {
        *node = Protocol::with(n(me), 3, limits, Races::Warn);
    }
    let lazy = (OBJECT, Coherence::Lazy);
    let pushed = (Oid(200), Coherence::Update);
    let at_home = (Oid(300), Coherence::Home);
    for (oid, coherence) in [lazy, pushed, at_home] {
        pack.local(0, allocated_under(OidRange::one(oid), coherence));
    }
    let mut of = Run::new(pack);
    of.run(1, miss_under(pushed.0, 0, pushed.1));
    of.read_and_write(1, at_home);
    of.read_and_write(1, lazy);
    of.read_and_write(0, lazy);
    for (node, first) in [(0, 0), (1, 1)] {
        of.run(node, read_elements(first));
        of.run(node, write_elements(first));
    }
    of.run(1, Event::Flush);
    for _ in 0..4 {
        of.read_and_write(0, pushed);
        of.all_meet();
    }
    of.run(2, read_elements(0));
    for _ in 0..3 {
        of.run(2, miss_under(at_home.0, 0, at_home.1));
        of.all_meet();
    }
    of.read_and_write(1, at_home);
    of.run(1, Event::Flush);
    for sync_object in [
        SyncObject::Read(RwLockId(0)),
        SyncObject::Write(RwLockId(0)),
        permit(),
    ] {
        of.run(1, enter(sync_object));
        of.read_and_write(1, lazy);
        of.run(2, enter(sync_object));
        of.run(1, leave(sync_object));
        of.run(2, leave(sync_object));
    }
    of.run(2, acquire(1));
    of.run(2, wait_on());
    of.run(1, acquire(1));
    of.run(1, notify());
    of.run(1, release(1));
    of.run(2, wait_on());
    of.run(1, free(lazy.0));
    of.run(0, miss(lazy.0, 0));
    of.run(1, enter(permit()));
    of.run(1, enter(permit()));
    of.run(0, arrive());
    of.run(1, Event::WaitedLong);
    of.moments
}

fn part(first: u64) -> Elements {
    Elements::new(Oid(128), first..first + 2)
}

fn write_elements(first: u64) -> Event {
    let elements = part(first);
    let site = site(8);
    Event::Array(ArrayEvent::Write { elements, site })
}

fn read_elements(first: u64) -> Event {
    let unread = UnreadElements {
        elements: part(first),
        within: part(first),
        creator: n(0),
        zero_ok: true,
        coherence: Coherence::Lazy,
        ahead: None,
    };
    Event::Array(ArrayEvent::Read([unread].into_iter().collect()))
}

fn permit() -> SyncObject {
    SyncObject::Permit(SemaphoreId {
        number: 1,
        permits: 1,
    })
}

fn enter(sync_object: SyncObject) -> Event {
    let site = site(4);
    Event::Enter { sync_object, site }
}

fn leave(sync_object: SyncObject) -> Event {
    let site = site(5);
    Event::Leave { sync_object, site }
}

const CONDITION: ConditionId = ConditionId {
    lock: LockId(1),
    number: 0,
};

fn wait_on() -> Event {
    let (condition, site) = (CONDITION, site(6));
    Event::WaitOn { condition, site }
}

fn notify() -> Event {
    let (condition, site, all) = (CONDITION, site(7), true);
    Event::Notify {
        condition,
        all,
        site,
    }
}

fn free(oid: Oid) -> Event {
    let (range, site) = (OidRange::one(oid), site(9));
    Event::Free { range, site }
}
