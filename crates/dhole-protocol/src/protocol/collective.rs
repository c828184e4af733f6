//! Collectives as the worker passes through them: what it waits for, and what it tells whom.

use dhole_model::{CallSite, NodeId};

use super::Protocol;
use crate::collective_call::{Called, CalledAt, Mismatch, Way};
use crate::command::{Command, Commands, Event};
use crate::error::ProtocolError;
use crate::sync::collective::{Collective, CollectiveEvent, CollectiveMessage, Legs, mismatch};
use crate::{BarrierId, Message, WaitingFor};

impl Protocol {
    /// Which ways the collective goes that the worker is in.
    pub fn legs(&self) -> Option<Legs> {
        self.collectives.legs()
    }

    pub(super) fn collective(
        &mut self,
        event: CollectiveEvent,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if let CollectiveEvent::Enter { kind, of, site } = event {
            let number = self.barrier.next_number();
            let what = Called::Collective(kind);
            self.check_call(what, of, site)?;
            self.check_heard(what, site)?;
            self.coherence.end_interval(out);
            self.collectives
                .enter(Collective { number, kind, of }, site);
            return self.take_early(out);
        }
        debug_assert!(self.collectives.is_next(event), "{event:?}");
        self.coherence.end_interval(out);
        if event == CollectiveEvent::Up {
            if let Some((parent, at, site)) = self.collectives.give_up() {
                self.give(parent, (at, Way::Up, site), out);
            }
            if !self.collectives.is_in_one() {
                self.barrier.pass();
            }
            return self.take_early(out);
        }
        if event == CollectiveEvent::Across {
            if let Some((at, site)) = self.collectives.give_across() {
                let (me, nodes) = (self.me, self.coherence.intervals.time().nodes());
                for other in (0..nodes).map(NodeId::at).filter(|it| *it != me) {
                    self.give(other, (at, Way::Across, site), out);
                }
            }
            return self.take_early(out);
        }
        if let Some((children, at, site)) = self.collectives.give_down() {
            for child in children {
                self.give(child, (at, Way::Down, site), out);
            }
            self.barrier.pass();
        }
        Ok(())
    }

    /// The worker is about to call something that all nodes call, in the same order.
    pub(super) fn check_call(
        &self,
        what: Called,
        of: u64,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        let node = self.me;
        let next = self.barrier.next_number();
        let call = CalledAt { node, what, site };
        self.collectives.check_call(next, call, of)
    }

    /// As [`check_call`](Protocol::check_call), where the event is an arrival.
    pub(super) fn check_arrival(&self, event: &Event) -> Result<(), ProtocolError> {
        let (what, site) = match event {
            Event::Finish => (Called::End, CallSite::runtime("the end of the run")),
            Event::Arrive { once: true, site } => (Called::Once, *site),
            Event::Arrive { site, .. }
            | Event::Switch { site, .. }
            | Event::SwitchArray { site, .. }
            | Event::ArriveToCollect { site } => (Called::Barrier, *site),
            _ => return Ok(()),
        };
        self.check_call(what, 0, site)
    }

    /// A node, perhaps this one, arrives at a barrier: no collective here may have its number.
    pub(super) fn check_arrived(
        &self,
        node: NodeId,
        barrier: BarrierId,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        let what = Called::at(barrier);
        let there = CalledAt { node, what, site };
        self.collectives.check_arrival(barrier.number(), there)
    }

    /// The worker is about to call a collective: no node may be known at a barrier of its number.
    fn check_heard(&self, what: Called, site: CallSite) -> Result<(), ProtocolError> {
        let Some((other, other_site)) = self.barrier.heard_before() else {
            return Ok(());
        };
        let called = |node, what, site| CalledAt { node, what, site };
        Err(ProtocolError::Mismatch(Box::new(Mismatch {
            here: called(self.me, what, site),
            there: called(other, Called::Barrier, other_site),
        })))
    }

    /// Tells a neighbour what it may lack, beside the value that goes to it.
    fn give(
        &mut self,
        to: NodeId,
        (at, way, site): (Collective, Way, CallSite),
        out: &mut Commands,
    ) {
        let mut seen = self.coherence.intervals.seen_by_all().clone();
        self.collectives
            .seen_by(to)
            .into_iter()
            .for_each(|by| seen.merge(by));
        let news = self.coherence.intervals.since(&seen);
        self.collectives.sees(to, &news.time);
        let message = CollectiveMessage {
            at,
            way,
            site,
            news,
        };
        self.say(to, Message::Collective(Box::new(message)), out);
    }

    /// Takes what came before the worker waits for it. The worker goes on if that is all, and else
    /// waits.
    fn take_early(&mut self, out: &mut Commands) -> Result<(), ProtocolError> {
        while let Some((from, message)) = self.collectives.next_early().cloned() {
            self.hear(from, &message, out)?;
        }
        match self.collectives.wait() {
            Some((wait, site)) => {
                self.wait_for.begin(WaitingFor::Collective(wait), site);
            }
            None => self.go_on(out),
        }
        Ok(())
    }

    fn hear(
        &mut self,
        from: NodeId,
        message: &CollectiveMessage,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let records = self.coherence.check(from, &message.news)?;
        self.coherence.apply(&message.news, records, out);
        self.collectives.heard(from, message);
        Ok(())
    }

    /// A value has come.
    pub(super) fn collected(
        &mut self,
        from: NodeId,
        message: CollectiveMessage,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let next = self.barrier.next_number();
        self.collectives.check(from, &message, next)?;
        let CollectiveMessage { at, way, .. } = message;
        if let Some((barrier, site)) = self.barrier.waits_at()
            && at.number == next
        {
            let (node, what) = (self.me, Called::at(barrier));
            return Err(mismatch(CalledAt { node, what, site }, from, &message));
        }
        let number = at.number;
        let collected = Command::Collected { from, number, way };
        if !self.collectives.awaits(&message) {
            out.push(collected);
            self.collectives.keep(from, message);
            return Ok(());
        }
        let before = out.len();
        self.hear(from, &message, out)?;
        out.insert(before, collected);
        if self.collectives.wait().is_none() {
            self.go_on(out);
        }
        Ok(())
    }
}
