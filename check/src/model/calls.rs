//! Objects with operations beside references: counters that nodes call, as the engine calls them,
//! and references that nodes hand over through them.
//!
//! Multicasts have one order, which each node follows at its own pace. The order keeps that of each
//! node's own multicasts. The ghosts are [`Operations`]: a node that executes an operation must see
//! everything that happened before the object's earlier operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use dhole_model::{CallSite, NodeId, ObjectId, VectorTime};
use dhole_protocol::objects::{
    Bytes, Call, CallId, CallRef, Host, Objects as Machine, ObjectsCommand, ObjectsEvent, Ordered,
    Outcome, Ran as SectionRan, Refusal, Saved, Strategy, Tried,
};
use dhole_protocol::{
    Event, Message, Operation, ProtocolError, RwLockId, WaitingFor, WriteNotices,
};

use crate::Bug;
use crate::model::node::{Around, Failed};
use crate::model::sections::AtHome;
use crate::model::{
    Clock, Fault, History, MOST_NODES, Network, Node, Op, Phase, Presence, Program, Wait,
};
use crate::objects::Op as Do;

/// A node's part in keeping counters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Calls {
    machine: Printed<Machine>,
    copies: Counters,
    /// The call that the worker waits for.
    awaited: Option<u64>,
    /// Calls that were started and not awaited yet, in order; whether each is over.
    started: VecDeque<(u64, bool)>,
    /// Calls that were started, that nobody waits for, and that were not tried yet.
    unsettled: BTreeSet<u64>,
    /// The worker waits for these.
    settles: bool,
    /// How many multicasts were delivered here.
    delivered: usize,
    /// The multicasts that the node must have delivered before its worker goes on.
    after: u64,
    /// The worker's call has learnt what operations told.
    learnt: bool,
    /// The user halves of the node's client, and of its clone.
    users: [u8; 2],
    /// The client whose user half the awaited call has taken along.
    lends: Option<u8>,
}

/// A value that is compared by its `Debug` text, written once for all that share the value.
#[derive(Clone, Debug)]
struct Printed<T>(Arc<(T, OnceLock<String>)>);

impl<T: std::fmt::Debug + Clone> Printed<T> {
    fn new(value: T) -> Printed<T> {
        Printed(Arc::new((value, OnceLock::new())))
    }

    fn text(&self) -> &str {
        let (value, text) = &*self.0;
        text.get_or_init(|| format!("{value:?}"))
    }

    /// The value, to be changed: it is shared no longer.
    fn change(&mut self) -> &mut T {
        *self = Printed::new(self.0.0.clone());
        let (value, _) = Arc::get_mut(&mut self.0).expect("it was just made");
        value
    }
}

impl<T> Deref for Printed<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T: std::fmt::Debug + Clone> Hash for Printed<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.text().hash(hasher);
    }
}

impl<T: std::fmt::Debug + Clone> PartialEq for Printed<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.text() == other.text()
    }
}

impl<T: std::fmt::Debug + Clone> Eq for Printed<T> {}

/// The copies here: the value of each, and how many operations have written it.
type Counters = BTreeMap<ObjectId, [u8; 2]>;

/// The order of multicasts.
#[derive(Clone, PartialEq, Hash, Default, Debug)]
pub(crate) struct Order {
    /// Multicasts without a place yet, in the order of each node.
    unordered: VecDeque<(NodeId, Arc<Ordered>)>,
    log: Vec<(NodeId, Arc<Ordered>)>,
}

impl Order {
    /// The nodes whose next multicast has no place yet.
    pub fn waits(&self) -> impl Iterator<Item = NodeId> {
        let mut nodes: Vec<_> = self.unordered.iter().map(|(node, _)| *node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter()
    }

    /// The next multicast of a node gets its place.
    pub fn order(&mut self, node: NodeId) {
        let place = self.unordered.iter().position(|(from, _)| *from == node);
        self.log
            .extend(place.and_then(|place| self.unordered.remove(place)));
    }

    pub fn is_empty(&self) -> bool {
        self.unordered.is_empty()
    }
}

/// A call: its caller, and its number.
type CallOf = (u16, u64);

/// The clocks of the operations of each counter.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Operations {
    /// The operations that wrote, in order, each with everything that happened before it and
    /// itself.
    written: BTreeMap<ObjectId, Vec<(CallOf, Clock)>>,
    /// Calls under way.
    under_way: BTreeMap<CallOf, UnderWay>,
    /// The results of each node's calls, in a litmus test.
    told: [Vec<u8>; MOST_NODES],
    /// What operations made of the user halves of each node's clients.
    users: [[u8; 2]; MOST_NODES],
}

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct UnderWay {
    /// Everything that happened before it.
    began: Clock,
    /// Everything that its caller must see afterwards.
    seen: Clock,
    /// Its result where it was executed.
    told: u8,
    /// The client that makes it, and what the operation made of the user half.
    client: Option<(u8, Option<u8>)>,
}

