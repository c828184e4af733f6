//! Signals of processes between nodes. The system gives a signal of a process to a thread of that
//! process. The threads of a program are those of all nodes: so a signal that is left pending where
//! all of the program's threads block it goes on to a node with a thread that takes it.
//!
//! Each node of a run with several has a thread of dhole's for that, from the program's first call
//! about signals on. It sleeps until the system queues a signal, or a thread of the node has
//! changed what it takes. Nodes know of each other by a table in shared memory, which they change
//! and read under a lock: a node whose threads begin to take a signal finds there that one is
//! pending elsewhere, and a node where one is pending finds who takes it. It asks that node whether
//! the thread still does before it forwards what is pending.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dhole::memory::sync;
use dhole::memory::threads::{self, ThreadError};
use dhole::{MAX_NODES, NodeId};
use dhole_protocol::memory::sync::ThreadRefusal;
use dhole_space::runtime_thread::SignalMask;
use libc::siginfo_t;

use crate::failure::cannot;
use crate::process_state::exclusively;
use crate::running::{self, Running, entry};
use crate::signal_set::{bit, set_of, wake_exchange, wakes_by, word_of};
use crate::signals;

/// Signals that stay with their process: those of faults and of its own jobs, and two of the C
/// library's.
const STAYS: [c_int; 14] = [
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    32,
    33,
];

/// Signals by which a process is ended from without. Threads of dhole's take them, too. So those
/// that come from another node go to a thread that waits for them.
const ENDS: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

fn bits(signals: &[c_int]) -> u64 {
    signals.iter().fold(0, |all, signal| all | bit(*signal))
}

/// What a node says to the others.
struct Says {
    /// Signals that a thread of the program there takes.
    takes: AtomicU64,
    /// Signals that are pending there, and which none takes there.
    pending: AtomicU64,
}

/// What all nodes say. Pages of the program's globals.
#[repr(C, align(4096))]
struct Table([Says; MAX_NODES]);

// The linker's script gathers sections of this name among the program's globals.
#[unsafe(link_section = ".dhole.data.dhole_signal_exchange")]
static TABLE: Table = Table(
    [const {
        Says {
            takes: AtomicU64::new(0),
            pending: AtomicU64::new(0),
        }
    }; MAX_NODES],
);

/// This node's thread has begun, and not ended.
static RUNS: AtomicBool = AtomicBool::new(false);
/// It is to end, or not to begin.
static ENDS_NOW: AtomicBool = AtomicBool::new(false);
/// It is to look although nothing has changed here.
static LOOKS_AGAIN: AtomicBool = AtomicBool::new(false);

/// How many threads of this node exchange signals.
pub(crate) fn threads_here() -> usize {
    usize::from(RUNS.load(Ordering::SeqCst))
}

/// The program is over: this node's thread ends, or does not begin.
pub(crate) fn end() {
    ENDS_NOW.store(true, Ordering::SeqCst);
    wake_exchange();
}

/// Does what another node wants done with signals; `None` where the entry is another one.
pub(crate) fn serve(whole: u64, argument: u64) -> Option<u64> {
    match whole & u64::from(u32::MAX) {
        entry::EXCHANGE => {
            signals::exchange_has_begun();
            if !RUNS.swap(true, Ordering::SeqCst) {
                SignalMask::of_runtime().during(run);
                RUNS.store(false, Ordering::SeqCst);
            }
        }
        entry::LOOK => {
            LOOKS_AGAIN.store(true, Ordering::SeqCst);
            wake_exchange();
            // Until the thread has taken what is pending, it may have gone on to something else.
            return Some(taken() & !all_pending());
        }
        entry::SIGNAL => take(Forwarded {
            signal: (whole >> 32 & 0xff) as c_int,
            code: c_int::from((whole >> 40) as u16 as i16),
            value: argument,
        }),
        _ => return None,
    }
    Some(0)
}

/// A signal on its way to another node.
#[derive(Clone, Copy)]
struct Forwarded {
    signal: c_int,
    /// How it was raised (`si_code`).
    code: c_int,
    /// What was sent along (`si_value`).
    value: u64,
}

/// Where a `siginfo_t` has what was sent along.
const VALUE_AT: usize = 3;

