//! A node with its annex: who takes which messages, and how threads wait for the annex.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use dhole_heap::Presence;
use dhole_model::{Counters, NodeId, Notify};
use dhole_net::{Envelope, Outbox, Receiver, Wake};
use dhole_protocol::{AbortReason, Message};

use crate::annex::{Annex, AnnexLink, AnnexOutbox, AnnexStep, AnnexWaitError, AnnexWaiter};
use crate::by_time::{OWED_FOR, is_woken};
use crate::describe::how;
use crate::ended::Ended;
use crate::machine::{Machine, Receivers, Woken};
use crate::node::{Node, State};
use crate::sync_error::RunEnded;

/// How long a thread that faults may find the node lock taken. Others have it for a moment only, so
/// after that it is the thread's own.
const LOCKED_AT_MOST_NS: u64 = 1_000_000_000;

/// A node, and what it has beside its objects.
pub(crate) struct Annexed<'a> {
    pub machine: &'a dyn Machine,
    pub node: Node,
    pub annex: Option<Box<dyn Annex>>,
    pub takers: Takers,
}

impl State {
    /// Sends what an annex wants sent, and counts what happened.
    fn takes_outbox(&mut self, sent: AnnexOutbox<'_>, out: &mut Outbox<Message>) {
        let all = &mut self.counting.all;
        all.raw_read_faults += sent.read_faults;
        all.raw_write_faults += sent.write_faults;
        all.competing_requests += sent.competing_requests;
        all.dropped_prefetches += sent.dropped_prefetches;
        all.raw_flushes += sent.flushes;
        let work = out.work();
        work.faults += sent.work.faults;
        work.protections += sent.work.protections;
        work.translations += sent.work.translations;
        work.wakes += sent.work.wakes;
        work.twin_bytes += sent.work.twin_bytes;
        work.compared_bytes += sent.work.compared_bytes;
        work.made_bytes += sent.work.made_bytes;
        work.applied_bytes += sent.work.applied_bytes;
        for (to, message, payload) in sent.messages {
            self.send(to, message, payload, out);
        }
    }
}

impl Annexed<'_> {
    /// Takes a message for the annex, without the node lock.
    fn take(
        &self,
        annex: &dyn Annex,
        envelope: Envelope<Message>,
        out: &mut Outbox<Message>,
    ) -> Wake {
        let Envelope {
            from,
            body,
            payload,
            ..
        } = envelope;
        let mut sent = AnnexOutbox::new(&self.node.pool);
        let taken = match body {
            Message::Memory(message) => annex.deliver(from, message, &payload, &mut sent),
            Message::Threads(message) => annex.deliver_threads(from, *message, &mut sent),
            _ => return Wake::No,
        };
        self.node.pool.give_back(payload);
        let mut guard = self.node.monitor.lock();
        let state = guard.split().1;
        match taken {
            Ok(()) => {
                let wakes = sent.wakes_worker;
                state.takes_outbox(sent, out);
                if wakes { Wake::Yes } else { Wake::No }
            }
            Err(cause) => {
                tell_launcher(self.machine, &cause.to_string());
                state.abort(AbortReason::Failed(cause.to_string().into()), out);
                state.end(Ended::Broken(cause));
                drop(guard);
                annex.ended();
                Wake::Yes
            }
        }
    }
}

/// The node here fails: the launcher of its process hears that before the other nodes do.
fn tell_launcher(machine: &dyn Machine, words: &str) {
    if let Some(multiprocess) = machine.multiprocess() {
        multiprocess.failed(words);
    }
}

impl Annexed<'_> {
    /// Whether the run has ended for this node, by whatever came: threads beside its worker wait no
    /// longer then.
    fn has_ended(&self) -> bool {
        self.node.monitor.lock().split().1.ended().is_some()
    }
}

impl Receiver<Message> for Annexed<'_> {
    fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        let Some(annex) = &self.annex else {
            return self.node.deliver(envelope, out);
        };
        if matches!(envelope.body, Message::Memory(_) | Message::Threads(_)) {
            return self.take(&**annex, envelope, out);
        }
        let ends = matches!(envelope.body, Message::Abort { .. });
        let _taking = self.takers.begin();
        let wake = self.node.deliver(envelope, out);
        if ends || wake == Wake::Yes && self.has_ended() {
            annex.ended();
        }
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
        let Some(annex) = &self.annex else {
            return self
                .node
                .deliver_bytes(from, message, payload, out, at_once);
        };
        let _taking = self.takers.begin();
        let wake = self
            .node
            .deliver_bytes(from, message, payload, out, at_once);
        if wake == Some(Wake::Yes) && self.has_ended() {
            annex.ended();
        }
        wake
    }

    fn describe(&self, quiet_for: Duration) -> Option<String> {
        let described = self.node.describe(quiet_for)?;
        Some(match &self.annex {
            Some(annex) => format!("{described}{}", annex.describe()),
            None => described,
        })
    }

    fn calls(&self) -> Option<u64> {
        self.node.calls()
    }
}

