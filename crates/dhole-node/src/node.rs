//! One node: its heap and its protocol under one lock, and how the protocol's commands are
//! carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dhole_heap::{Cluster, HeapMut, Monitor, Presence};
use dhole_model::{CallSite, Counters, LineCosts, MessageKind, NodeId, Notify};
use dhole_net::{Envelope, Outbox, Payload, PayloadPool, Receiver, Wake};
use dhole_part::PartCounters;
use dhole_protocol::objects::{codec, ordered_codec};
use dhole_protocol::{
    AbortReason, ArrayEvent, BarrierId, Command, Commands, Event, Message, PageEvent, Protocol,
    ProtocolError, Races, Short, group,
};

use crate::collective_values::Values;
use crate::count::{Counting, MessageSizes};
use crate::ended::Ended;
use crate::gathered::Gathered;
use crate::graphs::Graphs;
use crate::holding::Holding;
use crate::install::install;
use crate::last_call::LastCall;
use crate::membership::Membership;
use crate::notice_check::check_message;
use crate::object::ObjectsHere;
use crate::optimisations::Optimisations;
use crate::part_waits::PartWaits;
use crate::race::RaceReport;
use crate::seen_blocks::SeenBlocks;
use crate::settings::Settings;
use crate::spawn::Scheduler;
use crate::step::{Step, must, worker_is};
use crate::sync_error::RunEnded;
use crate::written_alone::WrittenAlone;

/// A node reports no more than so many mistakes.
const MOST_WARNINGS: usize = 100;

/// A node of a cluster, shared by its worker and by whoever delivers messages to it.
pub struct Node {
    pub(crate) id: NodeId,
    pub(crate) nodes: usize,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) monitor: Monitor<State>,
    pub(crate) pool: Arc<PayloadPool>,
    /// Whether the run goes on when nodes are lost.
    pub(crate) survives: bool,
    /// Numbers given out to new locks, semaphores and conditions.
    pub(crate) numbers_made: AtomicU64,
    /// What the parts count that take their messages without the node lock.
    pub(crate) part_counters: Arc<PartCounters>,
    pub(crate) part_waits: Arc<PartWaits>,
    /// The run has ended early, as the state says.
    has_ended: Arc<AtomicBool>,
    /// Whether a request has begun to wait for the worker's next call since its last one. Stored
    /// under the node's lock; the worker loads it without.
    asked: Arc<AtomicBool>,
}

/// What the node lock protects beside the heap.
pub(crate) struct State {
    pub(crate) id: NodeId,
    pub(crate) nodes: usize,
    pub(crate) protocol: Protocol,
    pub(crate) commands: Commands,
    /// Messages that are taken again at the worker's next call, and their payloads.
    pub(crate) again: Vec<(NodeId, Message, Payload)>,
    pub counting: Counting,
    /// The access that the worker makes has faulted, and takes no second fault to write.
    pub(crate) faulted: bool,
    /// Bytes of the objects' twins made since the last comparison.
    pub(crate) twin_bytes: u64,
    /// What is learned of graphs.
    pub(crate) graphs: Graphs,
    /// The bytes of an object that goes by itself.
    pub(crate) object: Vec<u8>,
    /// What the worker waits for has come.
    pub(crate) done: bool,
    /// The machine was answered that it is to wake the worker for that.
    pub(crate) woke: bool,
    /// The worker goes on when the objects have come so far in their order: others had, before
    /// what it synchronised with.
    after: u64,
    /// It has come to nothing.
    refused: Option<ProtocolError>,
    /// The run is over, early: nothing that waits will go on.
    ended: Option<Ended>,
    /// Whether it is, for those without the node lock.
    has_ended: Arc<AtomicBool>,
    /// The packed value that node 0 brings to a barrier of the kind `Once`, or that came from it.
    pub value: Vec<u8>,
    /// Updates of elements that the worker has gathered.
    pub gathered: Gathered,
    pub(crate) values: Values,
    /// What the program should be told at the end of the run.
    pub warnings: Vec<String>,
    pub(crate) on_race: Races,
    pub(crate) optimisations: Optimisations,
    /// The races that this node found and asked about, which are few.
    races: Vec<RaceReport>,
    /// The objects with operations.
    pub(crate) here: ObjectsHere,
    pub(crate) membership: Membership,
    /// The processes of this node beside the one that has the turn.
    pub(crate) scheduler: Scheduler,
    pub(crate) last_call: LastCall,
    pub(crate) written_alone: WrittenAlone,
    pub(crate) seen_blocks: SeenBlocks,
    /// As [`Node::asked`].
    pub(crate) asked: Arc<AtomicBool>,
}

