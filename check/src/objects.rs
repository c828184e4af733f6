//! Objects with operations under random schedules: the state machines, a network that delivers in
//! any order, and an order of multicasts that each node follows at its own pace. There must be one
//! order of all operations in which one copy of each object shows the workers what they saw.

mod program;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dhole_model::{NodeId, ObjectId, Variants, VectorTime};
use dhole_protocol::WriteNotices;
use dhole_protocol::objects::{
    Bytes, Call, CallId, Host, Objects, ObjectsCommand, ObjectsEvent, ObjectsMessage, Ordered,
    Outcome, PackedCalls, PackedResults, Place, Predefined, Refusal, Saved, Tried,
};
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};

use crate::history::{History, OneCopy};
pub use program::Shape;
use program::{Act, program, strategy};

/// An operation on a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Tells its value.
    Read,
    /// Adds one, and tells the new value.
    Add,
    /// Takes one away when there is one, and tells the new value.
    Take,
    /// Tells its value when it is at least so much.
    Await(u8),
}

impl Op {
    pub(crate) fn of(code: u16, argument: u8) -> Op {
        match code {
            0 => Op::Read,
            1 => Op::Add,
            2 => Op::Take,
            _ => Op::Await(argument),
        }
    }

    pub(crate) fn code(self) -> (u16, u8) {
        match self {
            Op::Read => (0, 0),
            Op::Add => (1, 0),
            Op::Take => (2, 0),
            Op::Await(least) => (3, least),
        }
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Op::Add | Op::Take)
    }

    /// Applies the operation to a value and returns its result; `None` while its guard is false.
    pub(crate) fn apply(self, value: &mut u8) -> Option<u8> {
        match self {
            Op::Read => {}
            Op::Add => *value += 1,
            Op::Take => *value = value.checked_sub(1)?,
            Op::Await(least) if *value < least => return None,
            Op::Await(_) => {}
        }
        Some(*value)
    }
}

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// No node waits for the multicasts that the sender of a message had delivered.
    NoSequence,
    /// Waiting calls are not tried again after operations of the own worker.
    NoRetry,
    /// Waiting calls do not move with an object that migrates.
    WaitersStay,
    /// A write is over when it is multicast.
    TooEarly,
    /// The caller of a write gets the result, and what it lent, from another node's replica.
    OtherReplica,
    /// Two multicasts in succession change places on node 1.
    OtherOrder,
    /// Adding adds two on node 2, once.
    NotDeterministic,
    /// The first call of a batch is executed twice.
    BatchTwice,
    /// The calls of a batch are executed from the last to the first.
    BatchBackwards,
    /// The first two answers to a batch change places.
    AnswersSwapped,
    /// A batch none of whose calls is over is not answered.
    NoAnswer,
    /// A node is not told that the guard of a call is false which it started.
    NotBlocked,
    /// It is told so as soon as it asks.
    BlockedEarly,
    /// A write changes the replica of its caller alone.
    OneReplica,
    /// A node that does not know a call says nothing when it is withdrawn.
    NotToldUnknown,
    /// A call that is withdrawn waits on where it is.
    WithdrawnWaits,
}

/// A node's copies: counters.
struct Counters {
    me: NodeId,
    values: BTreeMap<ObjectId, u8>,
    /// Calls of others change nothing here.
    only_own: bool,
    adds_two: bool,
    /// Which calls were tried, in their order.
    tried: Vec<CallId>,
    /// The calls that the last multicast was or let go on, and their results.
    told: Vec<(CallId, u8)>,
}

impl Host for Counters {
    fn create(&mut self, object: ObjectId, _: u64, state: &[u8]) -> Outcome {
        let value = state.first().copied();
        let value = value.ok_or_else(|| Refusal::Malformed("no value".into()))?;
        self.values.insert(object, value);
        Ok(Bytes::default())
    }

