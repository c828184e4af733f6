//! Threads that sleep on a word, which several processes may map.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The system knows who sleeps on a word.
#[derive(Default)]
pub(super) struct Sleepers;

impl Sleepers {
    /// Sleeps until it is woken, and at most so long, if the word has this value.
    pub(super) fn sleep(&self, word: &AtomicU32, value: u32, at_most: Duration) {
        let time = libc::timespec {
            tv_sec: at_most.as_secs() as libc::time_t,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // Not `FUTEX_PRIVATE_FLAG`: other processes sleep on the same word.
        // SAFETY: the call reads the word, which is borrowed, and the time. Whatever it answers the
        // caller looks again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT,
                value,
                &raw const time,
            )
        };
    }

    pub(super) fn wake_one(&self, word: &AtomicU32) {
        self.wake(word, 1);
    }

    pub(super) fn wake_all(&self, word: &AtomicU32) {
        self.wake(word, i32::MAX);
    }

    fn wake(&self, word: &AtomicU32, most: i32) {
        // SAFETY: the call looks for those that sleep on the address of the word, and touches no
        // memory of the process.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) };
    }
}
