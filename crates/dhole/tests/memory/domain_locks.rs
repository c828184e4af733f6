//! Locks of a run whose nodes are one domain: words of its memory.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dhole::memory;
use dhole::memory::sync::{self, barrier, lock, unlock};
use dhole::memory::threads::{self, ThreadError};
use dhole::{CallSite, MessageKind, NodeId, Result, RunError, Worker};

use crate::domains::{run_in, said};
use crate::{cluster, config, killed};

#[track_caller]
fn site() -> CallSite {
    CallSite::caller()
}

/// Each node takes its own locks and those of all, holds several, and finds out what it holds.
pub fn locks() -> std::result::Result<(), RunError> {
    let run = config(1).run(|w| {
        let cells = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 8, 1)?))?;
        let (me, nodes) = (w.node().index() as u64, w.nodes() as u64);
        for key in 0..3000 {
            lock(100_000 * me + key, site())?;
        }
        for key in 0..3000 {
            unlock(100_000 * me + key)?;
        }
        barrier(1, nodes as u32, site())?;
        for turn in 0..4000 {
            let key = turn % 8;
            lock(key << 20, site())?;
            assert!(sync::holds(key << 20)?);
            let cell = &cells.row(key as usize).cells(w)[0];
            cell.store(cell.load(Relaxed) + 1, Relaxed);
            unlock(key << 20)?;
            assert!(!sync::holds(key << 20)?);
        }
        barrier(1, nodes as u32, site())?;
        // Node 0 has a lock, and the others try it.
        if me == 0 {
            lock(5, site())?;
            assert!(matches!(lock(5, site()), Err(ThreadError::Sync(_))));
        }
        barrier(1, nodes as u32, site())?;
        assert!(!sync::try_lock(5, site())?);
        barrier(1, nodes as u32, site())?;
        assert_eq!(unlock(5).is_ok(), me == 0);
        barrier(1, nodes as u32, site())?;
        if me == nodes - 1 {
            assert!(sync::try_lock(5, site())?);
            unlock(5)?;
        }
        barrier(1, nodes as u32, site())?;
        let sum = (0..8).map(|row| cells.row(row).cells(w)[0].load(Relaxed));
        Ok(sum.sum::<u64>())
    })?;
    let kinds = run.report.total().by_kind;
    let sent = kinds.get(&MessageKind::ThreadLock);
    let sent = sent.map_or(0, |sent| sent.messages);
    println!("=> {} {sent}", run.value);
    Ok(())
}

#[test]
fn a_lock_of_a_domain_takes_no_message() {
    for nodes in [1, 2, 3] {
        let expected = format!("{} 0", 4000 * nodes);
        assert_eq!(said(nodes, "domain locks", "shm", "host"), [expected]);
    }
    // Between domains it goes by messages.
    let sent = said(2, "domain locks", "shm", "node");
    assert!(sent[0].starts_with("8000 ") && !sent[0].ends_with(" 0"));
}

/// Threads of each node put numbers into a buffer, and take them out.
pub fn buffer(w: &mut Worker<'_>) -> Result<u64> {
    const EACH: u64 = 300;
    const LOCK: u64 = 7;
    let (full, empty) = (8, 9);
    let cells = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 2)?.row(0)))?;
    let cells = cells.cells(w);
    let (held, sum) = (&cells[0], &cells[1]);
    let puts = || -> std::result::Result<(), ThreadError> {
        for _ in 0..EACH {
            lock(LOCK, site())?;
            while held.load(Relaxed) == 2 {
                sync::wait(full, LOCK, site())?;
                assert!(sync::holds(LOCK)?);
            }
            held.store(held.load(Relaxed) + 1, Relaxed);
            sync::signal(empty)?;
            unlock(LOCK)?;
        }
        Ok(())
    };
    let takes = || -> std::result::Result<(), ThreadError> {
        for _ in 0..EACH {
            lock(LOCK, site())?;
            while held.load(Relaxed) == 0 {
                sync::wait(empty, LOCK, site())?;
            }
            held.store(held.load(Relaxed) - 1, Relaxed);
            sum.store(sum.load(Relaxed) + 1, Relaxed);
            sync::signal(full)?;
            unlock(LOCK)?;
        }
        Ok(())
    };
    threads::scope(w, |_, scope| {
        let putting = scope.spawn(puts)?;
        takes()?;
        putting.join().expect("it does not panic")
    })??;
    barrier(1, w.nodes() as u32, site())?;
    Ok(sum.load(Relaxed))
}

