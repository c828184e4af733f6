//! A cluster's life: made, run, ended.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::{Coherence, Counters, Detector, MAX_NODES, NodeId, Placement};
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::{AbortReason, Message, Protocol, Races};

use crate::error::{ConfigError, Error, Result, RunError, SyncError};
use crate::machine::Machine;
use crate::node::Node;
use crate::object::ObjectError;
use crate::optimisations::{Optimisations, WriteDetection};
use crate::race::RaceReport;
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
    /// How accesses are detected that must not be made yet.
    pub detector: Detector,
    /// How the lazy protocol saves messages and faults.
    pub optimisations: Optimisations,
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
            detector: Detector::default(),
            optimisations: Optimisations::default(),
        }
    }

    /// The protocol of one of the nodes, before anything has happened.
    pub(crate) fn protocol(&self, id: NodeId) -> Protocol {
        let limits = self.optimisations.limits();
        let protocol = Protocol::with(id, self.nodes, limits, self.races);
        match self.optimisations.write_detection {
            WriteDetection::Marks => protocol,
            WriteDetection::Twins => protocol.comparing(),
        }
    }

    /// Where copies lie: TreadMarks has all of them at one place everywhere.
    fn placement(&self) -> Placement {
        match self.coherence {
            Coherence::TreadMarks => Placement::Everywhere,
            _ => self.placement,
        }
    }

    fn check(&self) -> Result<usize, ConfigError> {
        if self.detector == Detector::Vm && self.placement() == Placement::Everywhere {
            return Err(ConfigError::VmPlacesByTouch);
        }
        let twins = self.optimisations.write_detection == WriteDetection::Twins;
        match twins && self.races == Races::Fail {
            true => Err(ConfigError::TwinsMissRaces),
            false => check_nodes(self.nodes),
        }
    }
}

/// What a run brought.
#[derive(Debug)]
pub struct Outcome<R> {
    /// Node 0's result.
    pub value: R,
    /// What each node counted.
    pub counters: Vec<Counters>,
    /// What each node counted where the program measured, if all of them did to the end.
    pub measured: Option<Vec<Counters>>,
    /// The longest of the nodes' clocks at the end.
    pub elapsed: Duration,
    /// The races of the program, in the order of the objects: the first few that each node found.
    /// [`Counters::races`] counts all.
    pub races: Vec<RaceReport>,
    /// What the program should be told, its races among it.
    pub warnings: Vec<String>,
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
    let nodes = settings.check()?;
    if cfg!(panic = "abort") {
        return Err(ConfigError::PanicAbort.into());
    }
    let cluster = match settings.placement() {
        Placement::FirstTouch => Cluster::with_detector(nodes, settings.detector),
        everywhere => Cluster::placing(everywhere, nodes),
    };
    let cluster = cluster.map_err(|cause| RunError::Reserve { nodes, cause })?;
    let pool = Arc::new(PayloadPool::default());
    let all: Vec<Node> = (0..nodes)
        .map(|id| Node::new(NodeId::at(id), nodes, settings, &cluster, &pool))
        .collect();
    let receivers: Vec<&dyn Receiver<Message>> = all.iter().map(|node| node as _).collect();
    let results: Vec<Mutex<Option<Result<R, Failure>>>> =
        (0..nodes).map(|_| Mutex::new(None)).collect();
    let clocks: Vec<Mutex<u64>> = (0..nodes).map(|_| Mutex::new(0)).collect();
    let failures = AtomicUsize::new(0);

    machine.start(&receivers, &|id| {
        let node = &all[id.index()];
        let link = |receivers| Link {
            node,
            machine,
            receivers,
            out: RefCell::new(Outbox::default()),
            dropped: Rc::default(),
            suspect_after: settings
                .suspect_after
                .clamp(LEAST_PATIENCE, LONGEST_PATIENCE),
            in_once: None,
            numbers_made: 0,
            memory_bytes: machine.memory_bytes().unwrap_or(u64::MAX),
            coherence: settings.coherence,
        };
        let lent = node.monitor.lend_within(|token, _| {
            run_node(
                &mut Worker {
                    token,
                    link: link(&receivers[..]),
                },
                &program,
                &failures,
            )
        });
        let result = lent.unwrap_or_else(|twice| panic!("{id} is started once: {twice}"));
        put(&results[id.index()], Some(result));
        put(&clocks[id.index()], machine.now(id));
        node.has_computed(machine.computed(id));
    })?;

