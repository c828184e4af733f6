//! Objects with operations: where each is kept, which operation waits for what, and in which order
//! they take effect (Orca, sections 2.1 and 2.3).
//!
//! An object is kept as *one copy*, to whose node the others send their operations, or it is
//! *replicated*: operations that only read are executed on the own replica, without a message, and
//! those that write are multicast in one order and executed on every replica. A caller waits until
//! its own operation has been executed here. Both kinds together are sequentially consistent,
//! because requests and replies say which ordered message was last delivered to their sender, and
//! whoever receives one does nothing with it before it has come that far too.
//!
//! An operation whose guard is false waits with the object, and is tried again, in the order of
//! coming, after every operation that writes. So no waiter misses its moment, and of those that may
//! go on the longest goes first.
//!
//! Every operation is a synchronisation: it tells what its caller wrote before, and its caller
//! learns what those had written who used the object before (`notices`).
//!
//! [`Objects`] is one node's part, a pure state machine. It does not order messages itself: what it
//! wants [multicast](ObjectsCommand::Broadcast) must be [delivered](ObjectsEvent::Delivered) to all
//! nodes in one order. Nor does it see copies: those are its [`Host`]'s.

mod batch;
mod bytes;
mod call;
pub mod chain;
mod change;
mod check;
pub mod clerk;
pub mod codec;
mod compare;
mod effects;
mod entry;
mod freeing;
mod host;
mod message;
mod monitored;
mod node_loss;
mod notices;
mod ordered;
pub mod ordered_codec;
mod packed;
mod pending_calls;
mod predefined;
mod processes;
mod remote;
mod rendezvous;
mod sections;
mod sequence_map;
mod withdrawal;

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, NodeMap, ObjectCounters, ObjectId, SortedMap, VectorTime};
use rustc_hash::FxHashMap;

use crate::ProtocolError;
use batch::{Answering, Batch};
pub use bytes::Bytes;
pub use call::{Call, CallId, CallRef, Outcome, Refusal, Saved, Waiting};
pub use check::check_group;
use clerk::Clerks;
pub use effects::ObjectsEffects;
use entry::Entry;
pub use entry::Place;
pub use host::{Admitted, Host, Ran, Tried};
pub use message::{ClerkId, ObjectsMessage, Ordered, Rendezvous, Start, Strategy};
use notices::KnownNotices;
pub use packed::{PackedCalls, PackedResults};
use pending_calls::PendingCalls;
pub use predefined::Predefined;
use rendezvous::Arrived;
pub use sequence_map::SequenceMap;

/// So many calls of one node may be under way at a time while its worker goes on; it may wait for
/// one more.
pub const MOST_CALLS: usize = 1024;

/// So many processes that were started on a node may have begun at a time, and no more.
pub const MOST_BEGUN: usize = 256;

/// Something that happens to a node's objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectsEvent {
    /// The worker makes an object of this state.
    Create {
        /// The number of the call.
        call: u64,
        /// The object: a [new one](Objects::new_object).
        object: ObjectId,
        /// What tells its type from others.
        kind: u64,
        /// Its state.
        state: Bytes,
        /// Where it is kept.
        strategy: Strategy,
    },
    /// The worker calls an operation.
    Invoke(Call),
    /// The worker calls an operation and goes on before it is over.
    Begin(Call),
    /// The worker executed an operation that writes on the only copy, which is here.
    Wrote(ObjectId),
    /// The worker waits for what others do. Calls that wait to go together go now.
    SendBatches,
    /// The worker withdraws a call of an operation that is not over, if it has not begun.
    Withdraw {
        /// The number of the call.
        call: u64,
        /// The object.
        object: ObjectId,
    },
    /// The worker says how an object is to be kept from now on.
    Change {
        /// The number of the call.
        call: u64,
        /// The object.
        object: ObjectId,
        /// How.
        to: Strategy,
    },
    /// The worker frees an object.
    Free {
        /// The number of the call.
        call: u64,
        /// The object.
        object: ObjectId,
    },
    /// The worker asks whether all replicas of an object are alike.
    Compare {
        /// The number of the call.
        call: u64,
        /// The object.
        object: ObjectId,
    },
    /// The worker waits until those of all nodes do that are not gone.
    Meet {
        /// The number of the call.
        call: u64,
        /// Where.
        place: Rendezvous,
        /// Where in the program.
        site: CallSite,
        /// What it has made for all.
        value: Option<Bytes>,
    },
    /// These nodes are lost, from this place in the order of multicasts on.
    Gone(Vec<NodeId>),
    /// The worker starts a process on a node.
    Spawn {
        /// What is started; `time` is for the machine to say.
        start: Start,
        /// Where.
        to: NodeId,
    },
    /// A process that was started here has come to its end.
    Ended {
        /// What was [started](ObjectsCommand::Start).
        by: CallId,
        /// What who started it had seen.
        time: Option<VectorTime>,
        /// What it came to.
        outcome: Outcome,
    },
    /// A process has come to the end of a call that it [executed](ObjectsCommand::Execute).
    Executed {
        /// The call.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// What it came to.
        outcome: Outcome,
    },
    /// A message has come.
    Deliver {
        /// The sender.
        from: NodeId,
        /// The message.
        message: ObjectsMessage,
    },
    /// What was multicast is delivered, in the order in which all nodes get it.
    Delivered {
        /// Its place in the order.
        sequence: u64,
        /// Who multicast it.
        from: NodeId,
        /// What it says.
        body: Arc<Ordered>,
    },
}

