//! Ends a search early: after some time, or at a signal.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether a signal has come, where signals are looked for.
static SIGNALLED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Beginnings of tours between two looks at the clock.
const BETWEEN_LOOKS: u32 = 16;

/// From now on SIGINT and SIGTERM end searches, and a second one the program.
///
/// # Errors
/// Those of the system.
pub fn at_signals() -> io::Result<()> {
    let signalled = SIGNALLED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(signalled))?;
        flag::register(signal, Arc::clone(signalled))?;
    }
    Ok(())
}

/// When one search stops.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// On the clock of the search.
    at: Option<Duration>,
    until_look: u32,
}

impl Stop {
    /// After this time of a clock, if ever, or at a signal.
    pub fn after(limit: Option<Duration>, now: Duration) -> Stop {
        Stop {
            at: limit.map(|limit| now.saturating_add(limit)),
            until_look: 0,
        }
    }

    /// Whether the search is to stop now.
    #[inline]
    pub fn is_due(&mut self, now: impl FnOnce() -> Duration) -> bool {
        if let Some(at) = self.at {
            if let Some(left) = self.until_look.checked_sub(1) {
                self.until_look = left;
            } else {
                self.until_look = BETWEEN_LOOKS;
                if now() >= at {
                    return true;
                }
            }
        }
        let signalled = SIGNALLED.get();
        signalled.is_some_and(|signalled| signalled.load(Ordering::Relaxed))
    }
}
