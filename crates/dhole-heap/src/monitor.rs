//! One node: a lock, what it guards, and the token. Who may touch bytes, and when.
//!
//! # Presence
//!
//! The node's worker is, at any moment, in one of three places, kept under the node lock:
//!
//! | presence | the worker is | references that may live | what the heap allows, to any thread with the lock |
//! |---|---|---|---|
//! | [`Computing`](Presence::Computing) | in the user's program | any `&T`, or `&mut T` | reading the bytes of *clean* objects; withdrawing |
//! | [`Shared`](Presence::Shared) | in a call with `&Token` | `&T` | also: reading dirty objects; making them clean; installing absent ones; allocating |
//! | [`Exclusive`](Presence::Exclusive) | in a call with `&mut Token`, or there is no token | none | everything |
//!
//! Presence changes only in [`Monitor::shared_call`] and [`Monitor::exclusive_call`], which hold
//! the token's borrow for as long as they run and restore the presence before they end, by
//! unwinding too; and in [`Monitor::lend`]. Nothing that safe code does can make the presence
//! claim less than the borrows that exist: the borrow is the argument.
//!
//! # Why there is no data race
//!
//! - *Handles.* The worker loads them without the lock. While it computes nobody stores one. In
//!   an exclusive call any thread with the lock may store, but the worker cannot load: its token
//!   is borrowed. In a shared call the worker may load read handles (a write handle takes `&mut
//!   Token`, so those may be made null), so what is installed is only noted, and
//!   the worker's own thread stores the handles at the end of the call, under the lock; the lock
//!   is what orders another thread's bytes before the handle that leads to them. So relaxed
//!   loads and stores are enough, on any hardware. Where one handle says what may be read and what
//!   may be written (the detector `vm`), a shared call may exchange it for one that allows less
//!   writing: the worker may read through either, and the bytes are the same.
//! - *Extents*, which say of arrays what a handle for each block cannot. They are no atomics.
//!   The worker looks at those of what may be read with its token borrowed, so while it computes
//!   or is itself in a shared call; they change in exclusive calls, and on the worker's own
//!   thread at the end of a shared one. It looks at those of what may be written with its token
//!   borrowed mutably, so only while it computes; they change in calls. All of it under the lock,
//!   which the worker takes when it enters and leaves a call. The token is not `Sync`, so no
//!   other thread looks without the lock.
//! - *Bytes of arrays.* What is said here of objects holds for each element of an array: no
//!   element shares a byte with another, and no slice that is lent has one that is not valid.
//! - *Bytes of clean objects.* Their write handle is null, so the worker holds only `&T`; others
//!   read under the lock; nobody writes. An object becomes writable only in an
//!   exclusive call, and clean again in any call, under the lock, which orders the worker's writes
//!   and the others' reads.
//! - *Bytes of dirty objects.* The worker may write them while it computes, without the lock, so
//!   then all others are refused. On entry of a call the worker takes the lock, which orders its
//!   writes before their reads.
//! - *Write handles of expected writes.* Such a handle leads nowhere until the worker exchanges it
//!   for one that does, which it does while it computes, with its token borrowed mutably. It notes
//!   the write beside, and only an exclusive call looks at that. Until its exchange the worker
//!   holds no `&mut` to the object: handles become such ones in exclusive calls. So a thread with
//!   the lock may *withdraw* the object: it exchanges the handle for null, and the object is clean.
//!   Both exchange what they have loaded, so one of them fails: then the thread takes the object
//!   for dirty, or the worker makes a call.
//! - *Gated write handles.* An object behind a shut [gate](crate::HeapMut::open_gate) is clean. Its
//!   write handle leads nowhere, and the worker never changes it: its first write is a call, and
//!   an exclusive call opens the gate. Any call shuts it. So a thread with the lock may withdraw
//!   the object too. Neighbours copy its bytes without the lock, as those of any published object.
//! - *Bytes of absent objects.* No reference to them lives: handles are made null in exclusive
//!   calls alone, when none does. So they may be written under the lock in any call.
//! - *New objects*. The worker stores value and handles of what was set aside for it (in the
//!   nursery) while it computes, with its token borrowed mutably; no reference to it lives, and no
//!   other thread touches its bytes before the heap has heard of it, in the worker's next call.
//!   What is set aside changes in calls, under the lock.
//! - `&T`s may go to scoped threads, which end before the borrow does, and so before any
//!   exclusive call of the worker. Nor does any thread that reads through
//!   [`Readers`](crate::Readers): it borrows the token mutably, so the worker computes.
//!
//! # Several workers
//!
//! A node may have several workers, one of which computes or is in a call, and has the *turn*.
//! Another gets a token of its own ([`Monitor::lend`]) only when the one before is over, or while
//! it has given the turn away ([`MonitorCall::give_turn`]), which it does in an exclusive call:
//! its token is borrowed mutably until that call has the turn again. So of all the tokens of a
//! node one alone is not borrowed mutably, and what is said of the worker above is said of the one
//! that has the turn.
//!
//! The heap copies bytes through raw pointers and never forms a slice over an object.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use dhole_model::NodeId;
use dhole_model::unpoisoned;

