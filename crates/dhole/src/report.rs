use std::time::Duration;

use dhole_model::Counters;
use dhole_node::RaceReport;

/// What a run brought: a value, and how it went.
#[derive(Debug)]
pub struct Run<R> {
    /// Node 0's result.
    pub value: R,
    /// How the run went.
    pub report: Report,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// What carried the messages: `threads` or `sim`.
    pub transport: &'static str,
    /// How objects were kept consistent unless their allocation said otherwise: `lazy`, `update`
    /// or `home`.
    pub protocol: &'static str,
    /// How accesses were detected: `check`.
    pub detector: &'static str,
    /// From the start of the run to the end of the slowest node; virtual in a simulation.
    pub elapsed: Duration,
    /// What each node counted.
    pub per_node: Vec<Counters>,
    /// What only a simulation knows.
    pub simulated: Option<Simulated>,
    /// The first few races that each node found, in the order of the objects.
    pub races: Vec<RaceReport>,
    /// What the program should be told: locks dropped unreleased, races.
    pub warnings: Vec<String>,
}

impl Report {
    /// What all nodes counted together.
    pub fn total(&self) -> Counters {
        let mut total = Counters::default();
        self.per_node.iter().for_each(|node| total.add(node));
        total
    }

    /// Bytes of page store that hold shared objects, on the average node.
    pub fn shared_bytes_per_node(&self) -> u64 {
        self.total().shared_bytes / self.nodes.max(1) as u64
    }
}

/// What only a simulation knows.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The seed of the run.
    pub seed: u64,
    /// Nanoseconds for a unit of work, where computation has fixed costs and is not measured.
    pub unit_ns: Option<f64>,
    /// Computation of each node, without waiting and without the runtime.
    pub computed: Vec<Duration>,
    /// Messages that the simulator carried.
    pub messages: u64,
}
