//! Starting threads on all nodes in turn, and waiting for them.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use dhole::memory::threads::{self, ThreadError, ThreadId};
use dhole::{CallSite, NodeId, Worker};
use dhole_protocol::memory::sync::ThreadRefusal;

use crate::failure::{cannot, fatal, refused};
use crate::thread::Entry;
use crate::{calls, exit, running, scheduling, semaphore, stacks};

/// How many threads this node has started.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// The threads that `dh_create` has started, and `dh_wait_for_end` has not awaited.
static CREATED: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());

/// Runs a thread that some node has started here, and returns its value.
fn handler(entry: u64, argument: u64) -> u64 {
    let said = exit::serve(entry, argument).or_else(|| calls::serve(entry, argument));
    if let Some(said) = said {
        return said;
    }
    if entry == running::entry::POST {
        return semaphore::serve(argument);
    }
    let argument = std::ptr::with_exposed_provenance_mut::<c_void>(argument as usize);
    if entry == running::entry::RUN {
        // SAFETY: `begin` passes the block to this thread alone.
        let beginning = unsafe { scheduling::take(argument.cast()) };
        if let Some(scheduling) = beginning.scheduling {
            scheduling::set_own(scheduling);
        }
        return run_entry(beginning.entry, beginning.argument);
    }
    let entry = std::ptr::with_exposed_provenance::<()>(entry as usize);
    // SAFETY: a function of the program (`start`). Its code lies at the same address in all
    // processes, which run the same program without relocation (`dhole cc`).
    let entry = unsafe { std::mem::transmute::<*const (), Entry>(entry) };
    run_entry(entry, argument)
}

fn run_entry(entry: Entry, argument: *mut c_void) -> u64 {
    let value = crate::thread::run_thread(|| {
        // SAFETY: whoever started the thread passed what the function takes.
        stacks::on_shared(|| unsafe { entry(argument) })
    });
    exit::flush_output();
    value.expose_provenance() as u64
}

/// Runs what node 0 runs.
pub(crate) fn run(w: &mut Worker<'_>, main: impl FnOnce() -> c_int) -> Result<c_int, ThreadError> {
    threads::run(w, &handler, |_| main())
}

/// Runs what node 0 has this node do, until its program is over.
pub(crate) fn serve(w: &mut Worker<'_>) -> Result<(), ThreadError> {
    threads::serve(w, &handler)
}

/// Starts a thread on a node.
///
/// # Safety
/// `entry` takes `argument`.
pub(crate) unsafe fn start(
    node: usize,
    entry: Entry,
    argument: *mut c_void,
) -> Result<ThreadId, ThreadError> {
    let entry = entry as *const () as usize as u64;
    let argument = argument.expose_provenance() as u64;
    let started = threads::start(NodeId::at(node), entry, argument);
    if let Err(why) = &started
        && why.has_failed_run()
    {
        cannot(&"starting a thread", why);
    }
    started
}

/// Starts a thread with attributes on the next node.
pub(crate) fn begin(beginning: scheduling::Beginning) -> Result<ThreadId, ThreadError> {
    let is_detached = beginning.is_detached;
    let block = scheduling::share(beginning);
    let block = block.ok_or_else(|| ThreadError::Refused("no memory for attributes".into()))?;
    let argument = block.expose_provenance() as u64;
    let started = threads::start(NodeId::at(next_node()), running::entry::RUN, argument);
    if let Err(why) = &started
        && why.has_failed_run()
    {
        cannot(&"starting a thread", why);
    }
    if let (Ok(ThreadId(id)), true) = (&started, is_detached) {
        // No thread knows it yet that could wait for its end.
        calls::dh_pthread_detach(*id);
    }
    started
}

/// The node on which the next thread starts: all in turn, this one last.
pub(crate) fn next_node() -> usize {
    let before = STARTED.fetch_add(1, Ordering::Relaxed);
    (dh_me() as usize + 1 + before) % dh_nodes() as usize
}

