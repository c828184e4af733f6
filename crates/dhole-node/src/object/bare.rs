//! Bare calls between processes: neither they nor their replies are told the machine of objects
//! where nothing else comes of them. It hears of one as soon as anything else happens here to
//! objects while its caller waits.

#[cfg(test)]
pub(super) mod tests;

use dhole_heap as heap;
use dhole_model::{MessageKind, NodeId, ObjectId};
use dhole_net::Wake;
use dhole_protocol::Message;
use dhole_protocol::objects::bare::{self, Lies};
use dhole_protocol::objects::{CallRef, Outcome, Refusal};

use super::copies::{Hosting, MOST_KEPT};
use super::invoke::Wanted;
use crate::node::State;
use crate::worker::{Failure, Link};

impl State {
    /// Whether calls may come and go past the machine: no process has begun here so far, and no
    /// node may be lost.
    #[inline]
    pub(crate) fn may_be_bare(&self) -> bool {
        self.ended().is_none() && self.turns.are_the_programs() && !self.membership.is_on()
    }

    /// The machine hears of the call that went past it: from here on it is as others.
    #[inline]
    pub(super) fn hears_of_bare(&mut self) {
        let here = &mut self.here;
        if let Some(BareCall { to, call }) = here.bare.take() {
            let arguments = &here.arguments[..];
            let call = CallRef { arguments, ..call }.into();
            here.machine.asks(to, call, None);
        }
    }

    /// Takes a bare message by its bytes, where that is all that happens; `answer` is given what
    /// its sender is to be told.
    pub(crate) fn take_bare(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        answer: &mut dyn FnMut([&[u8]; 2]),
    ) -> Option<Wake> {
        if !self.may_be_bare() {
            return None;
        }
        match bare::decode(bytes)? {
            Lies::Call(call, delivered) => self.serve_bare(from, call, delivered, answer),
            Lies::Submit(call, submitted) => self.take_submitted(from, call, &submitted, answer),
            Lies::Data(call, numbered) => self.take_numbered(from, call, &numbered),
            Lies::Reply {
                call,
                delivered,
                result,
            } => self.take_bare_reply(from, call, delivered, result),
        }
    }

    fn serve_bare(
        &mut self,
        from: NodeId,
        call: CallRef<'_>,
        delivered: u64,
        answer: &mut dyn FnMut([&[u8]; 2]),
    ) -> Option<Wake> {
        let here = &mut self.here;
        let mut result = here.copies.room();
        let mut host = Hosting {
            copies: &mut here.copies,
            protocol: &self.protocol,
        };
        let (machine, number) = (&mut here.machine, call.id.number);
        let served = machine.serve_bare(from, call, delivered, &mut host, &mut result);
        // What is counted can be counted while the reply is on its way.
        let bytes = match served {
            None => None,
            Some(Ok(())) => {
                answer([&bare::reply_head(number, machine.delivered()), &result]);
                Some(bare::reply_bytes(result.len()))
            }
            Some(Err(refusal)) => {
                let refused = machine.refused(number, refusal);
                let bytes = refused.wire_bytes();
                let mut message = Vec::new();
                Message::Objects(Box::new(refused)).encode(&mut message);
                answer([&message, &[]]);
                Some(bytes)
            }
        };
        here.copies.keep_room(result);
        let bytes = Message::HEADER_BYTES + bytes?;
        self.counting.sent_of(MessageKind::OperationReply, bytes);
        self.protocol.count_objects(from, false);
        self.protocol.count_objects(from, true);
        Some(Wake::No)
    }

    fn take_bare_reply(
        &mut self,
        from: NodeId,
        call: u64,
        delivered: u64,
        result: &[u8],
    ) -> Option<Wake> {
        let here = &mut self.here;
        if delivered > here.machine.delivered() {
            return None;
        }
        let is_it = |it: &mut BareCall| it.to == from && it.call.id.number == call;
        here.bare.take_if(is_it)?;
        here.machine.bare_reply();
        self.protocol.count_objects(from, false);
        here.result.clear();
        here.result.shrink_to(MOST_KEPT);
        here.result.extend_from_slice(result);
        self.answered(call);
        Some(self.wakes(true))
    }
}

impl Link<'_> {
    /// Whether a call of the worker's may go bare.
    pub(super) fn may_go_bare(&self, state: &State) -> bool {
        let may = self.machine.sends_bytes() && state.may_be_bare();
        // The interval is over, where anything was written or anybody waited for the worker's call.
        debug_assert!(!may || !state.protocol.has_deferred() && self.out.borrow().is_empty());
        may
    }

    /// Where a call of the worker's goes bare.
    fn goes_bare(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
        object: ObjectId,
    ) -> Option<NodeId> {
        let state = call.split().1;
        if !self.may_go_bare(state) {
            return None;
        }
        let host = Hosting {
            copies: &mut state.here.copies,
            protocol: &state.protocol,
        };
        state.here.machine.goes_bare(object, &host)
    }

    /// Sends a call past the machine, where that can be done at once, and waits until it is over.
    /// Its arguments are in `ObjectsHere::arguments`.
    pub(super) fn operate_bare(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
        wanted: Wanted,
        called: &CallRef<'static>,
    ) -> Result<Option<Over>, Box<Failure>> {
        let Some(to) = self.goes_bare(call, wanted.object) else {
            return Ok(None);
        };
        let State {
            here,
            protocol,
            counting,
            ..
        } = call.split().1;
        let id = here.machine.new_call();
        let number = id.number;
        let arguments = &here.arguments[..];
        let whole = CallRef {
            id,
            arguments,
            ..*called
        };
        let head = bare::call_head(whole, here.machine.delivered());
        let parts = [&head[..], arguments];
        if !self.machine.send_bytes(self.node.id, to, parts) {
            return Ok(None);
        }
        // What else there is to do is done while the call is on its way.
        here.awaited = Some(number);
        protocol.awaits(wanted.awaits(), wanted.site);
        protocol.count_objects(to, true);
        let (kind, bytes) = (MessageKind::OperationRequest, whole.bare_bytes());
        counting.sent_of(kind, Message::HEADER_BYTES + bytes);
        let call_made = CallRef { id, ..*called };
        here.bare = Some(BareCall {
            to,
            call: call_made,
        });
        self.bare_outcome(call, number).map(Some)
    }

    /// Waits until a call is over that went past the machine.
    pub(super) fn bare_outcome(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
        number: u64,
    ) -> Result<Over, Box<Failure>> {
        let waited = self.outcome(call);
        let here = &mut call.split().1.here;
        here.awaited = None;
        let over = match here.answered.take_if(|it| *it == number) {
            Some(_) => Over::Answered,
            None => {
                let finished = here.take_finished(number);
                Over::Finished(Box::new(finished.unwrap_or(Err(Refusal::Unknown))))
            }
        };
        waited.map(|_| over)
    }
}

/// What a call that went past the machine has come to.
pub(super) enum Over {
    /// A result, which is in `ObjectsHere::result`.
    Answered,
    /// It was told, or refused, otherwise.
    Finished(Box<Outcome>),
}

/// A call that went to another node, past the machine. Its arguments are in
/// `ObjectsHere::arguments`.
pub(crate) struct BareCall {
    to: NodeId,
    call: CallRef<'static>,
}
