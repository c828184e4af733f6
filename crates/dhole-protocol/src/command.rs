//! What goes into a protocol's state machine, and what comes out.

use std::sync::Arc;

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid, OidRange, Version};
use smallvec::SmallVec;

use crate::array_blocks::{Behind, Unit};
use crate::array_event::ArrayEvent;
use crate::collective_call::Way;
use crate::combining::UpdateBatch;
use crate::error::{Freed, ProtocolError};
use crate::handed_out::HandedOut;
use crate::page_command::{PageCommand, PageEvent};
use crate::region_command::RegionCommand;
use crate::sync::collective::CollectiveEvent;
use crate::{
    ConditionId, LockId, Message, Race, RwLockId, Sent, SyncObject, Waiter, WaitingFor,
    WriteNotices,
};

/// What the node's worker is doing while an event is handled, and so which bytes may be touched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WorkerIs {
    /// Running the program: it may hold `&mut` to objects written in this interval.
    Computing,
    /// In a call that shares its token: dirty objects may be read, absent ones installed.
    Sharing,
    /// In a call that owns its token: no reference lives.
    InCall,
}

/// An object that the worker is to read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unread {
    /// The object.
    pub oid: Oid,
    /// The node that allocated it: whom to ask while nobody is known to have written it.
    pub creator: NodeId,
    /// Never written, the object is all zeros, so nobody need be asked.
    pub zero_ok: bool,
    /// How the object is kept consistent, unless it was switched since.
    pub coherence: Coherence,
}