    fn apply(&mut self, call: &Call) -> Tried {
        if !self.tried.contains(&call.id) {
            self.tried.push(call.id);
        }
        let Some(value) = self.values.get_mut(&call.object) else {
            return Tried::Done(Err(Refusal::Unknown));
        };
        let op = Op::of(call.operation, call.arguments[0]);
        if op == Op::Add && std::mem::take(&mut self.adds_two) {
            *value += 1;
        }
        let mut untouched = *value;
        let value = match self.only_own && call.id.node != self.me {
            true => &mut untouched,
            false => value,
        };
        match op.apply(value) {
            Some(told) => {
                self.told.push((call.id, told));
                Tried::Done(Ok(Bytes::from([told])))
            }
            None => Tried::Blocked,
        }
    }

    fn spoil(&mut self, _: ObjectId, _: Refusal) {}

    fn save(&mut self, object: ObjectId) -> Saved {
        let value = self.values.get(&object).ok_or(Refusal::Unknown)?;
        Ok((0, Bytes::from([*value])))
    }

    fn discard(&mut self, object: ObjectId) {
        self.values.remove(&object);
    }

    fn digest(&mut self, object: ObjectId) -> u64 {
        self.values
            .get(&object)
            .map_or(0, |value| u64::from(*value) + 1)
    }

    fn name_of(&self, _: ObjectId, operation: u16) -> Arc<str> {
        ["read", "add", "take", "await"][usize::from(operation)].into()
    }

    fn time(&self) -> Option<VectorTime> {
        None
    }

    fn news_since(&self, _: &VectorTime) -> Option<Arc<WriteNotices>> {
        None
    }
}

/// The values of all objects.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Values(Vec<u8>);

impl OneCopy for Values {
    type Call = (usize, Op);
    type Result = u8;

    fn apply(&mut self, (object, op): &(usize, Op)) -> Option<u8> {
        op.apply(&mut self.0[*object])
    }
}

struct Node {
    machine: Objects,
    copies: Counters,
    program: VecDeque<Act>,
    /// The call that its worker waits for, and the operation, if it is one.
    waiting: Option<(u64, Option<(usize, Op)>)>,
    /// The call that it waits for and has not withdrawn yet, if it will.
    within: Option<(u64, ObjectId)>,
    /// Whether the call that it waits for is one that it withdraws.
    withdraws: bool,
    /// Calls under way that it does not wait for, each with the thread that it counts as.
    started: BTreeMap<u64, (usize, (usize, Op))>,
    /// Those of them that nobody waits for and that were not tried yet: its worker does not go on
    /// to another call before they were.
    unsettled: BTreeSet<u64>,
    delivered: usize,
}

/// A run under one seed.
struct World {
    nodes: Vec<Node>,
    objects: Vec<ObjectId>,
    flying: Vec<(NodeId, NodeId, ObjectsMessage)>,
    log: Vec<(NodeId, Arc<Ordered>)>,
    /// Multicasts that have no place in the order yet.
    unordered: Vec<(NodeId, Arc<Ordered>)>,
    /// The batches that were sent: the receiver, and the calls.
    batches: Vec<(NodeId, Vec<(ObjectId, CallId)>)>,
    /// As many threads have made calls.
    threads: usize,
    changes: bool,
    /// Whether the objects are made.
    made: bool,
    random: Random,
    planted: Planted,
    history: History<(usize, Op), u8>,
    /// Of the operations that write, alone: those that read a replica may be late.
    writes: History<(usize, Op), u8>,
}

/// Runs a random program under a random schedule.
///
/// # Errors
/// The error in what the workers saw.
pub fn run(shape: Shape, seed: u64, planted: Planted) -> Result<(), String> {
    let mut world = World::new(shape, seed, planted);
    while world.step()? {}
    world.finish()
}

