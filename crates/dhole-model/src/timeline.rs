use serde::{Deserialize, Serialize};

use crate::{CallSite, Phase};

/// The waits of one node in the order of their ends, for a picture of the run. Its size is bounded:
/// of very many waits the shortest are left out.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// When the program began on the node, in nanoseconds since the nodes began the run together.
    pub began_ns: u64,
    /// How long the program took on the node, in nanoseconds of its clock.
    pub took_ns: u64,
    /// Processor time of the worker's own thread in that time; none in a simulation.
    pub processor_ns: u64,
    /// Where the node waited.
    pub places: Vec<TimelinePlace>,
    /// The waits.
    pub spans: Vec<TimelineSpan>,
    /// How many waits are left out.
    pub left_out: u64,
    /// How long they took in all, in nanoseconds.
    pub left_out_ns: u64,
}

/// A line of the program, and the thing for which a worker waited there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimelinePlace {
    /// The line.
    pub site: CallSite,
    /// The phase that the waits are.
    pub phase: Phase,
    /// The type of the object that was missed, or the name of the operation; empty for others.
    pub what: String,
}

/// The track of a node on which a wait is drawn. Waits of one track do not overlap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Track {
    /// A process of the node. Number 0 is the program.
    Process(u32),
    /// A thread of the node that uses raw memory beside the worker, by its number.
    Thread(u32),
}

/// A wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimelineSpan {
    /// Its place in [`Timeline::places`].
    pub place: u32,
    /// Where it is drawn.
    pub track: Track,
    /// When it began, in nanoseconds of the node's clock, which begins with the program.
    pub began_ns: u64,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
    /// The processor time that the wait took, if that was looked at.
    pub processor_ns: Option<u64>,
    /// How many of its kind it stands for: one-sided reads are sampled.
    pub stands_for: u32,
}