/// Something that the node is to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ObjectsCommand {
    /// Send a message.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: ObjectsMessage,
    },
    /// Multicast this to all nodes, this one included, in the order that all agree on.
    Broadcast(Arc<Ordered>),
    /// Start a process here, when its turn comes.
    Start(Start),
    /// Execute this call here, by a process, when its turn comes.
    Execute(Call),
    /// An object was freed; nothing need be known of it any more.
    Freed(ObjectId),
    /// A call that this node's worker started was tried, and its guard is false.
    Blocked(u64),
    /// A call of this node's worker is over.
    Finished {
        /// Its number.
        call: u64,
        /// What it came to.
        outcome: Outcome,
    },
}

/// One node's part in keeping objects. See the [module](self).
#[derive(Clone, Debug)]
pub struct Objects {
    me: NodeId,
    nodes: usize,
    table: FxHashMap<ObjectId, Entry>,
    /// The number of the run, which its objects have in theirs.
    run: u64,
    made: u64,
    calls: u64,
    /// Calls of this node that another node was asked to execute.
    pending: PendingCalls,
    /// Calls that wait to go together, by the node where they go.
    batches: NodeMap<Batch>,
    /// What the calls of a batch have come to that is executed.
    answering: Option<Answering>,
    comparing: SortedMap<u64, compare::Comparing>,
    /// The last ordered message delivered here.
    delivered: u64,
    /// The time at which nothing has been seen.
    nothing: VectorTime,
    /// What has come from nodes to which more was delivered.
    held: Vec<(NodeId, ObjectsMessage)>,
    notices: KnownNotices,
    /// What each node's objects have surely been told of ours.
    acknowledged: NodeMap<VectorTime>,
    /// What each node said that it had seen.
    told_by: NodeMap<VectorTime>,
    /// What ordered messages have told to all.
    told: VectorTime,
    /// Something happened to an object here since the worker last looked.
    acquire_due: bool,
    /// The bytes of a result.
    result: Vec<u8>,
    /// Whether digests of replicas are kept.
    digests: bool,
    /// Whether the run goes on when nodes are lost.
    survives: bool,
    /// Nodes that are lost, each since after which ordered message.
    gone: NodeMap<u64>,
    /// Who has come to where all are to meet.
    arrived: NodeMap<Arrived>,
    freed: freeing::Freed,
    /// What every node has from the start.
    predefined: Vec<Predefined>,
    clerk: Clerks,
    /// Calls of the worker's that it has withdrawn, with their objects, until it has seen their
    /// ends.
    withdrawn: SortedMap<u64, ObjectId>,
}

/// Room for results that has grown past this is kept while each result needs it.
const MOST_KEPT: usize = 1 << 16;

type Out<'a> = &'a mut Vec<ObjectsCommand>;

