//! Waits for which nobody can come: each ends with a typed error that names the lines, on one of
//! the nodes that wait at least, and so the run ends.
//!
//! Each of these runs on threads, and on processes, of which each is a domain or all are one.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;

use dhole::memory;
use dhole::memory::sync::{self, acquire, barrier, lock, unlock};
use dhole::memory::threads::{self, ThreadError};
use dhole::{CallSite, Error, NodeId, Result, Worker};

use crate::domains::DOMAINS;
use crate::{cluster, config};

const LOCK: u64 = 0xa1;
const OTHER: u64 = 0xb2;
const CONDITION: u64 = 0xc3;
const SEMAPHORE: u64 = 0xd4;
const BARRIER: u64 = 0xe5;

/// Nodes look for a deadlock after a second. A run that has not ended by then waits for ever.
const LONGEST: Duration = Duration::from_secs(10);

type Program = for<'id> fn(&mut Worker<'id>) -> Result<()>;

#[track_caller]
fn site() -> CallSite {
    CallSite::caller()
}

/// The words of a thread that is told that it waits in vain. Any other error fails the test.
fn told<T>(waited: std::result::Result<T, ThreadError>) -> Result<T> {
    waited.map_err(|error| match error {
        ThreadError::Sync(refusal) => Error::program(format!("told: {refusal}")),
        other => other.into(),
    })
}

/// Node 0 ends with a lock that node 1 wants.
pub fn ends_with_a_lock(w: &mut Worker<'_>) -> Result<()> {
    if w.node().index() == 0 {
        told(lock(LOCK, site()))?;
    }
    w.barrier()?;
    match w.node().index() {
        0 => Ok(()),
        _ => told(lock(LOCK, site())),
    }
}

/// Node 1 waits for a semaphore, and all others have ended.
pub fn waits_for_a_semaphore(w: &mut Worker<'_>) -> Result<()> {
    match w.node().index() {
        0 => Ok(()),
        _ => told(acquire(SEMAPHORE, site())),
    }
}

/// Node 0 waits at a barrier of all nodes with a lock that node 1 wants before it comes there.
pub fn meets_with_a_lock(w: &mut Worker<'_>) -> Result<()> {
    if w.node().index() == 0 {
        told(lock(LOCK, site()))?;
    }
    w.barrier()?;
    if w.node().index() == 1 {
        told(lock(LOCK, site()))?;
    }
    Ok(w.barrier()?)
}

/// Each node has one lock, of an object or a raw one, and wants the other's.
pub fn crosses_kinds(w: &mut Worker<'_>) -> Result<()> {
    let of_objects = w.once(|w| Ok(w.new_lock()))?;
    if w.node().index() == 0 {
        let held = of_objects.acquire(w)?;
        w.barrier()?;
        told(lock(LOCK, site()))?;
        held.release(w)?;
    } else {
        told(lock(LOCK, site()))?;
        w.barrier()?;
        of_objects.acquire(w)?.release(w)?;
    }
    told(unlock(LOCK))
}

/// Node 0 waits on a condition, and node 1, which could signal it, at a barrier of both.
pub fn waits_on_a_condition(w: &mut Worker<'_>) -> Result<()> {
    if w.node().index() == 0 {
        told(lock(LOCK, site()))?;
        told(sync::wait(CONDITION, LOCK, site()))?;
        told(unlock(LOCK))?;
    }
    Ok(w.barrier()?)
}

/// Two nodes want each other's locks. The one that is told returns with its lock, and so the other
/// waits in vain too.
pub fn returns_when_told(w: &mut Worker<'_>) -> Result<()> {
    let so_far = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
    let (own, others) = match w.node().index() {
        0 => (LOCK, OTHER),
        _ => (OTHER, LOCK),
    };
    told(lock(own, site()))?;
    w.barrier()?;
    let Err(cause) = told(lock(others, site())) else {
        return Err(Error::program(
            "it has the lock of a node that has it still",
        ));
    };
    // The first of the two says nothing, and the other one is told by an error of its own.
    match so_far.fetch_add(1, Relaxed) {
        0 => Ok(()),
        _ => Err(cause),
    }
}

