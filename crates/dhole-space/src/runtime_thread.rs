//! Threads that dhole starts for itself, and which signals a thread takes.
//!
//! The system has any thread of a process take a signal that is sent to the process, unless the
//! thread blocks it. A thread of dhole's would run a handler of the program's, which expects a
//! thread of the program's, or would take a signal for which the program waits (`sigwait`). So
//! threads of dhole's block all signals, and all of them are started here.

use std::ffi::c_int;
use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread of dhole's, which takes no signals.
///
/// # Errors
/// The system's own, where it refuses a thread (`ulimit -u`).
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    SignalMask::of_runtime().during(|| Builder::new().name(name.to_owned()).spawn(run))
}

/// As [`spawn`], of a thread that ends before its scope does.
///
/// # Errors
/// As there.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let thread = Builder::new().name(name.to_owned());
    SignalMask::of_runtime().during(|| thread.spawn_scoped(scope, run))
}

/// The signals that a thread blocks.
#[derive(Clone, Copy)]
pub struct SignalMask(#[cfg(not(miri))] libc::sigset_t);

#[cfg(not(miri))]
impl SignalMask {
    /// Signals of a thread's own faults. A thread that blocks one of them dies of its next fault,
    /// whatever handles them.
    pub const FAULTS: [c_int; 6] = [
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGSEGV,
        libc::SIGSYS,
        libc::SIGTRAP,
    ];

    /// What this thread blocks.
    pub fn current() -> SignalMask {
        let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: zeros are such a set, which the call fills in; it changes nothing.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            SignalMask(mask.assume_init())
        }
    }

    /// What threads of dhole's block: all but [`FAULTS`](SignalMask::FAULTS).
    pub fn of_runtime() -> SignalMask {
        let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: zeros are such a set, which the call fills in.
        let all = unsafe {
            libc::sigfillset(mask.as_mut_ptr());
            SignalMask(mask.assume_init())
        };
        all.without(&SignalMask::FAULTS)
    }

    /// The same, but for these signals.
    pub fn without(mut self, signals: &[c_int]) -> SignalMask {
        for signal in signals {
            // SAFETY: the set is this value's own. The call refuses what is no signal.
            unsafe { libc::sigdelset(&raw mut self.0, *signal) };
        }
        self
    }

    /// The same, and these signals.
    pub fn with(mut self, signals: &[c_int]) -> SignalMask {
        for signal in signals {
            // SAFETY: the set is this value's own. The call refuses what is no signal.
            unsafe { libc::sigaddset(&raw mut self.0, *signal) };
        }
        self
    }

    /// The set as the system takes it.
    pub fn set(&self) -> libc::sigset_t {
        self.0
    }

    /// From here on this thread blocks these signals, and no others.
    pub fn apply(&self) {
        // SAFETY: the set is this value's own, and the call writes nothing.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

/// Miri knows no signals.
#[cfg(miri)]
impl SignalMask {
    /// Nothing.
    pub fn current() -> SignalMask {
        SignalMask()
    }

    /// Nothing.
    pub fn of_runtime() -> SignalMask {
        SignalMask()
    }

    /// Nothing.
    pub fn without(self, _: &[c_int]) -> SignalMask {
        self
    }

    /// Nothing.
    pub fn with(self, _: &[c_int]) -> SignalMask {
        self
    }

    /// Does nothing.
    pub fn apply(&self) {}
}

impl SignalMask {
    /// This thread blocks these signals while it calls this, and so do threads that it starts.
    pub fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        let before = SignalMask::current();
        self.apply();
        let done = call();
        before.apply();
        done
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    fn blocks(signal: c_int) -> bool {
        let mask = SignalMask::current();
        // SAFETY: the set is the value's own.
        unsafe { libc::sigismember(&raw const mask.0, signal) == 1 }
    }

    fn takes_faults_alone() -> bool {
        let others = [
            libc::SIGALRM,
            libc::SIGQUIT,
            libc::SIGUSR1,
            libc::SIGRTMAX(),
        ];
        !SignalMask::FAULTS.into_iter().any(blocks) && others.into_iter().all(blocks)
    }

    #[test]
    fn a_thread_of_dhole_s_takes_signals_of_faults_alone() {
        let before = blocks(libc::SIGUSR1);
        let thread = spawn("dhole-test", takes_faults_alone).expect("a thread");
        assert!(thread.join().expect("it does not panic"));
        std::thread::scope(|scope| {
            let thread = spawn_scoped(scope, "dhole-test", takes_faults_alone);
            let thread = thread.expect("a thread");
            assert!(thread.join().expect("it does not panic"));
        });
        assert_eq!(blocks(libc::SIGUSR1), before);
    }

    #[test]
    fn a_mask_without_a_signal_blocks_the_others() {
        let takes = || {
            SignalMask::of_runtime().without(&[libc::SIGQUIT]).apply();
            !blocks(libc::SIGQUIT) && blocks(libc::SIGUSR1)
        };
        let thread = spawn("dhole-test", takes).expect("a thread");
        assert!(thread.join().expect("it does not panic"));
        let blocked = || {
            let none = [libc::SIGUSR1, libc::SIGXFSZ];
            SignalMask::of_runtime().without(&none).apply();
            SignalMask::current().with(&[libc::SIGXFSZ]).apply();
            blocks(libc::SIGXFSZ) && !blocks(libc::SIGUSR1)
        };
        let thread = spawn("dhole-test", blocked).expect("a thread");
        assert!(thread.join().expect("it does not panic"));
    }
}
