//! Calls about signals: those by which faults of shared memory come stay open and dhole's, and
//! what a call of the system reads or writes goes through a private copy.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dhole::NodeId;
use dhole::memory::threads;
use libc::{sigaction, sigset_t};

use crate::deferred::{self, Inside};
use crate::failure::refused;
use crate::running::{self, entry};
use crate::signal_set::{bit, blocked_now, set_of, wake_exchange, word_of};
use crate::{heap, stacks, stray};

/// Whether faults come by SIGSEGV, too: where the system refuses `userfaultfd`.
static TAKES_SEGV: AtomicBool = AtomicBool::new(false);

/// Signals of which the program has set here what is done with them, a bit each.
static SET: AtomicU64 = AtomicU64::new(0);

/// Whether there are such signals.
pub(crate) fn has_set() -> bool {
    SET.load(Ordering::SeqCst) != 0
}

/// Those since the last call.
pub(crate) fn take_set() -> impl Iterator<Item = c_int> {
    let set = SET.swap(0, Ordering::SeqCst);
    (1..=64).filter(move |signal| set & (1 << (signal - 1)) != 0)
}

/// The nodes have been asked to exchange signals, or there is no need.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// The nodes exchange signals already.
pub(crate) fn exchange_has_begun() {
    IS_ASKED.store(true, Ordering::SeqCst);
}

/// The program cares for signals, or a thread of this node takes others from now on: nodes exchange
/// them.
fn changed() {
    // Before the run, in a child of `fork`, and on threads that are none of dhole's there is no
    // other node.
    let _inside = Inside::enter();
    let Ok(nodes) = threads::nodes() else { return };
    if !IS_ASKED.swap(true, Ordering::SeqCst) && nodes > 1 {
        for node in 0..nodes {
            // A node that cannot be asked has ended, and with it the run.
            let _ended = threads::start(NodeId::at(node), entry::EXCHANGE, 0);
        }
    }
    wake_exchange();
}

/// This thread takes these signals for as long as a call lasts, until this is dropped.
struct Awaits;

impl Awaits {
    fn new(signals: u64) -> Awaits {
        Awaits::set(signals);
        Awaits
    }

    fn set(signals: u64) {
        let _inside = Inside::enter();
        if let Some(own) = running::own() {
            // Whoever sends a signal to a thread that waits for it locks them all.
            let all = running::all();
            own.awaited.store(signals, Ordering::SeqCst);
            drop(all);
            changed();
        }
    }
}

impl Drop for Awaits {
    fn drop(&mut self) {
        Awaits::set(0);
    }
}

fn note_set(signal: c_int) {
    SET.fetch_or(bit(signal), Ordering::SeqCst);
}

/// The run has begun, and handles its signals.
pub(crate) fn begin() {
    let mut current = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: zeros are such a structure, which the call fills in.
    let current = unsafe {
        libc::sigaction(libc::SIGSEGV, std::ptr::null(), current.as_mut_ptr());
        current.assume_init()
    };
    let current = stray::without_ours(current);
    TAKES_SEGV.store(current.sa_sigaction != libc::SIG_DFL, Ordering::SeqCst);
}

/// A copy of a set without the signals of faults: a thread that blocks one of them dies of its next
/// fault.
///
/// # Safety
/// The pointer is a set.
unsafe fn open(set: *const sigset_t) -> sigset_t {
    // SAFETY: the caller's; the copy is this function's own.
    unsafe {
        let mut own = set.read();
        for signal in [libc::SIGBUS, libc::SIGSEGV, libc::SIGTRAP] {
            libc::sigdelset(&raw mut own, signal);
        }
        own
    }
}

type Mask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;

/// # Safety
/// As of `pthread_sigmask`.
unsafe fn mask(real: Mask, how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    let mut before = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: the caller's: sets, or null; the copies are this function's own.
    unsafe {
        let own = (!set.is_null()).then(|| open(set));
        let own = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let done = real(how, own, before.as_mut_ptr());
        if done == 0 && !old.is_null() {
            old.write(before.assume_init());
        }
        if let (0, false, Some(running)) = (done, set.is_null(), running::own()) {
            running.blocked.store(blocked_now(), Ordering::SeqCst);
            changed();
        }
        done
    }
}

/// Signals below the real-time ones, a bit each.
const USUAL: u64 = (1 << 31) - 1;
/// In the word of a mask that goes to another node: all real-time signals are blocked.
const REAL_TIME: u64 = 1 << 31;