impl Objects {
    /// The part of node `me`, one of `nodes`.
    pub fn new(me: NodeId, nodes: usize) -> Objects {
        Objects {
            me,
            nodes,
            table: FxHashMap::default(),
            run: 0,
            made: 0,
            calls: 0,
            pending: PendingCalls::default(),
            batches: NodeMap::new(),
            answering: None,
            comparing: SortedMap::new(),
            delivered: 0,
            nothing: VectorTime::zero(nodes),
            held: Vec::new(),
            notices: KnownNotices::new(nodes),
            acknowledged: NodeMap::new(),
            told_by: NodeMap::new(),
            told: VectorTime::zero(nodes),
            acquire_due: false,
            result: Vec::new(),
            digests: false,
            survives: false,
            gone: NodeMap::new(),
            arrived: NodeMap::new(),
            freed: freeing::Freed::default(),
            predefined: Vec::new(),
            clerk: Clerks::default(),
            withdrawn: SortedMap::new(),
        }
    }

    /// The same in the run of this number, which no other run of the process has.
    pub fn of_run(self, run: u64) -> Objects {
        Objects { run, ..self }
    }

    /// An object that no other call gives out, of this run or another.
    pub fn new_object(&mut self) -> ObjectId {
        let object = ObjectId::new(self.run, self.me, self.nodes, self.made);
        self.made += 1;
        object
    }

    /// A number for a call that no other has.
    #[inline]
    pub fn new_call(&mut self) -> CallId {
        self.calls += 1;
        self.own(self.calls)
    }

    /// The [next one](Objects::new_call).
    #[inline]
    pub fn next_call(&self) -> CallId {
        self.own(self.calls + 1)
    }

    /// Whether the worker may execute an operation at once on the copy here, by itself. If it
    /// writes, [`ObjectsEvent::Wrote`] must follow.
    #[inline]
    pub fn is_local(&self, object: ObjectId, writes: bool) -> bool {
        let entry = self.table.get(&object);
        entry.is_some_and(|entry| entry.is_local(writes))
    }

    /// Where the worker may [read at once](Objects::is_local) an object: how often it has, which is
    /// for the caller to count.
    #[inline]
    pub fn reads_here(&mut self, object: ObjectId) -> Option<&mut u64> {
        let entry = self.table.get_mut(&object)?;
        entry.is_local(false).then_some(&mut entry.accesses.reads)
    }

    /// The worker uses an object.
    #[inline]
    pub fn count(&mut self, object: ObjectId, writes: bool) {
        // Of what was freed nothing is kept.
        let Some(entry) = self.table.get_mut(&object) else {
            return self.count_first(object, writes);
        };
        match writes {
            true => entry.accesses.writes += 1,
            false => entry.accesses.reads += 1,
        }
    }

    #[cold]
    fn count_first(&mut self, object: ObjectId, writes: bool) {
        if self.freed.by(object, self.nodes).is_none() {
            self.table.insert(object, Entry::unknown());
            self.count(object, writes);
        }
    }

    /// The program knows where an object is kept, of which nothing was heard here.
    pub fn suppose(&mut self, object: ObjectId, at: NodeId) {
        if at == self.me || self.freed.by(object, self.nodes).is_some() {
            return;
        }
        let entry = self.table.entry(object).or_insert_with(Entry::unknown);
        if entry.place == Place::Unknown {
            entry.place = Place::At(at);
            self.lose_copy(object);
        }
    }

    /// Where the object is, as far as it is known here.
    pub fn place(&self, object: ObjectId) -> Option<Place> {
        self.table.get(&object).map(|entry| entry.place)
    }

    /// How often this node used each object that it knows.
    pub fn accesses(&self) -> impl Iterator<Item = (ObjectId, ObjectCounters)> {
        let all = self.table.iter();
        all.map(|(object, entry)| (*object, entry.accesses))
    }

    /// The last ordered message delivered here.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether operations of others were executed here, or told something, since the worker was
    /// last told that so it is; its next operation has to [learn](Objects::unlearned) then.
    #[inline]
    pub fn take_acquire_due(&mut self) -> bool {
        std::mem::take(&mut self.acquire_due)
    }

    /// Whether it would.
    #[inline]
    pub fn is_acquire_due(&self) -> bool {
        self.acquire_due
    }