/// The threads that take a message of the node, and may execute an operation of the program's.
#[derive(Default)]
pub(crate) struct Takers(Mutex<Vec<ThreadId>>);

impl Takers {
    fn all(&self) -> MutexGuard<'_, Vec<ThreadId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Taking<'_> {
        let thread = std::thread::current().id();
        self.all().push(thread);
        Taking(self, thread)
    }

    /// Whether this thread does.
    fn takes(&self) -> bool {
        self.all().contains(&std::thread::current().id())
    }
}

/// A thread takes a message until this is dropped, by unwinding too.
struct Taking<'a>(&'a Takers, ThreadId);

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        let mut all = self.0.all();
        if let Some(place) = all.iter().rposition(|thread| *thread == self.1) {
            all.swap_remove(place);
        }
    }
}

/// What a step of a thread that waits came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stepped {
    /// The thread waits for so long at most.
    Waits(Duration),
    /// What it waited for has come.
    Over,
    /// The step itself ended the wait.
    EndsWait,
}

/// How the threads of a node wait for its annex.
pub(crate) struct NodeLink<'a> {
    pub node: &'a Node,
    pub annex: &'a dyn Annex,
    pub takers: &'a Takers,
    pub machine: &'a dyn Machine,
    pub receivers: &'a Receivers<'a>,
    /// How long a thread waits before it looks whether the run has ended.
    pub patience: Duration,
}

impl NodeLink<'_> {
    /// Whether the worker computes. Where the lock is this thread's own, it does not.
    fn computes(&self) -> bool {
        let id = self.node.id;
        let mut began = None;
        loop {
            if let Some(guard) = self.node.monitor.try_lock() {
                return guard.presence() == Presence::Computing;
            }
            // Where moments count, nobody else runs while this thread does.
            if self.machine.counts_moments() {
                return false;
            }
            let now = self.machine.now(id);
            if now.saturating_sub(*began.get_or_insert(now)) > LOCKED_AT_MOST_NS {
                return false;
            }
            std::hint::spin_loop();
        }
    }

    fn ended(&self) -> Option<AnnexWaitError> {
        let mut guard = self.node.monitor.lock();
        let ended = guard.split().1.ended().map(how);
        ended.map(AnnexWaitError::Ended)
    }

    /// Takes a step, and sends what it wants sent.
    fn take_step(
        &self,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
        is_worker: bool,
        faulted: &mut [bool; 2],
    ) -> Stepped {
        let id = self.node.id;
        let mut out = Outbox::default();
        let mut sent = AnnexOutbox::new(&self.node.pool);
        sent.now_ns = self.machine.now(id);
        sent.patience_ns = self.patience.as_nanos() as u64;
        let done = step(&mut sent);
        faulted[0] |= sent.read_faults > 0;
        faulted[1] |= sent.write_faults > 0;
        let again = sent.again_after.unwrap_or(self.patience);
        let stepped = match done {
            AnnexStep::Waits => Stepped::Waits(again.min(self.patience)),
            AnnexStep::Over if sent.ends_wait => Stepped::EndsWait,
            AnnexStep::Over => Stepped::Over,
        };
        if sent.is_empty() {
            return stepped;
        }
        let wakes_worker = sent.wakes_worker;
        let mut guard = self.node.monitor.lock();
        guard.split().1.takes_outbox(sent, &mut out);
        drop(guard);
        // The machine owes notifications by its worker alone.
        let notify = match done {
            AnnexStep::Waits if is_worker => Notify::Lazy,
            _ => Notify::Now,
        };
        if !out.is_empty() || self.machine.charges_work() && out.has_work() {
            self.machine.send(self.receivers, id, &mut out, notify);
        }
        if wakes_worker && !is_worker {
            self.machine.wake_worker(id);
        }
        stepped
    }

    /// A wait is over, as a thread found when the time of it was over, if it was not `woken`.
    fn found_late(&self, woken: bool) {
        if !woken {
            self.node.monitor.lock().split().1.ended_by_time();
        }
    }

    /// Counts for how long a thread was here, and for what.
    fn counts(&self, began_ns: u64, [reads, writes]: [bool; 2]) {
        let took_ns = self.machine.now(self.node.id).saturating_sub(began_ns);
        let mut guard = self.node.monitor.lock();
        let all = &mut guard.split().1.counting.all;
        let counted = match (reads, writes) {
            (_, true) => &mut all.raw_write_ns,
            (true, false) => &mut all.raw_read_ns,
            (false, false) => &mut all.raw_call_ns,
        };
        *counted += took_ns;
    }

    fn goes_on(
        &self,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
    ) -> Result<(), AnnexWaitError> {
        let id = self.node.id;
        let began_ns = self.machine.now(id);
        let (mut faulted, mut woken) = ([false; 2], Woken::ByWake);
        loop {
            let stepped = self.take_step(step, true, &mut faulted);
            let Stepped::Waits(at_most) = stepped else {
                if (stepped, woken) == (Stepped::Over, Woken::ByTime) {
                    self.found_late(is_woken(self.machine, self.receivers, id));
                }
                self.counts(began_ns, faulted);
                return Ok(());
            };
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            woken = self.machine.wait_polling(self.receivers, id, at_most);
        }
    }
}

