//! Calls that are started while others are under way go together: in one message, executed one
//! after the other in one step of the receiver's, and answered by one message.
//!
//! A call that is started while none is under way goes at once, alone, and so does the next, as a
//! *batch* of one. A batch is answered as soon as each of its calls was tried; those whose guards
//! are false are answered later, as others are. What is started before that answer has come waits
//! for it and goes as the next batch, unless it is so much that it goes before. So whatever waits
//! here waits for a message that is on its way, and that no guard can hold up.

use std::convert::Infallible;

use dhole_model::{NodeId, ObjectId};

use super::call::{Call, CallId, CallRef, Refusal};
use super::host::Host;
use super::message::ObjectsMessage;
use super::packed::{PackedCalls, PackedResults};
use super::{Objects, ObjectsCommand, ObjectsEffects, Out, Place};

/// As many calls go together.
const MOST_TOGETHER: usize = 64;
/// With arguments of so many bytes a batch goes before the one before it was answered.
const MOST_BYTES: usize = 16 << 10;

/// Calls that wait to go to one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// Their number among what is asked, once there are any.
    number: Option<u64>,
    /// Batches that were sent and not answered.
    unanswered: u32,
}

/// Whether calls go when one joins them that has arguments of so many bytes.
#[inline]
fn are_full_with(calls: &PackedCalls, arguments: usize) -> bool {
    let arguments = calls.arguments() + arguments;
    calls.len() + 1 >= MOST_TOGETHER || arguments >= MOST_BYTES
}

/// What the calls of a batch have come to that is executed.
#[derive(Clone, Debug)]
pub(super) struct Answering {
    to: NodeId,
    results: PackedResults,
    /// Why others have none.
    refused: Vec<(u64, Refusal)>,
    /// Those whose guards were false.
    pub(super) blocked: Vec<u64>,
}

impl Answering {
    #[inline]
    fn push(&mut self, call: u64, outcome: Result<&[u8], Refusal>) {
        match outcome {
            Ok(result) => self.results.push(call, result),
            Err(refusal) => self.refused.push((call, refusal)),
        }
    }
}

impl Objects {
    /// The worker calls an operation and goes on.
    pub(super) fn begin(&mut self, call: Call, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        let Some(to) = self.asked_at(call.object) else {
            return self.call(call.by_ref(), host, fx);
        };
        // An operation's call goes alone, for its chain goes with it.
        if self.pending.is_empty() || !call.chain.is_empty() {
            return self.ask(to, call.by_ref(), host, fx);
        }
        if self.joins_batch(to, &call) {
            self.send_batch(to, host, fx.commands());
        }
    }

