//! A node with its parts: who takes which messages, and how threads wait for the parts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use dhole_model::{Counters, NodeId, Notify};
use dhole_net::{Envelope, Outbox, Receiver, Wake};
use dhole_protocol::{AbortReason, DeadlockProbe, Frame, Message};

use crate::by_time::is_woken;
use crate::describe::how;
use crate::ended::Ended;
use crate::machine::{Machine, Receivers, Woken};
use crate::node::Node;
use crate::parts::{
    NodeParts, PartsLink, PartsOutbox, PartsStep, PartsWait, PartsWaitError, PartsWaiter, Sender,
};
use crate::sync_error::RunEnded;
use crate::waits::Awaited;

/// A node, and what it has beside its objects.
pub(crate) struct Router<'a> {
    pub machine: &'a dyn Machine,
    pub node: Node,
    pub parts: Option<Box<dyn NodeParts>>,
    pub takers: Takers,
}

impl Router<'_> {
    /// Takes a message for a part, without the node lock. `None` where it is none.
    fn take(
        &self,
        parts: &dyn NodeParts,
        from: NodeId,
        (part, message, payload): (u8, &[u8], &[u8]),
        out: &mut Outbox<Message>,
    ) -> Option<Wake> {
        let mut step = PartsOutbox::new(sender(&self.node, self.machine), std::mem::take(out));
        let taken = parts.deliver(from, part, message, payload, &mut step);
        let wakes = step.wakes_worker;
        *out = step.end();
        let taken = taken?;
        self.node.part_counters.was_taken();
        match taken {
            Ok(()) if wakes => Some(Wake::Yes),
            Ok(()) => Some(Wake::No),
            Err(cause) => {
                tell_launcher(self.machine, &cause.to_string());
                let mut guard = self.node.monitor.lock();
                let state = guard.split().1;
                state.abort(AbortReason::Failed(cause.to_string().into()), out);
                state.end(Ended::Broken(cause));
                drop(guard);
                parts.ended();
                Some(Wake::Yes)
            }
        }
    }
}

impl Router<'_> {
    /// The threads of the node add their edges to a probe, before the protocol does. One that has
    /// come back to the thread that asks ends here.
    fn visited_by(
        &self,
        parts: &dyn NodeParts,
        probe: &mut DeadlockProbe,
        out: &mut Outbox<Message>,
    ) -> Option<Wake> {
        if !probe.edges.is_over {
            parts.answers(probe);
            // After the waits: what is counted too late counts as under way.
            let (sent, taken) = self.node.part_counters.traffic();
            probe.edges.adds_traffic(sent, taken);
            return None;
        }
        let asker = probe.edges.asker;
        asker.raw_thread()?;
        let mut step = PartsOutbox::new(sender(&self.node, self.machine), std::mem::take(out));
        if let Some(waits) = probe.found() {
            parts.told(&asker, waits, &mut step);
        }
        let wakes = step.wakes_worker;
        *out = step.end();
        Some(if wakes { Wake::Yes } else { Wake::No })
    }
}

/// The node, as its parts send.
fn sender<'a>(node: &'a Node, machine: &dyn Machine) -> Sender<'a> {
    Sender {
        node: node.id,
        pool: &node.pool,
        counters: &node.part_counters,
        sizes: machine.sizes(),
    }
}

/// The node here fails: the launcher of its process hears that before the other nodes do.
fn tell_launcher(machine: &dyn Machine, words: &str) {
    if let Some(multiprocess) = machine.multiprocess() {
        multiprocess.failed(words);
    }
}