/// What this thread blocks, in 32 bits. Of real-time signals it says all or none.
pub(crate) fn mask_to_pass_on() -> u32 {
    let mask = blocked_now();
    // The C library keeps the first two to itself.
    let all = !0_u64 << (libc::SIGRTMIN() - 1);
    let real_time = if mask & all == all { REAL_TIME } else { 0 };
    (mask & USUAL | real_time) as u32
}

/// This thread blocks what the one blocked that has started it.
pub(crate) fn take_mask(passed_on: u32) {
    let word = u64::from(passed_on);
    let real_time = match word & REAL_TIME {
        0 => 0,
        _ => !0_u64 << (libc::SIGRTMIN() - 1),
    };
    let mask = set_of(word & USUAL | real_time);
    // SAFETY: the set is this function's own.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) };
}

/// `pthread_sigmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: the caller's, here and below as of the function in the C library.
    unsafe { mask(libc::pthread_sigmask, how, set, old) }
}

/// `sigprocmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigprocmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe { mask(libc::sigprocmask, how, set, old) }
}

/// `sigsuspend`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigsuspend(set: *const sigset_t) -> c_int {
    // SAFETY: as above.
    unsafe {
        let own = open(set);
        let _awaits = Awaits::new(!word_of(&own));
        libc::sigsuspend(&raw const own)
    }
}

/// Waits for one of these signals, and takes it: which one, or -1 with `errno`.
///
/// # Safety
/// As of `sigtimedwait`.
unsafe fn wait_for(
    set: *const sigset_t,
    info: *mut libc::siginfo_t,
    time: *const libc::timespec,
) -> c_int {
    let mut came = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the caller's; the copies are this function's own, and the system accesses no others.
    unsafe {
        let own = open(set);
        let time = (!time.is_null()).then(|| time.read());
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let into = came.as_mut_ptr();
        let wait = |time| libc::sigtimedwait(&raw const own, into, time);
        let awaits = Awaits::new(word_of(&own));
        let mut signal = wait(time);
        let why = *libc::__errno_location();
        drop(awaits);
        if signal < 0 && why == libc::EAGAIN {
            // Another node may have sent one to this thread meanwhile.
            let at_once = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            signal = wait(&raw const at_once);
        } else {
            crate::failure::set_errno(why);
        }
        if signal >= 0 && !info.is_null() {
            info.write(came.assume_init());
        }
        signal
    }
}

/// `sigwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigwait(set: *const sigset_t, into: *mut c_int) -> c_int {
    loop {
        // SAFETY: as above.
        let signal = unsafe { wait_for(set, std::ptr::null_mut(), std::ptr::null()) };
        if signal >= 0 {
            // SAFETY: as above.
            unsafe { into.write(signal) };
            return 0;
        }
        // SAFETY: this thread's own.
        match unsafe { *libc::__errno_location() } {
            libc::EINTR => {}
            why => return why,
        }
    }
}

/// `sigwaitinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigwaitinfo(set: *const sigset_t, info: *mut libc::siginfo_t) -> c_int {
    // SAFETY: as above.
    unsafe { wait_for(set, info, std::ptr::null()) }
}

/// `sigtimedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigtimedwait(
    set: *const sigset_t,
    info: *mut libc::siginfo_t,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe { wait_for(set, info, time) }
}

/// Calls that wait with another mask, if they are given one.
macro_rules! masked {
    ($($name:ident = $real:path, ($($before:ident: $b:ty),*), ($($after:ident: $a:ty),*);)*) => {$(
        #[doc = concat!("`", stringify!($real), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $b,)* set: *const sigset_t, $($after: $a),*
        ) -> c_int {
            // SAFETY: the caller's, as of the function in the C library.
            unsafe {
                if set.is_null() {
                    return $real($($before,)* set, $($after),*);
                }
                let own = open(set);
                let _awaits = Awaits::new(!word_of(&own));
                $real($($before,)* &raw const own, $($after),*)
            }
        }
    )*};
}

masked! {
    dh_ppoll = libc::ppoll,
        (files: *mut libc::pollfd, count: libc::nfds_t, time: *const libc::timespec), ();
    dh_pselect = libc::pselect,
        (count: c_int, reads: *mut libc::fd_set, writes: *mut libc::fd_set,
            fails: *mut libc::fd_set, time: *const libc::timespec), ();
    dh_epoll_pwait = libc::epoll_pwait,
        (epoll: c_int, events: *mut libc::epoll_event, most: c_int, ms: c_int), ();
}

