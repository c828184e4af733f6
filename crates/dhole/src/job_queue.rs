//! A queue of jobs that nodes take, with the result of each.

mod error;
mod state;

use std::fmt;

use dhole_model::{CallSite, NodeId};
use dhole_node::object::{Object, ObjectError, on, replicated};
use dhole_node::{Result, Strategy, SyncError, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use error::JobQueueError;
use state::{JobQueue as State, Shut};

/// A type that travels between nodes by value, as the jobs of a [`JobQueue`] and their results do:
/// any that serde serialises and deserialises.
///
/// ```compile_fail,E0277
/// struct Job(u32); // error: `Job` does not travel between nodes by value
///
/// let run = dhole::Config::nodes(2).run(|w| {
///     dhole::JobQueue::<Job, u32>::new(w)?;
///     Ok(())
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not travel between nodes by value",
    label = "no job, task, key, value or result that other nodes can be sent",
    note = "a type of your own does by `#[derive(Clone, serde::Serialize, serde::Deserialize)]`, \
            with serde's feature `derive`; its fields do too, are `Send` and `Sync`, and borrow \
            nothing"
)]
pub trait ByValue: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> ByValue for T {}

type Called<T> = std::result::Result<T, ObjectError>;
type Queued<T> = std::result::Result<T, JobQueueError>;

/// A queue of jobs `J`, each of which has one result `R`. A handle of 8 bytes, copied freely.
///
/// A node that [takes](JobQueue::take) a job has a *lease* on it until it completes the job. If
/// that node is lost, the job goes back to the head of the queue, and another node takes it. So in
/// a run that [survives](crate::Config::survive) each job has exactly one result in the end, even
/// if two nodes have computed it. Nodes get jobs in the order of pushing. Of the nodes that wait
/// for a job, the one that has waited longest gets the next.
///
/// ```
/// use dhole::{Config, JobQueue};
///
/// let run = Config::nodes(4).run(|w| {
///     let squares = w.once(|w| Ok(JobQueue::<u64, u64>::of(w, 1..=100)?))?;
///     squares.work(w, |_, n| Ok(n * n))?; // until all jobs of all nodes are done
///     Ok(squares.results(w)?.into_iter().sum::<u64>())
/// })?;
/// assert_eq!(run.value, 338_350);
/// # Ok::<(), dhole::RunError>(())
/// ```
///
/// The queue ends when it is [closed](JobQueue::close) and every job has its result. A node that
/// waits for a job then gets `None`. A queue that nobody closes ends when the program of every node
/// [works](JobQueue::work) and every job has its result: nobody is left to push. The queue is kept
/// on the node that makes it, or on every node in a run that survives. It keeps every result until
/// it is [freed](JobQueue::free).
///
/// A job may push jobs, also into a closed queue:
///
/// ```
/// use dhole::{Config, JobQueue};
///
/// let run = Config::nodes(2).run(|w| {
///     let tree = w.once(|w| Ok(JobQueue::<u32, u64>::of(w, [4])?))?;
///     tree.work(w, |w, depth| {
///         for _ in 0..2 * depth.min(1) {
///             tree.push(w, depth - 1)?;
///         }
///         Ok(1)
///     })?;
///     Ok(tree.results(w)?.len())
/// })?;
/// assert_eq!(run.value, 31);
/// # Ok::<(), dhole::RunError>(())
/// ```
#[derive(dhole_heap::Share)]
#[share(crate = "dhole_heap", nullable, bound = "J: ByValue, R: ByValue")]
#[repr(transparent)]
pub struct JobQueue<J: ByValue, R: ByValue> {
    state: Object<State<J, R>>,
}

impl<J: ByValue, R: ByValue> Clone for JobQueue<J, R> {
    fn clone(&self) -> JobQueue<J, R> {
        *self
    }
}

impl<J: ByValue, R: ByValue> Copy for JobQueue<J, R> {}

impl<J: ByValue, R: ByValue> fmt::Debug for JobQueue<J, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobQueue({})", Object::id(&self.state).0)
    }
}

impl<J: ByValue, R: ByValue> Serialize for JobQueue<J, R> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.state.serialize(to)
    }
}

impl<'de, J: ByValue, R: ByValue> Deserialize<'de> for JobQueue<J, R> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Object::deserialize(from).map(|state| JobQueue { state })
    }
}

