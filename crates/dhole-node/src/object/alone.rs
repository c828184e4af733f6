//! Writes of replicated objects between processes, where nothing else is under way: neither the
//! machine of objects nor the group is told of an event, and each of them does at once what it
//! would do then.

#[cfg(test)]
mod tests;

use dhole_model::{MessageKind, NodeId, Notify};
use dhole_net::{Payload, Wake};
use dhole_protocol::Message;
use dhole_protocol::group::{Numbered, Submitted};
use dhole_protocol::objects::alone::{self as ordered, Lies};
use dhole_protocol::objects::{CallRef, Refusal};
use smallvec::SmallVec;

use super::copies::{Hosting, MOST_KEPT};
use super::invoke::{Over, Wanted};
use super::step::ObjectsHere;
use crate::node::State;
use crate::worker::{Failure, Link};

/// Larger arguments are not copied for each who is sent them, as they are here.
const MOST_BYTES: usize = 2048;

impl State {
    /// Whether calls may come and go past the machine: no process has begun here so far, and no
    /// node may be lost.
    #[inline]
    pub(crate) fn may_be_bare(&self) -> bool {
        self.ended().is_none() && self.turns.are_the_programs() && !self.membership.is_on()
    }

    /// Takes an ordered call by its bytes, where that is all that happens; `send` is given what
    /// others are to be told.
    pub(crate) fn take_ordered(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        send: &mut dyn FnMut(NodeId, [&[u8]; 2]),
    ) -> Option<Wake> {
        if !self.may_be_bare() {
            return None;
        }
        match ordered::decode(bytes)? {
            Lies::Submit(call, submitted) => self.take_submitted(from, call, &submitted, send),
            Lies::Data(call, numbered) => self.take_numbered(from, call, &numbered),
        }
    }

    /// Executes an ordered call, which has the next place in the order, if nothing else comes of
    /// that, with the bytes of its result behind those of `result`.
    fn serve_ordered(
        &mut self,
        from: NodeId,
        call: CallRef<'_>,
        result: &mut Vec<u8>,
    ) -> Option<Result<(), Refusal>> {
        let here = &mut self.here;
        debug_assert!(here.has_taken_all(), "one after the other");
        let mut host = Hosting {
            copies: &mut here.copies,
            protocol: &self.protocol,
        };
        let sequence = here.group.delivered() + 1;
        here.machine
            .serve_ordered(sequence, from, call, &mut host, result)
    }

    /// As [`serve_ordered`](State::serve_ordered), of another node's call.
    fn serve_others(&mut self, from: NodeId, call: CallRef<'_>) -> Option<()> {
        let mut result = self.here.copies.room();
        let served = self.serve_ordered(from, call, &mut result);
        self.here.copies.keep_room(result);
        served.map(drop)
    }

    /// As [`serve_ordered`](State::serve_ordered), of the call that the worker makes or waits for;
    /// the result is left in `ObjectsHere::result`.
    fn serve_own(&mut self, call: CallRef<'_>) -> Option<Result<(), Refusal>> {
        let mut result = std::mem::take(&mut self.here.result);
        result.clear();
        result.shrink_to(MOST_KEPT);
        let served = self.serve_ordered(self.id, call, &mut result);
        self.here.result = result;
        served
    }

    /// At the sequencer: numbers and executes what another has submitted, and sends it to all.
    pub(super) fn take_submitted(
        &mut self,
        from: NodeId,
        call: CallRef<'_>,
        submitted: &Submitted,
        send: &mut dyn FnMut(NodeId, [&[u8]; 2]),
    ) -> Option<Wake> {
        let group = &self.here.group;
        if self.here.multicasts && group.members().len() > 2
            || !group.numbers_alone(from, submitted)
        {
            return None;
        }
        let waited = !self.may_go_on();
        self.serve_others(from, call)?;
        let body = ordered::operate(call);
        let numbered = self.here.group.number_alone(from, submitted, body);
        let head = ordered::data_head(call, &numbered);
        let head = head.expect("its view has come in as many bytes, and a window is no longer");
        // Its caller first, who waits for it.
        send(from, [&head, call.arguments]);
        let others: SmallVec<[NodeId; 16]> = self.here.group.others().collect();
        for to in others {
            if to != from {
                send(to, [&head, call.arguments]);
            }
            let bytes = head.len() + call.arguments.len();
            self.counting.sent_as(MessageKind::Ordered, bytes);
            self.protocol.count_objects(to, true);
        }
        self.protocol.count_objects(from, false);
        Some(self.wakes(waited))
    }

