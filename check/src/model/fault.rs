use dhole_model::Variants;

/// A property that fails. The checker tries to refute each of these properties.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum Fault {
    /// A read returned a value that an overwriting write had replaced before, in the order of
    /// happens-before.
    #[variants("a read returns the latest write that happened before, or a concurrent one")]
    StaleRead,
    /// A one-sided read returned other bytes than those of the version that it claims.
    #[variants("a one-sided read returns one version whole")]
    TornRead,
    /// Two nodes held one lock.
    #[variants("a lock has one holder")]
    TwoHolders,
    /// A node left a barrier that not all had reached.
    #[variants("nobody leaves a barrier that not all have reached")]
    LeftBarrierEarly,
    /// Bytes or handles were touched while the worker's state forbids it.
    #[variants("bytes are touched only as the worker's state allows")]
    Presence,
    /// A command asked the heap for something impossible.
    #[variants("commands ask the heap for what it can do")]
    Heap,
    /// A protocol refused a message or event of a correct cluster.
    #[variants("no protocol refuses what a sound cluster does")]
    Refused,
    /// A protocol panicked.
    #[variants("no protocol panics")]
    Panicked,
    /// A node whose wait would have ended was told that it is deadlocked.
    #[variants("only a wait that cannot end is reported as a deadlock")]
    PhantomDeadlock,
    /// Nothing can happen any more, and a node still waits that should not.
    #[variants("every wait ends, or is reported as a deadlock")]
    Stuck,
    /// All have finished, and readable copies of one object differ.
    #[variants("in the end all readable copies of an object are alike")]
    Undecided,
    /// A node was told that an object is freed, and no node had freed it.
    #[variants("only what was freed is told of as freed")]
    PhantomFree,
    /// A race was reported for two writes that are ordered, or that no node made.
    #[variants("only writes that nothing orders are told of as a race")]
    PhantomRace,
    /// All have finished, and a race was not reported.
    #[variants("every race is told of")]
    UntoldRace,
    /// Two copies of a counter were written by different operations at one place of its order.
    #[variants("operations that write have one order on all copies")]
    OtherOrder,
    /// The user half of a client is not what the client's last operation has made it.
    #[variants("a call changes the user half of its own client, and no other")]
    WrongUserHalf,
    /// All have finished, and no order of all operations explains their results.
    #[variants("one order of all operations explains what they told")]
    NoOrder,
    /// The program claims to be free of races and is not: a mistake in the program.
    #[variants("a program that claims to be race-free is")]
    Race,
}

/// An event that some run of a program must show, or the exploration would prove little.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Variants)]
#[variants(property)]
pub enum Sight {
    /// A node finds, at its second look, that what it copied in another's memory is unchanged.
    #[variants("an object is read in the memory of its last writer")]
    ReadThere,
    /// As above, and it has changed.
    #[variants("an object changes while it is read there")]
    ChangedThere,
    /// A node has copied an object that is behind its owner's gate.
    #[variants("an object is read behind a gate")]
    ReadBehindGate,
    /// A node that was to read an object there finds the gate open.
    #[variants("a reader finds a gate open")]
    OpenGate,
    /// A pushed copy waits to be read.
    #[variants("a pushed copy waits to be read")]
    Pushed,
    /// A flush waits for the call of the home's worker.
    #[variants("a flush waits for the home's next call")]
    FlushDeferred,
    /// A home announces that kept copies are outdated.
    #[variants("a copy that is kept becomes outdated")]
    Outdated,
    /// A request waits for the owner's next call.
    #[variants("a request waits for the owner's next call")]
    Deferred,
    /// A reply is taken from a pre-image.
    #[variants("a reply is taken from a pre-image")]
    PreImageReply,
    /// A copy is invalid.
    #[variants("a copy is invalid")]
    Invalidated,
    /// A copy stays writable when its interval ends: its node alone writes it.
    #[variants("a copy stays writable when its interval ends")]
    Exclusive,
    /// Such an object was withdrawn from a worker that computes.
    #[variants("an exclusive object is withdrawn from its worker")]
    Withdrawn,
    /// Two messages between the same nodes are in flight, so that one may overtake the other.
    #[variants("a message may overtake another")]
    Overtaking,
    /// A lock's manager passes a request on.
    #[variants("a manager passes a lock request on")]
    Forwarded,
    /// A node is told that it is deadlocked.
    #[variants("a node is told that it is deadlocked")]
    Deadlock,
    /// A node that asks for an object is told that it is freed.
    #[variants("a node that asks for an object is told that it is freed")]
    Gone,
    /// A node reports a race.
    #[variants("a node tells of a race")]
    Race,
    /// A probe is in flight.
    #[variants("a probe is on its way")]
    Probe,
    /// All nodes have reported what they have seen, so that there is a floor.
    #[variants("a floor is told")]
    Floor,
    /// A record that stands for several intervals is sent.
    #[variants("a record that stands for several intervals is told")]
    Compacted,
    /// An interval is sent as the difference from an earlier one.
    #[variants("an interval is told against an earlier one")]
    Reduced,
    /// A node requests an object only because it lies on the page of a missed one, or elements
    /// because they lie around missed ones.
    #[variants("an object is asked for because of its page, or elements are read ahead")]
    AskedBeside,
    /// A reply leaves out all objects that were requested so.
    #[variants("a reply leaves out what lies beside")]
    LeftOut,
    /// A node announces in a round that it is at a barrier.
    #[variants("a node says in a round that it is at a barrier")]
    Round,
    /// It announces a barrier that its receiver has not reached: the receiver waits at the one
    /// before.
    #[variants("a node is a barrier ahead of one that it tells so")]
    RoundAhead,
    /// It announces that, and news.
    #[variants("a node says in a round that there is news")]
    RoundOfNews,
    /// A value of a collective is in flight.
    #[variants("a value of a collective is on its way")]
    Collective,
    /// A value of a collective is in flight to a node that has not left the one before.
    #[variants("a node runs ahead of another in collectives")]
    Early,
    /// A whole page is in flight.
    #[variants("a whole page is sent")]
    WholePage,
    /// A node is to leave a barrier at which diffs are collected.
    #[variants("diffs are collected")]
    Collection,
}
