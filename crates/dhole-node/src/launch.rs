//! A cluster's life: made, run, ended.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dhole_heap::Cluster;
use dhole_model::unpoisoned;
use dhole_model::{NodeId, Placement, Timeline};
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::Message;

use crate::domain::{self, Domain};
use crate::error::{ConfigError, Result, RunError};
use crate::failure::{Failed, Failure, first_value, why};
use crate::machine::{Fiber, LostNode, Machine, Multiprocess, StartError};
use crate::names;
use crate::node::Node;
use crate::outcome::{End, Outcome};
use crate::parts::{NodeParts, PartsPlace};
use crate::phases::ReadTimer;
use crate::router::{NodeLink, Router, Takers};
use crate::run_handshake;
use crate::run_handshake::Brings;
use crate::settings::Settings;
use crate::spawn::{Children, run_processes};
use crate::worker::{LEAST_PATIENCE, LONGEST_PATIENCE, Link, Worker};

/// What a run is told that cannot have one-sided reads.
const NO_TABLES: &str = "objects are asked for by message: the system refuses the address space \
    for one-sided reads, 8 GiB a node (`ulimit -v`)";

/// A program that keeps its node's value and says which node that is.
pub type Program<'a> = dyn for<'id> Fn(&mut Worker<'id>) -> Result<NodeId> + Sync + 'a;

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
    let (value, outcome) = keep_values(program, |program| {
        let outcome = run_nodes(machine, settings, program, &mut Vec::new())?;
        Ok((outcome.value, outcome))
    })?;
    Ok(outcome.with_value(value))
}

/// Keeps the values of a program for a `run` that knows no type of them, and returns the value of
/// the node that `run` names. So all of a run but this is compiled once, and not in each program.
///
/// # Errors
/// That of `run`.
///
/// # Panics
/// When `run` names a node on which the program has not ended well.
pub fn keep_values<R: Send, O>(
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
    run: impl FnOnce(&Program<'_>) -> Result<(NodeId, O), RunError>,
) -> Result<(R, O), RunError> {
    let values = Mutex::new((Vec::new(), Vec::new()));
    let (first, outcome) = run(&|w: &mut Worker<'_>| {
        let value = program(w)?;
        let (nodes, kept) = &mut *unpoisoned::lock(&values);
        nodes.push(w.node());
        kept.push(value);
        Ok(w.node())
    })?;
    let values = values.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (nodes, mut kept) = values;
    Ok((kept.swap_remove(place_of(first, &nodes)), outcome))
}

/// The place of the node whose value counts.
fn place_of(first: NodeId, nodes: &[NodeId]) -> usize {
    let place = nodes.iter().position(|node| *node == first);
    place.expect("a node that has ended well keeps its value")
}

