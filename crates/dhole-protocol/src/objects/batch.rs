//! Calls that are started while others are under way go together: in one message, executed one
//! after the other in one step of the receiver's, and answered by one message.
//!
//! A call that is started while none is under way goes at once, alone, and so does the next, as a
//! *batch* of one. A batch is answered as soon as each of its calls was tried; those whose guards
//! are false are answered later, as others are. What is started before that answer has come waits
//! for it and goes as the next batch, unless it is so much that it goes before. So whatever waits
//! here waits for a message that is on its way, and that no guard can hold up.

use dhole_model::{NodeId, ObjectId, VectorTime};

use super::host::Host;
use super::message::{Answers, Call, Calls, ObjectsMessage, Outcome};
use super::{Asked, Objects, ObjectsCommand, Out, Place};

/// As many calls go together.
const MOST_TOGETHER: usize = 64;
/// With so many bytes a batch goes before the one before it was answered.
const MOST_BYTES: u64 = 16 << 10;

/// Calls that wait to go to one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    calls: Calls,
    bytes: u64,
    /// Batches that were sent and not answered.
    unanswered: u32,
}

/// What the calls of a batch have come to that is executed.
#[derive(Clone, Debug)]
pub(super) struct Answering {
    to: NodeId,
    answers: Answers,
}

impl Objects {
    /// The worker calls an operation and goes on.
    pub(super) fn begin(&mut self, call: Call, host: &mut dyn Host, out: Out<'_>) {
        let Some(to) = self.asked_at(call.object) else {
            return self.invoke(call, host, out);
        };
        if self.asked.is_empty() {
            return self.ask(to, call, host, out);
        }
        self.asks(to, call.clone(), None);
        let batch = self.batches.entry(to).or_default();
        batch.bytes += call.wire_bytes();
        batch.calls.push(call);
        let much = batch.calls.len() >= MOST_TOGETHER || batch.bytes >= MOST_BYTES;
        if much || batch.unanswered == 0 {
            self.send_batch(to, host, out);
        }
    }

    /// The other node that is asked to execute operations on an object: where it is, or who made
    /// it, while nothing is known of it.
    pub(super) fn asked_at(&self, object: ObjectId) -> Option<NodeId> {
        let creator = object.creator(self.nodes);
        match self.place(object)? {
            Place::At(to) => Some(to),
            Place::Unknown if creator != self.me => Some(creator),
            _ => None,
        }
    }

    /// Another node is to execute a call of this node's worker, and was told this with it.
    pub fn asks(&mut self, to: NodeId, call: Call, time: Option<VectorTime>) {
        let number = call.id.number;
        let call = Some(call);
        self.asked.insert(number, Asked { to, call, time });
    }

    fn send_batch(&mut self, to: NodeId, host: &dyn Host, out: Out<'_>) {
        let Some(batch) = self.batches.get_mut(&to) else {
            return;
        };
        let calls = std::mem::take(&mut batch.calls);
        batch.bytes = 0;
        batch.unanswered += 1;
        let first = calls.first().map(|call| call.id.number);
        let time = self.request(to, calls, true, host, out);
        // The answer of one of them says that all was heard.
        if let Some(first) = first.and_then(|first| self.asked.get_mut(&first)) {
            first.time = time;
        }
    }

    /// Asks a node to execute calls of this node's worker. What the worker has seen.
    pub(super) fn request(
        &mut self,
        to: NodeId,
        calls: Calls,
        together: bool,
        host: &dyn Host,
        out: Out<'_>,
    ) -> Option<VectorTime> {
        let (time, news) = self.tells(to, host);
        let message = ObjectsMessage::Request {
            calls,
            together,
            delivered: self.delivered,
            time: time.clone(),
            news,
        };
        out.push(ObjectsCommand::Send { to, message });
        time
    }

    /// Executes calls of another node, and answers those at once that are over if they are a batch.
    pub(super) fn requested(
        &mut self,
        from: NodeId,
        (mut calls, together): (Calls, bool),
        time: Option<VectorTime>,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        if !together && let Some(call) = calls.pop() {
            // The only one.
            return self.requested_one(call, time, host, out);
        }
        self.answering = Some(Answering {
            to: from,
            answers: Answers::with_capacity(calls.len()),
        });
        for call in calls {
            self.requested_one(call, time.clone(), host, out);
        }
        if let Some(Answering { to, answers }) = self.answering.take() {
            self.answer(to, answers, true, time.as_ref(), out);
        }
    }

    /// Keeps the outcome of a call for the answer to the batch that is executed, if its caller gets
    /// that.
    pub(super) fn answers_together(
        &mut self,
        to: NodeId,
        number: u64,
        outcome: Outcome,
    ) -> Option<Outcome> {
        match &mut self.answering {
            Some(answering) if answering.to == to => {
                answering.answers.push((number, outcome));
                None
            }
            _ => Some(outcome),
        }
    }

    pub(super) fn answer(
        &mut self,
        to: NodeId,
        answers: Answers,
        together: bool,
        time: Option<&VectorTime>,
        out: Out<'_>,
    ) {
        let news = self.heard.since(time);
        let message = ObjectsMessage::replies(answers, together, self.delivered, news);
        out.push(ObjectsCommand::Send { to, message });
    }

    /// A node has answered a batch: what waits for that goes. Whether there was a batch.
    pub(super) fn batch_answered(&mut self, from: NodeId, host: &dyn Host, out: Out<'_>) -> bool {
        let Some(batch) = self.batches.get_mut(&from) else {
            return false;
        };
        let Some(unanswered) = batch.unanswered.checked_sub(1) else {
            return false;
        };
        batch.unanswered = unanswered;
        if unanswered == 0 && !batch.calls.is_empty() {
            self.send_batch(from, host, out);
        }
        true
    }
}
