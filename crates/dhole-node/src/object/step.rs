//! The machine of objects in a node: its events, its messages, and what it wants done.

use std::any::{TypeId, type_name};
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::Arc;

use dhole_model::{CallSite, NodeId, ObjectCounters, ObjectId};
use dhole_net::Payload;
use dhole_protocol::group::{Group, GroupCommand, GroupError, GroupEvent, Settings};
use dhole_protocol::objects::{
    Bytes, MOST_CALLS, Objects, ObjectsCommand, ObjectsEvent, ObjectsMessage, Ordered, Outcome,
    PackedResults, Place, Predefined, Refusal, SequenceMap, check_group,
};
use dhole_protocol::{Message, ProtocolError, Waiter};
use dhole_wire::Wire;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::abandoned_calls::AbandonedCalls;
use super::copies::Copies;
use super::deadlines::Deadlines;
use super::invoke::Wanted;
use super::kind::{self, Kind, ObjectType};
use super::pending::{Sent, StartedAs};
use super::sections_here::SectionsHere;
use crate::node::{Node, State};
use crate::settings::Settings as RunSettings;
use crate::spawn::Process;
use crate::step::Step;

/// A node's objects with operations.
pub(crate) struct ObjectsHere {
    pub machine: Objects,
    pub copies: Copies,
    pub sections: SectionsHere,
    pub deadlines: Deadlines,
    pub(super) commands: Vec<ObjectsCommand>,
    pub(super) group: Group<Arc<Ordered>>,
    pub(super) group_commands: Vec<GroupCommand<Arc<Ordered>>>,
    /// What the group has delivered and the objects have not taken, in its order.
    pub(super) delivered: VecDeque<Turn>,
    /// The worker's calls that are multicast, and are over when what they did is safe, where nodes
    /// may be lost.
    pub(super) multicast: FxHashSet<u64>,
    /// Calls that are over but for that, each with the number that has to be safe.
    unsafe_yet: VecDeque<(u64, u64, Outcome)>,
    /// Whether somebody is taking it.
    pub(super) taking: bool,
    /// What calls came to that their worker has not looked at: the first, which mostly is the only
    /// one and looked at soon; and others.
    first_finished: Option<(u64, Outcome)>,
    finished: FxHashMap<u64, Outcome>,
    /// Calls that were started, until they are over and looked after.
    pub(super) started: SequenceMap<Started>,
    /// Those of them that nobody will look after, since they were last looked for.
    abandoned: AbandonedCalls,
    /// As many that nobody will look after are not over, and not known to have a false guard: the
    /// worker's next synchronisation waits for them.
    unsettled: usize,
    /// Those that failed of them.
    unseen: Vec<(Wanted, Refusal)>,
    /// Of the calls that were started with a number.
    pub(super) sent: Sent,
    /// The types of objects that the worker has named, and what tells each from others.
    met: FxHashMap<TypeId, u64>,
    /// The last one, with the object of which it was named.
    last_met: (Option<(TypeId, ObjectId)>, u64),
    /// The types of the objects that it has used.
    named: FxHashMap<ObjectId, &'static str>,
    /// Where in the program this node has made the objects that live of those that it made.
    made: FxHashMap<ObjectId, &'static Location<'static>>,
    /// The call that the worker waits for.
    pub awaited: Option<u64>,
    /// Whether one message reaches all others.
    pub multicasts: bool,
    /// The arguments of the call that the worker makes.
    pub arguments: Vec<u8>,
    /// The result of the last call that was waited for, and which that was until its worker has
    /// looked at it.
    pub result: Vec<u8>,
    pub(super) answered: Option<u64>,
}

/// A call that was started.
pub(super) struct Started {
    called: StartedAs,
    /// Nobody will look after it.
    abandoned: bool,
    /// It was tried, and its guard was false.
    blocked: bool,
    /// Whether it has come to its result, or why to none, once it is over.
    over: Option<Result<(), Box<Refusal>>>,
    /// Written where it is until it is looked at.
    result: Bytes,
}

impl Started {
    fn is_over(&mut self, outcome: Outcome) {
        self.over = Some(match outcome {
            Ok(result) => {
                self.result = result;
                Ok(())
            }
            Err(why) => Err(Box::new(why)),
        });
    }

