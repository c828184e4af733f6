//! Operations on a copy that is elsewhere: requests and replies.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId, VectorTime};

use super::call::{Call, CallId, CallRef, Outcome, Refusal, Waiting};
use super::codec::{OperationReply, OperationRequest};
use super::entry::{Entry, Place};
use super::host::Host;
use super::message::{ClerkId, ObjectsMessage, Start, Strategy};
use super::packed::PackedResults;
use super::{Objects, ObjectsCommand, ObjectsEffects, Out};
use crate::{ProtocolError, WriteNotices};

impl Objects {
    /// Asks another node to execute a call of this node's worker.
    pub(super) fn ask(
        &mut self,
        to: NodeId,
        call: CallRef<'_>,
        host: &dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        let (time, news) = self.release_unheard_to(to, host);
        self.pending.insert(to, call.into(), time.clone());
        let request = OperationRequest {
            call,
            delivered: self.delivered,
            time,
            news,
        };
        fx.call(to, request);
    }

    /// As [`release_to`](Objects::release_to), but nothing if `node` has acquired all that this
    /// node has seen.
    pub(super) fn release_unheard_to(
        &mut self,
        node: NodeId,
        host: &dyn Host,
    ) -> (Option<VectorTime>, Option<Arc<WriteNotices>>) {
        match host.has_news_since(self.told_to(node)) {
            true => self.release_to(node, host),
            false => (None, None),
        }
    }

    /// What this node has seen, and the write notices that `node` may lack. A reply leaves these
    /// out, and may arrive before this node releases to others what it has acquired. So none of
    /// them may be missing here.
    pub(super) fn release_to(
        &mut self,
        node: NodeId,
        host: &dyn Host,
    ) -> (Option<VectorTime>, Option<Arc<WriteNotices>>) {
        self.hear_own(host);
        (host.time(), host.news_since(self.told_to(node)))
    }

    /// What another node has surely been told of what this one has seen.
    pub(super) fn told_to(&self, node: NodeId) -> &VectorTime {
        self.acknowledged.get(&node).unwrap_or(&self.nothing)
    }

    /// Tells the caller what its call came to, and what it has not said that it has seen.
    pub(super) fn reply(
        &mut self,
        id: CallId,
        outcome: Result<&[u8], Refusal>,
        fx: &mut impl ObjectsEffects,
    ) {
        if let Some(outcome) = self.answers_together(id.node, id.number, outcome) {
            let reply = OperationReply {
                call: id.number,
                outcome,
                delivered: self.delivered,
                news: self.notices.since(self.told_by.get(&id.node)),
            };
            fx.reply(id.node, reply);
        }
    }

    /// As the [delivery](super::ObjectsEvent::Deliver) of an [`ObjectsMessage::Request`].
    ///
    /// # Errors
    /// As there.
    pub fn deliver_request(
        &mut self,
        from: NodeId,
        request: OperationRequest<'_>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        request
            .check(from, self.nodes)
            .map_err(|what| ProtocolError::BadMessage { from, what })?;
        if request.delivered > self.delivered {
            return self.hold(from, request.into());
        }
        self.take_request(from, request, host, fx);
        Ok(())
    }

    /// As the [delivery](super::ObjectsEvent::Deliver) of an [`ObjectsMessage::Reply`].
    ///
    /// # Errors
    /// As there.
    pub fn deliver_reply(
        &mut self,
        from: NodeId,
        reply: OperationReply<'_>,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        reply
            .check(self.nodes)
            .map_err(|what| ProtocolError::BadMessage { from, what })?;
        if reply.delivered > self.delivered {
            return self.hold(from, reply.into());
        }
        self.take_reply(from, reply, fx)
    }

    pub(super) fn deliver(
        &mut self,
        from: NodeId,
        message: ObjectsMessage,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        message
            .check(from, self.nodes)
            .map_err(|what| ProtocolError::BadMessage { from, what })?;
        match message.delivered() {
            Some(delivered) if delivered > self.delivered => self.hold(from, message),
            _ => self.take(from, message, host, fx),
        }
    }

