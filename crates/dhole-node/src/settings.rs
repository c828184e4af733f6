//! The settings of a run.

use std::sync::Arc;
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::{Barriers, Coherence, Detector, MAX_NODES, NodeId, Placement};
use dhole_protocol::{Protocol, Races};

use crate::domain::Domains;
use crate::error::ConfigError;
use crate::optimisations::{Optimisations, WriteDetection};
use crate::parts::PartsMaker;
use crate::raw_memory::{MemoryConsistency, MemoryLayout, MemoryManagers};

/// If neighbours read clean objects here, an object is exclusive after it was written in so many
/// intervals in a row and read by no other node. A wrong guess costs a round trip; one more write
/// of an object that is not exclusive costs some 100 ns.
const EXCLUSIVE_AFTER: u8 = 16;

/// What every machine needs to know to run a program.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes of the cluster, 1 to [`MAX_NODES`].
    pub nodes: usize,
    /// How long a node waits before it looks for a deadlock.
    pub suspect_after: Duration,
    /// How objects are kept consistent unless their allocation says otherwise.
    pub coherence: Coherence,
    /// Where their copies lie.
    pub placement: Placement,
    /// What becomes of races.
    pub races: Races,
    /// How nodes learn that all have reached a barrier.
    pub barriers: Barriers,
    /// How accesses are detected that must not be made yet.
    pub detector: Detector,
    /// How the lazy protocol saves messages and faults.
    pub optimisations: Optimisations,
    /// Whether a node reads objects in the memory of nodes that it sees, without a message.
    pub one_sided: bool,
    /// Whether digests of replicas are kept, so that a comparison can name the operation after
    /// which they differ.
    pub watch_objects: bool,
    /// Whether the run goes on when nodes are lost, with the objects that are replicated.
    pub survive: bool,
    /// Which nodes have the same raw memory.
    pub domains: Domains,
    /// How allocations lie in raw memory.
    pub layout: MemoryLayout,
    /// Which node manages a minipage of raw memory.
    pub managers: MemoryManagers,
    /// When a node sees what others write in raw memory.
    pub consistency: MemoryConsistency,
    /// Parts of nodes that take messages without the node lock: raw memory.
    pub parts: Option<Arc<dyn PartsMaker>>,
}

impl Settings {
    /// A cluster of `nodes` nodes that look for a deadlock after 1 s and warn of races, under the
    /// lazy protocol, and check each access.
    pub fn nodes(nodes: usize) -> Settings {
        Settings {
            nodes,
            suspect_after: Duration::from_secs(1),
            coherence: Coherence::Lazy,
            placement: Placement::FirstTouch,
            races: Races::default(),
            barriers: Barriers::default(),
            detector: Detector::default(),
            optimisations: Optimisations::default(),
            one_sided: true,
            watch_objects: false,
            survive: false,
            domains: Domains::default(),
            layout: MemoryLayout::default(),
            managers: MemoryManagers::default(),
            consistency: MemoryConsistency::default(),
            parts: None,
        }
    }

    /// The protocol of one of the nodes of a cluster, before anything has happened.
    pub(crate) fn protocol(&self, id: NodeId, cluster: &Cluster) -> Protocol {
        let limits = self.optimisations.limits();
        let mut protocol = Protocol::with(id, self.nodes, limits, self.races);
        if self.survive {
            protocol.survive();
        }
        if self.barriers == Barriers::Dissemination {
            // Programs write what they begin with before their first barrier.
            protocol = protocol.disseminating(0);
        }
        if let Some(pages) = cluster.pages() {
            protocol = protocol.paging(pages);
        }
        if cluster.publishes(id) {
            protocol = protocol.publishing(EXCLUSIVE_AFTER);
        }
        match self.optimisations.write_detection {
            WriteDetection::Marks if self.learns() && self.nodes > 1 => {
                protocol.expecting_writes().withdrawing()
            }
            WriteDetection::Marks if self.learns() => protocol.expecting_writes(),
            WriteDetection::Marks => protocol,
            WriteDetection::Twins | WriteDetection::Objects => protocol.comparing(),
        }
    }

    /// Whether nodes learn from what a program did what it will do.
    fn learns(&self) -> bool {
        let Optimisations {
            learn,
            write_detection,
            ..
        } = self.optimisations;
        learn && self.detector == Detector::Check && write_detection == WriteDetection::Marks
    }

    /// Whether nodes learn which references a program follows.
    pub(crate) fn learns_graphs(&self) -> bool {
        self.learns() && self.nodes > 1 && self.coherence != Coherence::TreadMarks
    }

    /// Where copies lie: TreadMarks has all of them at one place everywhere.
    pub(crate) fn placement(&self) -> Placement {
        match self.coherence {
            Coherence::TreadMarks => Placement::Everywhere,
            _ => self.placement,
        }
    }

    /// Whether nodes that see each other's memory read objects there: a run that survives losses
    /// asks those that hold them.
    pub(crate) fn reads_there(&self) -> bool {
        let by_objects = self.coherence != Coherence::TreadMarks;
        let can = dhole_heap::READS_NEIGHBOURS && self.one_sided;
        can && by_objects && self.nodes > 1 && !self.survive
    }

    pub(crate) fn check(&self) -> Result<usize, ConfigError> {
        if self.detector == Detector::Vm && self.placement() == Placement::Everywhere {
            return Err(ConfigError::VmPlacesByTouch);
        }
        if self.survive && self.placement() == Placement::Everywhere {
            return Err(ConfigError::NothingSurvives);
        }
        if self.survive && self.parts.is_some() {
            return Err(ConfigError::MemoryDoesNotSurvive);
        }
        if self.detector == Detector::Vm && self.parts.is_some() {
            return Err(ConfigError::VmAndMemory);
        }
        let isolates = self.layout == MemoryLayout::Isolate && self.parts.is_some();
        if isolates && self.domains != Domains::Node {
            let domains = self.domains;
            return Err(ConfigError::IsolatedDomains { domains });
        }
        if isolates && self.managers == MemoryManagers::One {
            return Err(ConfigError::IsolatedManager);
        }
        let twins = self.optimisations.write_detection != WriteDetection::Marks;
        match twins && self.races.finds_all() {
            true => Err(ConfigError::TwinsMissRaces),
            false => check_nodes(self.nodes),
        }
    }
}

/// Checks a number of nodes.
///
/// # Errors
/// [`ConfigError::Nodes`] when there are none or more than [`MAX_NODES`].
pub fn check_nodes(nodes: usize) -> Result<usize, ConfigError> {
    match nodes {
        1..=MAX_NODES => Ok(nodes),
        _ => Err(ConfigError::Nodes {
            nodes,
            most: MAX_NODES,
        }),
    }
}
