//! Misses of objects, whose effects may be carried out as they come ([`Effects`]).

use dhole_model::NodeId;

use super::Protocol;
use crate::command::{Unread, WorkerIs};
use crate::effects::Effects;
use crate::error::ProtocolError;
use crate::message::check;
use crate::transfer::{Fetch, FetchReply};

impl Protocol {
    /// As [`Event::ReadMisses`](crate::Event::ReadMisses).
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when one of the objects is; then nothing was done.
    pub fn read_misses(
        &mut self,
        misses: &[Unread],
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        self.worker_acts();
        let before = fx.commands().len();
        let acted = self.coherence.read_misses(misses, fx);
        self.ends_step(acted, before, fx)
    }

    /// As the delivery of a [`Message::Fetch`](crate::Message::Fetch).
    ///
    /// # Errors
    /// [`ProtocolError`] when no sound node sends that; then nothing was done.
    pub fn fetch(
        &mut self,
        from: NodeId,
        fetch: Fetch,
        worker: WorkerIs,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        self.check_sender(from)
            .and_then(|()| check::fetch(&fetch, self.coherence.intervals.time().nodes()))
            .map_err(|what| ProtocolError::BadMessage { from, what })?;
        let before = fx.commands().len();
        let acted = self.coherence.fetch(from, fetch, worker, fx);
        self.ends_step(acted, before, fx)
    }

    /// As the delivery of a [`Message::FetchReply`](crate::Message::FetchReply).
    ///
    /// # Errors
    /// As there.
    pub fn fetch_reply(
        &mut self,
        from: NodeId,
        reply: FetchReply,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        self.check_sender(from)
            .and_then(|()| check::fetch_reply(&reply, self.coherence.intervals.time().nodes()))
            .map_err(|what| ProtocolError::BadMessage { from, what })?;
        let before = fx.commands().len();
        // Where the run is over the worker computes, and what it sees may not change.
        let acted = match self.over {
            true => Ok(()),
            false => self.coherence.fetch_reply(from, reply, fx),
        };
        self.ends_step(acted, before, fx)
    }

    pub(super) fn check_sender(&self, from: NodeId) -> Result<(), &'static str> {
        match from.index() < self.coherence.intervals.time().nodes() {
            true => Ok(()),
            false => Err("its sender is not in the cluster"),
        }
    }

    /// Whatever a step does, it tells at a barrier what is done here since.
    #[inline]
    pub(super) fn ends_step(
        &mut self,
        acted: Result<(), ProtocolError>,
        before: usize,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        debug_assert!(
            acted.is_ok() || fx.commands().len() == before,
            "{acted:?}: a step that fails has called no effect"
        );
        acted?;
        let out = fx.commands();
        let last = self.coherence.intervals.time().of(self.me);
        let told = match self.barrier.has_untold(last) || self.has_updates() {
            true => self.tell_more(out),
            false => Ok(()),
        };
        self.count_sent(out.get(before..).unwrap_or_default());
        told
    }
}