    /// Keeps a message until what its sender had been delivered is here.
    fn hold(&mut self, from: NodeId, message: ObjectsMessage) -> Result<(), ProtocolError> {
        // Of each node its own calls at most, and answers to those of this one.
        if self.held.len() >= 2 * self.most_calls() {
            let what = "more messages about objects than may wait for what was ordered before";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.held.push((from, message));
        Ok(())
    }

    /// Takes what waited for something that is delivered now.
    pub(super) fn take_held(
        &mut self,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        let delivered = self.delivered;
        let ready = |held: &mut (NodeId, ObjectsMessage)| {
            held.1.delivered().is_none_or(|it| it <= delivered)
        };
        if self.held.is_empty() {
            return Ok(());
        }
        let held: Vec<_> = self.held.extract_if(.., ready).collect();
        let mut done = Ok(());
        for (from, message) in held {
            // One that makes no sense says nothing about the others.
            done = done.and(self.take(from, message, host, fx));
        }
        done
    }

    fn take_request(
        &mut self,
        from: NodeId,
        request: OperationRequest<'_>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        self.hears_request(from, request.time.as_ref(), request.news);
        self.requested_one(request.call, host, fx);
    }

    /// Takes what a request tells of intervals. The caller takes whatever is answered for a sign
    /// that it was heard.
    fn hears_request(
        &mut self,
        from: NodeId,
        time: Option<&VectorTime>,
        news: Option<Arc<WriteNotices>>,
    ) {
        if news.is_some() {
            self.hear(news);
        }
        self.merge_seen(from, time);
    }

    fn take_reply(
        &mut self,
        from: NodeId,
        reply: OperationReply<'_>,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        // It may have been given up with the node that was asked first.
        if !self.pending.contains(reply.call) {
            return self.not_asked(from);
        }
        if reply.news.is_some() {
            self.hear(reply.news);
        }
        self.is_answered(from, reply.call);
        fx.finished(reply.call, reply.outcome);
        Ok(())
    }

    /// A result has come that nobody waits for: where no node is lost, no sound node sends one.
    fn not_asked(&self, from: NodeId) -> Result<(), ProtocolError> {
        let what = "a result that nobody waits for";
        match self.gone.is_empty() {
            true => Err(ProtocolError::BadMessage { from, what }),
            false => Ok(()),
        }
    }

    fn take(
        &mut self,
        from: NodeId,
        message: ObjectsMessage,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) -> Result<(), ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        let out = match message {
            ObjectsMessage::Request {
                call,
                delivered,
                time,
                news,
            } => {
                let request = OperationRequest {
                    call: call.by_ref(),
                    delivered,
                    time,
                    news,
                };
                self.take_request(from, request, host, fx);
                return Ok(());
            }
            ObjectsMessage::Reply {
                call,
                outcome,
                delivered,
                news,
            } => {
                let reply = OperationReply {
                    call,
                    outcome: outcome.as_deref().map_err(Refusal::clone),
                    delivered,
                    news,
                };
                return self.take_reply(from, reply, fx);
            }
            _ => fx.commands(),
        };
        match message {
            ObjectsMessage::Request { .. } | ObjectsMessage::Reply { .. } => {}
            ObjectsMessage::Batch {
                calls, time, news, ..
            } => {
                self.hears_request(from, time.as_ref(), news);
                self.requested_batch(from, calls.iter(from), host, out);
            }
            ObjectsMessage::BatchReply {
                results,
                refused,
                blocked,
                news,
                ..
            } => {
                let calls = || {
                    let refused = refused.iter().map(|(call, _)| *call);
                    results.iter().map(|(call, _)| call).chain(refused)
                };
                let mut known = self.are_asked(calls);
                if known || !self.gone.is_empty() {
                    if news.is_some() {
                        self.hear(news);
                    }
                    let refused = refused.into_iter().map(|(call, why)| (call, Err(why)));
                    for (call, outcome) in results.outcomes().chain(refused) {
                        known &= self.answered(from, call, outcome, out);
                    }
                    blocked
                        .into_iter()
                        .for_each(|call| self.hears_blocked(call, out));
                    known &= self.batch_answered(from, host, out);
                }
                if !known {
                    return self.not_asked(from);
                }
            }
            ObjectsMessage::Spawn { start, news, .. } => {
                self.hear(news);
                self.merge_seen(from, start.time.as_ref());
                out.push(ObjectsCommand::Start(start));
            }
            ObjectsMessage::Elsewhere {
                call, at, since, ..
            } => {
                let again = self.pending.call(call, self.me);
                self.pending.forget(call);
                let Some(again) = again else {
                    return match self.gone.is_empty() {
                        true => bad("where an object is that nobody asked for"),
                        false => Ok(()),
                    };
                };
                self.learn_place(&again, from, at, since);
                match self.is_withdrawn(call) {
                    true => {
                        let outcome = Err(Refusal::Withdrawn);
                        out.push(ObjectsCommand::Finished { call, outcome });
                    }
                    false => self.call(again.by_ref(), host, out),
                }
            }
            ObjectsMessage::SpawnInChain {
                start, chain, news, ..
            } => {
                self.hear(news);
                self.merge_seen(from, start.time.as_ref());
                out.push(ObjectsCommand::Start(Start { chain, ..start }));
            }
            ObjectsMessage::Create {
                by,
                object,
                kind,
                state,
            } => return self.created(from, by, (object, None), (kind, &state), host, out),
            ObjectsMessage::CreateIn {
                by,
                object,
                kind,
                state,
                clerk,
            } => return self.created(from, by, (object, Some(clerk)), (kind, &state), host, out),
            ObjectsMessage::Migrate {
                object,
                since,
                state,
                blocked,
                news,
                ..
            } => {
                if !self.is_coming(object, since) {
                    return bad("the state of an object that is not to come");
                }
                self.hear(news);
                for Waiting { call, time } in &blocked {
                    self.merge_seen(call.id.node, time.as_ref());
                }
                self.arrived(object, state, blocked, host, out);
            }
            ObjectsMessage::Digests { call, digests } => {
                self.told_digests(from, call, digests, host, out)?;
            }
            ObjectsMessage::Blocked { call, .. } => self.hears_blocked(call, out),
            ObjectsMessage::Withdraw { by, object, .. } => self.withdraw(by, object, host, out),
            ObjectsMessage::NotWithdrawn { call, object, .. } => {
                if self.is_withdrawn(call) && self.pending.contains(call) {
                    self.withdraw(self.own(call), object, host, out);
                }
            }
            ObjectsMessage::Group(_) => return bad("what is the group's to hear"),
        }
        Ok(())
    }

