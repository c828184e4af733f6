//! How a program ends: by `exit`, or by returning from `main`. What it has registered with `atexit`
//! runs while its memory is still there.
//!
//! Where only the thread is left that runs `main`, the run ends by rendezvous of its nodes.
//! Otherwise all processes end at once, as in C: each is told the exit code, and then to end.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dhole::NodeId;
use dhole::memory::{sync, threads};

use crate::deferred::{self, Inside};
use crate::ending::{self, end_process};
use crate::failure;
use crate::process_state::CalledByFork;
use crate::running::Runs;
use crate::signal_exchange;

/// What unwinds the program's `main` after a call of `exit`.
struct Exit(c_int);

thread_local! {
    /// Whether this thread runs the program's `main`.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// What is called when the program ends, the last first.
static AT_EXIT: Mutex<Vec<extern "C-unwind" fn()>> = Mutex::new(Vec::new());

/// This is the process of a child of `fork`.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// What nodes have each other do at the end: entries of threads that are no addresses of code.
pub(crate) mod entry {
    /// Says how many other threads of the program run. The argument says whether `main` is over.
    pub const COUNT: u64 = 1;
    /// Keeps the exit code.
    pub const PREPARE: u64 = 2;
    /// Runs what is registered with `atexit`.
    pub const AT_EXIT: u64 = 3;
    /// Ends the process.
    pub const END: u64 = 4;
}

/// The argument of a count: `main` is over.
const IS_OVER: u64 = 1;

/// Does what another node wants done at the end; `None` where the entry is the program's.
pub(crate) fn serve(entry: u64, argument: u64) -> Option<u64> {
    match entry {
        entry::COUNT => {
            if argument == IS_OVER {
                signal_exchange::end();
            }
            // This one is no thread of the program's.
            let others = 1 + signal_exchange::threads_here();
            Some(threads::running().map_or(0, |running| running.saturating_sub(others) as u64))
        }
        entry::PREPARE => {
            ending::prepare(argument as c_int);
            Some(0)
        }
        entry::AT_EXIT => Some(run_at_exit(argument as c_int) as u64),
        entry::END => end_process(argument as c_int),
        _ => None,
    }
}

/// Has each node do something; the sum of what they say.
fn on_all_nodes(entry: u64, argument: u64) -> u64 {
    let _inside = Inside::enter();
    let nodes = threads::nodes().unwrap_or(0);
    let started: Vec<_> = (0..nodes)
        .map(|node| threads::start(NodeId::at(node), entry, argument))
        .collect();
    // A node that has no threads any more has nothing to do.
    let said = started
        .into_iter()
        .map(|started| threads::join(started?).map_err(|_| threads::ThreadError::NoNode));
    said.map(|said| said.unwrap_or(0)).sum()
}

/// How long a program that ends looks whether other threads run, which may be about to end. A look
/// takes a message to each node and back, so beside threads that compute there is one, or two.
const LOOKS_FOR: Duration = Duration::from_millis(40);
const LOOKS_AGAIN: Duration = Duration::from_millis(2);
/// How long at most a process that ends takes messages, until another one has heard that it is to
/// end.
const LEAVES: Duration = Duration::from_secs(1);
/// How often at the least a `main` that has called `pthread_exit` looks.
const LOOKS_SELDOM: Duration = Duration::from_millis(500);

/// Whether threads run that nobody waits for.
fn has_threads() -> bool {
    let began = Instant::now();
    while on_all_nodes(entry::COUNT, IS_OVER) > 0 {
        if began.elapsed() >= LOOKS_FOR {
            return true;
        }
        std::thread::sleep(LOOKS_AGAIN);
    }
    false
}

/// The command hears which node's program has named the exit code, before others end with it.
fn tell_launcher(code: c_int) {
    if code != 0 && ending::code().is_none() {
        let _no_node = threads::exits(code as u8);
    }
}

/// Ends all processes with an exit code, whatever their threads do.
fn end_run(code: c_int) -> ! {
    let argument = u64::from(code as u32);
    on_all_nodes(entry::PREPARE, argument);
    let me = threads::node();
    for node in 0..threads::nodes().unwrap_or(0) {
        let node = NodeId::at(node);
        if me.as_ref() != Ok(&node) {
            let _ended = threads::start(node, entry::END, argument);
        }
    }
    // What was sent may not have left this process yet. The run ends when another one has ended.
    let began = Instant::now();
    while has_others() && sync::pause().is_ok() && began.elapsed() < LEAVES {
        std::thread::sleep(LOOKS_AGAIN);
    }
    end_process(code)
}

fn has_others() -> bool {
    threads::nodes().is_ok_and(|nodes| nodes > 1)
}

fn run_at_exit(mut code: c_int) -> c_int {
    loop {
        let last = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(last) = last else { return code };
        code = caught(|| {
            last();
            code
        });
    }
}

/// Runs the program's `main`, and returns its exit code: that of `exit`, or what it returned.
pub(crate) fn run_main(main: impl FnOnce() -> c_int) -> c_int {
    IS_MAIN.set(true);
    let _runs = Runs::new();
    let code = caught(main) & 0xff;
    if is_child() {
        // The run is its parent's.
        end_process(code);
    }
    let code = run_at_exit(code);
    tell_launcher(code);
    IS_MAIN.set(false);
    flush_output();
    if has_threads() {
        end_run(code);
    }
    code
}

fn caught(run: impl FnOnce() -> c_int) -> c_int {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(code) => code,
        Err(other) => match other.downcast::<Exit>() {
            Ok(exit) => exit.0,
            Err(other) => resume_unwind(other),
        },
    }
}

