//! Operations that were started, and whose `Pending` was dropped: they are over at every
//! synchronisation of their node.

use dhole::{
    Condvar, Lock, NodeId, Object, Result, RwLock, Semaphore, Strategy, Worker, on, op, replicated,
};
use serde::{Deserialize, Serialize};

use super::{assert_says, fail, keeps_pages, succeed};
use crate::Platform;

/// A sum of what was added.
#[derive(Serialize, Deserialize, Default)]
struct Sum(u64);

#[dhole::object(crate = "dhole")]
impl Sum {
    pub fn add(&mut self, numbers: Vec<u64>) {
        self.0 += numbers.iter().sum::<u64>();
    }

    pub fn get(&self) -> u64 {
        self.0
    }

    #[when(self.0 >= *least)]
    pub fn at_least(&self, least: u64) {}

    #[when(self.0 >= *least)]
    pub fn take(&mut self, least: u64) {
        self.0 -= least;
    }
}

/// The node that starts operations, and the one that looks for them.
const STARTS: NodeId = NodeId(1);
const LOOKS: NodeId = NodeId(2);

/// So many operations are started: one that goes alone, a batch that waits for it, and several.
const STARTED: [u64; 4] = [1, 2, 9, 150];

/// Starts as many operations, of which each adds one, in calls of different lengths.
fn start(w: &mut Worker<'_>, sum: Object<Sum>, many: u64) -> Result<()> {
    for number in 0..many {
        let zeros = [0, 3, 700][(number % 3) as usize];
        let mut numbers = vec![0; zeros];
        numbers.push(1);
        drop(sum.start_add(w, numbers)?);
    }
    Ok(())
}

fn look(w: &mut Worker<'_>, (sum, wanted): (Object<Sum>, u64)) -> Result<()> {
    match sum.get(w)? {
        seen if seen == wanted => Ok(()),
        seen => Err(dhole::Error::program(format!("{seen} and not {wanted}"))),
    }
}

fn add(w: &mut Worker<'_>, (sum, many): (Object<Sum>, u64)) -> Result<()> {
    start(w, sum, many)
}

