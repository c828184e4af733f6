use dhole::Coherence;

/// Elements of an array: of a few blocks.
pub const ARRAY_LEN: usize = 400;

/// Arrays: one of records, one of scalars.
pub const ARRAYS: usize = 2;

/// The elements from `start` up to `end` of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Which array.
    pub array: usize,
    /// The first element.
    pub start: usize,
    /// The end.
    pub end: usize,
}

impl Part {
    /// The elements that [`Action::Update`] adds to.
    pub(crate) fn updated(self) -> impl DoubleEndedIterator<Item = usize> {
        (self.start..self.end).step_by(2)
    }
}

/// Sums: objects with operations, kept on the first node, on the last, and on all.
pub const SUMS: usize = 3;

/// Scalars in a row.
pub const ROW_LEN: usize = 24;

/// An action of a node. Items and rows have numbers. An item is found through its slot, a shared
/// object of its own with the item's reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Allocates items with consecutive numbers.
    Alloc {
        /// The first item.
        first: usize,
        /// How many.
        count: usize,
    },
    /// Reads an item.
    Read(usize),
    /// Reads an item and writes it.
    Write(usize, u64),
    /// Puts a value in the place of an item, which refers to none then.
    Put(usize, u64),
    /// Makes an item refer to another one.
    Link(usize, usize),
    /// Reads an item and those that follow it, up to as many.
    Walk(usize, usize),
    /// Writes one item while it reads another.
    Combine(usize, usize),
    /// Adds to an item, under its lock.
    Add(usize, u64),
    /// Takes from one item and adds to one with a higher number, under both locks.
    Move(usize, usize, u64),
    /// Reads a row.
    ReadRow(usize),
    /// Writes a scalar of a row.
    WriteRow(usize, usize, u64),
    /// Adds to a scalar of a row, under the row's lock.
    AddToRow(usize, usize, u64),
    /// Reads elements.
    ReadPart(Part),
    /// Makes elements readable, and leaves them unread.
    Prefetch(Part),
    /// Reads elements and writes them.
    WritePart(Part, u64),
    /// Overwrites elements without reading them.
    Overwrite(Part, u64),
    /// Adds to the first of some elements, under the array's lock.
    AddToPart(Part, u64),
    /// Adds to every second of some elements of the array of scalars, the last first, by updates
    /// that are combined when the node synchronises.
    Update(Part, u64),
    /// Starts as many operations, each of which adds to a sum, and waits for none.
    Start(usize, u64, u64),
    /// Reads a sum.
    ReadSum(usize),
    /// Computes.
    Work(u64),
    /// Ends the borrow epoch.
    Pause,
}

/// The end of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A barrier.
    Barrier,
    /// A value from node 0.
    Once,
    /// A value from each node for each node.
    AllToAll,
    /// Everything changes protocol.
    Switch(Coherence),
}

/// The actions of all nodes up to a synchronisation of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// The actions of each node.
    pub actions: Vec<Vec<Action>>,
    /// How they meet.
    pub end: End,
}

/// A program. After its last phase all nodes read everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Nodes.
    pub nodes: usize,
    /// Items that there may be.
    pub items: usize,
    /// Rows of [`ROW_LEN`] scalars.
    pub rows: usize,
    /// Whether each allocation has a protocol of its own, and not that of the run.
    pub mixed: bool,
    /// Whether there are sums. Operations bring write notices along, so what loses notices shows
    /// less often where there are some.
    pub sums: bool,
    /// The phases.
    pub phases: Vec<Phase>,
}

impl Program {
    /// The protocol of the objects that are allocated with this item first.
    pub(crate) fn coherence(&self, first: usize, default: Coherence) -> Coherence {
        match self.mixed && !default.properties().keeps_pages() {
            true => Coherence::BY_OBJECT[first % Coherence::BY_OBJECT.len()],
            false => default,
        }
    }
}

/// The contribution of a read item or row to a node's digest.
pub(crate) fn digest(so_far: u64, value: u64) -> u64 {
    let mixed = (so_far ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// The value after a write.
pub(crate) fn written(before: u64, with: u64) -> u64 {
    before.wrapping_mul(31).wrapping_add(with)
}
