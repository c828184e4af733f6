//! Migration and change of representation, ordered with the operations (Orca, section 2.3.2).
//!
//! What is to change is multicast. Between that and the moment when the state has come to where it
//! is needed, the object is *coming* or *spreading*: whatever is ordered meanwhile is deferred, in
//! order, and done after; calls of the own worker are postponed. The node that has the only copy
//! sends it, or multicasts it, with the calls that wait for their guards.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId, VectorTime};

use super::bytes::Bytes;
use super::call::{CallId, Outcome, Refusal, Saved, Waiting};
use super::entry::{Deferred, Entry, Place};
use super::host::Host;
use super::message::{ObjectsMessage, Ordered, Strategy};
use super::{Objects, ObjectsCommand, Out};

impl Objects {
    /// The worker says how an object is to be kept.
    pub(super) fn ask_change(&mut self, call: u64, object: ObjectId, to: Strategy, out: Out<'_>) {
        let (by, creator) = (self.own(call), object.creator(self.nodes));
        let known = self.place(object).is_some_and(|it| it != Place::Unknown);
        if !known && creator == self.me {
            let outcome = Err(self.why_not(object));
            return out.push(ObjectsCommand::Finished { call, outcome });
        }
        if !known {
            self.awaits(by, creator, None);
        }
        let change = Ordered::Change {
            by,
            object,
            to,
            asks: !known,
        };
        out.push(ObjectsCommand::Broadcast(Arc::new(change)));
    }

    pub(super) fn change(
        &mut self,
        sequence: u64,
        (by, asks): (CallId, bool),
        (object, to): (ObjectId, Strategy),
        body: &Arc<Ordered>,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let me = self.me;
        if let why @ Refusal::Freed(_) = self.why_not(object) {
            return self.over(by, Err(why), out);
        }
        let creator = object.creator(self.nodes);
        let entry = self.table.entry(object).or_insert_with(Entry::unknown);
        let nowhere = entry.place == Place::Unknown && creator == me;
        let place = match entry.place {
            // The others take it to be here: what they are sent says that it is nowhere.
            Place::Unknown if nowhere => Place::Here,
            // Nobody told this node where an object is that has one copy; its creator knows.
            Place::Unknown => Place::At(creator),
            place => place,
        };
        let mut done = match nowhere {
            true => Err(Refusal::Unknown),
            false => Ok(Bytes::default()),
        };
        match (place, to) {
            (Place::Coming | Place::Spreading(_), _) => {
                let body = Deferred::Ordered(Arc::clone(body));
                entry.deferred.push_back((sequence, body));
                return;
            }
            (Place::Lost(node), _) => done = Err(Refusal::Lost(node)),
            (_, Strategy::On(node)) if self.gone.get(&node).is_some_and(|at| *at < sequence) => {
                done = Err(Refusal::NoNode(node));
            }
            (Place::Replicated, Strategy::Replicated) => {}
            (Place::Replicated, Strategy::On(node)) => {
                entry.since = sequence;
                entry.place = if node == me {
                    Place::Here
                } else {
                    Place::At(node)
                };
                self.leave_replica(object, node, host, out);
            }
            (Place::Here | Place::Monitored, Strategy::On(node)) if node == me => {}
            (Place::Here | Place::Monitored, Strategy::On(node)) => {
                (entry.place, entry.since) = (Place::At(node), sequence);
                self.leave_clerk(object, host, out);
                self.migrate(object, node, sequence, host, out);
            }
            (Place::Here | Place::Monitored, Strategy::Replicated) => {
                (entry.place, entry.since) = (Place::Spreading(me), sequence);
                self.leave_clerk(object, host, out);
                self.spread(object, host, out);
            }
            (Place::At(from), Strategy::On(node)) if from == node => {
                if entry.place == Place::Unknown {
                    (entry.place, entry.since) = (place, sequence);
                }
            }
            (Place::At(from), Strategy::On(node)) => {
                entry.since = sequence;
                entry.comes_from = Some(from);
                entry.place = if node == me {
                    Place::Coming
                } else {
                    Place::At(node)
                };
            }
            (Place::At(from), Strategy::Replicated) => {
                entry.guessed = entry.place == Place::Unknown;
                (entry.place, entry.since) = (Place::Spreading(from), sequence);
            }
            // No sound node says so, and none takes it: see `Ordered::check`.
            (_, Strategy::In(_)) | (Place::Unknown, _) => {}
        }
        match asks {
            true if creator == me => {
                self.reply(by, done.as_deref().map_err(Refusal::clone), out);
            }
            true => {}
            false => self.over(by, done, out),
        }
        // What was ordered long ago may be done only now.
        self.lose_copy(object);
        self.take_postponed(object, host, out);
        self.withdraw_again(object, host, out);
    }

    /// A replicated object goes on as the only copy on `node`: the calls that wait do so there.
    fn leave_replica(&mut self, object: ObjectId, node: NodeId, host: &mut dyn Host, out: Out<'_>) {
        let me = self.me;
        let Some(entry) = self.table.get_mut(&object) else {
            return;
        };
        if node == me {
            // The reads of other workers wait with their replicas, and come as requests.
            return;
        }
        let blocked = std::mem::take(&mut entry.blocked);
        host.discard(object);
        for Waiting { call, .. } in blocked {
            if call.id.node != me {
                continue;
            }
            match call.writes {
                true => self.awaits(call.id, node, None),
                false => self.call(call.by_ref(), host, out),
            }
        }
    }

    /// `node` executes a call of this node's worker without having been asked.
    pub(super) fn awaits(&mut self, by: CallId, node: NodeId, time: Option<VectorTime>) {
        if by.node == self.me {
            self.pending.insert_once(node, by.number, time);
        }
    }

