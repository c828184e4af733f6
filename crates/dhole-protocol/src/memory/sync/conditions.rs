//! Conditions and semaphores, by their managers.

use dhole_model::{CallSite, NodeId};
use dhole_part::PartEffects;
use dhole_sync::{Mode, Request};

#[cfg(doc)]
use super::SharedLocks;
use super::{
    Attempt, MOST_WAITING, Taken, ThreadAttempt, ThreadId, ThreadMessage, ThreadRefusal,
    ThreadSync, WaitsOn,
};

/// A thread that waits for a semaphore.
impl Request for ThreadId {
    fn node(&self) -> NodeId {
        ThreadId::node(*self)
    }

    fn mode(&self) -> Mode {
        Mode::Permit
    }
}

const TOO_MANY: &str = "more threads wait on a condition or semaphore than there are";
const SEMAPHORES: &str = "semaphores that a node manages";

impl ThreadSync {
    /// A thread that holds a lock gives it up, waits until a condition is signalled, and acquires
    /// the lock again. It may go on without a signal, as everywhere. A [shared lock](SharedLocks)
    /// the thread takes by itself, once it has its result, unless it holds it still.
    ///
    /// # Errors
    /// [`ThreadRefusal::NotHeld`]; [`ThreadRefusal::Full`]
    pub fn wait_on(
        &mut self,
        thread: ThreadId,
        condition: u64,
        lock: u64,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        if !self.holds(thread, lock) {
            return Err(ThreadRefusal::NotHeld(lock));
        }
        let signalled = false;
        let on = WaitsOn::Queue {
            condition,
            lock,
            signalled,
        };
        self.begin(thread, on, site)?;
        let manager = self.manager_of(condition);
        self.send(manager, ThreadMessage::Wait { condition, thread }, out);
        self.own_messages(out);
        Ok(ThreadAttempt::Waits)
    }

    /// Whether a thread waits on a condition whose manager has heard of it.
    pub fn is_queued(&self, thread: ThreadId) -> bool {
        matches!(self.waits_on(thread), Some(WaitsOn::Condition { .. }))
    }

    /// Lets the thread go on that has waited longest on a condition, or all.
    pub fn signal(&mut self, condition: u64, all: bool, out: &mut impl PartEffects<Self>) {
        let manager = self.manager_of(condition);
        self.send(manager, ThreadMessage::Signal { condition, all }, out);
        self.own_messages(out);
    }

