//! Coherence and synchronisation as pure state machines: events in, commands out.
//!
//! A [`Protocol`] is one node's part. It owns no socket, thread, clock or random number, so the
//! same code runs live, in the simulator and under a model checker. What it does:
//!
//! - the *family of protocols* for shared objects: *lazy*, single-writer, with invalidation (DOSA,
//!   sections 2 and 3.1); *update*, which pushes to the last readers; *home*, with several writers
//!   (Jackal, section 3.1); each object has its own, and may change it;
//! - *TreadMarks*, lazy release consistency of pages with several writers, for a whole run: the
//!   baseline;
//! - all of it for *arrays* too, element by element, so that nodes may write one page at once;
//! - *locks* with a manager that passes requests on to the last holder, and the central
//!   *barrier* of 2(n-1) messages; both carry write notices;
//! - *read-write locks* and *semaphores*, sync objects that a manager grants in the order of
//!   asking, and *conditions*, whose waiters are handed on with their lock;
//! - *collection* of interval records that every node has seen, at barriers and by gossip on
//!   lock messages, so that nothing grows with time;
//! - *races*, found from what each node knows of its own writes;
//! - *totally ordered groups*, a machine of their own: [`group`];
//! - *raw memory* in units of any size, another: [`memory`];
//! - *collectives*, which combine or share values along a tree and carry write notices too;
//! - the *wait-for graph*, followed by probes, so that a deadlock is an answer and not a hang.
//!
//! ```
//! use dhole_model::{CallSite, Coherence, NodeId, Oid, OidRange};
//! use dhole_protocol::{Command, Event, Message, Protocol, RegionCommand, Unread, WorkerIs};
//!
//! // Node 1 reads an object that node 0 allocated: it asks node 0 for it.
//! let (mut zero, mut one) = (Protocol::new(NodeId(0), 2), Protocol::new(NodeId(1), 2));
//! let (oid, mut out) = (Oid(64), Vec::new());
//! let (range, coherence) = (OidRange::one(oid), Coherence::default());
//! zero.step(Event::Allocated { range, coherence }, WorkerIs::InCall, &mut out)?;
//! let miss = Event::ReadMiss(Unread { oid, creator: NodeId(0), zero_ok: false, coherence });
//! one.step(miss, WorkerIs::InCall, &mut out)?;
//! let Some(Command::Send { to, message }) = out.pop() else { panic!() };
//! assert_eq!(to, NodeId(0));
//! assert!(matches!(message, Message::Fetch(_)));
//!
//! // Node 0 answers while its worker computes, for the object is clean.
//! zero.step(Event::Deliver { from: NodeId(1), message }, WorkerIs::Computing, &mut out)?;
//! let [Command::Objects(RegionCommand::Reply(reply))] = &out[..] else { panic!() };
//! assert_eq!(reply.to, NodeId(1));
//! # Ok::<(), dhole_protocol::ProtocolError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    expect(
        clippy::disallowed_macros,
        reason = "a test counts the comparisons of its own thread"
    )
)]

mod array_blocks;
mod array_event;
mod coherence;
mod collective_call;
mod combining;
mod command;
mod effects;
mod error;
mod frame;
mod handed_out;
mod ids;
pub mod memory;
mod message;
mod node_set;
pub mod objects;
mod page_command;
mod protocol;
mod race;
mod ranges;
mod read_ahead;
mod region_command;
mod sync;
mod sync_id;
mod sync_object;
mod thread_id;
mod transfer;
mod waiting;

pub use dhole_group as group;
pub use dhole_part as part;
pub use dhole_sync as wait_graph;

pub use array_blocks::{ArrayBlocks, Behind, BlockAccess, BlockEvent, Needs, Unit};
pub use array_event::{ArrayEvent, UnreadElements};
pub use coherence::built_in;
pub use coherence::built_in::is_built_in;
pub use coherence::member::{CoherenceProtocol, Context};
pub use coherence::members::keeps_arrays;
pub use coherence::races::{Changed, Races};
pub use coherence::{HeldElements, MOST_BESIDE};
pub use collective_call::{Called, CalledAt, CollectiveKind, CollectiveWait, Mismatch, Tree, Way};
pub use combining::{CombineRequest, MOST_UPDATES, UpdateBatch};
pub use command::{Along, Command, Commands, Event, Unread, WorkerIs};
pub use effects::Effects;
pub use error::{Freed, ProtocolError};
pub use frame::Frame;
pub use handed_out::HandedOut;
pub use message::{
    AbortReason, DecodeError, MemberMessage, Message, PayloadOf, RegionKind, RegionMessage, Short,
};
pub use node_set::NodeSet;
pub use page_command::{Applied, DiffId, PageCommand, PageEvent, SentDiff, WantedDiffs};
pub use protocol::Protocol;
pub use protocol::sections::MayRun;
pub use race::{Race, Raced, RacingWrite};
pub use ranges::Ranges;
pub use read_ahead::ReadAhead;
pub use region_command::{Made, RegionCommand};
pub use sync::barrier::BarrierRound;
pub use sync::collection::Gossip;
pub use sync::collective::{
    Collective, CollectiveEvent, CollectiveMessage, Legs, MOST_AHEAD, most_early,
};
pub use sync::interval::{Attached, Base, Interval, MemberNotice, Untold, WriteNotices};
pub use sync::interval_log::LogLimits;
pub use sync::notice_delta::Reach;
pub use sync::probes::DeadlockProbe;
pub use sync::written_pages::WrittenPages;
pub use sync_id::{BarrierId, LockId};
pub use sync_object::{ConditionId, RwLockId, SemaphoreId, SyncObject};
pub use transfer::{
    Fetch, FetchReply, Flush, Flushed, FlushedAt, Follow, FollowedReferences, MOST_ALONG, Pushed,
    Reply, Sent, SentList, Wanted, WantedList,
};
pub use waiting::{Kept, Operation, Started, ThreadWait, Unbegun, Waiter, WaitingFor};
