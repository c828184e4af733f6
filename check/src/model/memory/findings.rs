//! What the model of raw memory can find: faults, sights and planted bugs.

use dhole_model::Variants;

/// A mistake planted between the machines and the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryBug {
    /// A copy that is taken away stays readable.
    SkipInvalidation,
    /// A node says that its copy is gone before it is.
    AnswerBeforeRevoking,
    /// A reader is missing among those whose copies are taken away.
    ForgetReader,
    /// A node that gave a copy to a reader may still write.
    StayWritable,
    /// The manager begins with the next operation at once, and takes acknowledgements too.
    ServeTwo,
    /// The manager does not wait for acknowledgements.
    SkipAck,
    /// The bytes are read before the permission is taken away.
    ReadBeforeRevoking,
    /// A node may write a copy that was taken away while its request waited.
    GrantWithoutCopy,
    /// The bytes of an operation that is over come once more, as the answer to a new request.
    LateData,
    /// The manager does not wait until all have what was pushed.
    ForgetPushed,
    /// The manager does not wait for a node that fetches ahead.
    ForgetPrefetch,
    /// Of two threads that wait for one answer the second sleeps on.
    WakeOne,
    /// A minipage is freed while a node has a copy.
    FreeWithCopy,
    /// A copy to read comes with the permission to write.
    InstallWritable,
    /// A thread that holds a minipage has it taken away.
    ReleaseEarly,
    /// A thread opens a minipage of its round that was taken away before.
    OpenLost,
    /// The manager does not wait for a node to which it brings a neighbour.
    ForgetBrought,
    /// A freed minipage is allocated again with its bytes.
    ReuseDirty,
    /// The answer of the node that manages all minipages to one that allocates is lost.
    LoseAllocation,
    /// A node of a domain keeps what its leader withdraws.
    MemberKeeps,
    /// A node of a domain says that it has left what its leader withdraws before it has.
    MemberAnswersEarly,
    /// A leader forgets a node to which it has lent something.
    ForgetMember,
    /// A leader withdraws what it has lent before that has come.
    WithdrawEarly,
    /// A thread holds what was brought meanwhile, and leaves its request before the answer.
    LeaveRequest,
}

/// A property that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum MemoryFault {
    /// A node may write and another one may read.
    #[variants("a writer is alone")]
    NotAlone,
    /// A read does not return the last write.
    #[variants("a read returns the last write")]
    Stale,
    /// A machine calls a message of a sound node nonsense.
    #[variants("no sound message is refused, and who is asked can serve")]
    Refused,
    /// A thread waits and nothing can happen any more.
    #[variants("no state is without a way on")]
    Stuck,
    /// It is over, and a manager's copies are not those who may read.
    #[variants("at rest the copies are those who have permission")]
    WrongCopies,
    /// A freed minipage can be read, or one that is not freed is gone.
    #[variants("what is gone was freed, and what was freed is gone")]
    WrongFree,
}

/// Something that must happen in some run, so that the model shows what it is to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum MemorySight {
    /// A node lost its copy while its request to write it waited.
    #[variants("an upgrade loses its copy")]
    UpgradeLostCopy,
    /// Two requests wait at a manager.
    #[variants("two requests wait")]
    QueueOfTwo,
    /// A thread that writes joins another one's request to read.
    #[variants("a write joins a read")]
    ReadJoinedByWrite,
    /// A push comes to a node whose own request waits.
    #[variants("a push meets a request")]
    PushOntoRequest,
    /// A thread waits for what was asked for ahead.
    #[variants("a prefetch is joined")]
    PrefetchJoined,
    /// A minipage is freed while a request for it waits.
    #[variants("a request meets a free")]
    FreeAgainstRequest,
    /// A node's copy is wanted while one of its threads holds it.
    #[variants("a copy that is held is wanted")]
    HeldBack,
    /// A minipage of a round is taken away before its thread opens it.
    #[variants("what came of a round is lost")]
    FetchLost,
}