/// A barrier of two on node 0, and of three on node 1. The node that is refused returns.
pub fn differ_in_parties(w: &mut Worker<'_>) -> Result<()> {
    let parties = 2 + w.node().index() as u32;
    match barrier(BARRIER, parties, site()) {
        Err(ThreadError::Sync(refusal)) if refusal.to_string().contains("as others that wait") => {
            Ok(())
        }
        waited => told(waited).map(|_| ()),
    }
}

/// A thread of node 0 has a raw lock and wants that of node 1, which wants an object's lock. The
/// worker of node 0 has that, and wants the thread's.
pub fn crosses_threads(w: &mut Worker<'_>) -> Result<()> {
    let of_objects = w.once(|w| Ok(w.new_lock()))?;
    if w.node().index() == 1 {
        told(lock(OTHER, site()))?;
        w.barrier()?;
        of_objects.acquire(w)?.release(w)?;
        return told(unlock(OTHER));
    }
    let held = of_objects.acquire(w)?;
    threads::scope(w, |w, scope| {
        let thread = scope.spawn(|| {
            lock(LOCK, site())?;
            barrier(BARRIER, 2, site())?;
            barrier(BARRIER, 2, site())?;
            // If it is told first, the worker gets the lock, and tells what the thread has heard.
            let waited = lock(OTHER, site());
            unlock(LOCK)?;
            waited
        });
        barrier(BARRIER, 2, site())?;
        w.barrier()?;
        barrier(BARRIER, 2, site())?;
        told(lock(LOCK, site()))?;
        told(thread?.join().expect("a thread that does not panic"))
    })??;
    held.release(w)?;
    Ok(())
}

/// Node 0 waits on a condition, and node 1 for a semaphore.
pub fn waits_for_both(w: &mut Worker<'_>) -> Result<()> {
    if w.node().index() == 1 {
        return told(acquire(SEMAPHORE, site()));
    }
    told(lock(LOCK, site()))?;
    told(sync::wait(CONDITION, LOCK, site()))
}

/// Two threads of node 0 wait at a barrier of three, and its worker for their ends. Node 1 has
/// ended.
pub fn meets_in_a_scope(w: &mut Worker<'_>) -> Result<()> {
    if w.node().index() == 1 {
        return Ok(());
    }
    let (sender, met) = mpsc::channel();
    threads::scope(w, |_, scope| {
        for sender in [sender.clone(), sender] {
            scope.spawn(move || sender.send(barrier(BARRIER, 3, site())))?;
        }
        Ok::<_, ThreadError>(())
    })??;
    met.into_iter().try_for_each(|met| told(met).map(|_| ()))
}

/// Node 0 has a lock and waits for the end of a thread of node 1, which wants it.
pub fn joins_with_a_lock(w: &mut Worker<'_>) -> Result<()> {
    if w.node().index() == 1 {
        let handler = |_, _| lock(LOCK, site()).map(|()| 0).expect("told");
        return Ok(threads::serve(w, &handler)?);
    }
    told(lock(LOCK, site()))?;
    told(threads::run(w, &|_, _| 0, |_| {
        threads::join_at(threads::start(NodeId(1), 0, 0)?, site())
    })?)?;
    told(unlock(LOCK))
}

/// A program of two nodes in which nobody comes.
struct Case {
    name: &'static str,
    program: Program,
    /// What the error says.
    words: &'static [&'static str],
    /// So many lines of this file, at least, it names.
    lines: usize,
}

impl Case {
    #[track_caller]
    fn checks(&self, said: &str) {
        let missing = self.words.iter().find(|it| !said.contains(**it));
        assert_eq!(missing, None, "{}: {said}", self.name);
        let of_line = |it: &str| it.split(':').next().map(str::to_owned);
        let named = said.split("nobody_comes.rs:").skip(1).filter_map(of_line);
        let named: BTreeSet<String> = named.collect();
        assert!(named.len() >= self.lines, "{}: {said}", self.name);
    }

