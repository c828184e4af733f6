//! Which node a thread belongs to, and how it waits there.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::Counters;
use dhole_node::{PartsLink, PartsOutbox, PartsStep, PartsWaitError};

use dhole_protocol::ProtocolError;
use dhole_protocol::memory::sync::ThreadId;

use crate::waiters::{MOST_WAITERS, Waiters, WaitsFor};

/// Why a thread cannot wait for memory.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MemoryWaitError {
    /// As the engine says.
    #[error(transparent)]
    Wait(#[from] PartsWaitError),
    /// The program of the node has ended.
    #[error("the program of the node does not run any more")]
    NoBody,
    /// More threads of the node would wait than there is room for.
    #[error("{MOST_WAITERS} threads of the node wait already")]
    Waiters,
    /// The thread holds memory.
    #[error(
        "it was made within a closure that holds memory (SharedRow::read), where nothing can be \
         waited for"
    )]
    Holds,
    /// The system refuses what is needed.
    #[error(transparent)]
    Refused(ProtocolError),
}

/// The memory of a node, as threads know it: its address, and how they wait for it.
#[derive(Clone, Copy)]
pub(crate) struct NodeThreads<'a> {
    pub memory: *const (),
    pub waiters: &'a Waiters,
}

/// A body that this thread runs: of a node's program, or of a thread beside it.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    pub memory: *const (),
    pub link: Link,
    pub thread: ThreadId,
    /// It is no worker of the node.
    is_beside: bool,
    /// It runs a closure that holds memory, in which it does not wait.
    pub holds: bool,
    /// A place on the stack of the body, which is above all that the body calls.
    frame: usize,
}

/// How the threads of a node wait, as long as its program runs.
#[derive(Clone, Copy)]
pub(crate) struct Link(*const dyn PartsLink);

// SAFETY: an address of what any thread may use (`PartsLink` is `Sync`). Who follows it argues that
// it is there.
unsafe impl Send for Link {}

// SAFETY: as above.
unsafe impl Sync for Link {}

impl Link {
    /// # Safety
    /// The body of the worker whose link it is does not end meanwhile.
    pub unsafe fn with<R>(self, f: impl FnOnce(&dyn PartsLink) -> R) -> R {
        // SAFETY: the body borrows it (`run`), by the caller's promise.
        f(unsafe { &*self.0 })
    }
}

impl MemoryWaitError {
    /// Whether the run has failed, or does because of this: it has ended, or a check or the system
    /// refused a step. Otherwise the thread alone cannot wait.
    pub fn has_failed_run(&self) -> bool {
        matches!(
            self,
            MemoryWaitError::Wait(PartsWaitError::Ended(_)) | MemoryWaitError::Refused(_)
        )
    }
}

thread_local! {
    static BODIES: RefCell<Vec<Body>> = const { RefCell::new(Vec::new()) };
    /// The body, where this thread runs one alone: then it is the one that calls.
    static ONLY: Cell<Option<Body>> = const { Cell::new(None) };
    /// Something of which each thread has its own.
    static OWN: Cell<u8> = const { Cell::new(0) };
}

/// A number that no other thread has as long as this one lives.
pub(crate) fn own_number() -> usize {
    OWN.with(|own| std::ptr::from_ref(own).addr())
}

/// Changes the bodies that this thread runs.
fn change_bodies(change: impl FnOnce(&mut Vec<Body>)) {
    BODIES.with_borrow_mut(|bodies| {
        change(bodies);
        ONLY.set(match bodies[..] {
            [only] => Some(only),
            _ => None,
        });
    });
}

/// The bodies of workers that are on, on any thread: by these wait threads of which dhole knows
/// nothing.
static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

struct Worker {
    /// The address of its memory.
    memory: usize,
    link: Link,
    frame: usize,
}

fn workers() -> MutexGuard<'static, Vec<Worker>> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread runs no body any more: it is that of a child of `fork`.
pub(crate) fn forget_bodies() {
    change_bodies(Vec::clear);
}

/// Takes a body out of the lists, by unwinding too.
struct Leaves(usize);

impl Drop for Leaves {
    fn drop(&mut self) {
        workers().retain(|worker| worker.frame != self.0);
        change_bodies(|bodies| {
            if let Some(place) = bodies.iter().rposition(|body| body.frame == self.0) {
                bodies.remove(place);
            }
        });
    }
}

/// How a body is run.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a> {
    pub memory: *const (),
    pub link: &'a dyn PartsLink,
    pub thread: ThreadId,
    pub is_beside: bool,
}

