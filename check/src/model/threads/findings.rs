//! What the model of threads can find: faults, sights and planted bugs.

use dhole_model::Variants;

/// A mistake planted between the machines and the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadBug {
    /// A lock is granted twice.
    TwoTokens,
    /// A lock is lost on its way.
    LostToken,
    /// A barrier lets its threads go on where one is missing.
    OneTooFew,
    /// A barrier counts a thread twice.
    CountedTwice,
    /// A barrier says to each node that the first thread is among its own.
    AllFirst,
    /// A thread that was signalled does not hear of it.
    LostSignal,
    /// A thread gives its lock up before its wait on a condition has begun.
    EarlyRelease,
    /// A thread does not hear that it has one of a semaphore.
    LostPost,
    /// The wait-for graph lacks the waits for locks.
    NoEdgeOfLocks,
    /// It lacks the waits at barriers.
    NoEdgeOfBarriers,
    /// It lacks the waits on conditions.
    NoEdgeOfConditions,
    /// It lacks the waits for semaphores.
    NoEdgeOfSemaphores,
    /// The waits of a node stay in the graph when they are over.
    StaleEdges,
    /// Messages that are under way do not count.
    ForgetTraffic,
}

/// A property that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum ThreadFault {
    /// Two threads hold a lock.
    #[variants("a lock is one thread's")]
    NotAlone,
    /// A thread passes a barrier or a semaphore that it may not pass, or a second one is the first.
    #[variants("as many threads pass as may, and one is the first")]
    TooEarly,
    /// A machine calls a message of a sound node nonsense, or refuses what a thread may do.
    #[variants("no sound message is refused")]
    Refused,
    /// A thread that would go on is told that it waits for ever; or any one, of a program in which
    /// none does.
    #[variants("no deadlock is found where there is none")]
    Deadlock,
    /// Threads wait and nothing can happen any more.
    #[variants("no state is without a way on")]
    Stuck,
    /// It is over, and a machine waits for something.
    #[variants("when all is over no machine waits")]
    Restless,
}

/// Something that must happen in some run, so that the model shows what it is to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum ThreadSight {
    /// Two threads of a node wait for locks.
    #[variants("two threads of a node wait")]
    BothWait,
    /// Two threads of a node reach a barrier by one message.
    #[variants("two arrivals are one message")]
    SentTogether,
    /// A lock that is tried is another's.
    #[variants("a lock is tried in vain")]
    Busy,
    /// A thread's signal comes beside the word that its wait has begun.
    #[variants("a signal may overtake")]
    SignalOvertakes,
    /// A probe has found that two threads wait.
    #[variants("a probe finds two waits")]
    Probe,
    /// A thread is told that it waits for ever.
    #[variants("a thread is told of a deadlock")]
    Told,
}
