//! The settings of a run.

use std::fmt;
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
use crate::set_by::{Said, SetBy};

/// If neighbours read clean objects here, and there are no gates, an object is exclusive after it
/// was written in so many intervals in a row and read by no other node. A wrong guess costs a round
/// trip; one more write of an object that is not exclusive costs some 100 ns.
const EXCLUSIVE_AFTER: u8 = 16;

// Why two settings contradict each other, and what to do.
const WHOLE_PAGES: &str = "treadmarks keeps whole pages consistent, with several writers";
const VM_PLACES_BY_TOUCH: &str =
    "vm stores objects where a node first touches them: take the detector check";
const NOTHING_SURVIVES: &str = "what survives is written in replicated objects with operations, \
    which that has none of: set one of the two";
const MEMBERS_ASK: &str = "its nodes ask each other by message, and read no object one-sided";
const SURVIVORS_ASK: &str =
    "nodes that survive losses ask each other by message, and read no object one-sided";
const MEMORY_DIES: &str = "what raw memory holds may be on one node alone";
const BOTH_HANDLE_FAULTS: &str = "vm handles faults of its own: take the detector check";
const NO_COPIES_ARE_SENT: &str = "an overflow is found where copies are sent, and nodes that have \
    the same pages send none: take a memory for each node (--domains node)";
const ALLOCATOR_MAKES_RED_ZONES: &str = "the node that allocates makes the red zones, so it \
    manages what it allocates (--managers allocator)";
const TWINS_MISS_RACES: &str = "a comparison with twins overlooks a write of what was there \
    before: detect writes by marks, or warn of races that show";

/// Makes the struct, and what lists its fields.
macro_rules! listed {
    ($($(#[$docs:meta])* pub $field:ident: $type:ty,)*) => {
        /// What every machine needs to know to run a program.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[$docs])* pub $field: $type,)*
            /// Where they were set, for errors.
            pub set_by: SetBy,
            /// Whether each node records when it waits. Nodes need not agree on it.
            pub records: bool,
        }

        impl Settings {
            /// Each setting with its value, in words.
            pub(crate) fn in_words(&self) -> Vec<String> {
                vec![$(format!("{}: {:?}", stringify!($field), self.$field)),*]
            }
        }
    };
}

listed! {
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
    /// Whether sections run at the home of their lock's object; otherwise at their callers.
    pub sections: bool,
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
            coherence: Coherence::default(),
            placement: Placement::FirstTouch,
            races: Races::default(),
            barriers: Barriers::default(),
            detector: Detector::default(),
            optimisations: Optimisations::default(),
            one_sided: true,
            sections: true,
            watch_objects: false,
            survive: false,
            domains: Domains::default(),
            layout: MemoryLayout::default(),
            managers: MemoryManagers::default(),
            consistency: MemoryConsistency::default(),
            parts: None,
            set_by: SetBy::default(),
            records: false,
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
            if self.learns() && cluster.keeps_gates(id) {
                protocol = protocol.gating();
            }
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

    /// Whether nodes learn which references a program follows, and read elements ahead.
    pub(crate) fn learns_graphs(&self) -> bool {
        self.learns() && self.nodes > 1 && !self.keeps_pages()
    }

    /// Whether pages are kept consistent, and not objects.
    pub(crate) fn keeps_pages(&self) -> bool {
        self.coherence.properties().keeps_pages()
    }

    /// Where copies lie. A page is at one place everywhere.
    pub(crate) fn placement(&self) -> Placement {
        match self.keeps_pages() {
            true => Placement::Everywhere,
            false => self.placement,
        }
    }

    /// Whether nodes that see each other's memory read objects there: a run that survives losses
    /// asks those that hold them.
    pub(crate) fn reads_there(&self) -> bool {
        let can = dhole_heap::READS_NEIGHBOURS && self.one_sided;
        can && !self.keeps_pages() && self.nodes > 1 && !self.survive
    }

    pub(crate) fn check(&self) -> Result<usize, ConfigError> {
        match self.conflict() {
            Some(conflict) => Err(conflict),
            None => self.check_managers().and_then(|()| check_nodes(self.nodes)),
        }
    }

    /// Checks that the nodes that manage raw memory are of the run.
    pub(crate) fn check_managers(&self) -> Result<(), ConfigError> {
        let nodes = self.nodes;
        let mut chosen = self.managers.chosen().iter();
        match chosen.find(|it| it.index() >= nodes) {
            Some(&node) if self.parts.is_some() && nodes > 0 => {
                Err(ConfigError::Manager { node, nodes })
            }
            _ => Ok(()),
        }
    }

    /// The first two settings that contradict each other.
    fn conflict(&self) -> Option<ConfigError> {
        let said = |is: bool, setting: &'static str, value: &dyn fmt::Display| {
            let (value, by) = (value.to_string(), self.set_by.of(setting));
            is.then_some(Said { setting, value, by })
        };
        let is_set = |setting| self.set_by.of(setting).is_some();
        let isolates = self.layout == MemoryLayout::Isolate && self.parts.is_some();
        let detection = self.optimisations.write_detection;
        let (first_touch, looked_for) = (Placement::FirstTouch, self.races != Races::Ignore);
        let placed = |at| self.placement == at && (at != first_touch || is_set("placement"));

        let pages = || said(self.keeps_pages(), "coherence", &self.coherence);
        let placement = |at: Placement| said(placed(at), "placement", &at);
        let at_one_place = || pages().or_else(|| placement(Placement::Everywhere));
        let races = |is| said(is, "races", &self.races);
        let vm = || said(self.detector == Detector::Vm, "detector", &self.detector);
        let survive = || said(self.survive, "survive", &"on");
        let memory = || said(self.parts.is_some(), "memory", &"raw memory");
        let layout = || said(isolates, "memory_layout", &self.layout);
        let domains = said(self.domains != Domains::Node, "domains", &self.domains);
        let managers = said(
            self.managers != MemoryManagers::Allocator,
            "memory_managers",
            &self.managers,
        );
        let twins = said(
            detection != WriteDetection::Marks,
            "optimisations",
            &detection,
        );
        let optimised = said(is_set("optimisations"), "optimisations", &"of objects");
        let one_sided = || said(is_set("one_sided") && self.one_sided, "one_sided", &"on");
        let has_versions = self.coherence.properties().has_versions();
        let unversioned = said(!has_versions, "coherence", &self.coherence);
        let conflicts = [
            (pages(), optimised, WHOLE_PAGES),
            (pages(), placement(first_touch), WHOLE_PAGES),
            (pages(), races(is_set("races") && looked_for), WHOLE_PAGES),
            (pages(), one_sided(), WHOLE_PAGES),
            (unversioned, one_sided(), MEMBERS_ASK),
            (survive(), one_sided(), SURVIVORS_ASK),
            (vm(), at_one_place(), VM_PLACES_BY_TOUCH),
            (survive(), at_one_place(), NOTHING_SURVIVES),
            (survive(), memory(), MEMORY_DIES),
            (vm(), memory(), BOTH_HANDLE_FAULTS),
            (layout(), domains, NO_COPIES_ARE_SENT),
            (layout(), managers, ALLOCATOR_MAKES_RED_ZONES),
            (races(self.races.finds_all()), twins, TWINS_MISS_RACES),
        ];
        let conflict = |(one, other, why)| {
            let both = Box::new([one?, other?]);
            Some(ConfigError::Conflict { both, why })
        };
        conflicts.into_iter().find_map(conflict)
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
