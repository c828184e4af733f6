//! Every run of small programs whose nodes send updates of elements to their owners.
//!
//! Messages arrive in any order, and a worker goes on any time after what it waits for has come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid};
use dhole_protocol::{
    ArrayEvent, Command, Event, LockId, Message, Protocol, RegionCommand, UnreadElements,
    UpdateBatch, WorkerIs,
};

/// Of a read that races with a write.
const ANY: u64 = u64::MAX;

const ARRAY: Oid = Oid(64);
/// The same numbers in every run.
type Hashes = BuildHasherDefault<DefaultHasher>;

const SITE: CallSite = CallSite {
    file: "program.rs",
    line: 1,
    column: 1,
};

/// What a worker does. The array begins as zeros, and is node 0's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    /// Adds a number to an element.
    Add(u64, u64),
    /// Overwrites an element.
    Put(u64, u64),
    /// Reads an element, which must be this, or may be [any](ANY) number.
    Read(u64, u64),
    /// Reads an element, which must be as often as the lock was released.
    ReadReleases(u64),
    Barrier,
    Lock,
    Unlock,
    /// Acquires the lock of the array's updates, as before it adds to elements without owners.
    LockUpdates,
    /// Adds to an element, which it reads and writes itself.
    Increase(u64, u64),
    UnlockUpdates,
}

impl Op {
    fn lock(self) -> LockId {
        match self {
            Op::LockUpdates | Op::UnlockUpdates => LockId::of_updates(ARRAY),
            _ => LockId(1),
        }
    }
}

/// A mistake that the exploration must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// An owner answers as if it had not combined anything yet.
    AnswerBefore,
    /// Updates arrive twice.
    Twice,
    /// The sender goes on before the owners have answered.
    GoOnUnanswered,
    /// An owner that waits at a barrier does not take updates.
    NotAtBarriers,
    /// Whoever adds to elements without owners takes no lock.
    Unlocked,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Computing,
    /// In a call that sends updates.
    Combining,
    /// In that call: the owners have answered.
    Combined,
    /// In a call that synchronises.
    Synchronising,
    Reading,
    Ended,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Node {
    protocol: Protocol,
    /// Values of elements, and whether they may be read.
    heap: BTreeMap<u64, (u64, bool)>,
    /// The next of its operations.
    next: usize,
    phase: Phase,
    gathered: BTreeMap<u64, u64>,
    serves: bool,
}

/// A message on its way, with the values behind it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Parcel {
    from: usize,
    to: usize,
    message: Message,
    values: VecDeque<u64>,
}

#[derive(Clone)]
struct Run<'p> {
    programs: &'p [&'p [Op]],
    bug: Bug,
    nodes: Vec<Node>,
    network: Vec<Parcel>,
    releases: u64,
}

fn one(place: u64) -> Elements {
    Elements::new(ARRAY, place..place + 1)
}