#[test]
fn a_thread_that_waits_on_a_condition_releases_the_lock_and_has_it_again() {
    for (nodes, domains) in [(1, "host"), (2, "host"), (3, "host"), (2, "node")] {
        let expected = format!("value {}", 300 * nodes);
        let said = said(nodes, "buffer", "shm", domains);
        assert_eq!(said, [expected], "{nodes} nodes");
    }
}

/// Two threads acquire two locks, each the other's second first.
pub fn crosses() -> std::result::Result<(), RunError> {
    let patience = Duration::from_millis(50);
    let run = config(1).suspect_after(patience).run(|w| {
        let (me, other) = (u64::from(w.node().0), 1 - u64::from(w.node().0));
        lock(20 + me, site())?;
        barrier(1, 2, site())?;
        lock(20 + other, site())?;
        Ok(())
    });
    run.map(|_| ())
}

/// A thread waits for a lock, and the thread that has it for the end of that one.
pub fn joins() -> std::result::Result<(), RunError> {
    let patience = Duration::from_millis(50);
    let run = config(1).suspect_after(patience).run(|w| {
        if w.node().index() == 1 {
            let handler = |_, _| lock(11, site()).map(|()| 0).expect("a lock");
            return Ok(threads::serve(w, &handler)?);
        }
        lock(11, site())?;
        threads::run(w, &|_, _| 0, |_| {
            threads::join(threads::start(NodeId(1), 0, 0)?)
        })??;
        Ok(())
    });
    run.map(|_| ())
}

#[test]
fn a_deadlock_in_a_domain_is_told_with_threads_locks_and_lines() {
    let crossed = [
        "a deadlock",
        "the program of node 0 waits for lock 0x15 at",
        "the program of node 1 waits for lock 0x14 at",
        "tests/memory/domain_locks.rs:",
    ];
    let joined = [
        "a deadlock",
        "waits for the end of thread 1 of node 0 on node 1",
    ];
    for (program, expected) in [("crosses", &crossed[..]), ("joins", &joined)] {
        for ended in run_in(2, program, "shm", "host") {
            assert_eq!(ended.code, Some(1), "{program}: {}", ended.all);
            // What a panic says is wrapped.
            let words = ended.all.split_whitespace().collect::<Vec<_>>().join(" ");
            for expected in expected {
                assert!(words.contains(expected), "{program}: {words}");
            }
        }
    }
}

/// A node has a lock, and is killed. The others wait for it.
pub fn dies_with_it(w: &mut Worker<'_>) -> Result<()> {
    let victim = std::env::var(killed::VICTIM).expect("a victim");
    let is_victim = victim.starts_with(&w.node().index().to_string());
    if is_victim {
        lock(3, site())?;
    }
    barrier(1, w.nodes() as u32, site())?;
    killed::dies_soon(w);
    if is_victim {
        std::thread::sleep(Duration::MAX);
    }
    threads::scope(w, |_, scope| {
        let beside = scope.spawn(|| lock(3, site()))?;
        let own = lock(3, site());
        assert!(own.is_err() && beside.join().expect("it does not panic").is_err());
        own
    })??;
    Ok(())
}

#[test]
fn threads_that_wait_for_a_lock_of_a_killed_process_get_an_error() {
    for victim in [0, 1] {
        let also = |_| {
            let said = [
                ("DHOLE_TRANSPORT", "shm".to_owned()),
                ("DHOLE_TEST_DOMAINS", "host".to_owned()),
                (killed::VICTIM, format!("{victim} 2000")),
            ];
            said.map(|(name, value)| (name.to_owned(), value)).to_vec()
        };
        for (node, ended) in cluster::run_with(3, "dies with a lock", also)
            .iter()
            .enumerate()
        {
            let code = if node == victim { None } else { Some(1) };
            assert_eq!(ended.code, code, "{}", ended.all);
            let lost = format!("node {victim}");
            assert!(node == victim || ended.all.contains(&lost), "{}", ended.all);
        }
    }
}

/// A run ends while a thread has a lock. The next run finds it free.
pub fn keeps() -> std::result::Result<(), RunError> {
    for _ in 0..2 {
        config(1).run(|w| {
            lock(u64::from(w.node().0), site())?;
            barrier(1, w.nodes() as u32, site())?;
            assert!(!sync::try_lock(1 - u64::from(w.node().0), site())?);
            Ok(barrier(1, w.nodes() as u32, site())?)
        })?;
    }
    println!("=> free");
    Ok(())
}

#[test]
fn a_lock_that_is_held_at_the_end_of_a_run_is_free_in_the_next() {
    assert_eq!(said(2, "keeps locks", "shm", "host"), ["free"]);
}