impl History {
    fn calls(&mut self, node: usize, number: u64, client: Option<u8>) {
        let call = UnderWay {
            began: self.clock(node),
            client: client.map(|client| (client, None)),
            ..UnderWay::default()
        };
        let calls = &mut self.operations.under_way;
        calls.insert((node as u16, number), call);
    }

    /// An operation was executed on a copy that `index` others have written.
    fn executes(&mut self, ran: Ran) -> Result<(), Fault> {
        let Ran {
            object,
            call,
            writes,
            index,
            told,
            user,
        } = ran;
        let Operations {
            written, under_way, ..
        } = &mut self.operations;
        let written = written.entry(object).or_default();
        let index = usize::from(index);
        let before = index.checked_sub(1).map(|last| written.get(last));
        let before = match before {
            Some(Some((_, clock))) => *clock,
            Some(None) => return Err(Fault::OtherOrder),
            None => Clock::default(),
        };
        let Some(running) = under_way.get_mut(&call) else {
            // Its caller knows that it is over.
            let same = written.get(index).is_some_and(|(other, _)| *other == call);
            return same.then_some(()).ok_or(Fault::OtherOrder);
        };
        running.told = told;
        if let Some((_, made)) = &mut running.client {
            *made = user;
        }
        running.seen.merge(&before);
        if !writes {
            return Ok(());
        }
        running.seen.merge(&running.began);
        match written.get(index) {
            None => written.push((call, running.seen)),
            Some((other, _)) if *other == call => {}
            Some(_) => return Err(Fault::OtherOrder),
        }
        Ok(())
    }

    /// A node's worker gets the result of a call.
    fn called(&mut self, node: usize, number: u64, litmus: bool) {
        let call = (node as u16, number);
        let over = self.operations.under_way.remove(&call);
        if let Some(UnderWay {
            seen, told, client, ..
        }) = over
        {
            self.hear(node, &seen);
            if let Some((client, Some(user))) = client {
                self.operations.users[node][usize::from(client)] = user;
            }
            if litmus {
                self.operations.told[node].push(told);
            }
        }
    }

    /// The results of each node's calls, in a litmus test.
    pub(crate) fn told(&self) -> &[Vec<u8>] {
        &self.operations.told
    }
}

/// An operation that was executed on a copy.
struct Ran {
    object: ObjectId,
    call: CallOf,
    writes: bool,
    /// How many have written the copy before.
    index: u8,
    /// Its result.
    told: u8,
    /// What it made of the user half of the client that called it.
    user: Option<u8>,
}

/// The copies while the machine works with them.
struct Hosting<'a> {
    copies: &'a mut Counters,
    ran: Vec<Ran>,
    at_home: AtHome<'a>,
}

impl Host for Hosting<'_> {
    fn create(&mut self, object: ObjectId, _: u64, state: &[u8]) -> Outcome {
        let [value, index] = *state else {
            return Err(Refusal::Malformed("no counter".into()));
        };
        self.copies.insert(object, [value, index]);
        Ok(Bytes::default())
    }

    fn spoil(&mut self, _: ObjectId, _: Refusal) {}

    fn apply(&mut self, call: &Call) -> Tried {
        let (tried, ran) = apply(self.copies, call);
        self.ran.extend(ran);
        tried
    }

    fn apply_section(
        &mut self,
        call: CallRef<'_>,
        time: Option<&VectorTime>,
        _: &mut Vec<u8>,
    ) -> Result<SectionRan, Refusal> {
        self.at_home.section(call, time)
    }

    fn sections_wait(&mut self, lock: ObjectId, wait: bool) {
        let protocol = &mut self.at_home.protocol;
        protocol.section_waits(RwLockId(lock.0), wait);
    }

    fn save(&mut self, object: ObjectId) -> Saved {
        let counter = self.copies.get(&object).ok_or(Refusal::Unknown)?;
        Ok((0, Bytes::from(*counter)))
    }

    fn discard(&mut self, object: ObjectId) {
        self.copies.remove(&object);
    }

    fn digest(&mut self, _: ObjectId) -> u64 {
        0
    }

    fn name_of(&self, _: ObjectId, _: u16) -> Arc<str> {
        "an operation".into()
    }

    fn time(&self) -> Option<VectorTime> {
        self.at_home.protocol.seen().cloned()
    }

    fn news_since(&self, seen: &VectorTime) -> Option<Arc<WriteNotices>> {
        self.at_home.protocol.news_for(seen)
    }
}

