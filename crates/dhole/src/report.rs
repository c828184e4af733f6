use std::time::Duration;

use dhole_model::{Counters, LineCosts, NodeId};
use dhole_node::{LostNode, MemoryConsistency, MemoryManagers, RaceReport};
#[cfg(feature = "sim")]
use dhole_sim::{Computation, Sim};

/// The result of a run: a value and a report.
#[derive(Debug)]
pub struct Run<R> {
    /// The result of node 0; if nodes are processes, of [this process's node](Run::node).
    pub value: R,
    /// How the run went.
    pub report: Report,
}

impl<R> Run<R> {
    /// The node to which this result and report belong. If nodes are processes, each process has
    /// its own, and a program prints its results on node 0 only.
    pub fn node(&self) -> NodeId {
        self.report.node
    }
}

/// The counters, times, races and warnings of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The node whose report it is: node 0, or, if nodes are processes, the node of this process.
    /// Then only node 0's report has the counters and reports of the other nodes.
    pub node: NodeId,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// The transport: `threads` or `sim`, or between processes the port, such as `tcp`.
    pub transport: &'static str,
    /// The protocol of objects whose allocation names no other: `lazy`, `update` or `home`.
    pub protocol: &'static str,
    /// The detector: `check` or `vm`.
    pub detector: &'static str,
    /// From the start of the run to the end of the slowest node; virtual in a simulation.
    pub elapsed: Duration,
    /// The counters of each node.
    pub per_node: Vec<Counters>,
    /// The counters of each node between [`begin_measuring`](crate::Worker::begin_measuring) and
    /// [`end_measuring`](crate::Worker::end_measuring), if the program calls them.
    pub measured_per_node: Option<Vec<Counters>>,
    /// The time of the measured part, from the first node that began to the last that ended. The
    /// clocks of processes are not compared: then it is the longest time that one of them took.
    pub measured_time: Option<Duration>,
    /// The measures that only a simulation has.
    pub simulated: Option<Simulated>,
    /// What the lines of the program cost by waiting, on all nodes of which the report has the
    /// counters; `println!("{}", run.report.lines())` shows the worst.
    pub costs: LineCosts,
    /// The same of the measured part of the program, if there is one.
    pub measured_costs: Option<LineCosts>,
    /// Whether nodes could read objects in the memory of others, without a message.
    pub one_sided: bool,
    /// The first few races that each node found, in the order of the objects.
    pub races: Vec<RaceReport>,
    /// Warnings for the author of the program: locks dropped unreleased, races.
    pub warnings: Vec<String>,
    /// The nodes that were lost while the run went on
    /// ([`Config::survive`](crate::Config::survive)), in the order of their loss.
    pub lost: Vec<LostNode>,
    /// How many domains of raw memory there were ([`Config::domains`](crate::Config::domains));
    /// none where the run has no raw memory.
    pub domains: Option<usize>,
    /// Which node managed a minipage of raw memory
    /// ([`Config::memory_managers`](crate::Config::memory_managers)); none where the run has no raw
    /// memory.
    pub managers: Option<MemoryManagers>,
    /// When nodes saw what others wrote in raw memory
    /// ([`Config::memory_consistency`](crate::Config::memory_consistency)); none where the run has
    /// no raw memory.
    pub consistency: Option<MemoryConsistency>,
}

impl Report {
    /// Whether this process prints the results, and its report has the counters of all nodes. It is
    /// the process of the lowest-numbered node that was left at the end.
    pub fn is_first(&self) -> bool {
        let before = (0..self.node.0).map(NodeId);
        let mut lost = before.map(|node| self.lost.iter().any(|lost| lost.node == node));
        lost.all(|lost| lost)
    }

    /// The sum of the nodes' counters.
    pub fn total(&self) -> Counters {
        total(&self.per_node)
    }

    /// The sum of the nodes' counters over the measured part of the program.
    pub fn measured(&self) -> Option<Counters> {
        self.measured_per_node.as_deref().map(total)
    }

    /// Bytes of page store that hold shared objects, averaged over the nodes.
    pub fn shared_bytes_per_node(&self) -> u64 {
        self.total().shared_bytes / self.nodes.max(1) as u64
    }
}

fn total(of: &[Counters]) -> Counters {
    let mut total = Counters::default();
    of.iter().for_each(|node| total.add(node));
    total
}

/// The measures that only a simulation has.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The name of the simulated network.
    pub network: String,
    /// Nanoseconds of a unit of work, if computation has fixed costs and is not measured.
    pub unit_ns: Option<f64>,
    /// The factor by which measured computation was multiplied.
    pub compute_scale: f64,
    /// Computation of each node, without waiting and without the runtime.
    pub computed: Vec<Duration>,
    /// Computation of the same program on one node, if the command `dhole` has measured it.
    pub alone: Option<Duration>,
    /// Messages that the network lost, and their senders sent again.
    pub lost: u64,
    /// The sum of the times for which messages queued for a switch's ports or a hub.
    pub queued: Duration,
}

impl Simulated {
    #[cfg(feature = "sim")]
    /// The measures of the last run on `machine`.
    pub(crate) fn of(machine: &Sim) -> Simulated {
        let (settings, run) = (machine.settings(), machine.report());
        Simulated {
            network: settings.network_name.clone(),
            unit_ns: match settings.computation {
                Computation::Measured => None,
                Computation::FixedCost { unit_ns } => Some(unit_ns),
            },
            compute_scale: settings.compute_scale,
            computed: run
                .computed_ns
                .into_iter()
                .map(Duration::from_nanos)
                .collect(),
            alone: settings.alone_ns.map(Duration::from_nanos),
            lost: run.lost,
            queued: Duration::from_nanos(run.queued_ns),
        }
    }

    /// Computation of all nodes.
    pub fn work(&self) -> Duration {
        self.computed.iter().sum()
    }

    /// The computation of all nodes divided by that of the program on one node, if that is known.
    /// Work that several nodes repeat raises it above 1. So do this host's caches and other load,
    /// because computation is measured.
    pub fn compute_inflation(&self) -> Option<f64> {
        let alone = self.alone?.as_secs_f64();
        (alone > 0.0).then(|| self.work().as_secs_f64() / alone)
    }
}
