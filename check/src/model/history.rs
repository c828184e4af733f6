//! The happens-before order of a run, by vector clocks that the protocol does not know.

use dhole_protocol::{Race, RacingWrite};

use crate::model::calls::Operations;
use crate::model::collecting::Called;
use crate::model::waiting::Turnstiles;
use crate::model::{Fault, MOST_NODES};

/// How many writes of each node happened before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Clock([u8; MOST_NODES]);

impl Clock {
    /// Takes the larger of both in every element.
    pub fn merge(&mut self, other: &Clock) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = (*mine).max(theirs);
        }
    }

    fn has_seen(&self, write: WriteId) -> bool {
        match write {
            WriteId::INITIAL => true,
            WriteId { node, tick } => self.0[usize::from(node)] >= tick,
        }
    }
}

/// A write, and the value that it wrote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId {
    node: u8,
    tick: u8,
}

impl WriteId {
    /// The value that an object has before anyone writes it.
    pub const INITIAL: WriteId = WriteId { node: 0, tick: 0 };

    /// The value of a leaf in a diff that was not written.
    pub const UNCHANGED: WriteId = WriteId {
        node: u8::MAX,
        tick: 0,
    };
}

impl std::fmt::Debug for WriteId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            WriteId::INITIAL => f.write_str("initial"),
            WriteId::UNCHANGED => f.write_str("unchanged"),
            WriteId { node, tick } => write!(f, "w{tick} of n{node}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Write {
    id: WriteId,
    object: u8,
    /// Which operation of the node it was, counted from 1.
    line: u8,
    /// The value that it wrote over.
    over: WriteId,
    /// Everything that happened before it, and the write itself.
    clock: Clock,
}

impl Write {
    fn races(&self, other: &Write) -> bool {
        !self.clock.has_seen(other.id) && !other.clock.has_seen(self.id)
    }
}

/// All writes and synchronisations of a run so far.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct History {
    nodes: [Clock; MOST_NODES],
    /// In the order of their ids, so that runs which differ in nothing else are one state.
    writes: Vec<Write>,
    /// Everything that happened before the last release of each lock, and the lock's holder.
    locks: Vec<(Clock, Option<u8>)>,
    /// Everything that happened before the arrivals at each barrier, and their number.
    barriers: Vec<(Clock, u8)>,
    /// Everything that happened before the calls of each collective.
    pub(crate) collectives: Vec<Called>,
    /// Objects that were freed.
    freed: Vec<u8>,
    /// Values sent while the interval that wrote them had not ended. Its version was still open, so
    /// no node could write a greater one.
    peeked: Vec<WriteId>,
    /// The races that were told of: the object and the two nodes, in order.
    races: Vec<(u8, [u8; 2])>,
    /// Read-write locks, semaphores and conditions.
    pub(crate) turnstiles: Turnstiles,
    /// Operations of counters.
    pub(crate) operations: Operations,
}

impl History {
    /// The value of a node's next write to an object.
    pub fn write(&mut self, node: usize, object: u8, line: usize, over: WriteId) -> WriteId {
        let clock = &mut self.nodes[node];
        clock.0[node] += 1;
        let id = WriteId {
            node: node as u8,
            tick: clock.0[node],
        };
        let write = Write {
            id,
            object,
            line: line as u8,
            over,
            clock: *clock,
        };
        let place = self.writes.partition_point(|other| other.id < id);
        self.writes.insert(place, write);
        id
    }

    /// A node frees an object. This counts as a write whose value no node may read.
    pub fn free(&mut self, node: usize, object: u8, line: usize) {
        self.write(node, object, line, WriteId::INITIAL);
        if let Err(place) = self.freed.binary_search(&object) {
            self.freed.insert(place, object);
        }
    }

    /// Whether a node has freed the object.
    pub fn was_freed(&self, object: usize) -> bool {
        self.freed.contains(&(object as u8))
    }

    /// Whether no other node's write to the object is concurrent with the node's next step.
    pub fn is_alone(&self, node: usize, object: u8) -> bool {
        let clock = &self.nodes[node];
        self.of(object).all(|write| clock.has_seen(write.id))
    }

    /// A node reads `value`. The value must not be older than the last write that happened before.
    /// No write over it, in order or in a race, may have happened before.
    pub fn read(&self, node: usize, object: u8, value: WriteId) -> Result<(), Fault> {
        let was_written = self.of(object).any(|write| write.id == value);
        let overwritten = self.of(object).any(|other| {
            let over = other.over == value && !self.peeked.contains(&value);
            let replaced = other.clock.has_seen(value) || over;
            other.id != value && self.nodes[node].has_seen(other.id) && replaced
        });
        match (was_written || value == WriteId::INITIAL) && !overwritten {
            true => Ok(()),
            false => Err(Fault::StaleRead),
        }
    }