impl World {
    fn new(shape: Shape, seed: u64, planted: Planted) -> World {
        let mut random = Random::seed_from_u64(seed);
        let mut nodes: Vec<Node> = (0..shape.nodes)
            .map(|id| Node {
                machine: Objects::new(NodeId::at(id), shape.nodes),
                copies: Counters {
                    me: NodeId::at(id),
                    values: BTreeMap::new(),
                    only_own: planted == Planted::OneReplica,
                    adds_two: planted == Planted::NotDeterministic && id == 2,
                    tried: Vec::new(),
                    told: Vec::new(),
                },
                program: program(shape, &mut random),
                waiting: None,
                within: None,
                withdraws: false,
                started: BTreeMap::new(),
                unsettled: BTreeSet::new(),
                delivered: 0,
            })
            .collect();
        let maker = &mut nodes[0].machine;
        maker.keep_digests();
        let mut objects: Vec<ObjectId> = (0..shape.objects).map(|_| maker.new_object()).collect();
        nodes
            .iter_mut()
            .for_each(|node| node.machine.keep_digests());
        if shape.predefined {
            objects[0] = ObjectId::NAMES;
            let predefine = |node: &mut Node| {
                node.machine.predefine(Predefined {
                    object: ObjectId::NAMES,
                    kind: 0,
                    state: Bytes::from([0]),
                });
            };
            nodes.iter_mut().for_each(predefine);
        }
        World {
            nodes,
            objects,
            flying: Vec::new(),
            log: Vec::new(),
            unordered: Vec::new(),
            batches: Vec::new(),
            threads: shape.nodes,
            changes: shape.changes,
            made: false,
            random,
            planted,
            history: History::default(),
            writes: History::default(),
        }
    }