    fn taken(&mut self, object: ObjectId, host: &mut dyn Host) -> Saved {
        let saved = host.save(object);
        host.discard(object);
        saved
    }

    fn take_blocked(&mut self, object: ObjectId) -> Vec<Waiting> {
        let entry = self.table.get_mut(&object);
        let blocked = entry.map(|entry| std::mem::take(&mut entry.blocked));
        blocked.unwrap_or_default().into()
    }

    /// Sends the only copy to another node.
    fn migrate(
        &mut self,
        object: ObjectId,
        to: NodeId,
        since: u64,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        self.hear_own(host);
        let blocked = self.take_blocked(object);
        for Waiting { call, time } in &blocked {
            if call.id.node == self.me {
                self.awaits(call.id, to, time.clone());
            }
        }
        let state = self.taken(object, host);
        let news = self.notices.since(None);
        let message = ObjectsMessage::Migrate {
            object,
            since,
            delivered: self.delivered,
            state,
            blocked,
            news,
        };
        out.push(ObjectsCommand::Send { to, message });
    }

    /// Multicasts the state of the only copy.
    fn spread(&mut self, object: ObjectId, host: &mut dyn Host, out: Out<'_>) {
        self.hear_own(host);
        let blocked = self.take_blocked(object);
        let state = self.taken(object, host);
        let install = Ordered::Install {
            object,
            state,
            blocked,
            news: self.notices.since(Some(&self.told)),
        };
        out.push(ObjectsCommand::Broadcast(Arc::new(install)));
    }

    /// Whether the only copy of an object is to come, since this ordered message.
    pub(super) fn is_coming(&self, object: ObjectId, since: u64) -> bool {
        let entry = self.table.get(&object);
        entry.is_some_and(|entry| entry.place == Place::Coming && entry.since == since)
    }

    /// The only copy has come.
    pub(super) fn arrived(
        &mut self,
        object: ObjectId,
        state: Saved,
        blocked: Vec<Waiting>,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let gone = &self.gone;
        let entry = self.table.entry(object).or_insert_with(Entry::unknown);
        (entry.place, entry.comes_from) = (Place::Here, None);
        let waits = |waiting: &Waiting| !gone.contains_key(&waiting.call.id.node);
        entry.blocked = blocked.into_iter().filter(waits).collect();
        let requests = std::mem::take(&mut entry.requests);
        if let Err(refusal) = restore(object, &state, host) {
            host.spoil(object, refusal);
            self.retry(object, host, out);
        }
        for call in requests {
            self.execute(call.by_ref(), host, out);
        }
        self.take_deferred(object, host, out);
    }

    /// Every node has a replica from here on.
    pub(super) fn install(
        &mut self,
        sequence: u64,
        object: ObjectId,
        state: &Saved,
        blocked: &[Waiting],
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let me = self.me;
        let entry = self.table.entry(object).or_insert_with(Entry::unknown);
        (entry.place, entry.since) = (Place::Replicated, sequence);
        // What others only read is tried by them, on their replicas.
        let gone = &self.gone;
        let mine = |waiting: &&Waiting| {
            let by = waiting.call.id.node;
            (waiting.call.writes || by == me) && !gone.contains_key(&by)
        };
        entry.blocked = blocked.iter().filter(mine).cloned().collect();
        entry.digests.clear();
        for Waiting { call, .. } in blocked {
            if call.id.node == me {
                self.pending.forget(call.id.number);
                // The word that its guard was false may come later, and finds nothing pending then.
                if call.started {
                    out.push(ObjectsCommand::Blocked(call.id.number));
                }
            }
        }
        // What becomes of it is the same everywhere.
        if let Err(refusal) = restore(object, state, host) {
            host.spoil(object, refusal.clone());
            for Waiting { call, .. } in self.take_blocked(object) {
                self.over(call.id, Err(refusal.clone()), out);
            }
        }
        self.take_deferred(object, host, out);
    }

    /// Does what was ordered while the state was on its way, and what the worker called.
    fn take_deferred(&mut self, object: ObjectId, host: &mut dyn Host, out: Out<'_>) {
        loop {
            let Some(entry) = self.table.get_mut(&object) else {
                return;
            };
            if matches!(entry.place, Place::Coming | Place::Spreading(_)) {
                return;
            }
            match entry.deferred.pop_front() {
                Some((sequence, Deferred::Ordered(body))) => {
                    self.ordered(sequence, &body, host, out);
                }
                Some((_, Deferred::Withdraw(by))) => self.withdraw(by, object, host, out),
                Some((sequence, Deferred::Gone(nodes))) => {
                    self.hear_of_loss(sequence, object, &nodes, host, out);
                }
                None => break,
            }
        }
        self.take_postponed(object, host, out);
        self.withdraw_again(object, host, out);
    }

    /// Makes the calls that had to wait until the object was somewhere.
    pub(super) fn take_postponed(&mut self, object: ObjectId, host: &mut dyn Host, out: Out<'_>) {
        let Some(entry) = self.table.get_mut(&object) else {
            return;
        };
        for call in std::mem::take(&mut entry.postponed) {
            self.call(call.by_ref(), host, out);
        }
    }

    /// The outcome of a call about an object that is nowhere.
    pub(super) fn nowhere() -> Outcome {
        Err(Refusal::Unknown)
    }
}

/// Makes a copy of what another node saved.
fn restore(object: ObjectId, state: &Saved, host: &mut dyn Host) -> Result<(), Refusal> {
    let (kind, state) = state.as_ref().map_err(Refusal::clone)?;
    host.create(object, *kind, state).map(drop)
}
