//! What the model of raw memory can find: faults, sights and planted bugs.

use crate::model::Finding;

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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryFault {
    /// A node may write and another one may read.
    NotAlone,
    /// A read does not return the last write.
    Stale,
    /// A machine calls a message of a sound node nonsense.
    Refused,
    /// A thread waits and nothing can happen any more.
    Stuck,
    /// It is over, and a manager's copies are not those who may read.
    WrongCopies,
    /// A freed minipage can be read, or one that is not freed is gone.
    WrongFree,
}

impl Finding for MemoryFault {
    const ALL: &'static [MemoryFault] = &[
        MemoryFault::NotAlone,
        MemoryFault::Stale,
        MemoryFault::Refused,
        MemoryFault::Stuck,
        MemoryFault::WrongCopies,
        MemoryFault::WrongFree,
    ];

    fn property(self) -> &'static str {
        match self {
            MemoryFault::NotAlone => "a writer is alone",
            MemoryFault::Stale => "a read returns the last write",
            MemoryFault::Refused => "no sound message is refused, and who is asked can serve",
            MemoryFault::Stuck => "no state is without a way on",
            MemoryFault::WrongCopies => "at rest the copies are those who have permission",
            MemoryFault::WrongFree => "what is gone was freed, and what was freed is gone",
        }
    }
}

/// Something that must happen in some run, so that the model shows what it is to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemorySight {
    /// A node lost its copy while its request to write it waited.
    UpgradeLostCopy,
    /// Two requests wait at a manager.
    QueueOfTwo,
    /// A thread that writes joins another one's request to read.
    ReadJoinedByWrite,
    /// A push comes to a node whose own request waits.
    PushOntoRequest,
    /// A thread waits for what was asked for ahead.
    PrefetchJoined,
    /// A minipage is freed while a request for it waits.
    FreeAgainstRequest,
    /// A node's copy is wanted while one of its threads holds it.
    HeldBack,
    /// A minipage of a round is taken away before its thread opens it.
    FetchLost,
}

impl Finding for MemorySight {
    const ALL: &'static [MemorySight] = &[
        MemorySight::UpgradeLostCopy,
        MemorySight::QueueOfTwo,
        MemorySight::ReadJoinedByWrite,
        MemorySight::PushOntoRequest,
        MemorySight::PrefetchJoined,
        MemorySight::FreeAgainstRequest,
        MemorySight::HeldBack,
        MemorySight::FetchLost,
    ];

    fn property(self) -> &'static str {
        match self {
            MemorySight::UpgradeLostCopy => "an upgrade loses its copy",
            MemorySight::QueueOfTwo => "two requests wait",
            MemorySight::ReadJoinedByWrite => "a write joins a read",
            MemorySight::PushOntoRequest => "a push meets a request",
            MemorySight::PrefetchJoined => "a prefetch is joined",
            MemorySight::FreeAgainstRequest => "a request meets a free",
            MemorySight::HeldBack => "a copy that is held is wanted",
            MemorySight::FetchLost => "what came of a round is lost",
        }
    }
}
