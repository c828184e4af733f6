//! A cluster's life: made, run, ended.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::{
    Barriers, Coherence, Counters, Detector, LineCosts, MAX_NODES, NodeId, Placement,
};
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::{Message, Protocol, Races};
use serde::{Deserialize, Serialize};

use crate::error::{ConfigError, Result, RunError};
use crate::failure::{Failed, Failure, first_value, why};
use crate::machine::{Fiber, LostNode, Machine};
use crate::measure::{Part, took};
use crate::node::Node;
use crate::optimisations::{Optimisations, WriteDetection};
use crate::race::RaceReport;
use crate::run_handshake;
use crate::spawn::{Children, run_processes};
use crate::worker::{LEAST_PATIENCE, LONGEST_PATIENCE, Link, Worker};

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
    /// Whether digests of replicas are kept, so that a comparison can name the operation after
    /// which they differ.
    pub watch_objects: bool,
    /// Whether the run goes on when nodes are lost, with the objects that are replicated.
    pub survive: bool,
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
            watch_objects: false,
            survive: false,
        }
    }

    /// The protocol of one of the nodes, before anything has happened; of these pages, where the
    /// run keeps pages consistent.
    pub(crate) fn protocol(&self, id: NodeId, pages: Option<Range<u64>>) -> Protocol {
        let limits = self.optimisations.limits();
        let mut protocol = Protocol::with(id, self.nodes, limits, self.races);
        if self.survive {
            protocol.survive();
        }
        if self.barriers == Barriers::Dissemination {
            // Programs write what they begin with before their first barrier.
            protocol = protocol.disseminating(0);
        }
        if let Some(pages) = pages {
            protocol = protocol.paging(pages);
        }
        match self.optimisations.write_detection {
            WriteDetection::Marks => protocol,
            WriteDetection::Twins | WriteDetection::Objects => protocol.comparing(),
        }
    }

    /// Where copies lie: TreadMarks has all of them at one place everywhere.
    pub(crate) fn placement(&self) -> Placement {
        match self.coherence {
            Coherence::TreadMarks => Placement::Everywhere,
            _ => self.placement,
        }
    }

    pub(crate) fn check(&self) -> Result<usize, ConfigError> {
        if self.detector == Detector::Vm && self.placement() == Placement::Everywhere {
            return Err(ConfigError::VmPlacesByTouch);
        }
        if self.survive && self.placement() == Placement::Everywhere {
            return Err(ConfigError::NothingSurvives);
        }
        let twins = self.optimisations.write_detection != WriteDetection::Marks;
        match twins && self.races.finds_all() {
            true => Err(ConfigError::TwinsMissRaces),
            false => check_nodes(self.nodes),
        }
    }
}

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
    /// What the program should be told, its races among it.
    pub warnings: Vec<String>,
    /// The nodes that the run went on without, in the order in which they were lost.
    pub lost: Vec<LostNode>,
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

