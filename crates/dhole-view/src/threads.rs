//! Threads of a node beside the one that runs its program, and threads that nodes start on others.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};

use dhole_model::{CallSite, Counters, NodeId};
use dhole_node::{PartsStep, PartsWaitError, Worker, panic_words};
use dhole_protocol::memory::sync::{ThreadRefusal, ThreadSync};
use dhole_space::runtime_thread::SignalMask;

use crate::context::{self, Body, Link, MemoryWaitError, Runs};
use crate::held_locks;
use crate::here::Here;
use crate::memory::Memory;
use crate::node_sync::ThreadEffects;
use crate::shared::memory;
use crate::waiters::WaitsFor;

pub use dhole_protocol::memory::sync::ThreadId;

pub use crate::thread_error::ThreadError;

/// Bytes of a thread's stack: what a main thread usually has.
const STACK: usize = 8 << 20;

/// Where threads of a node begin that end before [`scope`] does.
pub struct ThreadScope<'scope, 'env: 'scope> {
    scope: &'scope std::thread::Scope<'scope, 'env>,
    of: ThreadsOf<'scope>,
}

/// The node to which threads belong, and how they wait.
#[derive(Clone, Copy)]
struct ThreadsOf<'a> {
    memory: &'a Memory,
    link: Link,
}

impl ThreadsOf<'_> {
    /// Runs the body of a thread of the node on this thread. Where it unwinds, the run ends.
    fn run<T>(self, thread: ThreadId, body: impl FnOnce() -> T) -> T {
        self.run_there(thread, true, body)
    }

    /// As [`run`](ThreadsOf::run), beside the worker, or in its place while it does nothing.
    fn run_there<T>(self, thread: ThreadId, is_beside: bool, body: impl FnOnce() -> T) -> T {
        let ends = Ends(self);
        let (mut body, mut value) = (Some(body), None);
        let run = &mut || value = body.take().map(|body| catch_unwind(AssertUnwindSafe(body)));
        let memory = self.memory.threads().memory;
        // SAFETY: the worker's body, which borrows its link, waits for this thread (`scope`,
        // `Begins`).
        unsafe {
            self.link.with(|link| {
                let runs = Runs {
                    memory,
                    link,
                    thread,
                    is_beside,
                };
                context::run(runs, run);
            });
        }
        match value {
            Some(Ok(value)) => {
                std::mem::forget(ends);
                value
            }
            Some(Err(unwound)) => {
                let words = panic_words(&*unwound);
                ends.0
                    .end(&format!("a thread of the program panicked: {words}"));
                resume_unwind(unwound)
            }
            None => unreachable!("a body runs once"),
        }
    }

    /// Ends the run, unless it has ended.
    fn end(self, words: &str) {
        // SAFETY: as in `run_there`, or this is the worker's own thread, within its body.
        unsafe { self.link.with(|link| link.fail(words)) };
    }
}

/// Ends the run, unless it is forgotten: threads that wait for each other hear that one is gone.
struct Ends<'a>(ThreadsOf<'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end("a thread of the program panicked");
    }
}

