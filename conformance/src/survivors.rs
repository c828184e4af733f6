//! Objects in a simulated cluster whose nodes crash: the whole engine, with its groups, under seeds
//! of jitter, loss, crashes, migration and changes of strategy. There must be one order of all
//! operations in which one copy of each object shows the workers what they saw. An object that was
//! lost with a node stays lost, and the error names the node.
//!
//! The outcome of an interrupted call is unknown: it may have happened at any later time, or never.
//! So it stays open in the history, and its worker goes on as another one.

use std::sync::{Mutex, PoisonError};

use dhole::sim::{Crash, Settings};
use dhole::{
    Config, Error, NodeId, Object, ObjectError, Refusal, Result, RunError, Strategy, SyncError,
    Worker, on, replicated,
};
use dhole_check::history::{History, OneCopy};
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// A number that is added to.
#[derive(Serialize, Deserialize)]
struct Sum(u8);

#[dhole::object]
impl Sum {
    pub fn add(&mut self) -> u8 {
        self.0 += 1;
        self.0
    }

    #[when(self.0 > 0)]
    pub fn take(&mut self) -> u8 {
        self.0 -= 1;
        self.0
    }

    pub fn value(&self) -> u8 {
        self.0
    }
}

/// An operation on a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Add,
    Take,
    Value,
}

/// An act of a worker.
#[derive(Clone, Copy, Debug)]
enum Act {
    Call(usize, Op),
    Change(usize, Strategy),
}

/// The values of all objects.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Values(Vec<u8>);

impl OneCopy for Values {
    type Call = (usize, Op);
    type Result = u8;

    fn apply(&mut self, (object, op): &(usize, Op)) -> Option<u8> {
        let value = &mut self.0[*object];
        match op {
            Op::Add => *value += 1,
            Op::Take => *value = value.checked_sub(1)?,
            Op::Value => {}
        }
        Some(*value)
    }
}

/// A bug planted in a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// A write that was acknowledged on the node that crashes was never made.
    AcknowledgedForNothing,
    /// An object that was lost is back, as it was made.
    Resurrected,
}

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: u16,
    /// Objects.
    pub objects: usize,
    /// Acts of each worker.
    pub acts: usize,
    /// Whether objects change where they are kept.
    pub changes: bool,
    /// Nodes that crash.
    pub crashes: u16,
}

/// Something that a worker saw, at a time of the cluster.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at_ns: u128,
    /// The worker; one that has lost a call goes on as another.
    thread: usize,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Calls(usize, Op),
    Hears(usize, u8),
    /// The object is lost.
    Misses(usize),
}

/// The observations of a run.
#[derive(Default)]
struct Observed(Mutex<Vec<Seen>>);

impl Observed {
    fn note(&self, w: &Worker<'_>, thread: usize, what: What) {
        let at_ns = w.now().as_nanos();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(Seen {
            at_ns,
            thread,
            what,
        });
    }
}

fn act(shape: Shape, random: &mut Random) -> Act {
    let object = random.random_range(0..shape.objects);
    match random.random_range(0..10) {
        0 | 1 if shape.changes => Act::Change(object, strategy(shape, random)),
        0..=5 => Act::Call(object, Op::Add),
        6 => Act::Call(object, Op::Take),
        _ => Act::Call(object, Op::Value),
    }
}

fn strategy(shape: Shape, random: &mut Random) -> Strategy {
    match random.random_range(0..shape.nodes + 2) {
        node if node < shape.nodes => on(NodeId(node)),
        _ => replicated(),
    }
}

/// Whether the error says that an object is lost, and not the whole run.
fn is_loss(error: &ObjectError) -> bool {
    let (ObjectError::Refused { cause, .. } | ObjectError::NotMade { cause, .. }) = error else {
        return false;
    };
    matches!(
        cause,
        Refusal::Lost(_) | Refusal::Unanswered(_) | Refusal::NoNode(_)
    )
}