impl<'p> Run<'p> {
    fn new(programs: &'p [&'p [Op]], bug: Bug) -> Run<'p> {
        let node = |me| Node {
            protocol: Protocol::new(NodeId::at(me), programs.len()),
            heap: BTreeMap::new(),
            next: 0,
            phase: Phase::Computing,
            gathered: BTreeMap::new(),
            serves: false,
        };
        Run {
            programs,
            bug,
            nodes: (0..programs.len()).map(node).collect(),
            network: Vec::new(),
            releases: 0,
        }
    }

    /// A number of the state in which the order of messages does not count.
    fn number(&self, hashes: &Hashes) -> u64 {
        let parcels = self.network.iter().map(|parcel| hashes.hash_one(parcel));
        let parcels = parcels.fold(0, u64::wrapping_add);
        hashes.hash_one((&self.nodes, self.releases, parcels))
    }

    fn step(
        &mut self,
        at: usize,
        event: Event,
        worker: WorkerIs,
        values: VecDeque<u64>,
    ) -> Result<bool, String> {
        let mut out = Vec::new();
        let stepped = self.nodes[at].protocol.step(event, worker, &mut out);
        stepped.map_err(|error| format!("node {at}: {error}"))?;
        self.carry_out(at, out, values)
    }

    /// Carries commands out; whether what the worker waits for has come.
    fn carry_out(
        &mut self,
        from: usize,
        commands: Vec<Command>,
        mut values: VecDeque<u64>,
    ) -> Result<bool, String> {
        let mut done = false;
        for command in commands {
            let heap = &mut self.nodes[from].heap;
            match command {
                Command::Send { to, mut message } => {
                    if let (Bug::AnswerBefore, Message::Combined { news, .. }) =
                        (self.bug, &mut message)
                    {
                        news.intervals.clear();
                        news.time = dhole_model::VectorTime::zero(self.nodes.len());
                    }
                    let parcel = Parcel {
                        from,
                        to: to.index(),
                        message,
                        values: VecDeque::new(),
                    };
                    if self.bug == Bug::Twice && matches!(parcel.message, Message::Combine(_)) {
                        self.network.push(parcel.clone());
                    }
                    self.network.push(parcel);
                }
                Command::Array(RegionCommand::Reply(reply)) => {
                    let regions = reply.message.sent.iter().map(|sent| sent.region);
                    let values = regions.flat_map(|region| region.range());
                    let values = values.map(|place| heap[&place].0).collect();
                    self.network.push(Parcel {
                        from,
                        to: reply.to.index(),
                        message: Message::ElementsReply(reply.message),
                        values,
                    });
                }
                Command::Array(RegionCommand::Install(sent)) => {
                    for place in sent.region.range() {
                        let value = values.pop_front().ok_or("a reply without values")?;
                        heap.insert(place, (value, true));
                    }
                }
                Command::Array(RegionCommand::Skip(sent)) => {
                    values.drain(..sent.region.count as usize);
                }
                Command::Array(RegionCommand::ZeroFill(elements)) => {
                    heap.extend(elements.range().map(|place| (place, (0, true))));
                }
                Command::Array(RegionCommand::Invalidate(elements)) => {
                    for (_, (_, readable)) in heap.range_mut(elements.range()) {
                        *readable = false;
                    }
                }
                Command::Array(
                    RegionCommand::MakeWritable { .. } | RegionCommand::MakeClean(_),
                )
                | Command::IntervalEnded => {}
                Command::Combine { updates, .. } => {
                    for (place, more) in updates {
                        match heap.get_mut(&place) {
                            Some((value, true)) => *value += more,
                            _ => return Err(format!("node {from} lacks element {place}")),
                        }
                    }
                }
                Command::Deferred => self.nodes[from].serves = true,
                Command::Done => done = true,
                command => return Err(format!("node {from}: {command:?}")),
            }
        }
        Ok(done)
    }

    /// The worker's next call, or the rest of one.
    fn works(&mut self, at: usize) -> Result<(), String> {
        if self.nodes[at].phase == Phase::Combined {
            return self.synchronises(at);
        }
        let Some(&op) = self.programs[at].get(self.nodes[at].next) else {
            // It waits for the end of the run.
            self.nodes[at].phase = Phase::Ended;
            self.step(at, Event::Serve, WorkerIs::InCall, VecDeque::new())?;
            return Ok(());
        };
        if std::mem::take(&mut self.nodes[at].serves) {
            self.step(at, Event::Serve, WorkerIs::InCall, VecDeque::new())?;
        }
        match op {
            Op::Add(place, more) => {
                *self.nodes[at].gathered.entry(place).or_default() += more;
                self.nodes[at].next += 1;
            }
            Op::Put(place, value) => {
                self.nodes[at].heap.insert(place, (value, true));
                let event = Event::Array(ArrayEvent::Overwrite {
                    elements: one(place),
                    creator: NodeId(0),
                    coherence: Coherence::Lazy,
                    site: SITE,
                });
                self.step(at, event, WorkerIs::InCall, VecDeque::new())?;
                self.nodes[at].next += 1;
            }
            Op::LockUpdates | Op::UnlockUpdates if self.bug == Bug::Unlocked => {
                self.nodes[at].next += 1;
            }
            Op::Read(place, _) | Op::ReadReleases(place) | Op::Increase(place, _) => {
                return self.reads(at, place);
            }
            Op::Barrier | Op::Lock | Op::Unlock | Op::LockUpdates | Op::UnlockUpdates => {
                let gathered = std::mem::take(&mut self.nodes[at].gathered);
                if gathered.is_empty() {
                    return self.synchronises(at);
                }
                let batch = UpdateBatch {
                    array: ARRAY,
                    creator: NodeId(0),
                    coherence: Coherence::Lazy,
                    combining: 0,
                    site: SITE,
                    updates: gathered.into_iter().collect(),
                };
                self.nodes[at].phase = Phase::Combining;
                let event = Event::Combine(vec![batch]);
                let done = self.step(at, event, WorkerIs::InCall, VecDeque::new())?;
                if done || self.bug == Bug::GoOnUnanswered {
                    self.nodes[at].phase = Phase::Combined;
                }
            }
        }
        Ok(())
    }

    /// The rest of a call that synchronises.
    fn synchronises(&mut self, at: usize) -> Result<(), String> {
        let call = WorkerIs::InCall;
        if self.nodes[at].protocol.has_updates() {
            self.step(at, Event::TakeUpdates, call, VecDeque::new())?;
        }
        let op = self.programs[at][self.nodes[at].next];
        let lock = op.lock();
        let (event, waits) = match op {
            Op::Barrier => (
                Event::Arrive {
                    once: false,
                    site: SITE,
                },
                true,
            ),
            Op::Lock | Op::LockUpdates => (Event::Acquire { lock, site: SITE }, true),
            _ => (Event::Release { lock }, false),
        };
        if op == Op::Unlock {
            self.releases += 1;
        }
        self.nodes[at].phase = Phase::Synchronising;
        if self.step(at, event, call, VecDeque::new())? || !waits {
            self.goes_on(at);
        }
        Ok(())
    }

    fn goes_on(&mut self, at: usize) {
        self.nodes[at].phase = Phase::Computing;
        self.nodes[at].next += 1;
    }

    fn reads(&mut self, at: usize, place: u64) -> Result<(), String> {
        if let Some(&(value, true)) = self.nodes[at].heap.get(&place) {
            let expected = match self.programs[at][self.nodes[at].next] {
                Op::Read(_, expected) => expected,
                Op::Increase(_, more) => {
                    let event = ArrayEvent::Write {
                        elements: one(place),
                        site: SITE,
                    };
                    self.step(at, Event::Array(event), WorkerIs::InCall, VecDeque::new())?;
                    self.nodes[at].heap.insert(place, (value + more, true));
                    ANY
                }
                _ => self.releases,
            };
            if value != expected && expected != ANY {
                return Err(format!(
                    "node {at} reads {value} at {place}, and not {expected}"
                ));
            }
            self.nodes[at].next += 1;
            self.nodes[at].phase = Phase::Computing;
            return Ok(());
        }
        let unread = UnreadElements {
            elements: one(place),
            within: one(place),
            creator: NodeId(0),
            zero_ok: true,
            coherence: Coherence::Lazy,
            ahead: None,
        };
        self.nodes[at].phase = Phase::Reading;
        let event = Event::Array(ArrayEvent::Read([unread].into_iter().collect()));
        if self.step(at, event, WorkerIs::Sharing, VecDeque::new())? {
            self.nodes[at].phase = Phase::Computing;
        }
        Ok(())
    }

    /// Whether a message is not delivered yet, by the run's mistake.
    fn is_held(&self, parcel: &Parcel) -> bool {
        let receiver = &self.nodes[parcel.to];
        let is_at_barrier = receiver.phase == Phase::Synchronising
            && self.programs[parcel.to].get(receiver.next) == Some(&Op::Barrier);
        let combines = matches!(parcel.message, Message::Combine(_));
        self.bug == Bug::NotAtBarriers && is_at_barrier && combines
    }

    fn delivers(&mut self, place: usize) -> Result<(), String> {
        let Parcel {
            from,
            to,
            message,
            values,
        } = self.network.swap_remove(place);
        let phase = self.nodes[to].phase;
        let worker = match phase {
            Phase::Computing => WorkerIs::Computing,
            Phase::Reading => WorkerIs::Sharing,
            _ => WorkerIs::InCall,
        };
        let from = NodeId::at(from);
        let done = self.step(to, Event::Deliver { from, message }, worker, values)?;
        match phase {
            _ if !done => {}
            Phase::Combining => self.nodes[to].phase = Phase::Combined,
            Phase::Reading => self.nodes[to].phase = Phase::Computing,
            Phase::Synchronising => self.goes_on(to),
            // The planted mistake alone goes on before.
            _ => {}
        }
        Ok(())
    }

    /// Every state that may follow.
    fn following(&self) -> Result<Vec<Run<'p>>, String> {
        let mut all = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if matches!(node.phase, Phase::Computing | Phase::Combined) {
                let mut next = self.clone();
                next.works(at)?;
                all.push(next);
            }
        }
        for (place, parcel) in self.network.iter().enumerate() {
            if !self.is_held(parcel) {
                let mut next = self.clone();
                next.delivers(place)?;
                all.push(next);
            }
        }
        Ok(all)
    }
}