    fn take_outcome(&mut self) -> Option<Outcome> {
        let result = std::mem::take(&mut self.result);
        let over = self.over.take()?;
        Some(over.map(|()| result).map_err(|why| *why))
    }
}

/// Something that has its turn in the order of the group.
pub(super) enum Turn {
    Ordered(u64, NodeId, Arc<Ordered>),
    /// These nodes are members no longer.
    Gone(Vec<NodeId>),
}

impl ObjectsHere {
    /// Whether nothing is recorded or delivered that the step which did so has to carry out.
    #[inline]
    pub(super) fn is_carried_out(&self) -> bool {
        let recorded = !self.commands.is_empty() || !self.group_commands.is_empty();
        !recorded && (self.taking || self.delivered.is_empty())
    }

    /// Numbers of broadcasts are asked for, whatever the size.
    pub fn ask_for_numbers(&mut self) {
        self.group.ask_for_numbers();
    }

    pub fn new(me: NodeId, nodes: usize, settings: &RunSettings, run: u64) -> ObjectsHere {
        let mut machine = Objects::new(me, nodes).of_run(run);
        if settings.watch_objects {
            machine.keep_digests();
        }
        if settings.survive {
            machine.survive();
        }
        ObjectsHere {
            machine,
            copies: Copies::default(),
            sections: SectionsHere::new(nodes, settings.sections),
            deadlines: Deadlines::default(),
            commands: Vec::new(),
            group: Group::new(
                me,
                nodes,
                Settings {
                    confirm: settings.survive,
                    ..Settings::reliable()
                },
            ),
            group_commands: Vec::new(),
            delivered: VecDeque::new(),
            multicast: FxHashSet::default(),
            unsafe_yet: VecDeque::new(),
            taking: false,
            first_finished: None,
            finished: FxHashMap::default(),
            met: FxHashMap::default(),
            last_met: (None, 0),
            named: FxHashMap::default(),
            made: FxHashMap::default(),
            started: SequenceMap::default(),
            abandoned: AbandonedCalls::new(),
            unsettled: 0,
            unseen: Vec::new(),
            sent: Sent::default(),
            awaited: None,
            multicasts: false,
            arguments: Vec::new(),
            result: Vec::new(),
            answered: None,
        }
    }

    /// The worker names an object with its type: whoever keeps a copy of one finds the type from
    /// here on. What tells the type from others.
    #[inline]
    pub fn meet<T: ObjectType>(&mut self, object: ObjectId) -> u64 {
        let last = (TypeId::of::<T>(), object);
        if self.last_met.0 == Some(last) {
            return self.last_met.1;
        }
        let met = self.met.entry(TypeId::of::<T>());
        let key = *met.or_insert_with(|| kind::register(Kind::of::<T>()));
        self.named.entry(object).or_insert(type_name::<T>());
        self.last_met = (Some(last), key);
        key
    }

    /// The worker makes an object here in the program.
    pub(super) fn makes(&mut self, object: ObjectId, site: &'static Location<'static>) {
        self.made.insert(object, site);
    }

    /// Where in the program an object was made, if this node has made it and it lives.
    pub fn made_at(&self, object: ObjectId) -> Option<CallSite> {
        self.made.get(&object).map(|site| (*site).into())
    }

    /// A wait of this node's, which says where an object was made if that is known here.
    pub fn in_words(&self, mut wait: Waiter) -> Waiter {
        let object = wait.waiting_for.object();
        if let Some((object, site)) = object.and_then(|it| Some((it, self.made_at(it)?))) {
            wait.waiting_for = wait.waiting_for.made(object, site);
        }
        wait
    }

    /// How often the worker used which objects.
    pub fn by_object(&self) -> BTreeMap<String, ObjectCounters> {
        let used = self.machine.accesses();
        let used = used.filter(|(_, counters)| *counters != ObjectCounters::default());
        // Who only reads a copy that is here names no type.
        let kept = |object| self.copies.type_name(object);
        let named = |object| self.named.get(&object).copied().or_else(|| kept(object));
        let named = |object| named(object).unwrap_or("?");
        let used =
            used.map(|(object, counters)| (format!("{object}: {}", named(object)), counters));
        let freed = (
            "objects that were freed".to_owned(),
            self.machine.accesses_of_freed(),
        );
        let freed = Some(freed).filter(|(_, counters)| *counters != ObjectCounters::default());
        used.chain(freed).collect()
    }