/// As [`run_on`]; the outcome's value is the node whose value counts. When each node waited, where
/// that was recorded, goes to `timelines` in the order of the nodes, also of a run that fails.
/// Where the nodes are processes, only node 0's knows of the others.
///
/// # Errors
/// As [`run_on`].
pub fn run_nodes(
    machine: &dyn Machine,
    settings: &Settings,
    program: &Program<'_>,
    timelines: &mut Vec<Option<Timeline>>,
) -> Result<Outcome<NodeId>, RunError> {
    let nodes = settings.nodes;
    if cfg!(panic = "abort") {
        return Err(ConfigError::PanicAbort.into());
    }
    let pool = Arc::new(PayloadPool::default());
    let own_domain = domain_of(machine, settings);
    let of_domain = match (&own_domain, machine.multiprocess()) {
        (Ok(Some(domain)), _) => domain.nodes.clone(),
        (_, Some(multiprocess)) => vec![multiprocess.me()],
        _ => Vec::new(),
    };
    let mut all_parts = own_domain.and_then(|domain| all_parts(machine, settings, domain));
    let (cluster, first, leaders) = match machine.multiprocess() {
        Some(multiprocess) => {
            let me = multiprocess.me().index();
            let brings = Brings::of(&all_parts, of_domain);
            let mut settles = |leaders: &[NodeId], place| {
                let all = all_parts.as_mut().map_err(|cause| cause.clone())?;
                settle(machine, settings, all, leaders, place)
            };
            let met = run_handshake::meet(multiprocess, settings, &pool, brings, &mut settles)?;
            (met.0, me, met.1)
        }
        None => {
            settings.check()?;
            let cluster = match settings.placement() {
                _ if settings.keeps_pages() => Cluster::paged(nodes),
                Placement::FirstTouch => Cluster::with_detector(nodes, settings.detector),
                everywhere => Cluster::placing(everywhere, nodes),
            };
            let cluster = cluster.map_err(|cause| RunError::Reserve { nodes, cause })?;
            let leaders: Vec<NodeId> = (0..nodes).map(NodeId::at).collect();
            if let Ok(all) = &mut all_parts {
                settle(machine, settings, all, &leaders, 0)?;
            }
            (cluster, 0, leaders)
        }
    };
    let domains = settings.parts.as_ref().map(|_| domain::count(&leaders));
    let sees = |other| machine.sees(NodeId::at(first), NodeId::at(other));
    let reads_there = settings.reads_there() && (0..nodes).any(|it| it != first && sees(it));
    let refused: Vec<String> = match machine.multiprocess() {
        _ if !reads_there => Vec::new(),
        Some(multiprocess) => multiprocess.publish(&cluster),
        None if cluster.publish() => Vec::new(),
        None => vec![NO_TABLES.to_owned()],
    };
    let one_sided = reads_there && refused.is_empty();
    let here = machine.multiprocess().map_or(nodes, |_| 1);
    let all: Vec<Router<'_>> = (first..first + here)
        .zip(all_parts?)
        .map(|(id, parts)| {
            let node = Node::new(NodeId::at(id), nodes, settings, &cluster, &pool);
            node.predefine(names::predefined());
            node.time_operations(machine.stopwatch());
            node.count_sizes(machine.sizes());
            if machine.numbers_broadcasts() {
                node.ask_for_numbers();
            }
            if machine.multicasts() {
                node.multicasts();
            }
            Router {
                machine,
                node,
                parts,
                takers: Takers::default(),
            }
        })
        .collect();
    if let Some(first) = all.first() {
        let mut node = first.node.monitor.lock();
        refused.into_iter().for_each(|why| node.split().1.warn(why));
    }
    let receivers: Vec<&dyn Receiver<Message>> = all.iter().map(|node| node as _).collect();
    let results: Vec<Mutex<Option<Result<NodeId, Failure>>>> =
        (0..here).map(|_| Mutex::new(None)).collect();
    let clocks: Vec<Mutex<u64>> = (0..here).map(|_| Mutex::new(0)).collect();
    let failures = AtomicUsize::new(0);
    let patience = settings
        .suspect_after
        .clamp(LEAST_PATIENCE, LONGEST_PATIENCE);
    // A thread of one body may wait by the link of another one: all last as long as the run.
    let waits: Vec<Option<NodeLink<'_>>> = all
        .iter()
        .map(|seat| {
            Some(NodeLink {
                node: &seat.node,
                parts: seat.parts.as_deref()?,
                takers: &seat.takers,
                machine,
                receivers: &receivers[..],
                patience,
            })
        })
        .collect();

    machine.start_fibers(&receivers, &|id, fiber| {
        let seat = id.index() - first;
        let Router { node, parts, .. } = &all[seat];
        let parts = parts.as_deref();
        let link = |receivers| Link {
            node,
            parts,
            machine,
            receivers,
            out: RefCell::new(Outbox::default()),
            dropped: Rc::default(),
            awaited: Cell::default(),
            one_sided: ReadTimer::default(),
            counts_moments: machine.counts_moments(),
            suspect_after: patience,
            fiber,
            children: Children::default(),
            until_ns: Cell::default(),
            chain: RefCell::default(),
            in_once: None,
            by_itself: None,
            memory_bytes: machine.memory_bytes().unwrap_or(u64::MAX),
            coherence: settings.coherence,
        };
        let around = |body: &mut dyn FnMut()| match &waits[seat] {
            None => body(),
            Some(waits) => waits.parts.around(waits, body),
        };
        if fiber != Fiber::PROGRAM {
            let mut next = Fiber::PROGRAM;
            around(&mut || {
                next = run_processes(node, |run| {
                    let lent = node.monitor.lend_within(|token, _| {
                        let link = link(&receivers[..]);
                        run(&mut Worker::new(token, link));
                    });
                    lent.unwrap_or_else(|twice| panic!("{id} hands its turn over: {twice}"));
                });
            });
            return next;
        }
        let lent = node.monitor.lend_within(|token, _| {
            let mut worker = Worker::new(token, link(&receivers[..]));
            let mut result = None;
            around(&mut || result = Some(run_node(&mut worker, program, &failures)));
            result.expect("the parts run the body")
        });
        let result = lent.unwrap_or_else(|twice| panic!("{id} is started once: {twice}"));
        put(&results[seat], Some(result));
        let now_ns = machine.now(id);
        put(&clocks[seat], now_ns);
        node.has_ended(now_ns, machine);
        fiber
    })?;

    let ends = all
        .iter()
        .zip(&clocks)
        .map(|(Router { node, .. }, clock)| End {
            counters: node.counters(),
            measured: node.measured(),
            clock_ns: take(clock),
            races: node.races(),
            warnings: node.warnings(),
            costs: node.costs(),
            timeline: timeline(node, machine),
        });
    let mut ends: Vec<End> = ends.collect();
    let mut results: Vec<Option<_>> = results.iter().map(take).collect();
    if let Some(multiprocess) = machine.multiprocess()
        && let (Some(result), Some(Router { node, parts, .. })) =
            (results.pop().flatten(), all.first())
    {
        let outcome = run_handshake::part(multiprocess, node, &receivers, result, ends, timelines);
        // Where a node was lost, others may not have come to the end.
        let have_all = !matches!(outcome, Err(RunError::Lost { .. }));
        if let Some(parts) = parts.as_ref().filter(|_| have_all) {
            parts.all_have_ended();
        }
        return Ok(Outcome {
            domains,
            one_sided,
            ..outcome?
        });
    }
    timelines.extend(ends.iter_mut().map(|end| end.timeline.take()));
    let (results, lost) = left(settings, &all, results)?;
    let outcome = Outcome::of(first_value(results)?, ends, lost, true);
    Ok(Outcome {
        domains,
        one_sided,
        ..outcome
    })
}

