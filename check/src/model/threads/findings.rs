//! What the model of threads can find: faults, sights and planted bugs.

use crate::model::Finding;

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
}

/// A property that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThreadFault {
    /// Two threads hold a lock.
    NotAlone,
    /// A thread passes a barrier or a semaphore that it may not pass, or a second one is the first.
    TooEarly,
    /// A machine calls a message of a sound node nonsense, or refuses what a thread may do.
    Refused,
    /// A deadlock is found where there is none, or where there is one.
    Deadlock,
    /// Threads wait and nothing can happen any more.
    Stuck,
    /// It is over, and a machine waits for something.
    Restless,
}

impl Finding for ThreadFault {
    const ALL: &'static [ThreadFault] = &[
        ThreadFault::NotAlone,
        ThreadFault::TooEarly,
        ThreadFault::Refused,
        ThreadFault::Deadlock,
        ThreadFault::Stuck,
        ThreadFault::Restless,
    ];

    fn property(self) -> &'static str {
        match self {
            ThreadFault::NotAlone => "a lock is one thread's",
            ThreadFault::TooEarly => "as many threads pass as may, and one is the first",
            ThreadFault::Refused => "no sound message is refused",
            ThreadFault::Deadlock => "no deadlock is found",
            ThreadFault::Stuck => "no state is without a way on",
            ThreadFault::Restless => "when all is over no machine waits",
        }
    }
}

/// Something that must happen in some run, so that the model shows what it is to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThreadSight {
    /// Two threads of a node wait for locks.
    BothWait,
    /// Two threads of a node reach a barrier by one message.
    SentTogether,
    /// A lock that is tried is another's.
    Busy,
    /// A thread's signal comes beside the word that its wait has begun.
    SignalOvertakes,
    /// A probe follows two threads.
    Probe,
}

impl Finding for ThreadSight {
    const ALL: &'static [ThreadSight] = &[
        ThreadSight::BothWait,
        ThreadSight::SentTogether,
        ThreadSight::Busy,
        ThreadSight::SignalOvertakes,
        ThreadSight::Probe,
    ];

    fn property(self) -> &'static str {
        match self {
            ThreadSight::BothWait => "two threads of a node wait",
            ThreadSight::SentTogether => "two arrivals are one message",
            ThreadSight::Busy => "a lock is tried in vain",
            ThreadSight::SignalOvertakes => "a signal may overtake",
            ThreadSight::Probe => "a probe follows two threads",
        }
    }
}
