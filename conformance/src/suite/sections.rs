//! Sections: critical sections that run at the home of their lock's object, or at their callers.

use dhole::{
    Coherence, Error, Lockable, MessageKind, Own, Ref, Result, Row, Section, Semaphore, Share,
    Worker, section,
};

use super::{assert_says, fail, has_member, keeps_pages, succeed};
use crate::Platform;

/// Allocates an object whose home is this node, where objects can have homes.
fn at_home<T: Share>(on: &dyn Platform, w: &mut Worker<'_>, value: T) -> Ref<T> {
    match keeps_pages(on) {
        true => w.alloc(value),
        false => w.under(Coherence::Home).alloc(value),
    }
}

fn add(s: &mut Section<'_>, (x, by): (Ref<i64>, i64)) -> Result<i64> {
    let x = s.get_mut(x)?;
    *x += by;
    Ok(*x)
}

/// Takes from an account what it has; waits until it has that.
fn take(s: &mut Section<'_>, (account, amount): (Ref<i64>, i64)) -> Result<()> {
    let account = s.get_mut(account)?;
    let is_covered = *account >= amount;
    *account -= amount;
    s.wait_until(is_covered)
}

/// Nodes add to counters of all nodes, in sections and under the locks.
pub fn sections_lose_no_increment(on: &dyn Platform) {
    const EACH: i64 = 30;
    let outcome = succeed(on, 3, |w| {
        let own = at_home(on, w, 0_i64);
        let counters: Vec<Ref<i64>> = w.all_gather(own)?;
        let mut last = [0; 3];
        for _ in 0..EACH {
            let of = w.random() as usize % 3;
            let counter = counters[of];
            let now = match w.random() % 4 {
                0 => counter.lock().with(w, |w| {
                    *counter.get_mut(w) += 1;
                    Ok(counter.read(w))
                })?,
                _ => counter.lock().run(w, (counter, 1), section!(add))?,
            };
            assert!(now > last[of], "{now} after {}", last[of]);
            last[of] = now;
            if w.random().is_multiple_of(4) {
                let seen = counter.lock().with_read(w, |w| Ok(counter.read(w)))?;
                assert!(seen >= now, "{seen} after {now}");
                w.work(w.random() % 5_000);
            }
        }
        w.barrier()?;
        Ok(counters.iter().map(|it| it.read(w)).sum::<i64>())
    });
    assert_eq!(outcome.value, 3 * EACH);
}

/// Transfers between accounts of all nodes: two sections each, of which the first waits until the
/// account has enough.
pub fn a_section_waits_until_its_condition_is_true(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let own = at_home(on, w, 2_i64);
        let accounts: Vec<Ref<i64>> = w.all_gather(own)?;
        for round in 0..30 {
            let amount = 1 + round % 2;
            // An account gets as much as is taken. If all waited, no account would have two.
            let (from, to) = ((w.node().index() + 1) % 3, w.node().index());
            accounts[from]
                .lock()
                .run(w, (accounts[from], amount), section!(take))?;
            accounts[to]
                .lock()
                .run(w, (accounts[to], amount), section!(add))?;
        }
        w.barrier()?;
        let left: Vec<i64> = accounts.iter().map(|it| it.read(w)).collect();
        assert!(left.iter().all(|it| *it >= 0), "{left:?}");
        Ok(left.iter().sum::<i64>())
    });
    assert_eq!(outcome.value, 6);
}

/// A section finds the objects of its lock's home there, and runs at its caller if it meets another
/// one.
pub fn a_section_that_meets_an_object_of_another_home_runs_at_its_caller(on: &dyn Platform) {
    fn swap(s: &mut Section<'_>, (one, other): (Ref<i64>, Ref<i64>)) -> Result<i64> {
        let (first, second) = (s.read(one)?, s.read(other)?);
        *s.get_mut(one)? = second;
        *s.get_mut(other)? = first;
        Ok(first + second)
    }
    let outcome = succeed(on, 3, |w| {
        let own = at_home(on, w, 1 << (8 * w.node().index()));
        let all: Vec<Ref<i64>> = w.all_gather(own)?;
        for round in 0..9 {
            // All under one lock.
            let (one, other) = (all[round % 3], all[(round + 1) % 3]);
            let sum = all[0].lock().run(w, (one, other), section!(swap))?;
            assert!(sum.count_ones() == 2, "{sum:#x}");
        }
        w.barrier()?;
        Ok(all.iter().map(|it| it.read(w)).sum::<i64>())
    });
    assert_eq!(outcome.value, 0x1_0101);
}