/// Tries an operation on the copy here.
fn apply(copies: &mut Counters, call: &Call) -> (Tried, Option<Ran>) {
    let Some([value, index]) = copies.get_mut(&call.object) else {
        return (Tried::Done(Err(Refusal::Unknown)), None);
    };
    let Some(told) = Do::of(call.operation, call.arguments[0]).apply(value) else {
        return (Tried::Blocked, None);
    };
    let ran = Ran {
        object: call.object,
        call: (call.id.node.0, call.id.number),
        writes: call.writes,
        index: *index,
        told,
        user: call.arguments.get(1).map(|user| next_user(*user, told)),
    };
    *index += u8::from(call.writes);
    let result = match call.arguments.get(1) {
        None => Bytes::from([told]),
        Some(user) => Bytes::from([told, next_user(*user, told)]),
    };
    (Tried::Done(Ok(result)), Some(ran))
}

/// What an operation that told this makes of a user half.
fn next_user(user: u8, told: u8) -> u8 {
    user * 4 + told + 1
}

/// The counter of this number, which node 0 makes before anything else happens.
fn counter(number: u8, nodes: usize) -> ObjectId {
    ObjectId::new(0, NodeId(0), nodes, u64::from(number))
}

/// Makes the counters of a program.
pub(crate) fn make(nodes: &mut [Node], around: &mut Around<'_>) -> Result<(), Failed> {
    for strategy in around.program.counters.iter().copied() {
        let machine = nodes[0].calls.machine.change();
        let (object, call) = (machine.new_object(), machine.new_call().number);
        let event = ObjectsEvent::Create {
            call,
            object,
            kind: 0,
            state: Bytes::from([0, 0]),
            strategy,
        };
        nodes[0].step_objects(event, around)?;
        loop {
            let (place, waits) = {
                let network = &around.network;
                (network.places().next(), network.order.waits().next())
            };
            if let Some(place) = place {
                let parcel = around.network.take(place);
                nodes[parcel.to.index()].deliver(&parcel, around)?;
            } else if let Some(node) = waits {
                around.network.order.order(node);
            } else if let Some(node) = nodes.iter_mut().find(|n| n.lags(around.network)) {
                node.follow(around)?;
            } else {
                break;
            }
        }
    }
    Ok(())
}

impl Calls {
    pub fn new(me: usize, nodes: usize) -> Calls {
        Calls {
            machine: Printed::new(Machine::new(NodeId::at(me), nodes)),
            copies: Counters::new(),
            awaited: None,
            started: VecDeque::new(),
            unsettled: BTreeSet::new(),
            settles: false,
            delivered: 0,
            after: 0,
            learnt: false,
            users: [0; 2],
            lends: None,
        }
    }

    /// The multicasts after which a message that passes an order on may be used.
    pub fn order(&self) -> u64 {
        self.after.max(self.machine.delivered())
    }

    /// A message was told after this.
    pub fn is_after(&mut self, delivered: u64) {
        self.after = self.after.max(delivered);
    }

    /// Whether the worker has to wait for what was ordered before.
    pub fn is_behind(&self) -> bool {
        self.machine.delivered() < self.after
    }
}

impl Node {
    /// Whether there is a multicast that is not delivered here.
    pub(crate) fn lags(&self, network: &Network) -> bool {
        self.calls.delivered < network.order.log.len()
    }

    /// The next multicast is delivered here.
    pub(crate) fn follow(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        let place = self.calls.delivered;
        self.calls.delivered += 1;
        let (from, body) = around.network.order.log[place].clone();
        let sequence = self.calls.delivered as u64;
        let delivered = ObjectsEvent::Delivered {
            sequence,
            from,
            body,
        };
        self.step_objects(delivered, around)
    }