/// Whether a run has ended because what a taker waits for may never be added any more: all others
/// take in vain too, or have met at a barrier and wait for those that do.
fn takes_in_vain(error: &RunError) -> bool {
    let RunError::Failed { error, .. } = error else {
        return false;
    };
    let (Error::Sync(sync) | Error::Object(ObjectError::Sync(sync))) = &**error else {
        return false;
    };
    let SyncError::Deadlock { cycle, .. } = sync else {
        return false;
    };
    let waits: Vec<String> = cycle.iter().map(ToString::to_string).collect();
    let takes = |words: &String| words.contains("Sum::take");
    let meets = |words: &String| words.contains(" waits for the barrier at ");
    waits.iter().any(takes) && waits.iter().all(|words| takes(words) || meets(words))
}

/// Runs a random program whose cluster loses nodes.
///
/// # Errors
/// The error in what the workers saw.
pub fn run(shape: Shape, seed: u64, planted: Planted) -> std::result::Result<(), String> {
    let mut random = Random::seed_from_u64(seed);
    let acts = |random: &mut Random| (0..shape.acts).map(|_| act(shape, random)).collect();
    let programs: Vec<Vec<Act>> = (0..shape.nodes).map(|_| acts(&mut random)).collect();
    let made: Vec<Strategy> = (0..shape.objects)
        .map(|_| strategy(shape, &mut random))
        .collect();
    let mut settings = Settings::fixed_cost(usize::from(shape.nodes));
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings.network.loss = if seed.is_multiple_of(2) { 0.05 } else { 0.0 };
    settings.network.retransmit_ns = 40_000;
    settings.notice_ns = 10_000 << random.random_range(0..5);
    for _ in 0..shape.crashes {
        let node = NodeId(random.random_range(0..shape.nodes));
        let at_ns = random.random_range(20_000..900_000);
        settings.crashes.push(Crash { node, at_ns });
    }
    let history = Observed::default();
    let ran = Config::nodes(1).survive(true).simulate(settings, |w| {
        let objects = objects(w, &made)?;
        work(w, &objects, &programs[w.node().index()], &history)
    });
    let lost = match ran {
        Ok(run) => run.report.lost.first().map(|lost| lost.node),
        Err(error) if takes_in_vain(&error) => None,
        Err(error) => return Err(error.to_string()),
    };
    let seen = history
        .0
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    check(shape, tampered(seen, lost, planted))
}

/// Makes the objects, on whichever node does that.
fn objects(w: &mut Worker<'_>, made: &[Strategy]) -> Result<Vec<Object<Sum>>> {
    let make = |w: &mut Worker<'_>, strategy| match w.new_object(strategy, Sum(0)) {
        Err(error) if is_loss(&error) => Ok(w.new_object(replicated(), Sum(0))?),
        made => Ok(made?),
    };
    made.iter()
        .map(|strategy| w.once(|w| make(w, *strategy)))
        .collect()
}

/// Does what a worker does, and in the end, when all have, looks at everything once more.
fn work(w: &mut Worker<'_>, all: &[Object<Sum>], acts: &[Act], history: &Observed) -> Result<()> {
    let mut thread = w.node().index();
    let last = (0..all.len()).map(|object| Act::Call(object, Op::Value));
    for act in acts.iter().copied() {
        w.work(w.random() % 40_000);
        perform(w, all, act, &mut thread, history)?;
    }
    w.barrier()?;
    for act in last {
        perform(w, all, act, &mut thread, history)?;
    }
    Ok(())
}

