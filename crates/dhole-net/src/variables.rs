//! Variables of the environment, read one by one.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use crate::{EnvironmentError, Waiting};

/// The longest that a thread may spin, back off and sleep. In microseconds.
pub const LONGEST_SPIN_US: u64 = 60_000_000;
/// In microseconds.
pub const LONGEST_BACKOFF_US: u64 = 1_000_000;
/// In milliseconds.
pub const LONGEST_SLEEP_MS: u64 = 1_000;

/// How long a node may be silent. In milliseconds.
pub const LEAST_BOUND_MS: u64 = 10;
/// In milliseconds.
pub const LONGEST_BOUND_MS: u64 = 3_600_000;
/// How long joining may take. In milliseconds.
pub const LONGEST_JOIN_MS: u64 = 3_600_000;
/// Limits of what others may make a process keep: a message, in MiB.
pub const MOST_MESSAGE_MIB: u64 = 1 << 20;
/// Ranges of objects.
pub const MOST_LEARNT_RUNS: u64 = 1 << 32;

/// Names the run, for nodes that MPI's launchers start too.
pub const RUN: &str = "DHOLE_RUN";

/// What else is only said of a node. What may be said of all runs of a user is not among it.
pub const OF_A_NODE: [&str; 7] = [
    "DHOLE_NODES",
    "DHOLE_MEETING",
    "DHOLE_MEETING_FD",
    "DHOLE_LISTEN",
    "DHOLE_HOST",
    "DHOLE_SECRET_FILE",
    "DHOLE_SECRET_FD",
];

/// Looks a variable up.
pub type Look<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Whether this variable says something.
pub fn is_set(look: Look<'_>, variable: &'static str) -> bool {
    text(look, variable).is_ok_and(|value| value.is_some())
}

/// A variable that is only said of a node, and is set.
pub fn lone(look: Look<'_>) -> Option<&'static str> {
    OF_A_NODE.into_iter().find(|name| is_set(look, name))
}

impl Waiting {
    /// What the environment says of how threads wait, and this where it says nothing:
    /// `DHOLE_SPIN_US`, `DHOLE_BACKOFF_US`, `DHOLE_SLEEP_MS`.
    ///
    /// # Errors
    /// [`EnvironmentError::Wrong`] when it says what cannot be.
    pub fn or_env(self) -> Result<Waiting, EnvironmentError> {
        waiting(&|name| std::env::var_os(name), self)
    }
}

/// What the variables say of how threads wait, and `or` where they say nothing.
pub fn waiting(look: Look<'_>, or: Waiting) -> Result<Waiting, EnvironmentError> {
    let spin = number(look, "DHOLE_SPIN_US", 0, LONGEST_SPIN_US)?;
    let backoff = number(look, "DHOLE_BACKOFF_US", 1, LONGEST_BACKOFF_US)?;
    let sleep = number(look, "DHOLE_SLEEP_MS", 1, LONGEST_SLEEP_MS)?;
    Ok(Waiting {
        spin: spin.map_or(or.spin, Duration::from_micros),
        backoff: backoff.map_or(or.backoff, Duration::from_micros),
        sleep: sleep.map_or(or.sleep, Duration::from_millis),
    })
}

/// The error of a variable with this value.
pub fn wrong(variable: &'static str, value: &dyn ToString, expected: String) -> EnvironmentError {
    EnvironmentError::Wrong {
        variable,
        value: value.to_string(),
        expected,
    }
}

/// A variable's text; one that is empty is as one that is not set.
pub fn text(look: Look<'_>, variable: &'static str) -> Result<Option<String>, EnvironmentError> {
    let Some(value) = look(variable).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let not_text = |value: OsString| {
        let shown = value.to_string_lossy().into_owned();
        wrong(variable, &shown, "text in UTF-8".to_owned())
    };
    value.into_string().map(Some).map_err(not_text)
}

/// A variable's number, within these limits.
pub fn number(
    look: Look<'_>,
    variable: &'static str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, EnvironmentError> {
    let Some(said) = text(look, variable)? else {
        return Ok(None);
    };
    match u64::from_str(said.trim()) {
        Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => {
            let expected = format!("a number from {least} to {most}");
            Err(wrong(variable, &said, expected))
        }
    }
}
