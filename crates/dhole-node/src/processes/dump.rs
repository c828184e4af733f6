//! What a process writes when somebody wonders why nothing happens: what its node does, holds and
//! waits for. A thread of its own writes it, so that it is written whatever the others are stuck
//! in, and waits for no lock for long.

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Processes, lock};
use crate::machine::Receivers;

/// How often the node's lock is tried, and how long between two times.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(10);

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

    /// Waits until a dump is wanted; `false` when the run is over.
    fn is_wanted(&self) -> bool {
        let idle = |wanted: &mut Wanted| !wanted.dump && !wanted.end;
        let waited = self.change.wait_while(lock(&self.wanted), idle);
        let mut wanted = waited.unwrap_or_else(PoisonError::into_inner);
        wanted.dump = false;
        !wanted.end
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
        while self.dump.is_wanted() {
            let mut words = None;
            for _ in 0..TRIES {
                words = receivers.first().and_then(|node| node.describe());
                if words.is_some() {
                    break;
                }
                std::thread::park_timeout(BETWEEN);
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