    /// Takes an event of the objects and does what it leads to, as the engine does.
    pub(crate) fn step_objects(
        &mut self,
        event: ObjectsEvent,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        self.steps_machine(around, |machine, host, out| machine.step(event, host, out))
    }

    /// Tries the sections that wait for a lock; then nodes may pass.
    pub(crate) fn try_sections(
        &mut self,
        lock: RwLockId,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        if around.bug != Some(Bug::ForgetBlocked) {
            self.steps_machine(around, |machine, host, out| {
                machine.retry_sections(ObjectId(lock.0), host, out);
                Ok(())
            })?;
        }
        self.step(Event::SectionsTried(lock), &[], around)
    }

    /// A number for a call that no other has.
    pub(crate) fn new_call_id(&mut self, around: &mut Around<'_>) -> CallId {
        let id = self.calls.machine.change().new_call();
        around.history.calls(self.me, id.number, None);
        self.calls.awaited = Some(id.number);
        id
    }

    fn steps_machine(
        &mut self,
        around: &mut Around<'_>,
        act: impl FnOnce(
            &mut Machine,
            &mut Hosting<'_>,
            &mut Vec<ObjectsCommand>,
        ) -> Result<(), ProtocolError>,
    ) -> Result<(), Failed> {
        let presence = self.presence();
        let mut host = Hosting {
            copies: &mut self.calls.copies,
            ran: Vec::new(),
            at_home: AtHome {
                heap: &mut self.heap,
                protocol: &mut self.protocol,
                presence,
                program: around.program,
                history: &mut *around.history,
                bug: around.bug,
                commands: Vec::new(),
                fault: None,
            },
        };
        let mut out = Vec::new();
        let stepped = act(self.calls.machine.change(), &mut host, &mut out);
        stepped.map_err(|refused| (Fault::Refused, refused.to_string()))?;
        let (me, ran) = (NodeId::at(self.me), host.ran);
        let AtHome {
            commands, fault, ..
        } = host.at_home;
        if let Some(fault) = fault {
            return Err((fault, format!("a section at {me}")));
        }
        for command in commands {
            let told = command.clone();
            let carried_out = self.carry_out(command, &mut std::iter::empty(), around);
            carried_out.map_err(|fault| (fault, format!("{told:?} on {me}")))?;
        }
        if around.bug == Some(Bug::TakeAnothersUserHalf) {
            self.takes_anothers(&ran);
        }
        executed(self.me, ran, around)?;
        for command in out {
            match command {
                ObjectsCommand::Send { to, message } => {
                    let message = Message::Objects(Box::new(message));
                    self.send(to, message, vec![], false, around);
                }
                ObjectsCommand::Broadcast(mut body) => {
                    around.bug.iter().for_each(|bug| bug.ordered(&mut body));
                    around.network.order.unordered.push_back((me, body));
                }
                ObjectsCommand::Finished { call, outcome } => {
                    self.comes_back(call, outcome, around)?;
                    self.is_over(call);
                    if self.calls.unsettled.contains(&call) {
                        around.history.called(self.me, call, false);
                        self.is_settled(call);
                    }
                }
                ObjectsCommand::Blocked(call) => self.is_settled(call),
                ObjectsCommand::Freed(_)
                | ObjectsCommand::Start(_)
                | ObjectsCommand::Execute(_) => {
                    let words = "nothing is freed and nothing started";
                    return Err((Fault::Refused, words.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// A call is over: what it has made of the user half of its client comes back.
    fn comes_back(
        &mut self,
        number: u64,
        outcome: Outcome,
        around: &Around<'_>,
    ) -> Result<(), Failed> {
        let is_awaited = self.calls.awaited == Some(number);
        let client = self.calls.lends.filter(|_| is_awaited).map(usize::from);
        match (outcome, client) {
            (Ok(result), Some(client)) => match (around.bug, result.get(1)) {
                (Some(Bug::KeepUserHalf), _) | (_, None) => {}
                (Some(Bug::ShareUserHalf), Some(user)) => self.calls.users = [*user; 2],
                (_, Some(user)) => self.calls.users[client] = *user,
            },
            // The program calls what was never made.
            (Err(Refusal::Unknown), Some(client)) => {
                if around.bug == Some(Bug::ChangeRefused) {
                    self.calls.users[client] += 1;
                }
            }
            (Ok(_), None) => {}
            (Err(why), _) => return Err((Fault::Refused, why.to_string())),
        }
        Ok(())
    }

    /// The user half that is awaited is taken from a call of another node that was executed here.
    fn takes_anothers(&mut self, ran: &[Ran]) {
        let others = ran.iter().filter(|ran| usize::from(ran.call.0) != self.me);
        if let Some(user) = others.filter_map(|ran| ran.user).next_back()
            && let Some(client) = self.calls.lends.take()
        {
            self.calls.users[usize::from(client)] = user;
        }
    }

    fn is_over(&mut self, number: u64) {
        let mut started = self.calls.started.iter_mut();
        if let Some((_, over)) = started.find(|(call, _)| *call == number) {
            *over = true;
        }
        if self.calls.awaited == Some(number)
            && let Phase::Call(presence, Some(Wait::Operation)) = self.phase
        {
            self.protocol.operation_over();
            self.phase = Phase::Call(presence, None);
        }
    }

    /// A call that nobody waits for was tried.
    fn is_settled(&mut self, number: u64) {
        self.calls.unsettled.remove(&number);
        if self.calls.unsettled.is_empty() && std::mem::take(&mut self.calls.settles) {
            self.protocol.operation_over();
            self.phase = Phase::Flushed;
        }
    }

    /// Whether the worker, which is to synchronise next, has to wait for what it has started.
    pub(crate) fn settles(&mut self, around: &mut Around<'_>) -> Result<bool, Failed> {
        let synchronises = self.next(around.program).is_none_or(Op::settles);
        let is_settled = self.calls.unsettled.is_empty() || around.bug == Some(Bug::SkipSettle);
        if !synchronises || is_settled {
            return Ok(false);
        }
        self.calls.awaited = None;
        self.calls.settles = true;
        let nodes = around.program.nodes.len();
        self.awaits(counter(0, nodes), around)?;
        Ok(true)
    }

    /// The worker uses a counter, or says where it is to be kept, in a call that has begun.
    pub(crate) fn use_counter(&mut self, op: Op, around: &mut Around<'_>) -> Result<(), Failed> {
        self.calls.learnt = false;
        self.phase = Phase::Call(Presence::Exclusive, None);
        let nodes = around.program.nodes.len();
        match op {
            Op::Call(number, what) => {
                let made = self.new_call(counter(number, nodes), what, None, around);
                self.calls.awaited = Some(made.id.number);
                if self.is_done_here(&made, around)? {
                    return Ok(());
                }
                self.awaits(made.object, around)?;
                self.step_objects(ObjectsEvent::Invoke(made), around)
            }
            Op::Client(number, client, what) => {
                let object = counter(number, nodes);
                let made = self.new_call(object, what, Some(client), around);
                self.calls.awaited = Some(made.id.number);
                self.calls.lends = Some(client);
                if self.is_done_here(&made, around)? {
                    return Ok(());
                }
                self.awaits(made.object, around)?;
                self.step_objects(ObjectsEvent::Invoke(made), around)
            }
            Op::Start(number, what) => {
                let made = self.new_call(counter(number, nodes), what, None, around);
                self.calls.awaited = None;
                self.calls.started.push_back((made.id.number, false));
                let started = true;
                self.step_objects(ObjectsEvent::Begin(Call { started, ..made }), around)
            }
            Op::Drop(number, what) => {
                let made = self.new_call(counter(number, nodes), what, None, around);
                self.calls.awaited = None;
                self.calls.unsettled.insert(made.id.number);
                let started = true;
                self.step_objects(ObjectsEvent::Begin(Call { started, ..made }), around)
            }
            Op::Section(lock, section) => self.call_section(lock, section, around),
            Op::AwaitStarted => {
                let Some((number, over)) = self.calls.started.pop_front() else {
                    return Ok(());
                };
                self.calls.awaited = Some(number);
                match over {
                    true => Ok(()),
                    false => self.awaits(counter(0, nodes), around),
                }
            }
            Op::Move(number, to) => {
                let call = self.calls.machine.change().new_call().number;
                self.calls.awaited = Some(call);
                let object = counter(number, nodes);
                self.awaits(object, around)?;
                self.step_objects(ObjectsEvent::Change { call, object, to }, around)
            }
            other => unreachable!("{other:?} uses no counter"),
        }
    }

    fn new_call(
        &mut self,
        object: ObjectId,
        what: Do,
        client: Option<u8>,
        around: &mut Around<'_>,
    ) -> Call {
        let id = self.calls.machine.change().new_call();
        let (operation, argument) = what.code();
        around.history.calls(self.me, id.number, client);
        let user = client.map(|client| self.calls.users[usize::from(client)]);
        Call {
            id,
            object,
            kind: 0,
            operation,
            writes: what.writes(),
            started: false,
            chain: Bytes::default(),
            arguments: match user {
                None => Bytes::from([argument]),
                Some(user) => Bytes::from([argument, user]),
            },
        }
    }

    fn awaits(&mut self, object: ObjectId, around: &mut Around<'_>) -> Result<(), Failed> {
        self.phase = Phase::Call(Presence::Exclusive, Some(Wait::Operation));
        let name = CallSite::runtime("model");
        let made = None;
        let what = WaitingFor::Operation(Operation { object, name, made });
        self.step(Event::Await { what, site: name }, &[], around)
    }

    /// Whether an operation could be executed on the copy here, and was.
    fn is_done_here(&mut self, call: &Call, around: &mut Around<'_>) -> Result<bool, Failed> {
        if !self.calls.machine.is_local(call.object, call.writes) {
            return Ok(false);
        }
        let (tried, ran) = apply(&mut self.calls.copies, call);
        executed(self.me, ran.into_iter().collect(), around)?;
        let done = matches!(tried, Tried::Done(_));
        if let Tried::Done(outcome) = tried {
            self.comes_back(call.id.number, outcome, around)?;
        }
        if done && call.writes {
            self.step_objects(ObjectsEvent::Wrote(call.object), around)?;
        }
        Ok(done)
    }

    /// Whether the worker may look at the copy here as if nothing had happened, and has done so.
    pub(crate) fn looks_at_once(
        &mut self,
        number: u8,
        what: Do,
        around: &mut Around<'_>,
    ) -> Result<bool, Failed> {
        let object = counter(number, around.program.nodes.len());
        let machine = &self.calls.machine;
        let quiet = !self.protocol.has_deferred() && !machine.is_acquire_due();
        if what.writes() || !quiet || !machine.is_local(object, false) {
            return Ok(false);
        }
        let call = self.new_call(object, what, None, around);
        let done = self.is_done_here(&call, around)?;
        let litmus = around.program.litmus;
        around.history.called(self.me, call.id.number, litmus);
        self.done += usize::from(done);
        Ok(done)
    }

    /// The worker's call returns; before, it learns what operations told.
    pub(crate) fn learn(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        let keeps = around.bug == Some(Bug::KeepOverSection);
        if !self.calls.learnt && self.calls.machine.is_acquire_due() && !keeps {
            let machine = self.calls.machine.change();
            machine.take_acquire_due();
            self.calls.learnt = true;
            machine.forget_up_to(self.protocol.seen_by_all());
            let news = machine.unlearned(self.protocol.seen());
            if news.is_some() || !self.protocol.is_quiescent() {
                self.phase = Phase::Call(Presence::Exclusive, Some(Wait::Learning));
                return self.step(Event::Learn(news), &[], around);
            }
        }
        if let Some(number) = self.calls.awaited.take() {
            let litmus = around.program.litmus;
            around.history.called(self.me, number, litmus);
            self.calls.lends = None;
            let (users, made) = (self.calls.users, around.history.operations.users[self.me]);
            if users != made {
                let words = format!("{users:?} in the place of {made:?} on {}", self.me);
                return Err((Fault::WrongUserHalf, words));
            }
        }
        self.phase = Phase::Computing;
        self.done += 1;
        Ok(())
    }
}

/// Operations were executed on copies on a node.
fn executed(me: usize, ran: Vec<Ran>, around: &mut Around<'_>) -> Result<(), Failed> {
    ran.into_iter().try_for_each(|mut ran| {
        if !around.program.litmus {
            // Nobody looks at it.
            ran.told = 0;
        }
        let words = format!("call {:?} on {}", ran.call, NodeId::at(me));
        let executed = around.history.executes(ran);
        executed.map_err(|fault| (fault, words))
    })
}

impl Program {
    /// With counters, kept so.
    pub fn counters(self, counters: &[Strategy]) -> Program {
        Program {
            counters: counters.to_vec(),
            ..self
        }
    }
}
