//! Locks, which stay where they were held last.

use std::collections::VecDeque;

use dhole_model::{CallSite, NodeId};
use dhole_part::PartEffects;

use super::{
    Attempt, KEPT, Taken, ThreadAttempt, ThreadId, ThreadMessage, ThreadRefusal, ThreadSync,
    WaitsOn,
};

/// Threads of a node hand a lock on to each other so often at most while another node waits.
pub const MOST_IN_A_ROW: u8 = 16;

/// A lock, on a node that has used it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct KeyedLock {
    /// It is here.
    here: bool,
    holder: Option<ThreadId>,
    /// It was asked for, and has not come.
    asked: bool,
    /// The number of the last request.
    number: u32,
    /// The node that gets it next.
    next: Option<NodeId>,
    /// Threads that wait, and whether they only try.
    waiting: VecDeque<(ThreadId, bool)>,
    /// So often it was handed on here.
    in_a_row: u8,
}

impl KeyedLock {
    fn new(here: bool) -> KeyedLock {
        KeyedLock {
            here,
            holder: None,
            asked: false,
            number: 0,
            next: None,
            waiting: VecDeque::new(),
            in_a_row: 0,
        }
    }

    pub(super) fn holder(&self) -> Option<ThreadId> {
        self.holder.filter(|_| self.here)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Whether it is as before its first use. One that was asked for is not: answers to its old
    /// requests may be on their way, which its number tells apart.
    fn is_new(&self) -> bool {
        let is_free = self.holder.is_none() && self.waiting.is_empty() && self.next.is_none();
        self.here && is_free && !self.asked && self.number == 0
    }
}

const LOCKS: &str = "locks of a node";

impl ThreadSync {
    /// A lock that a thread of this node uses.
    fn keyed_lock(&mut self, key: u64) -> Result<&mut KeyedLock, ThreadRefusal> {
        if !self.locks.contains_key(&key) {
            if !self.has_lock_room() {
                return Err(self.full(LOCKS));
            }
            // Until somebody asks for it, it is its manager's.
            let here = self.manager_of(key) == self.me;
            self.locks.insert(key, KeyedLock::new(here));
        }
        let lock = self.locks.get_mut(&key);
        Ok(lock.expect("it was put there"))
    }

    /// Whether there is room for a new lock. Those that no other node has asked for, and that are
    /// free, are forgotten now and then.
    fn has_lock_room(&mut self) -> bool {
        if self.locks.len() < self.looks_at[0] {
            return true;
        }
        let (me, tails) = (self.me, &self.tails);
        self.locks
            .retain(|key, lock| !lock.is_new() || tails.get(key).is_some_and(|tail| *tail != me));
        let twice = (2 * self.locks.len()).max(KEPT);
        self.looks_at[0] = twice.min(self.most_keys);
        self.locks.len() < self.most_keys
    }

    /// A thread acquires a lock that is here and free; whether it is.
    #[inline]
    pub fn lock_here(&mut self, thread: ThreadId, key: u64) -> bool {
        let lock = self.locks.get_mut(&key);
        let Some(lock) = lock.filter(|lock| lock.here && lock.holder.is_none()) else {
            return false;
        };
        (lock.holder, lock.in_a_row) = (Some(thread), 0);
        true
    }

    /// A thread releases a lock for which no other thread or node waits; whether it does.
    #[inline]
    pub fn unlock_here(&mut self, thread: ThreadId, key: u64) -> bool {
        let lock = self.locks.get_mut(&key);
        let is_alone = |lock: &&mut KeyedLock| {
            lock.holder == Some(thread) && lock.waiting.is_empty() && lock.next.is_none()
        };
        let Some(lock) = lock.filter(is_alone) else {
            return false;
        };
        lock.holder = None;
        true
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
        let lock = self.keyed_lock(key)?;
        if lock.holder == Some(thread) {
            return Err(ThreadRefusal::Held(key));
        }
        if self.lock_here(thread, key) {
            return Ok(ThreadAttempt::Done(1));
        }
        self.begin(thread, WaitsOn::Lock(key), site)?;
        self.queue_for(thread, key, out);
        self.own_messages(out);
        Ok(match self.result(thread) {
            Some(taken) => ThreadAttempt::Done(taken?),
            None => ThreadAttempt::Waits,
        })
    }

    /// A thread waits for a lock, and gets it where it is free.
    pub(super) fn queue_for(
        &mut self,
        thread: ThreadId,
        key: u64,
        out: &mut impl PartEffects<Self>,
    ) {
        let here = self.manager_of(key) == self.me;
        // A thread that waited for a condition did not have it, and so it may have been forgotten.
        let lock = self.locks.get_or_insert_with(key, || KeyedLock::new(here));
        lock.waiting.push_back((thread, false));
        match lock.here || lock.asked {
            true => self.serve(key, out),
            false => self.ask(key, false, out),
        }
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
        self.keyed_lock(key)?;
        if self.lock_here(thread, key) {
            return Ok(ThreadAttempt::Done(1));
        }
        let lock = self.keyed_lock(key)?;
        // Where it was asked for, another thread waits, or has heard that it is taken.
        if lock.here || lock.asked {
            return Ok(ThreadAttempt::Done(0));
        }
        lock.waiting.push_back((thread, true));
        if let Err(refusal) = self.begin(thread, WaitsOn::Lock(key), site) {
            self.forget(thread, key);
            return Err(refusal);
        }
        self.ask(key, true, out);
        self.own_messages(out);
        Ok(match self.result(thread) {
            Some(taken) => ThreadAttempt::Done(taken?),
            None => ThreadAttempt::Waits,
        })
    }