/// The number of this node.
#[unsafe(no_mangle)]
pub extern "C" fn dh_me() -> c_int {
    threads::node().map_or(0, |node| node.index() as c_int)
}

/// The number of nodes.
#[unsafe(no_mangle)]
pub extern "C" fn dh_nodes() -> c_int {
    threads::nodes().map_or(1, |nodes| nodes as c_int)
}

/// Starts a thread on a node. Its number, or 0 with words in `dh_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_start(node: c_int, entry: Option<Entry>, argument: *mut c_void) -> u64 {
    let Some(entry) = entry else {
        refused(&"starting a thread: there is no function", libc::EINVAL);
        return 0;
    };
    if !(0..dh_nodes()).contains(&node) {
        let why = format!("starting a thread on node {node}: there are {}", dh_nodes());
        refused(&why, libc::EINVAL);
        return 0;
    }
    // SAFETY: the caller's.
    match unsafe { start(node as usize, entry, argument) } {
        Ok(ThreadId(id)) => id,
        Err(why) => {
            refused(&why, libc::EAGAIN);
            0
        }
    }
}

/// Waits until a thread is over, and takes its value where `value` is not null. 0, or -1 with
/// words in `dh_error`. The process ends where the run has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_join(thread: u64, value: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    match unsafe { join(thread, value, crate::site::UNKNOWN) } {
        Ok(()) => 0,
        Err(why @ ThreadError::Wait(_)) => cannot_join(&why),
        Err(why) => {
            refused(&why, libc::ESRCH);
            -1
        }
    }
}

/// `pthread_join` and `thrd_join`, called there: 0, or why the thread cannot be waited for. Few
/// programs look at what these return, so the process ends where the thread has no value.
///
/// # Safety
/// As [`dh_join`].
pub(crate) unsafe fn join_at(thread: u64, value: *mut *mut c_void, site: CallSite) -> c_int {
    if threads::current() == Ok(ThreadId(thread)) {
        return libc::EDEADLK;
    }
    // SAFETY: the caller's.
    match unsafe { join(thread, value, site) } {
        Ok(()) => 0,
        Err(ThreadError::Sync(ThreadRefusal::Detached(_))) => libc::EINVAL,
        Err(ThreadError::NoNode | ThreadError::Sync(ThreadRefusal::NoThread(_))) => libc::ESRCH,
        Err(why) => cannot_join(&why),
    }
}

fn cannot_join(why: &ThreadError) -> ! {
    cannot(&"joining a thread", why)
}

/// # Safety
/// As [`dh_join`].
unsafe fn join(thread: u64, value: *mut *mut c_void, site: CallSite) -> Result<(), ThreadError> {
    let returned = threads::join_at(ThreadId(thread), site)?;
    if !value.is_null() {
        let returned = std::ptr::with_exposed_provenance_mut(returned as usize);
        // SAFETY: the caller's: null, or where a pointer may be written.
        unsafe { value.write(returned) };
    }
    Ok(())
}

/// `CREATE`: runs a function `count` times, once on this thread, and returns when that is over.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dh_create(entry: Option<Entry>, count: c_long) {
    let Some(entry) = entry else {
        fatal(&"CREATE: there is no function");
    };
    for _ in 1..count {
        // SAFETY: the caller's: a function without arguments ignores one.
        match unsafe { start(next_node(), entry, std::ptr::null_mut()) } {
            Ok(id) => {
                let mut created = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
                created.push(id);
            }
            Err(why) => cannot(&format!("CREATE of {count}"), &why),
        }
    }
    // SAFETY: as above.
    stacks::on_shared(|| unsafe { entry(std::ptr::null_mut()) });
}

/// `WAIT_FOR_END`: waits until all threads are over that `CREATE` has started on this node.
#[unsafe(no_mangle)]
pub extern "C" fn dh_wait_for_end() {
    loop {
        let last = CREATED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(id) = last else { return };
        if let Err(why) = threads::join(id) {
            cannot(&"WAIT_FOR_END", &why);
        }
    }
}