/// `sigaltstack`. A stack in shared memory is replaced by a private one: the system writes there
/// when it raises a signal. Where the program's stacks are shared, faults of theirs are handled on
/// an alternate stack that is dhole's, and the program gives none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigaltstack(
    new: *const libc::stack_t,
    old: *mut libc::stack_t,
) -> c_int {
    let mut before = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the caller's, here and below: stacks, or null; the copies are this function's own.
    let mut own = (!new.is_null()).then(|| unsafe { new.read() });
    if let Some(own) = own.as_mut() {
        if stacks::is_wanted() {
            let why = "giving an alternate stack: faults of shared stacks are handled on dhole's";
            refused(&why, libc::EPERM);
            return -1;
        }
        let is_used = own.ss_flags & libc::SS_DISABLE == 0;
        if is_used && heap::is_shared(own.ss_sp, own.ss_size) {
            let Some(private) = private_stack(own.ss_size) else {
                refused(
                    &"giving an alternate stack: no memory for a private one",
                    libc::ENOMEM,
                );
                return -1;
            };
            own.ss_sp = private;
        }
    }
    // SAFETY: as above.
    unsafe {
        let given = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let done = libc::sigaltstack(given, before.as_mut_ptr());
        if done == 0 && !old.is_null() {
            old.write(stacks::without_ours(before.assume_init()));
        }
        done
    }
}

/// A private stack of this thread, which it keeps: a handler may run on it at any time.
fn private_stack(bytes: usize) -> Option<*mut c_void> {
    thread_local! {
        static STACK: Cell<(usize, *mut c_void)> = const { Cell::new((0, std::ptr::null_mut())) };
    }
    let (has, at) = STACK.get();
    if has >= bytes {
        return Some(at);
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
    // SAFETY: at an address of the system's choice, so it touches nothing else.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    STACK.set((bytes, at));
    Some(at)
}

/// Whether a signal is dhole's: -1 with words then.
fn is_taken(signal: c_int) -> bool {
    let segv = signal == libc::SIGSEGV && TAKES_SEGV.load(Ordering::SeqCst);
    let is = segv || [libc::SIGBUS, libc::SIGTRAP].contains(&signal);
    if is {
        let why = format!("handling signal {signal}: faults of shared memory come by it");
        refused(&why, libc::EINVAL);
    }
    is
}

/// `sigaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sigaction(
    signal: c_int,
    action: *const sigaction,
    old: *mut sigaction,
) -> c_int {
    // SAFETY: the caller's.
    let done = unsafe { set_action(signal, action, old) };
    if done == 0 && !action.is_null() {
        note_set(signal);
        changed();
    }
    done
}

/// `sigaction` of this node alone.
///
/// # Safety
/// As there.
pub(crate) unsafe fn set_action(
    signal: c_int,
    action: *const sigaction,
    old: *mut sigaction,
) -> c_int {
    if !action.is_null() && is_taken(signal) {
        return -1;
    }
    let mut before = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: as above; the copies are this function's own.
    unsafe {
        let own = (!action.is_null()).then(|| {
            let mut own = action.read();
            own.sa_mask = open(&raw const own.sa_mask);
            if crate::stacks::is_wanted() {
                // The kernel cannot fault in the stack on which it puts the handler's frame.
                own.sa_flags |= libc::SA_ONSTACK;
            }
            own
        });
        // What the program had is known before the next is.
        let current = libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr());
        let before = deferred::as_the_program_said(signal, before.assume_init());
        let own = own.map(|own| deferred::replace(signal, &own));
        let own = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let done = match own.is_null() {
            true => current,
            false => libc::sigaction(signal, own, std::ptr::null_mut()),
        };
        if done == 0 && !old.is_null() {
            old.write(stray::without_ours(before));
        }
        done
    }
}

/// `signal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_signal(signal: c_int, handler: *const c_void) -> *const c_void {
    let failed = std::ptr::without_provenance(libc::SIG_ERR);
    let mut action = MaybeUninit::<sigaction>::zeroed();
    let mut before = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: as above; zeros are such a structure, with an empty mask.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler.expose_provenance();
        (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART;
        match dh_sigaction(signal, action.as_ptr(), before.as_mut_ptr()) {
            0 => std::ptr::with_exposed_provenance(before.assume_init().sa_sigaction),
            _ => failed,
        }
    }
}