    /// Whether something is kept of what operations told this node, or someone who has seen `time`
    /// has not heard of it.
    #[inline]
    pub fn has_heard(&self, time: Option<&VectorTime>) -> bool {
        !self.notices.is_empty() || self.notices.is_more(time)
    }

    /// What operations told this node and someone who has seen `time` has not heard.
    pub fn unlearned(&self, time: Option<&VectorTime>) -> Option<Arc<crate::WriteNotices>> {
        self.notices.since(time)
    }

    /// Every node has seen this: it need not be told again.
    pub fn forget_up_to(&mut self, time: &VectorTime) {
        self.notices.forget_up_to(time);
    }

    /// How many intervals are kept for those who may not have seen them.
    pub fn intervals_kept(&self) -> usize {
        self.notices.kept()
    }

    /// Takes an event and calls the effects of what is to be done, in this order.
    ///
    /// # Errors
    /// [`ProtocolError::BadMessage`] for what no node of a sound cluster says; nothing was done
    /// about that.
    pub fn step(
        &mut self,
        event: ObjectsEvent,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        let event = match event {
            ObjectsEvent::Invoke(call) => {
                self.call(call.by_ref(), host, fx);
                return Ok(());
            }
            ObjectsEvent::Begin(call) => {
                self.begin(call, host, fx);
                return Ok(());
            }
            ObjectsEvent::Deliver { from, message } => {
                return self.deliver(from, message, host, fx);
            }
            ObjectsEvent::Delivered {
                sequence,
                from,
                body,
            } => return self.deliver_ordered((sequence, from), &body, host, fx),
            ObjectsEvent::Executed {
                by,
                object,
                outcome,
            } => {
                self.executed_by_process((by, object), &outcome, host, fx);
                return Ok(());
            }
            event => event,
        };
        let out = fx.commands();
        if let Some(call) = self.is_about_predefined(&event) {
            let outcome = Err(Refusal::Unknown);
            out.push(ObjectsCommand::Finished { call, outcome });
            return Ok(());
        }
        match event {
            ObjectsEvent::Create {
                call,
                object,
                kind,
                state,
                strategy,
            } => {
                let strategy = self.simplest(strategy);
                self.create((call, object), kind, state, strategy, host, out);
            }
            ObjectsEvent::Invoke(_)
            | ObjectsEvent::Begin(_)
            | ObjectsEvent::Executed { .. }
            | ObjectsEvent::Deliver { .. }
            | ObjectsEvent::Delivered { .. } => {}
            ObjectsEvent::Wrote(object) => {
                self.hear_own(host);
                self.retry(object, host, out);
            }
            ObjectsEvent::SendBatches => self.send_batches(host, out),
            ObjectsEvent::Withdraw { call, object } => {
                self.withdraw_own((call, object), host, out);
            }
            ObjectsEvent::Change { call, object, to } => {
                self.ask_change(call, object, self.simplest(to), out);
            }
            ObjectsEvent::Free { call, object } => {
                let by = self.own(call);
                let free = Ordered::Free { by, object };
                out.push(ObjectsCommand::Broadcast(Arc::new(free)));
            }
            ObjectsEvent::Compare { call, object } => self.compare(call, object, out),
            ObjectsEvent::Meet {
                call,
                place,
                site,
                value,
            } => self.meet(call, place, site, value, host, out),
            ObjectsEvent::Gone(nodes) => self.lose(&nodes, host, out),
            ObjectsEvent::Spawn { start, to } => self.spawn(start, to, host, out),
            ObjectsEvent::Ended { by, time, outcome } => self.ended(by, time, outcome, host, out),
        }
        Ok(())
    }

    /// Takes what was multicast and [has its turn](ObjectsEvent::Delivered): its place in the
    /// order, who multicast it, and what it says.
    ///
    /// # Errors
    /// As [`step`](Objects::step).
    pub fn deliver_ordered(
        &mut self,
        (sequence, from): (u64, NodeId),
        body: &Arc<Ordered>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        self.delivered = sequence;
        let checked = self.check_ordered(from, body);
        if checked.is_ok() {
            self.ordered(sequence, body, host, fx);
        }
        let bad = checked.map_err(|what| ProtocolError::BadMessage { from, what });
        bad.and(self.take_held(host, fx))
    }