/// Explores every run; how many states there are, or what is wrong in one.
fn explore(programs: &[&[Op]], bug: Bug) -> Result<usize, String> {
    let (hashes, mut seen) = (Hashes::default(), BTreeSet::new());
    let mut open = vec![Run::new(programs, bug)];
    while let Some(run) = open.pop() {
        if !seen.insert(run.number(&hashes)) {
            continue;
        }
        let following = run.following()?;
        let is_over = run.nodes.iter().all(|node| node.phase == Phase::Ended);
        if following.is_empty() && !is_over {
            let phases: Vec<Phase> = run.nodes.iter().map(|node| node.phase).collect();
            return Err(format!("nobody goes on: {phases:?}"));
        }
        open.extend(following);
    }
    Ok(seen.len())
}

use Op::{Add, Barrier, Increase, Lock, LockUpdates, Put, Read, ReadReleases, Unlock};

/// Both add to an element of the first, which adds to one of the second too.
const TWO: [&[Op]; 2] = [
    &[
        Barrier,
        Read(1, 100),
        Barrier,
        Add(0, 1),
        Add(1, 2),
        Barrier,
        Read(0, 11),
        Read(1, 102),
    ],
    &[
        Put(1, 100),
        Barrier,
        Barrier,
        Add(0, 10),
        Barrier,
        Read(1, 102),
        Read(0, 11),
    ],
];

