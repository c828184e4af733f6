//! Settings of a run's raw memory, beside its domains.

use dhole_model::Variants;

/// How allocations lie in raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Variants)]
#[variants(name, setting)]
pub enum MemoryLayout {
    /// Several on a page, each in a view of its own.
    #[default]
    Views,
    /// Each on pages of its own, with a red zone behind it: a pattern that is checked where a copy
    /// is sent or taken away, at `free`, and at the end of the program. Freed space is not
    /// allocated again. It needs a memory for each node ([`Domains::Node`](crate::Domains)).
    Isolate,
}

/// Which node manages a minipage of raw memory: it knows who has copies, and all others ask it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Variants)]
#[variants(name, setting)]
pub enum MemoryManagers {
    /// The node that has allocated it.
    #[default]
    Allocator,
    /// Node 0, as in the paper (MultiView and Millipage, section 3.3). It has the whole table of
    /// minipages, so another node that allocates asks it and waits: two messages.
    One,
}

/// When a node sees what others write in raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Variants)]
#[variants(name, setting)]
pub enum MemoryConsistency {
    /// At once: accesses of different nodes have one order, which all of them see. One node writes
    /// a minipage at a time.
    #[default]
    Sequential,
    /// When it acquires what the writer has released since: a lock, a barrier. Until then nodes
    /// write a minipage together, each its own numbers. A program must order accesses of different
    /// nodes to one number so, unless all of them read.
    Release,
}
