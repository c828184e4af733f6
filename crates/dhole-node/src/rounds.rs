//! Rounds of barriers between processes: what a node says in them goes past the outbox where nobody
//! has news, and the worker looks for the others' at once.

use dhole_heap::MonitorCall;
use dhole_model::{CallSite, NodeId, Notify};
use dhole_net::{Payload, Wake};
use dhole_protocol::{BarrierRound, Message, barrier_round};
use smallvec::SmallVec;

use crate::node::State;
use crate::worker::{Failure, Link};

impl State {
    /// The worker arrives at a barrier that begins with rounds, and that is all that happens: what
    /// it says there. It goes on when the others are there, and what they come after was delivered
    /// here.
    fn arrive_in_place(&mut self, site: CallSite) -> Option<Said> {
        if !self.may_be_bare() {
            return None;
        }
        let mut said = Said::new();
        let say = &mut |to, round| said.push((to, round));
        if self.protocol.arrive_in_place(site, say)? {
            self.woken();
        }
        Some(said)
    }

    /// Takes what another node says in a round, by its bytes, where nothing comes of it but that
    /// this node says more, which `answer` is given, or goes on.
    pub(crate) fn take_round(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        answer: &mut dyn FnMut(NodeId, [&[u8]; 2]),
    ) -> Option<Wake> {
        let (round, delivered) = barrier_round::decode(bytes)?;
        if !self.may_be_bare() || !self.may_have_come_to(delivered) {
            return None;
        }
        let mut said = Said::new();
        let say = &mut |to, round| said.push((to, round));
        let goes_on = self.protocol.hear_in_place(from, &round, say)?;
        self.comes_after(delivered);
        // After what this node hears: who hears of it hears of that.
        let delivered = self.delivered();
        for (to, round) in said {
            self.object.clear();
            barrier_round::encode(&round, delivered, &mut self.object);
            answer(to, [&self.object, &[]]);
            let message = Message::BarrierRound(round).after(delivered);
            self.counting.sent(&message, 0);
        }
        if goes_on {
            self.woken();
        }
        Some(self.wakes(goes_on))
    }
}

/// What a node says at once: one round as a rule, and no more than there are.
type Said = SmallVec<[(NodeId, BarrierRound); 2]>;

impl Link<'_> {
    /// Arrives at a barrier where no node brings a value, and waits there; whether the barrier
    /// begins with rounds, and that is all that happens. Else nothing has.
    pub(crate) fn arrive_in_place(
        &self,
        call: &mut MonitorCall<'_, State>,
        site: CallSite,
    ) -> Result<bool, Box<Failure>> {
        if !self.machine.sends_bytes() {
            return Ok(false);
        }
        let state = call.split().1;
        let Some(said) = state.arrive_in_place(site) else {
            return Ok(false);
        };
        for (to, round) in said {
            self.say(state, to, round);
        }
        self.outcome(call)?;
        Ok(true)
    }

    fn say(&self, state: &mut State, to: NodeId, round: BarrierRound) {
        let delivered = state.delivered();
        let mut out = self.out.borrow_mut();
        let said = out.is_empty() && {
            let bytes = &mut state.object;
            bytes.clear();
            barrier_round::encode(&round, delivered, bytes);
            let (me, bytes) = (self.node.id, [&bytes[..], &[]]);
            self.machine.send_bytes(me, to, bytes, Notify::Lazy)
        };
        // What is counted can be counted while that is on its way.
        let message = Message::BarrierRound(round).after(delivered);
        match said {
            true => state.counting.sent(&message, 0),
            false => state.send(to, message, Payload::NONE, &mut out),
        }
    }
}

#[cfg(test)]
mod tests;