/// When a node waited, if that was recorded.
fn timeline(node: &Node, machine: &dyn Machine) -> Option<Timeline> {
    let timeline = node.monitor.lock().split().1.counting.timeline();
    let together = machine.multiprocess().map(Multiprocess::began_after_ns);
    timeline.map(|timeline| Timeline {
        began_ns: together.unwrap_or(0),
        ..timeline
    })
}

/// The domain of the node of this process.
fn domain_of(machine: &dyn Machine, settings: &Settings) -> Result<Option<Domain>, StartError> {
    if settings.parts.is_none() {
        return Ok(None);
    }
    let domain = match machine.multiprocess() {
        Some(multiprocess) => multiprocess.domain(settings.domains),
        None => {
            let cause = "the nodes are threads of one process, or simulated";
            let cannot = settings.domains.cannot_be(settings.nodes, &cause);
            cannot.map(|()| None)
        }
    };
    domain.map_err(|cause| refused(machine, settings, &cause))
}

/// The system refuses what raw memory needs.
fn refused(machine: &dyn Machine, settings: &Settings, cause: &io::Error) -> StartError {
    StartError::Refused {
        machine: machine.name(),
        nodes: settings.nodes,
        what: "raw memory",
        cause: cause.to_string(),
    }
}

/// The nodes have agreed on what their parts have in common.
fn settle(
    machine: &dyn Machine,
    settings: &Settings,
    all_parts: &mut [Option<Box<dyn NodeParts>>],
    leaders: &[NodeId],
    place: usize,
) -> Result<(), StartError> {
    for parts in all_parts.iter_mut().flatten() {
        let settled = parts.settle(leaders, place);
        settled.map_err(|cause| refused(machine, settings, &cause))?;
    }
    Ok(())
}