use crate::handle::HandleTable;
use crate::heap::{BothExtents, Heap, HeapMut};
use crate::{Cluster, Presence, Token};

struct Inside<S> {
    heap: Heap,
    /// No worker has the turn: all that have a token have given it away, within exclusive calls.
    turn_is_free: bool,
    /// How often the lock was taken.
    taken: u64,
    state: S,
}

/// One node: the lock over its heap and over the engine's state `S`, and a token for each of its
/// workers.
///
/// A thread that panics with the lock leaves the heap consistent, so the lock is not poisoned; the
/// engine answers for its own state.
pub struct Monitor<S> {
    inside: Mutex<Inside<S>>,
    cluster: Arc<Cluster>,
    node: NodeId,
    read: HandleTable,
    write: HandleTable,
    extents: Arc<BothExtents>,
    computes: Arc<AtomicBool>,
}

/// A worker of the node has the turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the token of {node} is lent already")]
pub struct AlreadyLent {
    /// The node.
    pub node: NodeId,
}

impl<S> Monitor<S> {
    /// The monitor of `node`, with the engine's `state` behind its lock.
    ///
    /// # Panics
    /// When `node` is not one of the cluster's nodes, or has had a monitor before.
    pub fn new(cluster: &Arc<Cluster>, node: NodeId, state: S) -> Monitor<S> {
        let (heap, read, write) = Heap::new(cluster, node);
        let extents = Arc::clone(&heap.extents);
        let computes = Arc::clone(&heap.computes);
        let inside = Mutex::new(Inside {
            heap,
            turn_is_free: true,
            taken: 0,
            state,
        });
        Monitor {
            inside,
            cluster: cluster.clone(),
            node,
            read,
            write,
            extents,
            computes,
        }
    }