impl Forwarded {
    fn of(info: &siginfo_t) -> Forwarded {
        Forwarded {
            signal: info.si_signo,
            code: info.si_code,
            // SAFETY: the structure has 16 words.
            value: unsafe { std::ptr::from_ref(info).cast::<u64>().add(VALUE_AT).read() },
        }
    }

    fn entry(self) -> u64 {
        entry::SIGNAL | (self.signal as u64) << 32 | u64::from(self.code as u16) << 40
    }

    fn info(self) -> siginfo_t {
        let mut info = MaybeUninit::<siginfo_t>::zeroed();
        // SAFETY: zeros are such a structure, which has 16 words.
        unsafe {
            let to = info.as_mut_ptr();
            (*to).si_signo = self.signal;
            (*to).si_code = self.code;
            to.cast::<u64>().add(VALUE_AT).write(self.value);
            info.assume_init()
        }
    }

    /// Sends it to a node, and waits until it is pending there: others of its kind keep their
    /// order.
    fn send(self, node: usize) {
        let sent = threads::start(NodeId::at(node), self.entry(), self.value);
        match sent.and_then(threads::join) {
            // The program is over there, and with it here.
            Ok(_) | Err(ThreadError::Sync(ThreadRefusal::NotBegun(_))) => {}
            // So is the run: the signal may have ended the node. The program's threads hear of it.
            Err(why) if why.has_failed_run() => end(),
            Err(why) => cannot(
                &format!("sending signal {} to node {node}", self.signal),
                &why,
            ),
        }
    }
}

/// Raises a signal for a thread of this process, or for any.
fn raise(forwarded: Forwarded, thread: Option<libc::pid_t>) {
    let (signal, info) = (forwarded.signal, forwarded.info());
    let info = &raw const info;
    // The system lets no process say of these how they were raised.
    let is_plain = forwarded.code >= 0 || forwarded.code == libc::SI_TKILL;
    // SAFETY: they take nothing, or a signal with what is said of it.
    unsafe {
        let pid = libc::getpid();
        match (thread, is_plain) {
            (Some(thread), true) => libc::syscall(libc::SYS_tgkill, pid, thread, signal),
            (Some(thread), false) => {
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, thread, signal, info)
            }
            (None, true) => libc::syscall(libc::SYS_kill, pid, signal),
            (None, false) => libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, info),
        };
    }
}

/// Takes a signal that another node has forwarded: from here on it is pending on this one.
fn take(forwarded: Forwarded) {
    if !ENDS.contains(&forwarded.signal) {
        return raise(forwarded, None);
    }
    let all = running::all();
    let mut waiting = all.values().filter(|it| it.awaits(forwarded.signal));
    if let Some(thread) = waiting.next() {
        // It does not end meanwhile, for it is among all.
        return raise(forwarded, Some(thread.number));
    }
    drop(all);
    // It waits no more. On node 0 no thread takes the signal that does not run the program.
    match threads::node().map_or(0, |node| node.index()) {
        0 => raise(forwarded, None),
        _ => forwarded.send(0),
    }
}

/// How long the thread sleeps at most, before it looks whether the run has failed.
const LOOKS_MS: c_int = 200;

/// By what the thread sleeps: until the system queues a signal, or it is woken.
struct Descriptors {
    epoll: c_int,
}

