use std::ops::Range;

use dhole_model::{Coherence, NodeId, Oid, OidRange};
use dhole_protocol::objects::Strategy;
use dhole_protocol::{
    CollectiveKind, Follow, FollowedReferences, LockId, LogLimits, MOST_ALONG, Raced, Races, Reach,
};

use crate::model::sections::Section;
use crate::objects::Op as Do;

/// The most nodes of a model; clocks have a fixed size.
pub const MOST_NODES: usize = 4;

/// One thing that a node's worker does. Objects and locks go by small numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads an object.
    Read(u8),
    /// Reads an object; if it was never written, the next `1` operations are left out.
    ReadOrSkip(u8, u8),
    /// Makes all of these objects readable, in one round.
    Prefetch(Objects),
    /// Writes a value that no other write writes.
    Write(u8),
    /// Sends an object, which the node wrote last, to all other nodes.
    Propagate(u8),
    /// Reads elements of the array.
    ReadPart(Part),
    /// Writes elements of the array, each with a value that no other write writes.
    WritePart(Part),
    /// Frees an object. A node that knows of it leaves out its operations on the object.
    Free(u8),
    /// Allocates an object.
    Alloc(u8),
    /// Reads an object; if it was written, the next `1` operations are left out.
    SkipIfWritten(u8, u8),
    /// Acquires a read-write lock, to read.
    Share(u8),
    /// Releases it.
    Unshare(u8),
    /// Acquires a read-write lock, to write.
    Exclude(u8),
    /// Releases it.
    Readmit(u8),
    /// Acquires a permit of a semaphore that is made with none.
    Take(u8),
    /// Releases one.
    Give(u8),
    /// Releases a read-write lock that is held to write, waits on its condition, and acquires it
    /// again.
    Await(u8),
    /// Releases a read-write lock that is held to write, waits until a node has written under it,
    /// and acquires it again: a section at its caller whose guard is false.
    AwaitWritten(u8),
    /// Runs a section under the lock of an object, at the lock's home.
    Section(u8, Section),
    /// Wakes the node that has waited longest on the condition of a read-write lock, once the lock
    /// is released.
    WakeOne(u8),
    /// Wakes all.
    WakeAll(u8),
    /// Waits on the condition of a lock.
    WaitOn(u8),
    /// Wakes the node that has waited longest on the condition of a lock.
    NotifyOne(u8),
    /// Wakes all.
    NotifyAll(u8),
    /// Acquires a lock.
    Acquire(u8),
    /// Releases it.
    Release(u8),
    /// Waits at a barrier.
    Barrier,
    /// Waits at a barrier to which node 0 brings a value.
    Once,
    /// Calls a collective.
    Collect(CollectiveKind),
    /// Changes the protocol of all objects, where all nodes meet.
    Switch(Coherence),
    /// Changes the protocol of the array, where all nodes meet.
    SwitchArray(Coherence),
    /// Frees the array. A node that knows of it leaves out its operations on the elements.
    FreeArray,
    /// Ends the borrow epoch.
    Pause,
    /// Calls an operation of a counter.
    Call(u8, Do),
    /// Calls one by a client of the node: its user half goes there, and comes back.
    Client(u8, u8, Do),
    /// Starts one, and goes on.
    Start(u8, Do),
    /// Starts one that nobody waits for; the next synchronisation comes behind it.
    Drop(u8, Do),
    /// Waits for the first that was started and not waited for.
    AwaitStarted,
    /// Says where a counter is to be kept from now on.
    Move(u8, Strategy),
}

impl Op {
    /// Whether this is something that is done with a counter.
    pub(crate) fn uses_counter(self) -> bool {
        matches!(
            self,
            Op::Call(..)
                | Op::Client(..)
                | Op::Start(..)
                | Op::Drop(..)
                | Op::AwaitStarted
                | Op::Move(..)
                | Op::Section(..)
        )
    }