/// Runs `f`, in which threads of this node begin that touch its memory as the program does. It
/// returns when all of them have ended. Where `f` or a thread panics, the run ends: so none of them
/// waits for ever.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
///
/// # use dhole_live::Threads;
/// # use dhole_node::{Settings, run_on};
/// # use dhole_view::{MemorySettings, alloc_rows, threads};
/// # let machine = Threads::new(2, 0);
/// # let mut settings = Settings::nodes(2);
/// # settings.parts = Some(std::sync::Arc::new(MemorySettings::default()));
/// # run_on(&machine, &settings, |w| {
/// let rows = w.once(|w| Ok(alloc_rows::<u64>(w, 8, 64)?))?;
/// let first = 4 * w.node().index();
/// let cells: Vec<_> = (first..first + 4).map(|row| rows.row(row).cells(w)).collect();
/// threads::scope(w, |_, scope| {
///     for row in &cells {
///         scope.spawn(|| row[0].store(1, Relaxed))?;
///     }
///     Ok::<(), threads::ThreadError>(())
/// })??;
/// # w.barrier()?;
/// # Ok(())
/// # })?;
/// # Ok::<(), dhole_node::RunError>(())
/// ```
///
/// # Errors
/// [`ThreadError`]: the run has no memory, or is simulated, where one thread runs all nodes.
///
/// # Panics
/// Where a thread did that was not [joined](ScopedJoinHandle::join).
#[track_caller]
pub fn scope<'id, 'env, R>(
    w: &mut Worker<'id>,
    f: impl for<'scope> FnOnce(&mut Worker<'id>, &ThreadScope<'scope, 'env>) -> R,
) -> Result<R, ThreadError>
where
    'id: 'env,
{
    let ((of, has_threads), site) = (threads_of(w)?, CallSite::caller());
    if !has_threads {
        return Err(MemoryWaitError::Wait(PartsWaitError::OneThread).into());
    }
    let (own, sync) = (current()?, &of.memory.sync);
    let value = std::thread::scope(|scope| {
        let ends = Ends(of);
        let value = f(w, &ThreadScope { scope, of });
        std::mem::forget(ends);
        // Where there is no room for it no probe knows of the wait.
        let _too_many = sync.machine().wait_for_ends(own, site);
        sync.worker_may_wait();
        value
    });
    sync.machine().end_wait(own);
    Ok(value)
}

impl<'scope> ThreadScope<'scope, '_> {
    /// Begins a thread.
    ///
    /// # Errors
    /// [`ThreadError::Refused`]
    pub fn spawn<T: Send + 'scope>(
        &self,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, T>, ThreadError> {
        let of = self.of;
        let thread = std::thread::Builder::new()
            .name("dhole-thread".into())
            .stack_size(STACK);
        let number = of.memory.sync.number_thread_beside();
        let begun = thread.spawn_scoped(self.scope, move || {
            of.run(number, || {
                let value = body();
                of.memory.sync.ends_beside(number);
                value
            })
        });
        begun.map_err(|cause| {
            of.memory.sync.machine().ends_beside(number);
            ThreadError::Refused(cause.to_string())
        })
    }
}

/// Runs a thread of the node in the worker's place, on a thread of its own, for whose end the
/// worker's own waits: whether it could begin.
fn run_for_worker(of: ThreadsOf<'_>, thread: ThreadId, body: impl FnOnce() + Send) -> bool {
    let run = || of.run_there(thread, false, body);
    let begun = std::thread::scope(|scope| {
        let own = std::thread::Builder::new()
            .name("dhole-thread".into())
            .stack_size(STACK);
        Some(own.spawn_scoped(scope, run).ok()?.join())
    });
    match begun {
        Some(Ok(())) => true,
        Some(Err(unwound)) => resume_unwind(unwound),
        None => false,
    }
}

/// The threads of a worker's node, and whether there may be some.
fn threads_of<'id>(w: &Worker<'id>) -> Result<(ThreadsOf<'id>, bool), ThreadError> {
    let memory = memory(w)?;
    let link = context::link_of_worker(memory.threads().memory);
    let link = link.ok_or(MemoryWaitError::NoBody)?;
    // SAFETY: this is the worker's own thread, within its body.
    let has_threads = unsafe { link.with(|link| link.has_threads()) };
    Ok((ThreadsOf { memory, link }, has_threads))
}

/// The thread that calls this. The program of a node has the number 0.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn current() -> Result<ThreadId, ThreadError> {
    Body::current()
        .map(|body| body.thread)
        .ok_or(ThreadError::NoNode)
}

/// The node of the thread that calls this.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn node() -> Result<NodeId, ThreadError> {
    Ok(Here::find()?.memory().sync.node())
}

/// How many nodes there are.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn nodes() -> Result<usize, ThreadError> {
    Ok(Here::find()?.memory().sync.machine().nodes())
}

/// What this node has counted so far.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn counters() -> Result<Counters, ThreadError> {
    Ok(Here::find()?.body.counters())
}

/// How many threads that were [started](start) on this node have not ended.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn running() -> Result<usize, ThreadError> {
    Ok(Here::find()?.memory().sync.machine().running())
}

/// Whether a thread that was [started](start) on this node runs or is to begin, or has ended.
/// `None` of one that is not known, or whose value another thread has taken.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn is_running(thread: ThreadId) -> Result<Option<bool>, ThreadError> {
    Ok(Here::find()?.memory().sync.machine().is_running(thread))
}