    /// Another node makes an object that is kept here.
    fn created(
        &mut self,
        from: NodeId,
        by: CallId,
        (object, clerk): (ObjectId, Option<ClerkId>),
        (kind, state): (u64, &[u8]),
        host: &mut dyn Host,
        out: Out<'_>,
    ) -> Result<(), ProtocolError> {
        let twice = |entry: &Entry| entry.place != Place::Unknown;
        if self.table.get(&object).is_some_and(twice) || self.is_predefined(object) {
            let what = "an object that exists already";
            return Err(ProtocolError::BadMessage { from, what });
        }
        match self.keep((object, clerk), kind, state, host) {
            Ok(made) if self.survives => self.tell_place(by, object, made, out),
            outcome => {
                let outcome = outcome.as_deref().map_err(Refusal::clone);
                self.reply(by, outcome, out);
            }
        }
        Ok(())
    }

    /// The guard of a call that was started is false; or was: where the object has gone elsewhere
    /// since, its result may have come before this.
    fn hears_blocked(&self, call: u64, out: Out<'_>) {
        if self.pending.contains(call) {
            out.push(ObjectsCommand::Blocked(call));
        }
    }

    /// Whether these are results of calls of this node's worker that are under way, of each one.
    #[inline]
    pub fn has_asked(&self, results: &PackedResults) -> bool {
        self.are_asked(|| results.iter().map(|(call, _)| call))
    }

    /// Whether these calls of this node's worker are under way, and none comes twice.
    #[inline]
    fn are_asked<I: Iterator<Item = u64>>(&self, calls: impl Fn() -> I) -> bool {
        let (mut ascend, mut last) = (true, None);
        for call in calls() {
            if !self.pending.contains(call) {
                return false;
            }
            ascend &= last < Some(call);
            last = Some(call);
        }
        ascend || differ(calls().collect())
    }

    /// A call of this node's worker is over; whether it was under way.
    fn answered(&mut self, from: NodeId, call: u64, outcome: Outcome, out: Out<'_>) -> bool {
        let known = self.is_answered(from, call);
        if known {
            out.push(ObjectsCommand::Finished { call, outcome });
        }
        known
    }

    /// As if the [reply](ObjectsMessage::BatchReply) had brought the result of this call alone,
    /// which is for the caller to pass on; whether it was under way.
    #[inline]
    pub fn is_answered(&mut self, from: NodeId, call: u64) -> bool {
        // Whoever was asked may have handed the call on, with the object.
        let (known, told) = self.pending.is_over(call, from);
        if let Some(time) = told {
            match self.acknowledged.get_mut(&from) {
                Some(known) => known.merge(&time),
                None => drop(self.acknowledged.insert(from, time)),
            }
        }
        self.acquire_due |= known;
        self.no_longer_withdrawn(call);
        known
    }

