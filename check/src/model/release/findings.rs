//! What the model of minipages that nodes write together can find: faults, sights and planted bugs.

use dhole_model::Variants;

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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum ReleaseFault {
    /// A node may write without a twin, and another one has a copy.
    #[variants("a writer without a twin is alone")]
    NotAlone,
    /// A read does not return the write before it.
    #[variants("a read returns the write before it")]
    Stale,
    /// A diff is to be made without a twin.
    #[variants("who makes a diff has a twin")]
    NoTwin,
    /// A machine calls a message of a sound node nonsense.
    #[variants("no sound message is refused, and who is asked can serve")]
    Refused,
    /// A thread waits and nothing can happen any more.
    #[variants("no state is without a way on")]
    Stuck,
    /// It is over, and a manager's copies are not those who may read, or a twin is left.
    #[variants("at rest the copies are those who have permission, without twins")]
    WrongCopies,
    /// It is over, and a copy lacks a write.
    #[variants("at rest all copies have all writes")]
    Lost,
    /// Bytes are written into a minipage that a thread holds.
    #[variants("what a thread holds stays")]
    Held,
}

/// Something that must happen in some run, so that the model shows what it is to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum ReleaseSight {
    /// Two nodes have twins of one minipage.
    #[variants("two nodes have twins")]
    TwoTwins,
    /// A diff is under way.
    #[variants("a diff is under way")]
    Diff,
    /// A diff with nothing in it is under way.
    #[variants("an empty diff is under way")]
    EmptyDiff,
    /// A flush comes to nothing.
    #[variants("a flush comes to nothing")]
    Dropped,
    /// Two threads of a node wait for flushes.
    #[variants("two threads wait for flushes")]
    TwoRelease,
    /// A flush waits at its manager.
    #[variants("a request waits at its manager")]
    Queued,
    /// A copy is to go to a flush while a thread holds it.
    #[variants("a copy that is held is wanted")]
    HeldBack,
    /// A leader lends what its domain writes beside others.
    #[variants("a domain that writes beside others has two writers")]
    Lends,
    /// A leader withdraws that.
    #[variants("what a domain writes beside others is withdrawn")]
    Withdraws,
}