impl Node {
    /// Node `id` of a cluster of `nodes`, before anything has happened.
    pub(crate) fn new(
        id: NodeId,
        nodes: usize,
        settings: &Settings,
        cluster: &Arc<Cluster>,
        pool: &Arc<PayloadPool>,
    ) -> Node {
        let has_ended = Arc::<AtomicBool>::default();
        let asked = Arc::new(AtomicBool::new(false));
        let mut counting = Counting::default();
        if settings.records {
            counting.record();
        }
        let state = State {
            id,
            nodes,
            protocol: settings.protocol(id, cluster),
            commands: Commands::new(),
            again: Vec::new(),
            faulted: false,
            twin_bytes: 0,
            graphs: Graphs::new(settings.learns_graphs()),
            object: Vec::new(),
            counting,
            done: false,
            woke: false,
            after: 0,
            refused: None,
            ended: None,
            has_ended: Arc::clone(&has_ended),
            value: Vec::new(),
            gathered: Gathered::default(),
            values: Values::default(),
            warnings: Vec::new(),
            on_race: settings.races,
            optimisations: settings.optimisations,
            races: Vec::new(),
            here: ObjectsHere::new(id, nodes, settings, cluster.number()),
            membership: Membership::new(settings.survive),
            scheduler: Scheduler::default(),
            last_call: LastCall::default(),
            written_alone: WrittenAlone::default(),
            seen_blocks: SeenBlocks::default(),
            asked: Arc::clone(&asked),
        };
        Node {
            id,
            nodes,
            part_counters: Arc::clone(&state.counting.parts),
            part_waits: Arc::clone(&state.counting.part_waits),
            has_ended,
            cluster: Arc::clone(cluster),
            monitor: Monitor::new(cluster, id, state),
            pool: Arc::clone(pool),
            survives: settings.survive,
            numbers_made: AtomicU64::new(0),
            asked,
        }
    }

    /// Whether a request waits for the worker's next call. One read of memory.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Operations that messages bring are timed by this clock, if by any.
    pub(crate) fn time_operations(&self, stopwatch: Option<fn() -> u64>) {
        self.monitor.lock().split().1.here.copies.stopwatch = stopwatch;
    }

    /// One message of the machine reaches all.
    pub(crate) fn multicasts(&self) {
        self.monitor.lock().split().1.here.multicasts = true;
    }

    /// Messages are counted with these sizes.
    pub(crate) fn count_sizes(&self, sizes: MessageSizes) {
        self.monitor.lock().split().1.counting.sizes = sizes;
    }

    /// Numbers of broadcasts are asked for, as the machine wants it.
    pub(crate) fn ask_for_numbers(&self) {
        self.monitor.lock().split().1.here.ask_for_numbers();
    }