/// Writes what has been printed on standard output. Other files are left: another thread may be
/// reading from one, and has its lock until something comes.
pub(crate) fn flush_output() {
    // SAFETY: the C library's own, which it makes before the program starts.
    unsafe { libc::fflush(stdout) };
}

unsafe extern "C" {
    static mut stdout: *mut libc::FILE;
}

/// Whether this is a child of `fork`.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::SeqCst)
}

/// `exit`. It ends all processes, from whichever thread.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dh_exit(code: c_int) -> ! {
    let code = code & 0xff;
    let ends_already = is_child() || ending::code().is_some() || failure::is_telling();
    if ends_already || threads::node().is_err() {
        tell_launcher(code);
        end_process(code);
    }
    if IS_MAIN.get() {
        resume_unwind(Box::new(Exit(code)));
    }
    let _inside = Inside::enter();
    let at_exit = threads::start(NodeId(0), entry::AT_EXIT, u64::from(code as u32));
    let code = at_exit
        .and_then(threads::join)
        .map_or(code, |code| code as c_int);
    tell_launcher(code);
    end_run(code)
}

/// `pthread_exit` of the thread that runs `main`: the program ends when all its threads have.
pub(crate) fn exit_main() -> ! {
    let mut looks_again = LOOKS_AGAIN;
    while !is_child() && on_all_nodes(entry::COUNT, 0) > 0 {
        deferred::interruptible();
        std::thread::sleep(looks_again);
        // A node starts a limited number of threads in a run, and each look takes one.
        looks_again = LOOKS_SELDOM.min(looks_again * 2);
    }
    dh_exit(0)
}

/// `atexit`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_atexit(last: Option<extern "C-unwind" fn()>) -> c_int {
    let _inside = Inside::enter();
    let mut all = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(last);
    0
}

/// `fork`. The child is none of the run: it has none of the shared memory, locks do nothing there,
/// and what it allocates is its own.
#[unsafe(no_mangle)]
pub extern "C" fn dh_fork() -> libc::pid_t {
    let called = CalledByFork::now();
    called.prepare();
    let child = crate::stacks::fork();
    if child == 0 {
        IS_CHILD.store(true, Ordering::SeqCst);
        crate::heap::over();
        threads::leave_node();
        called.in_child();
    } else {
        called.in_parent();
    }
    child
}
