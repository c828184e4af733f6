//! Tasks that make tasks: searches, trees, divide and conquer.
//!
//! Each task may push others. A node works on its newest ones, and gives the oldest half of its
//! tasks to a node that has none. When all tasks of all nodes are done, every node goes on.
//!
//! ```
//! use dhole::{Config, tasks};
//!
//! // The numbers of queens' places on a board, row by row.
//! type Places = Vec<u8>;
//!
//! fn is_free(places: &Places, column: u8) -> bool {
//!     let rows_up = (1..).zip(places.iter().rev());
//!     rows_up.into_iter().all(|(up, &it)| it != column && it.abs_diff(column) != up)
//! }
//!
//! let run = Config::nodes(2).run(|w| {
//!     let roots = if w.node().index() == 0 { vec![Places::new()] } else { vec![] };
//!     let solutions = tasks::tree(
//!         w,
//!         roots,
//!         |_, places, more| {
//!             for column in (0..6).filter(|column| is_free(&places, *column)) {
//!                 let mut next = places.clone();
//!                 next.push(column);
//!                 more.push(next)?;
//!             }
//!             Ok(u64::from(places.len() == 6))
//!         },
//!         |one, other| one + other,
//!     )?;
//!     Ok(solutions)
//! })?;
//! assert_eq!(run.value, Some(4));
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! What was written before a task was pushed is visible to the node that runs it.

mod by_parts;
mod error;
mod for_each;
mod hunt;
mod ledger;
mod parts;
mod pile;
mod schedule;
mod state;
mod surviving;

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use dhole_model::{CallSite, NodeId};
use dhole_node::object::{Calling, Object, call_as, on, replicated};
use dhole_node::{Result, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::job_queue::ByValue;
pub use by_parts::ByParts;
pub use error::TasksError;
pub use for_each::for_each;
use hunt::{Hunt, Step};
use ledger::Ledger;
use pile::Pile;
pub use schedule::Schedule;
use state::{Counts, Deque, Next};

type Tasked<T> = std::result::Result<T, TasksError>;

/// As many tasks may wait on a node, unless they are [bounded](Tasks::bounded).
pub const MOST_TASKS: u64 = 1 << 24;

/// A worker looks about so often whether others need tasks.
const LOOKS_EACH: Duration = Duration::from_micros(50);
/// At the latest after so many tasks.
const MOST_BETWEEN: u64 = 1_024;

/// Tasks `T` of all nodes. A handle of 8 bytes, copied freely.
///
/// - A node runs its task of the highest [priority](More::push_first), and of equals the newest: a
///   tree is searched in depth. It keeps the tasks that it makes to itself, without a message and
///   without a lock. It holds half of them out to nodes that have none, of each priority the oldest
///   ones. It runs those itself when it has no others, or none of as high a priority.
/// - A node without tasks steals from few others, log2 n by chance and log2 n *lifelines*. Then it
///   waits: those give it tasks when they have some. So nodes that wait send nothing. A steal takes
///   two messages, a gift one or two.
/// - [`join`](Tasks::join) ends when all tasks of all nodes are done. It is found by counting the
///   tasks made and done, twice: 2 messages for each node that runs out of tasks, 2(n-1) for each
///   time that it may be over, and a barrier.
///
/// In a run that [survives](crate::Config::survive) the loss of nodes one replicated object has the
/// tasks, and nodes take them on lease. Each 100 ms, or when another node has none, a node hands in
/// the tasks that it has left, with its [result](Tasks::reduce) so far. If it is lost before,
/// others run its tasks again as it took them, and the result counts each task once. A task may
/// write elsewhere twice: it sets an element, say, and does not add to it. All this takes some
/// messages to all nodes for each lease.
#[derive(dhole_heap::Share)]
#[share(crate = "dhole_heap", nullable, bound = "T: ByValue")]
#[repr(transparent)]
pub struct Tasks<T: ByValue> {
    /// The deque of node 0. Those of the others were made after it, in a row. In a run that
    /// survives the loss of nodes: the ledger.
    first: Object<Deque<T>>,
}

impl<T: ByValue> Clone for Tasks<T> {
    fn clone(&self) -> Tasks<T> {
        *self
    }
}

impl<T: ByValue> Copy for Tasks<T> {}

impl<T: ByValue> fmt::Debug for Tasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks({})", Object::id(&self.first).0)
    }
}