    /// Whether the run has ended early. Takes no lock.
    pub(crate) fn has_ended_early(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// What this node did so far.
    pub(crate) fn counters(&self) -> Counters {
        let mut guard = self.monitor.lock();
        let (mut heap, state) = guard.split();
        state.note_reads(&mut heap);
        Counters {
            allotted_bytes: heap.allotted_bytes(),
            ..state.counters(heap.store_bytes())
        }
    }

    /// The races that this node found.
    pub(crate) fn races(&self) -> Vec<RaceReport> {
        self.monitor.lock().split().1.races.clone()
    }

    /// What the lines of the program cost here.
    pub(crate) fn costs(&self) -> LineCosts {
        let mut guard = self.monitor.lock();
        let (mut heap, state) = guard.split();
        state.costs(&mut heap)
    }

    /// What the program should be told.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut guard = self.monitor.lock();
        let state = guard.split().1;
        state.report_unseen();
        state.warnings.clone()
    }
}

impl State {
    /// What the lines of the program cost so far.
    pub(crate) fn costs(&mut self, heap: &mut HeapMut<'_>) -> LineCosts {
        self.note_reads(heap);
        self.graphs.report(&mut self.counting.waits);
        let own = self.counting.waits.costs(self.id);
        LineCosts::merged([&own, &self.counting.part_waits.costs(self.id)])
    }
}

impl Receiver<Message> for Node {
    fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        let Envelope {
            from,
            body,
            payload,
            ..
        } = envelope;
        let mut guard = self.monitor.lock();
        let (mut heap, state) = guard.split();
        let mut step = Step {
            from,
            heap: &mut heap,
            pool: &self.pool,
            out,
            payload: &payload,
            at_once: None,
        };
        let wake = state.deliver(from, body, &mut step);
        drop(guard);
        self.pool.give_back(payload);
        wake
    }

    fn deliver_bytes(
        &self,
        from: NodeId,
        message: &[u8],
        payload: &[u8],
        out: &mut Outbox<Message>,
        at_once: &mut dyn FnMut(NodeId, [&[u8]; 3], Notify) -> bool,
    ) -> Option<Wake> {
        let mut guard = self.monitor.lock();
        let (mut heap, state) = guard.split();
        let mut step = Step {
            from,
            heap: &mut heap,
            pool: &self.pool,
            out,
            payload,
            at_once: Some(at_once),
        };
        let waited = !state.may_go_on();
        let taken = match Short::parse(message) {
            Some(Short::FetchReply(reply)) => state.take_reply(from, reply, &mut step),
            // Of the others none has a payload.
            _ if !payload.is_empty() => None,
            Some(Short::Fetch(fetch)) => state.take_fetch(from, fetch, &mut step),
            Some(Short::BarrierRound(said, delivered)) => {
                state.take_round(from, (said, delivered), &mut step)
            }
            None if codec::is_begun_by(message) => state.take_operation(from, message, &mut step),
            None if ordered_codec::is_begun_by(message) => {
                state.take_ordered(from, message, &mut step)
            }
            None => None,
        };
        if let Err(cause) = taken? {
            state.broke(cause, &mut step);
        }
        Some(state.wakes(waited))
    }

    fn describe(&self, quiet_for: Duration) -> Option<String> {
        let mut guard = self.monitor.try_lock()?;
        let (heap, state) = guard.split();
        Some(state.describe(heap.presence(), quiet_for))
    }

    fn calls(&self) -> Option<u64> {
        let mut guard = self.monitor.try_lock()?;
        Some(guard.split().1.last_call.number())
    }
}

