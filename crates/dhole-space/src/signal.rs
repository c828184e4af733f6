//! Handlers of signals that take some for themselves and pass the others on, as if they were not
//! there.

use std::ffi::{c_int, c_void};
use std::io;

/// A handler that is told where and why a signal was raised.
pub type SignalHandler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What the process does with a signal.
///
/// # Errors
/// The system's own.
pub fn current(signal: c_int) -> io::Result<libc::sigaction> {
    // SAFETY: all zeros is a valid `sigaction`, which the call fills in.
    unsafe {
        let mut current = std::mem::zeroed();
        let none = std::ptr::null();
        checked(libc::sigaction(signal, none, &mut current))?;
        Ok(current)
    }
}

/// Has a signal handled from now on, with these flags beside `SA_SIGINFO`, and the rest as before.
///
/// # Errors
/// The system's own.
///
/// # Safety
/// The handler does only what it may wherever the signal is raised, or [passes it on](pass_on).
pub unsafe fn handle(
    signal: c_int,
    handler: SignalHandler,
    flags: c_int,
    before: &libc::sigaction,
) -> io::Result<()> {
    let ours = libc::sigaction {
        sa_sigaction: handler as usize,
        sa_flags: libc::SA_SIGINFO | flags,
        ..*before
    };
    // SAFETY: the handler is a function of the type that SA_SIGINFO names; for what it does the
    // caller answers.
    checked(unsafe { libc::sigaction(signal, &ours, std::ptr::null_mut()) })
}

fn checked(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Does with a signal what the process would have done without its handler.
///
/// # Safety
/// The call is made by a handler, with what the kernel handed over to it. `before` is what the
/// process did with this signal when that handler was installed ([`current`]).
pub unsafe fn pass_on(
    before: &libc::sigaction,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: the kernel's, as the caller says.
    let is_raised = unsafe { (*info).si_code > 0 };
    match before.sa_sigaction {
        libc::SIG_IGN if !is_raised => {}
        // What faults is run again, and ends the process as it would have; what was sent, or is
        // over when it traps, is sent again. Not even a program that ignores the signal survives
        // a fault.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: all zeros but for the handler is a valid `sigaction`; both calls are
            // allowed in a handler.
            unsafe {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, std::ptr::null_mut());
                if !is_raised || signal == libc::SIGTRAP {
                    libc::raise(signal);
                }
            }
        }
        // SAFETY: the process has installed it for this signal, as a function of this type.
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            let handler: SignalHandler = std::mem::transmute(handler);
            handler(signal, info, context);
        },
        // SAFETY: as above.
        handler => unsafe {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
            handler(signal);
        },
    }
}
