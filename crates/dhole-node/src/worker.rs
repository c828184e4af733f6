use std::cell::{Cell, RefCell};
use std::time::Duration;

use dhole_heap::{MonitorCall, OnThread, Token};
use dhole_model::{CallSite, Coherence, Counters, NodeId, Notify, Phase, Track};
use dhole_net::Outbox;
use dhole_protocol::objects::chain::Chain;
use dhole_protocol::{AbortReason, Event, Message, ProtocolError, Unread};

use crate::ended::Ended;
use crate::holding::{Dropped, Holding};
use crate::machine::{Fiber, Machine, Receivers, Woken};
use crate::node::{Node, State};
use crate::parts::NodeParts;
use crate::phases::ReadTimer;
use crate::spawn::Children;
use crate::step::Step;
use crate::sync_error::{OutOfMemory, SyncError};
use crate::timeline::Waited;
use crate::waits::{Awaited, Waiting};

/// A node's worker: the token that lets a program touch shared objects.
///
/// `run` lends one to the program on each node. A read borrows it, a write borrows it mutably, and
/// every call that synchronises takes it mutably. So no reference outlives the interval in which
/// its bytes are consistent. It is neither `Send` nor `Sync`, and its brand `'id` keeps the tokens
/// of two nodes or two clusters from being swapped.
pub struct Worker<'id> {
    pub(crate) token: OnThread<Token<'id>>,
    pub(crate) link: OnThread<Link<'id>>,
}

/// What connects a worker to its node and its node to the others: everything but the token, so
/// that both can be borrowed at once.
pub(crate) struct Link<'id> {
    pub node: &'id Node,
    /// What the node has beside its objects.
    pub parts: Option<&'id dyn NodeParts>,
    pub machine: &'id dyn Machine,
    pub receivers: &'id Receivers<'id>,
    pub out: RefCell<Outbox<Message>>,
    /// Locks whose `Held` was dropped unreleased, with the place where they were acquired.
    pub dropped: Dropped,
    /// What its next wait is for.
    pub awaited: Cell<Awaited>,
    /// Which of its one-sided reads are timed.
    pub one_sided: ReadTimer,
    /// Whether the [machine counts moments](Machine::counts_moments).
    pub counts_moments: bool,
    /// How long a wait lasts before the wait-for graph is searched for a cycle.
    pub suspect_after: Duration,
    /// Which of the node's processes this is.
    pub fiber: Fiber,
    /// The processes that it has started and not waited for.
    pub children: Children,
    /// When the calls of operations that it makes are withdrawn, if their time is limited.
    pub until_ns: Cell<Option<u64>>,
    /// The operations in progress that it executes a part of; none if it is the program.
    pub chain: RefCell<Chain>,
    /// On node 0, where the `once` is whose value it is making.
    pub in_once: Option<CallSite>,
    /// Where the call is that runs what each node runs by itself.
    pub by_itself: Option<CallSite>,
    /// Bytes of pages for which this node has memory.
    pub memory_bytes: u64,
    /// How objects are kept consistent unless their allocation says otherwise.
    pub coherence: Coherence,
}

