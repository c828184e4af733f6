//! What the model of minipages that nodes write together can find: faults, sights and planted bugs.

use crate::model::Finding;

/// A mistake planted between the machines and the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReleaseBug {
    /// A node that loses its copy to a flush sends no diff.
    NoDiff,
    /// It sends all words, and not those alone that it has written.
    WholeDiff,
    /// A diff is made before threads may write no more.
    DiffEarly,
    /// A flush is over before all diffs are merged.
    GrantEarly,
    /// A twin is made when threads may write already.
    TwinLate,
    /// A node keeps its copy to read when another one flushes.
    KeepCopy,
    /// A node may write as if it were alone while others have copies.
    WriteAlone,
    /// A thread does not wait for a flush that another thread of its node has begun.
    ForgetOthers,
    /// A thread does not wait until a flush is over that has taken its node's copy.
    ForgetTaken,
    /// A node that another one leads releases without a flush.
    MemberForgets,
    /// A leader takes what it withdraws for left, and the node goes on with it.
    ForgetMember,
    /// A leader says that a flush is over when it begins.
    AnswerEarly,
    /// A node is lent what its domain writes beside others as if the domain were alone.
    MemberAlone,
}

/// A property that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseFault {
    /// A node may write without a twin, and another one has a copy.
    NotAlone,
    /// A read does not return the write before it.
    Stale,
    /// A diff is to be made without a twin.
    NoTwin,
    /// A machine calls a message of a sound node nonsense.
    Refused,
    /// A thread waits and nothing can happen any more.
    Stuck,
    /// It is over, and a manager's copies are not those who may read, or a twin is left.
    WrongCopies,
    /// It is over, and a copy lacks a write.
    Lost,
    /// Bytes are written into a minipage that a thread holds.
    Held,
}

impl Finding for ReleaseFault {
    const ALL: &'static [ReleaseFault] = &[
        ReleaseFault::NotAlone,
        ReleaseFault::Stale,
        ReleaseFault::NoTwin,
        ReleaseFault::Refused,
        ReleaseFault::Stuck,
        ReleaseFault::WrongCopies,
        ReleaseFault::Lost,
        ReleaseFault::Held,
    ];

    fn property(self) -> &'static str {
        match self {
            ReleaseFault::NotAlone => "a writer without a twin is alone",
            ReleaseFault::Stale => "a read returns the write before it",
            ReleaseFault::NoTwin => "who makes a diff has a twin",
            ReleaseFault::Refused => "no sound message is refused, and who is asked can serve",
            ReleaseFault::Stuck => "no state is without a way on",
            ReleaseFault::WrongCopies => {
                "at rest the copies are those who have permission, without twins"
            }
            ReleaseFault::Lost => "at rest all copies have all writes",
            ReleaseFault::Held => "what a thread holds stays",
        }
    }
}

/// Something that must happen in some run, so that the model shows what it is to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseSight {
    /// Two nodes have twins of one minipage.
    TwoTwins,
    /// A diff is under way.
    Diff,
    /// A diff with nothing in it is under way.
    EmptyDiff,
    /// A flush comes to nothing.
    Dropped,
    /// Two threads of a node wait for flushes.
    TwoRelease,
    /// A flush waits at its manager.
    Queued,
    /// A copy is to go to a flush while a thread holds it.
    HeldBack,
    /// A leader lends what its domain writes beside others.
    Lends,
    /// A leader withdraws that.
    Withdraws,
}

impl Finding for ReleaseSight {
    const ALL: &'static [ReleaseSight] = &[
        ReleaseSight::TwoTwins,
        ReleaseSight::Diff,
        ReleaseSight::EmptyDiff,
        ReleaseSight::Dropped,
        ReleaseSight::TwoRelease,
        ReleaseSight::Queued,
        ReleaseSight::HeldBack,
        ReleaseSight::Lends,
        ReleaseSight::Withdraws,
    ];

    fn property(self) -> &'static str {
        match self {
            ReleaseSight::TwoTwins => "two nodes have twins",
            ReleaseSight::Diff => "a diff is under way",
            ReleaseSight::EmptyDiff => "an empty diff is under way",
            ReleaseSight::Dropped => "a flush comes to nothing",
            ReleaseSight::TwoRelease => "two threads wait for flushes",
            ReleaseSight::Queued => "a request waits at its manager",
            ReleaseSight::HeldBack => "a copy that is held is wanted",
            ReleaseSight::Lends => "a domain that writes beside others has two writers",
            ReleaseSight::Withdraws => "what a domain writes beside others is withdrawn",
        }
    }
}