impl State {
    /// The node.
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// Takes a message; the worker is to be woken when its wait is over.
    fn deliver(&mut self, from: NodeId, message: Message, step: &mut Step<'_, '_>) -> Wake {
        let waited = !self.may_go_on();
        let said = match &message {
            Message::After { carrier, .. } => carrier,
            message => message,
        };
        match said {
            // It ends no wait, and others wait for what this node says then.
            Message::BarrierRound(said) if !self.protocol.ends_rounds(said) => {}
            said if self.scheduler.holds(said) => {
                return self.hold_message(from, message, step);
            }
            said if self.scheduler.program_is_at_barrier()
                && self.protocol.lacks_of_grant(said) =>
            {
                let nodes = self.nodes;
                if !self
                    .scheduler
                    .hold_grant(from, message, step.payload, nodes)
                {
                    self.too_many(from, step);
                }
                return Wake::No;
            }
            _ => {}
        }
        let nobody_waits = cfg!(debug_assertions)
            && message.notify(self.id) == Notify::Lazy
            // Where an operation is overtaken, its receiver asks for what is missing.
            && message.kind() != MessageKind::Ordered
            && step.heap.presence() == Presence::Computing
            && self.scheduler.are_the_programs()
            && !self.membership.is_on();
        let before = nobody_waits.then(|| (message.kind(), step.out.len()));
        let is_probe = message.kind() == MessageKind::Probe;
        self.take_message(from, message, step);
        if is_probe && waited {
            self.probe_came();
        }
        if let Some((kind, sent)) = before.filter(|_| self.ended.is_none()) {
            // Nobody waits to hear that a push was not read.
            let matters = |sent: &Envelope<Message>| sent.body.kind() != MessageKind::DropOut;
            let nothing = !step.out.since(sent).any(matters);
            debug_assert!(nothing, "{kind:?} brought something about");
        }
        self.wakes(waited)
    }

    /// Keeps a message until the program has the turn, which waits for it.
    fn hold_message(&mut self, from: NodeId, message: Message, step: &mut Step<'_, '_>) -> Wake {
        let nodes = self.nodes;
        if !self.scheduler.hold(from, message, step.payload, nodes) {
            self.too_many(from, step);
        }
        Wake::Yes
    }

    fn too_many(&mut self, from: NodeId, step: &mut Step<'_, '_>) {
        let what = "more messages that end a wait than there are nodes";
        self.broke(ProtocolError::BadMessage { from, what }, step);
    }

    /// Takes a message.
    pub(crate) fn take_message(&mut self, from: NodeId, message: Message, step: &mut Step<'_, '_>) {
        let known = check_message(from, &message, step);
        match known.and_then(|()| self.take_loss(from, &message, step)) {
            Err(cause) => return self.broke(cause, step),
            Ok(true) => return,
            Ok(false) => {}
        }
        let (message, after) = match message {
            Message::After { delivered, carrier } => (*carrier, delivered),
            message => (message, 0),
        };
        match &message {
            Message::Abort {
                node,
                reason: AbortReason::Deadlocked(cycle),
            } if cycle.iter().any(|waiter| waiter.node == self.id) && *node != self.id => {
                self.end(Ended::Deadlock(Arc::clone(cycle)));
            }
            Message::Abort { node, reason } => {
                self.end(Ended::Elsewhere(RunEnded {
                    on: *node,
                    reason: reason.clone(),
                }));
            }
            Message::BarrierDepart {
                barrier: BarrierId::Once(_),
                ..
            } => {
                self.value.clear();
                self.value.extend_from_slice(step.payload);
            }
            _ => {}
        }
        if !self.may_have_come_to(after) {
            let what = "an order that its sender cannot have heard of";
            return self.broke(ProtocolError::BadMessage { from, what }, step);
        }
        // Who hears what this node says now hears of that too.
        self.comes_after(after);
        let taken = match message {
            Message::Objects(message) => self.deliver_to_objects(from, *message, step),
            Message::Probe(mut probe) => {
                self.answers_probe(&mut probe);
                let message = Message::Probe(probe);
                self.step(Event::Deliver { from, message }, step)
            }
            message => {
                if let Message::Fetch(fetch) = &message {
                    self.withdraw_missed(fetch, step.heap);
                }
                self.step(Event::Deliver { from, message }, step)
            }
        };
        if let Err(cause) = taken {
            self.broke(cause, step);
        }
    }

    pub(crate) fn broke(&mut self, cause: ProtocolError, step: &mut Step<'_, '_>) {
        self.abort(AbortReason::Failed(cause.to_string().into()), step.out);
        self.end(Ended::Broken(cause));
    }

