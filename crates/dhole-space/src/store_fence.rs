//! What a node does beside the system call that takes a permission away, where the processor does
//! not interrupt the node's other threads for that.
//!
//! A store that a thread has made, and that lies in the store buffer of its processor, must be
//! visible before the bytes of the minipage are sent. On most processors of x86-64 the system
//! interrupts all threads of the process to flush their translations, which empties the buffers.
//! With the instruction `INVLPGB` it does not.

use std::io;
use std::sync::OnceLock;

use crate::variable::variable;

/// The variable that turns the fences on or off; else the processor decides.
const VARIABLE: &str = "DHOLE_STORE_FENCE";

const CMD_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const CMD_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Whether this process needs them, or what the system refused.
static NEEDED: OnceLock<Result<bool, i32>> = OnceLock::new();

/// Finds out whether fences are needed, and has the system prepare them.
///
/// # Errors
/// The system's own; that the environment says something else than `on` or `off`.
pub(crate) fn prepare() -> io::Result<bool> {
    let wanted = match variable(VARIABLE).as_deref() {
        Some("on") => true,
        Some("off") => false,
        Some(other) => {
            let why = format!("{VARIABLE} is `{other}`: `on` or `off` is expected");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        None => flushes_without_interrupts(&std::fs::read_to_string("/proc/cpuinfo")?),
    };
    let needed = NEEDED.get_or_init(|| match wanted {
        true => membarrier(CMD_REGISTER_PRIVATE_EXPEDITED)
            .map(|()| true)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL)),
        false => Ok(false),
    });
    needed.map_err(io::Error::from_raw_os_error)
}

/// Whether the flags of the processor have the instruction.
fn flushes_without_interrupts(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == "invlpgb"))
}

/// All stores that threads of this process have made are visible when this returns, if the
/// processor needs it.
///
/// # Errors
/// The system's own.
pub(crate) fn after_revocation() -> io::Result<()> {
    match NEEDED.get() {
        Some(Ok(true)) => membarrier(CMD_PRIVATE_EXPEDITED),
        _ => Ok(()),
    }
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    #[cfg(test)]
    tests::MADE.set(tests::MADE.get() + 1);
    // SAFETY: the call takes numbers.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        pub static MADE: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn a_processor_that_flushes_without_interrupts_is_known_by_its_flag() {
        assert!(flushes_without_interrupts(
            "model : 1\nflags\t\t: fpu invlpgb avx\n"
        ));
        assert!(!flushes_without_interrupts(
            "flags : fpu invlpgbx\nbugs : invlpgb\n"
        ));
        assert!(!flushes_without_interrupts(""));
    }

    #[test]
    fn fences_are_made_where_they_are_needed() {
        assert!(membarrier(CMD_REGISTER_PRIVATE_EXPEDITED).is_ok());
        NEEDED.get_or_init(|| Ok(true));
        let before = MADE.get();
        assert!(after_revocation().is_ok());
        assert_eq!(
            MADE.get() - before,
            u64::from(NEEDED.get() == Some(&Ok(true)))
        );
    }
}
