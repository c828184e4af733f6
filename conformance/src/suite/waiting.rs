//! Read-write locks, semaphores and condition variables.

use dhole::{
    Condvar, Error, Lock, Lockable, MessageKind, ObjectLock, Own, Ref, RwLock, Semaphore, Share,
};

use super::{assert_says, fail, succeed};
use crate::Platform;

/// A pair that is always changed together is never seen half changed, and no change is lost.
pub fn readers_never_see_half_of_what_a_writer_does(on: &dyn Platform) {
    let outcome = succeed(on, 4, |w| {
        let pair = w.once(|w| Ok(w.alloc_range(2, |_| 0_u64)))?;
        let lock = RwLock::numbered(3);
        for step in 0..20 {
            if step % 4 == w.node().index() {
                lock.with_write(w, |w| {
                    *pair.at(0).get_mut(w) += 1;
                    *pair.at(1).get_mut(w) += 1;
                    Ok(())
                })?;
            }
            let seen = lock.with_read(w, |w| Ok((pair.at(0).read(w), pair.at(1).read(w))))?;
            assert_eq!(seen.0, seen.1, "on {}", w.node());
            w.work(w.random() % 5_000);
        }
        w.barrier()?;
        Ok(pair.at(0).read(w))
    });
    assert_eq!(outcome.value, 20);
}

/// All nodes read under a lock at once: they meet at a barrier while they hold it.
pub fn readers_hold_a_lock_at_once(on: &dyn Platform) {
    succeed(on, 4, |w| {
        let held = RwLock::numbered(1).read(w)?;
        w.barrier()?;
        Ok(held.release(w)?)
    });
}

/// Numbers go from node to node through one object and two semaphores.
pub fn semaphores_hand_over_what_was_written(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let slot = w.once(|w| Ok(w.alloc(0_u64)))?;
        let (empty, full) = (Semaphore::numbered(1, 1), Semaphore::numbered(2, 0));
        for number in 1..=20 {
            if w.node().index() == 0 {
                empty.acquire(w)?;
                *slot.get_mut(w) = number;
                full.release(w)?;
            } else {
                full.acquire(w)?;
                assert_eq!(slot.read(w), number);
                empty.release(w)?;
            }
        }
        Ok(())
    });
}

/// Three nodes take turns, in the order of their numbers.
pub fn conditions_wake_those_whose_turn_it_is(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let turn = w.once(|w| Ok(w.alloc(0_u64)))?;
        let lock = Lock::numbered(1);
        let changed = Condvar::numbered(lock, 0);
        let mut held = lock.acquire(w)?;
        for round in 0..5 {
            let mine = round * 3 + w.node().index() as u64;
            while turn.read(w) != mine {
                held = changed.wait(w, held)?;
            }
            *turn.get_mut(w) += 1;
            changed.notify_all(w)?;
        }
        held.release(w)?;
        w.barrier()?;
        Ok(turn.read(w))
    });
    assert_eq!(outcome.value, 15);
}

/// The same under a read-write lock, which has a condition of its own. Readers look meanwhile.
pub fn conditions_of_read_write_locks_wake_those_whose_turn_it_is(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let turn = w.once(|w| Ok(w.alloc(0_u64)))?;
        let lock = RwLock::numbered(1);
        let mut before = 0;
        for round in 0..5 {
            let mine = round * 3 + w.node().index() as u64;
            let mut held = lock.write(w)?;
            while turn.read(w) != mine {
                held = lock.wait(w, held)?;
            }
            *turn.get_mut(w) += 1;
            lock.notify_all(w)?;
            held.release(w)?;
            let seen = lock.with_read(w, |w| Ok(turn.read(w)))?;
            assert!(seen > before, "on {}", w.node());
            before = seen;
        }
        w.barrier()?;
        Ok(turn.read(w))
    });
    assert_eq!(outcome.value, 15);
}

