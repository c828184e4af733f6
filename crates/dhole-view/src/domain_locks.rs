//! The locks of the threads of a run whose nodes are one domain: words in the memory of the domain,
//! which take no message.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dhole_heap::{DomainFile, DomainLocks, LockAttempt};
use dhole_model::CallSite;
use dhole_node::AnnexStep;
use dhole_protocol::memory::sync::{SharedLocks, ThreadId, ThreadRefusal};

use crate::here::Here;
use crate::page_words::LOCKS_AT;
use crate::thread_error::ThreadError;
use crate::waiters::WaitsFor;

/// A thread looks so often whether another one releases a lock, before it sleeps.
const SPINS: u32 = 100;
/// After so long a thread that sleeps looks whether the run has ended, and why it waits.
const SLEEP: Duration = Duration::from_millis(5);

/// The locks of a domain, which is the whole run.
#[derive(Clone, Debug)]
pub(crate) struct RunLocks(Arc<DomainLocks>);

/// The machine knows them by this.
#[derive(Debug)]
struct Known(Arc<DomainLocks>);

impl SharedLocks for Known {
    fn holder(&self, key: u64) -> Option<ThreadId> {
        self.0.holder(key).map(ThreadId)
    }

    fn release(&self, key: u64, thread: ThreadId) -> bool {
        self.0.release(key, thread.0)
    }
}

impl RunLocks {
    /// Those in the file of the domain.
    ///
    /// # Errors
    /// The system's own.
    pub fn map(file: &DomainFile) -> io::Result<RunLocks> {
        let locks = DomainLocks::map(file, LOCKS_AT)?;
        Ok(RunLocks(Arc::new(locks)))
    }

    /// The locks, as the machine of a node knows them.
    pub fn known(&self) -> Arc<dyn SharedLocks> {
        Arc::new(Known(Arc::clone(&self.0)))
    }

    pub fn holds(&self, thread: ThreadId, key: u64) -> bool {
        self.0.holder(key) == Some(thread.0)
    }

    /// A thread releases a lock.
    #[inline]
    pub fn unlock(&self, thread: ThreadId, key: u64) -> Result<(), ThreadError> {
        match self.0.release(key, thread.0) {
            true => Ok(()),
            false => Err(ThreadRefusal::NotHeld(key).into()),
        }
    }

    /// A thread takes a lock if it is free; whether it did.
    pub fn try_lock(&self, here: &Here, key: u64) -> Result<bool, ThreadError> {
        loop {
            match self.0.take(key, here.body.thread.0, false) {
                LockAttempt::Taken => return Ok(true),
                LockAttempt::Own | LockAttempt::Busy => return Ok(false),
                LockAttempt::Full => return Err(full()),
                LockAttempt::Adding => here.body.look()?,
            }
        }
    }

    /// A thread takes a lock, and waits until no other thread has it.
    #[inline]
    pub fn lock(
        &self,
        here: &Here,
        key: u64,
        site: impl FnOnce() -> CallSite,
    ) -> Result<(), ThreadError> {
        let thread = here.body.thread;
        if self.takes(thread, key)? {
            return Ok(());
        }
        for _ in 0..SPINS {
            if self.0.may_take(key) && self.takes(thread, key)? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.wait(here, key, site())
    }

    /// Whether a thread has taken a lock.
    #[inline]
    fn takes(&self, thread: ThreadId, key: u64) -> Result<bool, ThreadError> {
        taken(key, self.0.take(key, thread.0, false))
    }

    #[cold]
    fn wait(&self, here: &Here, key: u64, site: CallSite) -> Result<(), ThreadError> {
        let (sync, thread) = (&here.memory().sync, here.body.thread);
        here.tell(|machine, _| machine.wait_for_shared(thread, key, site))?;
        let waited = self.wait_until_taken(here, key);
        sync.machine().end_wait_for_shared(thread);
        if waited.is_err() {
            self.0.leave(key);
        }
        waited
    }

    fn wait_until_taken(&self, here: &Here, key: u64) -> Result<(), ThreadError> {
        let thread = here.body.thread;
        let (mut has_slept, mut suspected) = (false, None);
        while !taken(key, self.0.take(key, thread.0, has_slept))? {
            // What the thread has sent is on its way before it sleeps.
            here.body.look()?;
            self.0.sleep(key, SLEEP);
            has_slept = true;
            if let Some(refusal) = look_why(here, &mut suspected)? {
                return Err(refusal.into());
            }
        }
        Ok(())
    }
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
        let (now_ns, mut commands) = (out.now_ns, Vec::new());
        let since = suspected.get_or_insert(now_ns);
        let mut machine = memory.sync.machine();
        if now_ns.saturating_sub(*since) >= out.patience_ns {
            *since = now_ns;
            machine.suspect(thread, &mut commands);
        }
        result = machine.result(thread);
        drop(machine);
        memory.sync.carry_out(commands, &memory.waiters, out);
        AnnexStep::Over
    })?;
    Ok(result.and_then(Result::err))
}

/// Whether an attempt took the lock.
fn taken(key: u64, attempt: LockAttempt) -> Result<bool, ThreadError> {
    match attempt {
        LockAttempt::Taken => Ok(true),
        LockAttempt::Busy | LockAttempt::Adding => Ok(false),
        LockAttempt::Own => Err(ThreadRefusal::Held(key).into()),
        LockAttempt::Full => Err(full()),
    }
}

fn full() -> ThreadError {
    let (what, most) = ("locks of a domain that are held", DomainLocks::ROOM);
    ThreadRefusal::Full { what, most }.into()
}