    /// A call begins that its worker may look after later; the number of this node, which is told
    /// by it if it will not.
    #[inline(always)] // what is known of it is written from registers to where it stays
    pub(super) fn begin(&mut self, call: u64, called: StartedAs) -> u64 {
        self.started.insert_with(call, || Started {
            called,
            abandoned: false,
            blocked: false,
            over: None,
            result: Bytes::default(),
        });
        self.abandoned.number()
    }

    /// What was started as this call.
    pub(super) fn started_as(&self, call: u64) -> Option<Wanted> {
        self.started.get(call).map(|it| it.called.wanted())
    }

    /// Whether it is this node that has this number.
    #[inline]
    pub(super) fn is_told_as(&self, number: u64) -> bool {
        self.abandoned.number() == number
    }

    /// What such a call came to, if it has a result.
    #[inline]
    pub(super) fn result(&self, call: u64) -> Option<&[u8]> {
        let started = self.started.get(call)?;
        matches!(started.over, Some(Ok(()))).then_some(&*started.result)
    }

    /// Whether such a call has no result, and will have none.
    pub(super) fn has_failed(&self, call: u64) -> bool {
        let started = self.started.get(call);
        started.is_some_and(|it| matches!(it.over, Some(Err(_))))
    }

    /// Such a call was looked after.
    #[inline]
    pub(super) fn forget(&mut self, call: u64) {
        self.started.forget(call);
    }

    /// Whether a call may have failed that nobody looks after.
    #[inline]
    pub(super) fn has_unseen(&self) -> bool {
        self.abandoned.any() || !self.unseen.is_empty()
    }

    /// How many such calls are not over, or not looked after yet.
    pub fn under_way(&self) -> usize {
        self.started.len()
    }

    /// The first such call that is not over.
    pub(super) fn unfinished(&self) -> Option<(u64, Wanted)> {
        let mut calls = self.started.iter().filter(|(_, it)| it.over.is_none());
        calls.next().map(|(call, it)| (call, it.called.wanted()))
    }

    /// The first such call that is not over and that nobody will look after.
    pub(super) fn abandoned_under_way(&self) -> Option<(u64, Wanted)> {
        let mut calls = self.started.iter().filter(|(_, it)| it.abandoned);
        calls.next().map(|(call, it)| (call, it.called.wanted()))
    }

    /// Whether no call that was started, and that nobody will look after, may still have to take
    /// effect: so it mostly is, for nothing was started.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.started.is_empty() || (self.unsettled == 0 && !self.abandoned.any())
    }

    /// The first call that nobody will look after and that was not tried yet.
    pub(super) fn unsettled(&self) -> Option<(u64, Wanted)> {
        if self.unsettled == 0 {
            return None;
        }
        let untried = |it: &Started| it.abandoned && !it.blocked && it.over.is_none();
        let mut calls = self.started.iter().filter(|(_, it)| untried(it));
        calls.next().map(|(call, it)| (call, it.called.wanted()))
    }

    /// The guard of a call that was started was false; whether somebody may wait for that.
    fn is_blocked(&mut self, call: u64) -> bool {
        let Some(started) = self.started.get_mut(call) else {
            return false;
        };
        let first = !std::mem::replace(&mut started.blocked, true);
        let settles = first && started.abandoned && started.over.is_none();
        self.unsettled -= usize::from(settles);
        settles
    }

    /// Forgets the calls that are over and that nobody will look after.
    fn forget_abandoned(&mut self) {
        for call in self.abandoned.take() {
            let Some(started) = self.started.get_mut(call) else {
                continue;
            };
            started.abandoned = true;
            self.unsettled += usize::from(!started.blocked);
            if let Some(outcome) = started.take_outcome() {
                self.over(call, outcome);
            }
        }
    }

    /// A call is over.
    fn over(&mut self, call: u64, outcome: Outcome) {
        match self.started.get_mut(call) {
            None if self.first_finished.is_none() => self.first_finished = Some((call, outcome)),
            None => drop(self.finished.insert(call, outcome)),
            Some(started) if started.abandoned => {
                let wanted = started.called.wanted();
                self.unsettled -= usize::from(!started.blocked);
                self.unseen.extend(outcome.err().map(|why| (wanted, why)));
                self.started.remove(call);
            }
            Some(started) => started.is_over(outcome),
        }
    }

    /// Keeps the result of a call that was started and that somebody may look after, if it is one,
    /// and nothing is ever said when it is safe.
    #[inline]
    fn has_result(&mut self, call: u64, result: &[u8]) -> bool {
        match self.started.get_mut(call) {
            Some(started) if !started.abandoned && self.multicast.is_empty() => {
                started.result.put(result);
                started.over = Some(Ok(()));
                true
            }
            _ => false,
        }
    }

    /// Whether a call that was started is not over.
    pub(super) fn is_under_way(&self, call: u64) -> bool {
        let started = self.started.get(call);
        started.is_some_and(|started| started.over.is_none())
    }

    /// Whether a call is over.
    pub fn is_finished(&self, call: u64) -> bool {
        match self.started.get(call) {
            None if self.answered == Some(call) => true,
            None => self.is_first(call) || self.finished.contains_key(&call),
            Some(started) => started.over.is_some(),
        }
    }

    /// What a call came to, if it is over.
    pub fn take_finished(&mut self, call: u64) -> Option<Outcome> {
        if self.takes_answer(call) {
            return Some(Ok(self.result[..].into()));
        }
        if self.is_first(call) {
            return Some(self.first_finished.take()?.1);
        }
        match self.started.remove(call) {
            None => self.finished.remove(&call),
            Some(mut started) => started.take_outcome(),
        }
    }

    /// Whether this call is over with a result, which lies in `result` now; it is looked at.
    #[inline]
    pub(super) fn takes_answer(&mut self, call: u64) -> bool {
        self.answered.take_if(|it| *it == call).is_some()
    }

    /// Another process of this node goes on, whose result may lie where this one's does.
    pub fn keep_answer(&mut self) {
        if let Some(call) = self.answered.take() {
            let result = self.result[..].into();
            self.over(call, Ok(result));
        }
    }

    fn is_first(&self, call: u64) -> bool {
        matches!(&self.first_finished, Some((it, _)) if *it == call)
    }
}