/// The release that begins the wait, and the lock that ends it. The notification takes none.
pub fn a_wait_under_a_read_write_lock_takes_two_messages(on: &dyn Platform) {
    let outcome = succeed(on, 2, |w| {
        // Node 0 manages both.
        let (lock, waits) = (RwLock::numbered(0), Semaphore::numbered(2, 0));
        let flag = w.once(|w| Ok(w.alloc(false)))?;
        if w.node().index() == 1 {
            let mut held = lock.write(w)?;
            waits.release(w)?;
            while !flag.read(w) {
                held = lock.wait(w, held)?;
            }
            return Ok(held.release(w)?);
        }
        waits.acquire(w)?;
        lock.with_write(w, |w| {
            *flag.get_mut(w) = true;
            Ok(lock.notify_one(w)?)
        })
    });
    let sent = |kind| {
        let nodes = outcome.counters.iter();
        nodes.map(|node| node.sent(kind)).sum::<u64>()
    };
    // Of node 1: the lock, the permit, the wait, the lock again.
    assert_eq!(sent(MessageKind::SyncRequest), 1);
    assert_eq!(sent(MessageKind::SyncGrant), 2);
    assert_eq!(sent(MessageKind::SyncRelease), 3);
    assert_eq!(sent(MessageKind::Notify), 0);
}

/// A node waits on the condition of a read-write lock and keeps another lock, for which the node
/// waits that has the first.
pub fn a_deadlock_through_a_condition_of_a_read_write_lock_is_told(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        let (lock, kept) = (RwLock::numbered(4), Lock::numbered(3));
        let ready = Semaphore::numbered(2, 0);
        if w.node().index() == 0 {
            let outer = kept.acquire(w)?;
            let held = lock.write(w)?;
            ready.release(w)?;
            lock.wait(w, held)?.release(w)?;
            return Ok(outer.release(w)?);
        }
        ready.acquire(w)?;
        lock.with_write(w, |w| {
            kept.with(w, |_| Ok(()))?;
            Ok(lock.notify_one(w)?)
        })
    });
    assert_says(
        &error,
        &[
            "node 0 waits on the condition of read-write lock 4 at",
            "node 1 waits for lock 3 at",
            "waiting.rs:",
        ],
    );
}

/// Accounts of all nodes, each with the lock of its object, between which all nodes transfer.
pub fn what_is_written_under_the_locks_of_objects_is_never_lost(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let own = w.alloc(100_i64);
        let accounts: Vec<Ref<i64>> = w.all_gather(own)?;
        for _ in 0..20 {
            let (from, to) = (w.random() % 3, w.random() % 3);
            if from == to {
                continue;
            }
            // In the order of the accounts, so that nodes do not wait for each other.
            let (low, high) = (from.min(to) as usize, from.max(to) as usize);
            accounts[low].lock().with(w, |w| {
                accounts[high].lock().with(w, |w| {
                    *accounts[from as usize].get_mut(w) -= 1;
                    *accounts[to as usize].get_mut(w) += 1;
                    Ok(())
                })
            })?;
            let sum = |w: &mut dhole::Worker<'_>| Ok(accounts[low].read(w));
            accounts[low].lock().with_read(w, sum)?;
        }
        w.barrier()?;
        Ok(accounts.iter().map(|it| it.read(w)).sum::<i64>())
    });
    assert_eq!(outcome.value, 300);
}