impl<'id> Worker<'id> {
    pub(crate) fn new(token: Token<'id>, link: Link<'id>) -> Worker<'id> {
        Worker {
            token: OnThread::new(token),
            link: OnThread::new(link),
        }
    }

    /// The number of this node.
    pub fn node(&self) -> NodeId {
        self.link.node.id
    }

    /// The number of nodes of the cluster.
    pub fn nodes(&self) -> usize {
        self.link.node.nodes
    }

    /// Whether the run goes on when nodes are lost. A program then makes the objects
    /// [replicated](crate::object::replicated) that must outlive a node.
    pub fn survives(&self) -> bool {
        self.link.survives()
    }

    /// The time since the run began, on this node's clock; virtual in a simulation.
    pub fn now(&self) -> Duration {
        self.link.machine.enter(self.node());
        let now = self.link.machine.now(self.node());
        self.link.machine.leave(self.node());
        Duration::from_nanos(now)
    }

    /// The parts of the node that take messages without the node lock, if the run has any.
    #[doc(hidden)]
    pub fn parts(&self) -> Option<&'id dyn NodeParts> {
        self.link.parts
    }

    /// A number from this node's stream of random numbers, which the run's seed decides.
    pub fn random(&self) -> u64 {
        self.link.machine.random(self.node())
    }

    /// Says that the computation just done costs `units` units of work, of about a nanosecond
    /// each. A simulation with fixed costs takes its time from this; elsewhere it means nothing.
    #[inline]
    pub fn work(&self, units: u64) {
        self.link.machine.work(self.node(), units);
    }

    /// Answers the requests of other nodes: those that wait for a call of this worker, on every
    /// machine, and those that processes of the same machine have sent.
    ///
    /// A call without requests costs two reads of memory. Without it the service thread, which must
    /// be woken first, answers requests for what nobody writes, and this worker answers the others
    /// at its next miss. So a long computation that reads what others read
    /// calls this every few microseconds: once for a body, a molecule, a row. It ends no borrow,
    /// and does not synchronise. In a simulation it is a call like any other.
    ///
    /// # Errors
    /// [`SyncError`] where something had come, and the run is over or what came must not be. Where
    /// nothing has it does not look for that.
    #[inline]
    #[track_caller]
    pub fn poll(&self) -> Result<(), SyncError> {
        let link = &self.link;
        if link.counts_moments {
            // There others go on only while the worker is in the runtime.
            link.machine.enter(link.node.id);
            link.machine.leave(link.node.id);
        }
        match self.looks() || link.node.is_asked() {
            true => self.serve(CallSite::caller()),
            false => Ok(()),
        }
    }

    /// Takes what has come; whether something may have been there.
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        let link = &self.link;
        link.machine.look(link.receivers, link.node.id)
    }

    /// Answers what could not be while the worker computed, for it could write what is asked for.
    #[cold]
    fn serve(&self, site: CallSite) -> Result<(), SyncError> {
        let served = self.shared(site, |link, call| link.local(call, None));
        served.map_err(|failure| self.link.sync_error(*failure, site))
    }

    /// The counters of this node up to now.
    pub fn counters(&self) -> Counters {
        self.link.node.counters()
    }

    /// How often this node's lock was taken: for measurements.
    #[doc(hidden)]
    pub fn node_locks(&self) -> u64 {
        self.link.node.monitor.taken()
    }

    /// Ends all borrows and answers requests of other nodes, without synchronising and without
    /// write notices. Another process of this node goes on too, if one can.
    #[track_caller]
    pub fn pause(&mut self) -> Result<(), SyncError> {
        let site = CallSite::caller();
        let paused = self.exclusive(site, |link, call| {
            link.local(call, None)?;
            link.yield_turn(call)
        });
        paused.map_err(|failure| self.link.sync_error(*failure, site))
    }

    /// A call with an event that is over at once.
    pub(crate) fn local(&mut self, event: Option<Event>, site: CallSite) -> Result<(), SyncError> {
        let called = self.exclusive(site, |link, call| link.local(call, event));
        called.map_err(|failure| self.link.sync_error(*failure, site))
    }

    /// Runs `f` as a call that takes the token mutably, made at `site`. All calls that release
    /// something are such. So what the parts owe other nodes goes before.
    pub(crate) fn exclusive<R>(
        &mut self,
        site: impl Into<CallSite>,
        f: impl FnOnce(&Link<'id>, &mut MonitorCall<'_, State>) -> Result<R, Box<Failure>>,
    ) -> Result<R, Box<Failure>> {
        let Worker { token, link } = self;
        if let Some(parts) = link.parts {
            parts.before_release();
        }
        link.machine.enter(link.node.id);
        let result = link.node.monitor.exclusive_call(token, |call| {
            call.split().1.last_call.begins(site);
            Link::hear_of_born(call);
            let result = link.release_dropped(call).and_then(|()| f(link, call));
            link.over(call, result)
        });
        link.machine.leave(link.node.id);
        result
    }

    /// Runs `f` as a call that takes the token shared, made at `site`.
    pub(crate) fn shared<R>(
        &self,
        site: impl Into<CallSite>,
        f: impl FnOnce(&Link<'id>, &mut MonitorCall<'_, State>) -> Result<R, Box<Failure>>,
    ) -> Result<R, Box<Failure>> {
        let Worker { token, link } = self;
        link.machine.enter(link.node.id);
        let result = link.node.monitor.shared_call(token, |call| {
            call.split().1.last_call.begins(site);
            Link::hear_of_born(call);
            let result = f(link, call);
            link.over(call, result)
        });
        link.machine.leave(link.node.id);
        result
    }
}

