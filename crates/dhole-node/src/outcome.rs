//! What a run brings, and what each node tells for it.

use std::collections::BTreeSet;
use std::time::Duration;

use dhole_model::{Counters, LineCosts, NodeId, Timeline, WaitCost};
use serde::{Deserialize, Serialize};

use crate::by_time;
use crate::machine::LostNode;
use crate::measured::{Part, took};
use crate::race::RaceReport;

/// What a run brought.
#[derive(Debug)]
pub struct Outcome<R> {
    /// Node 0's result, or that of the node in this process. Node 0's is that of the first node
    /// that is left, where the run went on without node 0.
    pub value: R,
    /// What each node counted, in the order of the nodes; where they are processes, only node 0's
    /// knows of the others.
    pub counters: Vec<Counters>,
    /// What each node counted where the program measured, if all of them did to the end.
    pub measured: Option<Vec<Counters>>,
    /// How long that took, from the first node that began to the last that ended; where nodes are
    /// processes, whose clocks are not compared, the longest time that one of them took.
    pub measured_time: Option<Duration>,
    /// The longest of the nodes' clocks at the end.
    pub elapsed: Duration,
    /// The races of the program, in the order of the objects: the first few that each node found.
    /// [`Counters::races`] counts all.
    pub races: Vec<RaceReport>,
    /// What the lines of the program cost, on all nodes of which the counters are known.
    pub costs: LineCosts,
    /// What they cost where the program measured, if all nodes did to the end.
    pub measured_costs: Option<LineCosts>,
    /// What the program should be told, its races among it.
    pub warnings: Vec<String>,
    /// The nodes that the run went on without, in the order in which they were lost.
    pub lost: Vec<LostNode>,
    /// How many domains of raw memory there were; none without raw memory.
    pub domains: Option<usize>,
    /// Whether nodes could read objects in the memory of others.
    pub one_sided: bool,
}

impl Outcome<NodeId> {
    /// What a run brought whose nodes ended so, all of them by one clock or each by its own.
    pub(crate) fn of(
        value: NodeId,
        ends: Vec<End>,
        lost: Vec<LostNode>,
        one_clock: bool,
    ) -> Outcome<NodeId> {
        let parts: Option<Vec<&Part>> = ends.iter().map(|end| end.measured.as_ref()).collect();
        let races: BTreeSet<RaceReport> = ends.iter().flat_map(|end| &end.races).cloned().collect();
        let races: Vec<RaceReport> = races.into_iter().collect();
        let elapsed = ends.iter().map(|end| end.clock_ns).max().unwrap_or(0);
        Outcome {
            value,
            lost,
            domains: None,
            one_sided: false,
            measured_time: parts
                .as_ref()
                .and_then(|parts| took(parts.iter().copied(), one_clock)),
            measured_costs: parts
                .as_ref()
                .map(|parts| costs(parts.iter().map(|part| &part.costs))),
            measured: parts.map(|parts| parts.iter().map(|part| part.counters.clone()).collect()),
            elapsed: Duration::from_nanos(elapsed),
            warnings: warnings(&ends, &races),
            races,
            costs: costs(ends.iter().map(|end| &end.costs)),
            counters: ends.into_iter().map(|end| end.counters).collect(),
        }
    }
}

impl<R> Outcome<R> {
    /// The same with another value.
    pub(crate) fn with_value<V>(self, value: V) -> Outcome<V> {
        Outcome {
            value,
            counters: self.counters,
            measured: self.measured,
            measured_time: self.measured_time,
            elapsed: self.elapsed,
            races: self.races,
            costs: self.costs,
            measured_costs: self.measured_costs,
            warnings: self.warnings,
            lost: self.lost,
            domains: self.domains,
            one_sided: self.one_sided,
        }
    }
}

/// What a node has to tell at the end of a run.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct End {
    pub counters: Counters,
    pub measured: Option<Part>,
    pub clock_ns: u64,
    pub races: Vec<RaceReport>,
    pub warnings: Vec<String>,
    pub costs: LineCosts,
    pub timeline: Option<Timeline>,
}

/// What the lines cost on all nodes. Where no node waited, the line cost nothing.
fn costs<'a>(of_nodes: impl Iterator<Item = &'a LineCosts>) -> LineCosts {
    let mut costs = LineCosts::merged(of_nodes);
    costs.lines.retain(|line| line.cost != WaitCost::default());
    costs
}

/// What the program should be told.
fn warnings(ends: &[End], races: &[RaceReport]) -> Vec<String> {
    let found: u64 = ends.iter().map(|end| end.counters.races).sum();
    let more = found.saturating_sub(races.len() as u64);
    let more = (more > 0).then(|| match more {
        1 => "1 more race was found".to_owned(),
        _ => format!("{more} more races were found"),
    });
    let races = races.iter().map(RaceReport::to_string).chain(more);
    let mut own: Vec<String> = Vec::new();
    for warning in ends.iter().flat_map(|end| &end.warnings) {
        // What the system refuses to all is said once.
        if !own.contains(warning) {
            own.push(warning.clone());
        }
    }
    let by_time = by_time::warning(ends.iter().map(|end| &end.counters));
    own.into_iter().chain(by_time).chain(races).collect()
}