/// Nodes take turns under the lock of an object, and of what an object owns.
pub fn the_condition_of_an_objects_lock_wakes_those_whose_turn_it_is(on: &dyn Platform) {
    #[derive(Share)]
    struct Game {
        turn: Own<u64>,
        lock: Option<ObjectLock>,
    }
    let outcome = succeed(on, 3, |w| {
        let own = (w.node().index() == 1).then(|| {
            let turn = Own::from(w.alloc(0_u64));
            let lock = Some(turn.lock());
            w.alloc(Game { turn, lock })
        });
        let games: Vec<Option<Ref<Game>>> = w.all_gather(own)?;
        let game = games[1].expect("node 1 has made it");
        let lock = game.get(w).turn.lock();
        assert_eq!(game.get(w).lock, Some(lock));
        for round in 0..5 {
            let mine = round * 3 + w.node().index() as u64;
            let mut held = lock.acquire(w)?;
            loop {
                let turn: Ref<u64> = *game.get(w).turn;
                if turn.read(w) == mine {
                    *turn.get_mut(w) += 1;
                    break;
                }
                held = lock.wait(w, held)?;
            }
            lock.notify_all(w)?;
            held.release(w)?;
        }
        w.barrier()?;
        let turn: Ref<u64> = *game.get(w).turn;
        Ok(turn.read(w))
    });
    assert_eq!(outcome.value, 15);
}

/// An object, a row and an array have locks that exclude, of which the home is the node that
/// allocated them: that one locks without a message, others with a request, a grant and a release.
pub fn the_lock_of_an_object_is_kept_at_its_home(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let own = (
            w.alloc(0_u64),
            w.alloc_rows::<u64>(1, 4).row(0),
            w.alloc_array::<u64>(9),
        );
        let all = w.all_gather(own)?;
        let (object, row, array) = all[2];
        let locks = [object.lock(), row.lock(), array.lock()];
        assert!(locks[0] != locks[1] && locks[1] != locks[2] && locks[0] != locks[2]);
        for node in 0..3 {
            if w.node().index() == node {
                locks
                    .into_iter()
                    .try_for_each(|it| it.with(w, |_| Ok(())))?;
            }
            w.barrier()?;
        }
        Ok(())
    });
    let sent = |kind| {
        let nodes = outcome.counters.iter();
        nodes.map(|node| node.sent(kind)).collect::<Vec<u64>>()
    };
    assert_eq!(sent(MessageKind::SyncRequest), [3, 3, 0]);
    assert_eq!(sent(MessageKind::SyncGrant), [0, 0, 6]);
    assert_eq!(sent(MessageKind::SyncRelease), [3, 3, 0]);
    assert_eq!(sent(MessageKind::SyncForward), [0, 0, 0]);
}

/// The lock outlives its object, so that nodes that wait for it go on.
pub fn the_lock_of_a_freed_object_is_still_a_lock(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let object = w.once(|w| Ok(w.alloc(1_u64)))?;
        let lock = object.lock();
        if w.node().index() == 0 {
            lock.with(w, |w| Ok(w.free(object)?))?;
        }
        w.barrier()?;
        lock.with(w, |_| Ok(()))?;
        lock.with_read(w, |_| Ok(()))
    });
}

/// Two locks of objects are taken crosswise, and a condition is waited on that no node notifies.
pub fn a_deadlock_of_the_locks_of_objects_names_the_objects(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        let own = w.alloc(0_u64);
        let all: Vec<Ref<u64>> = w.all_gather(own)?;
        let me = w.node().index();
        let held = all[me].lock().acquire(w)?;
        w.barrier()?;
        all[1 - me].lock().with(w, |_| Ok(()))?;
        Ok(held.release(w)?)
    });
    assert_says(
        &error,
        &[
            "node 0 waits for the lock of object 0x",
            "node 1 waits for the lock of object 0x",
            "(to write) at",
            "waiting.rs:",
        ],
    );
    let error = fail(on, 2, |w| {
        let object = w.once(|w| Ok(w.alloc(0_u64)))?;
        let held = object.lock().acquire(w)?;
        Ok(object.lock().wait(w, held)?.release(w)?)
    });
    assert_says(
        &error,
        &["node 1 waits on the condition of the lock of object 0x"],
    );
}