/// Makes a value for all, and appends it, packed.
pub(crate) type Make<'id, 'a> =
    dyn FnMut(&mut Worker<'id>, &mut Vec<u8>) -> crate::error::Result<()> + 'a;

/// Why a call came back without what it was to bring.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run has ended early.
    Ended(Ended),
    /// The program did what it must not; the run goes on.
    Refused(ProtocolError),
    /// This node holds more than it has memory for.
    Memory(OutOfMemory),
}

impl From<ProtocolError> for Box<Failure> {
    fn from(error: ProtocolError) -> Box<Failure> {
        Box::new(Failure::Refused(error))
    }
}

impl<'id> Link<'id> {
    /// A call of the program's is over. Where it failed, others may have been answered before, and
    /// wait for that.
    fn over<R>(
        &self,
        call: &mut MonitorCall<'_, State>,
        result: Result<R, Box<Failure>>,
    ) -> Result<R, Box<Failure>> {
        if result.is_err() {
            self.send(call);
        }
        result
    }

    /// An event that is over at once.
    pub fn local(
        &self,
        call: &mut MonitorCall<'_, State>,
        event: Option<Event>,
    ) -> Result<(), Box<Failure>> {
        self.flush_before(call, event.as_ref())?;
        let synchronises = event.as_ref().is_some_and(Event::synchronises);
        self.step(call, event)?;
        if synchronises {
            self.synchronised(call);
        }
        self.send(call);
        Ok(())
    }

    /// What the worker allocated by itself since its last call is known from here on.
    fn hear_of_born(call: &mut MonitorCall<'_, State>) {
        let (mut heap, state) = call.split();
        if heap.has_born() {
            let State {
                protocol, counting, ..
            } = state;
            heap.hear_of_born(|range, what| {
                counting.of_type(what.info.name).allocated += u64::from(range.count);
                protocol.born(range, what.coherence);
            });
        }
    }

    /// An event that leads to a wait, unless what it needs is here. Whether anything was sent.
    pub fn and_wait(
        &self,
        call: &mut MonitorCall<'_, State>,
        event: Event,
    ) -> Result<bool, Box<Failure>> {
        self.flush_before(call, Some(&event))?;
        self.begin(call, event)
    }

    /// Whether what this node holds fits its memory: asked where more is stored, and nowhere else,
    /// for whoever gets an error must not hold a lock by it, or have passed a barrier.
    pub fn within_memory(&self, call: &mut MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        let (held_bytes, limit_bytes) = (call.split().0.store_bytes(), self.memory_bytes);
        if held_bytes <= limit_bytes {
            return Ok(());
        }
        Err(Box::new(Failure::Memory(OutOfMemory {
            held_bytes,
            limit_bytes,
        })))
    }

    /// Operations that were started take effect before the worker synchronises, what was written of
    /// objects at home elsewhere goes there, and what could have been written and was not is told
    /// apart.
    pub(crate) fn flush_before(
        &self,
        call: &mut MonitorCall<'_, State>,
        event: Option<&Event>,
    ) -> Result<(), Box<Failure>> {
        let synchronises = event.is_some_and(Event::synchronises);
        let combines = matches!(event, Some(Event::Combine(_) | Event::TakeUpdates));
        if synchronises && !combines {
            self.combine_gathered(call)?;
        }
        // Whatever ends an interval alone says itself whether it comes behind what was started: a
        // start ends one too.
        if synchronises && !combines && event != Some(&Event::EndInterval) {
            self.settle_started(call)?;
        }
        if synchronises && call.split().1.has_unflushed() {
            if let Some(event) = event {
                self.awaits_by(event);
            }
            self.begin(call, Event::Flush)?;
        }
        if synchronises {
            let (mut heap, state) = call.split();
            let unwritten = state.unwritten(&mut heap);
            let written_at = state.written_at(&mut heap);
            let compared = std::mem::take(&mut state.twin_bytes);
            state.counting.all.unwritten += unwritten.len() as u64;
            self.out.borrow_mut().work().compared_bytes += compared;
            if !written_at.is_empty() {
                self.step(call, Some(Event::WrittenAt(written_at)))?;
            }
            if !unwritten.is_empty() {
                self.step(call, Some(Event::Unwritten(unwritten)))?;
            }
        }
        Ok(())
    }

    pub(crate) fn begin(
        &self,
        call: &mut MonitorCall<'_, State>,
        event: Event,
    ) -> Result<bool, Box<Failure>> {
        if !matches!(event, Event::Learn(_)) {
            call.split().1.membership.cut()?;
        }
        self.awaits_by(&event);
        let synchronises = event.synchronises();
        self.step(call, Some(event))?;
        if synchronises {
            self.synchronised(call);
        }
        self.outcome(call)
    }

