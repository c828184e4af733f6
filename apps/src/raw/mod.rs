//! What the programs over raw memory share: their options, numbers of either precision, how rows
//! are cut into minipages, and what is reported of the memory.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod rows;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use rows::{Float, shown, with};

/// How many bytes a float has.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Element {
    /// 4.
    F32,
    /// 8.
    #[default]
    F64,
}

/// What is a minipage.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Granularity {
    /// What the program allocates.
    #[default]
    Allocation,
    /// What the program allocates, with neighbours that come with it: as many as nodes use.
    Adaptive,
    /// A page, whatever lies on it: no control of false sharing (MultiView, section 4.4).
    Page,
}

/// How a program reads many rows of other nodes.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Reads {
    /// Each access waits for its row.
    #[default]
    Each,
    /// All rows are fetched in one round of messages before the first is read.
    Round,
    /// The same, and they are copied in the order of the memory object, so no page is opened.
    Coarse,
}

/// How rows are cut into minipages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// What is a minipage.
    pub granularity: Granularity,
    /// Rows in a minipage, where it is no page.
    pub chunk: usize,
}

impl Cut {
    /// Each row is a minipage.
    pub const ROWS: Cut = Cut {
        granularity: Granularity::Allocation,
        chunk: 1,
    };
}