fn perform(
    w: &mut Worker<'_>,
    all: &[Object<Sum>],
    act: Act,
    thread: &mut usize,
    history: &Observed,
) -> Result<()> {
    let (object, op) = match act {
        Act::Change(object, to) => {
            return match Object::strategy(&all[object], w, to) {
                Err(error) if !is_loss(&error) => Err(error.into()),
                _ => Ok(()),
            };
        }
        Act::Call(object, op) => (object, op),
    };
    history.note(w, *thread, What::Calls(object, op));
    let called = match op {
        Op::Add => all[object].add(w),
        Op::Take => all[object].take(w),
        Op::Value => all[object].value(w),
    };
    match called {
        Ok(value) => history.note(w, *thread, What::Hears(object, value)),
        Err(error) if is_loss(&error) => {
            let ObjectError::Refused { cause, .. } = error else {
                return Ok(());
            };
            if matches!(cause, Refusal::Lost(_)) {
                history.note(w, *thread, What::Misses(object));
            }
            *thread += w.nodes();
        }
        Err(error) => return Err(Error::from(error)),
    }
    Ok(())
}

/// The history with a planted mistake.
fn tampered(mut seen: Vec<Seen>, lost: Option<NodeId>, planted: Planted) -> Vec<Seen> {
    match planted {
        Planted::Nothing => {}
        Planted::AcknowledgedForNothing => {
            // Its last write was heard of by nobody else: the others count one less from then on.
            let of_lost = |seen: &Seen| lost.is_some_and(|node| seen.thread == node.index());
            let calls =
                |seen: &&Seen| of_lost(seen) && matches!(seen.what, What::Calls(_, Op::Add));
            let Some(call) = seen.iter().rfind(calls).copied() else {
                return seen;
            };
            let What::Calls(object, _) = call.what else {
                return seen;
            };
            for other in seen.iter_mut().filter(|other| other.at_ns > call.at_ns) {
                if let What::Hears(of, value) = &mut other.what
                    && *of == object
                    && other.thread != call.thread
                {
                    *value = value.wrapping_sub(1);
                }
            }
        }
        Planted::Resurrected => {
            let missed = seen
                .iter()
                .find(|seen| matches!(seen.what, What::Misses(_)));
            if let Some(Seen {
                what: What::Misses(object),
                ..
            }) = missed.copied()
            {
                let misses = |seen: &&mut Seen| seen.what == What::Misses(object);
                if let Some(last) = seen.iter_mut().rfind(misses) {
                    last.what = What::Hears(object, 0);
                }
            }
        }
    }
    seen
}

fn check(shape: Shape, mut seen: Vec<Seen>) -> std::result::Result<(), String> {
    // At one moment calls come before results: that is the weaker order of the two.
    seen.sort_by_key(|seen| (seen.at_ns, !matches!(seen.what, What::Calls(..))));
    let mut history = History::default();
    // Of the operations that write, alone: those that read a replica may be late.
    let mut writes = History::default();
    let mut calls: Vec<(usize, usize, Op, u128)> = Vec::new();
    let mut missed: Vec<Option<u128>> = vec![None; shape.objects];
    for Seen {
        at_ns,
        thread,
        what,
    } in &seen
    {
        match *what {
            What::Calls(object, op) => {
                calls.push((*thread, object, op, *at_ns));
                history.calls(*thread, (object, op))?;
                if op != Op::Value {
                    writes.calls(*thread, (object, op))?;
                }
            }
            What::Hears(object, value) => {
                let call = calls.iter().rfind(|call| call.0 == *thread);
                let (_, _, op, called) = call.ok_or("a result of no call")?;
                if missed[object].is_some_and(|missed| missed < *called) {
                    return Err(format!("object {object} was lost, and is back: {seen:?}"));
                }
                history.hears(*thread, value)?;
                if *op != Op::Value {
                    writes.hears(*thread, value)?;
                }
            }
            What::Misses(object) => {
                missed[object].get_or_insert(*at_ns);
            }
        }
    }
    let zeros = Values(vec![0; shape.objects]);
    if !history.is_sequentially_consistent(zeros.clone()) {
        return Err(format!("no order explains {seen:?}"));
    }
    if !writes.is_linearizable(zeros) {
        return Err(format!("no order in real time explains {seen:?}"));
    }
    Ok(())
}