/// No thread waits for the end of a thread from here on that was [started](start) on this node,
/// unless one does.
///
/// # Errors
/// [`ThreadError`]: there is no such thread, or it is detached.
pub fn detach(thread: ThreadId) -> Result<(), ThreadError> {
    Ok(Here::find()?.memory().sync.machine().detach(thread)?)
}

/// Says that the program is about to end the run with an exit code, which is no failure of a node:
/// `dhole run` names the node and the code then.
///
/// # Errors
/// [`ThreadError::NoNode`]
pub fn exits(code: u8) -> Result<(), ThreadError> {
    Here::find()?.body.exits(code);
    Ok(())
}

/// In a child of `fork`: the thread that calls this is none of the node's any more, and every
/// function of this module returns [`ThreadError::NoNode`].
pub fn leave_node() {
    context::forget_bodies();
}

/// Starts a thread on a node, and does not wait for it. It begins when the program there
/// [serves](serve), or [runs](run): what `entry` and `argument` mean the handler says.
///
/// # Errors
/// [`ThreadError`]: there is no such node, say.
pub fn start(node: NodeId, entry: u64, argument: u64) -> Result<ThreadId, ThreadError> {
    let here = Here::find()?;
    here.memory().flush()?;
    here.tell(|machine, out| machine.start(node, entry, argument, out))
}

/// As [`start`], and waits until the thread has begun, which the system may refuse. The node of the
/// new thread begins it beside its program, at once.
///
/// # Errors
/// [`ThreadError`]: the node could not begin it (`ThreadRefusal::NotBegun`), say.
#[track_caller]
pub fn start_and_await(node: NodeId, entry: u64, argument: u64) -> Result<ThreadId, ThreadError> {
    let (here, site) = (Here::find()?, CallSite::caller());
    here.memory().flush()?;
    let by = here.body.thread;
    let what = (entry, argument);
    let begun = here.attempt(|machine, out| machine.start_and_await(by, node, what, site, out));
    begun.map(ThreadId)
}

/// Waits for the end of a thread that was started; what its handler returned. Once for each.
///
/// # Errors
/// [`ThreadError`]: there is no such thread, it could not begin, or this one waits for itself
/// through others.
#[track_caller]
pub fn join(thread: ThreadId) -> Result<u64, ThreadError> {
    join_at(thread, CallSite::caller())
}

/// As [`join`], of a place in the program that the caller names.
///
/// # Errors
/// As there.
pub fn join_at(thread: ThreadId, site: CallSite) -> Result<u64, ThreadError> {
    let here = Here::find()?;
    let by = here.body.thread;
    here.attempt(|machine, out| machine.join(by, thread, site, out))
}

/// What threads do that were started: of an entry and an argument, what [`join`] returns.
pub type ThreadHandler<'a> = dyn Fn(u64, u64) -> u64 + Sync + 'a;

/// What begins the threads that are started on a node: each on a thread of its own, which has
/// fresh thread-local variables; in a simulation one after the other on the worker's. Between
/// processes one of them waits in the place of a worker that serves: so it takes answers itself.
struct Beginning {
    of: ThreadsOf<'static>,
    handler: &'static ThreadHandler<'static>,
    /// Signals that the worker blocked when it began to serve, or to run the program; and so does
    /// each thread, whichever thread of dhole's begins it.
    signals: SignalMask,
    /// Threads may begin beside the worker.
    has_threads: bool,
    /// The worker runs one itself, or has it run in its place, where it waits for one.
    takes_one: bool,
    now: Mutex<Now>,
}

/// A thread that is to begin, with its entry and argument.
type Start = (ThreadId, u64, u64);

#[derive(Default)]
struct Now {
    /// The worker waits for a thread to run.
    worker_waits: bool,
    /// What it is to run.
    for_worker: Option<Start>,
    threads: Vec<JoinHandle<()>>,
}

