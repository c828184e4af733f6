//! Threads of several nodes wait for each other by numbers, and start each other.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dhole::memory;
use dhole::memory::sync::{self, acquire, barrier, lock, post, unlock};
use dhole::memory::threads::{self, ThreadError};
use dhole::{CallSite, Error, MessageKind, NodeId, Result, Run, Worker};

use crate::{cluster, config, everywhere};

const LOCK: u64 = 11;
const TURNS: u64 = 40;

#[track_caller]
fn site() -> CallSite {
    CallSite::caller()
}

fn sent<R>(run: &Run<R>, kind: MessageKind) -> u64 {
    run.report.total().by_kind[&kind].messages
}

/// Threads of each node increment a number under a lock, each in turns with a barrier after some.
pub fn increments_under_a_lock(w: &mut Worker<'_>, each: u32) -> Result<u64> {
    let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
    let parties = each * w.nodes() as u32;
    let body = || -> std::result::Result<u32, ThreadError> {
        let mut first = 0;
        for turn in 0..TURNS {
            lock(LOCK, site())?;
            cell.store(cell.load(Relaxed) + 1, Relaxed);
            unlock(LOCK)?;
            if turn % 10 == 9 {
                first += u32::from(barrier(LOCK, parties, site())?);
                let done = (turn + 1) * u64::from(parties);
                assert_eq!(cell.load(Relaxed), done);
                barrier(LOCK, parties, site())?;
            }
        }
        Ok(first)
    };
    let firsts = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
    threads::scope(w, |_, scope| {
        for _ in 1..each {
            scope.spawn(|| firsts.fetch_add(body().expect("turns").into(), Relaxed))?;
        }
        firsts.fetch_add(body()?.into(), Relaxed);
        Ok::<(), ThreadError>(())
    })??;
    w.barrier()?;
    // One thread of all is the first, each time.
    assert_eq!(firsts.load(Relaxed), TURNS / 10);
    Ok(cell.load(Relaxed))
}

#[test]
fn a_lock_is_one_thread_s_at_a_time() {
    for (nodes, each) in [(1, 4), (2, 3), (3, 1)] {
        let run = config(nodes).run(|w| increments_under_a_lock(w, each));
        let sum = TURNS * u64::from(each) * nodes as u64;
        assert_eq!(run.expect("a run").value, sum, "{nodes} nodes");
    }
    let sum = TURNS * 6;
    assert_eq!(
        cluster::succeeds(2, "under a lock"),
        [format!("value {sum}")]
    );
}

#[test]
fn a_lock_stays_where_it_was_held_last() {
    let runs = everywhere(3, 0, |w| {
        // Each node has locks of its own, of which most are another's to manage.
        for turn in 0..100 {
            for key in 0..30 {
                if key as usize % w.nodes() == w.node().index() {
                    lock(key, site())?;
                    assert!(
                        matches!(lock(key, site()), Err(ThreadError::Sync(_))),
                        "{turn}"
                    );
                    unlock(key)?;
                    assert!(unlock(key).is_err());
                }
            }
        }
        Ok(w.barrier()?)
    });
    for run in runs {
        // A request and the lock, and nothing after that: for those that others manage.
        assert_eq!(sent(&run, MessageKind::ThreadLock), 2 * 16);
    }
}

#[test]
fn a_barrier_takes_two_messages_for_each_other_node() {
    let runs = everywhere(3, 0, |_| {
        for _ in 0..50 {
            barrier(5, 3, site())?;
        }
        Ok(())
    });
    for run in runs {
        assert_eq!(sent(&run, MessageKind::ThreadBarrier), 50 * 4);
    }
    let none = config(1).run(|_| Ok(barrier(5, 0, site())?));
    let words = none.map(|_| ()).expect_err("nobody reaches it").to_string();
    assert!(words.contains("barrier 0x5 of no threads"), "{words}");
    let refused = config(2).run(|w| {
        let refused = match w.node().index() {
            // Node 1 comes when node 0 waits, or the other way round: one of them is refused.
            0 => barrier(5, 2, site()).is_err(),
            _ => barrier(5, 3, site()).is_err(),
        };
        assert!(refused);
        Err::<(), Error>(Error::program("refused"))
    });
    let words = refused.map(|_| ()).expect_err("one is refused").to_string();
    assert!(words.contains("refused"), "{words}");
}

#[test]
fn a_node_of_which_fewer_threads_come_to_a_barrier_than_before_tells_of_those() {
    // Some of these numbers are managed by each node.
    const KEYS: std::ops::Range<u64> = 0..6;
    let run = config(2).run(|w| {
        threads::scope(w, |_, scope| {
            scope.spawn(|| KEYS.for_each(|key| _ = barrier(key, 4, site()).expect("a barrier")))?;
            for key in KEYS {
                barrier(key, 4, site())?;
            }
            Ok::<(), ThreadError>(())
        })??;
        // Two of each node went on together before.
        for key in KEYS {
            barrier(key, 2, site())?;
        }
        Ok(w.barrier()?)
    });
    run.expect("a run");
}