/// What was written before a section is read by the caller of the next one, whatever keeps it
/// consistent and however it was released.
pub fn what_was_written_before_a_section_is_read_after_the_next(on: &dyn Platform) {
    fn see(s: &mut Section<'_>, (flag, wanted): (Ref<i64>, i64)) -> Result<()> {
        let seen = s.read(flag)?;
        s.wait_until(seen >= wanted)
    }
    succeed(on, 3, |w| {
        let flag = w.once(|w| Ok(at_home(on, w, 0_i64)))?;
        let data = w.once(|w| Ok(w.alloc(0_i64)))?;
        let homed = w.once(|w| Ok(at_home(on, w, [0_i64; 4])))?;
        for round in 0..6 {
            if round % 3 == w.node().index() as i64 {
                *data.get_mut(w) = round + 1;
                homed.get_mut(w)[2] = round + 1;
                match round % 2 {
                    0 => drop(flag.lock().run(w, (flag, 1), section!(add))?),
                    _ => flag.lock().with(w, |w| {
                        *flag.get_mut(w) += 1;
                        Ok(())
                    })?,
                }
            }
            flag.lock().run(w, (flag, round + 1), section!(see))?;
            assert_eq!((data.read(w), homed.read(w)[2]), (round + 1, round + 1));
            w.barrier()?;
        }
        Ok(())
    });
}

/// Where nodes meet.
#[derive(Share, Clone, Copy)]
struct Meeting {
    arrived: u64,
    met: u64,
    all: u64,
}

/// A node arrives. It waits for the others unless it is the last.
fn arrive(s: &mut Section<'_>, (at, other): (Ref<Meeting>, Ref<i64>)) -> Result<u64> {
    let meeting = s.get_mut(at)?;
    let met = meeting.met;
    meeting.arrived += 1;
    if meeting.arrived == meeting.all {
        (meeting.arrived, meeting.met) = (0, met + 1);
        return Ok(met);
    }
    s.then(section!(leave), (at, other, met))
}

fn leave(s: &mut Section<'_>, (at, other, before): (Ref<Meeting>, Ref<i64>, u64)) -> Result<u64> {
    s.read(other)?;
    let met = s.get(at)?.met;
    s.wait_until(met > before)?;
    Ok(before)
}

/// Nodes meet in a section that goes on with one that waits: at the home; at the home for the first
/// part and at its caller for the rest; at its caller.
pub fn a_section_goes_on_with_one_that_waits(on: &dyn Platform) {
    for home_of_other in [0, 1] {
        succeed(on, 3, |w| {
            let all = w.nodes() as u64;
            let meeting = Meeting {
                arrived: 0,
                met: 0,
                all,
            };
            let at = w.once(|w| Ok(at_home(on, w, meeting)))?;
            let own = at_home(on, w, 0_i64);
            let counts: Vec<Ref<i64>> = w.all_gather(own)?;
            for round in 0..8 {
                *own.get_mut(w) += 1;
                let other = counts[home_of_other];
                let met = at.lock().run(w, (at, other), section!(arrive))?;
                assert_eq!(met, 2 * round);
                let seen: Vec<i64> = counts.iter().map(|it| it.read(w)).collect();
                assert_eq!(seen, vec![round as i64 + 1; all as usize]);
                at.lock().run(w, (at, other), section!(arrive))?;
            }
            Ok(())
        });
    }
}

/// A shelf of a node: a row, and a note that belongs to it.
#[derive(Share)]
struct Shelf {
    numbers: Row<u16>,
    note: Own<i64>,
}

fn shelf(on: &dyn Platform, w: &mut Worker<'_>) -> Ref<Shelf> {
    let numbers = match keeps_pages(on) {
        true => w.alloc_rows(1, 5),
        false => w.under(Coherence::Home).alloc_rows(1, 5),
    };
    let note = Own::from(at_home(on, w, 0_i64));
    let numbers = numbers.row(0);
    at_home(on, w, Shelf { numbers, note })
}

/// Adds to each number of the row, and counts that in the note.
fn add_to_row(s: &mut Section<'_>, (shelf, by): (Ref<Shelf>, u16)) -> Result<u64> {
    let Shelf { numbers, note } = s.get(shelf)?;
    let (numbers, note) = (*numbers, **note);
    s.get_mut(numbers)?.iter_mut().for_each(|it| *it += by);
    *s.get_mut(note)? += 1;
    Ok(s.get(numbers)?.iter().map(|it| u64::from(*it)).sum())
}

/// Sections read and write rows, and what an object owns.
pub fn sections_write_rows_and_what_is_owned(on: &dyn Platform) {
    const EACH: u16 = 10;
    let outcome = succeed(on, 3, |w| {
        let own = shelf(on, w);
        let all: Vec<Ref<Shelf>> = w.all_gather(own)?;
        for (of, shelf) in all.iter().enumerate() {
            let by = 1 + of as u16;
            let mut last = 0;
            for _ in 0..EACH {
                let sum = shelf.lock().run(w, (*shelf, by), section!(add_to_row))?;
                assert!(sum > last && sum.is_multiple_of(5 * u64::from(by)), "{sum}");
                last = sum;
            }
        }
        w.barrier()?;
        let numbers = all.iter().map(|shelf| shelf.get(w).numbers.get(w).to_vec());
        let numbers: Vec<Vec<u16>> = numbers.collect();
        let notes: Vec<i64> = all.iter().map(|shelf| shelf.get(w).note.read(w)).collect();
        Ok((numbers, notes))
    });
    let (numbers, notes) = outcome.value;
    assert_eq!(numbers, [30, 60, 90].map(|it| [it; 5].to_vec()));
    assert_eq!(notes, [30; 3]);
}