/// A job that a node has taken, until the node [completes](Lease::complete) it. If a lease is
/// dropped, its job stays this node's: the queue does not end before the node is lost.
#[must_use = "the queue ends only when every job that was taken is completed"]
#[derive(Debug)]
pub struct Lease<J: ByValue, R: ByValue> {
    queue: JobQueue<J, R>,
    id: u64,
    job: J,
}

impl<J: ByValue, R: ByValue> Lease<J, R> {
    /// How many jobs were pushed before it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The job.
    pub fn job(&self) -> &J {
        &self.job
    }

    /// [Pushes](JobQueue::push) a job that belongs to this one. Where a node has several jobs at a
    /// time, in a run that survives, it says which of them pushes.
    ///
    /// # Errors
    /// As [`JobQueue::push`].
    #[track_caller]
    pub fn push(&self, w: &mut Worker<'_>, job: J) -> Queued<u64> {
        self.queue.push_of(w, Some(self.id), job)
    }

    /// Gives the queue the result of the job, which completes it. When this returns, the result
    /// outlives this node in a run that survives.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue is lost or freed.
    #[track_caller]
    pub fn complete(self, w: &mut Worker<'_>, result: R) -> Called<()> {
        let (state, me) = (self.queue.state, w.node());
        state.complete(w, me, self.id, result).map(drop)
    }
}

impl<J: ByValue, R: ByValue> JobQueue<J, R> {
    /// An empty queue, open for any number of jobs. The other nodes get its handle through
    /// [`once`](Worker::once) or another object.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue cannot be made.
    #[track_caller]
    pub fn new(w: &mut Worker<'_>) -> Called<JobQueue<J, R>> {
        JobQueue::made(w, State::default())
    }

    /// An empty queue in which at most `limit` jobs wait, at least one. A node that
    /// [pushes](JobQueue::push) more waits until some are taken. A job that comes back from a lost
    /// node does not count.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue cannot be made.
    #[track_caller]
    pub fn bounded(w: &mut Worker<'_>, limit: usize) -> Called<JobQueue<J, R>> {
        JobQueue::made(w, State::bounded(limit.max(1) as u64))
    }

    /// A closed queue of these jobs. In a run that survives, make it in [`once`](Worker::once):
    /// then the loss of a node cannot leave it with only some of the jobs.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue cannot be made.
    #[track_caller]
    pub fn of(w: &mut Worker<'_>, jobs: impl IntoIterator<Item = J>) -> Called<JobQueue<J, R>> {
        JobQueue::made(w, State::of(jobs))
    }

    #[track_caller]
    fn made(w: &mut Worker<'_>, state: State<J, R>) -> Called<JobQueue<J, R>> {
        let kept = place(w.survives(), w.node());
        let state = state.on(w.nodes(), w.survives());
        let state = w.new_object(kept, state)?;
        Ok(JobQueue { state })
    }

    /// Appends a job to the queue, as soon as there is room, and returns its number: how many jobs
    /// were pushed before it.
    ///
    /// A node that has a job may push also when the queue is closed: the queue does not end before
    /// that job is completed. In a run that survives, what a job pushes goes out when that job is
    /// completed. If its node is lost before, it is dropped, and pushed again by the node that
    /// takes the job next. There the last job that the node took is the one that pushes
    /// ([`Lease::push`] names another).
    ///
    /// # Errors
    /// [`JobQueueError::Closed`] if the queue is closed and this node has none of its jobs,
    /// [`JobQueueError::Stopped`] if it is stopped: it did not take the job.
    /// [`JobQueueError::Object`] if the queue is lost or freed, or no node can make room any more.
    #[track_caller]
    pub fn push(&self, w: &mut Worker<'_>, job: J) -> Queued<u64> {
        self.push_of(w, None, job)
    }

    #[track_caller]
    fn push_of(&self, w: &mut Worker<'_>, of: Option<u64>, job: J) -> Queued<u64> {
        let (queue, node, site) = (Object::id(&self.state), w.node(), CallSite::caller());
        self.state
            .push(w, node, of, job)?
            .map_err(|shut| match shut {
                Shut::Closed => JobQueueError::Closed { queue, node, site },
                Shut::Stopped => JobQueueError::Stopped { queue, node, site },
            })
    }

    /// Closes the queue: it takes jobs only from nodes that have one, and ends when all jobs have
    /// their results.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue is lost or freed.
    #[track_caller]
    pub fn close(&self, w: &mut Worker<'_>) -> Called<()> {
        self.state.close(w)
    }