impl Beginning {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins what the machine has to begin; whether the worker is to look.
    fn begin(
        self: &Arc<Beginning>,
        machine: &mut ThreadSync,
        out: &mut ThreadEffects<'_, '_>,
    ) -> bool {
        let mut now = self.now();
        while let Some(next) = machine.next_start() {
            if std::mem::take(&mut now.worker_waits) {
                now.for_worker = Some(next);
                machine.starts_come(out);
                continue;
            }
            now.threads.retain(|thread| !thread.is_finished());
            match self.begin_beside(next) {
                Ok(thread) => {
                    now.threads.push(thread);
                    machine.runs_beside(next.0);
                    machine.begun(next.0, out);
                }
                // Whoever waits for its end hears that.
                Err(_) => machine.ended(next.0, None, out),
            }
        }
        now.for_worker.is_some() || machine.has_left()
    }

    fn begin_beside(self: &Arc<Beginning>, next: Start) -> io::Result<JoinHandle<()>> {
        if !self.has_threads {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let beginning = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name("dhole-thread".into())
            .stack_size(STACK);
        let run = move || {
            beginning.signals.apply();
            beginning.run(next);
        };
        // Whichever thread begins it, it takes no signal before it knows its node.
        SignalMask::of_runtime().during(|| thread.spawn(run))
    }

    /// What the worker is to run next, and begins the others beside it.
    fn next_for_worker(
        self: &Arc<Beginning>,
        machine: &mut ThreadSync,
        out: &mut ThreadEffects<'_, '_>,
    ) -> Option<Start> {
        let mut now = self.now();
        let next = match self.takes_one {
            true => now.for_worker.take().or_else(|| machine.next_start()),
            false => None,
        };
        now.worker_waits = self.takes_one && next.is_none() && !machine.has_left();
        drop(now);
        self.begin(machine, out);
        next
    }

    /// Runs a thread beside the worker.
    fn run(&self, (thread, entry, argument): Start) {
        self.of.run(thread, || {
            let value = (self.handler)(entry, argument);
            ended(thread, value);
        });
    }
}

/// The thread that calls this, in the place of its worker, has begun.
fn begun(thread: ThreadId) {
    if let Ok(here) = Here::find() {
        // Where it cannot be told the run has ended, of which the thread hears.
        let _ended = here.tell(|machine, out| {
            machine.begun(thread, out);
            Ok(())
        });
    }
}

/// The thread that calls this ends with a value.
fn ended(thread: ThreadId, value: u64) {
    let Ok(here) = Here::find() else {
        return;
    };
    here.memory().must_flush();
    let told = here.tell(|machine, out| {
        held_locks::note(thread, |locks| machine.acquired_at(thread, locks));
        machine.ends_beside(thread);
        machine.ended(thread, Some(value), out);
        Ok(())
    });
    if let Err(ThreadError::Wait(cause)) = told {
        let doing = format!("telling of the end of {thread}");
        context::must(here.memory().threads(), Err(cause), &doing);
    }
}

/// Threads that are started on this node begin, until this is dropped, by unwinding too; then all
/// that have begun have ended.
struct Begins<'a> {
    of: ThreadsOf<'a>,
    beginning: Arc<Beginning>,
}

impl<'a> Begins<'a> {
    fn new(w: &Worker<'a>, handler: &ThreadHandler<'_>) -> Result<Begins<'a>, ThreadError> {
        let (of, has_threads) = threads_of(w)?;
        // SAFETY: only lifetimes change. What is made of them is used by the threads that this
        // begins, and by the worker within `run` and `serve`: it waits for those threads when it is
        // dropped, in `run` or `serve`, for as long as which the handler and the memory are
        // borrowed.
        let beginning = unsafe {
            Beginning {
                of: std::mem::transmute::<ThreadsOf<'_>, ThreadsOf<'static>>(of),
                handler: std::mem::transmute::<&ThreadHandler<'_>, &'static ThreadHandler<'static>>(
                    handler,
                ),
                signals: SignalMask::current(),
                has_threads,
                takes_one: !has_threads || of.link.with(|link| link.moves_worker()),
                now: Mutex::default(),
            }
        };
        let beginning = Arc::new(beginning);
        let begins = Arc::clone(&beginning);
        let begins = Box::new(
            move |machine: &mut ThreadSync, out: &mut ThreadEffects<'_, '_>| {
                begins.begin(machine, out)
            },
        );
        match of.memory.sync.begin_by(begins) {
            true => Ok(Begins { of, beginning }),
            false => Err(ThreadError::Begins),
        }
    }
}