    /// Whether a thread wants a lock only if no other one has it.
    pub(super) fn only_tries(&self, thread: ThreadId, key: u64) -> bool {
        let lock = self.locks.get(&key);
        lock.is_some_and(|lock| lock.waiting.contains(&(thread, true)))
    }

    /// A thread does not wait for a lock any more.
    pub(super) fn forget(&mut self, thread: ThreadId, key: u64) {
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.waiting.retain(|(waits, _)| *waits != thread);
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
        let lock = self.locks.get_mut(&key);
        let lock = lock.filter(|lock| lock.holder == Some(thread));
        let lock = lock.ok_or(ThreadRefusal::NotHeld(key))?;
        lock.holder = None;
        if !lock.waiting.is_empty() || lock.next.is_some() {
            self.serve(key, out);
        }
        Ok(())
    }

    /// Whether a thread holds a lock.
    pub fn holds(&self, thread: ThreadId, key: u64) -> bool {
        let locks = || self.locks.get(&key)?.holder;
        let holder = match self.shared.locks() {
            Some(shared) => shared.holder(key),
            None => locks(),
        };
        holder == Some(thread)
    }

    /// Asks the manager for a lock.
    fn ask(&mut self, key: u64, tries: bool, out: &mut impl PartEffects<Self>) {
        let manager = self.manager_of(key);
        let Some(lock) = self.locks.get_mut(&key) else {
            return;
        };
        lock.asked = true;
        lock.number = lock.number.wrapping_add(1);
        let number = lock.number;
        self.send(manager, ThreadMessage::Acquire { key, number, tries }, out);
    }

    /// Hands a free lock on that is here.
    fn serve(&mut self, key: u64, out: &mut impl PartEffects<Self>) {
        let Some(lock) = self.locks.get_mut(&key) else {
            return;
        };
        if !lock.here || lock.holder.is_some() {
            return;
        }
        let is_others = lock.waiting.is_empty() || lock.in_a_row >= MOST_IN_A_ROW;
        if let Some(next) = lock.next
            && is_others
        {
            (lock.next, lock.here) = (None, false);
            let waits = !lock.waiting.is_empty();
            self.send(next, ThreadMessage::Token { key }, out);
            if waits {
                self.ask(key, false, out);
            }
            return;
        }
        let Some((thread, _)) = lock.waiting.pop_front() else {
            return;
        };
        lock.holder = Some(thread);
        lock.in_a_row = lock.in_a_row.saturating_add(1);
        self.finish(thread, Ok(1), out);
    }

    /// Threads that only try hear that a lock is another's.
    fn refuse_tries(&mut self, key: u64, out: &mut impl PartEffects<Self>) {
        let Some(lock) = self.locks.get_mut(&key) else {
            return;
        };
        let all = std::mem::take(&mut lock.waiting).into_iter();
        let (tries, waits): (Vec<_>, Vec<_>) = all.partition(|(_, tries)| *tries);
        lock.waiting = waits.into();
        for (thread, _) in tries {
            self.finish(thread, Ok(0), out);
        }
    }

    pub(super) fn take_acquire(
        &mut self,
        from: NodeId,
        key: u64,
        (number, tries): (u32, bool),
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let is_new = !self.tails.contains_key(&key);
        let has_room = self.tails.len() < self.most_keys
            && (self.locks.contains_key(&key) || self.has_lock_room());
        if is_new && !has_room {
            self.send(from, ThreadMessage::NoLock { key, number }, out);
            return Ok(());
        }
        let tail = self.tails.get_or_insert_with(key, || self.me);
        if *tail == from && from != self.me {
            return Err("a request for a lock of the node that gets it last");
        }
        let before = std::mem::replace(tail, from);
        let asker = from;
        let forward = ThreadMessage::Forward {
            key,
            asker,
            number,
            tries,
        };
        self.send(before, forward, out);
        Ok(())
    }

    pub(super) fn take_forward(
        &mut self,
        key: u64,
        asker: NodeId,
        (number, tries): (u32, bool),
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let me = self.me;
        let lock = self
            .keyed_lock(key)
            .map_err(|_| "more locks than a node keeps")?;
        let may = (lock.here || lock.asked) && lock.next.is_none() && asker != me;
        if !may {
            return Err("a request for a lock to a node that does not get it");
        }
        lock.next = Some(asker);
        self.serve(key, out);
        let waits = self.locks.get(&key).is_some_and(|lock| lock.next.is_some());
        if tries && waits {
            self.send(asker, ThreadMessage::Busy { key, number }, out);
        }
        Ok(())
    }

    pub(super) fn take_token(&mut self, key: u64, out: &mut impl PartEffects<Self>) -> Taken {
        let lock = self.locks.get_mut(&key);
        let lock = lock.filter(|lock| lock.asked && !lock.here);
        let lock = lock.ok_or("a lock that was not asked for")?;
        (lock.here, lock.asked, lock.in_a_row) = (true, false, 0);
        self.serve(key, out);
        self.refuse_tries(key, out);
        Ok(())
    }

    /// The manager has no room for a lock, so its threads do not get it.
    pub(super) fn take_no_lock(
        &mut self,
        key: u64,
        number: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let lock = self.locks.get_mut(&key);
        let lock = lock.filter(|lock| lock.asked && lock.number == number && lock.next.is_none());
        let lock = lock.ok_or("no room for a lock that was not asked for")?;
        lock.asked = false;
        let threads = std::mem::take(&mut lock.waiting);
        for (thread, _) in threads {
            let refusal = self.full(LOCKS);
            self.finish(thread, Err(refusal), out);
        }
        Ok(())
    }

    pub(super) fn take_busy(&mut self, key: u64, number: u32, out: &mut impl PartEffects<Self>) {
        let lock = self.locks.get(&key);
        if lock.is_some_and(|lock| lock.asked && lock.number == number) {
            self.refuse_tries(key, out);
        }
    }
}