/// Runs a body of a node on this thread, which may wait by its link meanwhile.
pub(crate) fn run(runs: Runs<'_>, body: &mut dyn FnMut()) {
    let Runs {
        memory,
        link,
        thread,
        is_beside,
    } = runs;
    let mark = 0_u8;
    let frame = std::ptr::from_ref(&mark).addr();
    // SAFETY: only the lifetime changes. The pointer is in the lists until `_leaves` is dropped,
    // and so no longer than `link` is borrowed.
    let link: &'static dyn PartsLink = unsafe { std::mem::transmute(link) };
    let link = Link(link);
    let of = Body {
        memory,
        link,
        thread,
        is_beside,
        holds: false,
        frame,
    };
    change_bodies(|bodies| bodies.push(of));
    if !is_beside {
        let worker = Worker {
            memory: memory.addr(),
            link,
            frame,
        };
        workers().push(worker);
    }
    let _leaves = Leaves(frame);
    body();
    std::hint::black_box(&mark);
}

/// Changes the body that calls this until it is dropped, by unwinding too.
struct Changed(Body);

impl Changed {
    fn to(change: impl FnOnce(&mut Body)) -> Option<Changed> {
        let before = Body::current()?;
        let mut after = before;
        change(&mut after);
        replace(after);
        Some(Changed(before))
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        replace(self.0);
    }
}

/// Puts a body in place of the one of the same frame.
fn replace(body: Body) {
    change_bodies(|bodies| {
        let mut own = bodies.iter_mut();
        if let Some(of) = own.find(|it| it.frame == body.frame) {
            *of = body;
        }
    });
}

/// Runs what another thread of its node is to do as that thread, within the body that this one
/// runs.
pub(crate) fn run_as<R>(thread: ThreadId, f: impl FnOnce() -> R) -> R {
    let _changed = Changed::to(|body| body.thread = thread);
    f()
}

/// Runs a closure that holds memory.
pub(crate) fn run_holding<R>(f: impl FnOnce() -> R) -> R {
    let _changed = Changed::to(|body| body.holds = true);
    f()
}

/// Whether this thread runs a closure that holds memory.
pub(crate) fn holds() -> bool {
    Body::current().is_some_and(|body| body.holds)
}

impl Body {
    /// The body that calls this: of those that this thread runs, the one whose stack this is.
    /// Stacks grow downwards and do not overlap, so its frame is the next one above.
    #[inline]
    pub fn current() -> Option<Body> {
        ONLY.get().or_else(Body::current_of_several)
    }

    fn current_of_several() -> Option<Body> {
        let mark = 0_u8;
        let here = std::ptr::from_ref(&mark).addr();
        let bodies = BODIES.try_with(|bodies| {
            let bodies = bodies.try_borrow().ok()?;
            let above = bodies.iter().filter(|body| body.frame > here);
            above.min_by_key(|body| body.frame).copied()
        });
        std::hint::black_box(&mark);
        bodies.ok().flatten()
    }

    /// What the node has counted so far.
    pub fn counters(self) -> Counters {
        // SAFETY: as in `wait`.
        unsafe { self.link.with(|link| link.counters()) }
    }

