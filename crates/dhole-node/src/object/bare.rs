//! Bare calls between processes: neither they nor their replies are told the machine of objects
//! where nothing else comes of them. It hears of one as soon as anything else happens here to
//! objects while its caller waits.

#[cfg(test)]
mod tests;

use dhole_heap as heap;
use dhole_model::{MessageKind, NodeId, ObjectId};
use dhole_net::Wake;
use dhole_protocol::objects::{Bytes, Call, ObjectsMessage, Outcome, bare};
use dhole_protocol::{Message, here};

use super::copies::Hosting;
use super::invoke::Wanted;
use crate::node::State;
use crate::worker::{Failure, Link};

impl State {
    /// Whether calls may come and go past the machine: no process has begun here so far, and no
    /// node may be lost.
    #[inline]
    pub(crate) fn may_be_bare(&self) -> bool {
        self.ended().is_none() && self.turns.are_the_programs() && !self.survival.is_on()
    }

    /// The machine hears of the call that went past it: from here on it is as others.
    #[inline]
    pub(super) fn hears_of_bare(&mut self) {
        if let Some((to, call)) = self.here.bare.take() {
            self.here.machine.asks(to, call, None);
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
        if here::is_begun_by(bytes) {
            return self.take_here(from, bytes);
        }
        match bare::decode(bytes)? {
            ObjectsMessage::Bare { call, delivered } => {
                self.serve_bare(from, &call, delivered, answer)
            }
            ObjectsMessage::BareReply {
                call,
                delivered,
                result,
            } => self.take_bare_reply(from, call, delivered, result),
            _ => None,
        }
    }

    fn serve_bare(
        &mut self,
        from: NodeId,
        call: &Call,
        delivered: u64,
        answer: &mut dyn FnMut([&[u8]; 2]),
    ) -> Option<Wake> {
        let here = &mut self.here;
        let mut host = Hosting {
            copies: &mut here.copies,
            protocol: &self.protocol,
        };
        let reply = here.machine.serve_bare(from, call, delivered, &mut host)?;
        let bytes = Message::HEADER_BYTES + reply.wire_bytes();
        // What is counted can be counted while the reply is on its way.
        match reply {
            ObjectsMessage::BareReply {
                call,
                delivered,
                result,
            } => answer([&bare::reply_head(call, delivered), &result]),
            refusal => {
                let mut bytes = Vec::new();
                let encoded = Message::Objects(Box::new(refusal)).encode(&mut bytes);
                encoded.expect("a reply carries no gossip");
                answer([&bytes, &[]]);
            }
        }
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
        result: Bytes,
    ) -> Option<Wake> {
        let here = &mut self.here;
        if delivered > here.machine.delivered() {
            return None;
        }
        let is_it = |(to, it): &mut (NodeId, Call)| *to == from && it.id.number == call;
        here.bare.take_if(is_it)?;
        here.machine.bare_reply();
        self.protocol.count_objects(from, false);
        self.finished(call, Ok(result));
        Some(match self.may_go_on() {
            true => Wake::Yes,
            false => Wake::No,
        })
    }
}

impl Link<'_> {
    /// Where a call of the worker's goes bare.
    fn goes_bare(&self, call: &mut heap::Call<'_, State>, object: ObjectId) -> Option<NodeId> {
        let state = call.split().1;
        if !self.machine.sends_bytes() || !state.may_be_bare() {
            return None;
        }
        // The interval is over, where anything was written or anybody waited for the worker's call.
        debug_assert!(!state.protocol.has_deferred() && self.out.borrow().is_empty());
        let host = Hosting {
            copies: &mut state.here.copies,
            protocol: &state.protocol,
        };
        state.here.machine.goes_bare(object, &host)
    }

    /// Sends a call past the machine, where that can be done at once, and waits until it is over.
    pub(super) fn operate_bare(
        &self,
        call: &mut heap::Call<'_, State>,
        wanted: Wanted,
        called: impl FnOnce(u64) -> Call,
    ) -> Result<Option<Outcome>, Failure> {
        let Some(to) = self.goes_bare(call, wanted.object) else {
            return Ok(None);
        };
        let state = call.split().1;
        let number = state.here.machine.new_call().number;
        let called = called(number);
        let head = bare::call_head(&called, state.here.machine.delivered());
        let parts = [&head[..], &called.arguments];
        if !self.machine.send_bytes(self.node.id, to, parts) {
            return Ok(None);
        }
        // What else there is to do is done while the call is on its way.
        state.here.awaited = Some(number);
        state.protocol.awaits(wanted.awaits(), wanted.site);
        state.protocol.count_objects(to, true);
        let (kind, bytes) = (MessageKind::OperationRequest, called.bare_bytes());
        state.counting.sent_of(kind, Message::HEADER_BYTES + bytes);
        state.here.bare = Some((to, called));
        self.outcome_of(call, number, Ok(())).map(Some)
    }
}