    /// Adds to a semaphore.
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`], where this node manages it. Nobody waits for another manager's
    /// word: one that has no room ends the run.
    pub fn post(
        &mut self,
        key: u64,
        count: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), ThreadRefusal> {
        let manager = self.manager_of(key);
        if manager == self.me && !self.has_semaphore_room(key) {
            return Err(self.full(SEMAPHORES));
        }
        self.send(manager, ThreadMessage::Post { key, count }, out);
        self.own_messages(out);
        Ok(())
    }

    /// Sets what a semaphore has, and waits until it has that.
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`]
    pub fn set(
        &mut self,
        thread: ThreadId,
        key: u64,
        count: u32,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        let set = ThreadMessage::Set { key, thread, count };
        self.asks_semaphore(thread, key, set, site, out)
    }

    /// Takes one of a semaphore, and waits until it has one; if it only `tries`, it gets 0 where
    /// there is none, and else 1.
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`]
    pub fn acquire(
        &mut self,
        thread: ThreadId,
        key: u64,
        tries: bool,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        let take = ThreadMessage::Take { key, thread, tries };
        self.asks_semaphore(thread, key, take, site, out)
    }

    fn asks_semaphore(
        &mut self,
        thread: ThreadId,
        key: u64,
        message: ThreadMessage,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        self.begin(thread, WaitsOn::Semaphore(key), site)?;
        let manager = self.manager_of(key);
        self.send(manager, message, out);
        self.own_messages(out);
        Ok(match self.result(thread) {
            Some(taken) => ThreadAttempt::Done(taken?),
            None => ThreadAttempt::Waits,
        })
    }

    pub(super) fn take_wait(
        &mut self,
        condition: u64,
        thread: ThreadId,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if self.conditions.waiters().len() >= self.nodes * MOST_WAITING {
            return Err(TOO_MANY);
        }
        self.conditions.wait(condition, thread);
        self.send(thread.node(), ThreadMessage::Queued { thread }, out);
        Ok(())
    }

    pub(super) fn take_queued(
        &mut self,
        from: NodeId,
        thread: ThreadId,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let Some(WaitsOn::Queue {
            condition,
            lock,
            signalled,
        }) = self.waits_on(thread)
        else {
            return Err("a thread waits on a condition that did not want to");
        };
        self.by_manager(from, condition)?;
        if signalled {
            // It has its lock still.
            self.finish(thread, Ok(1), out);
            return Ok(());
        }
        self.waits_now(thread, WaitsOn::Condition { condition, lock });
        self.release_shared(thread, lock, out)
            .map_err(|_| "a thread that waits on a condition without its lock")
    }

    pub(super) fn take_signalled(
        &mut self,
        from: NodeId,
        thread: ThreadId,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        match self.waits_on(thread) {
            Some(WaitsOn::Queue {
                condition,
                lock,
                signalled: false,
            }) => {
                self.by_manager(from, condition)?;
                let signalled = true;
                let on = WaitsOn::Queue {
                    condition,
                    lock,
                    signalled,
                };
                self.waits_now(thread, on);
                Ok(())
            }
            Some(WaitsOn::Condition { condition, lock }) => {
                self.by_manager(from, condition)?;
                if self.shared.locks().is_some() {
                    self.finish(thread, Ok(1), out);
                    return Ok(());
                }
                self.waits_now(thread, WaitsOn::Lock(lock));
                self.queue_for(thread, lock, out);
                Ok(())
            }
            _ => Err("a signal for a thread that waits for none"),
        }
    }

    fn waits_now(&mut self, thread: ThreadId, on: WaitsOn) {
        if let Some(wait) = self.waits.get_mut(&thread) {
            wait.on = on;
        }
    }

    pub(super) fn take_signal(
        &mut self,
        condition: u64,
        all: bool,
        out: &mut impl PartEffects<Self>,
    ) {
        for thread in self
            .conditions
            .wake(condition, if all { usize::MAX } else { 1 })
        {
            self.send(thread.node(), ThreadMessage::Signalled { thread }, out);
        }
    }

    /// A thread does not wait for its semaphore, for which there is no room.
    pub(super) fn take_no_room(
        &mut self,
        from: NodeId,
        thread: ThreadId,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let Some(WaitsOn::Semaphore(key)) = self.waits_on(thread) else {
            return Err("no room for a semaphore that no thread waits for");
        };
        self.by_manager(from, key)?;
        let refusal = self.full(SEMAPHORES);
        self.finish(thread, Err(refusal), out);
        Ok(())
    }

    /// Whether this node, its manager, knows a semaphore, or has room for it.
    fn has_semaphore_room(&self, key: u64) -> bool {
        self.semaphores.contains_key(&key) || self.semaphores.len() < self.most_keys
    }

    /// Threads go on that wait for what a semaphore has. One that has nothing, and for which nobody
    /// waits, is as one that was never set: it is forgotten.
    fn hand_out(&mut self, key: u64, out: &mut impl PartEffects<Self>) {
        let Some(semaphore) = self.semaphores.get_mut(&key) else {
            return;
        };
        let threads = semaphore.pass();
        if semaphore.permits == 0 && semaphore.is_idle() {
            self.semaphores.remove(&key);
        }
        for thread in threads {
            let taken = true;
            self.send(thread.node(), ThreadMessage::Taken { thread, taken }, out);
        }
    }

    pub(super) fn take_post(
        &mut self,
        key: u64,
        count: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if !self.has_semaphore_room(key) {
            return Err("more semaphores than a node manages: wait for some, or set them to 0");
        }
        let semaphore = self.semaphores.get_or_default(key);
        semaphore.permits = semaphore.permits.saturating_add(count.into());
        self.hand_out(key, out);
        Ok(())
    }

    pub(super) fn take_set(
        &mut self,
        key: u64,
        thread: ThreadId,
        count: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if !self.has_semaphore_room(key) && count > 0 {
            self.send(thread.node(), ThreadMessage::NoRoom { thread }, out);
            return Ok(());
        }
        self.semaphores.get_or_default(key).permits = count.into();
        self.hand_out(key, out);
        let taken = true;
        self.send(thread.node(), ThreadMessage::Taken { thread, taken }, out);
        Ok(())
    }

    pub(super) fn take_take(
        &mut self,
        key: u64,
        thread: ThreadId,
        tries: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if !tries {
            if !self.has_semaphore_room(key) {
                self.send(thread.node(), ThreadMessage::NoRoom { thread }, out);
                return Ok(());
            }
            let semaphore = self.semaphores.get_or_default(key);
            if semaphore.queue().len() >= self.nodes * MOST_WAITING {
                return Err(TOO_MANY);
            }
            semaphore.wants(thread);
            self.hand_out(key, out);
            return Ok(());
        }
        let has = self.semaphores.get_mut(&key).filter(|it| it.permits > 0);
        let taken = has.map(|it| it.permits -= 1).is_some();
        self.hand_out(key, out);
        self.send(thread.node(), ThreadMessage::Taken { thread, taken }, out);
        Ok(())
    }

    pub(super) fn take_taken(
        &mut self,
        from: NodeId,
        thread: ThreadId,
        taken: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let Some(WaitsOn::Semaphore(key)) = self.waits_on(thread) else {
            return Err("a thread has a semaphore that it does not wait for");
        };
        self.by_manager(from, key)?;
        self.finish(thread, Ok(taken.into()), out);
        Ok(())
    }
}