impl Drop for Begins<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(Ends(self.of));
        }
        // A thread that is waited for may start others on this node, which begin as ever.
        let sync = &self.of.memory.sync;
        while !sync.begin_no_more_if(|| self.beginning.now().threads.is_empty()) {
            let threads = std::mem::take(&mut self.beginning.now().threads);
            for thread in threads {
                // One that panicked has ended the run.
                let _panicked = thread.join();
            }
        }
        self.of.memory.ends_starts();
    }
}

/// Runs `main`, which starts threads on nodes. Those that are started on this one begin beside it.
/// When `main` is over, the nodes that [`serve`] hear that; it returns when the threads of
/// this node have ended too. One node of a run calls this.
///
/// # Errors
/// [`ThreadError`]
pub fn run<'id, R>(
    w: &mut Worker<'id>,
    handler: &ThreadHandler<'_>,
    main: impl FnOnce(&mut Worker<'id>) -> R,
) -> Result<R, ThreadError> {
    let begins = Begins::new(w, handler)?;
    let value = main(w);
    let here = Here::find()?;
    here.memory().flush()?;
    here.tell(|machine, out| {
        machine.leave(out);
        Ok(())
    })?;
    drop(begins);
    Ok(value)
}

/// Runs the threads that are started on this node, until the node that [runs](run) a program has
/// come to its end, and all that have begun have ended. Each runs on a thread of its own. One that
/// is started later does not begin, and whoever [waits](join) for its end gets an error. A handler
/// that panics ends the run. In a simulation there is one at a time, on the worker's thread, and
/// one more does not begin.
///
/// ```
/// # use dhole_model::NodeId;
/// # use dhole_live::Threads;
/// # use dhole_node::{Settings, run_on};
/// # use dhole_view::{MemorySettings, threads};
/// # let machine = Threads::new(2, 0);
/// # let mut settings = Settings::nodes(2);
/// # settings.parts = Some(std::sync::Arc::new(MemorySettings::default()));
/// # let run = run_on(&machine, &settings, |w| {
/// let handler = |entry: u64, argument: u64| entry * argument;
/// if w.node() != NodeId(0) {
///     threads::serve(w, &handler)?;
///     return Ok(0);
/// }
/// let product = threads::run(w, &handler, |_| {
///     let thread = threads::start(NodeId(1), 6, 7)?;
///     threads::join(thread)
/// })??;
/// # Ok(product)
/// # })?;
/// # assert_eq!(run.value, 42);
/// # Ok::<(), dhole_node::RunError>(())
/// ```
///
/// # Errors
/// [`ThreadError`]: the run has ended, say.
#[track_caller]
pub fn serve(w: &mut Worker<'_>, handler: &ThreadHandler<'_>) -> Result<(), ThreadError> {
    let (begins, site) = (Begins::new(w, handler)?, CallSite::caller());
    let here = Here::find()?;
    let (memory, serves) = (here.memory(), here.body.thread);
    loop {
        let (mut next, mut refused) = (None, None);
        let waits_for = WaitsFor::Thread(serves);
        here.body.wait(&memory.waiters, waits_for, &mut |out| {
            memory
                .sync
                .step(&memory.waiters, out, |machine, fx| {
                    machine.end_wait(serves);
                    next = begins.beginning.next_for_worker(machine, fx);
                    if next.is_some() || machine.has_left() {
                        return Ok(PartsStep::Over);
                    }
                    machine.wait_for_starts(serves, site)?;
                    Ok(PartsStep::Waits)
                })
                .unwrap_or_else(|refusal: ThreadRefusal| {
                    refused = Some(refusal);
                    PartsStep::Over
                })
        })?;
        if let Some(refusal) = refused {
            return Err(refusal.into());
        }
        let Some((thread, entry, argument)) = next else {
            return Ok(());
        };
        let run = || {
            begun(thread);
            ended(thread, handler(entry, argument));
        };
        if !begins.beginning.has_threads {
            context::run_as(thread, run);
        } else if !run_for_worker(begins.of, thread, run) {
            // Whoever waits for its end hears that.
            here.tell(|machine, out| {
                machine.ended(thread, None, out);
                Ok(())
            })?;
        }
    }
}