/// A copy that a node keeps over acquires is dropped when a section has changed the object.
pub fn who_keeps_a_copy_sees_what_sections_write(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let x = w.once(|w| Ok(at_home(on, w, 0_i64)))?;
        for round in 0..6 {
            // Enough reads that copies are kept.
            for _ in 0..4 {
                assert_eq!(x.read(w), round);
                w.barrier()?;
            }
            if round % 3 == w.node().index() as i64 {
                x.lock().run(w, (x, 1), section!(add))?;
                assert_eq!(x.read(w), round + 1);
            }
            w.barrier()?;
        }
        Ok(())
    });
}

/// A section that returns an error or panics has changed nothing, and the lock is free.
pub fn a_section_that_fails_has_changed_nothing(on: &dyn Platform) {
    fn fails(s: &mut Section<'_>, (x, how): (Ref<i64>, u8)) -> Result<()> {
        *s.get_mut(x)? = -1;
        match how {
            0 => Err(Error::program("it had enough")),
            _ => panic!("it lost its head"),
        }
    }
    let outcome = succeed(on, 2, |w| {
        let x = w.once(|w| Ok(at_home(on, w, 7_i64)))?;
        for (how, words) in [
            (0, "it failed: it had enough"),
            (1, "it panicked: it lost its head"),
        ] {
            let failed = x.lock().run(w, (x, how), section!(fails)).unwrap_err();
            let (said, lock) = (failed.to_string(), format!("the lock of {}", x.oid()));
            for part in [words, "fails of", &lock, "sections.rs:", "on node"] {
                assert!(said.contains(part), "{part:?} is not in {said:?}");
            }
        }
        x.lock().run(w, (x, 1), section!(add))?;
        w.barrier()?;
        Ok(x.read(w))
    });
    assert_eq!(outcome.value, 9);
}

/// A condition that no node makes true, of sections at their home and at their callers.
pub fn sections_that_wait_for_ever_are_a_deadlock_with_their_places(on: &dyn Platform) {
    for elsewhere in [false, true] {
        let error = fail(on, 2, |w| {
            let own = at_home(on, w, 0_i64);
            let all: Vec<Ref<i64>> = w.all_gather(own)?;
            // If the section meets an object of node 1, it runs at its caller.
            let other = all[usize::from(elsewhere)];
            let wait = section!(|s: &mut Section<'_>, other: Ref<i64>| {
                let enough = s.read(other)? > 0;
                s.wait_until(enough)
            });
            all[0].lock().run(w, other, wait)
        });
        assert_says(
            &error,
            &["the lock of object", "sections.rs:", "node 0", "node 1"],
        );
    }
}

/// A section under a lock that its caller holds is an error, and so is its wait for a lock that is
/// never released.
pub fn sections_under_held_locks_are_errors_with_their_places(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        let x = w.once(|w| Ok(at_home(on, w, 0_i64)))?;
        w.barrier()?;
        if w.node().index() == 1 {
            let held = x.lock().acquire(w)?;
            x.lock().run(w, (x, 1), section!(add))?;
            held.release(w)?;
        }
        Ok(w.barrier()?)
    });
    assert_says(&error, &["the lock of object", "sections.rs:"]);
    let error = fail(on, 2, |w| {
        let x = w.once(|w| Ok(at_home(on, w, 0_i64)))?;
        let ready = Semaphore::numbered(2, 0);
        if w.node().index() == 0 {
            let held = x.lock().acquire(w)?;
            ready.release(w)?;
            w.barrier()?;
            return Ok(held.release(w)?);
        }
        ready.acquire(w)?;
        x.lock().run(w, (x, 1), section!(add))?;
        Ok(w.barrier()?)
    });
    assert_says(&error, &["the lock of object", "sections.rs:", "node 1"]);
}

/// The request and the reply; at the home none.
pub fn a_section_takes_two_messages(on: &dyn Platform) {
    if keeps_pages(on) || has_member(on) && !on.coherence().properties().has_home {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let x = w.once(|w| Ok(at_home(on, w, 0_i64)))?;
        w.barrier()?;
        let before = w.counters();
        for _ in 0..10 {
            x.lock().run(w, (x, 1), section!(add))?;
        }
        let sent = w.counters().since(&before);
        w.barrier()?;
        assert_eq!(x.read(w), 20);
        Ok(sent.sent(MessageKind::OperationRequest))
    });
    let sum = |kind| {
        let nodes = outcome.counters.iter();
        nodes.map(|node| node.sent(kind)).sum::<u64>()
    };
    assert_eq!(sum(MessageKind::OperationRequest), 10);
    assert_eq!(sum(MessageKind::OperationReply), 10);
    assert_eq!(sum(MessageKind::SyncRequest), 0);
    let ran: Vec<u64> = outcome.counters.iter().map(|node| node.sections).collect();
    assert_eq!(ran, [20, 0]);
}
