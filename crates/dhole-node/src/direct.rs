//! Effects of the protocol that are carried out as it calls them, under the node's lock: messages
//! go to the port as bytes, and objects are installed, before the step is over.
//!
//! An effect goes *at once* where nothing is recorded or queued that comes before it; else it is
//! recorded, and carried out with the rest after the step, in its order.

#[cfg(test)]
mod tests;

use dhole_heap::HeapMut;
use dhole_model::{MessageKind, NodeId, Notify, Oid};
use dhole_protocol::{
    BarrierRound, Command, Commands, Effects, Fetch, FetchReply, Message, PayloadOf, Protocol,
    ProtocolError, RegionCommand, Reply, Sent, Unread, WorkerIs,
};

use crate::count::Counting;
use crate::graphs::{Graphs, Way};
use crate::install::install;
use crate::node::State;
use crate::payload_check::check_payload;
use crate::read_ahead::came_ahead;
use crate::step::{Step, must, worker_is};

/// The most bytes of objects that a reply takes from the scratch buffer. Copying more takes longer
/// than all else, and goes by a payload of its own.
const MOST_BYTES: usize = 2048;

/// Effects that are carried out as they come.
pub(crate) struct Direct<'a, 's, 'g> {
    counting: &'a mut Counting,
    commands: &'a mut Commands,
    /// What the objects name that were taken so far.
    graphs: &'a mut Graphs,
    /// The bytes of a message.
    bytes: &'a mut Vec<u8>,
    done: &'a mut bool,
    step: &'a mut Step<'s, 'g>,
    /// Up to where the order of the objects has come here.
    delivered: u64,
    /// Nodes may be lost: then messages go with the others, for whom they are for is noted there.
    survives: bool,
    /// Something was asked for.
    asks: bool,
    /// What could not be done.
    failed: Option<ProtocolError>,
}

impl Direct<'_, '_, '_> {
    /// Whether the next effect may be carried out at once.
    #[inline]
    fn goes_at_once(&self) -> bool {
        self.commands.is_empty() && self.failed.is_none()
    }

    /// Whether the next message may be sent at once, if the port has room.
    #[inline]
    fn sends_at_once(&self) -> bool {
        let step = &self.step;
        self.goes_at_once() && !self.survives && step.at_once.is_some() && step.out.is_empty()
    }

    /// Sends a message of so many bytes, behind which its payload lies, where it
    /// [may go at once](Direct::sends_at_once); whether the port had room.
    #[inline]
    fn send(&mut self, to: NodeId, length: usize, notify: Notify) -> bool {
        let (message, payload) = self.bytes.split_at(length);
        let at_once = self.step.at_once.as_mut();
        at_once.is_some_and(|at_once| at_once(to, [message, &[], payload], notify))
    }

    /// Writes a reply and gathers its objects behind it. How long it is without them; `None` where
    /// it may not be sent so: something goes along with them, or they are not small.
    #[inline]
    fn gather(&mut self, reply: &Reply) -> Option<usize> {
        if !reply.pre_images.is_empty() || !reply.follow.is_none() {
            return None;
        }
        self.bytes.clear();
        reply.message.encode(self.bytes);
        let (length, mut room) = (self.bytes.len(), MOST_BYTES);
        for sent in &reply.message.sent {
            room -= self.step.heap.gather_small(sent.region, room, self.bytes)?;
        }
        Some(length)
    }
}

impl Effects for Direct<'_, '_, '_> {
    #[inline]
    fn commands(&mut self) -> &mut Commands {
        self.commands
    }

    #[inline]
    fn fetch(&mut self, to: NodeId, fetch: Fetch) {
        self.asks = true;
        if self.sends_at_once() {
            self.bytes.clear();
            fetch.encode(self.bytes);
            if self.send(to, self.bytes.len(), Notify::Now) {
                // What is counted can be counted while it is on its way.
                self.counting.sent_as(MessageKind::Fetch, self.bytes.len());
                self.counting.asks(&fetch, self.step.heap);
                return;
            }
        }
        let message = Message::Fetch(fetch);
        self.commands.push(Command::Send { to, message });
    }

    #[inline]
    fn round(&mut self, to: NodeId, said: BarrierRound) {
        if self.sends_at_once() {
            self.bytes.clear();
            said.encode(self.delivered, self.bytes);
            if self.send(to, self.bytes.len(), Notify::Lazy) {
                let bytes = self.bytes.len();
                self.counting.sent_as(MessageKind::BarrierRound, bytes);
                return;
            }
        }
        let message = Message::BarrierRound(said);
        self.commands.push(Command::Send { to, message });
    }

    #[inline]
    fn reply(&mut self, reply: Reply) {
        if self.sends_at_once()
            && let Some(length) = self.gather(&reply)
            && self.send(reply.to, length, Notify::Lazy)
        {
            let bytes = self.bytes.len();
            self.counting.sent_as(MessageKind::FetchReply, bytes);
            return;
        }
        self.commands
            .push(Command::Objects(RegionCommand::Reply(reply)));
    }

    #[inline]
    fn install(&mut self, sent: Sent) {
        if !self.goes_at_once() {
            return self
                .commands
                .push(Command::Objects(RegionCommand::Install(sent)));
        }
        match install(sent, self.counting, self.graphs, self.step) {
            Ok(()) => came_ahead(
                (sent.region, Way::Message),
                self.graphs,
                self.counting,
                self.step.heap,
            ),
            Err(cause) => self.failed = Some(cause),
        }
    }

    #[inline]
    fn make_clean(&mut self, oid: Oid) {
        if !self.goes_at_once() || self.step.heap.publishes() {
            return self
                .commands
                .push(Command::Objects(RegionCommand::MakeClean(oid)));
        }
        must(self.step.heap.make_clean(oid), "the worker is in a call");
    }

    #[inline]
    fn done(&mut self) {
        if !self.goes_at_once() || self.survives {
            return self.commands.push(Command::Done);
        }
        *self.done = true;
    }
}