    /// The interval of the worker that synchronises has ended.
    pub(crate) fn synchronised(&self, call: &mut MonitorCall<'_, State>) {
        let (mut heap, state) = call.split();
        state.expect_exclusive(&mut heap);
    }

    /// What the worker waits for next, for the report.
    pub(crate) fn awaits(&self, awaited: impl Into<Awaited>) {
        self.awaited.set(awaited.into());
    }

    /// The worker may wait next for what comes of this event.
    fn awaits_by(&self, event: &Event) {
        if let Some(awaited) = self.awaited.get().of(event) {
            self.awaited.set(awaited);
        }
    }

    /// Sends what the steps before wanted sent, and waits for what they did not bring. Whether it
    /// waited.
    pub(crate) fn outcome(&self, call: &mut MonitorCall<'_, State>) -> Result<bool, Box<Failure>> {
        let awaited = self.awaited.take();
        if awaited.is_for_all() {
            self.comes_to_all(call, awaited);
        }
        let outcome = match outcome(call) {
            None => call
                .split()
                .1
                .begin_to_wait()
                .err()
                .map(|lost| Err(lost.into())),
            outcome => outcome,
        };
        match outcome {
            Some(outcome) => {
                self.send(call);
                outcome.map(|()| false)
            }
            None => {
                let waiting = self.notes_wait(call, awaited);
                self.send_by(call, Notify::Lazy);
                self.wait(call, &waiting).map(|()| true)
            }
        }
    }

    pub(crate) fn step(
        &self,
        call: &mut MonitorCall<'_, State>,
        event: Option<Event>,
    ) -> Result<(), Box<Failure>> {
        self.acts(call, |state, step| {
            event.map_or(Ok(()), |event| state.step(event, step))
        })
    }

    /// Lets the node's state take a step of the worker's, after what it owes others.
    pub(crate) fn acts(
        &self,
        call: &mut MonitorCall<'_, State>,
        act: impl FnOnce(&mut State, &mut Step<'_, '_>) -> Result<(), ProtocolError>,
    ) -> Result<(), Box<Failure>> {
        if let Some(ended) = call.split().1.ended() {
            return Err(Box::new(Failure::Ended(ended.clone())));
        }
        self.stepping(call, |state, step| {
            state.membership.worker_begins();
            state.serve(step)?;
            act(state, step)
        })?;
        Ok(())
    }

    /// Waits for objects and what is fetched with them, unless all are here.
    pub(crate) fn bring(
        &self,
        call: &mut MonitorCall<'_, State>,
        misses: &[Unread],
    ) -> Result<(), Box<Failure>> {
        call.split().1.membership.cut()?;
        self.acts(call, |state, step| state.read_misses(misses, step))?;
        self.outcome(call)?;
        self.within_memory(call)
    }

    /// Lets the node's state take a step of the worker's.
    pub(crate) fn stepping<R>(
        &self,
        call: &mut MonitorCall<'_, State>,
        f: impl FnOnce(&mut State, &mut Step<'_, '_>) -> R,
    ) -> R {
        let (mut heap, state) = call.split();
        let out = &mut *self.out.borrow_mut();
        let me = self.node.id;
        let at_once =
            &mut |to, parts: [&[u8]; 3], notify| self.machine.send_bytes(me, to, parts, notify);
        let mut step = Step {
            from: self.node.id,
            heap: &mut heap,
            pool: &self.node.pool,
            out,
            payload: &[],
            at_once: match self.machine.sends_bytes() {
                true => Some(at_once),
                false => None,
            },
        };
        state.membership.worker_steps(true);
        let stepped = f(state, &mut step);
        state.membership.worker_steps(false);
        stepped
    }

    /// Sends what the steps before wanted sent, without the lock.
    pub(crate) fn send(&self, call: &mut MonitorCall<'_, State>) {
        self.send_by(call, Notify::Now);
    }

    fn send_by(&self, call: &mut MonitorCall<'_, State>, notify: Notify) {
        let charges = self.machine.charges_work();
        let to_do = |out: &Outbox<Message>| !out.is_empty() || (charges && out.has_work());
        if to_do(&self.out.borrow()) {
            call.unlock();
            let out = &mut self.out.borrow_mut();
            self.machine.send(self.receivers, self.node.id, out, notify);
        }
    }

