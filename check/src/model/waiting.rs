//! Read-write locks, semaphores and conditions in the model, and the ghosts that watch them.

use dhole_model::{CallSite, NodeId, Oid};
use dhole_protocol::{ConditionId, Event, RwLockId, SemaphoreId, SyncObject};

use crate::model::history::entry;
use crate::model::program::lock_id;
use crate::model::{Clock, Fault, History, Op, Wait};

/// The number of the first lock of an object. Four nodes may be the home of each.
const OF_OBJECTS: u8 = 8;

/// The number of an object's lock in programs.
pub(crate) fn lock_of(object: u8, home: u8) -> u8 {
    OF_OBJECTS + 4 * object + home
}

pub(crate) fn rw_lock(lock: u8) -> RwLockId {
    match lock.checked_sub(OF_OBJECTS) {
        None => RwLockId(lock.into()),
        Some(of) => RwLockId::of_object(Oid((of / 4).into()), NodeId((of % 4).into())),
    }
}

/// The wait of an operation, and its event, if it is one of these.
pub(crate) fn event(op: Op) -> Option<(Option<Wait>, Event)> {
    let site = CallSite::runtime("model");
    let read = |lock| SyncObject::Read(rw_lock(lock));
    let write = |lock| SyncObject::Write(rw_lock(lock));
    let permit = |number: u8| {
        let number = u64::from(number);
        SyncObject::Permit(SemaphoreId { number, permits: 0 })
    };
    let condition = |lock| ConditionId {
        lock: lock_id(lock),
        number: 0,
    };
    let enter = |sync_object| Event::Enter { sync_object, site };
    let leave = |sync_object| Event::Leave { sync_object, site };
    let notify = |lock, all| Event::Notify {
        condition: condition(lock),
        all,
        site,
    };
    Some(match op {
        Op::Share(lock) => (Some(Wait::Share(lock)), enter(read(lock))),
        Op::Unshare(lock) => (None, leave(read(lock))),
        Op::Exclude(lock) => (Some(Wait::Exclude(lock)), enter(write(lock))),
        Op::Readmit(lock) => (None, leave(write(lock))),
        Op::Take(semaphore) => (Some(Wait::Permit(semaphore)), enter(permit(semaphore))),
        Op::Give(semaphore) => (None, leave(permit(semaphore))),
        Op::Await(lock) | Op::AwaitWritten(lock) => {
            let event = Event::WaitOnRwLock {
                lock: rw_lock(lock),
                until_written: op == Op::AwaitWritten(lock),
                site,
            };
            (Some(Wait::Readmission(lock)), event)
        }
        Op::WakeOne(lock) | Op::WakeAll(lock) => {
            let event = Event::NotifyRwLock {
                lock: rw_lock(lock),
                all: op == Op::WakeAll(lock),
                site,
            };
            (None, event)
        }
        Op::WaitOn(lock) => {
            let condition = condition(lock);
            (
                Some(Wait::Condition(lock)),
                Event::WaitOn { condition, site },
            )
        }
        Op::NotifyOne(lock) => (None, notify(lock, false)),
        Op::NotifyAll(lock) => (None, notify(lock, true)),
        _ => return None,
    })
}

/// The holders and the waiting nodes.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Turnstiles {
    rw_locks: Vec<RwLock>,
    /// The permits of each semaphore, and everything that happened before their releases.
    semaphores: Vec<(u8, Clock)>,
    /// The nodes that wait on the condition of each lock, the longest first. A program has locks
    /// with conditions of one kind.
    waiting: Vec<Vec<u8>>,
    /// The nodes that wait until one has written under each lock.
    until_written: Vec<Vec<u8>>,
    /// The nodes that were woken and want the lock, a bit for each.
    pub woken: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct RwLock {
    readers: Vec<u8>,
    writer: Option<u8>,
    /// Everything that happened before the releases of writers, and before all releases.
    written: Clock,
    released: Clock,
}