impl Node {
    /// Tells the program what is left of its objects.
    pub(crate) fn report_left(&self) {
        self.monitor.lock().split().1.report_left();
    }

    /// Every node has this object from the start.
    pub(crate) fn predefine(&self, object: Predefined) {
        let mut node = self.monitor.lock();
        node.split().1.here.machine.predefine(object);
    }
}

impl State {
    /// A message about objects has come.
    pub(crate) fn deliver_to_objects(
        &mut self,
        from: NodeId,
        message: ObjectsMessage,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        if from.index() >= self.nodes {
            return bad("its sender is not in the cluster");
        }
        self.protocol.count_objects(from, false);
        match message {
            ObjectsMessage::Group(message) => {
                if let Err(what) = check_group(&message, self.nodes) {
                    return bad(what);
                }
                self.step_group(GroupEvent::Message { from, message }, step)
            }
            ObjectsMessage::BatchReply {
                results,
                refused,
                blocked,
                delivered,
                news: None,
            } if refused.is_empty() => self.take_answers(from, (results, blocked), delivered, step),
            message => self.step_objects(ObjectsEvent::Deliver { from, message }, step),
        }
    }

    /// The results of a batch have come. Each is given to its call at once.
    fn take_answers(
        &mut self,
        from: NodeId,
        (mut results, blocked): (PackedResults, Vec<u64>),
        delivered: u64,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let machine = &self.here.machine;
        // If not, they wait there, or are refused.
        if delivered <= machine.delivered() && machine.has_asked(&results) {
            // What is under way no longer is for the machine to judge: calls may be given up on the
            // way.
            let mut again = PackedResults::default();
            for (call, result) in results.iter() {
                if !self.here.machine.is_answered(from, call) {
                    again.push(call, result);
                    continue;
                }
                match self.here.has_result(call, result) {
                    true => self.goes_on_after(call),
                    false => self.finish_when_safe(call, Ok(result.into()), step)?,
                }
            }
            results = again;
        }
        let message = ObjectsMessage::BatchReply {
            results,
            refused: Vec::new(),
            blocked,
            delivered,
            news: None,
        };
        self.step_objects(ObjectsEvent::Deliver { from, message }, step)
    }

    /// Takes an event of the objects and does what it leads to.
    pub(crate) fn step_objects(
        &mut self,
        event: ObjectsEvent,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        self.objects_directly(step, |machine, host, fx| machine.step(event, host, fx))
    }