/// A lock that is not held can be neither waited on nor notified, and no lock is taken twice.
pub fn misused_locks_of_objects_are_errors_with_their_places(on: &dyn Platform) {
    type Misuse = fn(&mut dhole::Worker<'_>, [ObjectLock; 2]) -> Result<(), Error>;
    let cases: [(Misuse, &[&str]); 4] = [
        (
            |w, [lock, _]| Ok(lock.notify_all(w)?),
            &[
                "notifying the condition of the lock of object 0x",
                "does not hold the lock",
            ],
        ),
        (
            |w, [lock, other]| {
                let held = other.acquire(w)?;
                Ok(lock.wait(w, held)?.release(w)?)
            },
            &[
                "waiting on the condition of the lock of object 0x",
                "it was given the lock of object 0x",
            ],
        ),
        (
            |w, [lock, _]| lock.with(w, |w| lock.with(w, |_| Ok(()))),
            &["the lock of object 0x", "has held the lock since"],
        ),
        (
            |w, [lock, _]| {
                let held = lock.acquire(w)?;
                let other = RwLock::numbered(1);
                Ok(other.wait(w, held)?.release(w)?)
            },
            &[
                "waiting on the condition of read-write lock 1 on",
                "it was given the lock of object 0x",
            ],
        ),
    ];
    for (misuse, words) in cases {
        let error = fail(on, 2, |w| {
            let locks = [w.alloc(0_u64).lock(), w.alloc(0_u64).lock()];
            match w.node().index() {
                0 => misuse(w, locks),
                _ => Ok(()),
            }
        });
        assert_says(&error, words);
    }
}

/// What is made at run time lives in objects, also where there may be none.
pub fn locks_of_all_kinds_live_in_objects(on: &dyn Platform) {
    #[derive(Share, Clone, Copy)]
    struct Desk {
        lock: Option<Lock>,
        none: Option<Lock>,
        changed: Option<Condvar>,
        rules: Option<RwLock>,
        seats: Option<Semaphore>,
        next: Option<Ref<Desk>>,
    }
    succeed(on, 3, |w| {
        let desk = w.once(|w| {
            let lock = w.new_lock();
            let desk = Desk {
                lock: Some(lock),
                none: None,
                changed: Some(w.new_condvar(lock)),
                rules: Some(w.new_rw_lock()),
                seats: Some(w.new_semaphore(2)),
                next: None,
            };
            Ok(w.alloc(desk))
        })?;
        let desk = desk.read(w);
        let (Some(lock), Some(changed), Some(rules), Some(seats)) =
            (desk.lock, desk.changed, desk.rules, desk.seats)
        else {
            panic!("they were put in")
        };
        assert!(desk.none.is_none() && desk.next.is_none());
        seats.acquire(w)?;
        rules.with_read(w, |w| lock.with(w, |w| Ok(changed.notify_all(w)?)))?;
        Ok(seats.release(w)?)
    });
}

/// A read-write lock and a semaphore cost two messages to get where the manager released last,
/// and one to give back; at their manager nothing.
pub fn gates_cost_what_they_should(on: &dyn Platform) {
    let outcome = succeed(on, 2, |w| {
        let (lock, permit) = (RwLock::numbered(0), Semaphore::numbered(0, 1));
        for node in 0..2 {
            if w.node().index() == node {
                lock.with_write(w, |_| Ok(()))?;
                permit.acquire(w)?;
                permit.release(w)?;
            }
            w.barrier()?;
        }
        Ok(())
    });
    let sent = |kind| {
        outcome
            .counters
            .iter()
            .map(|node| node.sent(kind))
            .sum::<u64>()
    };
    assert_eq!(sent(MessageKind::SyncRequest), 2);
    assert_eq!(sent(MessageKind::SyncGrant), 2);
    assert_eq!(sent(MessageKind::SyncRelease), 2);
    assert_eq!(sent(MessageKind::SyncForward), 0);
}

/// All wait, for different things, and none can wake another.
pub fn a_stall_is_told_with_every_wait(on: &dyn Platform) {
    let error = fail(on, 3, |w| {
        match w.node().index() {
            0 => Semaphore::numbered(5, 0).acquire(w)?,
            1 => {
                let lock = Lock::numbered(2);
                let held = lock.acquire(w)?;
                Condvar::numbered(lock, 7).wait(w, held)?.release(w)?;
            }
            _ => {}
        }
        Ok(())
    });
    assert_says(
        &error,
        &[
            "node 0 waits for a permit of semaphore 5 at",
            "node 1 waits on condition 7 of lock 2 at",
            "node 2 has ended, and waits at the end of the run",
            "waiting.rs:",
        ],
    );
}

/// Two read-write locks are taken crosswise.
pub fn a_deadlock_of_read_write_locks_is_told_with_its_places(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        let me = w.node().index() as u32;
        let held = RwLock::numbered(me).read(w)?;
        w.barrier()?;
        RwLock::numbered(1 - me).with_write(w, |_| Ok(()))?;
        Ok(held.release(w)?)
    });
    assert_says(
        &error,
        &[
            "node 0 waits for read-write lock 1 (to write) at",
            "node 1 waits for read-write lock 0 (to write) at",
        ],
    );
}

