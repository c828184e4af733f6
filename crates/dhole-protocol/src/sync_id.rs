//! The numbers of locks and barriers.

use std::fmt;

use dhole_model::{Coherence, Oid, OidRange};
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// The number of a lock, the same on every node.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct LockId(pub u64);

impl LockId {
    /// No lock of a program has this bit.
    const OF_UPDATES: u64 = 1 << 63;

    /// The lock under which nodes combine elements of an array with updates where the elements
    /// have no owner that does so.
    pub const fn of_updates(array: Oid) -> LockId {
        LockId(Self::OF_UPDATES | array.0)
    }
}

/// Which barrier a node has reached.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum BarrierId {
    /// The program's barrier of this number, counted from 0 together with collectives.
    Program(u64),
    /// The program's barrier of this number, at which node 0 brings a value for all.
    Once(u64),
    /// The program's barrier of this number, at which objects change protocol.
    Switch {
        /// The number.
        number: u64,
        /// The objects.
        objects: OidRange,
        /// Their protocol afterwards.
        to: Coherence,
    },
    /// The program's barrier of this number, at which an array changes protocol.
    SwitchArray {
        /// The number.
        number: u64,
        /// The array.
        array: Oid,
        /// Its protocol afterwards.
        to: Coherence,
    },
    /// Where diffs are collected: every node has brought up to date what it keeps. The number of
    /// the program's barrier that is next.
    Collection(u64),
    /// The end of the run, after so many barriers and collectives of the program.
    End(u64),
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 & Self::OF_UPDATES {
            0 => write!(f, "lock {}", self.0),
            bit => write!(f, "the lock of updates of the array {}", Oid(self.0 ^ bit)),
        }
    }
}

impl fmt::Display for BarrierId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierId::Program(number) => write!(f, "barrier {number}"),
            BarrierId::Once(number) => write!(f, "barrier {number} (once)"),
            BarrierId::Switch {
                number,
                objects: OidRange { first, count },
                to,
            } => write!(
                f,
                "barrier {number} (switch of {count} from {first} on to {to})"
            ),
            BarrierId::SwitchArray { number, array, to } => {
                write!(f, "barrier {number} (switch of the array {array} to {to})")
            }
            BarrierId::Collection(next) => write!(f, "the collection before barrier {next}"),
            BarrierId::End(_) => f.write_str("the end of the run"),
        }
    }
}
