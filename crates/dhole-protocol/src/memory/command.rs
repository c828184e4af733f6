//! What a step of the machine has its host do.

use dhole_part::Effect;

use super::Millipage;
use super::minipage::Minipage;
use super::run::MinipageRun;

/// What the threads of a node may do with a minipage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Permission {
    /// Nothing: an access faults.
    Nothing,
    /// Read it.
    Read,
    /// Read and write it.
    Write,
}

/// What only the host of the minipages can do, before the node takes another step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryAct {
    /// The bytes that came with the message are those of this minipage from here on.
    Install(Minipage),
    /// From here on this node owes a flush: a thread that releases has to ask for it
    /// ([`flush`](super::Millipage::flush)).
    Owes,
    /// Make a twin of this minipage: a copy of the bytes that it has now. There is none yet.
    Twin(Minipage),
    /// The diff that came with the message is written into this minipage, of which threads of the
    /// node may write other bytes meanwhile. No thread holds it.
    MergeDiff(Minipage),
    /// The twin of this minipage is not needed any more.
    DropTwin(Minipage),
    /// The bytes of this minipage, of which no node has a copy, are zero from here on.
    Clear(Minipage),
    /// This node, which manages all minipages, has allocated these for another one.
    Allocated(MinipageRun),
    /// From here on all threads of the node may do this with a minipage, and no more.
    Permit {
        /// The minipage.
        minipage: Minipage,
        /// What they may do.
        permission: Permission,
    },
}

/// An effect of a step, recorded. All threads go on that wait for something on the page of the
/// address for which something is over.
pub type MemoryEffect = Effect<Millipage>;

/// What happens in a step and changes nothing: it is counted, or priced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryEvent {
    /// The manager looked an address up in its table.
    Translated,
    /// A request waits at the manager, because an operation on its minipage is under way.
    Competes,
    /// A prefetch is dropped, because too many are under way.
    Dropped,
    /// The node asks for the flush of a minipage.
    Flushes,
}