    /// Makes the objects, in which no other node has a part yet.
    fn make(&mut self) -> Result<(), String> {
        for place in 0..self.objects.len() {
            if self.objects[place] == ObjectId::NAMES {
                continue;
            }
            let strategy = strategy(self.nodes.len(), &mut self.random);
            let call = self.nodes[0].machine.new_call().number;
            let event = ObjectsEvent::Create {
                call,
                object: self.objects[place],
                kind: 0,
                state: Bytes::from([0]),
                strategy,
            };
            self.nodes[0].waiting = Some((call, None));
            self.event(0, event)?;
            while self.nodes[0].waiting.is_some() {
                if !self.move_on()? {
                    return Err("an object is never made".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Something happens, if anything can.
    fn step(&mut self) -> Result<bool, String> {
        if !std::mem::replace(&mut self.made, true) {
            self.make()?;
        }
        let ready: Vec<usize> = (0..self.nodes.len())
            .filter(|id| {
                let node = &self.nodes[*id];
                let settles = |act: &Act| !matches!(act, Act::Start(..));
                let may = |act: &Act| node.unsettled.is_empty() || !settles(act);
                node.waiting.is_none() && node.program.front().is_some_and(may)
            })
            .collect();
        if !ready.is_empty() && self.random.random_bool(0.3) {
            let id = ready[self.random.random_range(0..ready.len())];
            self.act(id)?;
            return Ok(true);
        }
        if self.move_on()? {
            return Ok(true);
        }
        match ready.first() {
            Some(id) => self.act(*id).map(|()| true),
            None => Ok(false),
        }
    }

    /// A message arrives, or a multicast gets its place or is delivered.
    fn move_on(&mut self) -> Result<bool, String> {
        let late: Vec<usize> = (0..self.nodes.len())
            .filter(|id| self.nodes[*id].delivered < self.log.len())
            .collect();
        let impatient: Vec<usize> = (0..self.nodes.len())
            .filter(|id| self.nodes[*id].within.is_some())
            .collect();
        let others = self.flying.len() + self.unordered.len() + late.len();
        let choices = others + impatient.len();
        if choices == 0 {
            return Ok(false);
        }
        let choice = self.random.random_range(0..choices);
        if let Some(which) = choice.checked_sub(others) {
            let id = impatient[which];
            let within = self.nodes[id].within.take();
            if let Some((call, object)) = within {
                self.event(id, ObjectsEvent::Withdraw { call, object })?;
            }
            return Ok(true);
        }
        if let Some(left) = choice.checked_sub(self.flying.len()) {
            match left.checked_sub(self.unordered.len()) {
                None => self.log.push(self.unordered.swap_remove(left)),
                Some(which) => self.deliver(late[which])?,
            }
            return Ok(true);
        }
        let (from, to, mut message) = self.flying.swap_remove(choice);
        if let ObjectsMessage::BatchReply {
            results,
            refused,
            delivered,
            news: None,
            ..
        } = &mut message
            && refused.is_empty()
            && self.random.random()
        {
            self.take_results(from, to.index(), results, *delivered)?;
        }
        self.event(to.index(), ObjectsEvent::Deliver { from, message })?;
        Ok(true)
    }

    /// As the engine does it: each result is given to its call at once, and the message then says
    /// only that the batch was answered.
    fn take_results(
        &mut self,
        from: NodeId,
        id: usize,
        results: &mut PackedResults,
        delivered: u64,
    ) -> Result<(), String> {
        let machine = &self.nodes[id].machine;
        if delivered > machine.delivered() || !machine.has_asked(results) {
            return Ok(());
        }
        for (call, result) in std::mem::take(results).iter() {
            self.nodes[id].machine.is_answered(from, call);
            self.finished(id, call, Ok(result.into()))?;
        }
        Ok(())
    }

    fn deliver(&mut self, id: usize) -> Result<(), String> {
        let node = &mut self.nodes[id];
        let mut place = node.delivered;
        node.delivered += 1;
        let sequence = node.delivered as u64;
        let swapped = place ^ 1;
        if self.planted == Planted::OtherOrder && id == 1 && swapped < self.log.len() {
            place = swapped;
        }
        let (from, body) = self.log[place].clone();
        let delivered = ObjectsEvent::Delivered {
            sequence,
            from,
            body,
        };
        self.nodes[id].copies.told.clear();
        self.event(id, delivered)?;
        if self.planted == Planted::OtherReplica {
            for (call, told) in std::mem::take(&mut self.nodes[id].copies.told) {
                let caller = call.node.index();
                let waiting = self.nodes[caller].waiting;
                if caller != id && waiting.is_some_and(|(number, _)| number == call.number) {
                    self.finished(caller, call.number, Ok(Bytes::from([told])))?;
                }
            }
        }
        Ok(())
    }

    fn act(&mut self, id: usize) -> Result<(), String> {
        let Some(act) = self.nodes[id].program.pop_front() else {
            return Ok(());
        };
        let machine = &mut self.nodes[id].machine;
        let call = machine.new_call();
        match act {
            Act::Change(place, to) => {
                self.nodes[id].withdraws = false;
                self.nodes[id].waiting = Some((call.number, None));
                let object = self.objects[place];
                let call = call.number;
                self.event(id, ObjectsEvent::Change { call, object, to })
            }
            Act::Call(place, op) | Act::Within(place, op) => {
                self.nodes[id].withdraws = matches!(act, Act::Within(..));
                if self.nodes[id].withdraws {
                    self.nodes[id].within = Some((call.number, self.objects[place]));
                }
                self.nodes[id].waiting = Some((call.number, Some((place, op))));
                self.invoked(id, (place, op))?;
                let called = self.called(call, (place, op));
                self.call(id, called)
            }
            Act::Start(place, op) => {
                let thread = self.threads;
                self.threads += 1;
                let started = (thread, (place, op));
                self.nodes[id].started.insert(call.number, started);
                if self.random.random() {
                    self.nodes[id].unsettled.insert(call.number);
                }
                self.invoked(thread, (place, op))?;
                let called = Call {
                    started: true,
                    ..self.called(call, (place, op))
                };
                let arguments = |bytes: &mut Vec<u8>| {
                    bytes.extend_from_slice(&called.arguments);
                    Ok::<_, ()>(())
                };
                let machine = &mut self.nodes[id].machine;
                // As the engine does it, and as it could.
                let quietly = self.random.random_bool(0.5);
                if !quietly || !machine.begins_quietly(called.by_ref(), arguments) {
                    self.event(id, ObjectsEvent::Begin(called))?;
                }
                match self.planted {
                    Planted::BlockedEarly => self.is_blocked(id, call.number),
                    _ => Ok(()),
                }
            }
        }
    }

    fn invoked(&mut self, thread: usize, call: (usize, Op)) -> Result<(), String> {
        self.history.calls(thread, call)?;
        if call.1.writes() {
            self.writes.calls(thread, call)?;
        }
        Ok(())
    }

    fn called(&self, id: CallId, (place, op): (usize, Op)) -> Call {
        let (operation, argument) = op.code();
        Call {
            id,
            object: self.objects[place],
            kind: 0,
            operation,
            writes: op.writes(),
            started: false,
            chain: Bytes::default(),
            arguments: Bytes::from([argument]),
        }
    }

    /// As the engine does it: what can be done here is done at once.
    fn call(&mut self, id: usize, called: Call) -> Result<(), String> {
        let node = &mut self.nodes[id];
        let (object, writes) = (called.object, called.writes);
        if node.machine.is_local(object, writes)
            && let Tried::Done(outcome) = node.copies.apply(&called)
        {
            self.finished(id, called.id.number, outcome)?;
            if writes && self.planted != Planted::NoRetry {
                self.event(id, ObjectsEvent::Wrote(object))?;
            }
            return Ok(());
        }
        self.event(id, ObjectsEvent::Invoke(called))
    }

    fn event(&mut self, id: usize, event: ObjectsEvent) -> Result<(), String> {
        let node = &mut self.nodes[id];
        let mut out = Vec::new();
        let stepped = node.machine.step(event, &mut node.copies, &mut out);
        stepped.map_err(|error| error.to_string())?;
        let me = NodeId::at(id);
        for command in out {
            match command {
                ObjectsCommand::Send { to, mut message } => {
                    let calls: Vec<_> = match &message {
                        ObjectsMessage::Request { call, .. } => vec![(call.object, call.id)],
                        ObjectsMessage::Batch { calls, .. } => {
                            calls.iter(me).map(|call| (call.object, call.id)).collect()
                        }
                        _ => Vec::new(),
                    };
                    if !calls.is_empty() {
                        self.batches.push((to, calls));
                    }
                    if !self.spoil(&mut message) {
                        self.flying.push((me, to, message));
                    }
                }
                ObjectsCommand::Broadcast(body) => {
                    if let Ordered::Operate { call, .. } = &*body
                        && self.planted == Planted::TooEarly
                        && self.nodes[id].waiting.is_some()
                    {
                        let mut value = self.nodes[id].copies.values[&call.object];
                        let told = if call.operation == 1 {
                            Op::Add
                        } else {
                            Op::Take
                        };
                        if let Some(told) = told.apply(&mut value) {
                            self.finished(id, call.id.number, Ok(Bytes::from([told])))?;
                        }
                    }
                    self.unordered.push((me, body));
                }
                ObjectsCommand::Finished { call, outcome } => self.finished(id, call, outcome)?,
                ObjectsCommand::Blocked(call) => self.is_blocked(id, call)?,
                ObjectsCommand::Freed(_) => {}
                ObjectsCommand::Start(_) | ObjectsCommand::Execute(_) => {
                    return Err("nobody starts a process".into());
                }
            }
        }
        Ok(())
    }

    /// Plants what is wrong with messages; whether this one is lost.
    fn spoil(&self, message: &mut ObjectsMessage) -> bool {
        match message {
            ObjectsMessage::Request { delivered, .. }
            | ObjectsMessage::Batch { delivered, .. }
            | ObjectsMessage::Reply { delivered, .. }
            | ObjectsMessage::BatchReply { delivered, .. }
            | ObjectsMessage::Blocked { delivered, .. }
            | ObjectsMessage::Elsewhere { delivered, .. }
                if self.planted == Planted::NoSequence =>
            {
                *delivered = 0;
            }
            ObjectsMessage::Migrate { blocked, .. } if self.planted == Planted::WaitersStay => {
                blocked.clear();
            }
            ObjectsMessage::Batch { calls, .. } => {
                let mut all: Vec<Call> = calls.iter(NodeId(0)).map(Call::from).collect();
                match self.planted {
                    Planted::BatchTwice => all.extend(all.first().cloned()),
                    Planted::BatchBackwards => all.reverse(),
                    _ => {}
                }
                *calls = PackedCalls::default();
                all.iter().for_each(|call| calls.push(call.by_ref()));
            }
            ObjectsMessage::Blocked { .. } => return self.planted == Planted::NotBlocked,
            ObjectsMessage::Withdraw { .. } => return self.planted == Planted::WithdrawnWaits,
            ObjectsMessage::NotWithdrawn { .. } => {
                return self.planted == Planted::NotToldUnknown;
            }
            ObjectsMessage::BatchReply {
                results, blocked, ..
            } => {
                if self.planted == Planted::NotBlocked {
                    blocked.clear();
                }
                let mut all: Vec<_> = results
                    .iter()
                    .map(|(call, it)| (call, it.to_vec()))
                    .collect();
                match (self.planted, &mut all[..]) {
                    (Planted::AnswersSwapped, [first, second, ..]) => {
                        std::mem::swap(&mut first.1, &mut second.1);
                    }
                    (Planted::NoAnswer, []) => return true,
                    _ => {}
                }
                *results = PackedResults::default();
                all.iter().for_each(|(call, it)| results.push(*call, it));
            }
            _ => {}
        }
        false
    }

    /// A node hears that the guard of a call is false: some node must have tried it.
    fn is_blocked(&mut self, id: usize, number: u64) -> Result<(), String> {
        let node = NodeId::at(id);
        let call = CallId { node, number };
        let is_over = !self.nodes[id].started.contains_key(&number);
        let mut all = self.nodes.iter();
        if !is_over && !all.any(|node| node.copies.tried.contains(&call)) {
            return Err(format!("{call:?} waits for its guard, and was never tried"));
        }
        self.nodes[id].unsettled.remove(&number);
        Ok(())
    }

    fn returned(&mut self, thread: usize, op: Op, told: u8) -> Result<(), String> {
        self.history.hears(thread, told)?;
        if op.writes() {
            self.writes.hears(thread, told)?;
        }
        Ok(())
    }

    fn withdrawn(&mut self, thread: usize, op: Op) -> Result<(), String> {
        self.history.withdraws(thread)?;
        if op.writes() {
            self.writes.withdraws(thread)?;
        }
        Ok(())
    }

    fn finished(&mut self, id: usize, call: u64, outcome: Outcome) -> Result<(), String> {
        let node = &mut self.nodes[id];
        if node.waiting.is_some_and(|(number, _)| number == call) {
            node.machine.forget_withdrawal(call);
            let withdrew = node.within.take().is_none();
            if outcome == Err(Refusal::Withdrawn) && withdrew {
                let of = node.waiting.take().and_then(|(_, of)| of);
                return of.map_or(Ok(()), |(_, op)| self.withdrawn(id, op));
            }
        }
        let told = outcome.map_err(|refusal| format!("node {id}: {refusal}"))?;
        self.nodes[id].unsettled.remove(&call);
        if let Some((thread, (_, op))) = self.nodes[id].started.remove(&call) {
            return self.returned(thread, op, told[0]);
        }
        match self.nodes[id].waiting.take() {
            Some((number, of)) if number == call => {
                of.map_or(Ok(()), |(_, op)| self.returned(id, op, told[0]))
            }
            // Planted errors finish calls early.
            before => {
                self.nodes[id].waiting = before;
                match self.planted {
                    Planted::TooEarly | Planted::OtherReplica => Ok(()),
                    _ => Err(format!(
                        "node {id}: call {call} is over, which nobody waits for"
                    )),
                }
            }
        }
    }

    /// Checks the end of a run, when nothing more can happen: every wait must have a reason, and
    /// one order must explain what the workers saw.
    fn finish(mut self) -> Result<(), String> {
        for place in 0..self.objects.len() {
            self.compare(place)?;
        }
        if let Some(id) = self.nodes.iter().position(|it| !it.unsettled.is_empty()) {
            let never = &self.nodes[id].unsettled;
            return Err(format!("node {id} never hears of its calls {never:?}"));
        }
        let waits = |node: &Node| node.withdraws && node.waiting.is_some();
        if let Some(id) = self.nodes.iter().position(waits) {
            return Err(format!("node {id} waits for a call that it has withdrawn"));
        }
        let waits = |(id, node): (usize, &Node)| {
            let started = node.started.values().map(|(_, of)| Some(*of));
            let waits = node.waiting.iter().map(|(_, of)| *of).chain(started);
            waits.map(|of| (id, of)).collect::<Vec<_>>()
        };
        for (id, of) in self.nodes.iter().enumerate().flat_map(waits) {
            let Some((place, op)) = of else {
                return Err(format!("node {id} waits for a change that never comes"));
            };
            let object = self.objects[place];
            let copies = self
                .nodes
                .iter()
                .filter_map(|node| node.copies.values.get(&object));
            if copies
                .clone()
                .any(|value| op.apply(&mut value.clone()).is_some())
            {
                return Err(format!("node {id} waits for {op:?}, which may be done"));
            }
            if copies.count() == 0 {
                return Err(format!("{object} is nowhere"));
            }
        }
        self.order_in_batches()?;
        let zeros = Values(vec![0; self.objects.len()]);
        if !self.history.is_sequentially_consistent(zeros.clone()) {
            return Err(format!("no order explains {:?}", self.history));
        }
        if !self.writes.is_linearizable(zeros) {
            return Err(format!("no order in real time explains {:?}", self.writes));
        }
        Ok(())
    }

    /// The calls of a batch are tried in their order where their objects are: of those that never
    /// wander, for others may be called elsewhere.
    fn order_in_batches(&self) -> Result<(), String> {
        for (to, calls) in self.batches.iter().filter(|_| !self.changes) {
            let node = &self.nodes[to.index()];
            let is_here = |object| node.machine.place(object) == Some(Place::Here);
            let calls = calls.iter().filter(|(object, _)| is_here(*object));
            let calls: Vec<CallId> = calls.map(|(_, call)| *call).collect();
            let tried = &node.copies.tried;
            if !tried.iter().filter(|call| calls.contains(call)).eq(&calls) {
                return Err(format!("{to} has tried {calls:?} in another order"));
            }
        }
        Ok(())
    }

    /// Compares all replicas, from a node that waits for nothing.
    fn compare(&mut self, place: usize) -> Result<(), String> {
        let idle = self.nodes.iter().position(|node| node.waiting.is_none());
        let Some(id) = idle else { return Ok(()) };
        let object = self.objects[place];
        let call = self.nodes[id].machine.new_call().number;
        self.nodes[id].waiting = Some((call, None));
        self.event(id, ObjectsEvent::Compare { call, object })?;
        while self.nodes[id].waiting.is_some() {
            if !self.move_on()? {
                return Err("a comparison that does not end".to_owned());
            }
        }
        Ok(())
    }
}
