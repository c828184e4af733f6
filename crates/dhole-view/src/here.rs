//! The thread that calls, of its node: how it takes steps of the machine by which threads wait for
//! each other, and waits.

use std::cell::Cell;
use std::time::Duration;

use dhole_model::WaitCause;
use dhole_node::{PartsOutbox, PartsStep, PartsWait};
use dhole_protocol::memory::sync::{ThreadAttempt, ThreadId, ThreadRefusal, ThreadSync};

use crate::context::{Body, MemoryWaitError};
use crate::domain_locks::RunLocks;
use crate::held_locks;
use crate::interrupts;
use crate::memory::Memory;
use crate::node_sync::ThreadEffects;
use crate::thread_error::ThreadError;
use crate::waiters::WaitsFor;

thread_local! {
    static IS_WAITING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread waits, or takes a step of the machine.
pub(crate) fn is_waiting() -> bool {
    IS_WAITING.get()
}

/// This thread waits until this is dropped.
pub(crate) struct Waiting(bool);

impl Waiting {
    pub fn begin() -> Waiting {
        Waiting(IS_WAITING.replace(true))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        IS_WAITING.set(self.0);
    }
}

/// The body that this thread runs, and the memory of its node.
pub(crate) struct Here {
    pub body: Body,
    memory: *const Memory,
}

impl Here {
    pub fn find() -> Result<Here, ThreadError> {
        let body = Body::current().ok_or(ThreadError::NoNode)?;
        if body.holds {
            return Err(MemoryWaitError::Holds.into());
        }
        let memory = body.memory.cast();
        Ok(Here { body, memory })
    }

    pub fn memory(&self) -> &Memory {
        // SAFETY: whoever runs a body names its node's memory (`context::run`), which is there as
        // long as the body runs; and this thread is within it.
        unsafe { &*self.memory }
    }

    /// The locks of all nodes, if these are one domain.
    pub fn locks(&self) -> Option<&RunLocks> {
        self.memory().sync.locks.as_ref()
    }

    /// Takes a step of the machine, and waits until it has a result.
    pub fn attempt(
        &self,
        mut begin: impl FnMut(&mut ThreadSync, &mut ThreadEffects<'_, '_>) -> Attempt,
    ) -> Result<u64, ThreadError> {
        self.attempt_then(&mut begin, &mut |_, _, _| None)
    }

    /// As [`attempt`](Here::attempt). While the thread waits it does something after each step, of
    /// which it hears how long it has waited, and which says how soon to do it again.
    pub fn attempt_then(&self, begin: Begin<'_>, then: Then<'_>) -> Result<u64, ThreadError> {
        let _waiting = Waiting::begin();
        let (memory, thread) = (self.memory(), self.body.thread);
        let (mut begun, mut suspected) = (None, 0);
        let came = Cell::new(None);
        let waits_for = WaitsFor::Thread(thread);
        let mut step = |out: &mut PartsOutbox<'_>| {
            if begun.is_some() && interrupts::is_due() {
                out.ends_wait = true;
                return PartsStep::Over;
            }
            let mut result = memory.sync.step(&memory.waiters, out, |machine, fx| {
                let now_ns = fx.out.now_ns;
                let waited_ns = begun.map(|began| now_ns.saturating_sub(began));
                let mut result;
                if waited_ns.is_none() {
                    (begun, suspected) = (Some(now_ns), now_ns);
                    result = match begin(machine, fx) {
                        Ok(ThreadAttempt::Done(value)) => Some(Ok(value)),
                        Ok(ThreadAttempt::Waits) => None,
                        Err(refusal) => Some(Err(refusal)),
                    };
                } else {
                    result = machine.result(thread);
                    fx.out.ends_wait = result.is_none();
                    if result.is_none() && now_ns - suspected >= fx.out.patience_ns {
                        suspected = now_ns;
                        fx.out.suspects = machine.edge_of(thread);
                    }
                }
                if result.is_none() {
                    held_locks::note(thread, |locks| machine.acquired_at(thread, locks));
                    let waited = Duration::from_nanos(waited_ns.unwrap_or(0));
                    fx.out.again_after = then(machine, waited, fx);
                    // It may have ended the wait.
                    result = machine.result(thread);
                }
                fx.out.waits_for = waits_for_threads(machine, thread);
                result
            });
            if result.is_none() {
                // A thread of this node may have begun.
                result = memory.sync.machine().result(thread);
            }
            if result.is_none() && interrupts::are_on() {
                let looks = out.again_after.unwrap_or(interrupts::LOOKS);
                out.again_after = Some(looks.min(interrupts::LOOKS));
            }
            let next = match result {
                Some(_) => PartsStep::Over,
                None => PartsStep::Waits,
            };
            came.set(result);
            next
        };
        loop {
            self.body.wait(&memory.waiters, waits_for, &mut step)?;
            if let Some(result) = came.take() {
                return Ok(result?);
            }
            // Something has interrupted the wait, and runs here, between two waits.
            interrupts::run_interrupts();
        }
    }

    /// Takes a step of the machine for which nobody waits.
    pub fn tell<R>(
        &self,
        mut tells: impl FnMut(&mut ThreadSync, &mut ThreadEffects<'_, '_>) -> Told<R>,
    ) -> Result<R, ThreadError> {
        let _waiting = Waiting::begin();
        let memory = self.memory();
        let mut told = None;
        let waits_for = WaitsFor::Thread(self.body.thread);
        self.body.wait(&memory.waiters, waits_for, &mut |out| {
            told = Some(memory.sync.step(&memory.waiters, out, &mut tells));
            PartsStep::Over
        })?;
        Ok(told.expect("a step was taken")?)
    }
}

/// The first step of a thread that may wait.
pub(crate) type Begin<'a> =
    &'a mut dyn FnMut(&mut ThreadSync, &mut ThreadEffects<'_, '_>) -> Attempt;

/// What a thread waits for, as a report tells it. Waits for a whole thread are told by no line: the
/// program has nothing else to do meanwhile.
pub(crate) fn waits_for_threads(machine: &ThreadSync, thread: ThreadId) -> Option<PartsWait> {
    let (cause, what, site) = machine.waits_for(thread)?;
    let is_told = cause != WaitCause::Operation;
    Some(PartsWait {
        cause,
        what,
        site: is_told.then_some(site),
    })
}

/// What a thread that waits does after a step, once it has waited for so long; how soon again.
type Then<'a> =
    &'a mut dyn FnMut(&mut ThreadSync, Duration, &mut ThreadEffects<'_, '_>) -> Option<Duration>;

type Told<R> = Result<R, ThreadRefusal>;
type Attempt = Result<ThreadAttempt, ThreadRefusal>;