    /// Notes how many records of intervals are kept.
    pub(crate) fn notes_records(&mut self) {
        let most = &mut self.counting.all.interval_records_most;
        *most = (*most).max(self.protocol.intervals_kept() as u64);
    }

    /// Takes an event and does what it leads to.
    ///
    /// # Errors
    /// When the event must not have happened; the run is not ended by it.
    pub fn step(&mut self, event: Event, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        let worker = worker_is(step.heap.presence());
        let accesses = matches!(
            event,
            Event::Array(ArrayEvent::Read(_)) | Event::Pages(PageEvent::Read { .. })
        );
        let blocks = matches!(event, Event::Array(ArrayEvent::Blocks(_)));
        let (written, allocated) = match event {
            Event::WriteFault { oid, .. } => (Some(oid), None),
            Event::Allocated { range, .. } => (None, Some(range)),
            _ => (None, None),
        };
        if let Some(oid) = written {
            self.unpublish(oid, step.heap);
        }
        let stored = self.stored_by(&event, step.heap);
        let paged = matches!(event, Event::Pages(_));
        let mut commands = std::mem::take(&mut self.commands);
        let stepped = self.protocol.step(event, worker, &mut commands);
        let asks_members = (blocks || written.is_some()) && self.counts_members(step);
        if blocks && asks_members || accesses && commands.iter().any(asks) {
            self.read_faulted(paged, step);
        } else if asks_members {
            self.counting.all.fetch_rounds += 1;
        }
        if let Some(oid) = written {
            self.write_faulted(oid, &commands, step);
            self.unpublish_expected(&commands, step.heap);
        }
        self.commands = commands;
        let carried_out = self.carry_out_all(Ok(()), step);
        self.notes_records();
        self.graphs.done();
        let made = allocated.into_iter();
        made.for_each(|range| self.publish_all(range, step.heap));
        self.publish_stored(stored, step)?;
        stepped.and(carried_out)
    }

    /// Carries out what a step has recorded, unless something has failed before.
    pub(crate) fn carry_out_all(
        &mut self,
        mut done: Result<(), ProtocolError>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut commands = std::mem::take(&mut self.commands);
        for command in commands.drain(..) {
            if done.is_ok() {
                done = self.carry_out(command, step);
            }
        }
        self.commands = commands;
        done.and_then(|()| self.publish_clean(step))
    }

    /// Whether something must be [flushed](Event::Flush) before the worker synchronises.
    pub fn has_unflushed(&self) -> bool {
        self.protocol.has_unflushed()
    }

    /// A request begins to wait for a call of the worker.
    pub(crate) fn is_deferred(&mut self) {
        self.counting.all.deferred_requests += 1;
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Answers the requests that waited for a call of the worker.
    pub fn serve(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        self.publish_asked(step)?;
        match self.protocol.has_deferred() {
            true => {
                self.asked.store(false, Ordering::Relaxed);
                self.serve_all(step)
            }
            false => Ok(()),
        }
    }

    /// What this node holds, and where it was acquired.
    pub fn held(&self) -> Vec<(Holding, CallSite)> {
        let locks = self.protocol.held_locks();
        let locks = locks.map(|(lock, site)| (Holding::Lock(lock), site));
        let sync_objects = self.protocol.held_sync_objects();
        let sync_objects =
            sync_objects.map(|(sync_object, site)| (Holding::SyncObject(sync_object), site));
        locks.chain(sync_objects).collect()
    }

    /// What this node did so far.
    pub(crate) fn counters(&self, store_bytes: u64) -> Counters {
        let mut counters = self.counting.counters(store_bytes);
        counters.by_object = self.here.by_object();
        counters
    }

    /// Tells the program something at the end of the run.
    pub(crate) fn warn(&mut self, what: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(what);
        }
    }

