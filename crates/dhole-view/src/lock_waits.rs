//! How a thread waits for a lock that is a word of its domain's memory: it looks for a moment, and
//! then sleeps in the system.

use std::time::Duration;

use dhole_model::CallSite;
use dhole_node::{PartsOutbox, PartsStep};
use dhole_protocol::memory::sync::ThreadRefusal;

use crate::domain_locks::RunLocks;
use crate::held_locks::{self, LockSite};
use crate::here::{Here, Waiting, waits_for_threads};
use crate::interrupts;
use crate::thread_error::ThreadError;
use crate::waiters::WaitsFor;

/// A thread looks so often whether another one releases a lock, before it sleeps.
const SPINS: u32 = 100;
/// After so long a thread that sleeps looks whether the run has ended, and why it waits.
const SLEEP: Duration = Duration::from_millis(5);

/// A thread takes a lock if it is free; whether it did.
pub(crate) fn try_lock(here: &Here, locks: &RunLocks, key: u64) -> Result<bool, ThreadError> {
    loop {
        match locks.tries(here.body.thread, key)? {
            Some(took) => return Ok(took),
            None => here.body.look()?,
        }
    }
}

/// A thread takes a lock, and waits until no other thread has it.
#[inline]
pub(crate) fn lock(
    here: &Here,
    locks: &RunLocks,
    key: u64,
    site: LockSite,
) -> Result<(), ThreadError> {
    let thread = here.body.thread;
    if locks.takes(thread, key, false)? {
        return Ok(());
    }
    for _ in 0..SPINS {
        if locks.may_take(key) && locks.takes(thread, key, false)? {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    wait(here, locks, key, site.site())
}

#[cold]
fn wait(here: &Here, locks: &RunLocks, key: u64, site: CallSite) -> Result<(), ThreadError> {
    let thread = here.body.thread;
    let _waiting = Waiting::begin();
    let mut began_ns = None;
    looks(here, &mut |out| began_ns = Some(out.now_ns))?;
    here.tell(|machine, _| {
        held_locks::note(thread, |locks| machine.acquired_at(thread, locks));
        machine.wait_for_shared(thread, key, site)
    })?;
    let waited = wait_until_taken(here, locks, key);
    looks(here, &mut |out| {
        out.waits_for = waits_for_threads(&here.memory().sync.machine(), thread);
        out.since_ns = began_ns;
    })?;
    here.memory().sync.machine().end_wait(thread);
    if waited.is_err() {
        locks.leave(key);
    }
    waited
}

/// Takes a step that does not wait.
fn looks(here: &Here, step: &mut dyn FnMut(&mut PartsOutbox<'_>)) -> Result<(), ThreadError> {
    let waits_for = WaitsFor::Thread(here.body.thread);
    here.body
        .wait(&here.memory().waiters, waits_for, &mut |out| {
            step(out);
            PartsStep::Over
        })?;
    Ok(())
}

fn wait_until_taken(here: &Here, locks: &RunLocks, key: u64) -> Result<(), ThreadError> {
    let (mut has_slept, mut suspected) = (false, None);
    while !locks.takes(here.body.thread, key, has_slept)? {
        interrupts::run_interrupts();
        // What the thread has sent is on its way before it sleeps.
        here.body.look()?;
        locks.sleep(key, SLEEP);
        has_slept = true;
        if let Some(refusal) = look_why(here, &mut suspected)? {
            return Err(refusal.into());
        }
    }
    Ok(())
}

/// A thread that waits for a lock looks whether it waits for itself, now and then.
fn look_why(
    here: &Here,
    suspected: &mut Option<u64>,
) -> Result<Option<ThreadRefusal>, ThreadError> {
    let (memory, thread) = (here.memory(), here.body.thread);
    let mut result = None;
    let waits_for = WaitsFor::Thread(thread);
    here.body.wait(&memory.waiters, waits_for, &mut |out| {
        let (now_ns, patience_ns) = (out.now_ns, out.patience_ns);
        let since = suspected.get_or_insert(now_ns);
        result = memory.sync.step(&memory.waiters, out, |machine, fx| {
            if now_ns.saturating_sub(*since) >= patience_ns {
                *since = now_ns;
                fx.out.suspects = machine.edge_of(thread);
            }
            machine.result(thread)
        });
        PartsStep::Over
    })?;
    Ok(result.and_then(Result::err))
}