/// A lock that is not held can be neither released nor waited on, and the error says so.
pub fn misused_locks_are_errors_with_their_places(on: &dyn Platform) {
    type Misuse = fn(&mut dhole::Worker<'_>) -> Result<(), Error>;
    let cases: [(Misuse, &[&str]); 8] = [
        (
            |w| Ok(Condvar::numbered(Lock::numbered(1), 0).notify_one(w)?),
            &["notifying condition 0 of lock 1 at", "does not hold lock 1"],
        ),
        (
            |w| {
                let held = Lock::numbered(2).acquire(w)?;
                let held = Condvar::numbered(Lock::numbered(1), 0).wait(w, held)?;
                Ok(held.release(w)?)
            },
            &["waiting on condition 0 of lock 1 on", "it was given lock 2"],
        ),
        (
            |w| Ok(RwLock::numbered(1).notify_one(w)?),
            &[
                "notifying the condition of read-write lock 1 at",
                "does not hold the lock",
            ],
        ),
        (
            |w| {
                let held = RwLock::numbered(2).write(w)?;
                let held = RwLock::numbered(1).wait(w, held)?;
                Ok(held.release(w)?)
            },
            &[
                "waiting on the condition of read-write lock 1 on",
                "it was given read-write lock 2 (to write)",
            ],
        ),
        (
            |w| {
                let held = RwLock::numbered(1).write(w)?;
                Ok(RwLock::numbered(1).wait(w, held)?.release(w)?)
            },
            &["node 0 waits on the condition of read-write lock 1 at"],
        ),
        (
            |w| {
                let held = RwLock::numbered(1).read(w)?;
                RwLock::numbered(1).with_write(w, |_| Ok(()))?;
                Ok(held.release(w)?)
            },
            &["read-write lock 1 (to write) at", "has held the lock since"],
        ),
        (
            |w| Ok(Semaphore::numbered(0, u32::MAX).release(w)?),
            &["releasing semaphore 0 on node 0 at", "4294967295 permits"],
        ),
        (
            |w| {
                Semaphore::numbered(0, 1).acquire(w)?;
                Ok(Semaphore::numbered(0, 2).acquire(w)?)
            },
            &["semaphore 0", "made with 2 permits", "made with 1"],
        ),
    ];
    for (misuse, words) in cases {
        let error = fail(on, 2, |w| match w.node().index() {
            0 => misuse(w),
            _ => Ok(()),
        });
        assert_says(&error, words);
    }
}

/// A dropped guard is released, so that others go on, and the report says so.
pub fn a_read_write_lock_dropped_unreleased_is_released_and_told(on: &dyn Platform) {
    let outcome = succeed(on, 2, |w| {
        drop(RwLock::numbered(1).write(w)?);
        w.barrier()?;
        RwLock::numbered(1).with_read(w, |_| Ok(()))
    });
    let told = |warning: &&String| warning.contains("read-write lock 1 (to write), acquired on");
    assert_eq!(outcome.warnings.iter().filter(told).count(), 2);
}