/// The third adds to what the second wrote, and the first reads it.
const THREE: [&[Op]; 3] = [
    &[Barrier, Add(0, 4), Barrier, Read(1, 7)],
    &[Put(1, 5), Barrier, Barrier, Read(0, 5)],
    &[Barrier, Add(0, 1), Add(1, 2), Barrier, Read(0, 5)],
];

/// Each adds under the lock, and reads what those before it have added.
const LOCKED: [&[Op]; 2] = [
    &[
        Lock,
        ReadReleases(0),
        Add(0, 1),
        Unlock,
        Barrier,
        Read(0, 3),
    ],
    &[
        Lock,
        ReadReleases(0),
        Add(0, 1),
        Unlock,
        Lock,
        ReadReleases(0),
        Add(0, 1),
        Unlock,
        Barrier,
        Read(0, 3),
    ],
];

/// The third adds to an element that the second overwrites without a synchronisation between. The
/// first, which had it, may know of that when the update comes.
const RACING: [&[Op]; 3] = [
    &[Lock, Unlock, Barrier, Read(0, ANY)],
    &[Lock, Put(0, 100), Unlock, Barrier],
    &[Add(0, 1), Barrier, Read(0, ANY)],
];

/// What a node does that combines its updates itself.
const OWN: [Op; 4] = [LockUpdates, Increase(0, 1), Op::UnlockUpdates, Barrier];

/// Both add to one element, of which neither is the owner that combines.
const OWNERLESS: [&[Op]; 2] = [
    &[
        LockUpdates,
        Increase(0, 2),
        Op::UnlockUpdates,
        Barrier,
        Read(0, 3),
        Barrier,
    ],
    &[OWN[0], OWN[1], OWN[2], OWN[3], Read(0, 3), Barrier],
];

/// One of three holds another lock meanwhile, which another one waits for.
const OWNERLESS_THREE: [&[Op]; 3] = [
    &[Lock, OWN[0], OWN[1], OWN[2], Unlock, Barrier, Read(0, 3)],
    &[Lock, OWN[0], OWN[1], OWN[2], Unlock, Barrier, Read(0, 3)],
    &[OWN[0], OWN[1], OWN[2], OWN[3], Read(0, 3)],
];

#[test]
fn in_every_run_what_nodes_combine_themselves_counts_once() {
    for programs in [&OWNERLESS[..], &OWNERLESS_THREE] {
        let states = explore(programs, Bug::None).unwrap_or_else(|error| panic!("{error}"));
        assert!(states > 100, "{states} states");
    }
}

#[test]
fn nodes_that_combine_without_the_lock_are_found() {
    let error = explore(&OWNERLESS, Bug::Unlocked).unwrap_err();
    assert!(error.contains("reads"), "{error}");
}

#[test]
fn in_every_run_a_reader_sees_the_updates_that_were_released() {
    for programs in [&TWO[..], &THREE, &LOCKED, &RACING] {
        let states = explore(programs, Bug::None).unwrap_or_else(|error| panic!("{error}"));
        assert!(states > 100, "{states} states");
    }
}

#[test]
fn an_owner_that_answers_before_it_combines_is_found() {
    let error = explore(&TWO, Bug::AnswerBefore).unwrap_err();
    assert!(error.contains("reads"), "{error}");
    assert!(explore(&LOCKED, Bug::AnswerBefore).is_err());
}

#[test]
fn updates_that_are_combined_twice_are_found() {
    assert!(explore(&TWO, Bug::Twice).is_err());
}

#[test]
fn a_sender_that_goes_on_before_the_answers_is_found() {
    assert!(explore(&TWO, Bug::GoOnUnanswered).is_err());
    assert!(explore(&LOCKED, Bug::GoOnUnanswered).is_err());
}

#[test]
fn an_owner_that_does_not_combine_at_a_barrier_is_found() {
    let error = explore(&TWO, Bug::NotAtBarriers).unwrap_err();
    assert!(error.contains("nobody goes on"), "{error}");
}