    /// Each run ends in time, with these words.
    #[track_caller]
    fn is_told_on_threads(&self) {
        let (sender, ended) = mpsc::channel();
        let program = self.program;
        std::thread::spawn(move || {
            let run = config(2).run(program).map(|run| run.value);
            sender.send(run.map_err(|error| error.to_string()))
        });
        let name = self.name;
        let ended = ended.recv_timeout(LONGEST);
        let ended = ended.unwrap_or_else(|_| panic!("{name}: no end after {LONGEST:?}"));
        self.checks(&ended.expect_err("nobody comes"));
    }

    #[track_caller]
    fn is_told_on_processes(&self, domains: &str) {
        let also = [("DHOLE_TRANSPORT", "shm"), (DOMAINS, domains)];
        let also = also.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ended = cluster::run_within(LONGEST, 2, self.name, |_| also.to_vec());
        let said: Vec<&str> = ended.iter().map(|ended| &*ended.all).collect();
        assert!(
            ended.iter().all(|ended| ended.code == Some(1)),
            "{}: {said:?}",
            self.name
        );
        self.checks(&said.join("\n"));
    }
}

macro_rules! cases {
    ($($name:ident = $case:expr;)*) => {$(
        mod $name {
            use super::*;

            const CASE: Case = $case;

            #[test]
            fn is_told_on_threads() {
                CASE.is_told_on_threads();
            }

            #[test]
            fn is_told_on_processes() {
                CASE.is_told_on_processes("node");
            }

            #[test]
            fn is_told_in_a_domain() {
                CASE.is_told_on_processes("host");
            }
        }
    )*};
}

cases! {
    a_thread_that_wants_a_lock_whose_holder_has_ended = Case {
        name: "ends with a lock",
        program: ends_with_a_lock,
        words: &["a deadlock", "lock 0xa1", "ended"],
        lines: 2,
    };
    a_thread_that_wants_a_semaphore_that_nobody_posts = Case {
        name: "waits for a semaphore",
        program: waits_for_a_semaphore,
        words: &["a deadlock", "semaphore 0xd4", "ended"],
        lines: 1,
    };
    a_barrier_of_nodes_and_a_raw_lock = Case {
        name: "meets with a lock",
        program: meets_with_a_lock,
        words: &["a deadlock", "lock 0xa1", "barrier"],
        lines: 3,
    };
    a_lock_of_an_object_and_a_raw_one = Case {
        name: "crosses kinds",
        program: crosses_kinds,
        words: &["a deadlock", "lock 0xa1"],
        lines: 2,
    };
    a_condition_that_nobody_signals = Case {
        name: "waits on a condition",
        program: waits_on_a_condition,
        words: &["a deadlock", "condition 0xc3", "barrier"],
        lines: 2,
    };
    a_node_beside_one_that_was_told_and_returned = Case {
        name: "returns when told",
        program: returns_when_told,
        words: &["a deadlock", "told: "],
        lines: 2,
    };
    a_barrier_of_two_here_and_of_three_there = Case {
        name: "differ in parties",
        program: differ_in_parties,
        words: &["a deadlock", "barrier 0xe5"],
        lines: 1,
    };
    a_circle_through_a_lock_of_an_object_and_locks_of_threads = Case {
        name: "crosses threads",
        program: crosses_threads,
        words: &["a deadlock", "lock 0xa1", "lock 0xb2", "lock 0", "which node 0 acquired"],
        lines: 3,
    };
    a_condition_and_a_semaphore = Case {
        name: "waits for both",
        program: waits_for_both,
        words: &["a deadlock", "condition 0xc3", "semaphore 0xd4"],
        lines: 2,
    };
    a_barrier_of_threads_and_the_scope_that_waits_for_them = Case {
        name: "meets in a scope",
        program: meets_in_a_scope,
        words: &["a deadlock", "barrier 0xe5", "the ends of its threads", "has ended"],
        lines: 2,
    };
    a_lock_and_the_end_of_a_thread_that_wants_it = Case {
        name: "joins with a lock",
        program: joins_with_a_lock,
        words: &["a deadlock", "lock 0xa1", "the end of thread 1 of node 0 on node 1"],
        lines: 3,
    };
}
