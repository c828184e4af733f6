//! The log of the runs, arrays and parts of ids that processes announce to each other, and how far
//! each of them knows it.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use dhole_model::{NodeId, Oid};
use dhole_registry::NoEntry;
use thiserror::Error;

use crate::directory::Directory;

/// The most runs that are known where others announce more, unless something else is said.
pub const MOST_LEARNT: usize = 1 << 22;

/// The runs that others may have to learn of, in the order in which they became known.
#[derive(Default)]
pub(crate) struct CatalogLog {
    pub(crate) entries: VecDeque<Entry>,
    /// How many there were ever.
    pub(crate) end: u64,
}

/// A run, an array, or a part of the ids.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) first: Oid,
    /// The ids of a part, which never go out of mind; 0 for a run or an array.
    pub(crate) part: u64,
    pub(crate) creator: NodeId,
    /// Who announced it, if it was not this node's own.
    pub(crate) from: NodeId,
}

/// How much of the log is announced to another node.
#[derive(Default)]
pub(crate) struct Progress {
    /// The number of the next entry to announce.
    pub(crate) next: AtomicU64,
    /// The end of the log when something was added to it last.
    pub(crate) behind: AtomicU64,
}

/// Why what another process announces of its objects is refused. Only a malicious process, or
/// another program, announces such things.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LearnError {
    /// The bytes are no list of runs.
    #[error("what it announces of its objects is malformed: {0}")]
    Malformed(postcard::Error),
    /// The type does not exist here.
    #[error("it announces objects of a type that is not known here: {0}")]
    Type(NoEntry),
    /// There is such a name here, but of no shared type.
    #[error("it announces objects of a type that is none: {name}")]
    NoType {
        /// What the name stands for.
        name: &'static str,
    },
    /// The ids are not in the part of one other node.
    #[error("it announces {ids} objects from {first} on, which are not one other node's")]
    Ids {
        /// The first.
        first: Oid,
        /// How many.
        ids: u64,
    },
    /// No node could store it, or its type cannot be had in this form.
    #[error("it announces {ids} times {len} {type_name} at {first}, which cannot be")]
    Impossible {
        /// The first id.
        first: Oid,
        /// Objects.
        ids: u64,
        /// Scalars in each row, or elements of the array.
        len: u64,
        /// Their type.
        type_name: &'static str,
    },
    /// A part of the ids cannot be that node's, or is not known to node 0.
    #[error("it announces {ids} ids from {first} on that would be {node}'s, which cannot be")]
    Part {
        /// The first.
        first: Oid,
        /// How many.
        ids: u64,
        /// The node.
        node: NodeId,
    },
    /// Something else is known of the ids.
    #[error("it announces {announced} at {first}, where something else is")]
    Clash {
        /// The first id.
        first: Oid,
        /// What is announced.
        announced: String,
    },
    /// It announces more than a node keeps in mind.
    #[error("it announces one run of objects more than the {most} that may be known")]
    TooMany {
        /// The most there may be.
        most: usize,
    },
}

impl CatalogLog {
    /// Adds a run, and says how many there were ever.
    pub(crate) fn add(&mut self, (first, part): (Oid, u64), creator: NodeId, from: NodeId) -> u64 {
        self.entries.push_back(Entry {
            number: self.end,
            first,
            part,
            creator,
            from,
        });
        self.end += 1;
        self.end
    }

    /// Drops what is announced to all, and what is left of runs that are forgotten.
    pub(crate) fn trim(&mut self, announced: u64, directory: &Directory, parts: usize) {
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.number < announced)
        {
            self.entries.pop_front();
        }
        let known = directory.runs_kept() + parts;
        if self.entries.len() > 2 * known + 1024 {
            self.entries
                .retain(|entry| entry.part > 0 || directory.begins_at(entry.first));
        }
    }
}
