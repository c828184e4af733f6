//! Rounds of barriers: the worker arrives, and hears what other nodes say.

use dhole_heap::MonitorCall;
use dhole_model::{CallSite, NodeId, WaitCause};
use dhole_protocol::{BarrierRound, Event, ProtocolError};

use crate::node::State;
use crate::step::Step;
use crate::waits::Awaited;
use crate::worker::{Failure, Link};

impl State {
    /// The worker arrives at a barrier where no node brings a value.
    fn arrive(&mut self, site: CallSite, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        if !self.protocol.begins_with_rounds() {
            return self.step(Event::Arrive { once: false, site }, step);
        }
        self.directly(step, |protocol, _, fx| protocol.arrive_at_rounds(site, fx))?;
        Ok(())
    }

    /// Takes what another node says in a round, to which so much of the objects' order was
    /// delivered. `None` where it is to be taken as a message; then nothing has happened.
    pub(crate) fn take_round(
        &mut self,
        from: NodeId,
        (said, delivered): (BarrierRound, u64),
        step: &mut Step<'_, '_>,
    ) -> Option<Result<(), ProtocolError>> {
        if !self.may_be_bytes() || !self.may_have_come_to(delivered) {
            return None;
        }
        self.comes_after(delivered);
        let taken = self.directly(step, |protocol, _, fx| protocol.round(from, said, fx));
        Some(taken.map(drop))
    }
}

impl Link<'_> {
    /// Arrives at a barrier where no node brings a value, and waits there.
    pub(crate) fn arrive(
        &self,
        call: &mut MonitorCall<'_, State>,
        site: CallSite,
    ) -> Result<(), Box<Failure>> {
        self.flush_before(call, Some(&Event::Arrive { once: false, site }))?;
        self.awaits(Awaited::by(WaitCause::Barrier));
        call.split().1.membership.cut()?;
        self.acts(call, |state, step| state.arrive(site, step))?;
        self.synchronised(call);
        self.outcome(call)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