impl Turnstiles {
    /// A node waits or notifies.
    pub fn begin(&mut self, node: usize, op: Op) {
        match op {
            Op::WaitOn(lock) | Op::Await(lock) => {
                entry(&mut self.waiting, lock).push(node as u8);
            }
            Op::Readmit(lock) => self.wrote(lock),
            Op::AwaitWritten(lock) => entry(&mut self.until_written, lock).push(node as u8),
            Op::NotifyOne(lock) | Op::NotifyAll(lock) | Op::WakeOne(lock) | Op::WakeAll(lock) => {
                let waiting = entry(&mut self.waiting, lock);
                let most = match op {
                    Op::NotifyAll(_) | Op::WakeAll(_) => waiting.len(),
                    _ => waiting.len().min(1),
                };
                for node in waiting.drain(..most) {
                    self.woken |= 1 << node;
                }
            }
            _ => {}
        }
    }

    /// A node may have written under a lock.
    pub fn wrote(&mut self, lock: u8) {
        for node in std::mem::take(entry(&mut self.until_written, lock)) {
            self.woken |= 1 << node;
        }
    }

    /// The nodes that hold a read-write lock so that this wait cannot end.
    pub fn in_the_way(&self, wait: Wait, writer_waits: bool) -> Vec<usize> {
        let (lock, reads) = match wait {
            Wait::Share(lock) => (lock, true),
            Wait::Exclude(lock) => (lock, false),
            _ => return vec![],
        };
        let Some(lock) = self.rw_locks.get(usize::from(lock)) else {
            return vec![];
        };
        let readers = lock.readers.iter().filter(|_| !reads || writer_waits);
        readers
            .chain(&lock.writer)
            .map(|node| usize::from(*node))
            .collect()
    }

    /// Whether a permit is there, or on its way.
    pub fn has_permit(&self, semaphore: u8) -> bool {
        let semaphore = self.semaphores.get(usize::from(semaphore));
        semaphore.is_some_and(|(permits, _)| *permits > 0)
    }
}

impl History {
    /// A node gives a read-write lock or a permit back.
    pub(crate) fn gives_back(&mut self, node: usize, op: Op) {
        let clock = self.clock(node);
        let all = &mut self.turnstiles;
        match op {
            Op::Unshare(lock) => {
                let lock = entry(&mut all.rw_locks, lock);
                lock.readers.retain(|reader| usize::from(*reader) != node);
                lock.released.merge(&clock);
            }
            Op::Readmit(lock) | Op::Await(lock) | Op::AwaitWritten(lock) => {
                let lock = entry(&mut all.rw_locks, lock);
                lock.writer = None;
                lock.released.merge(&clock);
                lock.written.merge(&clock);
            }
            Op::Give(semaphore) => {
                let (permits, released) = entry(&mut all.semaphores, semaphore);
                *permits += 1;
                released.merge(&clock);
            }
            _ => {}
        }
    }

    /// A node's wait for a read-write lock or a permit is over.
    pub(crate) fn passes(&mut self, node: usize, wait: Wait) -> Result<(), Fault> {
        let all = &mut self.turnstiles;
        let happened = match wait {
            Wait::Share(lock) => {
                let lock = entry(&mut all.rw_locks, lock);
                if lock.writer.is_some() {
                    return Err(Fault::TwoHolders);
                }
                lock.readers.push(node as u8);
                lock.readers.sort_unstable();
                lock.written
            }
            Wait::Exclude(lock) => {
                let lock = entry(&mut all.rw_locks, lock);
                if lock.writer.is_some() || !lock.readers.is_empty() {
                    return Err(Fault::TwoHolders);
                }
                lock.writer = Some(node as u8);
                lock.released
            }
            Wait::Permit(semaphore) => {
                let (permits, released) = entry(&mut all.semaphores, semaphore);
                *permits = permits.checked_sub(1).ok_or(Fault::TwoHolders)?;
                *released
            }
            _ => return Ok(()),
        };
        self.hear(node, &happened);
        Ok(())
    }
}