impl<T: ByValue> Serialize for Tasks<T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.first.serialize(to)
    }
}

impl<'de, T: ByValue> Deserialize<'de> for Tasks<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Object::deserialize(from).map(|first| Tasks { first })
    }
}

/// The tasks that a running task makes.
#[derive(Debug)]
pub struct More<'a, T: ByValue> {
    tasks: Tasks<T>,
    node: NodeId,
    most: u64,
    pile: &'a mut Pile<T>,
    untold: &'a mut Counts,
    /// Whether what the task makes counts only when the task is done.
    on_lease: bool,
}

impl<T: ByValue> More<'_, T> {
    /// Makes a task, of priority 0. This node runs it when the running task is done, or another
    /// node does.
    ///
    /// # Errors
    /// [`TasksError::Full`] if as many tasks wait on this node as may: it was not made.
    #[inline]
    #[track_caller]
    pub fn push(&mut self, task: T) -> Tasked<()> {
        self.push_first(0, task)
    }

    /// Makes a task that goes before all of lower priority: in a search for the best, the task of
    /// the best bound.
    ///
    /// # Errors
    /// As [`push`](More::push).
    #[inline]
    #[track_caller]
    pub fn push_first(&mut self, priority: i64, task: T) -> Tasked<()> {
        if self.pile.len() >= self.most {
            return Err(self.tasks.full(self.node, self.most));
        }
        self.untold.made += 1;
        self.pile.push(priority, task);
        Ok(())
    }

    /// Gives tasks that this node has made to nodes that have none. A worker does so between two
    /// tasks; a task of more than a few hundredths of the program calls it now and then. It takes a
    /// microsecond where nobody needs any, and no message.
    ///
    /// In a run that survives the loss of nodes it does nothing: what a task makes counts only when
    /// the task is done.
    ///
    /// # Errors
    /// [`TasksError::Object`] if the tasks are freed.
    #[track_caller]
    pub fn share(&mut self, w: &mut Worker<'_>) -> Tasked<()> {
        if self.on_lease || self.pile.is_empty() || w.nodes() == 1 {
            return Ok(());
        }
        let own = self.tasks.of(w, self.node);
        self.tasks.look(w, own, self.pile, self.untold)
    }
}

impl<T: ByValue> Tasks<T> {
    /// No tasks yet. The other nodes get the handle through [`once`](Worker::once), another object
    /// or a [name](crate::names).
    ///
    /// # Errors
    /// [`TasksError::Object`] if they cannot be made.
    #[track_caller]
    pub fn new(w: &mut Worker<'_>) -> Tasked<Tasks<T>> {
        Tasks::bounded(w, MOST_TASKS)
    }

    /// The deque of a node, which is there.
    fn of(&self, w: &mut Worker<'_>, node: NodeId) -> Object<Deque<T>> {
        let deque = Object::nth(&self.first, w, node.index());
        w.suppose(&deque, node);
        deque
    }

    #[cold]
    #[track_caller]
    fn full(&self, node: NodeId, most: u64) -> TasksError {
        TasksError::Full {
            tasks: Object::id(&self.first),
            node,
            site: CallSite::caller(),
            most,
        }
    }

    /// The same, where at most `most` tasks wait on a node that pushes, at least one. (What others
    /// give it may be more.)
    ///
    /// # Errors
    /// As [`new`](Tasks::new).
    #[track_caller]
    pub fn bounded(w: &mut Worker<'_>, most: u64) -> Tasked<Tasks<T>> {
        Tasks::made(w, most, Location::caller())
    }

