//! Misses of one object between processes that nothing else comes of, which are most: the question,
//! the answer and what is done with it are no events, commands and messages but bytes, as they lie.

#[cfg(test)]
mod tests;

use dhole_heap::{HeapMut, MonitorCall};
use dhole_model::{MessageKind, NodeId};
use dhole_net::{Payload, Wake};
use dhole_protocol::single::{self, Single};
use dhole_protocol::{Answer, Sent, Unread, Wanted, barrier_round};

use crate::node::{State, must, worker_is};
use crate::worker::{Failure, Link};

/// Copying larger objects takes longer than all else.
const MOST_BYTES: usize = 2048;

impl State {
    /// Takes a message by its bytes, where it is one of those that can be taken so; `answer` is
    /// given what this node says in turn, and to whom.
    pub(crate) fn take_bytes(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        heap: &mut HeapMut<'_>,
        answer: &mut dyn FnMut(NodeId, [&[u8]; 2]),
    ) -> Option<Wake> {
        if barrier_round::is_begun_by(bytes) {
            return self.take_round(from, bytes, answer);
        }
        let answer = &mut |parts: [&[u8]; 2]| answer(from, parts);
        match single::is_begun_by(bytes) {
            true => self.take_single(from, bytes, heap, answer),
            false => self.take_bare(from, bytes, answer),
        }
    }

    /// Takes a message of one object by its bytes, its payload behind it, where that is all that
    /// happens; `answer` is given what its sender is to be told.
    fn take_single(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        heap: &mut HeapMut<'_>,
        answer: &mut dyn FnMut([&[u8]; 2]),
    ) -> Option<Wake> {
        if !self.may_be_bare() {
            return None;
        }
        match single::decode(bytes)? {
            (
                Single::Fetch {
                    round,
                    wanted,
                    beside: 0,
                },
                [],
            ) => self.answer_singly(from, (round, wanted), heap, answer),
            (Single::Reply { round, sent, keep }, object) => {
                self.install_singly(from, (round, sent, keep), object, heap)
            }
            _ => None,
        }
    }

    fn answer_singly(
        &mut self,
        from: NodeId,
        (round, wanted): (u32, Wanted),
        heap: &mut HeapMut<'_>,
        answer: &mut dyn FnMut([&[u8]; 2]),
    ) -> Option<Wake> {
        let (oid, worker) = (wanted.oid, worker_is(heap.presence()));
        self.object.clear();
        let bytes = heap.gather_alone(oid, MOST_BYTES, &mut self.object)?;
        let answered = self.protocol.answer_singly(from, wanted, worker)?;
        if answered.make_clean {
            must(heap.make_clean(oid), "the worker is in a call");
        }
        let Answer { sent, keep, .. } = answered;
        let reply = Single::Reply { round, sent, keep };
        answer([&single::bytes(reply), &self.object]);
        // What is counted can be counted while the reply is on its way.
        let bytes = reply.wire_bytes() + bytes as u64;
        self.counting.sent_of(MessageKind::FetchReply, bytes);
        Some(Wake::No)
    }

    fn install_singly(
        &mut self,
        from: NodeId,
        (round, sent, keep): (u32, Sent, bool),
        object: &[u8],
        heap: &mut HeapMut<'_>,
    ) -> Option<Wake> {
        if !self.protocol.is_answered_singly(from, round, sent) {
            return None;
        }
        // What cannot be installed ends the run, as it does elsewhere.
        let name = heap.install_alone(sent.oid, object)?;
        let waited = !self.may_go_on();
        self.protocol.install_singly(sent, keep);
        self.woken();
        let of_type = self.counting.of_type(name);
        of_type.installed += 1;
        of_type.installed_bytes += object.len() as u64;
        Some(self.wakes(waited))
    }
}

impl Link<'_> {
    /// Asks for an object that nothing else comes of, and waits for it; whether that is all that
    /// happens. Else nothing has.
    pub(crate) fn miss_singly(
        &self,
        call: &mut MonitorCall<'_, State>,
        missed: &Unread,
    ) -> Result<bool, Box<Failure>> {
        let (heap, state) = call.split();
        if !self.machine.sends_bytes() || !self.may_ask_singly(state) {
            return Ok(false);
        }
        let Some((to, fetch)) = state.protocol.ask_singly(missed) else {
            return Ok(false);
        };
        let bytes = single::bytes(fetch);
        let told = self.machine.send_bytes(self.node.id, to, [&bytes, &[]]);
        // What is counted can be counted while that is on its way.
        match told {
            true => state
                .counting
                .sent_of(MessageKind::Fetch, fetch.wire_bytes()),
            false => {
                let out = &mut self.out.borrow_mut();
                state.send(to, fetch.into(), Payload::NONE, out);
            }
        }
        let counting = &mut state.counting;
        counting.all.fetch_rounds += 1;
        counting.all.misses += 1;
        if let Some(info) = heap.type_of(missed.oid) {
            counting.of_type(info.name).misses += 1;
        }
        self.outcome(call)?;
        Ok(true)
    }

    /// Whether nobody is answered first, and nothing else is waited for.
    fn may_ask_singly(&self, state: &State) -> bool {
        state.may_be_bare()
            && !state.protocol.has_deferred()
            && !state.is_over()
            && state.here.numbered_by().is_none()
            && self.out.borrow().is_empty()
    }
}