    /// Notes that a wait begins. What goes out for it is a part of it: between threads the answer
    /// comes with that.
    fn notes_wait(&self, call: &mut MonitorCall<'_, State>, awaited: Awaited) -> Waiting {
        let State {
            counting,
            last_call,
            ..
        } = call.split().1;
        let now_ns = self.machine.waited(self.node.id);
        let misses = counting.all.misses;
        counting.phases.waits(awaited.phase(), now_ns);
        let looks = counting.phases.looks_at_wait(awaited.phase(), now_ns);
        let mut waiting = counting
            .waits
            .begins(awaited, last_call.site(), misses, now_ns);
        if counting.records {
            waiting.recorded_ns = Some(self.machine.now(self.node.id));
        }
        if looks {
            waiting.processor_ns = self.machine.worker_processor(self.node.id);
        }
        waiting
    }

    /// The worker comes to where all nodes come. Where it need not wait it goes on at once.
    fn comes_to_all(&self, call: &mut MonitorCall<'_, State>, awaited: Awaited) {
        let id = self.node.id;
        let now_ns = self.machine.now(id);
        let State {
            counting,
            last_call,
            ..
        } = call.split().1;
        let took_ns = counting.arrives(now_ns);
        counting.departs(now_ns);
        if self.node.nodes > 1 {
            counting.waits.arrives(awaited, last_call.site(), took_ns);
        }
        self.looks_at_processor(call, now_ns);
    }

    /// The program begins: the first look at the processor's clock.
    pub(crate) fn begins_program(&self) {
        let id = self.node.id;
        if let Some(processor_ns) = self.machine.processor(id) {
            let now_ns = self.machine.now(id);
            let mut guard = self.node.monitor.lock();
            let counting = &mut guard.split().1.counting;
            counting.looks(self.fiber.0, now_ns, processor_ns);
            counting.phases.begins(self.machine.worker_processor(id));
        }
    }

    /// Compares the time for which the worker did not wait with the processor's.
    pub(crate) fn looks_at_processor(&self, call: &mut MonitorCall<'_, State>, now_ns: u64) {
        let counting = &mut call.split().1.counting;
        if counting.phases.may_look(now_ns)
            && let Some(processor_ns) = self.machine.processor(self.node.id)
        {
            counting.looks(self.fiber.0, now_ns, processor_ns);
        }
    }

    fn wait(
        &self,
        call: &mut MonitorCall<'_, State>,
        waiting: &Waiting,
    ) -> Result<(), Box<Failure>> {
        let id = self.node.id;
        // Where moments do not count, neither is the clock looked at once more.
        let began = match self.counts_moments {
            true => self.machine.waited(id),
            false => waiting.began_ns,
        };
        let mut patience = self.suspect_after;
        let mut began_processor_ns = waiting.processor_ns;
        let outcome = loop {
            if self.let_others(call)? {
                began_processor_ns = None;
                // The others had phases of their own.
                let now = self.machine.waited(id);
                call.split().1.counting.phases.waits(waiting.phase(), now);
                if let Some(outcome) = outcome(call) {
                    break outcome;
                }
                continue;
            }
            if self.take_held(call) {
                if let Some(outcome) = outcome(call) {
                    break outcome;
                }
                call.split().1.begin_to_wait()?;
                // The program may go on.
                continue;
            }
            if self.withdraw_overdue(call)? {
                self.send(call);
                if let Some(outcome) = outcome(call) {
                    break outcome;
                }
                continue;
            }
            let (at_most, is_limited) = self.until_deadline(call, patience);
            call.unlock();
            let woken = {
                #[cfg(feature = "tracing")]
                let _span = crate::spans::wait(self.machine, id, waiting);
                self.machine.wait_polling(self.receivers, id, at_most)
            };
            let woke = std::mem::take(&mut call.split().1.woke);
            if let Some(outcome) = outcome(call) {
                if woken == Woken::ByTime && outcome.is_ok() {
                    self.found_late(call, woke);
                }
                break outcome;
            }
            call.split().1.begin_to_wait()?;
            if woken == Woken::ByTime && !is_limited {
                self.waited_long(call)?;
                if let Some(outcome) = outcome(call) {
                    self.send(call);
                    break outcome;
                }
                self.send(call);
                patience = patience.saturating_mul(2).min(LONGEST_PATIENCE);
            }
        };
        let now = self.machine.waited(id);
        let processor_ns = began_processor_ns.and_then(|began| {
            let now = self.machine.worker_processor(id)?;
            Some(now.saturating_sub(began))
        });
        let counting = &mut call.split().1.counting;
        counting.phases.ends(now);
        let took_ns = now.saturating_sub(waiting.began_ns);
        counting
            .phases
            .waited(waiting.phase(), took_ns, processor_ns);
        let waited_ns = now.saturating_sub(began);
        counting.all.waited_ns += waited_ns;
        match waiting.phase() {
            Phase::Lock => counting.all.lock_waited_ns += waited_ns,
            Phase::Barrier => {
                counting.all.barrier_waited_ns += waited_ns;
                counting.departs(self.machine.now(id));
            }
            _ => {}
        }
        let allocated_at = |oid| self.node.cluster.allocated_at(oid);
        counting.waits.ends(waiting, now, allocated_at);
        if let Some(began_ns) = waiting.recorded_ns {
            let waited = Waited {
                track: Track::Process(self.fiber.0),
                began_ns,
                took_ns: self.machine.now(id).saturating_sub(began_ns),
                processor_ns,
                reads: None,
            };
            counting.part_waits.records(waiting.what(), waited);
        }
        outcome
    }

