//! Settings of a run's raw memory, beside its domains.

use std::fmt;
use std::str::FromStr;

/// How allocations lie in raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemoryLayout {
    /// Several on a page, each in a view of its own.
    #[default]
    Views,
    /// Each on pages of its own, with a red zone behind it: a pattern that is checked where a copy
    /// is sent or taken away, at `free`, and at the end of the program. Freed space is not
    /// allocated again. It needs a memory for each node ([`Domains::Node`](crate::Domains)).
    Isolate,
}

impl MemoryLayout {
    /// All of them.
    pub const ALL: [MemoryLayout; 2] = [MemoryLayout::Views, MemoryLayout::Isolate];

    /// What it is called: `views` or `isolate`.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryLayout::Views => "views",
            MemoryLayout::Isolate => "isolate",
        }
    }
}

impl fmt::Display for MemoryLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name is none of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`views` or `isolate`")]
pub struct UnknownLayout;

impl FromStr for MemoryLayout {
    type Err = UnknownLayout;

    fn from_str(name: &str) -> Result<MemoryLayout, UnknownLayout> {
        let mut all = MemoryLayout::ALL.into_iter();
        all.find(|layout| layout.name() == name)
            .ok_or(UnknownLayout)
    }
}

/// Which node manages a minipage of raw memory: it knows who has copies, and all others ask it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemoryManagers {
    /// The node that has allocated it.
    #[default]
    Allocator,
    /// Node 0, as in the paper (MultiView and Millipage, section 3.3). It has the whole table of
    /// minipages, so another node that allocates asks it and waits: two messages.
    One,
}

impl MemoryManagers {
    /// Both.
    pub const ALL: [MemoryManagers; 2] = [MemoryManagers::Allocator, MemoryManagers::One];

    /// What it is called: `allocator` or `one`.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryManagers::Allocator => "allocator",
            MemoryManagers::One => "one",
        }
    }
}

impl fmt::Display for MemoryManagers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name is none of managers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`allocator` or `one`")]
pub struct UnknownManagers;

impl FromStr for MemoryManagers {
    type Err = UnknownManagers;

    fn from_str(name: &str) -> Result<MemoryManagers, UnknownManagers> {
        let mut all = MemoryManagers::ALL.into_iter();
        all.find(|managers| managers.name() == name)
            .ok_or(UnknownManagers)
    }
}

/// When a node sees what others write in raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

impl MemoryConsistency {
    /// Both.
    pub const ALL: [MemoryConsistency; 2] =
        [MemoryConsistency::Sequential, MemoryConsistency::Release];

    /// What it is called: `sequential` or `release`.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryConsistency::Sequential => "sequential",
            MemoryConsistency::Release => "release",
        }
    }
}

impl fmt::Display for MemoryConsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name is none of a consistency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`sequential` or `release`")]
pub struct UnknownConsistency;

impl FromStr for MemoryConsistency {
    type Err = UnknownConsistency;

    fn from_str(name: &str) -> Result<MemoryConsistency, UnknownConsistency> {
        let mut all = MemoryConsistency::ALL.into_iter();
        all.find(|consistency| consistency.name() == name)
            .ok_or(UnknownConsistency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consistencies_have_names() {
        for consistency in MemoryConsistency::ALL {
            assert_eq!(consistency.to_string().parse(), Ok(consistency));
        }
        assert_eq!("lazy".parse::<MemoryConsistency>(), Err(UnknownConsistency));
    }

    #[test]
    fn managers_have_names() {
        for managers in MemoryManagers::ALL {
            assert_eq!(managers.to_string().parse(), Ok(managers));
        }
        assert_eq!("two".parse::<MemoryManagers>(), Err(UnknownManagers));
    }

    #[test]
    fn layouts_have_names() {
        for layout in MemoryLayout::ALL {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert_eq!("Isolate".parse::<MemoryLayout>(), Err(UnknownLayout));
    }
}