#[test]
fn a_bounded_buffer_hands_on_what_is_put_into_it() {
    const ITEMS: u64 = 60;
    let (full, empty) = (1, 2);
    let runs = everywhere(3, 0, |w| {
        // The number of items, the next one to be put and to be taken; and what was taken.
        let cells = w
            .once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 4)?.row(0)))?
            .cells(w);
        let [held, put, taken, sum] = [0, 1, 2, 3].map(|place: usize| &cells[place]);
        loop {
            lock(LOCK, site())?;
            if w.node().index() == 0 {
                while held.load(Relaxed) == 3 {
                    sync::wait(full, LOCK, site())?;
                }
                held.fetch_add(1, Relaxed);
                let last = put.fetch_add(1, Relaxed) + 1 == ITEMS;
                match last {
                    true => sync::broadcast(empty)?,
                    false => sync::signal(empty)?,
                }
                unlock(LOCK)?;
                if last {
                    break;
                }
                continue;
            }
            while held.load(Relaxed) == 0 && taken.load(Relaxed) < ITEMS {
                sync::wait(empty, LOCK, site())?;
            }
            let ends = taken.load(Relaxed) == ITEMS;
            if !ends {
                held.fetch_sub(1, Relaxed);
                sum.fetch_add(taken.fetch_add(1, Relaxed), Relaxed);
                sync::signal(full)?;
                if taken.load(Relaxed) == ITEMS {
                    sync::broadcast(empty)?;
                }
            }
            unlock(LOCK)?;
            if ends {
                break;
            }
        }
        w.barrier()?;
        Ok(sum.load(Relaxed))
    });
    for run in runs {
        assert_eq!(run.value, ITEMS * (ITEMS - 1) / 2);
    }
}

#[test]
fn semaphores_hand_a_turn_round() {
    let runs = everywhere(3, 0, |w| {
        let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
        let (me, nodes) = (w.node().0 as u64, w.nodes() as u64);
        if me == 0 {
            sync::set(100, 1)?;
            assert!(sync::try_acquire(100)? && !sync::try_acquire(100)?);
            post(100, 1)?;
        }
        for turn in 0..20 {
            acquire(100 + me, site())?;
            assert_eq!(cell.load(Relaxed), turn * nodes + me);
            cell.store(turn * nodes + me + 1, Relaxed);
            post(100 + (me + 1) % nodes, 1)?;
        }
        w.barrier()?;
        Ok(cell.load(Relaxed))
    });
    for run in runs {
        assert_eq!(run.value, 60);
    }
}

#[test]
fn a_lock_that_another_thread_has_is_tried_in_vain() {
    let runs = everywhere(2, 0, |w| {
        let mut tried = Vec::new();
        for key in 0..4 {
            if w.node().index() == 0 {
                lock(key, site())?;
            }
            w.barrier()?;
            if w.node().index() == 1 {
                tried.push(sync::try_lock(key, site())?);
                tried.push(sync::try_lock(key, site())?);
            }
            w.barrier()?;
            if w.node().index() == 0 {
                unlock(key)?;
            }
            w.barrier()?;
            if w.node().index() == 1 {
                lock(key, site())?;
                assert!(!sync::try_lock(key, site())?);
                unlock(key)?;
                assert!(sync::try_lock(key, site())?);
            }
        }
        assert!(!tried.contains(&true));
        Ok(w.barrier()?)
    });
    assert!(
        runs.iter()
            .all(|run| sent(run, MessageKind::ThreadLock) > 0)
    );
}

/// Two threads acquire two locks, each the other's second first.
fn crosses(w: &mut Worker<'_>) -> Result<()> {
    let (me, other) = (u64::from(w.node().0), 1 - u64::from(w.node().0));
    lock(20 + me, site())?;
    barrier(1, 2, site())?;
    lock(20 + other, site())?;
    Ok(())
}

#[test]
fn a_deadlock_is_told_with_threads_locks_and_lines() {
    let patience = Duration::from_millis(20);
    let settings = dhole::sim::Settings::fixed_cost(2);
    let config = || config(2).suspect_after(patience);
    for run in [config().run(crosses), config().simulate(settings, crosses)] {
        let words = run.map(|_| ()).expect_err("they wait for ever").to_string();
        for expected in [
            "a deadlock",
            "the program of node 0 waits for lock 0x15 at",
            "the program of node 1 waits for lock 0x14 at",
            "tests/memory/sync.rs:",
        ] {
            assert!(words.contains(expected), "{words}");
        }
    }
    // A thread waits for a lock, and the thread that has it for the end of that one.
    let run = config().run(|w| {
        if w.node().index() == 1 {
            let handler = |_, _| lock(LOCK, site()).map(|()| 0).expect("a lock");
            return Ok(threads::serve(w, &handler)?);
        }
        lock(LOCK, site())?;
        threads::run(w, &|_, _| 0, |_| {
            threads::join(threads::start(NodeId(1), 0, 0)?)
        })??;
        Ok(())
    });
    let words = run.map(|_| ()).expect_err("they wait for ever").to_string();
    // What a panic says is wrapped.
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let joins = "waits for the end of thread 1 of node 0 on node 1";
    assert!(words.contains(joins), "{words}");
}