impl Receiver<Message> for Router<'_> {
    fn deliver(&self, mut envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        let Some(parts) = &self.parts else {
            return self.node.deliver(envelope, out);
        };
        if let Message::Probe(probe) = &mut envelope.body
            && let Some(wake) = self.visited_by(&**parts, probe, out)
        {
            return wake;
        }
        if let Message::Part(frame) = &envelope.body {
            let came = (frame.part(), frame.bytes(), &*envelope.payload);
            let wake = self.take(&**parts, envelope.from, came, out);
            self.node.pool.give_back(envelope.payload);
            return wake.unwrap_or(Wake::No);
        }
        let ends = matches!(envelope.body, Message::Abort { .. });
        let _taking = self.takers.begin();
        let wake = self.node.deliver(envelope, out);
        if ends || wake == Wake::Yes && self.node.has_ended_early() {
            parts.ended();
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
        let Some(parts) = &self.parts else {
            return self
                .node
                .deliver_bytes(from, message, payload, out, at_once);
        };
        if let Some((part, message)) = Frame::split(message) {
            return self.take(&**parts, from, (part, message, payload), out);
        }
        let _taking = self.takers.begin();
        let wake = self
            .node
            .deliver_bytes(from, message, payload, out, at_once);
        if wake == Some(Wake::Yes) && self.node.has_ended_early() {
            parts.ended();
        }
        wake
    }

    fn describe(&self, quiet_for: Duration) -> Option<String> {
        let described = self.node.describe(quiet_for)?;
        Some(match &self.parts {
            Some(parts) => format!("{described}{}", parts.describe()),
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

/// What the steps of a thread have said.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// It has faulted, to read and to write.
    faulted: [bool; 2],
    /// What it has waited for, and since when, if that was before.
    waits_for: Option<PartsWait>,
    since_ns: Option<u64>,
}

/// How the threads of a node wait for its parts.
pub(crate) struct NodeLink<'a> {
    pub node: &'a Node,
    pub parts: &'a dyn NodeParts,
    pub takers: &'a Takers,
    pub machine: &'a dyn Machine,
    pub receivers: &'a Receivers<'a>,
    /// How long a thread waits before it looks whether the run has ended.
    pub patience: Duration,
}

impl NodeLink<'_> {
    /// Whether the worker computes. One that takes a message does not, whatever it did before.
    fn computes(&self) -> bool {
        self.node.monitor.computes() && !self.takers.takes()
    }

    fn ended(&self) -> Option<PartsWaitError> {
        if !self.node.has_ended_early() {
            return None;
        }
        let mut guard = self.node.monitor.lock();
        let ended = guard.split().1.ended().map(how);
        ended.map(PartsWaitError::Ended)
    }

    /// Takes a step, and sends what it wants sent.
    fn take_step(
        &self,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
        is_worker: bool,
        seen: &mut Seen,
    ) -> Stepped {
        let id = self.node.id;
        let mut sent = PartsOutbox::new(sender(self.node, self.machine), Outbox::default());
        sent.now_ns = self.machine.now(id);
        sent.patience_ns = self.patience.as_nanos() as u64;
        let done = step(&mut sent);
        seen.faulted[0] |= sent.read_faults > 0;
        seen.faulted[1] |= sent.write_faults > 0;
        seen.waits_for = sent.waits_for.or(seen.waits_for);
        seen.since_ns = sent.since_ns.or(seen.since_ns);
        let again = sent.again_after.unwrap_or(self.patience);
        let stepped = match done {
            PartsStep::Waits => Stepped::Waits(again.min(self.patience)),
            PartsStep::Over if sent.ends_wait => Stepped::EndsWait,
            PartsStep::Over => Stepped::Over,
        };
        let wakes_worker = sent.wakes_worker;
        let mut out = sent.end();
        // The machine owes notifications by its worker alone.
        let notify = match done {
            PartsStep::Waits if is_worker => Notify::Lazy,
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
    fn counts(&self, began_ns: u64, seen: Seen, is_worker: bool) {
        let began_ns = seen.since_ns.unwrap_or(began_ns);
        let took_ns = self.machine.now(self.node.id).saturating_sub(began_ns);
        let counters = &self.node.part_counters;
        let counted = match seen.faulted {
            [_, true] => &counters.write_ns,
            [true, false] => &counters.read_ns,
            [false, false] => &counters.call_ns,
        };
        counted.add(took_ns);
        if let Some(PartsWait { cause, what, site }) = seen.waits_for {
            let awaited = Awaited::operation(cause, what);
            self.node
                .part_waits
                .add(awaited, site, [began_ns, took_ns], is_worker);
        }
    }

    fn goes_on(
        &self,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
    ) -> Result<(), PartsWaitError> {
        let id = self.node.id;
        let began_ns = self.machine.now(id);
        let (mut seen, mut woken) = (Seen::default(), Woken::ByWake);
        loop {
            let stepped = self.take_step(step, true, &mut seen);
            let Stepped::Waits(at_most) = stepped else {
                if (stepped, woken) == (Stepped::Over, Woken::ByTime) {
                    self.found_late(is_woken(self.machine, self.receivers, id));
                }
                self.counts(began_ns, seen, true);
                return Ok(());
            };
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            woken = self.machine.wait_polling(self.receivers, id, at_most);
        }
    }
}

impl PartsLink for NodeLink<'_> {
    fn wait(
        &self,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
    ) -> Result<(), PartsWaitError> {
        if !self.computes() {
            return Err(PartsWaitError::InCall);
        }
        self.machine.enter(self.node.id);
        let waited = self.goes_on(step);
        self.machine.leave(self.node.id);
        waited
    }

    fn wait_beside(
        &self,
        waiter: &PartsWaiter,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
    ) -> Result<(), PartsWaitError> {
        if !self.machine.has_threads() {
            return Err(PartsWaitError::OneThread);
        }
        if self.takers.takes() {
            return Err(PartsWaitError::InCall);
        }
        let began_ns = self.machine.now(self.node.id);
        let (mut saw, mut waited, mut late) = (Seen::default(), false, None);
        loop {
            let seen = waiter.woken();
            let stepped = self.take_step(step, false, &mut saw);
            let Stepped::Waits(at_most) = stepped else {
                if let (Stepped::Over, Some(before)) = (stepped, late) {
                    self.found_late(waiter.sleep(before, self.machine.owed_for()));
                }
                if waited || saw.faulted != [false; 2] || saw.since_ns.is_some() {
                    self.counts(began_ns, saw, false);
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

    fn look(&self, is_beside: bool) -> Result<(), PartsWaitError> {
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
        self.parts.ended();
    }

    fn exits(&self, code: u8) {
        if let Some(multiprocess) = self.machine.multiprocess() {
            multiprocess.exits(code);
        }
    }
}
