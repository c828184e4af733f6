//! A cluster's life: made, run, ended.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::{Counters, MAX_NODES, NodeId};
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::{AbortReason, Message};

use crate::error::{ConfigError, Error, Result, RunError, SyncError};
use crate::machine::Machine;
use crate::node::Node;
use crate::worker::{Link, Worker};

/// What every machine needs to know to run a program.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes of the cluster, 1 to [`MAX_NODES`].
    pub nodes: usize,
    /// How long a node waits before it looks for a deadlock.
    pub suspect_after: Duration,
}

impl Settings {
    /// A cluster of `nodes` nodes that look for a deadlock after 1 s.
    pub fn nodes(nodes: usize) -> Settings {
        Settings {
            nodes,
            suspect_after: Duration::from_secs(1),
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
    /// The longest of the nodes' clocks at the end.
    pub elapsed: Duration,
    /// What the program should be told.
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
/// first failure that is not a consequence of another is returned.
pub fn run_on<R: Send>(
    machine: &dyn Machine,
    settings: &Settings,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Result<Outcome<R>, RunError> {
    let nodes = check_nodes(settings.nodes)?;
    if cfg!(panic = "abort") {
        return Err(ConfigError::PanicAbort.into());
    }
    let cluster = Cluster::new(nodes).map_err(|cause| RunError::Reserve { nodes, cause })?;
    let pool = Arc::new(PayloadPool::default());
    let all: Vec<Node> = (0..nodes)
        .map(|id| Node::new(NodeId::at(id), nodes, &cluster, &pool))
        .collect();
    let receivers: Vec<&dyn Receiver<Message>> = all.iter().map(|node| node as _).collect();
    let results: Vec<Mutex<Option<Result<R, Failed>>>> =
        (0..nodes).map(|_| Mutex::new(None)).collect();
    let clocks: Vec<Mutex<u64>> = (0..nodes).map(|_| Mutex::new(0)).collect();

    machine.start(&receivers, &|id| {
        let node = &all[id.index()];
        let link = |receivers| Link {
            node,
            machine,
            receivers,
            out: RefCell::new(Outbox::default()),
            dropped: Rc::default(),
            suspect_after: settings.suspect_after,
            locks_made: 0,
        };
        let lent = node.monitor.lend_within(|token, _| {
            run_node(
                &mut Worker {
                    token,
                    link: link(&receivers[..]),
                },
                &program,
            )
        });
        let result = lent.unwrap_or_else(|twice| panic!("{id} is started once: {twice}"));
        put(&results[id.index()], Some(result));
        put(&clocks[id.index()], machine.now(id));
    })?;

    let elapsed = clocks.iter().map(take).max().unwrap_or(0);
    let results = results
        .iter()
        .map(|result| take(result).expect("every node has ended"));
    Ok(Outcome {
        value: first_value(results.collect())?,
        counters: all.iter().map(Node::counters).collect(),
        elapsed: Duration::from_nanos(elapsed),
        warnings: all.iter().flat_map(Node::warnings).collect(),
    })
}

/// How the program on a node went wrong.
enum Failed {
    Panicked(Arc<str>),
    Error(Error),
}

fn run_node<R>(
    worker: &mut Worker<'_>,
    program: &(impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync),
) -> Result<R, Failed> {
    worker.link.machine.leave(worker.node());
    let ended = catch_unwind(AssertUnwindSafe(|| program(worker)));
    worker.link.machine.enter(worker.node());
    let failed = match ended {
        Ok(Ok(value)) => match worker.finish() {
            Ok(()) => return Ok(value),
            Err(error) => Failed::Error(error.into()),
        },
        Ok(Err(error)) => Failed::Error(error),
        Err(payload) => why(payload),
    };
    if let Some(reason) = failed.reason() {
        worker.link.abort(reason);
    }
    Err(failed)
}

/// What unwound: an access error on its way here, or a panic.
fn why(payload: Box<dyn Any + Send>) -> Failed {
    let words = match payload.downcast::<Error>() {
        Ok(error) => return Failed::Error(*error),
        Err(payload) => match payload.downcast::<String>() {
            Ok(words) => *words,
            Err(payload) => match payload.downcast_ref::<&str>() {
                Some(words) => (*words).to_owned(),
                None => "a panic without words".to_owned(),
            },
        },
    };
    Failed::Panicked(words.into())
}

impl Failed {
    /// What to tell the other nodes; nothing when one of them told us.
    fn reason(&self) -> Option<AbortReason> {
        match self {
            Failed::Panicked(words) => Some(AbortReason::Panicked(Arc::clone(words))),
            Failed::Error(error) if error.is_consequence() => None,
            Failed::Error(Error::Sync(SyncError::Deadlock { cycle, .. })) => {
                Some(AbortReason::Deadlocked(Arc::clone(cycle)))
            }
            Failed::Error(error) => Some(AbortReason::Failed(error.to_string().into())),
        }
    }
}

/// Node 0's value, if no node failed; otherwise the first failure that is not another's
/// consequence, with the errors of those in the same deadlock.
fn first_value<R>(results: Vec<Result<R, Failed>>) -> Result<R, RunError> {
    let (mut value, mut first, mut consequence) = (None, None, None);
    let mut others = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        let node = NodeId::at(index);
        match result {
            Ok(own) if index == 0 => value = Some(own),
            Ok(_) => {}
            Err(Failed::Error(error)) if error.is_consequence() => {
                consequence.get_or_insert((node, Failed::Error(error)));
            }
            Err(failed) if first.is_none() => first = Some((node, failed)),
            Err(Failed::Error(error)) => others.push((node, error)),
            Err(Failed::Panicked(_)) => {}
        }
    }
    match (first.or(consequence), value) {
        (Some((node, Failed::Panicked(message))), _) => Err(RunError::Panicked { node, message }),
        (Some((node, Failed::Error(error))), _) => Err(RunError::Failed {
            node,
            error: Box::new(error),
            others,
        }),
        (None, Some(value)) => Ok(value),
        (None, None) => unreachable!("node 0 has either a value or an error"),
    }
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