    /// The node's cluster.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Lends a token to `f`, a worker of the node, where the turn is free: it is until the first
    /// worker has it, once that worker is over, and while whoever has it has
    /// [given it away](MonitorCall::give_turn). Before and after, the presence is
    /// [`Presence::Exclusive`]: there is nobody whose references could be in the way.
    ///
    /// # Errors
    /// [`AlreadyLent`] while the turn is not free.
    pub fn lend<R>(&self, f: impl for<'id> FnOnce(Token<'id>) -> R) -> Result<R, AlreadyLent> {
        self.lend_within(|token, _| f(token))
    }

    /// Like [`lend`](Monitor::lend), for an `f` that keeps the token beside references that
    /// outlive the call: [`Within`] tells the compiler that they outlive `'id`.
    ///
    /// # Errors
    /// [`AlreadyLent`] while the turn is not free.
    pub fn lend_within<'m, R>(
        &'m self,
        f: impl for<'id> FnOnce(Token<'id>, Within<'id, 'm>) -> R,
    ) -> Result<R, AlreadyLent> {
        let mut inside = self.enter();
        if !inside.turn_is_free {
            return Err(AlreadyLent { node: self.node });
        }
        inside.turn_is_free = false;
        // SAFETY: the worker that gets the turn computes from here on. Whoever gave it away is in
        // an exclusive call (`give_turn` tests that) until it has the turn again.
        unsafe { inside.heap.set_presence(Presence::Computing) };
        drop(inside);
        let _turn = Turn(self);
        let extents = Arc::clone(&self.extents);
        // SAFETY: the presence was just set. The tokens of those who gave the turn away are
        // borrowed mutably by their exclusive calls, which end only once it is free again: when
        // `_turn` is dropped, after `f`, and with it 'id: `f` takes a token of any lifetime.
        let token = unsafe { Token::new(self.read, self.write, extents) };
        Ok(f(token, Within(PhantomData)))
    }

    /// Whether the worker computes, for a thread that runs the worker's program: what other threads
    /// read here may be over.
    pub fn computes(&self) -> bool {
        self.computes.load(Ordering::Relaxed)
    }

    /// Takes the node lock. For handlers; a worker calls it through its token, see
    /// [`Monitor::shared_call`] and [`Monitor::exclusive_call`].
    pub fn lock(&self) -> Guard<'_, S> {
        Guard {
            inside: self.enter(),
        }
    }

    /// As [`lock`](Monitor::lock), where nobody has it.
    pub fn try_lock(&self) -> Option<Guard<'_, S>> {
        let mut inside = match self.inside.try_lock() {
            Ok(inside) => inside,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        inside.taken += 1;
        Some(Guard { inside })
    }

    /// How often the node lock was taken before this: for measurements.
    #[doc(hidden)]
    pub fn taken(&self) -> u64 {
        unpoisoned::lock(&self.inside).taken
    }

    /// Runs `f` as a call of the worker that shares its token. The lock is held when `f` starts and
    /// may be given up and taken again ([`MonitorCall`]); as long as `f` does not give it up,
    /// entry, work and exit are one hold of the lock. A shared call that has given the lock up may
    /// make another one.
    ///
    /// # Panics
    /// When the token is another monitor's; then nothing has happened.
    pub fn shared_call<R>(
        &self,
        token: &Token<'_>,
        f: impl for<'m> FnOnce(&mut MonitorCall<'m, S>) -> R,
    ) -> R {
        assert!(
            token.is_of(&self.read),
            "the token is not that of {}",
            self.node
        );
        // SAFETY: it is this node's token, by the test above, and borrowed until the call is over.
        unsafe { self.call(Presence::Shared, f) }
    }

    /// Runs `f` as a call of the worker that owns its token. As [`Monitor::shared_call`], but no
    /// reference to an object lives.
    ///
    /// # Panics
    /// When the token is another monitor's; then nothing has happened.
    pub fn exclusive_call<R>(
        &self,
        token: &mut Token<'_>,
        f: impl for<'m> FnOnce(&mut MonitorCall<'m, S>) -> R,
    ) -> R {
        assert!(
            token.is_of(&self.read),
            "the token is not that of {}",
            self.node
        );
        // SAFETY: as in `shared_call`, and it is borrowed mutably.
        unsafe { self.call(Presence::Exclusive, f) }
    }

    /// # Safety
    /// The caller borrows this node's token until the call is over, mutably where that is
    /// exclusive.
    unsafe fn call<R>(
        &self,
        presence: Presence,
        f: impl for<'m> FnOnce(&mut MonitorCall<'m, S>) -> R,
    ) -> R {
        let mut inside = self.enter();
        let before = inside.heap.presence();
        // A call borrows the token for as long as it runs, so within an exclusive one there is no
        // token to call with, and within a shared one none to own.
        let nests = before == Presence::Computing
            || (before == Presence::Shared && presence == Presence::Shared);
        assert!(nests, "a call within a call of {}: {before}", self.node);
        // SAFETY: the caller's promise.
        unsafe { inside.heap.set_presence(presence) };
        let call = MonitorCall {
            monitor: self,
            guard: Some(Guard { inside }),
        };
        let mut entered = Entered { call, before };
        f(&mut entered.call)
    }

    fn enter(&self) -> MutexGuard<'_, Inside<S>> {
        let mut inside = unpoisoned::lock(&self.inside);
        inside.taken += 1;
        inside
    }
}