    /// Whether another node has told this one that it failed.
    pub fn was_told(&self) -> bool {
        let mut guard = self.node.monitor.lock();
        match guard.split().1.ended() {
            Some(Ended::Elsewhere(ended)) => !ended.is_own(self.node.id),
            _ => false,
        }
    }

    /// Ends the run for all nodes. What was to be sent before is dropped: delivering it may be
    /// what failed.
    pub fn abort(&self, reason: AbortReason) {
        self.machine.enter(self.node.id);
        let out = &mut *self.out.borrow_mut();
        while out.pop().is_some() {}
        self.node.monitor.lock().split().1.abort(reason, out);
        let (me, notify) = (self.node.id, Notify::Now);
        self.machine.send(self.receivers, me, out, notify);
        self.machine.leave(self.node.id);
    }

    pub fn sync_error(&self, failure: Failure, site: CallSite) -> SyncError {
        let node = self.node.id;
        match failure {
            Failure::Refused(cause) | Failure::Ended(Ended::Broken(cause)) => {
                SyncError::Protocol { node, cause }
            }
            Failure::Memory(cause) => SyncError::Memory { node, site, cause },
            Failure::Ended(Ended::Deadlock(cycle)) => SyncError::Deadlock { node, cycle },
            Failure::Ended(Ended::Race(race)) => SyncError::Race { node, site, race },
            Failure::Ended(Ended::Out(why)) => SyncError::Out { node, site, why },
            Failure::Ended(Ended::Elsewhere(ended)) => SyncError::Ended { node, site, ended },
        }
    }

    /// Releases the locks whose `Held` was dropped, and remembers to report them.
    fn release_dropped(&self, call: &mut MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        let mut dropped = self.dropped.borrow_mut();
        dropped
            .drain(..)
            .try_for_each(|(holding, site)| self.release(call, holding, site, "dropped"))
    }

    /// Releases what is still held though no `Held` will ever say so.
    pub fn release_forgotten(&self, call: &mut MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        let held = call.split().1.held();
        held.into_iter()
            .try_for_each(|(holding, site)| self.release(call, holding, site, "forgotten"))
    }

    fn release(
        &self,
        call: &mut MonitorCall<'_, State>,
        holding: Holding,
        site: CallSite,
        what_happened: &str,
    ) -> Result<(), Box<Failure>> {
        self.local(call, Some(holding.release(site)))?;
        call.split().1.warn(format!(
            "{holding}, acquired on {} at {site}, was {what_happened} and not released",
            self.node.id
        ));
        Ok(())
    }
}

/// What the worker waited for, if it has come.
#[inline]
fn outcome(call: &mut MonitorCall<'_, State>) -> Option<Result<(), Box<Failure>>> {
    let state = call.split().1;
    state.take_outcome().then(|| match state.has_failed() {
        false => Ok(()),
        true => failure(state),
    })
}

/// How what the worker waited for has failed.
#[cold]
fn failure(state: &mut State) -> Result<(), Box<Failure>> {
    let refused = state.take_refused().map(Failure::Refused);
    let ended = state.ended().cloned().map(Failure::Ended);
    ended
        .or(refused)
        .map_or(Ok(()), |failure| Err(Box::new(failure)))
}

/// A wait looks for a cycle at least this often, once it has become patient.
pub(crate) const LONGEST_PATIENCE: Duration = Duration::from_secs(60);
/// A node does not look for a cycle more often than this.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_micros(1);
