//! VOTE as a program over dhole: virtual shared memory that is made of objects (Cordsen, Nolte and
//! Schroeder-Preikschat, "Experiences Developing a Virtual Shared Memory System Using High-Level
//! Object Paradigms", sections 3.1 to 5).
//!
//! The paper's three classes stand over the public interface alone: the [adviser], a dual object
//! with a user half; the [actor], which stays on its node; and the [catcher] of each program.
//! A page has several readers or one writer, so the memory is sequentially consistent. The
//! [check](mod@check) finds that out. The `Ticket` of the paper is not there: the bytes of pages go
//! as slices.

pub mod actor;
pub mod adviser;
pub mod catcher;
pub mod check;
mod options;

use std::time::Duration;

use dhole::{Client, Error, MessageKind, NodeId, Object, Result, RunError, Worker, on};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::options::Common;
use crate::program::Losses;
use crate::random::SplitMix;
use crate::report::Report;
use crate::solve::Steps;

pub use actor::{Access, Actor, Saw};
pub use adviser::{Adviser, Break, Mode, Protocol, Wishes};
pub use catcher::Catcher;
pub use check::{Inconsistent, Record, check};
pub use options::Options;

/// The program's name.
pub const NAME: &str = "vote";

/// What it does when a node is lost: pages go with their holders.
pub const LOSSES: Losses = Losses::End;

/// A kind of fault, as section 4.2 tells them apart.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// A read of a page of which the adviser has a copy.
    ReadCached,
    /// A read of a page that only its owner has.
    ReadNotCached,
    /// A write of a page that the node may read.
    Upgrade,
    /// A write of a page of which the adviser has a copy, and the node has none.
    WriteCached,
    /// A write of a page that neither has.
    WriteNotCached,
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 5] = [
        Case::ReadCached,
        Case::ReadNotCached,
        Case::Upgrade,
        Case::WriteCached,
        Case::WriteNotCached,
    ];

    /// The messages of one fault, with so many other holders; an invocation is two.
    pub fn messages(self, holders: u64) -> u64 {
        match self {
            Case::ReadCached => 4,
            Case::ReadNotCached => 8,
            Case::Upgrade => 2 + 2 * holders,
            Case::WriteCached => 4 + 2 * holders,
            Case::WriteNotCached => 6 + 2 * holders,
        }
    }

    /// What its nodes do before the fault.
    fn owner_writes(self) -> bool {
        matches!(self, Case::ReadNotCached | Case::WriteNotCached)
    }

    fn writes(self) -> bool {
        !matches!(self, Case::ReadCached | Case::ReadNotCached)
    }
}

/// What the programs do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Node 1 has one fault; this many nodes from 2 on have the page.
    Case {
        /// The kind of fault.
        case: Case,
        /// Nodes with a copy.
        holders: u16,
    },
    /// All nodes access words at random.
    Random {
        /// Accesses of each node.
        accesses: u32,
        /// The seed of what they do.
        seed: u64,
        /// Pages that come along.
        working_set: u32,
        /// What programs say of their reads.
        mode: Mode,
    },
}

/// Memory, and what the programs do with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What they do.
    pub pattern: Pattern,
    /// Pages.
    pub pages: u32,
    /// Words of 8 bytes in a page.
    pub words: u32,
    /// Advisers, on the first nodes.
    pub advisers: u32,
    /// How pages are kept consistent.
    pub protocol: Protocol,
    /// A mistake on purpose.
    pub breaks: Break,
}

/// What the programs of all nodes did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// What each node saw, in its order; on node 0 alone.
    pub journals: Vec<Vec<Record>>,
    /// The faults of all nodes; on node 0 alone.
    pub faults: u64,
    /// How long the fault of a case took; on node 0 alone.
    pub fault_took: Duration,
    /// How long the accesses took.
    pub took: Duration,
}

/// What the program of one node did.
#[derive(Serialize, Deserialize)]
struct Did {
    journal: Vec<Record>,
    faults: u64,
    fault_took: Duration,
}

/// Makes the memory. Each node has an actor for each adviser, and finds the adviser by its name.
fn memory(w: &mut Worker<'_>, problem: &Problem) -> Result<Catcher> {
    let pages = problem.pages.div_ceil(problem.advisers);
    let mut parts = Vec::new();
    for number in 0..problem.advisers {
        let name = format!("the adviser of part {number}");
        let here = on(w.node());
        let actor = Actor::open_in(w, here, pages)?;
        let actors = w.all_gather(actor)?;
        if w.node() == NodeId(number as u16) {
            let cache = Actor::open_in(w, here, pages)?;
            let sizes = (pages, problem.words + 1);
            let adviser = Adviser::open_in(w, here, actors, cache, sizes, problem.breaks)?;
            w.bind(&name, &adviser)?;
        }
        let adviser: Object<Adviser> = w.await_name(&name)?;
        let mut client = Client::of(adviser, Wishes::default());
        client.set_prot(problem.protocol);
        parts.push((client, actor));
    }
    Ok(Catcher::new(parts))
}

/// The program of each node.
///
/// # Errors
/// Those of the run, and what is [inconsistent](check()), if that is asked for.
pub fn run(w: &mut Worker<'_>, problem: &Problem, verify: bool) -> Result<Outcome> {
    let mut memory = memory(w, problem)?;
    let mut steps = Steps::default();
    let did = match problem.pattern {
        Pattern::Case { case, holders } => one_fault(w, &mut memory, case, holders, &mut steps)?,
        Pattern::Random { .. } => at_random(w, &mut memory, problem, &mut steps)?,
    };
    let all = w.gather(did)?.unwrap_or_default();
    let outcome = Outcome {
        faults: all.iter().map(|did| did.faults).sum(),
        fault_took: all
            .iter()
            .map(|did| did.fault_took)
            .max()
            .unwrap_or_default(),
        journals: all.into_iter().map(|did| did.journal).collect(),
        took: steps.took(),
    };
    if verify {
        check(&outcome.journals).map_err(|found| Error::program(found.to_string()))?;
    }
    Ok(outcome)
}

