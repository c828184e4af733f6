//! Protocols as members: what a protocol is that a program brings.
//!
//! A [`CoherenceProtocol`] is one node's part of a protocol: a pure state machine, as those that
//! dhole brings. The runtime tells it what happens to the *units* that are kept consistent under
//! it: objects, and blocks of arrays. It says what is to be done by calling its [`Context`]. It has
//! messages and notices of its own, which the runtime carries and does not read. Intervals, locks,
//! barriers and the wait-for graph are the same for all protocols.
//!
//! The heap refuses what the worker's state forbids. So a protocol with a mistake may give wrong
//! values, or end the run with an error; it cannot break memory.

mod erased;
mod turn;

use std::any::TypeId;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use dhole_model::{Coherence, MemberEntry, MemberId, NodeId, Oid, OidRange, Version};
use dhole_registry::Ship;
use dhole_wire::Wire;
use smallvec::SmallVec;

use crate::array_blocks::Behind;
use crate::command::WorkerIs;
pub(crate) use erased::{AnyMember, Make};
pub(crate) use turn::{Around, Inboxes, Said, Turn};

/// One node's part of a protocol that keeps objects and arrays consistent.
///
/// A *unit* is an object, or a block of an array: as many elements as fit 4 KiB. A protocol need
/// not know which. `creator` is the node that allocated it. Two nodes that write one unit
/// between two synchronisations race, unless the protocol has [several
/// writers](CoherenceProtocol::SEVERAL_WRITERS).
///
/// A call of the worker may need several blocks. The runtime asks for those that cannot be read
/// here all at once, and then goes through the blocks in their order. A block that it has gone
/// through stays: a message that would take it away is delivered again at the worker's next call.
///
/// It owns no clock, thread or random number, and depends on no address: the same events in the
/// same order lead to the same state and the same effects. So its runs can be explored
/// (`dhole-check`).
///
/// # Limits
/// Arrays need a protocol that has several writers, for nodes may write different elements of one
/// block at once. Nothing is kept consistent so in a run that survives the loss of nodes. Either is
/// an error where it is allocated. Races are not looked for.
pub trait CoherenceProtocol: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// The name in options, counters and reports. No other protocol of the program has it.
    const NAME: &'static str;

    /// What nodes say to each other, in the wire format.
    type Message: Wire;

    /// What a node attaches to its interval when it ends: all that acquire what was released then
    /// or later learn it.
    type Notice: Wire;

    /// Whether several nodes may write different parts of one unit between two synchronisations,
    /// and none loses what it wrote. `dhole-check` holds the protocol to it.
    const SEVERAL_WRITERS: bool = false;

    /// Node `me` of a cluster of `nodes`, before anything has happened.
    fn new(me: NodeId, nodes: usize) -> Self;

    /// The unit that a message is about, if the delivery takes away nothing of others. While a
    /// call keeps blocks, the runtime copies this node's part of the protocol before each message
    /// that is not known to be about another unit.
    fn unit_of(_message: &Self::Message) -> Option<Oid> {
        None
    }

    /// The worker has allocated units here, and stored their first values: the only copies, which
    /// are readable and not writable.
    fn allocated(&mut self, units: OidRange, cx: &mut Context<'_, Self>);

    /// The worker reads a unit of which it has no readable copy. It goes on after
    /// [`ready`](Context::ready) or [`gone`](Context::gone), now or later.
    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>);

    /// The worker writes a unit of which its copy is not writable; it had a readable one when it
    /// began the call. It goes on after [`ready`](Context::ready), now or later. Of a block other
    /// elements may be writable.
    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Self>);

    /// Whether something must be done before the worker synchronises.
    fn must_release(&self) -> bool;

    /// The worker is about to synchronise, and something [must be done](Self::must_release)
    /// before. It goes on after [`released`](Context::released), now or later.
    fn before_release(&mut self, cx: &mut Context<'_, Self>);

    /// The interval of this version ends. The notice for the nodes that acquire it, if there is
    /// one.
    fn notice(&mut self, _version: Version) -> Option<Self::Notice> {
        None
    }

    /// The worker acquires what this notice is attached to: another node's interval of this
    /// version. Intervals of one node come in their order.
    fn noticed(&mut self, _version: Version, _notice: Self::Notice, _cx: &mut Context<'_, Self>) {}

    /// The worker has acquired something: a lock, a barrier, a value. What other nodes released
    /// before must be visible now. All notices of it have come.
    fn after_acquire(&mut self, cx: &mut Context<'_, Self>);

    /// A message has come.
    ///
    /// A node may ask about a unit of which this one has yet to hear, for it left the barrier
    /// first at which the unit was [handed over](Self::adopt): such a message is
    /// [deferred](Context::defer).
    ///
    /// # Errors
    /// What is wrong with a message that no sound node sends. It ends the run.
    fn deliver(
        &mut self,
        from: NodeId,
        message: Self::Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str>;

    /// All nodes have met, and a unit is kept consistent under this protocol from now on. Its only
    /// copy is at `holder`, readable and not writable.
    fn adopt(&mut self, unit: Oid, holder: NodeId, cx: &mut Context<'_, Self>);

    /// All nodes have met, and a unit leaves this protocol. The protocol says, on all nodes alike,
    /// which node has the copy that counts. That copy is readable, and must not be writable any
    /// more; all others must be made invalid.
    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) -> NodeId;

    /// A unit was freed, here or elsewhere: nothing is left of it.
    fn freed(&mut self, unit: Oid);

    /// Whether the end of an interval, an acquire and the worker's next call change nothing here.
    /// A barrier takes fewer steps where that is so.
    fn is_quiescent(&self) -> bool {
        false
    }

    /// The protocol's name where one is chosen: of a run, of an allocation, of a switch. It is the
    /// same in all processes of the program.
    ///
    /// # Panics
    /// When dhole brings a protocol of this name, or two protocols have one name.
    fn coherence() -> Coherence {
        assert!(
            Coherence::ALL.iter().all(|one| one.name() != Self::NAME),
            "a protocol '{}': dhole brings one of this name",
            Self::NAME
        );
        Coherence::Member(MemberId::of::<Brought<Self>>())
    }
}

/// The entry of a protocol in the program's table.
struct Brought<P>(PhantomData<P>);

impl<P: CoherenceProtocol> Ship for Brought<P> {
    type Is = MemberEntry;
    const IS: &'static MemberEntry = &MemberEntry {
        name: P::NAME,
        type_id: TypeId::of::<P>(),
        make: &Make::of::<P>(),
    };
}

/// Leaves a protocol's entry in the program: options know its name, before anything has called
/// [`coherence`](CoherenceProtocol::coherence).
#[inline]
pub(crate) fn put<P: CoherenceProtocol>() {
    dhole_registry::put::<Brought<P>>();
}

/// What a protocol knows of its surroundings, and how it says what is to be done. What it says is
/// done in its order, once the event has been taken.
pub struct Context<'a, P: ?Sized> {
    turn: Turn<'a>,
    protocol: PhantomData<fn(&P)>,
}

impl<'a, P: CoherenceProtocol> Context<'a, P> {
    fn new(turn: Turn<'a>) -> Context<'a, P> {
        let protocol = PhantomData;
        Context { turn, protocol }
    }

    /// The same for a protocol that this one is made of and that says the same.
    pub fn of<Q>(&mut self) -> Context<'_, Q>
    where
        Q: CoherenceProtocol<Message = P::Message, Notice = P::Notice>,
    {
        let Turn {
            around,
            said,
            inboxes: (objects, elements),
        } = &mut self.turn;
        Context::new(Turn {
            around: *around,
            said,
            inboxes: (objects, elements),
        })
    }

    /// This node.
    pub fn me(&self) -> NodeId {
        self.turn.around.me
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.turn.around.nodes
    }

    /// What the worker does meanwhile, and so which bytes may be touched:
    ///
    /// | the worker is | allowed |
    /// |---|---|
    /// | [`Computing`](WorkerIs::Computing) | keeping, sending what is not writable |
    /// | [`Sharing`](WorkerIs::Sharing) | also sending the rest, installing, making clean |
    /// | [`InCall`](WorkerIs::InCall) | everything |
    ///
    /// Once what a call of the worker needs is [ready](Context::ready), the worker counts as
    /// computing, so that an access is made before anything can take the unit away again.
    pub fn worker(&self) -> WorkerIs {
        self.turn.around.worker
    }

    /// Whether a unit was freed, as far as this node knows. No copy of it is here then.
    pub fn is_freed(&self, unit: Oid) -> bool {
        self.turn.around.objects.get(unit).freed
    }

    /// Sends a message to another node.
    pub fn send(&mut self, to: NodeId, message: &P::Message) {
        self.send_bytes(to, message, &[]);
    }

    /// Sends a message to another node, and behind it the bytes of units, as they are here.
    pub fn send_bytes(&mut self, to: NodeId, message: &P::Message, units: &[Oid]) {
        self.send_behind(to, message, units, Behind::Bytes);
    }

    /// Sends a message to another node, and behind it what the worker has changed in units since
    /// they became [writable with a twin](Context::make_writable_with_twin). Of a block these are
    /// its writable elements, all of which the worker has asked to write.
    pub fn send_changes(&mut self, to: NodeId, message: &P::Message, units: &[Oid]) {
        self.send_behind(to, message, units, Behind::Changes);
    }

    /// Pushes units to nodes that have not asked for them: sends a message to each of these nodes,
    /// and behind it the bytes of the units, as they are here.
    pub fn push(
        &mut self,
        to: impl IntoIterator<Item = NodeId>,
        message: &P::Message,
        units: &[Oid],
    ) {
        let to: SmallVec<[NodeId; 8]> = to.into_iter().collect();
        self.turn
            .send(&to, message.to_bytes(), units, Behind::Pushed);
    }

    fn send_behind(&mut self, to: NodeId, message: &P::Message, units: &[Oid], what: Behind) {
        self.turn.send(&[to], message.to_bytes(), units, what);
    }

    /// Takes the next unit's bytes from behind the message that is being delivered, and makes them
    /// the readable copy here. There must be no readable copy.
    pub fn install(&mut self, unit: Oid) {
        self.turn.install(unit);
    }

    /// Passes over what lies behind the message of the next unit.
    pub fn skip(&mut self) {
        self.turn.skip();
    }

    /// Takes the next unit's bytes from behind the message, and keeps them in this node's inbox,
    /// also while there is a readable copy. `number` says how new they are. They replace older ones
    /// there, and are forgotten where newer ones are.
    ///
    /// An inbox has room for 16 MiB. Bytes for which there is no room are forgotten, and so are
    /// those of a block before the worker first uses its array. Bytes stay in the inbox until they
    /// are [taken](Context::take_kept) or [discarded](Context::discard), the unit is freed, or it
    /// is switched to another protocol.
    pub fn keep(&mut self, unit: Oid, number: u64) {
        self.turn.keep(unit, number);
    }

    /// Takes a unit's bytes out of the inbox, and makes them the readable copy here. There must be
    /// no readable copy. Whether bytes were there that are at least as new as `oldest`; if not,
    /// the inbox has no bytes of the unit any more.
    pub fn take_kept(&mut self, unit: Oid, oldest: u64) -> bool {
        self.turn.take_kept(unit, oldest)
    }

    /// Forgets a unit's bytes in the inbox.
    pub fn discard(&mut self, unit: Oid) {
        self.turn.discard(unit);
    }

    /// Takes the next unit's changes from behind the message, and makes them part of the readable
    /// copy here. What others have changed of it, and the worker here, stays. Two nodes that have
    /// changed the same number, or other smallest part, race. A unit that was freed stays so.
    pub fn merge(&mut self, unit: Oid) {
        self.turn.merge(unit);
    }

    /// Makes the copy here unreadable and unwritable. Its bytes stay, and can be sent.
    pub fn invalidate(&mut self, unit: Oid) {
        self.turn.invalidate(unit);
    }

    /// Makes the readable copy here writable; of a block those elements that the worker's call
    /// writes.
    pub fn make_writable(&mut self, unit: Oid) {
        self.turn.make_writable(unit, false);
    }

    /// As [`make_writable`](Context::make_writable), and keeps a twin of an object's bytes as they
    /// are now, until it is clean again. A block needs none.
    pub fn make_writable_with_twin(&mut self, unit: Oid) {
        self.turn.make_writable(unit, true);
    }

    /// Makes the writable copy here read-only.
    pub fn make_clean(&mut self, unit: Oid) {
        self.turn.make_clean(unit);
    }

    /// The worker's access to a unit can be made.
    pub fn ready(&mut self, unit: Oid) {
        self.turn.said.ready.push(unit);
    }

    /// What had to be done before the worker synchronises is done.
    pub fn released(&mut self) {
        self.turn.said.released = true;
    }

    /// The unit that the worker accesses was freed: the access is an error.
    pub fn gone(&mut self, unit: Oid) {
        self.turn.said.gone = Some(unit);
        self.turn.said.ready.push(unit);
    }

    /// Keeps the message that is being delivered, with the bytes behind it, and delivers it again
    /// at the worker's next call. Others that come meanwhile may overtake it. A node that has
    /// 65,536 such messages of another one refuses further ones, and the run ends.
    pub fn defer(&mut self) {
        self.turn.said.deferred = true;
    }

    /// Ends the run: the protocol has found a mistake of its own.
    pub fn fail(&mut self, what: impl Into<String>) {
        self.turn.fail(what.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_that_names_another_of_dhole_is_refused() {
        let refused = std::panic::catch_unwind(Named::<true>::coherence).unwrap_err();
        let said = refused.downcast_ref::<String>().expect("words");
        assert!(
            said.contains("'home': dhole brings one of this name"),
            "{said}"
        );
    }

    #[test]
    fn a_protocol_that_was_put_is_known_by_its_name() {
        put::<Named<false>>();
        let found: Coherence = "listed".parse().expect("a name in the table");
        assert!(matches!(found, Coherence::Member(_)), "{found:?}");
    }

    /// A protocol that does nothing, by the name of one that dhole brings or by one of its own.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Named<const TAKEN: bool>;

    impl<const TAKEN: bool> CoherenceProtocol for Named<TAKEN> {
        const NAME: &'static str = if TAKEN { "home" } else { "listed" };
        type Message = ();
        type Notice = ();

        fn new(_: NodeId, _: usize) -> Self {
            Named
        }

        fn allocated(&mut self, _: OidRange, _: &mut Context<'_, Self>) {}

        fn read_miss(&mut self, unit: Oid, _: NodeId, cx: &mut Context<'_, Self>) {
            cx.gone(unit);
        }

        fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Self>) {
            cx.ready(unit);
        }

        fn must_release(&self) -> bool {
            false
        }

        fn before_release(&mut self, cx: &mut Context<'_, Self>) {
            cx.released();
        }

        fn after_acquire(&mut self, _: &mut Context<'_, Self>) {}

        fn deliver(
            &mut self,
            _: NodeId,
            (): (),
            _: &mut Context<'_, Self>,
        ) -> Result<(), &'static str> {
            Err("it says nothing")
        }

        fn adopt(&mut self, _: Oid, _: NodeId, _: &mut Context<'_, Self>) {}

        fn give_up(&mut self, _: Oid, creator: NodeId, _: &mut Context<'_, Self>) -> NodeId {
            creator
        }

        fn freed(&mut self, _: Oid) {}
    }
}