/// Node 0 starts threads on all nodes, which start others, and adds up what they return.
pub fn starts(w: &mut Worker<'_>) -> Result<u64> {
    let nodes = w.nodes() as u64;
    let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
    let handler = |entry: u64, argument: u64| {
        cell.fetch_add(1, Relaxed);
        let me = threads::node().expect("a thread of a node");
        if entry == 0 {
            // All threads of one kind are there at once.
            barrier(7, 2 * nodes as u32, site()).expect("a barrier");
            return u64::from(me.0) + argument;
        }
        let next = NodeId((me.0 + 1) % nodes as u16);
        let started = threads::start(next, entry - 1, argument).expect("a start");
        threads::join(started).expect("its end")
    };
    if w.node().index() != 0 {
        threads::serve(w, &handler)?;
        return Ok(0);
    }
    let sum = threads::run(w, &handler, |_| {
        let all = (0..2 * nodes).map(|it| {
            let node = NodeId((it % nodes) as u16);
            threads::start(node, 1, 10 * it)
        });
        let all = all.collect::<std::result::Result<Vec<_>, _>>()?;
        let mut sum = 0;
        for started in &all {
            sum += threads::join(*started)?;
        }
        assert!(threads::join(all[0]).is_err(), "it was waited for");
        assert!(
            threads::join(threads::ThreadId(99)).is_err(),
            "there is none"
        );
        assert!(threads::start(NodeId(nodes as u16), 0, 0).is_err());
        Ok::<u64, ThreadError>(sum)
    })??;
    Ok(sum + cell.load(Relaxed))
}

/// What [`starts`] comes to.
fn started(nodes: u64) -> u64 {
    let arguments = 10 * (2 * nodes) * (2 * nodes - 1) / 2;
    let numbers = 2 * nodes * (nodes - 1) / 2;
    arguments + numbers + 4 * nodes
}

#[test]
fn nodes_start_threads_on_each_other_and_hear_of_their_ends() {
    for nodes in 1..=3 {
        let run = config(nodes).run(starts).expect("a run");
        assert_eq!(run.value, started(nodes as u64), "{nodes} nodes");
    }
    assert_eq!(
        cluster::succeeds(3, "starts"),
        [format!("value {}", started(3))]
    );
}

#[test]
fn a_simulated_node_runs_one_started_thread_at_a_time() {
    let settings = dhole::sim::Settings::fixed_cost(2);
    let run = config(2).simulate(settings, |w| {
        let handler = |_, argument| {
            barrier(1, 2, site()).expect("a barrier");
            argument
        };
        if w.node().index() != 0 {
            threads::serve(w, &handler)?;
            return Ok((0, false));
        }
        let found = threads::run(w, &handler, |_| {
            let one = threads::start(NodeId(1), 0, 8)?;
            let more = threads::start(NodeId(1), 0, 9)?;
            let refused = threads::join(more).is_err();
            barrier(1, 2, site())?;
            Ok::<_, ThreadError>((threads::join(one)?, refused))
        })??;
        Ok(found)
    });
    assert_eq!(run.expect("a run").value, (8, true));
}

#[test]
fn a_thread_that_spins_hears_of_the_end_of_the_run() {
    let run = config(2).run(|w| {
        let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?.get(w);
        if w.node().index() == 1 {
            return Err(Error::program("node 1 has had enough"));
        }
        threads::scope(w, |_, scope| {
            let spins = || {
                while cell.load(Relaxed) == 0 {
                    sync::pause()?;
                }
                Ok::<(), ThreadError>(())
            };
            let thread = scope.spawn(spins)?;
            let [own, other] = [spins(), thread.join().expect("it does not panic")];
            assert!(own.is_err() && other.is_err());
            own
        })??;
        Ok(())
    });
    let words = run.map(|_| ()).expect_err("node 1 fails").to_string();
    assert!(words.contains("node 1 has had enough"), "{words}");
}

#[test]
fn a_thread_of_no_node_is_told_so() {
    assert_eq!(lock(1, site()), Err(ThreadError::NoNode));
    assert_eq!(threads::current(), Err(ThreadError::NoNode));
}
