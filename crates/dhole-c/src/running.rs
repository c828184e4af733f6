//! The threads of the program that run on this node: what the system calls them, and whether they
//! are to be cancelled.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dhole::memory::threads::{self, ThreadId};

use crate::deferred::Inside;
use crate::signal_set::{self, wake_exchange};

/// A thread of the program on this node.
pub(crate) struct Running {
    pub id: u64,
    /// What the C library calls it.
    pub system: libc::pthread_t,
    /// What the system calls it.
    pub number: libc::pid_t,
    /// Signals that it blocks, a bit each; and those that it takes for as long as a call lasts.
    pub blocked: AtomicU64,
    pub awaited: AtomicU64,
    /// 1 once it is to be cancelled: a word on which it sleeps.
    pub is_cancelled: AtomicU32,
    /// It may be cancelled now.
    pub is_open: AtomicBool,
    /// It may be cancelled anywhere, and not only where it waits or asks.
    pub is_asynchronous: AtomicBool,
    /// The condition on which it waits, and the lock that it has then.
    pub waits_on: Mutex<Option<(u64, u64)>>,
}

type All = BTreeMap<u64, Arc<Running>>;

static ALL: Mutex<All> = Mutex::new(BTreeMap::new());
/// A thread has begun or ended.
static CHANGED: Condvar = Condvar::new();

/// How long a thread waits at most for another one that begins, before it asks whether that does.
const ASKS_AGAIN: Duration = Duration::from_millis(10);

thread_local! {
    static OWN: RefCell<Option<Arc<Running>>> = const { RefCell::new(None) };
}

pub(crate) fn all() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread is one of the program's, until this is dropped.
pub(crate) struct Runs(u64);

impl Runs {
    pub fn new() -> Runs {
        let _inside = Inside::enter();
        let id = threads::current().map_or(0, |id| id.0);
        let running = Arc::new(Running {
            id,
            // SAFETY: it takes nothing.
            system: unsafe { libc::pthread_self() },
            // SAFETY: as above.
            number: unsafe { libc::gettid() },
            blocked: AtomicU64::new(signal_set::blocked_now()),
            awaited: AtomicU64::new(0),
            is_cancelled: AtomicU32::new(0),
            is_open: AtomicBool::new(true),
            is_asynchronous: AtomicBool::new(false),
            waits_on: Mutex::new(None),
        });
        OWN.set(Some(Arc::clone(&running)));
        all().insert(id, running);
        CHANGED.notify_all();
        wake_exchange();
        Runs(id)
    }
}

impl Running {
    /// Whether it waits for a signal now.
    pub fn awaits(&self, signal: c_int) -> bool {
        self.awaited.load(SeqCst) & signal_set::bit(signal) != 0
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        all().remove(&self.0);
        CHANGED.notify_all();
        wake_exchange();
        OWN.set(None);
    }
}

/// The thread that calls, if it is one of the program's.
pub(crate) fn own() -> Option<Arc<Running>> {
    OWN.with(|own| own.try_borrow().ok()?.clone())
}

/// What becomes of a thread that is looked for.
pub(crate) enum Found {
    /// It runs, and does not end as long as the others are locked.
    Runs(MutexGuard<'static, All>, Arc<Running>),
    /// It has ended, and its value was not taken.
    Ended,
    None,
}

/// Looks for a thread of this node, and waits until it has begun.
pub(crate) fn find(id: u64) -> Found {
    let mut all = all();
    loop {
        if let Some(running) = all.get(&id).cloned() {
            return Found::Runs(all, running);
        }
        match threads::is_running(ThreadId(id)) {
            Ok(Some(true)) => {}
            Ok(Some(false)) => return Found::Ended,
            Ok(None) | Err(_) => return Found::None,
        }
        // One that the system refuses ends without having begun.
        let waited = CHANGED.wait_timeout(all, ASKS_AGAIN);
        all = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// What nodes have each other do with a thread: entries that are no addresses of code, from the
/// first one on. The argument has the thread without its node, and a number of 16 bits.
pub(crate) mod entry {
    pub const FIRST: u64 = 16;
    pub const CANCEL: u64 = 16;
    pub const WAKE: u64 = 17;
    pub const KILL: u64 = 18;
    pub const DETACH: u64 = 19;
    pub const SCHEDULING: u64 = 20;
    pub const SCHEDULE: u64 = 21;
    pub const PRIORITY: u64 = 22;
    pub const LAST: u64 = 22;
    /// Releases the semaphore that is the argument.
    pub const POST: u64 = 23;
    /// Runs what the block says that is the argument.
    pub const RUN: u64 = 24;
    /// Exchanges signals with other nodes until the program is over.
    pub const EXCHANGE: u64 = 25;
    /// Looks whether another node takes a signal that is pending, and says what this node takes.
    pub const LOOK: u64 = 26;
    /// Takes a signal. Which one stands above the entry.
    pub const SIGNAL: u64 = 27;
}

/// The bits of an argument that are the number.
pub(crate) const NUMBER: u64 = 0xffff << 48;

/// This thread ends, and is not cancelled any more.
pub(crate) fn close() {
    if let Some(own) = own() {
        own.is_open.store(false, SeqCst);
    }
}
