//! Sets of signals as words, a bit a signal; and what wakes the thread that exchanges signals with
//! other nodes.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::sigset_t;

/// The bit of a signal in a word of signals.
pub(crate) fn bit(signal: c_int) -> u64 {
    match signal {
        1..=64 => 1 << (signal - 1),
        _ => 0,
    }
}

/// The signals of a set.
pub(crate) fn word_of(set: &sigset_t) -> u64 {
    // SAFETY: the first word of a set has all signals.
    unsafe { std::ptr::from_ref(set).cast::<u64>().read() }
}

/// A set of signals.
pub(crate) fn set_of(word: u64) -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: zeros are such a set, of which the first word has all signals.
    unsafe {
        set.as_mut_ptr().cast::<u64>().write(word);
        set.assume_init()
    }
}

/// What this thread blocks.
pub(crate) fn blocked_now() -> u64 {
    let mut mask = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: zeros are such a set, which the call fills in.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
        word_of(&mask.assume_init())
    }
}

/// What wakes the thread that exchanges signals: a file descriptor, or -1 where there is none.
static WAKES: AtomicI32 = AtomicI32::new(-1);

/// The thread that exchanges signals sleeps on this file descriptor from here on.
pub(crate) fn wakes_by(descriptor: c_int) {
    WAKES.store(descriptor, Ordering::SeqCst);
}

/// Has the thread look that exchanges signals, if there is one. A handler of a signal may call
/// this.
pub(crate) fn wake_exchange() {
    let to = WAKES.load(Ordering::SeqCst);
    if to >= 0 {
        let one = 1_u64;
        // SAFETY: the bytes are the number's, and nobody else closes the descriptor.
        unsafe { libc::write(to, (&raw const one).cast(), size_of::<u64>()) };
    }
}
