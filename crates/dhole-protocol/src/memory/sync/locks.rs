//! Locks, which [travel](dhole_sync::TravellingLocks) and carry nothing.

use dhole_model::{CallSite, NodeId};
use dhole_part::PartEffects;
use dhole_sync::{Acquiring, Passing, Travels};

use super::{
    Attempt, Taken, ThreadAttempt, ThreadId, ThreadMessage, ThreadRefusal, ThreadSync, WaitsOn,
    manager_of,
};

/// What goes with the locks of threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum ThreadLocks {}

impl Travels for ThreadLocks {
    type Lock = u64;
    type Holder = ThreadId;
    /// A try is answered where the lock is another thread's.
    type Number = u32;
    /// The asker's number, and whether it wants to hear that the lock is another thread's.
    type Request = (u32, bool);
    type Carries = ();

    fn manager(lock: u64, nodes: usize) -> NodeId {
        manager_of(lock, nodes)
    }
}

const LOCKS: &str = "locks of a node";

impl ThreadSync {
    /// A thread acquires a lock that is here and free; whether it is.
    #[inline]
    pub fn lock_here(&mut self, thread: ThreadId, key: u64) -> bool {
        self.locks.take_here(key, thread)
    }

    /// A thread releases a lock for which no other thread or node waits; whether it does.
    #[inline]
    pub fn unlock_here(&mut self, thread: ThreadId, key: u64) -> bool {
        self.locks.free_here(key, thread)
    }

    /// A thread acquires a lock.
    ///
    /// # Errors
    /// [`ThreadRefusal::Held`]; [`ThreadRefusal::Full`]
    pub fn lock(
        &mut self,
        thread: ThreadId,
        key: u64,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        if self.locks.holder(key) == Some(thread) {
            return Err(ThreadRefusal::Held(key));
        }
        self.want(thread, key, false, site, out)
    }

    /// A thread acquires a lock if no other one has it: 1, or 0.
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`]
    pub fn try_lock(
        &mut self,
        thread: ThreadId,
        key: u64,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        self.want(thread, key, true, site, out)
    }

    fn want(
        &mut self,
        thread: ThreadId,
        key: u64,
        tries: bool,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        if !self.locks.has_room(key) {
            return Err(self.full(LOCKS));
        }
        let wanted = self.locks.want(key, thread, tries);
        match wanted {
            Acquiring::Has => return Ok(ThreadAttempt::Done(1)),
            Acquiring::Waits if tries => return Ok(ThreadAttempt::Done(0)),
            Acquiring::Waits | Acquiring::Asks => {}
        }
        if let Err(refusal) = self.begin(thread, WaitsOn::Lock(key), site) {
            self.locks.forget(key, thread);
            return Err(refusal);
        }
        if wanted == Acquiring::Asks {
            self.ask(key, tries, out);
        }
        self.own_messages(out);
        Ok(match self.result(thread) {
            Some(taken) => ThreadAttempt::Done(taken?),
            None => ThreadAttempt::Waits,
        })
    }

    /// A thread whose wait on a condition is over waits for its lock, and gets it where it is free.
    pub(super) fn queue_for(
        &mut self,
        thread: ThreadId,
        key: u64,
        out: &mut impl PartEffects<Self>,
    ) {
        match self.locks.want(key, thread, false) {
            Acquiring::Has => self.finish(thread, Ok(1), out),
            Acquiring::Waits => {}
            Acquiring::Asks => self.ask(key, false, out),
        }
    }

    /// A thread releases a lock.
    ///
    /// # Errors
    /// [`ThreadRefusal::NotHeld`]
    pub fn unlock(
        &mut self,
        thread: ThreadId,
        key: u64,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), ThreadRefusal> {
        self.release(thread, key, out)?;
        self.own_messages(out);
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        thread: ThreadId,
        key: u64,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), ThreadRefusal> {
        let passed = self.locks.release(key, thread);
        self.pass(key, passed.ok_or(ThreadRefusal::NotHeld(key))?, out);
        Ok(())
    }

    /// Whether a thread holds a lock.
    pub fn holds(&self, thread: ThreadId, key: u64) -> bool {
        let holder = match self.shared.locks() {
            Some(shared) => shared.holder(key),
            None => self.locks.holder(key),
        };
        holder == Some(thread)
    }

    /// Asks the manager for a lock. A thread that only tries has just begun to wait, so that no
    /// earlier request has the number of this wait.
    fn ask(&mut self, key: u64, tries: bool, out: &mut impl PartEffects<Self>) {
        let number = self.wait as u32;
        let passed = self.locks.ask(key, number, (number, tries));
        let passed = passed.expect("what a node says to itself is sound");
        self.pass(key, passed, out);
    }

    /// Carries out what is to be done about a lock.
    pub(super) fn pass(
        &mut self,
        key: u64,
        passed: Vec<Passing<ThreadLocks>>,
        out: &mut impl PartEffects<Self>,
    ) {
        use ThreadMessage as M;
        for passing in passed {
            let (to, message) = match passing {
                Passing::Request(to, (number, tries)) => (to, M::Acquire { key, number, tries }),
                Passing::Forward(to, asker, (number, tries)) => {
                    let forward = M::Forward {
                        key,
                        asker,
                        number,
                        tries,
                    };
                    (to, forward)
                }
                Passing::Grant(to, ..) => (to, M::Token { key }),
                Passing::Queued(to, (number, true)) => (to, M::Busy { key, number }),
                Passing::NoRoom(to, (number, _)) => (to, M::NoLock { key, number }),
                Passing::Queued(..) => continue,
                Passing::Again => return self.ask(key, false, out),
                Passing::Has(thread) => {
                    self.finish(thread, Ok(1), out);
                    continue;
                }
            };
            self.send(to, message, out);
        }
    }

    /// Threads that only try hear that a lock is another's.
    pub(super) fn refuse_tries(&mut self, key: u64, out: &mut impl PartEffects<Self>) {
        for thread in self.locks.refuse_tries(key) {
            self.finish(thread, Ok(0), out);
        }
    }

    /// The manager has no room for a lock, so its threads do not get it.
    pub(super) fn take_no_lock(
        &mut self,
        key: u64,
        number: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        for (thread, _) in self.locks.no_room(key, number)? {
            let refusal = self.full(LOCKS);
            self.finish(thread, Err(refusal), out);
        }
        Ok(())
    }
}