/// What the nodes of this process have beside their objects.
fn all_parts(
    machine: &dyn Machine,
    settings: &Settings,
    domain: Option<Domain>,
) -> Result<Vec<Option<Box<dyn NodeParts>>>, StartError> {
    let nodes = settings.nodes;
    let here = match machine.multiprocess() {
        Some(multiprocess) => vec![multiprocess.me()],
        None => (0..nodes).map(NodeId::at).collect(),
    };
    let Some(maker) = &settings.parts else {
        return Ok(here.iter().map(|_| None).collect());
    };
    // The nodes are told so by the check of all settings, once they have met.
    settings
        .check_managers()
        .map_err(|cause| refused(machine, settings, &io::Error::other(cause)))?;
    let each = here.iter().map(|node| {
        let place = PartsPlace {
            node: *node,
            nodes,
            here: here.len(),
            domain: domain.clone(),
            layout: settings.layout,
            managers: settings.managers,
            consistency: settings.consistency,
        };
        let made = maker.make(place);
        made.map(Some)
            .map_err(|cause| refused(machine, settings, &cause))
    });
    each.collect()
}

type Results = Vec<(NodeId, Result<NodeId, Failure>)>;

/// What the nodes came to that are left, and those that are not.
fn left(
    settings: &Settings,
    all: &[Router<'_>],
    results: Vec<Option<Result<NodeId, Failure>>>,
) -> Result<(Results, Vec<LostNode>), RunError> {
    let gone = |result: &Option<_>| result.is_none();
    let part = all.iter().zip(&results);
    let part = part.map(|(router, result)| (&router.node, result));
    let part = part.filter(|(node, result)| !gone(result) && !node.is_out());
    let mut lost = part.map(|(node, _)| node.lost()).next().unwrap_or_default();
    for (Router { node, .. }, result) in all.iter().zip(&results) {
        if gone(result) && lost.iter().all(|lost| lost.node != node.id) {
            let (node, how) = (node.id, "it crashed".to_owned());
            lost.push(LostNode { node, how });
        }
    }
    let is_lost = |id| lost.iter().any(|lost| lost.node == id);
    let all = all.iter().map(|router| router.node.id).zip(results);
    let results: Results = all
        .filter_map(|(id, result)| Some((id, result?)))
        .filter(|(id, _)| !is_lost(*id))
        .collect();
    if (!settings.survive || results.is_empty()) && !lost.is_empty() {
        let (lost, others) = (lost.swap_remove(0), Vec::new());
        return Err(RunError::Lost { lost, others });
    }
    Ok((results, lost))
}

fn run_node(
    worker: &mut Worker<'_>,
    program: &Program<'_>,
    failures: &AtomicUsize,
) -> Result<NodeId, Failure> {
    worker.link.begins_program();
    worker.link.machine.leave(worker.node());
    let ended = {
        #[cfg(feature = "tracing")]
        let _span = crate::spans::program(worker.link.machine, worker.node());
        catch_unwind(AssertUnwindSafe(|| program(worker)))
    };
    let ended = match (ended, worker.link.parts) {
        (Ok(Ok(value)), Some(parts)) => Ok(parts.program_over().map(|()| value)),
        (ended, _) => ended,
    };
    worker.link.machine.enter(worker.node());
    let failed = match ended {
        Ok(Ok(value)) => match worker.finish() {
            Ok(()) => {
                worker.link.node.report_left();
                return Ok(value);
            }
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