    /// Whether it comes behind what its node started before.
    pub(crate) fn settles(self) -> bool {
        matches!(
            self,
            Op::Call(..)
                | Op::Client(..)
                | Op::Move(..)
                | Op::Release(_)
                | Op::Readmit(_)
                | Op::Await(_)
                | Op::AwaitWritten(_)
                | Op::Section(..)
                | Op::Give(_)
                | Op::WaitOn(_)
                | Op::Barrier
                | Op::Once
                | Op::Collect(_)
                | Op::Switch(_)
                | Op::SwitchArray(_)
        )
    }
}

/// The elements of the array from the first number up to the second.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part(pub u8, pub u8);

/// A set of objects, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Objects(u8);

impl Objects {
    /// The set of these objects, of which there are eight at most.
    pub fn new(objects: &[u8]) -> Objects {
        Objects(objects.iter().fold(0, |set, object| set | 1 << object))
    }

    /// The objects in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |object| self.0 >> object & 1 == 1)
    }
}

/// How a node finds what it has written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Writes {
    /// A write fault marks the object.
    Marked,
    /// A write fault makes the page writable, and its twin tells what was written.
    Compared,
    /// A write fault makes what is expected to be written next writable, and marks tell what was.
    Expected,
}

/// A program for a few nodes, and the properties that it has.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name of the program.
    pub name: &'static str,
    /// The operations of each node, before it finishes.
    pub nodes: Vec<Vec<Op>>,
    /// The node that allocates each object, before anything else unless the program says when.
    /// [`None`] is a place in a row of zeros, which node 0 allocated and of which no node has a
    /// copy.
    pub objects: Vec<Option<u8>>,
    /// The protocol of the objects.
    pub coherence: Coherence,
    /// Objects of the program that are leaves of one shared object: 1, or more where nodes write
    /// different parts of it.
    pub leaves: u8,
    /// Elements of the one array, which began as zeros on no node; node 0 allocated it.
    pub elements: usize,
    /// Objects that travel with another one, each behind its owner.
    pub owned: Vec<(u8, u8)>,
    /// References that misses ask to follow: what each leads to, behind the object that has it.
    pub followed: Vec<(u8, u8)>,
    /// Counters with operations, and where each is kept at first.
    pub counters: Vec<Strategy>,
    /// Whether the results of its operations are checked as a litmus test: the program only calls
    /// counters.
    pub litmus: bool,
    /// No two nodes access an object at once, one of them writing.
    pub race_free: bool,
    /// Every run ends with all nodes finished.
    pub deadlock_free: bool,
    /// The treatment of races.
    pub races: Races,
    /// The number of times that a wait may seem long, at any time.
    pub impatience: u8,
    /// How many intervals the nodes log before they collect or compact them.
    pub limits: LogLimits,
    /// A miss fetches all invalid objects of the page, on which all objects lie.
    pub aggregates: bool,
    /// A miss of elements reads those around ahead, by blocks of two and of four, and so does one
    /// of an object.
    pub reads_ahead: bool,
    /// Objects are young when the program begins.
    pub young: bool,
    /// How a node finds what it has written.
    pub writes: Writes,
    /// Nodes see each other's memory, and read objects there.
    pub sees: bool,
    /// Exclusive objects are withdrawn from a worker that computes.
    pub withdraws: bool,
    /// Exclusive objects are behind gates.
    pub gates: bool,
    /// After how many unread versions an object is exclusive, where they do.
    pub exclusive_after: u8,
    /// Barriers begin with rounds where no node is expected to have news, and so many of the first
    /// are expected to be so.
    pub rounds: Option<u32>,
}

impl Program {
    /// A race-free and deadlock-free program without objects, on nodes that are patient.
    pub fn new(name: &'static str, nodes: Vec<Vec<Op>>) -> Program {
        assert!(
            (1..=MOST_NODES).contains(&nodes.len()),
            "{name}: 1 to {MOST_NODES} nodes"
        );
        Program {
            name,
            nodes,
            objects: Vec::new(),
            coherence: Coherence::default(),
            leaves: 1,
            elements: 0,
            owned: Vec::new(),
            followed: Vec::new(),
            counters: Vec::new(),
            litmus: false,
            race_free: true,
            deadlock_free: true,
            races: Races::Ignore,
            impatience: 0,
            limits: LogLimits::default(),
            aggregates: false,
            reads_ahead: false,
            young: false,
            writes: Writes::Marked,
            sees: false,
            withdraws: false,
            gates: false,
            exclusive_after: 0,
            rounds: None,
        }
    }

