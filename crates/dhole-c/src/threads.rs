//! Starting threads on all nodes in turn, and waiting for them.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use dhole::memory::threads::{self, ThreadError, ThreadId};
use dhole::{CallSite, NodeId, Worker};
use dhole_protocol::memory::sync::ThreadRefusal;
use dhole_space::runtime_thread::SignalMask;

use crate::deferred::Inside;
use crate::failure::{cannot, fatal, refused};
use crate::thread::Entry;
use crate::{
    calls, exit, process_state, running, scheduling, semaphore, signal_exchange, signals, stacks,
};

/// How many threads this node has started.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// The threads that `dh_create` has started, and `dh_wait_for_end` has not awaited.
static CREATED: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());

/// The bits of an entry that are an address of code. The others are the signals that are blocked.
const CODE: u64 = u32::MAX as u64;

/// Runs a thread that some node has started here, and returns its value.
fn handler(entry: u64, argument: u64) -> u64 {
    let said = exit::serve(entry, argument)
        .or_else(|| calls::serve(entry, argument))
        .or_else(|| signal_exchange::serve(entry, argument));
    if let Some(said) = said {
        return said;
    }
    if entry == running::entry::POST {
        return semaphore::serve(argument);
    }
    let argument = std::ptr::with_exposed_provenance_mut::<c_void>(argument as usize);
    let (entry, mask) = (entry & CODE, (entry >> 32) as u32);
    process_state::take_over();
    if entry == running::entry::RUN {
        // SAFETY: `begin` passes the block to this thread alone.
        let beginning = unsafe { scheduling::take(argument.cast()) };
        if let Some(scheduling) = beginning.scheduling {
            scheduling::set_own(scheduling);
        }
        return run_entry(beginning.entry, beginning.argument, mask);
    }
    let entry = std::ptr::with_exposed_provenance::<()>(entry as usize);
    // SAFETY: a function of the program (`start`). Its code lies at the same address in all
    // processes, which run the same program without relocation (`dhole cc`).
    let entry = unsafe { std::mem::transmute::<*const (), Entry>(entry) };
    run_entry(entry, argument, mask)
}

/// Runs a thread of the program, which blocks these signals when it begins. What is dhole's before
/// and behind it takes none.
fn run_entry(entry: Entry, argument: *mut c_void, blocks: u32) -> u64 {
    let value = SignalMask::of_runtime().during(|| {
        signals::take_mask(blocks);
        crate::thread::run_thread(|| {
            // SAFETY: whoever started the thread passed what the function takes.
            stacks::on_shared(|| unsafe { entry(argument) })
        })
    });
    SignalMask::of_runtime().apply();
    exit::flush_output();
    value.expose_provenance() as u64
}

/// Runs what node 0 runs. Threads of dhole's that serve other nodes take no signals.
pub(crate) fn run(w: &mut Worker<'_>, main: impl FnOnce() -> c_int) -> Result<c_int, ThreadError> {
    SignalMask::of_runtime().during(|| threads::run(w, &handler, |_| main()))
}

/// Runs what node 0 has this node do, until its program is over. This thread runs none of the
/// program, so it takes no signals but those that end a process from without.
pub(crate) fn serve(w: &mut Worker<'_>) -> Result<(), ThreadError> {
    without_program().during(|| threads::serve(w, &handler))
}

/// What a thread blocks that may run the program, while it does not: all signals but those that end
/// a process from without.
pub(crate) fn without_program() -> SignalMask {
    SignalMask::of_runtime().without(&[libc::SIGHUP, libc::SIGINT, libc::SIGTERM])
}

/// Starts a thread on a node, and waits until it has begun.
///
/// # Safety
/// `entry` takes `argument`.
pub(crate) unsafe fn start(
    node: usize,
    entry: Entry,
    argument: *mut c_void,
) -> Result<ThreadId, ThreadError> {
    let entry = entry as *const () as usize as u64;
    start_there(NodeId::at(node), entry, argument.expose_provenance() as u64)
}

/// As [`start`], of an entry that is one of dhole's own too.
fn start_there(node: NodeId, entry: u64, argument: u64) -> Result<ThreadId, ThreadError> {
    let _inside = Inside::enter();
    process_state::publish();
    // All code of a static program lies below 4 GiB.
    let entry = entry | u64::from(signals::mask_to_pass_on()) << 32;
    let started = threads::start_and_await(node, entry, argument);
    if let Err(why) = &started
        && why.has_failed_run()
    {
        cannot(&"starting a thread", why);
    }
    started
}

/// Starts a thread on the next node, or on the first one behind it whose system gives it a thread.
fn start_next(entry: u64, argument: u64) -> Result<ThreadId, ThreadError> {
    let mut tried = 1;
    loop {
        match start_there(NodeId::at(next_node()), entry, argument) {
            Err(ThreadError::Sync(ThreadRefusal::NotBegun(_))) if tried < dh_nodes() => tried += 1,
            started => return started,
        }
    }
}

/// Starts a thread on the next node that can begin it.
///
/// # Safety
/// As [`start`].
pub(crate) unsafe fn start_somewhere(
    entry: Entry,
    argument: *mut c_void,
) -> Result<ThreadId, ThreadError> {
    let entry = entry as *const () as usize as u64;
    start_next(entry, argument.expose_provenance() as u64)
}

/// Starts a thread with attributes on the next node that can begin it.
pub(crate) fn begin(beginning: scheduling::Beginning) -> Result<ThreadId, ThreadError> {
    let is_detached = beginning.is_detached;
    let block = scheduling::share(beginning);
    let block = block.ok_or_else(|| ThreadError::Refused("no memory for attributes".into()))?;
    let started = start_next(running::entry::RUN, block.expose_provenance() as u64);
    match (&started, is_detached) {
        // No thread knows it yet that could wait for its end.
        (Ok(ThreadId(id)), true) => {
            calls::dh_pthread_detach(*id);
        }
        (Ok(_), false) => {}
        (Err(_), _) => {
            // SAFETY: no thread has begun that takes the block.
            let _given_back = unsafe { scheduling::take(block) };
        }
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
    let _inside = Inside::enter();
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
    let _inside = Inside::enter();
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
        match unsafe { start_somewhere(entry, std::ptr::null_mut()) } {
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
    let _inside = Inside::enter();
    loop {
        let last = CREATED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(id) = last else { return };
        if let Err(why) = threads::join(id) {
            cannot(&"WAIT_FOR_END", &why);
        }
    }
}