/// Runs `program` once on each node of a cluster on `machine`.
///
/// # Errors
/// [`RunError`] when the cluster cannot be made, or when the program fails on any node; then the
/// first failure is returned.
pub fn run_on<R: Send>(
    machine: &dyn Machine,
    settings: &Settings,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Result<Outcome<R>, RunError> {
    let nodes = settings.nodes;
    if cfg!(panic = "abort") {
        return Err(ConfigError::PanicAbort.into());
    }
    let pool = Arc::new(PayloadPool::default());
    let (cluster, first) = match machine.multiprocess() {
        Some(multiprocess) => (
            run_handshake::meet(multiprocess, settings, &pool)?,
            multiprocess.me().index(),
        ),
        None => {
            settings.check()?;
            let cluster = match settings.placement() {
                _ if settings.coherence == Coherence::TreadMarks => Cluster::paged(nodes),
                Placement::FirstTouch => Cluster::with_detector(nodes, settings.detector),
                everywhere => Cluster::placing(everywhere, nodes),
            };
            (
                cluster.map_err(|cause| RunError::Reserve { nodes, cause })?,
                0,
            )
        }
    };
    let here = machine.multiprocess().map_or(nodes, |_| 1);
    let all: Vec<Node> = (first..first + here)
        .map(|id| {
            let node = Node::new(NodeId::at(id), nodes, settings, &cluster, &pool);
            node.time_operations(machine.stopwatch());
            if machine.numbers_broadcasts() {
                node.ask_for_numbers();
            }
            node
        })
        .collect();
    let receivers: Vec<&dyn Receiver<Message>> = all.iter().map(|node| node as _).collect();
    let results: Vec<Mutex<Option<Result<R, Failure>>>> =
        (0..here).map(|_| Mutex::new(None)).collect();
    let clocks: Vec<Mutex<u64>> = (0..here).map(|_| Mutex::new(0)).collect();
    let failures = AtomicUsize::new(0);

    machine.start_fibers(&receivers, &|id, fiber| {
        let seat = id.index() - first;
        let node = &all[seat];
        let link = |receivers| Link {
            node,
            machine,
            receivers,
            out: RefCell::new(Outbox::default()),
            dropped: Rc::default(),
            awaited: Cell::default(),
            counts_moments: machine.counts_moments(),
            suspect_after: settings
                .suspect_after
                .clamp(LEAST_PATIENCE, LONGEST_PATIENCE),
            fiber,
            children: Children::default(),
            in_once: None,
            memory_bytes: machine.memory_bytes().unwrap_or(u64::MAX),
            coherence: settings.coherence,
        };
        if fiber != Fiber::PROGRAM {
            return run_processes(node, |run| {
                let lent = node.monitor.lend_next(|token, _| {
                    let link = link(&receivers[..]);
                    run(&mut Worker::new(token, link));
                });
                lent.unwrap_or_else(|twice| panic!("{id} hands its turn over: {twice}"));
            });
        }
        let lent = node.monitor.lend_within(|token, _| {
            run_node(
                &mut Worker::new(token, link(&receivers[..])),
                &program,
                &failures,
            )
        });
        let result = lent.unwrap_or_else(|twice| panic!("{id} is started once: {twice}"));
        put(&results[seat], Some(result));
        put(&clocks[seat], machine.now(id));
        node.has_computed(machine.computed(id));
        fiber
    })?;

    let ends = all.iter().zip(&clocks).map(|(node, clock)| End {
        counters: node.counters(),
        measured: node.measured(),
        clock_ns: take(clock),
        races: node.races(),
        warnings: node.warnings(),
        costs: node.costs(),
    });
    let ends: Vec<End> = ends.collect();
    let mut results: Vec<Option<_>> = results.iter().map(take).collect();
    if let Some(multiprocess) = machine.multiprocess()
        && let (Some(result), Some(node)) = (results.pop().flatten(), all.first())
    {
        return run_handshake::part(multiprocess, node, &receivers, result, ends);
    }
    let (results, lost) = left(settings, &all, results)?;
    Ok(Outcome::of(first_value(results)?, ends, lost, true))
}

type Results<R> = Vec<(NodeId, Result<R, Failure>)>;

/// What the nodes came to that are left, and those that are not.
fn left<R>(
    settings: &Settings,
    all: &[Node],
    results: Vec<Option<Result<R, Failure>>>,
) -> Result<(Results<R>, Vec<LostNode>), RunError> {
    let gone = |result: &Option<_>| result.is_none();
    let part = all.iter().zip(&results);
    let part = part.filter(|(node, result)| !gone(result) && !node.is_out());
    let mut lost = part.map(|(node, _)| node.lost()).next().unwrap_or_default();
    for (node, result) in all.iter().zip(&results) {
        if gone(result) && lost.iter().all(|lost| lost.node != node.id) {
            let (node, how) = (node.id, "it crashed".to_owned());
            lost.push(LostNode { node, how });
        }
    }
    let is_lost = |id| lost.iter().any(|lost| lost.node == id);
    let all = all.iter().map(|node| node.id).zip(results);
    let results: Results<R> = all
        .filter_map(|(id, result)| Some((id, result?)))
        .filter(|(id, _)| !is_lost(*id))
        .collect();
    if (!settings.survive || results.is_empty()) && !lost.is_empty() {
        let (lost, others) = (lost.swap_remove(0), Vec::new());
        return Err(RunError::Lost { lost, others });
    }
    Ok((results, lost))
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
}

impl<R> Outcome<R> {
    /// What a run brought whose nodes ended so, all of them by one clock or each by its own.
    pub(crate) fn of(value: R, ends: Vec<End>, lost: Vec<LostNode>, one_clock: bool) -> Outcome<R> {
        let parts: Option<Vec<&Part>> = ends.iter().map(|end| end.measured.as_ref()).collect();
        let races: BTreeSet<RaceReport> = ends.iter().flat_map(|end| &end.races).cloned().collect();
        let races: Vec<RaceReport> = races.into_iter().collect();
        let elapsed = ends.iter().map(|end| end.clock_ns).max().unwrap_or(0);
        Outcome {
            value,
            lost,
            measured_time: parts
                .as_ref()
                .and_then(|parts| took(parts.iter().copied(), one_clock)),
            measured: parts.map(|parts| parts.iter().map(|part| part.counters.clone()).collect()),
            elapsed: Duration::from_nanos(elapsed),
            warnings: warnings(&ends, &races),
            races,
            costs: LineCosts::merged(ends.iter().map(|end| &end.costs)),
            counters: ends.into_iter().map(|end| end.counters).collect(),
        }
    }
}

/// What the program should be told.
fn warnings(ends: &[End], races: &[RaceReport]) -> Vec<String> {
    let found: u64 = ends.iter().map(|end| end.counters.races).sum();
    let more = found.saturating_sub(races.len() as u64);
    let more = (more > 0).then(|| format!("{more} more races were found"));
    let races = races.iter().map(RaceReport::to_string).chain(more);
    let own = ends.iter().flat_map(|end| end.warnings.iter().cloned());
    own.chain(races).collect()
}

fn run_node<R>(
    worker: &mut Worker<'_>,
    program: &(impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync),
    failures: &AtomicUsize,
) -> Result<R, Failure> {
    worker.link.machine.leave(worker.node());
    let ended = catch_unwind(AssertUnwindSafe(|| program(worker)));
    worker.link.machine.enter(worker.node());
    let failed = match ended {
        Ok(Ok(value)) => match worker.finish() {
            Ok(()) => return Ok(value),
            Err(error) => Failed::Error(Box::new(error)),
        },
        Ok(Err(error)) => Failed::Error(Box::new(error)),
        Err(payload) => why(payload),
    };
    // A node that was told of another's failure, and then failed, failed because of it.
    let follows = worker.link.was_told() || failed.follows();
    // Where this node is out, the others go on, or end by themselves.
    let is_first = !follows && !worker.link.node.is_out();
    let order = is_first.then(|| failures.fetch_add(1, Ordering::Relaxed));
    if is_first {
        if let Some(multiprocess) = worker.link.machine.multiprocess() {
            multiprocess.failed(&failed.to_string());
        }
        worker.link.abort(failed.reason());
    }
    worker.end_others(failed.reason());
    Err(Failure { failed, order })
}

fn put<T>(place: &Mutex<T>, value: T) {
    *place
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner()) = value;
}

fn take<T: Default>(place: &Mutex<T>) -> T {
    std::mem::take(
        &mut place
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()),
    )
}