    /// With objects that these nodes allocated.
    pub fn objects(self, creators: &[u8]) -> Program {
        Program {
            objects: creators.iter().copied().map(Some).collect(),
            ..self
        }
    }

    /// What a miss asks to follow: the references of the one type that all objects have.
    pub fn follow(&self) -> Follow {
        let all = FollowedReferences {
            shipped: 0,
            slots: 1,
        };
        match self.followed.is_empty() {
            true => Follow::default(),
            false => Follow {
                most: MOST_ALONG as u16,
                references: [all].into_iter().collect(),
            },
        }
    }

    /// Under this protocol.
    pub fn under(self, coherence: Coherence) -> Program {
        Program { coherence, ..self }
    }

    /// Where so many objects in a row are leaves of one shared object.
    pub fn in_leaves(self, leaves: u8) -> Program {
        Program { leaves, ..self }
    }

    /// With objects that no node has written: places in a row of zeros.
    pub fn zeros(self, count: usize) -> Program {
        Program {
            objects: vec![None; count],
            ..self
        }
    }

    /// With an array of as many elements.
    pub fn elements(self, count: usize) -> Program {
        Program {
            elements: count,
            ..self
        }
    }

    /// Where elements and objects are read ahead.
    pub fn reading_ahead(self) -> Program {
        Program {
            reads_ahead: true,
            ..self
        }
    }

    /// Where objects are young when the program begins.
    pub fn young(self) -> Program {
        Program {
            young: true,
            ..self
        }
    }

    /// Where the first object of each pair owns the second.
    pub fn owning(self, owned: &[(u8, u8)]) -> Program {
        Program {
            owned: owned.to_vec(),
            ..self
        }
    }

    /// Where the first object of each pair refers to the second, and misses follow that.
    pub fn following(self, followed: &[(u8, u8)]) -> Program {
        Program {
            followed: followed.to_vec(),
            ..self
        }
    }

    /// Where nodes race for an object.
    pub fn racy(self) -> Program {
        Program {
            race_free: false,
            ..self
        }
    }

    /// On nodes that look for races.
    pub fn finding(self, races: Races) -> Program {
        Program { races, ..self }
    }

    /// Whether all races must be found: nothing but a barrier orders anything. A lock's grant
    /// carries notices of more than what came before the release, so a run may miss races that
    /// another run shows. If several nodes race for a leaf at home, the home reports one other node
    /// to each.
    pub(crate) fn tells_all_races(&self) -> bool {
        let locks = |op: &Op| matches!(op, Op::Acquire(_));
        let pairs = !self.coherence.properties().has_home || self.nodes.len() == 2;
        self.races.finds_all() && pairs && !self.nodes.iter().flatten().any(locks)
    }

    /// Where a miss fetches all objects that were here and are invalid.
    pub fn aggregating(self) -> Program {
        Program {
            aggregates: true,
            ..self
        }
    }

    /// Where a write fault makes all objects writable, and their twins tell which were written.
    pub fn comparing(self) -> Program {
        Program {
            writes: Writes::Compared,
            ..self
        }
    }

    /// Where a write fault makes those objects writable as well that the node is expected to write
    /// next.
    pub fn expecting(self) -> Program {
        Program {
            writes: Writes::Expected,
            ..self
        }
    }

    /// As above, and exclusive objects are withdrawn from a worker that computes.
    pub fn withdrawing(self) -> Program {
        Program {
            withdraws: true,
            ..self.expecting()
        }
    }

    /// Where nodes read objects in the memory of others.
    pub fn seeing(self) -> Program {
        Program { sees: true, ..self }
    }