    /// The same for a cluster of this size: all replicas of a single node are one copy, whose
    /// operations need no order.
    fn simplest(&self, strategy: Strategy) -> Strategy {
        match strategy {
            Strategy::Replicated if self.nodes == 1 => Strategy::On(self.me),
            strategy => strategy,
        }
    }

    pub(super) fn own(&self, number: u64) -> CallId {
        CallId {
            node: self.me,
            number,
        }
    }

    fn create(
        &mut self,
        (call, object): (u64, ObjectId),
        kind: u64,
        state: Bytes,
        strategy: Strategy,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let by = self.own(call);
        match strategy {
            Strategy::On(node) if self.gone.contains_key(&node) => {
                let outcome = Err(Refusal::NoNode(node));
                out.push(ObjectsCommand::Finished { call, outcome });
            }
            Strategy::In(clerk) if self.gone.contains_key(&clerk.node) => {
                let outcome = Err(Refusal::NoNode(clerk.node));
                out.push(ObjectsCommand::Finished { call, outcome });
            }
            Strategy::On(node) | Strategy::In(ClerkId { node, .. }) if node == self.me => {
                match self.keep((object, strategy.clerk()), kind, &state, host) {
                    Ok(made) if self.survives => self.tell_place(by, object, made, out),
                    outcome => out.push(ObjectsCommand::Finished { call, outcome }),
                }
            }
            Strategy::On(to) | Strategy::In(ClerkId { node: to, .. }) => {
                self.table.insert(object, Entry::new(Place::At(to), 0));
                self.pending.insert_once(to, by.number, None);
                let message = match strategy.clerk() {
                    None => ObjectsMessage::Create {
                        by,
                        object,
                        kind,
                        state,
                    },
                    Some(clerk) => ObjectsMessage::CreateIn {
                        by,
                        object,
                        kind,
                        state,
                        clerk,
                    },
                };
                out.push(ObjectsCommand::Send { to, message });
            }
            Strategy::Replicated => {
                let create = Ordered::Create {
                    by,
                    object,
                    kind,
                    state,
                };
                out.push(ObjectsCommand::Broadcast(Arc::new(create)));
            }
        }
    }

    /// An object that was to be made is not, so no node has a copy of it.
    pub fn unmade(&mut self, object: ObjectId) {
        self.table.remove(&object);
    }

    /// Keeps the only copy of an object here.
    fn keep(
        &mut self,
        (object, clerk): (ObjectId, Option<ClerkId>),
        kind: u64,
        state: &[u8],
        host: &mut dyn Host,
    ) -> Outcome {
        let comes_back = host.create(object, kind, state)?;
        self.hear_of_earlier_losses(object, host);
        let place = match clerk {
            Some(clerk) => {
                self.clerk.add_to(clerk, object);
                Place::Monitored
            }
            None if host.has_monitor(object) => {
                self.clerk.add(object);
                Place::Monitored
            }
            None => Place::Here,
        };
        self.table.insert(object, Entry::new(place, 0));
        Ok(comes_back)
    }

    /// The worker [calls](ObjectsEvent::Invoke) an operation, or the object has gone where it was
    /// called before.
    pub fn call(&mut self, call: CallRef<'_>, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        let number = call.id.number;
        if let Some((_, home)) = call.object.lock() {
            return self.call_section(home, call, host, fx);
        }
        if !self.table.contains_key(&call.object)
            && let why @ Refusal::Freed(_) = self.why_not(call.object)
        {
            return fx.finished(number, Err(why));
        }
        let entry = self.table.entry(call.object).or_insert_with(Entry::unknown);
        match entry.place {
            Place::Here => {
                if call.writes {
                    self.hear_own(host);
                }
                self.execute(call, host, fx);
            }
            Place::Monitored => self.comes(call, host, fx),
            Place::At(to) => self.ask(to, call, host, fx),
            Place::Unknown => {
                if self.begin_predefined(call.object, host) {
                    return self.call(call, host, fx);
                }
                let creator = call.object.creator(self.nodes);
                match creator == self.me {
                    true => fx.finished(number, Err(Refusal::Unknown)),
                    false => self.ask(creator, call, host, fx),
                }
            }
            Place::Replicated if !call.writes => self.execute(call, host, fx),
            Place::Replicated => {
                let (time, news) = match host.has_news_since(&self.told) {
                    true => (host.time(), host.news_since(&self.told)),
                    false => (None, None),
                };
                let call = call.into();
                fx.broadcast(Arc::new(Ordered::Operate { call, time, news }));
            }
            Place::Coming | Place::Spreading(_) => entry.postponed.push(call.into()),
            Place::Lost(node) => fx.finished(number, Err(Refusal::Lost(node))),
        }
    }