impl Descriptors {
    fn new() -> Result<Descriptors, std::io::Error> {
        let checked = |descriptor: c_int| match descriptor {
            -1 => Err(std::io::Error::last_os_error()),
            descriptor => Ok(descriptor),
        };
        let wanted = set_of(!bits(&STAYS));
        // SAFETY: the set is this function's own.
        unsafe {
            let epoll = checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            let signals = checked(libc::signalfd(-1, &raw const wanted, libc::SFD_CLOEXEC))?;
            let wakes = checked(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            for descriptor in [signals, wakes] {
                // A signal that stays pending wakes the thread once.
                let mut event = libc::epoll_event {
                    events: (libc::EPOLLIN | libc::EPOLLET) as u32,
                    u64: 0,
                };
                let add = libc::EPOLL_CTL_ADD;
                checked(libc::epoll_ctl(epoll, add, descriptor, &raw mut event))?;
            }
            wakes_by(wakes);
            Ok(Descriptors { epoll })
        }
    }

    fn sleep(&self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        // SAFETY: so many events have room there.
        unsafe { libc::epoll_wait(self.epoll, events.as_mut_ptr(), 2, LOOKS_MS) };
    }
}

/// Exchanges signals until the program is over.
fn run() {
    let descriptors = match Descriptors::new() {
        Ok(descriptors) => descriptors,
        Err(why) => {
            let words = "signals of this node's process reach none of the other nodes' threads";
            eprintln!("error: {words}: {why}");
            return;
        }
    };
    let mut said = None;
    while !ENDS_NOW.load(Ordering::SeqCst) && sync::pause().is_ok() {
        while exchange(&mut said) {}
        if !ENDS_NOW.load(Ordering::SeqCst) {
            descriptors.sleep();
        }
    }
}

/// Signals that a thread takes of those that other nodes may forward to it.
fn takes(thread: &Running) -> u64 {
    let open = !thread.blocked.load(Ordering::SeqCst) & !bits(&ENDS);
    open | thread.awaited.load(Ordering::SeqCst)
}

/// Signals that threads of this node take of those that other nodes may forward to them.
fn taken() -> u64 {
    let threads = running::all();
    threads.values().fold(0, |all, thread| all | takes(thread))
}

/// Signals that are pending at this process.
fn all_pending() -> u64 {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: zeros are such a set, which the call fills in.
    unsafe {
        libc::sigpending(set.as_mut_ptr());
        word_of(&set.assume_init())
    }
}

/// Signals that are pending at this process, and which none of its threads takes.
fn pending(taken: u64) -> u64 {
    // What ends a process is its threads' that have it open.
    let open = running::all().values().fold(0, |open, thread| {
        open | !thread.blocked.load(Ordering::SeqCst)
    });
    all_pending() & !taken & !open & !bits(&STAYS)
}

/// Says what this node takes and has, and forwards what others take. Whether it did.
fn exchange(said: &mut Option<(u64, u64)>) -> bool {
    let taken = taken();
    let says = (taken, pending(taken));
    if !LOOKS_AGAIN.swap(false, Ordering::SeqCst) && *said == Some(says) {
        return false;
    }
    let (Ok(me), Ok(nodes)) = (threads::node(), threads::nodes()) else {
        return false;
    };
    let (mut forwarded, mut told) = (Vec::new(), Vec::new());
    exclusively((&raw const TABLE).addr(), || {
        let own = &TABLE.0[me.index()];
        own.takes.store(says.0, Ordering::SeqCst);
        own.pending.store(says.1, Ordering::SeqCst);
        let mut left = says.1;
        for (node, other) in TABLE.0.iter().enumerate().take(nodes) {
            if node == me.index() {
                continue;
            }
            let takes = left & other.takes.load(Ordering::SeqCst);
            if takes != 0 {
                forwarded.push((node, takes));
                left &= !takes;
            }
            if other.pending.load(Ordering::SeqCst) & says.0 != 0 {
                told.push(node);
            }
        }
    });
    // What is forwarded may be pending again at once: then it is to be forwarded again.
    *said = forwarded.is_empty().then_some(says);
    for node in told {
        takes_now(node);
    }
    let mut has_forwarded = false;
    for (node, signals) in forwarded {
        has_forwarded |= forward(node, signals);
    }
    has_forwarded
}

/// Has a node look again, and say what its threads take now: nothing where the run is over.
fn takes_now(node: usize) -> u64 {
    let asked = threads::start(NodeId::at(node), entry::LOOK, 0);
    asked.and_then(threads::join).unwrap_or(0)
}

/// Forwards those of these signals that are pending at this process, one by one, as long as threads
/// of the node take them. Whether it forwarded any.
fn forward(node: usize, signals: u64) -> bool {
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut has_forwarded = false;
    loop {
        // A thread that took them may have ended since its node said so, and a thread of this node
        // may take them next. A signal that comes back comes behind those that were raised later.
        let taken = signals & takes_now(node);
        if taken == 0 {
            return has_forwarded;
        }
        let set = set_of(taken);
        let mut info = MaybeUninit::<siginfo_t>::zeroed();
        // SAFETY: zeros are such a structure, which the call fills in.
        let info = unsafe {
            if libc::sigtimedwait(&raw const set, info.as_mut_ptr(), &raw const at_once) < 0 {
                return has_forwarded;
            }
            info.assume_init()
        };
        Forwarded::of(&info).send(node);
        has_forwarded = true;
    }
}
