//! The names of sync objects (read-write locks and semaphores) and conditions.

use std::fmt;

use crate::LockId;
use dhole_model::{NodeId, ObjectId, Oid};
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// The number of a read-write lock, the same on every node. An object has a lock too: its number is
/// the object's id and its manager the object's home, above which the highest bit is set. No other
/// number has that bit.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct RwLockId(pub u64);

impl RwLockId {
    /// The lock of an object (Jackal, section 3.2: every object has one), which its home manages.
    /// The home is below the highest number of a node, and the id below 2^47.
    pub fn of_object(oid: Oid, home: NodeId) -> RwLockId {
        RwLockId(ObjectId::of_lock(oid, home).0)
    }

    /// The object whose lock it is.
    pub fn object(self) -> Option<Oid> {
        ObjectId(self.0).lock().map(|(oid, _)| oid)
    }

    /// The node that manages it.
    pub(crate) fn manager(self, nodes: usize) -> NodeId {
        match ObjectId(self.0).lock() {
            Some((_, home)) => home,
            None => manager_of(self.0, nodes),
        }
    }
}

fn manager_of(number: u64, nodes: usize) -> NodeId {
    NodeId::at((number % nodes as u64) as usize)
}

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

    /// The node that manages the sync object.
    pub(crate) fn manager(self, nodes: usize) -> NodeId {
        match self {
            SyncObject::Read(lock) | SyncObject::Write(lock) => lock.manager(nodes),
            SyncObject::Permit(semaphore) => manager_of(semaphore.number, nodes),
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
        match self.object() {
            Some(oid) => write!(f, "the lock of {oid}"),
            None => write!(f, "read-write lock {}", self.0),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_an_object_is_managed_at_its_home_and_no_other() {
        for (oid, home) in [(1, 0), (64, 1023), ((1 << 47) - 1, 5)] {
            let lock = RwLockId::of_object(Oid(oid), NodeId(home));
            assert_eq!(lock.object(), Some(Oid(oid)));
            assert_eq!(lock.manager(3), NodeId(home));
        }
        for number in [0, 7, (1 << 62) + 1] {
            assert_eq!(RwLockId(number).object(), None);
            assert_eq!(RwLockId(number).manager(3), manager_of(number, 3));
        }
    }

    #[test]
    fn a_lock_of_an_object_is_named_by_the_object() {
        let lock = SyncObject::Write(RwLockId::of_object(Oid(0x40), NodeId(2)));
        assert_eq!(lock.to_string(), "the lock of object 0x40 (to write)");
        let numbered = SyncObject::Read(RwLockId(3));
        assert_eq!(numbered.to_string(), "read-write lock 3 (to read)");
    }
}