/// How the node that starts operations tells the other that it has.
type Meets = fn(&mut Worker<'_>, [Object<Sum>; 2], u64) -> Result<()>;

/// One node starts operations and the other sees them after a synchronisation of both.
fn over_at(platform: &dyn Platform, what: &str, meets: Meets) {
    let places: [fn() -> Strategy; 4] = [|| on(NodeId(0)), || on(STARTS), || on(LOOKS), replicated];
    for place in places {
        let outcome = crate::run(platform, 3, 1, |w| {
            let sum = w.once(|w| Ok(w.new_object(place(), Sum::default())?))?;
            let gate = w.once(|w| Ok(w.new_object(on(NodeId(0)), Sum::default())?))?;
            let mut all = 0;
            for (round, many) in STARTED.into_iter().enumerate() {
                if w.node() == STARTS {
                    start(w, sum, many)?;
                }
                all += many;
                meets(w, [sum, gate], 1 + round as u64)?;
                if w.node() != NodeId(0) {
                    look(w, (sum, all))?;
                }
                w.barrier()?;
            }
            Ok(())
        });
        let place = place();
        if let Err(error) = outcome {
            panic!("{}, {what}, {place:?}: {error}", platform.name());
        }
    }
}

/// After a synchronisation of all nodes, the operations that one has started are over.
pub fn what_was_started_is_over_where_all_nodes_meet(platform: &dyn Platform) {
    over_at(platform, "barrier", |w, _, _| Ok(w.barrier()?));
    over_at(platform, "once", |w, _, _| w.once(|_| Ok(())));
    over_at(platform, "all_reduce", |w, _, _| {
        Ok(w.all_reduce((), |(), ()| ())?)
    });
    over_at(platform, "all_gather", |w, _, _| {
        w.all_gather(())?;
        Ok(())
    });
    over_at(platform, "reduce and broadcast", |w, _, _| {
        w.reduce((), |(), ()| ())?;
        Ok(w.broadcast(())?)
    });
    over_at(platform, "gather and broadcast", |w, _, _| {
        w.gather(())?;
        Ok(w.broadcast(())?)
    });
}

/// After a node has released something, the operations that it has started are over.
pub fn what_was_started_is_over_where_something_is_released(platform: &dyn Platform) {
    over_at(platform, "semaphore", |w, _, _| {
        let semaphore = Semaphore::numbered(3, 0);
        match w.node() {
            STARTS => semaphore.release(w)?,
            LOOKS => semaphore.acquire(w)?,
            _ => {}
        }
        Ok(())
    });
    // Whoever looks has the lock after the other: only that one has passed the gate before.
    over_at(platform, "lock", |w, [_, gate], round| {
        let lock = Lock::numbered(5);
        if w.node() == STARTS {
            let held = lock.acquire(w)?;
            drop(gate.start_add(w, vec![1])?);
            held.release(w)?;
        }
        if w.node() == LOOKS {
            gate.at_least(w, round)?;
            lock.acquire(w)?.release(w)?;
        }
        Ok(())
    });
    over_at(platform, "read-write lock", |w, [_, gate], round| {
        let lock = RwLock::numbered(5);
        if w.node() == STARTS {
            let held = lock.write(w)?;
            drop(gate.start_add(w, vec![1])?);
            held.release(w)?;
        }
        if w.node() == LOOKS {
            gate.at_least(w, round)?;
            lock.read(w)?.release(w)?;
        }
        Ok(())
    });
    over_at(platform, "condition", |w, _, _| {
        let lock = Lock::numbered(5);
        let (asked, told) = (Condvar::numbered(lock, 0), Condvar::numbered(lock, 1));
        let arrived = Semaphore::numbered(4, 0);
        if w.node() == STARTS {
            let held = lock.acquire(w)?;
            arrived.release(w)?;
            asked.wait(w, held)?.release(w)?;
        }
        if w.node() == LOOKS {
            arrived.acquire(w)?;
            let held = lock.acquire(w)?;
            asked.notify_one(w)?;
            told.notify_all(w)?;
            held.release(w)?;
        }
        Ok(())
    });
}

/// A call comes behind what its node started before, at the same object or another.
pub fn what_was_started_is_over_when_a_later_call_is_made(platform: &dyn Platform) {
    over_at(platform, "call", |w, [_, gate], round| {
        match w.node() {
            STARTS => gate.add(w, vec![1])?,
            LOOKS => gate.at_least(w, round)?,
            _ => {}
        }
        Ok(())
    });
    // The one that started them looks at once; the other when it is told.
    over_at(platform, "own call", |w, [sum, gate], round| {
        if w.node() == STARTS {
            let so_far = STARTED[..round as usize].iter().sum();
            look(w, (sum, so_far))?;
            gate.add(w, vec![1])?;
        }
        gate.at_least(w, round)?;
        Ok(())
    });
}

/// What a process starts is over at its end, and what its parent started before it begins.
pub fn what_was_started_is_over_in_processes_and_their_parents(platform: &dyn Platform) {
    if keeps_pages(platform) {
        return;
    }
    succeed(platform, 3, |w| {
        let sum = w.once(|w| Ok(w.new_object(on(NodeId(0)), Sum::default())?))?;
        if w.node() == STARTS {
            let mut all = 0;
            for many in STARTED {
                start(w, sum, many)?;
                all += many;
                w.spawn(LOOKS, (sum, all), op!(look))?.join(w)?;
                w.spawn(LOOKS, (sum, many), op!(add))?.join(w)?;
                all += many;
                look(w, (sum, all))?;
            }
        }
        Ok(())
    });
}

/// A started operation whose guard is false holds up no synchronisation, alone or in a batch.
pub fn what_was_started_and_waits_for_its_guard_holds_nobody_up(platform: &dyn Platform) {
    let places: [fn() -> Strategy; 4] = [|| on(NodeId(0)), || on(STARTS), || on(LOOKS), replicated];
    for (place, many) in places
        .into_iter()
        .flat_map(|place| [(place, 1), (place, 70)])
    {
        succeed(platform, 3, |w| {
            let sum = w.once(|w| Ok(w.new_object(place(), Sum::default())?))?;
            let lock = Lock::numbered(5);
            let mut kept = Vec::new();
            if w.node() == STARTS {
                for _ in 0..many {
                    drop(sum.start_at_least(w, 1)?);
                    drop(sum.start_take(w, 1)?);
                    kept.push(sum.start_take(w, 1)?);
                }
                lock.acquire(w)?.release(w)?;
            }
            w.barrier()?;
            // It may find its guard true at once, and is tried again if not.
            if w.node() == LOOKS {
                start(w, sum, 2 * many + 1)?;
            }
            w.barrier()?;
            look(w, (sum, 1))?;
            kept.into_iter().try_for_each(|pending| pending.wait(w))?;
            Ok(())
        });
    }
}

/// At the end of the run one whose guard never comes true is a deadlock, told with its line.
pub fn what_was_started_and_never_may_be_executed_is_a_deadlock(platform: &dyn Platform) {
    let places: [fn() -> Strategy; 3] = [|| on(NodeId(0)), || on(STARTS), replicated];
    for place in places {
        let error = fail(platform, 2, |w| {
            let sum = w.once(|w| Ok(w.new_object(place(), Sum::default())?))?;
            if w.node() == STARTS {
                drop(sum.start_take(w, 1)?);
            }
            w.barrier()?;
            Ok(())
        });
        let here = file!().rsplit('/').next().unwrap_or_default();
        assert_says(&error, &["deadlock", "take", here]);
    }
}