    /// A value is sent that its writer may still be writing over.
    pub fn peeked(&mut self, value: WriteId) {
        if let Err(place) = self.peeked.binary_search(&value) {
            self.peeked.insert(place, value);
        }
    }

    /// A node tells of a race for an object of these leaves: for one of them where `each` is kept
    /// consistent for itself.
    pub fn told_of_race(
        &mut self,
        race: Race,
        leaves: impl Iterator<Item = usize> + Clone,
        each: bool,
    ) -> Result<(), Fault> {
        let is_side = |write: &&Write, side: RacingWrite| {
            let line = side.site.map(|site| site.line as u8);
            usize::from(write.id.node) == side.node.index()
                && leaves.clone().any(|leaf| leaf == usize::from(write.object))
                && line.is_none_or(|line| write.line == line)
        };
        let [first, second] = race.writes.map(|side| {
            let of_side = self.writes.iter().filter(|write| is_side(write, side));
            of_side.collect::<Vec<_>>()
        });
        let races = |a: &Write, b: &Write| a.races(b) && !(each && a.object != b.object);
        let real = first.iter().any(|a| second.iter().any(|b| races(a, b)));
        let nodes = race.writes.map(|side| side.node.index() as u8);
        for leaf in leaves.clone() {
            let told = (leaf as u8, nodes);
            if let Err(place) = self.races.binary_search(&told) {
                self.races.insert(place, told);
            }
        }
        match real {
            true => Ok(()),
            false => Err(Fault::PhantomRace),
        }
    }

    /// Whether any race was told of.
    pub fn has_told(&self) -> bool {
        !self.races.is_empty()
    }

    /// Whether two nodes have raced for an object and no node has reported it.
    pub fn keeps_a_race(&self) -> bool {
        let told = |a: &Write, b: &Write| {
            let nodes = [a.id.node, b.id.node];
            self.races.contains(&(a.object, nodes))
        };
        let mut pairs = self
            .writes
            .iter()
            .flat_map(|a| self.of(a.object).map(move |b| (a, b)));
        pairs.any(|(a, b)| a.id.node < b.id.node && a.races(b) && !told(a, b))
    }

    fn of(&self, object: u8) -> impl Iterator<Item = &Write> {
        self.writes
            .iter()
            .filter(move |write| write.object == object)
    }

    /// A node has got a lock.
    pub fn acquired(&mut self, node: usize, lock: u8) -> Result<(), Fault> {
        let (released, holder) = entry(&mut self.locks, lock);
        if holder.is_some() {
            return Err(Fault::TwoHolders);
        }
        *holder = Some(node as u8);
        self.nodes[node].merge(released);
        Ok(())
    }

    /// A node gives a lock back.
    pub fn released(&mut self, node: usize, lock: u8) {
        let (released, holder) = entry(&mut self.locks, lock);
        released.merge(&self.nodes[node]);
        *holder = None;
    }

    /// Everything that happened before the node's next step.
    pub(crate) fn clock(&self, node: usize) -> Clock {
        self.nodes[node]
    }

    /// Adds a clock to what happened before the node's next steps.
    pub(crate) fn hear(&mut self, node: usize, clock: &Clock) {
        self.nodes[node].merge(clock);
    }

    /// The holder of a lock.
    pub fn holder(&self, lock: u8) -> Option<usize> {
        self.locks.get(usize::from(lock))?.1.map(usize::from)
    }

    /// A node arrives at a barrier of this number.
    pub fn arrived(&mut self, node: usize, barrier: u8) {
        let (clock, arrived) = entry(&mut self.barriers, barrier);
        clock.merge(&self.nodes[node]);
        *arrived += 1;
    }

    /// A node leaves a barrier, which all `nodes` must have reached.
    pub fn departed(&mut self, node: usize, barrier: u8, nodes: usize) -> Result<(), Fault> {
        let (clock, arrived) = entry(&mut self.barriers, barrier);
        if usize::from(*arrived) != nodes {
            return Err(Fault::LeftBarrierEarly);
        }
        self.nodes[node].merge(clock);
        Ok(())
    }
}

pub(crate) fn entry<T: Clone + Default>(entries: &mut Vec<T>, index: u8) -> &mut T {
    let index = usize::from(index);
    if entries.len() <= index {
        entries.resize(index + 1, T::default());
    }
    &mut entries[index]
}
