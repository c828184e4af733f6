//! What was multicast, as it is delivered: at every node in the same order.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId};

use super::bytes::Bytes;
use super::call::{Call, CallId, Outcome, Refusal, Waiting};
use super::entry::{Deferred, Entry, Place};
use super::host::{Host, Tried};
use super::message::Ordered;
use super::rendezvous::Arrived;
use super::{Objects, ObjectsEffects, Out};

/// So many of the last ordered operations of an object are remembered with their digests.
const MOST_DIGESTS: usize = 64;

impl Objects {
    /// What no sound node multicasts, as all nodes find alike: they do nothing about it.
    pub(super) fn check_ordered(&self, from: NodeId, body: &Ordered) -> Result<(), &'static str> {
        let place = |object| self.place(object).unwrap_or(Place::Unknown);
        let by = match body {
            Ordered::Create { by, object, .. } => {
                let freed = self.freed.by(*object, self.nodes).is_some();
                let known = freed || place(*object) != Place::Unknown;
                let made = known || self.is_predefined(*object) || object.lock().is_some();
                if object.creator(self.nodes) != from || made {
                    return Err("an object that is another's to make, or made already");
                }
                by
            }
            Ordered::Install { object, .. } => {
                let entry = self.table.get(object);
                let told = entry.is_some_and(|entry| match entry.place {
                    Place::Spreading(source) => source == from || entry.guessed,
                    _ => false,
                });
                return match told {
                    true => Ok(()),
                    false => Err("the state of an object that is not its to tell"),
                };
            }
            Ordered::Operate { call, .. } => &call.id,
            Ordered::Placed { by, object, at } | Ordered::Constructed { by, object, at, .. } => {
                return match *at == from && object.creator(self.nodes) == by.node {
                    true => Ok(()),
                    false => Err("a place that is not its to tell"),
                };
            }
            Ordered::Change { object, .. } | Ordered::Free { object, .. }
                if self.is_predefined(*object) =>
            {
                return Err("an object that every node has, and none moves or frees");
            }
            Ordered::Change { by, .. } | Ordered::Free { by, .. } | Ordered::Compare { by, .. } => {
                by
            }
            Ordered::Meet { by, .. } | Ordered::Withdraw { by, .. } => by,
        };
        match by.node == from {
            true => Ok(()),
            false => Err("a call in another node's name"),
        }
    }

    pub(super) fn ordered(
        &mut self,
        sequence: u64,
        body: &Arc<Ordered>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        // Whoever multicasts next takes it for heard by all: so it is, also where the object is
        // not, and before anything newer.
        if let Some(news) = body.news() {
            self.told.merge(&news.time);
            self.notices.hear(news);
        }
        if let Ordered::Operate { call, .. } = &**body
            && (self.place(call.object) == Some(Place::Replicated)
                || self.begin_predefined(call.object, host))
        {
            self.acquire_due = true;
            self.operate(sequence, call, host, fx);
            return;
        }
        let out = fx.commands();
        match &**body {
            Ordered::Create {
                by,
                object,
                kind,
                state,
            } => {
                let mut created = host.create(*object, *kind, state);
                if let Some(refusal) = host.stays(*object) {
                    host.spoil(*object, refusal.clone());
                    created = Err(refusal);
                }
                if created.is_ok() {
                    self.hear_of_earlier_losses(*object, host);
                    let entry = self.table.entry(*object).or_insert_with(Entry::unknown);
                    (entry.place, entry.since) = (Place::Replicated, sequence);
                    self.remember(*object, sequence, u16::MAX, host);
                }
                self.over(*by, created, out);
                self.take_postponed(*object, host, out);
            }
            Ordered::Operate { call, .. }
                if !self.table.contains_key(&call.object)
                    && self.freed.by(call.object, self.nodes).is_some() =>
            {
                let why = self.why_not(call.object);
                self.over(call.id, Err(why), out);
            }
            Ordered::Operate { call, time, .. } => {
                let entry = self.table.entry(call.object).or_insert_with(Entry::unknown);
                match entry.place {
                    // Above.
                    Place::Replicated => {}
                    Place::Here | Place::Monitored => {
                        self.acquire_due = true;
                        let time = time.as_ref().filter(|_| call.id.node != self.me);
                        self.merge_seen(call.id.node, time);
                        self.requested_one(call.by_ref(), host, out);
                    }
                    Place::Coming | Place::Spreading(_) => {
                        let body = Deferred::Ordered(Arc::clone(body));
                        entry.deferred.push_back((sequence, body));
                    }
                    // Whoever has the copy answers.
                    Place::At(to) => {
                        let (by, time) = (call.id, time.clone());
                        self.awaits(by, to, time);
                    }
                    Place::Unknown => self.over(call.id, Err(Refusal::Unknown), out),
                    Place::Lost(node) => self.over(call.id, Err(Refusal::Lost(node)), out),
                }
                self.withdraw_once_placed(call, host, out);
            }
            Ordered::Change {
                by,
                object,
                to,
                asks,
            } => self.change(sequence, (*by, *asks), (*object, *to), body, host, out),
            Ordered::Install {
                object,
                state,
                blocked,
                ..
            } => {
                self.acquire_due = true;
                self.install(sequence, *object, state, blocked, host, out);
            }
            Ordered::Withdraw { by, object } => {
                let entry = self.table.get_mut(object);
                match entry.filter(|it| matches!(it.place, Place::Coming | Place::Spreading(_))) {
                    Some(entry) => {
                        let body = Deferred::Ordered(Arc::clone(body));
                        entry.deferred.push_back((sequence, body));
                    }
                    None => self.withdraw_in_order(*by, *object, host, out),
                }
            }
            Ordered::Free { by, object } => {
                self.free(sequence, (*by, *object), body, host, out);
            }
            Ordered::Compare { by, object } => {
                self.begin_predefined(*object, host);
                self.send_digests(*by, *object, host, out);
            }
            Ordered::Placed { by, object, at } => {
                self.placed(sequence, *by, (*object, *at), Bytes::default(), out);
            }
            Ordered::Constructed {
                by,
                object,
                at,
                comes_back,
            } => self.placed(sequence, *by, (*object, *at), comes_back.clone(), out),
            Ordered::Meet {
                by,
                place,
                site,
                value,
                news,
            } => {
                self.hear(news.clone());
                let arrived = Arrived {
                    by: *by,
                    place: *place,
                    site: *site,
                    value: value.clone(),
                };
                self.arrived.insert(by.node, arrived);
                self.go_if_all_met(out);
            }
        }
    }

    /// An operation that writes, on a replica.
    fn operate(
        &mut self,
        sequence: u64,
        call: &Call,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        let (executed, result) = self.apply(call.by_ref(), host);
        match executed.map(|done| done.then_some(&result[..])).transpose() {
            None => self.wait_on_replica(call, fx),
            Some(outcome) => {
                self.executed(sequence, call, outcome, host, fx);
                self.retry_replica(sequence, call.object, host, fx.commands());
            }
        }
        self.keep_room(result);
    }

    /// An operation waits with a replica, for its guard is false.
    fn wait_on_replica(&mut self, call: &Call, fx: &mut impl ObjectsEffects) {
        let most = self.most_calls();
        let Some(entry) = self.table.get_mut(&call.object) else {
            return;
        };
        if entry.waiting(true) >= most {
            return self.over_with(call.id, Err(Refusal::TooMany(most)), fx);
        }
        entry.blocked.push_back(Waiting {
            call: call.clone(),
            time: None,
        });
        if call.started && call.id.node == self.me {
            self.started_is_blocked(call.id, fx.commands());
        }
    }

    fn executed(
        &mut self,
        sequence: u64,
        call: &Call,
        outcome: Result<&[u8], Refusal>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        self.remember(call.object, sequence, call.operation, host);
        self.over_with(call.id, outcome, fx);
    }

    /// As `retry`, on a replica: all nodes do the same, but for the reads of their own workers,
    /// which change nothing.
    pub(super) fn retry_replica(
        &mut self,
        sequence: u64,
        object: ObjectId,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
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
                    if call.writes {
                        next = 0;
                        let outcome = outcome.as_deref().map_err(Refusal::clone);
                        self.executed(sequence, &call, outcome, host, out);
                    } else {
                        self.over(call.id, outcome, out);
                    }
                }
            }
        }
    }

    /// A call is over everywhere; its caller's worker goes on.
    pub(super) fn over(&mut self, by: CallId, outcome: Outcome, out: Out<'_>) {
        self.over_with(by, outcome.as_deref().map_err(Refusal::clone), out);
    }

    /// The same, with the bytes of its result.
    fn over_with(
        &mut self,
        by: CallId,
        outcome: Result<&[u8], Refusal>,
        fx: &mut impl ObjectsEffects,
    ) {
        self.acquire_due = true;
        if by.node == self.me {
            self.pending.forget(by.number);
            self.no_longer_withdrawn(by.number);
            fx.finished(by.number, outcome);
        }
    }

    /// Keeps the digest of what an operation has left behind, where digests are kept.
    pub(super) fn remember(
        &mut self,
        object: ObjectId,
        sequence: u64,
        operation: u16,
        host: &mut dyn Host,
    ) {
        if !self.digests {
            return;
        }
        let digest = host.digest(object);
        if let Some(entry) = self.table.get_mut(&object) {
            entry.digests.push_back((sequence, operation, digest));
            if entry.digests.len() > MOST_DIGESTS {
                entry.digests.pop_front();
            }
        }
    }
}