    /// Whether a call that the worker [begins](super::ObjectsEvent::Begin), with the arguments
    /// that are appended, has joined others that wait to go to the same node, and nothing else is
    /// to be done. If not, nothing has happened.
    #[inline]
    pub fn begins_quietly<E>(
        &mut self,
        call: CallRef<'_>,
        arguments: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> bool {
        let Some(to) = self
            .asked_at(call.object)
            .filter(|_| !self.pending.is_empty())
        else {
            return false;
        };
        let waits = |batch: &&mut Batch| batch.unanswered > 0;
        let Some(batch) = self.batches.get_mut(&to).filter(waits) else {
            return false;
        };
        let number = *batch
            .number
            .get_or_insert_with(|| self.pending.begin_batch(to));
        let calls = self.pending.batch(number);
        let goes = calls.is_none_or(|calls| are_full_with(calls, 0));
        !goes && self.pending.join(number, call, arguments)
    }

    /// A call waits to go to this node, with others; whether they go now.
    fn joins_batch(&mut self, to: NodeId, call: &Call) -> bool {
        let batch = self.batches.get_or_default(to);
        let number = *batch
            .number
            .get_or_insert_with(|| self.pending.begin_batch(to));
        let full = |calls| are_full_with(calls, call.arguments.len());
        let goes = batch.unanswered == 0 || self.pending.batch(number).is_some_and(full);
        let arguments = |bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&call.arguments);
            Ok::<_, Infallible>(())
        };
        let joined = self.pending.join(number, call.by_ref(), arguments);
        debug_assert!(joined, "a batch that is named is kept until it has gone");
        goes
    }

    /// The other node that is asked to execute operations on an object: where it is, or who made
    /// it, while nothing is known of it.
    pub(super) fn asked_at(&self, object: ObjectId) -> Option<NodeId> {
        match self.place(object)? {
            Place::At(to) => Some(to),
            Place::Unknown if self.is_predefined(object) => None,
            Place::Unknown => Some(object.creator(self.nodes)).filter(|to| *to != self.me),
            _ => None,
        }
    }

    /// All calls go that wait to go together, though others were not answered.
    pub(super) fn send_batches(&mut self, host: &dyn Host, out: Out<'_>) {
        let waits = |(to, batch): (&NodeId, &Batch)| batch.number.map(|_| *to);
        let waiting: Vec<NodeId> = self.batches.iter().filter_map(waits).collect();
        for to in waiting {
            self.send_batch(to, host, out);
        }
    }

    fn send_batch(&mut self, to: NodeId, host: &dyn Host, out: Out<'_>) {
        let Some(batch) = self.batches.get_mut(&to) else {
            return;
        };
        let Some(number) = batch.number else {
            return;
        };
        let calls = self.pending.batch(number);
        // There are none where the first could not be written.
        let Some(calls) = calls.filter(|calls| !calls.is_empty()).cloned() else {
            return;
        };
        batch.number = None;
        batch.unanswered += 1;
        let (time, news) = self.release_unheard_to(to, host);
        // The answer of one of them says that all was heard.
        if let Some(first) = calls.first() {
            self.pending.told(number, first, time.clone());
        }
        let message = ObjectsMessage::Batch {
            calls,
            delivered: self.delivered,
            time,
            news,
        };
        out.push(ObjectsCommand::Send { to, message });
    }

    /// Executes a batch of calls of another node, and answers those at once that are over.
    pub(super) fn requested_batch<'c>(
        &mut self,
        from: NodeId,
        calls: impl Iterator<Item = CallRef<'c>>,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        self.answering = Some(Answering {
            to: from,
            results: PackedResults::with_room(MOST_TOGETHER),
            refused: Vec::new(),
            blocked: Vec::new(),
        });
        for call in calls {
            if !self.execute_alone(call, host) {
                self.requested_one(call, host, out);
            }
        }
        let Some(Answering {
            to,
            results,
            refused,
            blocked,
        }) = self.answering.take()
        else {
            return;
        };
        let message = ObjectsMessage::BatchReply {
            results,
            refused,
            blocked,
            delivered: self.delivered,
            news: self.notices.since(self.told_by.get(&to)),
        };
        out.push(ObjectsCommand::Send { to, message });
    }

    /// Executes a call of the batch, if nothing comes of that but what it came to.
    #[inline(always)] // a call that is handed on by a copy of what was just written takes as long
    fn execute_alone(&mut self, call: CallRef<'_>, host: &mut dyn Host) -> bool {
        let (Some(entry), Some(answering)) = (self.table.get(&call.object), &mut self.answering)
        else {
            return false;
        };
        if entry.place != Place::Here || !entry.blocked.is_empty() {
            return false;
        }
        let number = call.id.number;
        let applied = answering
            .results
            .push_with(number, |result| host.apply_to(call, result));
        match applied {
            Ok(false) => return false,
            Ok(true) => {}
            Err(refusal) => answering.refused.push((number, refusal)),
        }
        self.acquire_due = true;
        true
    }

    /// Keeps the outcome of a call for the answer to the batch that is executed, if its caller gets
    /// that.
    pub(super) fn answers_together<'o>(
        &mut self,
        to: NodeId,
        number: u64,
        outcome: Result<&'o [u8], Refusal>,
    ) -> Option<Result<&'o [u8], Refusal>> {
        match &mut self.answering {
            Some(answering) if answering.to == to => {
                answering.push(number, outcome);
                None
            }
            _ => Some(outcome),
        }
    }

    /// The guard of a call that was started is false. Its node hears so, whose next synchronisation
    /// waits for what was started before to be tried.
    pub(super) fn started_is_blocked(&mut self, id: CallId, out: Out<'_>) {
        let (call, to) = (id.number, id.node);
        if to == self.me {
            return out.push(ObjectsCommand::Blocked(call));
        }
        match &mut self.answering {
            Some(answering) if answering.to == to => answering.blocked.push(call),
            _ => {
                let delivered = self.delivered;
                let message = ObjectsMessage::Blocked { call, delivered };
                out.push(ObjectsCommand::Send { to, message });
            }
        }
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
        if unanswered == 0 {
            self.send_batch(from, host, out);
        }
        true
    }
}