impl AnnexLink for NodeLink<'_> {
    fn wait(
        &self,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
    ) -> Result<(), AnnexWaitError> {
        if !self.computes() {
            return Err(AnnexWaitError::InCall);
        }
        self.machine.enter(self.node.id);
        let waited = self.goes_on(step);
        self.machine.leave(self.node.id);
        waited
    }

    fn wait_beside(
        &self,
        waiter: &AnnexWaiter,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
    ) -> Result<(), AnnexWaitError> {
        if !self.machine.has_threads() {
            return Err(AnnexWaitError::OneThread);
        }
        if self.takers.takes() {
            return Err(AnnexWaitError::InCall);
        }
        let began_ns = self.machine.now(self.node.id);
        let (mut faulted, mut waited, mut late) = ([false; 2], false, None);
        loop {
            let seen = waiter.woken();
            let stepped = self.take_step(step, false, &mut faulted);
            let Stepped::Waits(at_most) = stepped else {
                if let (Stepped::Over, Some(before)) = (stepped, late) {
                    self.found_late(waiter.sleep(before, OWED_FOR));
                }
                if waited || faulted != [false; 2] {
                    self.counts(began_ns, faulted);
                }
                return Ok(());
            };
            waited = true;
            let woken = || waiter.woken() != seen;
            if self.machine.help(self.receivers, self.node.id, &woken) {
                late = None;
                continue;
            }
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            late = (!waiter.sleep(seen, at_most)).then_some(seen);
        }
    }

    fn has_threads(&self) -> bool {
        self.machine.has_threads()
    }

    fn moves_worker(&self) -> bool {
        self.machine.moves_worker()
    }

    fn look(&self, is_beside: bool) -> Result<(), AnnexWaitError> {
        let (machine, id) = (self.machine, self.node.id);
        if !is_beside && self.computes() {
            machine.enter(id);
            machine.look(self.receivers, id);
            machine.leave(id);
        } else if is_beside && !self.takers.takes() {
            machine.look(self.receivers, id);
        }
        self.ended().map_or(Ok(()), Err)
    }

    fn counters(&self) -> Counters {
        self.node.counters()
    }

    fn fail(&self, words: &str) {
        let (me, mut out) = (self.node.id, Outbox::default());
        let mut guard = self.node.monitor.lock();
        let state = guard.split().1;
        if state.ended().is_none() {
            tell_launcher(self.machine, words);
            let reason = AbortReason::Failed(words.into());
            state.abort(reason.clone(), &mut out);
            let on = me;
            state.end(Ended::Elsewhere(RunEnded { on, reason }));
        }
        drop(guard);
        if self.machine.has_threads() {
            self.machine.send(self.receivers, me, &mut out, Notify::Now);
            self.machine.wake_worker(me);
        }
        self.annex.ended();
    }

    fn exits(&self, code: u8) {
        if let Some(multiprocess) = self.machine.multiprocess() {
            multiprocess.exits(code);
        }
    }
}