    /// Where nodes read objects in the memory of others, and those that nobody reads stay clean for
    /// so many versions.
    pub fn seeing_clean(self, exclusive_after: u8) -> Program {
        Program {
            exclusive_after,
            ..self.seeing()
        }
    }

    /// As above, and exclusive objects are behind gates, and withdrawn from a worker that computes.
    pub fn gating(self) -> Program {
        Program {
            gates: true,
            ..self.seeing().withdrawing()
        }
    }

    /// Where all barriers begin with rounds, until a node has news.
    pub fn by_rounds(self) -> Program {
        self.by_rounds_from(u32::MAX)
    }

    /// Where so many of the first barriers begin with rounds.
    pub fn by_rounds_from(self, first: u32) -> Program {
        Program {
            rounds: Some(first),
            ..self
        }
    }

    /// Where nodes may come to wait for each other.
    pub fn deadlocking(self) -> Program {
        Program {
            deadlock_free: false,
            ..self
        }
    }

    /// Where logs of intervals are collected and compacted from these lengths on.
    pub fn logging(self, collect_from: usize, compact_from: usize) -> Program {
        let limits = LogLimits {
            collect_from,
            compact_from,
            ..self.limits
        };
        Program { limits, ..self }
    }

    /// Where an interval is sent as the difference from one of the last so many of its node,
    /// however short.
    pub fn reducing(self, intervals: u32) -> Program {
        let reach = Reach {
            intervals,
            ranges: 1,
        };
        let limits = LogLimits {
            reach,
            ..self.limits
        };
        Program { limits, ..self }
    }

    /// Where waits seem long, at any time, this often in a run.
    pub fn impatient(self, times: u8) -> Program {
        Program {
            impatience: times,
            ..self
        }
    }
}

/// The first object of a program. Its id takes many bytes. So an interval that wrote the same as
/// the one before takes fewer bytes as a difference.
const FIRST: u64 = 1 << 49;

impl Program {
    /// The shared objects that a node allocated before the program begins.
    pub(crate) fn allocated_before(&self, node: usize) -> impl Iterator<Item = Oid> {
        let later = move |object| self.nodes[node].contains(&Op::Alloc(object));
        let at_home = self.coherence.properties().has_home;
        let here = move |object: &u8| {
            let creator = self.objects[usize::from(*object)];
            let creator = creator.or(at_home.then_some(0));
            creator.is_some_and(|creator| usize::from(creator) == node) && !later(*object)
        };
        let first = |object: &u8| object.is_multiple_of(self.leaves);
        let objects = (0..self.objects.len() as u8).filter(first).filter(here);
        objects.map(|object| self.oid(object))
    }

    /// The id of the shared object that has this object of the program as a leaf.
    pub(crate) fn oid(&self, object: u8) -> Oid {
        Oid(FIRST + u64::from(object / self.leaves))
    }

    /// The objects of the program that are leaves of a shared one.
    pub(crate) fn leaves(&self, oid: Oid) -> Range<usize> {
        let leaves = usize::from(self.leaves);
        oid.slot() * leaves..(oid.slot() + 1) * leaves
    }

    /// The objects of a race, by numbers: in each of these ranges there must have been a race. An
    /// object races as a whole, elements each for itself.
    pub(crate) fn raced(&self, raced: Raced) -> Vec<Range<usize>> {
        let place = |element| self.objects.len() + element as usize;
        match raced {
            Raced::Object(oid) => vec![self.leaves(oid)],
            Raced::Elements(elements) => {
                let each = elements.range().map(place);
                each.map(|at| at..at + 1).collect()
            }
        }
    }

    /// All shared objects.
    pub(crate) fn all(&self) -> OidRange {
        OidRange {
            first: self.oid(0),
            count: self.objects.len() as u32 / u32::from(self.leaves),
        }
    }
}

/// The lock of this number.
pub(crate) fn lock_id(lock: u8) -> LockId {
    LockId(u64::from(lock))
}

/// The node to ask for an object that no node is known to have written.
pub(crate) fn creator(program: &Program, object: u8) -> NodeId {
    NodeId(u16::from(program.objects[usize::from(object)].unwrap_or(0)))
}
