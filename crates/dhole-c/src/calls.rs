//! Calls about threads of any node. A call goes to the node of its thread, as a thread that is
//! started there.

use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;

use dhole::NodeId;
use dhole::memory::sync;
use dhole::memory::threads::{self, ThreadError, ThreadId};
use dhole_protocol::memory::sync::ThreadRefusal;

use crate::deferred::Inside;
use crate::running::{self, Found, NUMBER, entry, find};
use crate::{cancel, scheduling};

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
    if sync::is_waiting() {
        // A handler that runs while this thread waits may not wait.
        return Some(0);
    }
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
    let _inside = Inside::enter();
    match u16::try_from(signal) {
        Ok(number) => asks_its_node(entry::KILL, thread, number),
        Err(_) => libc::EINVAL,
    }
}

/// `pthread_detach`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_detach(thread: u64) -> c_int {
    let _inside = Inside::enter();
    asks_its_node(entry::DETACH, thread, 0)
}

/// `pthread_cancel`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_pthread_cancel(thread: u64) -> c_int {
    let _inside = Inside::enter();
    let code = asks_its_node(entry::CANCEL, thread, 0);
    if running::own().is_some_and(|own| own.id == thread && own.is_asynchronous.load(SeqCst)) {
        cancel::point();
    }
    code
}

/// `pthread_getschedparam`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_getschedparam(
    thread: u64,
    policy: *mut c_int,
    param: *mut libc::sched_param,
) -> c_int {
    let _inside = Inside::enter();
    let Some(said) = on_its_node(entry::SCHEDULING, thread, 0) else {
        return libc::ESRCH;
    };
    let number = |place: u32| c_int::from((said >> (16 * place)) as u16);
    if number(0) == 0 {
        // SAFETY: the caller's, here and below as of the function in the C library.
        unsafe {
            policy.write(number(1));
            (*param).sched_priority = number(2);
        }
    }
    number(0)
}

/// `pthread_setschedparam`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_setschedparam(
    thread: u64,
    policy: c_int,
    param: *const libc::sched_param,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    let priority = unsafe { (*param).sched_priority };
    match (u8::try_from(policy), u8::try_from(priority)) {
        (Ok(policy), Ok(priority)) => {
            let number = u16::from(policy) << 8 | u16::from(priority);
            asks_its_node(entry::SCHEDULE, thread, number)
        }
        _ => libc::EINVAL,
    }
}

/// `pthread_setschedprio`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_setschedprio(thread: u64, priority: c_int) -> c_int {
    let _inside = Inside::enter();
    match u8::try_from(priority) {
        Ok(priority) => asks_its_node(entry::PRIORITY, thread, priority.into()),
        Err(_) => libc::EINVAL,
    }
}