    /// Executes what the sequencer has numbered.
    pub(super) fn take_numbered(
        &mut self,
        from: NodeId,
        call: CallRef<'_>,
        numbered: &Numbered,
    ) -> Option<Wake> {
        if !self.here.group.takes_alone(from, numbered) {
            return None;
        }
        let waited = !self.may_go_on();
        let (origin, number) = (numbered.origin, call.id.number);
        // The result of what was started before is looked for elsewhere, whoever waits for it.
        let here = &self.here;
        let is_waited_for = here.awaited == Some(number) && here.submitted == Some(number);
        let outcome = match origin == self.id && is_waited_for {
            true => Some(self.serve_own(call)?),
            false if origin != self.id => {
                self.serve_others(origin, call)?;
                None
            }
            false => return None,
        };
        self.here.group.take_alone(numbered, ordered::operate(call));
        self.protocol.count_objects(from, false);
        match outcome {
            Some(Ok(())) => self.answered(number),
            Some(Err(refusal)) => self.finished(number, Err(refusal)),
            None => {}
        }
        Some(self.wakes(waited))
    }
}

impl Link<'_> {
    /// Has a call that writes a replicated object multicast past machine and group, where that can
    /// be done at once, and waits until it was executed here. Its arguments are in
    /// `ObjectsHere::arguments`.
    pub(super) fn multicast_bare(
        &self,
        call: &mut dhole_heap::MonitorCall<'_, State>,
        wanted: Wanted,
        called: &CallRef<'static>,
    ) -> Result<Option<Over>, Box<Failure>> {
        let state = call.split().1;
        if !self.machine.sends_bytes()
            || !state.may_be_bare()
            || state.here.arguments.len() > MOST_BYTES
        {
            return Ok(None);
        }
        let host = Hosting {
            copies: &mut state.here.copies,
            protocol: &state.protocol,
        };
        if !state.here.machine.is_ordered_alone(wanted.object, &host) {
            return Ok(None);
        }
        let id = state.here.machine.next_call();
        let arguments = std::mem::take(&mut state.here.arguments);
        let whole = CallRef {
            id,
            arguments: &arguments,
            ..*called
        };
        let bytes = whole.ordered_bytes();
        let made = match state.here.group.broadcasts_alone(bytes) {
            None => None,
            Some(submitted) if submitted.view.sequencer == self.node.id => {
                self.multicasts_own(state, whole, &submitted).map(Some)
            }
            Some(submitted) => self
                .submits(state, wanted, whole, &submitted)
                .then_some(None),
        };
        state.here.arguments = arguments;
        match made {
            None => Ok(None),
            Some(Some(outcome)) => {
                self.send(call);
                Ok(Some(match outcome {
                    Ok(()) => Over::Answered,
                    Err(refusal) => Over::Finished(Box::new(Err(refusal))),
                }))
            }
            Some(None) => self.over_of(call, id.number, Ok(())).map(Some),
        }
    }

    /// At the sequencer: numbers and executes a call of the worker's, and sends it to all others.
    fn multicasts_own(
        &self,
        state: &mut State,
        call: CallRef<'_>,
        submitted: &Submitted,
    ) -> Option<Result<(), Refusal>> {
        let me = self.node.id;
        let others: SmallVec<[NodeId; 16]> = state.here.group.others().collect();
        if others.len() > 1 && state.here.multicasts {
            return None;
        }
        let outcome = state.serve_own(call)?;
        let State { here, counting, .. } = &mut *state;
        let ObjectsHere { machine, group, .. } = here;
        machine.new_call();
        counting.all.broadcasts += 1;
        let numbered = group.number_alone(me, submitted, ordered::operate(call));
        let head = ordered::data_head(call, &numbered);
        for to in others {
            state.protocol.count_objects(to, true);
            let sent = head.as_ref().filter(|head| {
                let parts = [&head[..], call.arguments];
                self.machine.send_bytes(me, to, parts, Notify::Lazy)
            });
            if let Some(head) = sent {
                let bytes = head.len() + call.arguments.len();
                state.counting.sent_as(MessageKind::Ordered, bytes);
            } else {
                let message = Message::Objects(Box::new(ordered::data(call, &numbered)));
                state.send(to, message, Payload::NONE, &mut self.out.borrow_mut());
            }
        }
        Some(outcome)
    }

    /// Elsewhere: sends a call of the worker's to the sequencer; whether that could be done.
    fn submits(
        &self,
        state: &mut State,
        wanted: Wanted,
        call: CallRef<'_>,
        submitted: &Submitted,
    ) -> bool {
        let (me, to, number) = (self.node.id, submitted.view.sequencer, call.id.number);
        let Some(head) = ordered::submit_head(call, submitted) else {
            return false;
        };
        let parts = [&head[..], call.arguments];
        if !self.machine.send_bytes(me, to, parts, Notify::Now) {
            return false;
        }
        // What else there is to do is done while the call is on its way.
        let State {
            here,
            protocol,
            counting,
            ..
        } = state;
        here.machine.new_call();
        counting.all.broadcasts += 1;
        let bytes = call.ordered_bytes();
        here.group.submit_alone(bytes, ordered::operate(call));
        (here.awaited, here.submitted) = (Some(number), Some(number));
        protocol.awaits(wanted.awaits(), wanted.site);
        protocol.count_objects(to, true);
        let bytes = head.len() + call.arguments.len();
        counting.sent_as(MessageKind::Ordered, bytes);
        true
    }
}