    /// Carries out what a step has recorded, and takes what was delivered.
    #[cold]
    pub(super) fn carry_out_recorded(
        &mut self,
        stepped: Result<(), ProtocolError>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let ordered = self.carry_out_group(step);
        let done = self.carry_out_objects(stepped.and(ordered), step);
        done.and(self.take_delivered(step))
    }

    fn carry_out_objects(
        &mut self,
        mut done: Result<(), ProtocolError>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        // What comes of one of them goes after the others.
        let at_once = step.at_once.take_if(|_| self.here.commands.len() > 1);
        let mut commands = std::mem::take(&mut self.here.commands);
        for command in commands.drain(..) {
            let carried_out = match command {
                ObjectsCommand::Send { to, message } => {
                    self.send_about_objects(to, message, step);
                    Ok(())
                }
                ObjectsCommand::Broadcast(body) => self.broadcast(body, step),
                ObjectsCommand::Freed(object) => {
                    self.here.named.remove(&object);
                    self.here.made.remove(&object);
                    self.here.sent.remove(&object);
                    self.here.last_met.0 = None;
                    Ok(())
                }
                ObjectsCommand::Start(start) => self.take_in(Process::Started(start), step),
                ObjectsCommand::Execute(call) => self.take_in(Process::Operation(call), step),
                ObjectsCommand::Blocked(call) => {
                    if self.here.is_blocked(call) {
                        self.goes_on_after(call);
                    }
                    Ok(())
                }
                ObjectsCommand::Finished { call, outcome } => {
                    self.finish_when_safe(call, outcome, step)
                }
            };
            done = done.and(carried_out);
        }
        self.here.commands = commands;
        step.at_once = step.at_once.take().or(at_once);
        done
    }

    fn send_about_objects(&mut self, to: NodeId, message: ObjectsMessage, step: &mut Step<'_, '_>) {
        self.protocol.count_objects(to, true);
        let message = Message::Objects(Box::new(message));
        self.send(to, message, Payload::NONE, step.out);
    }

    /// Tells the program of operations that failed and that nobody waited for.
    pub(crate) fn report_unseen(&mut self) {
        self.here.forget_abandoned();
        for (wanted, refusal) in std::mem::take(&mut self.here.unseen) {
            let Wanted {
                object, name, site, ..
            } = wanted;
            let node = self.id;
            self.warn(format!(
                "{name} of {object}, started on {node} at {site}, failed: {refusal}"
            ));
        }
    }

    /// Tells the program what is left of its objects at the end of the run. Of a replicated one the
    /// first node tells that is left.
    pub(crate) fn report_left(&mut self) {
        let machine = &self.here.machine;
        let before_all = (0..self.id.index()).all(|it| self.membership.is_gone(NodeId::at(it)));
        let left = self.here.copies.left(|object| match machine.place(object) {
            Some(Place::Here | Place::Monitored) => true,
            Some(Place::Replicated) => before_all,
            _ => false,
        });
        for (_, words) in left {
            let node = self.id;
            self.warn(format!("at the end of the run, on {node}, {words}"));
        }
    }

    /// A call is over, unless nodes may be lost and it is not safe yet: then nobody is told before
    /// so many have it that no one can go on without it.
    fn finish_when_safe(
        &mut self,
        call: u64,
        outcome: Outcome,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let number = self.here.machine.delivered();
        if !self.here.multicast.remove(&call) || self.here.group.safe() >= number {
            self.finished(call, outcome);
            return Ok(());
        }
        self.here.unsafe_yet.push_back((number, call, outcome));
        // What let it happen may be another node's.
        match self.here.group.will_be_safe(number) {
            true => Ok(()),
            false => self.step_group(GroupEvent::Confirm, step),
        }
    }

    /// Everything up to this number is safe.
    fn is_safe(&mut self, number: u64) {
        while let Some((_, call, outcome)) = self.here.unsafe_yet.pop_front_if(|w| w.0 <= number) {
            self.finished(call, outcome);
        }
    }

    /// A call of the worker's is over.
    pub(super) fn finished(&mut self, call: u64, outcome: Outcome) {
        self.here.over(call, outcome);
        self.goes_on_after(call);
    }

    /// Whoever waits for this call of the worker's goes on.
    #[inline]
    pub(super) fn goes_on_after(&mut self, call: u64) {
        if self.here.awaited == Some(call) {
            self.here.awaited = None;
            self.protocol.operation_over();
            self.woken();
        }
        for wait in self.scheduler.finished(call) {
            self.protocol.unpark(wait, false);
        }
    }