impl<S> fmt::Debug for Monitor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "monitor of {} of {:?}", self.node, self.cluster)
    }
}

/// Says that what is borrowed for `'m` may be kept beside a token of brand `'id`.
pub struct Within<'id, 'm>(PhantomData<&'id &'m ()>);

/// Takes the token back, and with it the turn, by unwinding too.
struct Turn<'m, S>(&'m Monitor<S>);

impl<S> Drop for Turn<'_, S> {
    fn drop(&mut self) {
        let mut inside = self.0.enter();
        // SAFETY: the closure that had the token is over, and no reference leaves it. All other
        // tokens are borrowed mutably, by exclusive calls.
        unsafe { inside.heap.set_presence(Presence::Exclusive) };
        inside.turn_is_free = true;
    }
}

/// Takes the turn again that a call has given away, by unwinding too.
struct Regains<'m, S>(&'m Monitor<S>);

impl<S> Drop for Regains<'_, S> {
    fn drop(&mut self) {
        let mut inside = self.0.enter();
        if !inside.turn_is_free {
            // Two workers would touch the same bytes: there is no way on from here, not by
            // unwinding either.
            eprintln!("dhole: {}: a worker goes on that has no turn", self.0.node);
            std::process::abort();
        }
        inside.turn_is_free = false;
    }
}

/// Ends a call, by unwinding too.
struct Entered<'m, S> {
    call: MonitorCall<'m, S>,
    before: Presence,
}

impl<S> Drop for Entered<'_, S> {
    fn drop(&mut self) {
        let before = self.before;
        let guard = self.call.locked();
        // SAFETY: this is the worker's own thread: the call began on it, and what holds a lock's
        // guard stays there. Only here may handles be stored that the worker could be loading.
        unsafe { guard.inside.heap.publish() };
        // SAFETY: the borrow for which the call was made ends with it, so what was true before is.
        unsafe { guard.inside.heap.set_presence(before) };
    }
}

/// The node lock, held.
pub struct Guard<'m, S> {
    inside: MutexGuard<'m, Inside<S>>,
}

impl<S> Guard<'_, S> {
    /// The heap and the engine's state.
    #[inline]
    pub fn split(&mut self) -> (HeapMut<'_>, &mut S) {
        let inside = &mut *self.inside;
        (HeapMut::new(&mut inside.heap), &mut inside.state)
    }

    /// Where the worker is.
    #[inline]
    pub fn presence(&self) -> Presence {
        self.inside.heap.presence()
    }
}

/// A call of the worker in progress: the node lock, which may be given up and taken again.
pub struct MonitorCall<'m, S> {
    monitor: &'m Monitor<S>,
    guard: Option<Guard<'m, S>>,
}

impl<'m, S> MonitorCall<'m, S> {
    /// The heap and the engine's state. Takes the lock where it was given up.
    #[inline]
    pub fn split(&mut self) -> (HeapMut<'_>, &mut S) {
        self.locked().split()
    }

    /// Gives the lock up until the next [`split`](MonitorCall::split), or the end of the call.
    pub fn unlock(&mut self) {
        self.guard = None;
    }

    /// Gives the turn away and runs `f`, without the lock: meanwhile another worker of the node may
    /// have it. It must be free again when `f` is over, or the process is aborted.
    ///
    /// # Panics
    /// Unless the call is exclusive; then nothing has happened.
    pub fn give_turn<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let monitor = self.monitor;
        let inside = &mut self.locked().inside;
        let presence = inside.heap.presence();
        assert!(
            presence == Presence::Exclusive && !inside.turn_is_free,
            "the turn of {} is given away although {presence}",
            monitor.node
        );
        inside.turn_is_free = true;
        self.unlock();
        let _regains = Regains(monitor);
        f()
    }

    fn locked(&mut self) -> &mut Guard<'m, S> {
        let monitor = self.monitor;
        self.guard.get_or_insert_with(|| monitor.lock())
    }
}
