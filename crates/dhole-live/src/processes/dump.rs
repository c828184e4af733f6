//! What a process writes when somebody wonders why nothing happens: what its node does, holds and
//! waits for. A thread of its own writes it, so that it is written whatever the others are stuck
//! in, and waits for no lock for long.

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dhole_node::Receivers;

use super::{Processes, lock};

/// How often the node's lock is tried, and how long between two times.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(10);

/// How often it is looked whether the worker has called the runtime: a call itself reads no clock.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// What the thread that writes is to do.
#[derive(Default)]
pub(super) struct Dump {
    wanted: Mutex<Wanted>,
    #[expect(
        clippy::disallowed_types,
        reason = "a live machine is where threads wait for each other"
    )]
    change: std::sync::Condvar,
}

#[derive(Default)]
struct Wanted {
    dump: bool,
    /// The run is over.
    end: bool,
    /// There is a run, and so a thread that writes.
    on: bool,
}

impl Dump {
    pub fn begin(&self) {
        *lock(&self.wanted) = Wanted {
            on: true,
            ..Wanted::default()
        };
    }

    pub fn end(&self) {
        let mut wanted = lock(&self.wanted);
        (wanted.end, wanted.on) = (true, false);
        self.change.notify_all();
    }

    /// Waits until a dump is wanted, or for so long; `None` when the run is over.
    fn is_wanted(&self, at_most: Duration) -> Option<bool> {
        let idle = |wanted: &mut Wanted| !wanted.dump && !wanted.end;
        let wanted = lock(&self.wanted);
        let waited = self.change.wait_timeout_while(wanted, at_most, idle);
        let (mut wanted, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let dump = std::mem::take(&mut wanted.dump);
        (!wanted.end).then_some(dump)
    }
}

/// The calls of the runtime that the worker has begun, when it was last looked for them.
struct Looked {
    calls: u64,
    /// When they were first so many, of what was looked.
    since: Duration,
}

impl Looked {
    /// Looks again; how long no call has begun.
    fn look(&mut self, receivers: &Receivers<'_>, now: Duration) -> Duration {
        let calls = receivers.first().and_then(|node| node.calls());
        if let Some(calls) = calls.filter(|calls| *calls != self.calls) {
            (self.calls, self.since) = (calls, now);
        }
        now.saturating_sub(self.since)
    }
}

impl Processes {
    /// Writes to standard error what this node does, holds and waits for, even if its worker is
    /// stuck, and returns at once.
    pub fn dump(&self) {
        let mut wanted = lock(&self.dump.wanted);
        if wanted.on {
            wanted.dump = true;
            self.dump.change.notify_all();
            return;
        }
        drop(wanted);
        let words = match self.table.try_lock() {
            Ok(table) if self.on.load(Ordering::SeqCst) => {
                table.describe(self.me, self.run(), self.survives())
            }
            Ok(_) => format!("not in a run; {} were before", self.run()),
            Err(_taken) => "a run begins or ends".into(),
        };
        write(&format!("dhole: {}: {words}", self.me));
    }

    /// The thread that writes, during a run.
    pub(super) fn write_dumps(&self, receivers: &Receivers<'_>) {
        let (calls, since) = (0, self.since_made());
        let mut looked = Looked { calls, since };
        while let Some(wanted) = self.dump.is_wanted(LOOKS_EVERY) {
            let mut quiet_for = looked.look(receivers, self.since_made());
            if !wanted {
                continue;
            }
            let mut words = None;
            for _ in 0..TRIES {
                words = receivers.first().and_then(|node| node.describe(quiet_for));
                if words.is_some() {
                    break;
                }
                std::thread::park_timeout(BETWEEN);
                quiet_for = looked.look(receivers, self.since_made());
            }
            let words = words.unwrap_or_else(|| {
                "its lock is taken: the program computes within a call, or it is stuck there".into()
            });
            let (me, run) = (self.me, self.run());
            let table = self.table.try_lock();
            let lost: Vec<String> = table.map_or_else(
                |_taken| Vec::new(),
                |table| table.lost().map(ToString::to_string).collect(),
            );
            let lines = words.lines().map(str::to_owned).chain(lost);
            let text: Vec<String> = lines
                .map(|line| format!("dhole: {me}, run {run}: {line}"))
                .collect();
            write(&text.join("\n"));
        }
    }
}

/// Where nobody can read it, it is not written.
fn write(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
