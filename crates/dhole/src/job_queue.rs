//! Jobs that nodes take, and what became of each.

mod state;

use std::fmt;

use dhole_model::NodeId;
use dhole_node::object::{Object, ObjectError, on, replicated};
use dhole_node::{Result, Strategy, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use state::JobQueue as State;

/// What goes between nodes by value, as the jobs of a [`JobQueue`] and their results do: anything
/// that serde writes and reads.
pub trait ByValue: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> ByValue for T {}

type Called<T> = std::result::Result<T, ObjectError>;

/// A queue of jobs `J`, each of which comes to one result `R`. A handle of 8 bytes, copied freely.
///
/// Who [takes](JobQueue::take) a job has it on *lease* until its result comes. When the taker's
/// node is lost the job goes back to the head of the queue, and another node takes it. So in a run
/// that [survives](crate::Config::survive) each job has exactly one result in the end, also where
/// two nodes have computed it. Takers get jobs in the order of pushing; of takers that wait the
/// longest waiting is first.
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
/// The queue ends when it is [closed](JobQueue::close) and every job has its result; a taker that
/// waits for more hears of it then. It is kept on the node that makes it, or on every node in a run
/// that survives. It keeps every result until it is [freed](JobQueue::free).
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

/// A job that a node has taken, until it [completes](Lease::complete) it. One that is dropped
/// instead stays this node's, so that the queue does not end before the node is lost.
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

    /// What is to be done.
    pub fn job(&self) -> &J {
        &self.job
    }

    /// Keeps the result of the job, which is done then. When this returns, the result outlives this
    /// node in a run that survives.
    ///
    /// # Errors
    /// [`ObjectError`]: the queue is lost or freed.
    #[track_caller]
    pub fn complete(self, w: &mut Worker<'_>, result: R) -> Called<()> {
        let (state, me) = (self.queue.state, w.node());
        state.complete(w, me, self.id, result).map(drop)
    }
}

impl<J: ByValue, R: ByValue> JobQueue<J, R> {
    /// An empty queue, open for any number of jobs. The other nodes learn of it by its handle,
    /// through [`once`](Worker::once) or another object.
    ///
    /// # Errors
    /// [`ObjectError`] when it cannot be made.
    #[track_caller]
    pub fn new(w: &mut Worker<'_>) -> Called<JobQueue<J, R>> {
        JobQueue::made(w, State::default())
    }

    /// An empty queue in which at most `limit` jobs wait, at least one: whoever
    /// [pushes](JobQueue::push) more waits until some are taken. What comes back from a lost node
    /// does not count.
    ///
    /// # Errors
    /// [`ObjectError`] when it cannot be made.
    #[track_caller]
    pub fn bounded(w: &mut Worker<'_>, limit: usize) -> Called<JobQueue<J, R>> {
        JobQueue::made(w, State::bounded(limit.max(1) as u64))
    }

    /// A closed queue of these jobs. In a run that survives make it in [`once`](Worker::once):
    /// then no loss of a node leaves it with a part of its jobs.
    ///
    /// # Errors
    /// [`ObjectError`] when it cannot be made.
    #[track_caller]
    pub fn of(w: &mut Worker<'_>, jobs: impl IntoIterator<Item = J>) -> Called<JobQueue<J, R>> {
        JobQueue::made(w, State::of(jobs))
    }

    #[track_caller]
    fn made(w: &mut Worker<'_>, state: State<J, R>) -> Called<JobQueue<J, R>> {
        let kept = place(w.survives(), w.node());
        let state = w.new_object(kept, state)?;
        Ok(JobQueue { state })
    }

    /// Puts a job at the end of the queue, when there is room, and returns its number: how many
    /// were pushed before. A closed queue takes none and returns `None`.
    ///
    /// # Errors
    /// [`ObjectError`]: the queue is lost or freed, or nobody would ever make room.
    #[track_caller]
    pub fn push(&self, w: &mut Worker<'_>, job: J) -> Called<Option<u64>> {
        self.state.push(w, job)
    }

    /// No more jobs are pushed: the queue ends when those that are there have their results.
    ///
    /// # Errors
    /// [`ObjectError`]: the queue is lost or freed.
    #[track_caller]
    pub fn close(&self, w: &mut Worker<'_>) -> Called<()> {
        self.state.close(w)
    }

    /// No more jobs are given out, and those that wait are dropped: the queue ends when those that
    /// nodes have taken have their results.
    ///
    /// # Errors
    /// [`ObjectError`]: the queue is lost or freed.
    #[track_caller]
    pub fn stop(&self, w: &mut Worker<'_>) -> Called<()> {
        self.state.stop(w)
    }

    /// Takes the next job; waits for one, or for the end, which is `None`.
    ///
    /// # Errors
    /// [`ObjectError`]: the queue is lost or freed, or a deadlock, as when nobody closes it.
    #[track_caller]
    pub fn take(&self, w: &mut Worker<'_>) -> Called<Option<Lease<J, R>>> {
        let me = w.node();
        let queue = *self;
        let taken = self.state.take(w, me)?;
        Ok(taken.map(|(id, job)| Lease { queue, id, job }))
    }

    /// Does jobs until the queue ends. A result goes with the call for the next job, so a job
    /// costs two messages where it waits on another node.
    ///
    /// # Errors
    /// Those of `f`, and [`ObjectError`] as [`take`](JobQueue::take).
    #[track_caller]
    pub fn work(
        &self,
        w: &mut Worker<'_>,
        mut f: impl FnMut(&mut Worker<'_>, J) -> Result<R>,
    ) -> Result<()> {
        self.work_in_parts(w, u64::MAX, &mut f)
    }

    /// As [`work`](JobQueue::work), of many short jobs: a call takes a part of those that wait,
    /// the fewer of them the fewer are left, and the results of a part go together with the call
    /// for the next. So the queue's node serves few calls for each of the others, and the last jobs
    /// are still shared evenly (guided self-scheduling: Polychronopoulos and Kuck, 1987).
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

    /// Does jobs until the queue ends, a `parts`th of those that wait at a time, and one at least.
    #[track_caller]
    fn work_in_parts(
        &self,
        w: &mut Worker<'_>,
        parts: u64,
        f: &mut impl FnMut(&mut Worker<'_>, J) -> Result<R>,
    ) -> Result<()> {
        let me = w.node();
        let mut done = Vec::new();
        while let Some(mut part) = self.state.complete_and_share(w, me, done, parts)? {
            if part.is_empty() {
                // It waits here, until there is one or the queue ends.
                part.extend(self.state.take(w, me)?);
            }
            done = Vec::with_capacity(part.len());
            for (id, job) in part {
                done.push((id, f(w, job)?));
            }
        }
        Ok(())
    }

    /// The results that are there, in the order in which their jobs were pushed: those of all jobs
    /// after the end, unless it was [stopped](JobQueue::stop). In a run that survives this is read
    /// on the own node.
    ///
    /// # Errors
    /// [`ObjectError`]: the queue is lost or freed.
    #[track_caller]
    pub fn results(&self, w: &mut Worker<'_>) -> Called<Vec<R>> {
        self.state.results(w)
    }

    /// Gives the queue back with its jobs and results.
    ///
    /// # Errors
    /// [`ObjectError`]: it is lost, or was freed before.
    #[track_caller]
    pub fn free(&self, w: &mut Worker<'_>) -> Called<()> {
        Object::free(&self.state, w)
    }
}

/// Where a queue is kept that is made on this node.
fn place(survives: bool, here: NodeId) -> Strategy {
    if survives { replicated() } else { on(here) }
}
