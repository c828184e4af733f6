//! Ends a test whose nodes hang, which would wait for them for ever.

use std::io::{self, Write};
use std::process;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How long nodes may take: many times what they do.
const LONGEST: Duration = Duration::from_secs(180);
/// How long the command may take to end them then.
const GRACE: Duration = Duration::from_secs(10);

/// Barks unless it is dropped in time.
pub struct Watchdog(Arc<Over>);

#[derive(Default)]
struct Over {
    is: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    fn comes_within(&self, time: Duration) -> bool {
        let over = self.is.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(over, time, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Watches `command`, which does `what`.
pub fn watch(command: u32, what: &str) -> Watchdog {
    watch_for(LONGEST, GRACE, command, what)
}

fn watch_for(longest: Duration, grace: Duration, command: u32, what: &str) -> Watchdog {
    let over = Arc::new(Over::default());
    let (watched, what) = (Arc::clone(&over), what.to_owned());
    thread::spawn(move || {
        if watched.comes_within(longest) {
            return;
        }
        // Past the test harness, which shows what a test prints only when it has ended.
        let _ = writeln!(io::stderr(), "not over after {longest:?}: {what}");
        // It ends its nodes; and should that fail too, at least the test is over.
        let command = Pid::from_raw(command as i32);
        let told = command.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        if told {
            watched.comes_within(grace);
        }
        process::exit(1);
    });
    Watchdog(over)
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.0.is.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

const BARKS: &str = "DHOLE_TEST_BARKS";

/// What hangs, in a process of its own: it waits for a command that does not end.
#[test]
fn hangs() {
    if std::env::var(BARKS).is_err() {
        return;
    }
    let sleep = process::Command::new("sleep").arg("600").spawn();
    let mut sleep = sleep.expect("a command");
    let soon = Duration::from_millis(100);
    let _watchdog = watch_for(soon, soon, sleep.id(), "a sleep");
    let ended = sleep.wait().expect("a child");
    // The command has ended, and the watchdog has not seen that its test is over.
    assert!(!ended.success());
    thread::sleep(Duration::from_secs(600));
}

#[test]
fn who_hangs_is_ended_with_words() {
    let this = std::env::current_exe().expect("a test runs");
    let ran = process::Command::new(this)
        .args(["--exact", "watchdog::hangs", "--nocapture"])
        .env(BARKS, "1")
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("not over after 100ms: a sleep"), "{said}");
}