    fn made(w: &mut Worker<'_>, most: u64, at: &'static Location<'static>) -> Tasked<Tasks<T>> {
        let (nodes, most) = (w.nodes(), most.max(1));
        if w.survives() {
            let ledger = [(replicated(), Ledger::<T>::new(nodes, most))];
            let ledger = w.new_row(at, ledger.into_iter())?;
            let first = Object::named(Object::id(&ledger));
            return Ok(Tasks { first });
        }
        let each = (0..nodes).map(|node| (on(NodeId::at(node)), Deque::new(nodes, most)));
        let first = w.new_row(at, each)?;
        Ok(Tasks { first })
    }

    /// Makes a task, of priority 0, before [`join`](Tasks::join) or in a process beside it. Within
    /// a task [`More::push`] costs less.
    ///
    /// In a run that survives the loss of nodes: what a node makes so while it runs a task counts
    /// when that task is done, as what the task makes.
    ///
    /// # Errors
    /// [`TasksError::Full`] if as many tasks wait on this node as may: it was not made.
    #[track_caller]
    pub fn push(&self, w: &mut Worker<'_>, task: T) -> Tasked<()> {
        self.push_first(w, 0, task)
    }

    /// Makes a task that goes before all of lower priority.
    ///
    /// # Errors
    /// As [`push`](Tasks::push).
    #[track_caller]
    pub fn push_first(&self, w: &mut Worker<'_>, priority: i64, task: T) -> Tasked<()> {
        let node = w.node();
        let full = match w.survives() {
            true => self.ledger().push(w, node, priority, task)?,
            false => self.of(w, node).push(w, priority, task)?,
        };
        match full {
            None => Ok(()),
            Some(most) => Err(self.full(node, most)),
        }
    }

