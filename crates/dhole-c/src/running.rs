//! The threads of the program that run on this node: of what the system calls them, whether they are
//! to be cancelled, and what nodes have each other do with them.
//!
//! A call about a thread of another node goes to that node, as a thread that is started there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dhole::NodeId;
use dhole::memory::threads::{self, ThreadId};

/// A thread of the program on this node.
pub(crate) struct Running {
    pub id: u64,
    /// What the system calls it.
    pub system: libc::pthread_t,
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
        let id = threads::current().map_or(0, |id| id.0);
        let running = Arc::new(Running {
            id,
            // SAFETY: it takes nothing.
            system: unsafe { libc::pthread_self() },
            is_cancelled: AtomicU32::new(0),
            is_open: AtomicBool::new(true),
            is_asynchronous: AtomicBool::new(false),
            waits_on: Mutex::new(None),
        });
        OWN.set(Some(Arc::clone(&running)));
        all().insert(id, running);
        CHANGED.notify_all();
        Runs(id)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        all().remove(&self.0);
        CHANGED.notify_all();
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
}

/// The bits of an argument that are the number.
pub(crate) const NUMBER: u64 = 0xffff << 48;

/// Has the node of a thread do something with it, with a number; what it says. `None` where there
/// is no such node.
pub(crate) fn on_its_node(entry: u64, thread: u64, number: u16) -> Option<u64> {
    let node = ThreadId(thread).node();
    if threads::node() == Ok(node) {
        return Some(serve_here(entry, thread, number));
    }
    if node.index() >= threads::nodes().unwrap_or(0) {
        return None;
    }
    let argument = thread & !NUMBER | u64::from(number) << 48;
    let started = threads::start(NodeId::at(node.index()), entry, argument).ok()?;
    threads::join(started).ok()
}

/// Does what another node wants done with a thread of this one.
pub(crate) fn serve(entry: u64, argument: u64) -> Option<u64> {
    if !(entry::FIRST..=entry::LAST).contains(&entry) {
        return None;
    }
    let node = threads::node().map_or(0, |node| node.index() as u64);
    let thread = argument & !NUMBER | node << 48;
    Some(serve_here(entry, thread, (argument >> 48) as u16))
}

fn serve_here(entry: u64, thread: u64, number: u16) -> u64 {
    use crate::{cancel, scheduling};
    let code = match entry {
        entry::CANCEL => cancel::cancel(thread),
        entry::WAKE => cancel::wake(thread),
        entry::KILL => kill(thread, c_int::from(number)),
        entry::DETACH => detach(thread),
        entry::SCHEDULING => return scheduling::of(thread),
        entry::SCHEDULE => scheduling::set(thread, (number >> 8) as u8, number as u8),
        entry::PRIORITY => scheduling::set_priority(thread, number as u8),
        _ => libc::EINVAL,
    };
    code as u64
}

/// As [`on_its_node`], of what says an error number.
pub(crate) fn asks_its_node(entry: u64, thread: u64, number: u16) -> c_int {
    on_its_node(entry, thread, number).map_or(libc::ESRCH, |code| code as c_int)
}

fn kill(thread: u64, signal: c_int) -> c_int {
    match find(thread) {
        // SAFETY: the thread has not ended (`Found::Runs`).
        Found::Runs(_all, running) => unsafe { libc::pthread_kill(running.system, signal) },
        Found::Ended => 0,
        Found::None => libc::ESRCH,
    }
}

fn detach(thread: u64) -> c_int {
    use dhole::memory::threads::ThreadError;
    use dhole_protocol::memory::sync::ThreadRefusal;
    // It is known from here on, if there is one.
    drop(find(thread));
    match threads::detach(ThreadId(thread)) {
        Ok(()) => 0,
        Err(ThreadError::Sync(ThreadRefusal::Detached(_))) => libc::EINVAL,
        Err(_) => libc::ESRCH,
    }
}

/// `pthread_kill`. The signal is handled as the thread's node does.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_kill(thread: u64, signal: c_int) -> c_int {
    match u16::try_from(signal) {
        Ok(number) => asks_its_node(entry::KILL, thread, number),
        Err(_) => libc::EINVAL,
    }
}

/// `pthread_detach`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_detach(thread: u64) -> c_int {
    asks_its_node(entry::DETACH, thread, 0)
}
