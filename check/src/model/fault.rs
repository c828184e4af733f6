/// A property that fails. The checker tries to refute each of these properties.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A read returned a value that an overwriting write had replaced before, in the order of
    /// happens-before.
    StaleRead,
    /// A one-sided read returned other bytes than those of the version that it claims.
    TornRead,
    /// Two nodes held one lock.
    TwoHolders,
    /// A node left a barrier that not all had reached.
    LeftBarrierEarly,
    /// Bytes or handles were touched while the worker's state forbids it.
    Presence,
    /// A command asked the heap for something impossible.
    Heap,
    /// A protocol refused a message or event of a correct cluster.
    Refused,
    /// A protocol panicked.
    Panicked,
    /// A node whose wait would have ended was told that it is deadlocked.
    PhantomDeadlock,
    /// Nothing can happen any more, and a node still waits that should not.
    Stuck,
    /// All have finished, and readable copies of one object differ.
    Undecided,
    /// A node was told that an object is freed, and no node had freed it.
    PhantomFree,
    /// A race was reported for two writes that are ordered, or that no node made.
    PhantomRace,
    /// All have finished, and a race was not reported.
    UntoldRace,
    /// Two copies of a counter were written by different operations at one place of its order.
    OtherOrder,
    /// All have finished, and no order of all operations explains their results.
    NoOrder,
    /// The program claims to be free of races and is not: a mistake in the program.
    Race,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 17] = [
        Fault::StaleRead,
        Fault::TornRead,
        Fault::TwoHolders,
        Fault::LeftBarrierEarly,
        Fault::Presence,
        Fault::Heap,
        Fault::Refused,
        Fault::Panicked,
        Fault::PhantomDeadlock,
        Fault::Stuck,
        Fault::Undecided,
        Fault::PhantomFree,
        Fault::PhantomRace,
        Fault::UntoldRace,
        Fault::OtherOrder,
        Fault::NoOrder,
        Fault::Race,
    ];

    /// The property that holds while the fault does not happen.
    pub const fn property(self) -> &'static str {
        match self {
            Fault::StaleRead => {
                "a read returns the latest write that happened before, or a concurrent one"
            }
            Fault::TornRead => "a one-sided read returns one version whole",
            Fault::TwoHolders => "a lock has one holder",
            Fault::LeftBarrierEarly => "nobody leaves a barrier that not all have reached",
            Fault::Presence => "bytes are touched only as the worker's state allows",
            Fault::Heap => "commands ask the heap for what it can do",
            Fault::Refused => "no protocol refuses what a sound cluster does",
            Fault::Panicked => "no protocol panics",
            Fault::PhantomDeadlock => "only a wait that cannot end is reported as a deadlock",
            Fault::Stuck => "every wait ends, or is reported as a deadlock",
            Fault::Undecided => "in the end all readable copies of an object are alike",
            Fault::PhantomFree => "only what was freed is told of as freed",
            Fault::PhantomRace => "only writes that nothing orders are told of as a race",
            Fault::UntoldRace => "every race is told of",
            Fault::OtherOrder => "operations that write have one order on all copies",
            Fault::NoOrder => "one order of all operations explains what they told",
            Fault::Race => "a program that claims to be race-free is",
        }
    }
}

/// An event that some run of a program must show, or the exploration would prove little.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sight {
    /// A node finds, at its second look, that what it copied in another's memory is unchanged.
    ReadThere,
    /// As above, and it has changed.
    ChangedThere,
    /// A pushed copy waits to be read.
    Pushed,
    /// A flush waits for the call of the home's worker.
    FlushDeferred,
    /// A home announces that kept copies are outdated.
    Outdated,
    /// A request waits for the owner's next call.
    Deferred,
    /// A reply is taken from a pre-image.
    PreImageReply,
    /// A copy is invalid.
    Invalidated,
    /// A copy stays writable when its interval ends: its node alone writes it.
    Exclusive,
    /// Such an object was withdrawn from a worker that computes.
    Withdrawn,
    /// Two messages between the same nodes are in flight, so that one may overtake the other.
    Overtaking,
    /// A lock's manager passes a request on.
    Forwarded,
    /// A node is told that it is deadlocked.
    Deadlock,
    /// A node that asks for an object is told that it is freed.
    Gone,
    /// A node reports a race.
    Race,
    /// A probe is in flight.
    Probe,
    /// All nodes have reported what they have seen, so that there is a floor.
    Floor,
    /// A record that stands for several intervals is sent.
    Compacted,
    /// An interval is sent as the difference from an earlier one.
    Reduced,
    /// A node requests an object only because it lies on the page of a missed one.
    AskedBeside,
    /// A reply leaves out all objects that were requested so.
    LeftOut,
    /// A node announces in a round that it is at a barrier.
    Round,
    /// It announces a barrier that its receiver has not reached: the receiver waits at the one
    /// before.
    RoundAhead,
    /// It announces that, and news.
    RoundOfNews,
    /// A value of a collective is in flight.
    Collective,
    /// A value of a collective is in flight to a node that has not left the one before.
    Early,
    /// A whole page is in flight.
    WholePage,
    /// A node is to leave a barrier at which diffs are collected.
    Collection,
}

impl Sight {
    /// The property's name.
    pub const fn property(self) -> &'static str {
        match self {
            Sight::ReadThere => "an object is read in the memory of its last writer",
            Sight::ChangedThere => "an object changes while it is read there",
            Sight::Pushed => "a pushed copy waits to be read",
            Sight::FlushDeferred => "a flush waits for the home's next call",
            Sight::Outdated => "a copy that is kept becomes outdated",
            Sight::Deferred => "a request waits for the owner's next call",
            Sight::PreImageReply => "a reply is taken from a pre-image",
            Sight::Invalidated => "a copy is invalid",
            Sight::Exclusive => "a copy stays writable when its interval ends",
            Sight::Withdrawn => "an exclusive object is withdrawn from its worker",
            Sight::Overtaking => "a message may overtake another",
            Sight::Forwarded => "a manager passes a lock request on",
            Sight::Deadlock => "a node is told that it is deadlocked",
            Sight::Gone => "a node that asks for an object is told that it is freed",
            Sight::Race => "a node tells of a race",
            Sight::Probe => "a probe is on its way",
            Sight::Floor => "a floor is told",
            Sight::Compacted => "a record that stands for several intervals is told",
            Sight::Reduced => "an interval is told against an earlier one",
            Sight::AskedBeside => "an object is asked for because of its page",
            Sight::LeftOut => "a reply leaves out what lies beside",
            Sight::Round => "a node says in a round that it is at a barrier",
            Sight::RoundAhead => "a node is a barrier ahead of one that it tells so",
            Sight::RoundOfNews => "a node says in a round that there is news",
            Sight::Collective => "a value of a collective is on its way",
            Sight::Early => "a node runs ahead of another in collectives",
            Sight::WholePage => "a whole page is sent",
            Sight::Collection => "diffs are collected",
        }
    }
}
