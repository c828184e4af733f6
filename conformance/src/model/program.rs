use dhole_model::{NodeId, Oid};
use dhole_protocol::{LockId, LogLimits};

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
    /// Allocates an object.
    Alloc(u8),
    /// Acquires a lock.
    Acquire(u8),
    /// Releases it.
    Release(u8),
    /// Waits at a barrier.
    Barrier,
    /// Waits at a barrier to which node 0 brings a value.
    Once,
    /// Ends the borrow epoch.
    Pause,
}

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

/// A program for a few nodes, and what is true of it.
#[derive(Clone, Debug)]
pub struct Program {
    /// What the program is called.
    pub name: &'static str,
    /// What each node does, before it finishes.
    pub nodes: Vec<Vec<Op>>,
    /// Which node allocates each object, before anything else happens where the program does not
    /// say when; [`None`] is a place in a row of zeros, which node 0 allocated and nobody has a
    /// copy of.
    pub objects: Vec<Option<u8>>,
    /// No two nodes access an object at once, one of them writing.
    pub race_free: bool,
    /// Every run ends with all nodes finished.
    pub deadlock_free: bool,
    /// Messages about a wait that has lasted long may come this often, at any time.
    pub impatience: u8,
    /// How many intervals the nodes log before they collect or compact them.
    pub limits: LogLimits,
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
            race_free: true,
            deadlock_free: true,
            impatience: 0,
            limits: LogLimits::default(),
        }
    }

    /// With objects that these nodes allocated.
    pub fn objects(self, creators: &[u8]) -> Program {
        Program {
            objects: creators.iter().copied().map(Some).collect(),
            ..self
        }
    }

    /// With objects that nobody has written: places in a row of zeros.
    pub fn zeros(self, count: usize) -> Program {
        Program {
            objects: vec![None; count],
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

impl Program {
    /// The objects that a node allocated before the program begins.
    pub(crate) fn allocated_before(&self, node: usize) -> impl Iterator<Item = u8> {
        let later = move |object| self.nodes[node].contains(&Op::Alloc(object));
        let here = move |object: &u8| {
            let creator = self.objects[usize::from(*object)];
            creator.is_some_and(|creator| usize::from(creator) == node) && !later(*object)
        };
        (0..self.objects.len() as u8).filter(here)
    }
}

/// The id of the object of this number.
pub(crate) fn oid(object: u8) -> Oid {
    Oid(dhole_model::CHUNK + u64::from(object))
}

/// The number of the object of this id.
pub(crate) fn object(oid: Oid) -> usize {
    oid.slot()
}

/// The lock of this number.
pub(crate) fn lock_id(lock: u8) -> LockId {
    LockId(u64::from(lock))
}

/// The node that is asked for an object which nobody is known to have written.
pub(crate) fn creator(program: &Program, object: u8) -> NodeId {
    NodeId(u16::from(program.objects[usize::from(object)].unwrap_or(0)))
}