    /// What the worker waits for has come.
    pub(crate) fn woken(&mut self) {
        self.done = true;
    }

    /// Whether what the worker waits for has come, or to nothing.
    pub(crate) fn is_over(&self) -> bool {
        self.done || self.ended.is_some()
    }

    /// What the worker waits for comes to nothing.
    pub(crate) fn refuse_wait(&mut self, why: ProtocolError) {
        self.refused = Some(why);
        self.done = true;
    }

    /// What has come is another process's; whether anything had.
    pub(crate) fn not_done(&mut self) -> bool {
        std::mem::take(&mut self.done)
    }

    /// Whether what the worker waited for has come, or the run has ended. It is taken.
    #[inline]
    pub fn take_outcome(&mut self) -> bool {
        self.membership.waited();
        self.ended.is_some() || self.may_go_on() && std::mem::take(&mut self.done)
    }

    /// Whether what the worker waited for came to nothing, once that is known.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.ended.is_some() || self.refused.is_some()
    }

    /// Up to where the order of the objects has come that whoever is told something comes after.
    pub(crate) fn delivered(&self) -> u64 {
        self.after.max(self.here.machine.delivered())
    }

    /// What its worker synchronises with comes after this place in the order of the objects.
    pub(crate) fn comes_after(&mut self, delivered: u64) {
        self.after = self.after.max(delivered);
    }

    /// Whether another node may have come so far in the order of the objects: none is a window
    /// ahead of others.
    pub(crate) fn may_have_come_to(&self, delivered: u64) -> bool {
        let window = u64::from(group::Settings::reliable().window);
        delivered <= self.here.machine.delivered() + window
    }

    /// Whether the worker need not wait any longer.
    pub(crate) fn may_go_on(&self) -> bool {
        let behind = self.here.machine.delivered() < self.after;
        (self.done && !behind) || self.ended.is_some()
    }

    /// Whether what ends a wait of the program may come and go as bytes: no process has begun here
    /// so far, and no node may be lost.
    #[inline]
    pub(crate) fn may_be_bytes(&self) -> bool {
        self.ended().is_none() && self.scheduler.are_the_programs() && !self.membership.is_on()
    }

    /// Whether the worker is to be woken, if it has waited, or another process of this node.
    #[inline]
    fn wakes(&mut self, waited: bool) -> Wake {
        let stirred = self.scheduler.take_stirred();
        let goes_on = waited && self.may_go_on();
        self.woke |= goes_on;
        match stirred || goes_on {
            true => Wake::Yes,
            false => Wake::No,
        }
    }

    /// Why what the worker waited for has come to nothing.
    pub fn take_refused(&mut self) -> Option<ProtocolError> {
        self.refused.take()
    }

    /// How the run ended early, if it did.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Ends the run for this node; the first reason stays.
    pub fn end(&mut self, ended: Ended) {
        self.ended.get_or_insert(ended);
        self.has_ended.store(true, Ordering::SeqCst);
        self.protocol.give_up();
    }

    /// Tells all other nodes that the run is over.
    pub fn abort(&mut self, reason: AbortReason, out: &mut Outbox<Message>) {
        let me = self.id;
        for to in (0..self.nodes).map(NodeId::at).filter(|to| *to != me) {
            let message = Message::Abort {
                node: me,
                reason: reason.clone(),
            };
            self.send(to, message, Payload::NONE, out);
        }
    }

    pub(crate) fn send(
        &mut self,
        to: NodeId,
        message: Message,
        payload: Payload,
        out: &mut Outbox<Message>,
    ) {
        if !self.membership.sends(to, &message) {
            return;
        }
        let message = message.after(self.delivered());
        if to != self.id {
            self.counting.sent(&message, payload.len());
        }
        out.push(Envelope {
            from: self.id,
            to,
            body: message,
            payload,
        });
    }

    pub(crate) fn carry_out(
        &mut self,
        command: Command,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let counting = &mut self.counting;
        match command {
            Command::Send { to, message } => {
                let mut payload = Payload::NONE;
                if let Message::BarrierDepart {
                    barrier: BarrierId::Once(_),
                    ..
                } = message
                {
                    payload.extend(&self.value);
                }
                payload.extend(self.values.payload_of(&message, to));
                if let Message::Fetch(fetch) = &message {
                    counting.asks(fetch, step.heap);
                }
                if let Message::FetchElements { wanted, beside, .. } = &message {
                    let missed = wanted.len() - usize::from(*beside);
                    self.count_elements(&wanted[..missed], step.heap);
                }
                self.send(to, message, payload, step.out);
            }
            Command::Objects(command) => self.carry_out_on_objects(command, step)?,
            Command::Array(command) => self.carry_out_on_array(command, step)?,
            Command::EndYoung { range, version } => {
                let ended = step.heap.end_young(range, version);
                must(ended, "whose interval ends is in a call");
            }
            Command::Combine {
                array,
                combining,
                updates,
            } => self.combine_here(array, (combining, &updates), step)?,
            Command::Pages(command) => self.carry_out_on_page(command, step)?,
            Command::InstallAlong(sent) => {
                counting.all.came_along += 1;
                let named = self.along_by(sent)?;
                install(sent, &mut self.counting, &mut self.graphs, step)?;
                if self.graphs.expects(named) {
                    step.heap.expect_read(sent.region);
                }
                if let Some(coherence) = step.heap.coherence_of(sent.region) {
                    self.protocol.meet(sent.region, coherence);
                }
            }
            Command::PassOver { bytes } => {
                step.next_bytes(bytes)?;
            }
            Command::Compare { oid, site } => self.compare(oid, site, step)?,
            Command::ExpectWrite { oid, pre_image } => {
                counting.all.pre_images += u64::from(pre_image);
                let made = step.heap.expect_write(oid, pre_image);
                must(made, "a writer is in a call with `&mut w`");
            }
            Command::Gate(oid) => self.put_behind_gate(oid, step.heap),
            Command::ShutGate(first) => must(
                step.heap.shut_gate(first),
                "whose interval ends is in a call",
            ),
            Command::IntervalEnded => counting.all.intervals += 1,
            Command::SendUnits {
                to,
                message,
                units,
                what,
            } => self.send_units((&to, message), &units, what, step)?,
            Command::DeliverAgain { from, message } => self.keep_message(from, message, step),
            Command::Fail(cause) => return Err(*cause),
            Command::HandOutIds { to, ids } => self.hand_ids_out(to, ids, step)?,
            Command::TakeIds(handed) => State::take_ids(handed, step)?,
            Command::Collected { from, number, way } => self.collect(from, (number, way), step),
            // What the protocol waits for was given up.
            Command::Gone(_) | Command::Done if self.membership.cut().is_err() => {}
            Command::Gone(freed) => {
                self.refused = Some(ProtocolError::Freed(freed));
                self.done = true;
            }
            Command::RacesFound(races) => counting.all.races += races,
            Command::Race(race) => {
                let race = RaceReport::new(race, step.heap.cluster());
                if self.on_race == Races::Fail {
                    self.end(Ended::Race(Arc::new(race.clone())));
                }
                self.races.push(race);
            }
            Command::Deferred => self.is_deferred(),
            Command::TrySections(lock) => self.try_sections(lock, step)?,
            Command::Done => self.done = true,
            Command::Deadlock(cycle) => self.end(Ended::Deadlock(cycle)),
        }
        Ok(())
    }
}

fn asks(command: &Command) -> bool {
    use MessageKind::{DiffRequest, Fetch, PageRequest};
    let fetch = |message: &Message| matches!(message.kind(), Fetch | PageRequest | DiffRequest);
    matches!(command, Command::Send { message, .. } if fetch(message))
}