impl Counting {
    /// Counts what is asked for.
    #[inline]
    pub(crate) fn asks(&mut self, fetch: &Fetch, heap: &HeapMut<'_>) {
        let Fetch { wanted, beside, .. } = fetch;
        let missed = &wanted[..wanted.len() - usize::from(*beside)];
        self.all.misses += missed.len() as u64;
        self.all.asked_beside += u64::from(*beside);
        for info in missed
            .iter()
            .filter_map(|wanted| heap.type_of(wanted.region))
        {
            self.of_type(info.name).misses += 1;
        }
    }
}

impl State {
    /// The worker misses objects.
    ///
    /// # Errors
    /// When one of them was freed, or the run does not go on.
    pub(crate) fn read_misses(
        &mut self,
        misses: &[Unread],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let asked = self.directly(step, |protocol, _, fx| protocol.read_misses(misses, fx))?;
        if self.counts_members(step) || asked {
            self.read_faulted(false, step);
        }
        Ok(())
    }

    /// Takes a fetch. `None` where it is to be taken as a message; then nothing has happened.
    pub(crate) fn take_fetch(
        &mut self,
        from: NodeId,
        fetch: Fetch,
        step: &mut Step<'_, '_>,
    ) -> Option<Result<(), ProtocolError>> {
        if !self.may_be_bytes() {
            return None;
        }
        self.withdraw_missed(&fetch, step.heap);
        let taken = self.directly(step, |protocol, worker, fx| {
            protocol.fetch(from, fetch, worker, fx)
        });
        Some(taken.map(drop))
    }

    /// Takes the reply to a fetch, as [`take_fetch`](State::take_fetch).
    pub(crate) fn take_reply(
        &mut self,
        from: NodeId,
        reply: FetchReply,
        step: &mut Step<'_, '_>,
    ) -> Option<Result<(), ProtocolError>> {
        if !self.may_be_bytes() {
            return None;
        }
        if let Err(cause) = check_payload(from, PayloadOf::Objects(&reply.sent), step) {
            return Some(Err(cause));
        }
        let taken = self.directly(step, |protocol, _, fx| {
            protocol.fetch_reply(from, reply, fx)
        });
        Some(taken.map(drop))
    }

    /// Lets the protocol take a step whose effects are carried out as they come, and then those
    /// that it recorded. Whether it asked for something.
    #[inline]
    pub(crate) fn directly<A>(
        &mut self,
        step: &mut Step<'_, '_>,
        act: A,
    ) -> Result<bool, ProtocolError>
    where
        A: FnOnce(&mut Protocol, WorkerIs, &mut Direct<'_, '_, '_>) -> Result<(), ProtocolError>,
    {
        let worker = worker_is(step.heap.presence());
        let delivered = self.delivered();
        let mut fx = Direct {
            delivered,
            counting: &mut self.counting,
            commands: &mut self.commands,
            graphs: &mut self.graphs,
            bytes: &mut self.object,
            done: &mut self.done,
            survives: self.membership.is_on(),
            asks: false,
            failed: None,
            step,
        };
        let stepped = act(&mut self.protocol, worker, &mut fx);
        let Direct { asks, failed, .. } = fx;
        if stepped.is_ok() && failed.is_none() && self.commands.is_empty() {
            self.graphs.done();
            return Ok(asks);
        }
        let done = self.carry_out_all(failed.map_or(Ok(()), Err), step);
        self.notes_records();
        self.graphs.done();
        stepped.and(done).map(|()| asks)
    }
}