    /// A process was started here.
    fn take_in(&mut self, process: Process, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        let nodes = self.nodes;
        let Err(process) = self.scheduler.take_in(process, nodes) else {
            return Ok(());
        };
        let outcome = Err(Refusal::TooManyProcesses(MOST_CALLS * nodes));
        self.step_objects(process.ended(outcome), step)
    }

    /// Multicasts to all nodes in one order.
    fn broadcast(
        &mut self,
        body: Arc<Ordered>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let (by, bytes) = (body.by(), body.wire_len());
        self.counting.all.broadcasts += 1;
        if let Some(by) = by.filter(|by| self.membership.is_on() && by.node == self.id) {
            self.here.multicast.insert(by.number);
        }
        let mut asked = Ok(());
        let followed = self.objects_directly(step, |_, _, fx| {
            asked = fx.step_group(GroupEvent::Broadcast { body, bytes }, false);
            Ok(())
        });
        let asked = match (asked, by) {
            // Refused by the group itself, it will never have a place in the order.
            (Err(cause), Some(by)) if by.node == self.id => {
                let refusal = Refusal::Malformed(cause.to_string().into());
                self.finished(by.number, Err(refusal));
                Ok(())
            }
            (asked, _) => asked.map_err(group_failed),
        };
        asked.and(followed)
    }

    /// Takes an event of the group and does what it leads to.
    pub(crate) fn step_group(
        &mut self,
        event: GroupEvent<Arc<Ordered>>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        self.objects_directly(step, |_, _, fx| {
            fx.step_group(event, false).map_err(group_failed)
        })
    }

    /// Carries out what a step of the group has recorded.
    fn carry_out_group(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        if self.here.group_commands.is_empty() {
            return Ok(());
        }
        let mut commands = std::mem::take(&mut self.here.group_commands);
        let mut safe = None;
        let mut followed = Ok(());
        for command in commands.drain(..) {
            match command {
                GroupCommand::Send { to, message } => {
                    self.send_about_objects(to, ObjectsMessage::Group(message), step);
                }
                GroupCommand::SendAll { message } => {
                    let others: SmallVec<[NodeId; 16]> = self.here.group.others().collect();
                    for to in others {
                        let message = ObjectsMessage::Group(message.clone());
                        self.send_about_objects(to, message, step);
                    }
                }
                GroupCommand::Deliver {
                    sequence,
                    from,
                    body,
                } => {
                    let turn = Turn::Ordered(sequence, from, body);
                    self.here.delivered.push_back(turn);
                }
                // The links are reliable, so nothing is ever sent again.
                GroupCommand::WakeAt(_) => {}
                GroupCommand::View { gone, .. } => {
                    if !gone.is_empty() {
                        self.here.delivered.push_back(Turn::Gone(gone));
                    }
                }
                GroupCommand::Safe { sequence } => safe = Some(sequence),
                GroupCommand::Stuck { reason } if self.membership.is_on() => self.is_out(reason),
                GroupCommand::Stuck { reason } => {
                    followed = Err(group_failed(GroupError::Ended(reason)));
                }
            }
        }
        self.here.group_commands = commands;
        if let Some(number) = safe {
            self.is_safe(number);
        }
        followed
    }

    /// Has the objects take what was delivered. What they multicast meanwhile may be delivered at
    /// once, at the sequencer: it waits for its turn behind the rest.
    fn take_delivered(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        let mut done = Ok(());
        if std::mem::replace(&mut self.here.taking, true) {
            return done;
        }
        while let Some(turn) = self.here.delivered.pop_front() {
            let taken = match turn {
                Turn::Ordered(sequence, from, body) => {
                    let delivered = ObjectsEvent::Delivered {
                        sequence,
                        from,
                        body,
                    };
                    self.step_objects(delivered, step)
                }
                Turn::Gone(gone) => self.go_on_without(gone, step),
            };
            done = done.and(taken);
        }
        self.here.taking = false;
        done
    }
}

pub(super) fn group_failed(cause: GroupError) -> ProtocolError {
    match cause {
        GroupError::Message { from, what } => ProtocolError::BadMessage { from, what },
        cause => ProtocolError::Unordered {
            cause: cause.to_string(),
        },
    }
}
