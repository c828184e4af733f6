//! Bare calls between processes: neither they nor their replies are told the machine of objects
//! where nothing else comes of them. It hears of one as soon as anything else happens here to
//! objects while its caller waits.

#[cfg(test)]
mod tests;

use dhole_heap as heap;
use dhole_model::{MessageKind, NodeId, ObjectId};
use dhole_net::{Envelope, Payload, Wake};
use dhole_protocol::objects::{Bytes, Call, ObjectsMessage, Outcome, Refusal, bare};
use dhole_protocol::{Event, Message};

use super::copies::Hosting;
use super::invoke::Wanted;
use crate::machine::Woken;
use crate::node::State;
use crate::worker::{Failure, Link};

impl State {
    /// Whether calls may come and go past the machine: nobody else goes on here meanwhile, and no
    /// node may be lost.
    fn may_be_bare(&self) -> bool {
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
        here.bare_result = Some(result);
        here.awaited = None;
        here.machine.bare_reply();
        self.protocol.count_objects(from, false);
        self.protocol.operation_over();
        self.woken();
        Some(match self.may_go_on() {
            true => Wake::Yes,
            false => Wake::No,
        })
    }
}

impl Link<'_> {
    /// Where a call of the worker's goes bare, past the machine. Not where another process of this
    /// node could go on meanwhile.
    pub(super) fn goes_bare(
        &self,
        call: &mut heap::Call<'_, State>,
        object: ObjectId,
    ) -> Option<NodeId> {
        let state = call.split().1;
        let may = self.machine.sends_bytes() && state.may_be_bare() && !state.turns.can_go_on();
        if !may || state.protocol.has_deferred() || !self.out.borrow().is_empty() {
            return None;
        }
        let host = Hosting {
            copies: &mut state.here.copies,
            protocol: &state.protocol,
        };
        state.here.machine.goes_bare(object, &host)
    }

    /// Sends a call there, past the machine, and waits until it is over.
    pub(super) fn operate_bare(
        &self,
        call: &mut heap::Call<'_, State>,
        to: NodeId,
        wanted: Wanted,
        called: impl FnOnce(u64) -> Call,
    ) -> Result<Outcome, Failure> {
        let node = self.node.id;
        let state = call.split().1;
        let number = state.here.machine.new_call().number;
        let called = called(number);
        let delivered = state.here.machine.delivered();
        let head = bare::call_head(&called, delivered);
        let sent = (self.machine).send_bytes(node, to, [&head, &called.arguments]);
        // What else there is to do is done while the call is on its way.
        state.here.awaited = Some(number);
        state.here.bare = Some((to, called.clone()));
        state.protocol.awaits(wanted.awaits(), wanted.site);
        state.protocol.count_objects(to, true);
        let bare = ObjectsMessage::Bare {
            call: called,
            delivered,
        };
        let bytes = Message::HEADER_BYTES + bare.wire_bytes();
        let kind = MessageKind::OperationRequest;
        state.counting.sent_of(kind, bytes);
        if !sent {
            state.hears_of_bare();
            self.out.borrow_mut().push(Envelope {
                from: node,
                to,
                body: Message::Objects(Box::new(bare)),
                payload: Payload::NONE,
            });
        }
        let waited = self.wait_for_bare(call, sent);
        let state = call.split().1;
        // Where the run has ended, the reply may come nevertheless.
        state.hears_of_bare();
        state.here.awaited = None;
        let outcome = match state.here.bare_result.take() {
            Some(result) => Some(Ok(result)),
            None => state.here.take_finished(number),
        };
        waited?;
        Ok(outcome.unwrap_or(Err(Refusal::Unknown)))
    }

    /// Waits until a call that went bare is over: as for others, unless its reply is all that
    /// comes.
    fn wait_for_bare(&self, call: &mut heap::Call<'_, State>, sent: bool) -> Result<(), Failure> {
        if sent && call.split().1.here.numbered_by().is_none() {
            call.unlock();
            let node = self.node.id;
            let began = self.machine.now(node);
            let woken = (self.machine).wait_polling(self.receivers, node, self.suspect_after);
            let waited = self.machine.now(node).saturating_sub(began);
            let state = call.split().1;
            state.counting.all.waited_ns += waited;
            if state.here.bare_result.is_some() && state.may_go_on() {
                state.not_done();
                return Ok(());
            }
            if woken == Woken::ByTime {
                self.step(call, Some(Event::WaitedLong))?;
            }
        }
        self.outcome(call).map(drop)
    }
}
