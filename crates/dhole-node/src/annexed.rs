//! A node with its annex: who takes which messages, and how threads wait for the annex.

use std::time::Duration;

use dhole_heap::Presence;
use dhole_model::{NodeId, Notify};
use dhole_net::{Envelope, Outbox, Receiver, Wake};
use dhole_protocol::{AbortReason, Message};

use crate::annex::{Annex, AnnexLink, AnnexOutbox, AnnexStep, AnnexWaitError};
use crate::describe::how;
use crate::ended::Ended;
use crate::machine::{Machine, Receivers};
use crate::node::{Node, State};

/// How long a thread that faults may find the node lock taken. Others have it for a moment only, so
/// after that it is the thread's own.
const LOCKED_AT_MOST_NS: u64 = 1_000_000_000;

/// A node, and what it has beside its objects.
pub(crate) struct Annexed {
    pub node: Node,
    pub annex: Option<Box<dyn Annex>>,
}

impl State {
    /// Sends what an annex wants sent, and counts what happened.
    fn takes_outbox(&mut self, sent: AnnexOutbox<'_>, out: &mut Outbox<Message>) {
        let all = &mut self.counting.all;
        all.raw_read_faults += sent.read_faults;
        all.raw_write_faults += sent.write_faults;
        out.work().faults += sent.work.faults;
        out.work().protections += sent.work.protections;
        for (to, message, payload) in sent.messages {
            self.send(to, Message::Memory(message), payload, out);
        }
    }
}

impl Annexed {
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
        let Message::Memory(message) = body else {
            return Wake::No;
        };
        let mut sent = AnnexOutbox::new(&self.node.pool);
        let taken = annex.deliver(from, message, &payload, &mut sent);
        self.node.pool.give_back(payload);
        let mut guard = self.node.monitor.lock();
        let state = guard.split().1;
        match taken {
            Ok(wakes) => {
                state.takes_outbox(sent, out);
                if wakes { Wake::Yes } else { Wake::No }
            }
            Err(cause) => {
                state.abort(AbortReason::Failed(cause.to_string().into()), out);
                state.end(Ended::Broken(cause));
                Wake::Yes
            }
        }
    }
}

impl Receiver<Message> for Annexed {
    fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        match &self.annex {
            Some(annex) if matches!(envelope.body, Message::Memory(_)) => {
                self.take(&**annex, envelope, out)
            }
            _ => self.node.deliver(envelope, out),
        }
    }

    fn deliver_bytes(
        &self,
        from: NodeId,
        bytes: &[u8],
        out: &mut Outbox<Message>,
        at_once: &mut dyn FnMut(NodeId, [&[u8]; 2], Notify) -> bool,
    ) -> Option<Wake> {
        self.node.deliver_bytes(from, bytes, out, at_once)
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

/// How the threads of a node wait for its annex.
pub(crate) struct NodeLink<'a> {
    pub node: &'a Node,
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

    fn goes_on(
        &self,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
    ) -> Result<(), AnnexWaitError> {
        let id = self.node.id;
        let mut out = Outbox::default();
        loop {
            let mut sent = AnnexOutbox::new(&self.node.pool);
            let done = step(&mut sent);
            self.node
                .monitor
                .lock()
                .split()
                .1
                .takes_outbox(sent, &mut out);
            let notify = match done {
                AnnexStep::Over => Notify::Now,
                AnnexStep::Waits => Notify::Lazy,
            };
            if !out.is_empty() || self.machine.charges_work() && out.has_work() {
                self.machine.send(self.receivers, id, &mut out, notify);
            }
            if done == AnnexStep::Over {
                return Ok(());
            }
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            self.machine.wait_polling(self.receivers, id, self.patience);
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
}