/// Something that happens to a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The worker has allocated objects and stored their first values.
    Allocated {
        /// The objects.
        range: OidRange,
        /// How they are kept consistent.
        coherence: Coherence,
    },
    /// The worker reads an object of which it has no valid copy.
    ReadMiss(Unread),
    /// The worker reads several objects, and may have no valid copy of them: one round of
    /// questions, one to each node that is asked.
    ReadMisses(Vec<Unread>),
    /// The worker writes an object of which it has a valid, clean copy.
    WriteFault {
        /// The object.
        oid: Oid,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker has put a value in the place of an object of which it had no valid copy, and
    /// writes the object next. What it was is as good as fetched.
    Overwrite(Unread),
    /// These of the objects that have [twins](crate::Protocol::twins), in ascending order, were not
    /// written, or are as their twins: the worker is about to synchronise.
    Unwritten(Vec<Oid>),
    /// Where the worker has written objects that it was [expected](Command::ExpectWrite) to write.
    /// Told before the worker synchronises, where races are looked for.
    WrittenAt(Vec<(Oid, CallSite)>),
    /// The worker asks to write an object without bytes: there is nothing to announce.
    Touch {
        /// The object.
        oid: Oid,
    },
    /// The worker does something with an array.
    Array(ArrayEvent),
    /// The worker does something with a page.
    Pages(PageEvent),
    /// The worker sends what this node wrote last to nodes that have not asked for it.
    Propagate {
        /// Objects.
        objects: Vec<Oid>,
        /// Elements of arrays.
        elements: Vec<Elements>,
        /// The nodes.
        to: Vec<NodeId>,
    },
    /// The worker frees objects. Where they are the last ones of those allocated together, the
    /// rest of their chunk, in which no object ever is, comes with them.
    Free {
        /// The objects.
        range: OidRange,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker acquires a lock.
    Acquire {
        /// The lock.
        lock: LockId,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker releases a lock.
    Release {
        /// The lock.
        lock: LockId,
    },
    /// The worker wants to read or write under a read-write lock, or a permit of a semaphore.
    Enter {
        /// Which.
        sync_object: SyncObject,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker gives back what it entered, or a permit.
    Leave {
        /// Which.
        sync_object: SyncObject,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker gives back a read-write lock that it holds to write, waits on the condition of
    /// the lock, and acquires the lock to write again.
    WaitOnRwLock {
        /// The lock.
        lock: RwLockId,
        /// It waits until a node has written under the lock, and has not written itself: a section
        /// whose guard is false. Otherwise it waits until it is notified.
        until_written: bool,
        /// Where in the program.
        site: CallSite,
    },
    /// The sections that wait for a lock were [tried](Command::TrySections): the nodes that wait
    /// for the lock may pass.
    SectionsTried(RwLockId),
    /// The worker, holding a read-write lock, wakes nodes that wait on its condition, once it gives
    /// the lock back.
    NotifyRwLock {
        /// The lock.
        lock: RwLockId,
        /// All of them; otherwise the one that has waited longest.
        all: bool,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker gives back a lock that it holds, waits on a condition of it, and acquires it
    /// again.
    WaitOn {
        /// The condition.
        condition: ConditionId,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker, holding the condition's lock, wakes who waits on it.
    Notify {
        /// The condition.
        condition: ConditionId,
        /// All of them; otherwise the one that has waited longest.
        all: bool,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker reaches a barrier of the program.
    Arrive {
        /// Whether node 0 brings a value.
        once: bool,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker is about to use an object with operations: what it wrote so far happened before.
    EndInterval,
    /// The worker is about to synchronise: the owners of elements combine them with what it has
    /// gathered, before it goes on.
    Combine(Vec<UpdateBatch>),
    /// The worker is about to synchronise: it takes the updates of other nodes that
    /// [waited](crate::Protocol::has_updates) for that.
    TakeUpdates,
    /// The worker waits until an operation was executed, or a process has come to its end.
    Await {
        /// Which.
        what: WaitingFor,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker used objects with operations, and learns what had happened before in their
    /// order.
    Learn(Option<Arc<WriteNotices>>),
    /// The worker is about to synchronise ([`Protocol::has_unflushed`](crate::Protocol)): what it
    /// wrote of objects at home elsewhere goes there.
    Flush,
    /// The worker reaches a barrier at which objects change protocol.
    Switch {
        /// The objects.
        range: OidRange,
        /// The node that allocated them.
        creator: NodeId,
        /// Never written, they are all zeros.
        zero_ok: bool,
        /// How they are kept consistent afterwards.
        to: Coherence,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker reaches a barrier at which an array changes protocol.
    SwitchArray {
        /// All its elements.
        array: Elements,
        /// The node that allocated it.
        creator: NodeId,
        /// It began as zeros.
        zero_ok: bool,
        /// How it is kept consistent afterwards.
        to: Coherence,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker has left the barrier at which objects change protocol.
    Switched {
        /// The objects.
        range: OidRange,
        /// The node that allocated them.
        creator: NodeId,
        /// How they were kept consistent when they were allocated.
        allocated: Coherence,
        /// How they are kept consistent from now on.
        to: Coherence,
    },
    /// The worker has brought up to date what it keeps, and meets the others to drop the rest.
    ArriveToCollect {
        /// The barrier of the program before it.
        site: CallSite,
    },
    /// The worker does something in a collective.
    Collective(CollectiveEvent),
    /// The worker has finished the program.
    Finish,
    /// The worker is in a call: requests that had to wait for it can be answered.
    Serve,
    /// A message has come. Commands that install objects take their bytes from its payload.
    Deliver {
        /// The sender.
        from: NodeId,
        /// The message.
        message: Message,
    },
    /// A message is taken again that [waited](Command::DeliverAgain) for the worker's call.
    DeliverAgain {
        /// The sender.
        from: NodeId,
        /// The message.
        message: Message,
    },
    /// The worker has waited for long; time to look for a cycle in the wait-for graph.
    WaitedLong,
    /// The worker needs so many object ids that follow on each other, and has too few.
    AskIds {
        /// How many.
        ids: u64,
    },
}

impl Event {
    /// Whether the worker synchronises with others, so that what it wrote must be where they will
    /// look for it. Who is notified looks when it has the lock, which is released first.
    pub fn synchronises(&self) -> bool {
        !matches!(
            self,
            Event::Allocated { .. }
                | Event::ReadMiss(_)
                | Event::ReadMisses(_)
                | Event::WriteFault { .. }
                | Event::Overwrite(_)
                | Event::Unwritten(_)
                | Event::WrittenAt(_)
                | Event::Touch { .. }
                | Event::Array(_)
                | Event::Pages(_)
                | Event::Propagate { .. }
                | Event::Free { .. }
                | Event::Await { .. }
                | Event::Learn(_)
                | Event::Notify { .. }
                | Event::NotifyRwLock { .. }
                | Event::Flush
                | Event::SectionsTried(_)
                | Event::Switched { .. }
                | Event::Serve
                | Event::Deliver { .. }
                | Event::DeliverAgain { .. }
                | Event::WaitedLong
                | Event::AskIds { .. }
        )
    }
}

/// An object that may go along with one that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Along {
    /// The version of the bytes.
    pub version: Version,
    /// It is writable, and has to be made clean first.
    pub make_clean: bool,
}

/// Something that the node is to do. Commands name bytes and never carry them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Send a message without payload.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Something with objects.
    Objects(RegionCommand<Oid>),
    /// Something with elements of an array.
    Array(RegionCommand<Elements>),
    /// As [`Install`](RegionCommand::Install), for an object that came along: one before it in the
    /// payload must own it, or have a reference to it that was to be followed.
    InstallAlong(Sent),
    /// Pass over the next bytes of the payload.
    PassOver {
        /// How many.
        bytes: u64,
    },
    /// Tell [`Protocol::changed_at_home`](crate::Protocol::changed_at_home) which leaves of an
    /// object at home here the worker has changed against its pre-image.
    Compare {
        /// The object.
        oid: Oid,
        /// Where in the program the worker first wrote it.
        site: Option<CallSite>,
    },
    /// Keep a writable object behind the gate of its chunk from now on, and shut the gate: others
    /// read the object there in the [gated](crate::Protocol::gated) version. It is not written
    /// before the engine opens the gate for a write.
    Gate(Oid),
    /// Shut the gate of the chunk that begins with this id.
    ShutGate(Oid),
    /// Make a readable copy writable that its worker is expected to write in this interval, and
    /// note whether the worker does write it: the engine tells of it by [`Event::Unwritten`].
    ExpectWrite {
        /// The object.
        oid: Oid,
        /// Keep its bytes as they are now until [`MakeClean`](RegionCommand::MakeClean).
        pre_image: bool,
    },
    /// These objects were young until now, and have this version: they are clean.
    EndYoung {
        /// The objects.
        range: OidRange,
        /// Their version.
        version: Version,
    },
    /// Combine elements of an array, which are writable here, with updates.
    Combine {
        /// The array.
        array: Oid,
        /// How.
        combining: u8,
        /// Places in ascending order, and what is combined with the element there, as bits.
        updates: Vec<(u64, u64)>,
    },
    /// Something with a page.
    Pages(PageCommand),
    /// An interval that wrote something has ended.
    IntervalEnded,
    /// Gather units and send them behind a message. The message gets their
    /// [sizes](Message::set_sizes).
    SendUnits {
        /// The receivers.
        to: SmallVec<[NodeId; 1]>,
        /// The message, without the sizes.
        message: Message,
        /// The units.
        units: SmallVec<[Unit; 1]>,
        /// What of them.
        what: Behind,
    },
    /// Keep a message with its payload, and take it again at the worker's next call, by
    /// [`Event::DeliverAgain`].
    DeliverAgain {
        /// The sender.
        from: NodeId,
        /// The message.
        message: Message,
    },
    /// A member has made a mistake: the run ends.
    Fail(Box<ProtocolError>),
    /// The worker's wait is over, and some of what it waited for was freed.
    Gone(Freed),
    /// So many races were found: pairs of an interval told of and a write of this node.
    RacesFound(u64),
    /// A race that this node found, with both its sides.
    Race(Race),
    /// Keep the payload, a value of the collective of this number, until the worker takes it.
    Collected {
        /// The sender.
        from: NodeId,
        /// The collective's number.
        number: u64,
        /// Which way it goes.
        way: Way,
    },
    /// A request waits until the worker's next call.
    Deferred,
    /// Try the sections that wait for a lock again; then comes [`Event::SectionsTried`].
    TrySections(RwLockId),
    /// Hand a part of the object ids out to a node, of at least so many that follow on each other.
    HandOutIds {
        /// The node.
        to: NodeId,
        /// How many.
        ids: u64,
    },
    /// Take the object ids that were asked for.
    TakeIds(HandedOut),
    /// What the worker waits for has come.
    Done,
    /// The worker's wait is part of a cycle of the wait-for graph and will never end.
    Deadlock(Arc<[Waiter]>),
}

/// The commands of one step, in a buffer that is used again.
pub type Commands = Vec<Command>;
