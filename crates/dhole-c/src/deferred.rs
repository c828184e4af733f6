//! Handlers of signals that interrupt this library. A handler of the program touches shared memory
//! and calls what it may call anywhere, as `sem_post`: both take locks of dhole's. So where a
//! signal interrupts a function of this library, its handler is put off until the function returns,
//! or waits. Elsewhere it runs at once.
//!
//! The system calls [`on_signal`] in place of the program's handler. While one is put off, the
//! thread blocks all signals.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use dhole::memory::sync::{Interrupts, interrupt_by, run_interrupts};
use libc::{sigaction, siginfo_t, ucontext_t};

use crate::signal_set::{bit, set_of, word_of};

/// What the program has done with a signal.
struct Action {
    /// Its handler, or 0.
    handler: AtomicUsize,
    flags: AtomicI32,
    /// Signals that it blocks meanwhile.
    mask: AtomicU64,
}

static ACTIONS: [Action; 65] = [const {
    Action {
        handler: AtomicUsize::new(0),
        flags: AtomicI32::new(0),
        mask: AtomicU64::new(0),
    }
}; 65];

/// The program has a handler.
static ARE_ON: AtomicBool = AtomicBool::new(false);

/// Signals that a thread raises by what it does there: their handlers run at once, for the thread
/// cannot go on.
const OWN: [c_int; 7] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// What of this thread a handler looks at.
struct Here {
    /// How many functions of this library it is in.
    inside: Cell<u32>,
    /// The signal that is put off, or 0.
    due: Cell<c_int>,
    info: UnsafeCell<MaybeUninit<siginfo_t>>,
    /// What the thread blocked before.
    blocked: Cell<u64>,
    /// How many handlers have run that let calls of the system go on, and that do not.
    ran: Cell<[u64; 2]>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            inside: Cell::new(0),
            due: Cell::new(0),
            info: UnsafeCell::new(MaybeUninit::uninit()),
            blocked: Cell::new(0),
            ran: Cell::new([0; 2]),
        }
    };
}

/// This thread is in a function of this library, until this is dropped.
pub(crate) struct Inside(());

impl Inside {
    #[inline]
    pub fn enter() -> Inside {
        HERE.with(|here| here.inside.set(here.inside.get() + 1));
        // A handler on this thread sees it before what follows.
        compiler_fence(Ordering::SeqCst);
        Inside(())
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        HERE.with(|here| {
            let left = here.inside.get() - 1;
            here.inside.set(left);
            compiler_fence(Ordering::SeqCst);
            if left == 0 && here.due.get() != 0 {
                run_due();
            }
        });
    }
}

/// Handlers are put off from here on. The thread that calls runs `main`.
pub(crate) fn begin() {
    // A handler of a signal finds it made.
    let _main = std::thread::current();
    interrupt_by(Interrupts {
        are_on: || ARE_ON.load(Ordering::Relaxed),
        is_due: || HERE.with(|here| here.due.get() != 0),
        run: run_due,
    });
}

/// Where a function of this library may be interrupted: it has no lock.
pub(crate) fn interruptible() {
    run_interrupts();
}

/// How many handlers have run on this thread: those that let calls of the system go on, and those
/// that do not (`SA_RESTART`).
pub(crate) fn handled() -> [u64; 2] {
    HERE.with(|here| here.ran.get())
}

/// Sets what is done with a signal, as the program says it: what the system is to be told.
pub(crate) fn replace(signal: c_int, action: &sigaction) -> sigaction {
    let mut own = *action;
    let handlers = [libc::SIG_DFL, libc::SIG_IGN];
    let Some(kept) = ACTIONS.get(signal as usize) else {
        return own;
    };
    if OWN.contains(&signal) || handlers.contains(&action.sa_sigaction) {
        return own;
    }
    kept.mask.store(word_of(&own.sa_mask), Ordering::SeqCst);
    kept.flags.store(own.sa_flags, Ordering::SeqCst);
    kept.handler.store(own.sa_sigaction, Ordering::SeqCst);
    ARE_ON.store(true, Ordering::SeqCst);
    own.sa_sigaction = on_signal as *const () as usize;
    own.sa_flags |= libc::SA_SIGINFO;
    // Of two signals at once the second interrupts no handler of the first that has not looked.
    own.sa_mask = set_of(!faults());
    own
}

