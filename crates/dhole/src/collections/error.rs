//! What can go wrong with containers.

use std::fmt::{self, Display};
use std::ops::Range;
use std::path::PathBuf;

use dhole_model::{CallSite, Counted, NodeId};
use dhole_node::object::ObjectError;
use dhole_node::{AccessError, CollectiveError, IntoError, SyncError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which vertices there are.
pub(super) struct Numbers(pub Range<u64>);

impl Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.clone() {
            Range { start, end } if start >= end => f.write_str("there are no vertices"),
            Range { start, end } if start + 1 == end => write!(f, "the only vertex is {start}"),
            Range { start, end } => write!(f, "the vertices are {start} to {}", end - 1),
        }
    }
}

/// The file of a graph cannot be read.
#[derive(Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("reading a graph from {}, line {line}: {cause}", file.display())]
pub struct GraphFileError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1 on; 0 if the file cannot be opened.
    pub line: u64,
    /// What is wrong.
    pub cause: String,
}

dhole_model::debug_in_words!(GraphFileError);

/// A graph cannot be made, or not be read.
#[derive(Clone, PartialEq, Error)]
pub enum GraphError {
    /// There is no such vertex.
    #[error(
        "vertex {vertex} of a graph on {node} at {site}: there is no such vertex; {}",
        Numbers(0..u64::from(*vertices))
    )]
    NoVertex {
        /// The vertex.
        vertex: u32,
        /// How many there are.
        vertices: u32,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// An arc from or to a vertex that there is not.
    #[error(
        "making a graph on {node} at {site}: arc {arc} of those that this node gives, counted from \
         0, leads from {from} to {to}; {}",
        Numbers(0..u64::from(*vertices))
    )]
    NoEnd {
        /// Its place in what this node gives.
        arc: u64,
        /// Where it begins.
        from: u32,
        /// Where it leads.
        to: u32,
        /// How many vertices there are.
        vertices: u32,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// The nodes want graphs of different sizes.
    #[error(
        "making a graph on {node} at {site}: a node wants {} and another {most}. All nodes pass \
         the same number",
        Counted(u64::from(*least), "vertex", "vertices")
    )]
    Differ {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// The fewest vertices that a node passed.
        least: u32,
        /// The most.
        most: u32,
    },
    /// More arcs begin at the vertices of a node than can be counted there.
    #[error(
        "making a graph on {node} at {site}: {arcs} arcs begin at the vertices of one node, and \
         the most is 4294967295. Use more nodes"
    )]
    TooManyArcs {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many arcs.
        arcs: u64,
    },
    /// The file of a graph cannot be read.
    #[error(transparent)]
    File(#[from] GraphFileError),
    /// The nodes could not exchange arcs.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// A part of the graph cannot be had.
    #[error(transparent)]
    Access(#[from] AccessError),
}

dhole_model::debug_in_words!(GraphError);

impl IntoError for GraphError {}

/// A call of a map or a set failed.
#[derive(Clone, PartialEq, Error)]
pub enum MapError {
    /// A function has no name by which another node could find it.
    #[error(
        "combining by {op} on {node} at {site}: this program has no name for the function. \
         Functions have names on Linux on x86-64 and AArch64, and all nodes run the same program"
    )]
    Unnamed {
        /// The function.
        op: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// A node answered with more or fewer values than it was asked for.
    #[error(
        "asking {from} for the values of {} on {node} at {site}: {} came. All nodes run the same \
         program",
        Counted(*wanted as u64, "key", "keys"),
        Counted(*came as u64, "value", "values")
    )]
    OtherCount {
        /// The node that answered.
        from: NodeId,
        /// The node that asked.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many keys.
        wanted: usize,
        /// How many values.
        came: usize,
    },
    /// The entries of a node cannot be frozen.
    #[error("freezing a map on {node} at {site}: that of {of} cannot be: {cause}")]
    Unfrozen {
        /// The node whose entries they are.
        of: NodeId,
        /// The node that reports it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        cause: String,
    },
    /// What a node has where an entry of a frozen map should be is none.
    #[error("reading a frozen map on {node} at {site}: what {from} has is no entry: {cause}")]
    Malformed {
        /// The node that has it.
        from: NodeId,
        /// The node that reads.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        cause: String,
    },
    /// An entry of a frozen map cannot be had.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// An operation on the entries of a node failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A node could not wait for the others.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The nodes could not combine what they have.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

dhole_model::debug_in_words!(MapError);

impl IntoError for MapError {}

/// A vector cannot grow, or not be read or written.
#[derive(Clone, PartialEq, Error)]
pub enum VecError {
    /// A node has extended its handle more often than another, or that of another vector.
    #[error(
        "extending a vector of {} on {node} at {site}: {other} extends one of {}, or another \
         vector. All nodes extend the same vectors in the same order",
        Counted(*len as u64, "element", "elements"),
        Counted(*its_len as u64, "element", "elements")
    )]
    Differ {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many elements its vector has.
        len: usize,
        /// The other node.
        other: NodeId,
        /// How many elements that one's has.
        its_len: usize,
    },
    /// There cannot be as many elements.
    #[error(
        "extending a vector on {node} at {site}: its elements would be more than can be numbered"
    )]
    TooLong {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// There are no such elements.
    #[error(
        "elements {}..{} of a vector of {len} on {node} at {site}: there are no such elements",
        places.start, places.end
    )]
    OutOfBounds {
        /// The elements.
        places: Range<usize>,
        /// How many there are.
        len: usize,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// The nodes could not exchange what they have.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// Elements cannot be had.
    #[error(transparent)]
    Access(#[from] AccessError),
}

dhole_model::debug_in_words!(VecError);

impl IntoError for VecError {}
