//! Errors of the protocol.

use std::fmt;

use dhole_model::{
    CHUNK, CallSite, Coherence, Elements, IntervalIndex, NodeId, Oid, OidRange, PageId, Version,
};
use thiserror::Error;

use crate::collective_call::{Called, CollectiveKind, Mismatch};
use crate::sync_id::{BarrierId, LockId};
use crate::sync_object::{ConditionId, RwLockId, SemaphoreId, SyncObject};

/// An object that was freed, with what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Freed {
    /// The object.
    pub oid: Oid,
    /// Who freed it.
    pub by: Option<NodeId>,
    /// Where in the program, which only the node knows that freed it.
    pub at: Option<CallSite>,
}

impl Freed {
    /// A freed object of which nothing else is known.
    pub const fn known_only(oid: Oid) -> Freed {
        let (by, at) = (None, None);
        Freed { oid, by, at }
    }
}

impl fmt::Display for Freed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Freed { oid, by, at } = self;
        write!(f, "{oid} was freed")?;
        by.map_or(Ok(()), |node| write!(f, " by {node}"))?;
        at.map_or(Ok(()), |site| write!(f, " at {site}"))
    }
}

/// Why an event cannot be handled.
#[derive(Clone, PartialEq, Eq, Hash, Error)]
pub enum ProtocolError {
    /// The worker waits for what went with a node, or may have gone with it.
    #[error(
        "{node} was lost, and with it what is waited for: of a run that survives the loss of \
         nodes only objects with operations go on"
    )]
    Lost {
        /// The node.
        node: NodeId,
    },
    /// A protocol that the program brings has made a mistake.
    #[error("the protocol {protocol} has made a mistake: {what}")]
    Member {
        /// Its name.
        protocol: &'static str,
        /// The mistake.
        what: String,
    },
    /// The worker acquires a lock that it holds.
    #[error("acquiring {lock} at {site}: this node has held it since {held_since}")]
    AlreadyHeld {
        /// The lock.
        lock: LockId,
        /// Where it is acquired again.
        site: CallSite,
        /// Where it was acquired.
        held_since: CallSite,
    },
    /// The worker releases a lock that it does not hold.
    #[error("releasing {lock}: this node does not hold it")]
    NotHeld {
        /// The lock.
        lock: LockId,
    },
    /// The worker waits on a condition, or notifies it, without holding its lock.
    #[error("{doing} {condition} at {site}: this node does not hold {}", condition.lock)]
    WithoutLock {
        /// `waiting on` or `notifying`.
        doing: &'static str,
        /// The condition.
        condition: ConditionId,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker wants a read-write lock that it holds.
    #[error("waiting for {sync_object} at {site}: this node has held the lock since {held_since}")]
    AlreadyEntered {
        /// What it wants.
        sync_object: SyncObject,
        /// Where in the program.
        site: CallSite,
        /// Where it was acquired.
        held_since: CallSite,
    },
    /// The worker gives back a read-write lock that it does not hold so.
    #[error("releasing {sync_object} at {site}: this node does not hold it")]
    NotEntered {
        /// What it would give back.
        sync_object: SyncObject,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker waits on the condition of a read-write lock, or notifies it, without holding the
    /// lock.
    #[error("{doing} the condition of {lock} at {site}: this node does not hold the lock{mode}")]
    WithoutRwLock {
        /// `waiting on` or `notifying`.
        doing: &'static str,
        /// The lock.
        lock: RwLockId,
        /// How it has to be held: empty, or ` to write`.
        mode: &'static str,
        /// Where in the program.
        site: CallSite,
    },
    /// A semaphore was released more often than it can count.
    #[error("releasing {semaphore} on {node} at {site}: it has 4294967295 permits already")]
    TooManyPermits {
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The node that released it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// Nodes do not agree on how many permits a semaphore was made with.
    #[error(
        "{semaphore} is used on {node} as one made with {} permits: it was made with {made_with}",
        semaphore.permits
    )]
    OtherPermits {
        /// The semaphore, as that node uses it.
        semaphore: SemaphoreId,
        /// The node.
        node: NodeId,
        /// How many permits it was made with.
        made_with: u32,
    },
    /// Only the last writer of an object, or of all of some elements, propagates them.
    #[error(
        "this node did not write it last{}",
        writer.map_or(String::new(), |writer| format!(": {writer} did"))
    )]
    NotLastWriter {
        /// The object or the array.
        oid: Oid,
        /// The last writer, if there is one.
        writer: Option<NodeId>,
    },
    /// No write notices say how new an object is that is kept consistent so.
    #[error("objects and arrays under {coherence} are not propagated: choose lazy or update")]
    NotPropagated {
        /// The object or the array.
        oid: Oid,
        /// Its protocol.
        coherence: Coherence,
    },
    /// A node asks for an object of which this node has nothing.
    #[error("{from} asks for {oid} at {need}: there is no copy of it here")]
    NoCopy {
        /// The asker.
        from: NodeId,
        /// The object.
        oid: Oid,
        /// What was asked for.
        need: Version,
    },
    /// A node asks for elements of an array of which this node has nothing.
    #[error("{from} asks for {elements} at {need}: not all of them are here")]
    NoElements {
        /// The asker.
        from: NodeId,
        /// The elements.
        elements: Elements,
        /// What was asked for.
        need: Version,
    },
    /// A node asks for a page of which this node has nothing.
    #[error("{from} asks for {page}: there is no copy of it here")]
    NoPage {
        /// The asker.
        from: NodeId,
        /// The page.
        page: PageId,
    },
    /// The node could not store, or change, a page as it was told.
    #[error("keeping {page}: {cause}")]
    PageNotStored {
        /// The page.
        page: PageId,
        /// The heap's own words.
        cause: String,
    },
    /// The system does not let the node open, or close, the view of a minipage.
    #[error("changing what may be done with the minipage at {at:#x}: {cause}")]
    MinipageProtection {
        /// Its address.
        at: u64,
        /// The system's own words.
        cause: String,
    },
    /// Under `mprotect` the views of a node would need more mappings than its process may have.
    #[error(
        "changing what may be done with the minipage at {at:#x}{}: with it the process would have \
         {mappings} mappings, of which there may be {most} (DHOLE_MOST_MAPPINGS, or 80% of the \
         sysctl vm.max_map_count, which is {allowed}), for mprotect splits them. Allow the process \
         userfaultfd, which splits none (the seccomp profile of a container may refuse it), raise \
         the sysctl, or allocate in larger pieces (alloc_chunks, --chunk, dh_chunk)",
        in_brackets(.allocation)
    )]
    MinipageMappings {
        /// Its address.
        at: u64,
        /// What the node knows of the allocation, in words: none where it does not manage it.
        allocation: String,
        /// Mappings of the process.
        mappings: usize,
        /// So many there may be.
        most: usize,
        /// So many the system allows.
        allowed: usize,
    },
    /// The program has written behind the end of an allocation of raw memory.
    #[error(
        "checking raw memory on {node}: the program has written {past} bytes past the end of an \
         allocation, at {end:#x}: {allocation}"
    )]
    MinipageOverflow {
        /// Where it ends.
        end: u64,
        /// How many bytes past its end the last byte lies that was written.
        past: u32,
        /// The node that has written them.
        node: NodeId,
        /// How many bytes it has, and which place in the program allocated it.
        allocation: String,
    },
    /// The node could not store an object that it was sent.
    #[error("storing a copy of {oid}: {cause}")]
    NotStored {
        /// The object.
        oid: Oid,
        /// The heap's own words.
        cause: String,
    },
    /// The object was freed.
    #[error("{0}")]
    Freed(Freed),
    /// What goes to all nodes in one order could not.
    #[error("multicasting an operation: {cause}")]
    Unordered {
        /// The group's own words.
        cause: String,
    },
    /// A node has seen at a barrier what another one has not done.
    #[error(
        "{by} tells at {barrier} that {of} has ended its interval {claimed}: it has ended {ended}"
    )]
    NeverDone {
        /// Who says so, and lies or was lied to.
        by: NodeId,
        /// At which barrier.
        barrier: BarrierId,
        /// Whose interval it would be.
        of: NodeId,
        /// Its number.
        claimed: IntervalIndex,
        /// How many there are.
        ended: IntervalIndex,
    },
    /// Nodes do not call the same collectives and barriers in the same order.
    #[error("{0}")]
    Mismatch(Box<Mismatch>),
    /// The program calls something that all nodes call before it has come to the end of a
    /// collective, whose operation panicked.
    #[error("calling {what} at {site}: {unfinished} at {begun} did not come to its end here")]
    Unfinished {
        /// What it calls.
        what: Called,
        /// Where in the program.
        site: CallSite,
        /// What did not come to its end.
        unfinished: CollectiveKind,
        /// Where it was called.
        begun: CallSite,
    },
    /// Another node tells of more that was written than this node keeps states of.
    #[error(
        "a message from {from} tells that {first} was written or freed: of what other nodes \
         write, a node keeps {most} chunks of {CHUNK} objects, arrays, segments of their elements \
         and ranges of freed ids in mind, and no more"
    )]
    TooManyWritten {
        /// The sender.
        from: NodeId,
        /// The first that is one too many.
        first: Oid,
        /// How much is kept.
        most: usize,
    },
    /// A message names objects that nobody can have allocated.
    #[error(
        "a message from {from} makes no sense: it names {} objects from {} on, whose ids no node \
         was given", ids.count, ids.first
    )]
    UnknownIds {
        /// The sender.
        from: NodeId,
        /// The ids.
        ids: OidRange,
    },
    /// A message that no node of a sound cluster sends.
    #[error("a message from {from} makes no sense: {what}")]
    BadMessage {
        /// The sender.
        from: NodeId,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// What is known of something, if anything is.
fn in_brackets(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(" ({words})"),
    }
}

dhole_model::debug_in_words!(ProtocolError);