    /// The program ends the run with an exit code.
    pub fn exits(self, code: u8) {
        // SAFETY: as in `wait`.
        unsafe { self.link.with(|link| link.exits(code)) };
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// [`MemoryWaitError::Wait`] once the run has ended.
    pub fn look(self) -> Result<(), MemoryWaitError> {
        // SAFETY: as in `wait`.
        Ok(unsafe { self.link.with(|link| link.look(self.is_beside)) }?)
    }

    /// Waits for something as this body can, of which this thread runs the body.
    ///
    /// # Errors
    /// [`MemoryWaitError`]
    pub fn wait(
        self,
        waiters: &Waiters,
        waits_for: WaitsFor,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
    ) -> Result<(), MemoryWaitError> {
        // SAFETY: the body does not end while this thread is within it. A worker's body borrows
        // its link, and waits for the ends of the threads beside it (`threads`).
        unsafe { wait_by((self.link, self.is_beside), waiters, waits_for, step) }
    }
}

/// Waits as this thread can for something of this memory.
///
/// # Errors
/// [`MemoryWaitError`]
pub(crate) fn wait(
    NodeThreads { memory, waiters }: NodeThreads<'_>,
    waits_for: WaitsFor,
    step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
) -> Result<(), MemoryWaitError> {
    let (link, is_beside) = link_of(memory).ok_or(MemoryWaitError::NoBody)?;
    // SAFETY: links last until all bodies of the run, and the threads that they scope, have ended
    // (`NodeParts::around`). This thread runs a body, or is borrowing what is borrowed from a
    // worker, or is one for which a body waits (`threads`): so the run does not end meanwhile.
    unsafe { wait_by((link, is_beside), waiters, waits_for, step) }
}

/// What other nodes wait for must be done, unless the run has ended and nobody waits: otherwise the
/// run ends with words.
pub(crate) fn must(of: NodeThreads<'_>, done: Result<(), MemoryWaitError>, doing: &str) {
    use MemoryWaitError::{NoBody, Wait};
    let cause = match done {
        Ok(()) | Err(Wait(PartsWaitError::Ended(_)) | NoBody) => return,
        Err(cause) => cause,
    };
    if cause == Wait(PartsWaitError::InCall) {
        // The thread has the node's lock, without which the run cannot be ended.
        eprintln!("error: {doing}: {cause}");
        std::process::abort();
    }
    fail(of, &format!("{doing}: {cause}"));
}

/// The node fails, in these words, and the run ends.
pub(crate) fn fail(of: NodeThreads<'_>, words: &str) {
    if let Some((link, _)) = link_of(of.memory) {
        // SAFETY: as in `wait`.
        unsafe { link.with(|link| link.fail(words)) };
    }
}

/// Waits by a link, beside its worker or as it.
///
/// # Safety
/// As of [`Link::with`].
unsafe fn wait_by(
    (link, is_beside): (Link, bool),
    waiters: &Waiters,
    waits_for: WaitsFor,
    step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
) -> Result<(), MemoryWaitError> {
    let wait = |link: &dyn PartsLink| {
        if !is_beside {
            return Ok(link.wait(step)?);
        }
        let waits = waiters.begin(waits_for);
        let waits = waits.ok_or(MemoryWaitError::Waiters)?;
        Ok(link.wait_beside(waits.waiter(), step)?)
    };
    // SAFETY: the caller's.
    unsafe { link.with(wait) }
}

/// The link of the worker whose body this thread runs.
pub(crate) fn link_of_worker(memory: *const ()) -> Option<Link> {
    link_of(memory)
        .filter(|(_, is_beside)| !is_beside)
        .map(|(link, _)| link)
}

/// How this thread waits for something of this memory, and whether beside the worker.
fn link_of(memory: *const ()) -> Option<(Link, bool)> {
    let bodies = BODIES.try_with(|bodies| {
        let bodies = bodies.try_borrow().ok()?;
        let mut own = bodies.iter().rev();
        let body = own.find(|body| body.memory == memory)?;
        Some((body.link, body.is_beside))
    });
    bodies.ok().flatten().or_else(|| {
        let workers = workers();
        let mut of = workers.iter();
        let worker = of.find(|it| it.memory == memory.addr())?;
        Some((worker.link, true))
    })
}

#[cfg(test)]
mod tests {
    use dhole_model::Counters;
    use dhole_node::PartsWaiter;

    use super::*;

    /// Keeps the words with which the run ends.
    #[derive(Default)]
    struct Failed(Mutex<Vec<String>>);

    type Step<'a> = &'a mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep;

    impl PartsLink for Failed {
        fn wait(&self, _: Step<'_>) -> Result<(), PartsWaitError> {
            unreachable!("nothing waits")
        }

        fn wait_beside(&self, _: &PartsWaiter, _: Step<'_>) -> Result<(), PartsWaitError> {
            unreachable!("nothing waits")
        }

        fn has_threads(&self) -> bool {
            true
        }

        fn moves_worker(&self) -> bool {
            true
        }

        fn look(&self, _: bool) -> Result<(), PartsWaitError> {
            Ok(())
        }

        fn counters(&self) -> Counters {
            Counters::default()
        }

        fn fail(&self, words: &str) {
            self.0.lock().expect("words").push(words.to_owned());
        }

        fn exits(&self, _: u8) {}
    }

    #[test]
    fn what_must_be_done_and_cannot_ends_the_run_unless_it_has_ended() {
        let (waiters, link) = (Waiters::new(), Failed::default());
        let memory = std::ptr::from_ref(&waiters).cast();
        let of = NodeThreads {
            memory,
            waiters: &waiters,
        };
        let runs = Runs {
            memory,
            link: &link,
            thread: ThreadId(0),
            is_beside: false,
        };
        run(runs, &mut || {
            must(of, Ok(()), "nothing");
            must(of, Err(MemoryWaitError::NoBody), "nothing");
            let ended = PartsWaitError::Ended("a node was lost".into());
            must(of, Err(ended.into()), "nothing");
            must(of, Err(PartsWaitError::OneThread.into()), "releasing");
            must(of, Err(MemoryWaitError::Waiters), "releasing");
        });
        let said = link.0.into_inner().expect("words");
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|it| it.starts_with("releasing: ")));
    }
}