    /// Merges `time` into the vector time that `node` is known to have seen. Replies to its calls
    /// leave out write notices that this time covers. `node` must have acquired them all itself,
    /// for it tells others no more than that. It has where it
    /// [releases to](Objects::release_to) another node. What it multicasts it acquires as all
    /// others do, before it takes a reply that rests on it.
    pub(super) fn merge_seen(&mut self, node: NodeId, time: Option<&VectorTime>) {
        if let Some(time) = time {
            let nothing = || self.nothing.clone();
            self.told_by.get_or_insert_with(node, nothing).merge(time);
        }
    }

    pub(super) fn hear(&mut self, news: Option<Arc<WriteNotices>>) {
        if let Some(news) = news {
            self.notices.hear(&news);
        }
        self.acquire_due = true;
    }

    /// Another node asks for an operation on an object that it takes to be here.
    pub(super) fn requested_one(
        &mut self,
        call: CallRef<'_>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        if call.object.lock().is_some() {
            return self.comes_to_lock(call, host, fx);
        }
        let (since, place) = match self.table.get(&call.object) {
            Some(entry) => (entry.since, entry.place),
            None => (0, Place::Unknown),
        };
        let at = match place {
            Place::Here => return self.execute(call, host, fx),
            Place::Monitored => return self.comes(call, host, fx),
            Place::Unknown => {
                let why = self.why_not(call.object);
                return self.reply(call.id, Err(why), fx);
            }
            Place::Lost(node) => return self.reply(call.id, Err(Refusal::Lost(node)), fx),
            Place::At(node) => Strategy::On(node),
            Place::Coming => Strategy::On(self.me),
            Place::Replicated | Place::Spreading(_) => Strategy::Replicated,
        };
        if place == Place::Coming {
            let most = self.most_calls();
            match self.table.get_mut(&call.object) {
                Some(entry) if entry.requests.len() < most => entry.requests.push(call.into()),
                _ => self.reply(call.id, Err(Refusal::TooMany(most)), fx),
            }
            return;
        }
        let message = ObjectsMessage::Elsewhere {
            call: call.id.number,
            at,
            since,
            delivered: self.delivered,
        };
        let to = call.id.node;
        fx.commands().push(ObjectsCommand::Send { to, message });
    }

    /// Where an object is that `from` does not have. What is known here already may be newer.
    fn learn_place(&mut self, call: &Call, from: NodeId, at: Strategy, since: u64) {
        let place = match at {
            Strategy::On(node) if node == self.me => return,
            Strategy::On(node) if self.gone.contains_key(&node) => Place::Lost(node),
            Strategy::On(node) => Place::At(node),
            Strategy::Replicated | Strategy::In(_) => return,
        };
        let entry = self.table.entry(call.object).or_insert_with(Entry::unknown);
        let older = entry.place == Place::Unknown || entry.place == Place::At(from);
        if older && since >= entry.since {
            (entry.place, entry.since) = (place, since);
        }
    }
}

/// Whether no number comes twice: mostly they ascend, but for what a guard has held up.
#[cold]
fn differ(mut numbers: Vec<u64>) -> bool {
    numbers.sort_unstable();
    numbers.is_sorted_by(|one, next| one < next)
}

impl ObjectsMessage {
    /// The ordered message before which nothing may be done with this one.
    fn delivered(&self) -> Option<u64> {
        match self {
            ObjectsMessage::Request { delivered, .. }
            | ObjectsMessage::Batch { delivered, .. }
            | ObjectsMessage::Spawn { delivered, .. }
            | ObjectsMessage::SpawnInChain { delivered, .. }
            | ObjectsMessage::Reply { delivered, .. }
            | ObjectsMessage::BatchReply { delivered, .. }
            | ObjectsMessage::Elsewhere { delivered, .. }
            | ObjectsMessage::Blocked { delivered, .. }
            | ObjectsMessage::Withdraw { delivered, .. }
            | ObjectsMessage::NotWithdrawn { delivered, .. }
            | ObjectsMessage::Migrate { delivered, .. } => Some(*delivered),
            ObjectsMessage::Create { .. }
            | ObjectsMessage::CreateIn { .. }
            | ObjectsMessage::Digests { .. }
            | ObjectsMessage::Group(_) => None,
        }
    }
}