    /// So many calls of all nodes together may be under way.
    pub(super) fn most_calls(&self) -> usize {
        (MOST_CALLS + 1) * self.nodes
    }

    /// What the worker wrote happened before what it now does to a copy here.
    pub(super) fn hear_own(&mut self, host: &dyn Host) {
        if let Some(news) = host.news_since(self.notices.time()) {
            self.notices.hear(&news);
        }
    }

    /// Tries a call on the copy here. If it waits, it is tried again when something has changed.
    fn execute(&mut self, call: CallRef<'_>, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        let (executed, result) = self.apply(call, host);
        match executed.map(|done| done.then_some(&result[..])).transpose() {
            None => self.wait(call, fx),
            Some(outcome) => {
                self.finish(call.id, outcome, fx);
                if call.writes {
                    self.retry(call.object, host, fx);
                }
            }
        }
        self.keep_room(result);
    }

    /// Tries a call on the copy here, whose result is in the bytes then, if there is one.
    fn apply(
        &mut self,
        call: CallRef<'_>,
        host: &mut dyn Host,
    ) -> (Result<bool, Refusal>, Vec<u8>) {
        let mut result = std::mem::take(&mut self.result);
        result.clear();
        (host.apply_to(call, &mut result), result)
    }

    /// The bytes of a result are needed no longer.
    fn keep_room(&mut self, result: Vec<u8>) {
        if result.capacity() <= MOST_KEPT || result.len() > MOST_KEPT {
            self.result = result;
        }
    }

    /// A call waits with the object, for its guard is false.
    fn wait(&mut self, call: CallRef<'_>, fx: &mut impl ObjectsEffects) {
        let most = self.most_calls();
        let time = self.told_by.get(&call.id.node).cloned();
        let entry = self.table.entry(call.object).or_insert_with(Entry::unknown);
        if entry.waiting(call.writes) >= most {
            return self.finish(call.id, Err(Refusal::TooMany(most)), fx);
        }
        entry.blocked.push_back(Waiting {
            call: call.into(),
            time,
        });
        if call.started {
            self.started_is_blocked(call.id, fx.commands());
        }
    }

    /// Something has changed: tries the calls that wait, from the first on, until none can go on.
    fn retry(&mut self, object: ObjectId, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        let mut next = 0;
        loop {
            let entry = self.table.get(&object);
            let Some(waiting) = entry.and_then(|entry| entry.blocked.get(next)) else {
                return;
            };
            match host.apply(&waiting.call) {
                Tried::Blocked => next += 1,
                Tried::Done(outcome) => {
                    let entry = self.table.get_mut(&object);
                    let taken = entry.and_then(|entry| entry.blocked.remove(next));
                    let Some(Waiting { call, .. }) = taken else {
                        return;
                    };
                    let outcome = outcome.as_deref().map_err(Refusal::clone);
                    self.finish(call.id, outcome, fx);
                    if call.writes {
                        next = 0;
                    }
                }
            }
        }
    }

    /// A call was executed on the copy here: its caller gets the result, if it does not execute
    /// the call itself.
    fn finish(
        &mut self,
        id: CallId,
        outcome: Result<&[u8], Refusal>,
        fx: &mut impl ObjectsEffects,
    ) {
        if id.node == self.me {
            self.pending.forget(id.number);
            self.no_longer_withdrawn(id.number);
            return fx.finished(id.number, outcome);
        }
        self.acquire_due = true;
        self.reply(id, outcome, fx);
    }
}
