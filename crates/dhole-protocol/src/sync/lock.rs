//! Locks of workers, which [travel](TravellingLocks). Those that wait on a lock's conditions travel
//! with it.

use dhole_model::{CallSite, NodeId, VectorTime};
use dhole_sync::{Conditions, TravellingLocks, Travels};

use crate::sync_id::LockId;

/// The locks of a node's worker.
pub(crate) type Locks = TravellingLocks<WorkerLocks>;

/// What goes with the locks of workers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum WorkerLocks {}

impl Travels for WorkerLocks {
    type Lock = LockId;
    /// The line where the worker wants it.
    type Holder = CallSite;
    type Number = ();
    /// What the asker has seen: its grant brings the write notices of the rest.
    type Request = VectorTime;
    /// The nodes that wait on its conditions. As only the holder waits or notifies, no notification
    /// can come before the wait that it is for.
    type Carries = Conditions<u64, NodeId>;

    fn manager(lock: LockId, nodes: usize) -> NodeId {
        NodeId::at((lock.0 % nodes as u64) as usize)
    }
}