    let elapsed = clocks.iter().map(take).max().unwrap_or(0);
    let results = results
        .iter()
        .map(|result| take(result).expect("every node has ended"));
    let races: BTreeSet<RaceReport> = all.iter().flat_map(Node::races).collect();
    let races: Vec<RaceReport> = races.into_iter().collect();
    Ok(Outcome {
        value: first_value(results.collect())?,
        counters: all.iter().map(Node::counters).collect(),
        measured: all.iter().map(Node::measured).collect(),
        elapsed: Duration::from_nanos(elapsed),
        warnings: warnings(&all, &races),
        races,
    })
}

/// What the program should be told.
fn warnings(all: &[Node], races: &[RaceReport]) -> Vec<String> {
    let found: u64 = all.iter().map(|node| node.counters().races).sum();
    let more = found.saturating_sub(races.len() as u64);
    let more = (more > 0).then(|| format!("{more} more races were found"));
    let races = races.iter().map(RaceReport::to_string).chain(more);
    all.iter().flat_map(Node::warnings).chain(races).collect()
}

/// A failure of the program on a node, and which of the run's failures it was.
struct Failure {
    failed: Failed,
    /// The place in the order in which nodes failed; none for what follows from another's.
    order: Option<usize>,
}

/// How the program on a node went wrong.
enum Failed {
    Panicked(Arc<str>),
    Error(Box<Error>),
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
            Err(error) => Failed::Error(Box::new(error.into())),
        },
        Ok(Err(error)) => Failed::Error(Box::new(error)),
        Err(payload) => why(payload),
    };
    // A node that was told of another's failure, and then failed, failed because of it.
    let follows = worker.link.was_told() || failed.follows();
    let order = (!follows).then(|| failures.fetch_add(1, Ordering::Relaxed));
    if !follows {
        worker.link.abort(failed.reason());
    }
    Err(Failure { failed, order })
}

/// What unwound: an access error on its way here, or a panic.
fn why(payload: Box<dyn Any + Send>) -> Failed {
    let words = match payload.downcast::<Error>() {
        Ok(error) => return Failed::Error(error),
        Err(payload) => match payload.downcast::<String>() {
            Ok(words) => *words,
            Err(payload) => match payload.downcast_ref::<&str>() {
                Some(words) => (*words).to_owned(),
                None => {
                    // Its destructor is the program's, and may panic too.
                    std::mem::forget(payload);
                    "a panic whose payload is no text".to_owned()
                }
            },
        },
    };
    Failed::Panicked(words.into())
}

impl Failed {
    /// Whether the error only says that another node failed.
    fn follows(&self) -> bool {
        matches!(self, Failed::Error(error) if error.is_consequence())
    }

    /// What to tell the other nodes.
    fn reason(&self) -> AbortReason {
        match self {
            Failed::Panicked(words) => AbortReason::Panicked(Arc::clone(words)),
            Failed::Error(error) => match &**error {
                Error::Sync(SyncError::Deadlock { cycle, .. })
                | Error::Object(ObjectError::Sync(SyncError::Deadlock { cycle, .. })) => {
                    AbortReason::Deadlocked(Arc::clone(cycle))
                }
                error => AbortReason::Failed(error.to_string().into()),
            },
        }
    }
}

/// Node 0's value, if no node failed; otherwise the first failure, with those that do not follow
/// from another.
fn first_value<R>(results: Vec<Result<R, Failure>>) -> Result<R, RunError> {
    let mut value = None;
    let mut failures = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(own) if index == 0 => value = Some(own),
            Ok(_) => {}
            Err(failure) => failures.push((NodeId::at(index), failure)),
        }
    }
    failures.sort_by_key(|(_, failure)| failure.order.unwrap_or(usize::MAX));
    let mut failures = failures.into_iter();
    let Some((node, first)) = failures.next() else {
        return Ok(value.expect("node 0 has either a value or an error"));
    };
    let others = failures
        .filter(|(_, failure)| failure.order.is_some())
        .map(|(node, failure)| match failure.failed {
            Failed::Error(error) => (node, *error),
            Failed::Panicked(words) => (node, Error::program(format!("panicked: {words}"))),
        })
        .collect();
    Err(match first.failed {
        Failed::Panicked(message) => RunError::Panicked {
            node,
            message,
            others,
        },
        Failed::Error(error) => RunError::Failed {
            node,
            error,
            others,
        },
    })
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