    /// Runs tasks until all tasks of all nodes are done. Every node calls it. It ends with a
    /// barrier: what the tasks wrote is visible to every node after it. Then there may be other
    /// tasks, and another `join`.
    ///
    /// A task that a process of a node pushes while `join` ends may be left for the next one.
    ///
    /// A task may take locks, call operations, send messages, start processes and join them. It
    /// does not meet other nodes, which run other tasks: barriers, collectives, `once`, `join` and
    /// [`for_each`] within a task are refused (`SyncError::InTask`). Nor does it wait for another
    /// task, which may wait on the same node.
    ///
    /// # Errors
    /// Those of `run`, which end the run on all nodes; [`TasksError::Object`] if the tasks are
    /// freed; as [`barrier`](Worker::barrier). A node that never calls it is a deadlock, or an
    /// error that names its call.
    #[track_caller]
    pub fn join(
        &self,
        w: &mut Worker<'_>,
        mut run: impl FnMut(&mut Worker<'_>, T, &mut More<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let mut by_itself = w.by_itself("join", CallSite::caller())?;
        match by_itself.survives() {
            false => self.run_all(&mut by_itself, run)?,
            true => {
                let run = |w: &mut Worker<'_>, task, more: &mut More<'_, T>, (): &mut ()| {
                    run(w, task, more)
                };
                self.run_on_lease(&mut by_itself, &mut (), run)?;
            }
        }
        drop(by_itself);
        Ok(w.barrier()?)
    }

    /// As [`join`](Tasks::join), where each task has a result. Every node gets the results of all
    /// tasks of all nodes, combined, or `None` if there were no tasks.
    ///
    /// Which node runs a task is decided by chance, so `combine` must be associative and
    /// commutative, and of floating-point numbers the last bits differ from run to run.
    ///
    /// In a run that survives the loss of nodes each task counts once, also where a lost node has
    /// run it and another one again.
    ///
    /// # Errors
    /// As [`join`](Tasks::join) and [`Worker::all_reduce`]; [`TasksError::Result`] if results
    /// cannot be written as bytes, or read.
    #[track_caller]
    pub fn reduce<R: Serialize + DeserializeOwned>(
        &self,
        w: &mut Worker<'_>,
        mut run: impl FnMut(&mut Worker<'_>, T, &mut More<'_, T>) -> Result<R>,
        mut combine: impl FnMut(R, R) -> R,
    ) -> Result<Option<R>> {
        let mut both = |one: Option<R>, other: Option<R>| match (one, other) {
            (Some(one), Some(other)) => Some(combine(one, other)),
            (one, other) => one.or(other),
        };
        let mut mine = None;
        if !w.survives() {
            self.join(w, |w, task, more| {
                let result = run(w, task, more)?;
                mine = both(mine.take(), Some(result));
                Ok(())
            })?;
            return Ok(w.all_reduce(mine, both)?);
        }
        let mut by_itself = w.by_itself("reduce", CallSite::caller())?;
        self.run_on_lease(&mut by_itself, &mut mine, |w, task, more, mine| {
            let result = run(w, task, more)?;
            *mine = both(mine.take(), Some(result));
            Ok(())
        })?;
        drop(by_itself);
        let results = self.results_on_lease::<Option<R>>(w)?;
        w.barrier()?;
        Ok(results.into_iter().fold(None, both))
    }

    /// Runs tasks until all tasks of all nodes are done.
    #[track_caller]
    fn run_all(
        &self,
        w: &mut Worker<'_>,
        mut run: impl FnMut(&mut Worker<'_>, T, &mut More<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let (node, is_alone) = (w.node(), w.nodes() == 1);
        let own = self.of(w, node);
        let most = own.begin(w)?;
        let mut pile = Pile::default();
        let mut untold = Counts::default();
        let mut looks = Looks::new(w.now());
        loop {
            while let Some(task) = pile.pop() {
                let mut more = More {
                    tasks: *self,
                    node,
                    most,
                    pile: &mut pile,
                    untold: &mut untold,
                    on_lease: false,
                };
                // The others wait for what this task makes, whatever becomes of the error.
                run(w, task, &mut more).inspect_err(|error| w.end_run(error))?;
                untold.done += 1;
                if looks.is_due() && pile.len() > 1 && !is_alone {
                    self.look(w, own, &mut pile, &mut untold)?;
                    looks.looked(w.now());
                }
            }
            match self.hunt(w, own, &mut untold)? {
                Next::Tasks(tasks) => (pile, looks) = (tasks, Looks::new(w.now())),
                Next::Made => {}
                Next::Over => return Ok(()),
            }
        }
    }

    /// Gives tasks to those who have none.
    #[track_caller]
    fn look(
        &self,
        w: &mut Worker<'_>,
        own: Object<Deque<T>>,
        pile: &mut Pile<T>,
        untold: &mut Counts,
    ) -> Tasked<()> {
        // Each gets half of what is left, and at least one is.
        let most = u64::from(pile.len().ilog2());
        let (held_out, hungry) = own.look(w, std::mem::take(untold), most)?;
        for node in hungry {
            let gives = self.of(w, node).start_give(w, pile.gift())?;
            w.forget_unless_refused(gives)?;
        }
        if held_out.is_none() && pile.len() > 1 {
            own.give(w, pile.half())?;
        } else if held_out > pile.top() {
            let (better, _) = own.take(w, Counts::default())?;
            pile.add(better);
        }
        Ok(())
    }

    /// Looks for tasks, and waits for some, or until it is over.
    #[track_caller]
    fn hunt(
        &self,
        w: &mut Worker<'_>,
        own: Object<Deque<T>>,
        untold: &mut Counts,
    ) -> Tasked<Next<T>> {
        let me = w.node();
        let mut hunt = Hunt::new(me, w.nodes(), || w.random());
        loop {
            let found = match hunt.step() {
                Step::Take => {
                    let (tasks, counts) = own.take(w, std::mem::take(untold))?;
                    hunt.took(counts);
                    tasks
                }
                Step::Steal { victim, hangs } => {
                    let tasks = self.of(w, victim).steal(w, me, hangs)?;
                    hunt.stole();
                    tasks
                }
                Step::Report(counts) => {
                    let first = NodeId(0);
                    hunt.reported(self.of(w, first).report(w, me, counts)?);
                    continue;
                }
                Step::Ask(node) => {
                    hunt.asked(self.of(w, node).made(w)?);
                    continue;
                }
                Step::End(node) => {
                    let ends = self.of(w, node).start_end(w)?;
                    w.forget_unless_refused(ends)?;
                    hunt.told();
                    continue;
                }
                Step::Wait(told) => {
                    let calling = Calling::of("Deque::await_next", "Tasks::join");
                    let next = call_as(
                        w,
                        own,
                        calling,
                        (told,),
                        |deque, (told,)| deque.has_next(*told),
                        |deque, (told,)| deque.await_next(told),
                    );
                    return Ok(next?);
                }
            };
            if !found.is_empty() {
                return Ok(Next::Tasks(found));
            }
        }
    }

    /// Frees the tasks that are left, and what kept them. One node calls it, when all have joined.
    ///
    /// # Errors
    /// [`TasksError::Object`] if they were freed before.
    #[track_caller]
    pub fn free(&self, w: &mut Worker<'_>) -> Tasked<()> {
        if w.survives() {
            return Ok(Object::free(&self.ledger(), w)?);
        }
        for node in 0..w.nodes() {
            let deque = self.of(w, NodeId::at(node));
            Object::free(&deque, w)?;
        }
        Ok(())
    }
}

/// When a worker looks whether others need tasks.
struct Looks {
    /// So many tasks are between two looks.
    between: u64,
    /// The tasks since the last one.
    since: u64,
    at: Duration,
}

impl Looks {
    fn new(now: Duration) -> Looks {
        Looks {
            between: 1,
            since: 0,
            at: now,
        }
    }

    /// A task is done: whether a look is due.
    fn is_due(&mut self) -> bool {
        self.since += 1;
        self.since >= self.between
    }

    /// The worker has looked.
    fn looked(&mut self, now: Duration) {
        let took = now.saturating_sub(self.at).as_nanos().max(1);
        let fit = u128::from(self.since) * LOOKS_EACH.as_nanos() / took;
        // The next tasks may be longer.
        let most = MOST_BETWEEN.min(2 * self.between);
        self.between = (fit as u64).clamp(1, most);
        (self.since, self.at) = (0, now);
    }
}

/// Runs the tasks of a tree and combines their results: [`Tasks`] for one
/// [`reduce`](Tasks::reduce). Every node calls it, with the roots that it has, perhaps none.
///
/// # Errors
/// As [`Tasks::reduce`] and [`Tasks::push`]; [`TasksError::RootsLost`] if a node is lost before it
/// has given its roots.
#[track_caller]
pub fn tree<T: ByValue, R: Serialize + DeserializeOwned>(
    w: &mut Worker<'_>,
    roots: impl IntoIterator<Item = T>,
    run: impl FnMut(&mut Worker<'_>, T, &mut More<'_, T>) -> Result<R>,
    combine: impl FnMut(R, R) -> R,
) -> Result<Option<R>> {
    let at = Location::caller();
    let tasks = w.once(|w| Ok(Tasks::made(w, MOST_TASKS, at)?))?;
    for root in roots {
        tasks.push(w, root)?;
    }
    let all = tasks.reduce(w, run, combine)?;
    if w.survives() {
        tasks.unless_lost_early(w)?;
        // The first node that is left frees them, when all have asked that.
        w.barrier()?;
        w.once(|w| Ok(tasks.free(w)?))?;
    } else if w.node() == NodeId(0) {
        tasks.free(w)?;
    }
    Ok(all)
}