/// What is done with a signal, as the program knows it.
pub(crate) fn as_the_program_said(signal: c_int, mut action: sigaction) -> sigaction {
    if action.sa_sigaction == on_signal as *const () as usize
        && let Some(kept) = ACTIONS.get(signal as usize)
    {
        action.sa_sigaction = kept.handler.load(Ordering::SeqCst);
        action.sa_flags = kept.flags.load(Ordering::SeqCst);
        action.sa_mask = set_of(kept.mask.load(Ordering::SeqCst));
    }
    action
}

extern "C-unwind" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    HERE.with(|here| {
        // SAFETY: the kernel hands it over: one word of signals, and not as many as a set has.
        let mask = unsafe { (&raw mut (*context.cast::<ucontext_t>()).uc_sigmask).cast::<u64>() };
        if here.inside.get() == 0 {
            // SAFETY: as above. When the handler is over the system sets the mask as it was.
            block(signal, unsafe { mask.read() });
            return handle(here, signal, info, context);
        }
        // SAFETY: the kernel hands both over. The place is this thread's own: nothing is due, for
        // all signals are blocked while something is.
        unsafe {
            here.info.get().cast::<siginfo_t>().write(info.read());
            here.blocked.set(mask.replace(!faults()));
        }
        here.due.set(signal);
        // Where it sleeps it looks.
        std::thread::current().unpark();
    });
}

fn faults() -> u64 {
    OWN.iter().fold(0, |all, signal| all | bit(*signal))
}

/// This thread blocks what it blocked, and what it is to block while it handles a signal.
fn block(signal: c_int, before: u64) {
    let action = &ACTIONS[signal as usize];
    let own = match action.flags.load(Ordering::SeqCst) & libc::SA_NODEFER {
        0 => bit(signal),
        _ => 0,
    };
    let set = set_of(before | own | action.mask.load(Ordering::SeqCst));
    // SAFETY: the set is this function's own.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// Calls the program's handler.
fn handle(here: &Here, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    type Plain = extern "C-unwind" fn(c_int);
    type WithInfo = extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);
    let action = &ACTIONS[signal as usize];
    let flags = action.flags.load(Ordering::SeqCst);
    let mut ran = here.ran.get();
    ran[usize::from(flags & libc::SA_RESTART == 0)] += 1;
    here.ran.set(ran);
    let handler = action.handler.load(Ordering::SeqCst);
    let handler = std::ptr::with_exposed_provenance::<()>(handler);
    // SAFETY: the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: a function of the program, as the flags say (`replace`).
    unsafe {
        match flags & libc::SA_SIGINFO {
            0 => std::mem::transmute::<*const (), Plain>(handler)(signal),
            _ => std::mem::transmute::<*const (), WithInfo>(handler)(signal, info, context),
        }
        *libc::__errno_location() = errno;
    }
}

/// Runs what is put off on this thread, which has no lock of dhole's.
#[cold]
fn run_due() {
    HERE.with(|here| {
        let inside = here.inside.replace(0);
        while here.due.get() != 0 {
            // SAFETY: it was written when the signal came. No other comes before the mask is set.
            let mut info = unsafe { here.info.get().cast::<siginfo_t>().read() };
            let (signal, blocked) = (here.due.replace(0), here.blocked.get());
            let mut context = MaybeUninit::<ucontext_t>::zeroed();
            // SAFETY: zeros are such a structure; the sets are this function's own.
            unsafe {
                (*context.as_mut_ptr()).uc_sigmask = set_of(blocked);
                block(signal, blocked);
                handle(here, signal, &raw mut info, context.as_mut_ptr().cast());
                // Another signal may come here, and run at once.
                let after = (*context.as_ptr()).uc_sigmask;
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const after, std::ptr::null_mut());
            }
        }
        here.inside.set(inside);
    });
}