/// The nodes that have the page get it, then node 1 has its fault.
fn one_fault(
    w: &mut Worker<'_>,
    memory: &mut Catcher,
    case: Case,
    holders: u16,
    steps: &mut Steps,
) -> Result<Did> {
    const PAGE: u32 = 0;
    const FAULTS: NodeId = NodeId(1);
    const QUIET: u64 = 1_000_000;
    let me = w.node();
    let mut journal = Vec::new();
    let mut access = |w: &mut Worker<'_>, memory: &mut Catcher, access| -> Result<()> {
        let (page, saw) = (PAGE, memory.access(w, PAGE, access)?);
        journal.push(Record { page, access, saw });
        Ok(())
    };
    let holds = (2..2 + holders).contains(&me.0) || (me == FAULTS && case == Case::Upgrade);
    if case.owner_writes() {
        if me == NodeId(2) {
            access(w, memory, Access::Store(0, 1))?;
        }
        memory.adviser(PAGE).set_prot(Protocol::Uncached);
        w.barrier()?;
    }
    if holds {
        access(w, memory, Access::Load(0))?;
    }
    let wanted = match case {
        Case::WriteNotCached => Protocol::Uncached,
        _ => Protocol::Cached,
    };
    memory.adviser(PAGE).set_prot(wanted);
    memory.faults = 0;
    w.barrier()?; // those who got the page need nothing any more
    steps.begin(w)?;
    if me == FAULTS {
        w.work(QUIET); // the others wait by now, and send nothing
    }
    let began = w.now();
    if me == FAULTS {
        let last = match case.writes() {
            true => Access::Store(0, 2),
            false => Access::Load(0),
        };
        access(w, memory, last)?;
    }
    let fault_took = w.now().saturating_sub(began);
    steps.end(w)?;
    let fault_took = match me {
        FAULTS => fault_took,
        _ => Duration::ZERO,
    };
    Ok(Did {
        journal,
        faults: memory.faults,
        fault_took,
    })
}

/// Each node reads and writes words at random. No value is written twice.
fn at_random(
    w: &mut Worker<'_>,
    memory: &mut Catcher,
    problem: &Problem,
    steps: &mut Steps,
) -> Result<Did> {
    let Pattern::Random {
        accesses,
        seed,
        working_set,
        mode,
    } = problem.pattern
    else {
        return Err(Error::program("accesses at random are another pattern"));
    };
    let me = u64::from(w.node().0) + 1;
    let mut random = SplitMix::new(SplitMix::new(seed).at(me));
    let mut journal = Vec::new();
    for page in 0..problem.advisers {
        memory.adviser(page).set_mode(mode);
    }
    steps.begin(w)?;
    for number in 1..=u64::from(accesses) {
        let [page, word] =
            [problem.pages, problem.words].map(|all| (random.bits() % u64::from(all)) as u32);
        let access = match random.bits() % 3 {
            0 => Access::Store(word, me << 32 | number),
            _ => Access::Load(word),
        };
        let here = page / problem.advisers;
        let low = here - here % working_set;
        memory.adviser(page).indicate_ws(low, low + working_set);
        w.work(random.bits() % 10_000);
        let saw = memory.access(w, page, access)?;
        journal.push(Record { page, access, saw });
    }
    steps.end(w)?;
    Ok(Did {
        journal,
        faults: memory.faults,
        fault_took: Duration::ZERO,
    })
}

/// Runs the program on a cluster.
///
/// # Errors
/// Those of the run; and with `--verify` an error that says what was inconsistent, or that a case
/// took other messages than it should.
pub fn solve(
    common: &Common,
    cluster: Cluster,
    problem: &Problem,
) -> std::result::Result<Report, RunError> {
    let config = cluster.config(common);
    let run = config.run(|w| run(w, problem, common.verify))?;
    let measured = run.report.measured();
    let kinds = [MessageKind::OperationRequest, MessageKind::OperationReply];
    let messages =
        measured.map(|counters| kinds.map(|kind| counters.sent(kind)).iter().sum::<u64>());
    let outcome = run.value;
    let result = result(problem, &outcome, messages, common.verify);
    let took = run.report.measured_time.unwrap_or(outcome.took);
    let title = title(problem);
    Ok(Report::new(NAME, &run.report, took, None, &result).titled(title))
}

fn title(problem: &Problem) -> String {
    let (pages, bytes) = (problem.pages, problem.words * 8);
    match problem.pattern {
        Pattern::Case { case, holders } => {
            format!("one fault of a page of {bytes} bytes, {case:?}, {holders} others have it")
        }
        Pattern::Random { accesses, .. } => {
            format!("{accesses} accesses of each node, {pages} pages of {bytes} bytes")
        }
    }
}

fn result(problem: &Problem, outcome: &Outcome, messages: Option<u64>, verify: bool) -> Value {
    let mut result = json!({ "faults": outcome.faults });
    if let Some(messages) = messages {
        result["messages"] = messages.into();
    }
    if let Pattern::Case { case, holders } = problem.pattern {
        result["expected"] = case.messages(holders.into()).into();
        result["us"] = (outcome.fault_took.as_secs_f64() * 1e6).into();
    }
    if verify {
        result["consistent"] = true.into();
    }
    result
}