    /// Stops the queue: it gives out no more jobs and drops those that wait. It ends when the jobs
    /// that nodes have taken have their results.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue is lost or freed.
    #[track_caller]
    pub fn stop(&self, w: &mut Worker<'_>) -> Called<()> {
        self.state.stop(w)
    }

    /// Takes the next job. Waits for one, or for the end of the queue, at which it returns `None`.
    ///
    /// # Errors
    /// [`JobQueueError::Endless`] if the wait is a deadlock, as when no node closes the queue;
    /// [`JobQueueError::Object`] if the queue is lost or freed.
    #[track_caller]
    pub fn take(&self, w: &mut Worker<'_>) -> Queued<Option<Lease<J, R>>> {
        let queue = *self;
        let taken = self.take_next(w)?;
        Ok(taken.map(|(id, job)| Lease { queue, id, job }))
    }

    #[track_caller]
    fn take_next(&self, w: &mut Worker<'_>) -> Queued<Option<(u64, J)>> {
        let (node, site) = (w.node(), CallSite::caller());
        self.state.take(w, node).map_err(|error| match error {
            ObjectError::Sync(cause @ SyncError::Deadlock { .. }) => JobQueueError::Endless {
                queue: Object::id(&self.state),
                node,
                site,
                cause: Box::new(cause),
            },
            error => error.into(),
        })
    }

    /// Takes jobs and computes them with `f` until the queue ends. A result goes with the call for
    /// the next job. So a job costs two messages if the queue is kept on another node.
    ///
    /// A queue that nobody closes ends too when the programs of all nodes work, and all jobs have
    /// their results. A process that a program has started, and that has not ended, could push: a
    /// program counts from its next job after that.
    ///
    /// # Errors
    /// Those of `f`, and [`JobQueueError`] as [`take`](JobQueue::take).
    #[track_caller]
    pub fn work(
        &self,
        w: &mut Worker<'_>,
        mut f: impl FnMut(&mut Worker<'_>, J) -> Result<R>,
    ) -> Result<()> {
        self.work_in_parts(w, u64::MAX, &mut f)
    }

    /// As [`work`](JobQueue::work), for many short jobs. A call takes a part of the jobs that wait,
    /// the fewer the fewer are left. The results of a part go together with the call for the next.
    /// So the queue's node serves few calls of each of the others, and the last jobs are still
    /// shared evenly (guided self-scheduling: Polychronopoulos and Kuck, 1987).
    ///
    /// # Errors
    /// As [`work`](JobQueue::work).
    #[track_caller]
    pub fn work_guided(
        &self,
        w: &mut Worker<'_>,
        mut f: impl FnMut(&mut Worker<'_>, J) -> Result<R>,
    ) -> Result<()> {
        // Of a half of what is left each node may take its share.
        let parts = 2 * w.nodes() as u64;
        self.work_in_parts(w, parts, &mut f)
    }

    /// Computes jobs until the queue ends. Each call takes a `parts`th of those that wait, and at
    /// least one.
    #[track_caller]
    fn work_in_parts(
        &self,
        w: &mut Worker<'_>,
        parts: u64,
        f: &mut impl FnMut(&mut Worker<'_>, J) -> Result<R>,
    ) -> Result<()> {
        let me = w.node();
        let mut done = Vec::new();
        loop {
            let alone = w.is_alone();
            let part = self.state.complete_and_share(w, me, done, parts, alone)?;
            let Some(mut part) = part else {
                return Ok(());
            };
            if part.is_empty() {
                // It waits here, until there is one or the queue ends.
                part.extend(self.take_next(w)?);
            }
            done = Vec::with_capacity(part.len());
            for (id, job) in part {
                done.push((id, f(w, job)?));
            }
        }
    }

    /// The results so far, in the order in which their jobs were pushed. After the end they are
    /// those of all jobs, unless the queue was [stopped](JobQueue::stop). In a run that survives,
    /// each node reads its own copy.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue is lost or freed.
    #[track_caller]
    pub fn results(&self, w: &mut Worker<'_>) -> Called<Vec<R>> {
        self.state.results(w)
    }

    /// Frees the queue with its jobs and results.
    ///
    /// # Errors
    /// [`ObjectError`] if the queue is lost, or was freed before.
    #[track_caller]
    pub fn free(&self, w: &mut Worker<'_>) -> Called<()> {
        Object::free(&self.state, w)
    }
}

/// The strategy of a queue that this node makes.
fn place(survives: bool, here: NodeId) -> Strategy {
    if survives { replicated() } else { on(here) }
}
