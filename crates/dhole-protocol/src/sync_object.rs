//! The names of sync objects (read-write locks and semaphores) and conditions.

use std::fmt;

use crate::LockId;
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// The number of a read-write lock, the same on every node.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct RwLockId(pub u64);

/// A semaphore, the same on every node.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct SemaphoreId {
    /// Its number.
    pub number: u64,
    /// How many permits it has before anyone acquires or releases one.
    pub permits: u32,
}

/// A condition variable, the same on every node. It belongs to a lock, and its waiters are
/// handed on with the lock.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct ConditionId {
    /// The lock.
    pub lock: LockId,
    /// Its number among the conditions of the lock.
    pub number: u64,
}

/// A read-write lock in one of its modes, or a semaphore: what a node acquires.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum SyncObject {
    /// As one of the readers of a read-write lock.
    Read(RwLockId),
    /// As the writer.
    Write(RwLockId),
    /// With a permit of a semaphore.
    Permit(SemaphoreId),
}

impl SyncObject {
    /// The number of the sync object.
    pub fn number(self) -> u64 {
        match self {
            SyncObject::Read(lock) | SyncObject::Write(lock) => lock.0,
            SyncObject::Permit(semaphore) => semaphore.number,
        }
    }

    /// The read-write lock, if it is one.
    pub fn rw_lock(self) -> Option<RwLockId> {
        match self {
            SyncObject::Read(lock) | SyncObject::Write(lock) => Some(lock),
            SyncObject::Permit(_) => None,
        }
    }
}

impl fmt::Display for RwLockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read-write lock {}", self.0)
    }
}

impl fmt::Display for SemaphoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "semaphore {}", self.number)
    }
}

impl fmt::Display for ConditionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {} of {}", self.number, self.lock)
    }
}

impl fmt::Display for SyncObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncObject::Read(lock) => write!(f, "{lock} (to read)"),
            SyncObject::Write(lock) => write!(f, "{lock} (to write)"),
            SyncObject::Permit(semaphore) => write!(f, "a permit of {semaphore}"),
        }
    }
}
