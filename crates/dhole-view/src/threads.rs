//! Threads of a node beside the one that runs its program.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::ScopedJoinHandle;

use dhole_node::{AnnexWaitError, IntoError, Worker};

use crate::context::{self, Link, MemoryWaitError};
use crate::memory::Memory;
use crate::shared::{MemoryError, memory};

/// Bytes of a thread's stack: what a main thread usually has.
const STACK: usize = 8 << 20;

/// Why threads of a node cannot begin, wait or end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The run has no memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// It cannot be waited for: the run has ended, say.
    #[error("waiting in a thread of a node: {0}")]
    Wait(#[from] MemoryWaitError),
    /// The system gives no thread.
    #[error("beginning a thread of a node: {0}")]
    Refused(String),
}

impl IntoError for ThreadError {}

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
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        let ends = Ends(self);
        let (mut body, mut value) = (Some(body), None);
        let run = &mut || value = body.take().map(|body| catch_unwind(AssertUnwindSafe(body)));
        // SAFETY: the worker's body, which borrows its link, waits for this thread (`scope`).
        unsafe {
            self.link
                .with(|link| context::run(self.memory.threads().memory, link, true, run))
        };
        match value {
            Some(Ok(value)) => {
                std::mem::forget(ends);
                value
            }
            Some(Err(unwound)) => resume_unwind(unwound),
            None => unreachable!("a body runs once"),
        }
    }
}

/// Ends the run, unless it is forgotten: threads that wait for each other hear that one is gone.
struct Ends<'a>(ThreadsOf<'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `ThreadsOf::run`, or this is the worker's own thread, within its body.
        unsafe {
            self.0
                .link
                .with(|link| link.fail("a thread of the program panicked"))
        };
    }
}

/// Runs `f`, in which threads of this node begin that touch its memory as the program does. It
/// returns when all of them have ended. Where `f` or a thread panics, the run ends: so none of them
/// waits for ever.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
///
/// # use dhole_node::{Settings, Threads, run_on};
/// # use dhole_view::{MemorySettings, alloc_rows, threads};
/// # let machine = Threads::new(2, 0);
/// # let mut settings = Settings::nodes(2);
/// # settings.annex = Some(std::sync::Arc::new(MemorySettings::default()));
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
pub fn scope<'id, 'env, R>(
    w: &mut Worker<'id>,
    f: impl for<'scope> FnOnce(&mut Worker<'id>, &ThreadScope<'scope, 'env>) -> R,
) -> Result<R, ThreadError>
where
    'id: 'env,
{
    let memory = memory(w)?;
    let link = context::link_of_worker(memory.threads().memory).ok_or(MemoryWaitError::NoBody)?;
    // SAFETY: this is the worker's own thread, within its body.
    if unsafe { !link.with(|link| link.has_threads()) } {
        return Err(MemoryWaitError::Wait(AnnexWaitError::OneThread).into());
    }
    let of = ThreadsOf { memory, link };
    Ok(std::thread::scope(|scope| {
        let ends = Ends(of);
        let value = f(w, &ThreadScope { scope, of });
        std::mem::forget(ends);
        value
    }))
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
        let begun = thread.spawn_scoped(self.scope, move || of.run(body));
        begun.map_err(|cause| ThreadError::Refused(cause.to_string()))
    }
}
