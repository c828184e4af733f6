//! Commands of the update and the home protocol: pushes, flushes and merges.

use std::sync::Arc;

use dhole_heap::diff_ranges;
use dhole_model::{CallSite, NodeId, Oid, VectorTime};
use dhole_net::Payload;
use dhole_protocol::{Changed, Commands, Flushed, FlushedAt, Message, ProtocolError, Pushed, Sent};

use crate::node::State;
use crate::step::{Step, not_stored};

impl State {
    /// Sends the bytes of objects to a node that read them before.
    pub(crate) fn push(
        &mut self,
        to: NodeId,
        objects: &[Sent],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = objects.iter().map(|sent| {
            let bytes = step.heap.gather(sent.oid, payload.buffer());
            let bytes = bytes.map_err(|cause| not_stored(sent.oid, &cause))? as u64;
            Ok(Pushed { sent: *sent, bytes })
        });
        let pushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.pushes += objects.len() as u64;
        self.send(to, Message::Update { pushed }, payload, step.out);
        Ok(())
    }

    /// Sends what the worker has changed in objects to their home.
    pub(crate) fn flush(
        &mut self,
        (to, number): (NodeId, u32),
        objects: &[Oid],
        at: Option<Arc<FlushedAt>>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = objects.iter().map(|&oid| {
            let bytes = step.heap.gather_diff(oid, payload.buffer());
            let bytes = bytes.map_err(|cause| not_stored(oid, &cause))? as u64;
            Ok(Flushed { oid, bytes })
        });
        let flushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.diffs += objects.len() as u64;
        self.counting.all.diff_bytes += payload.len() as u64;
        let message = Message::Flush {
            number,
            flushed,
            at,
        };
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Tells the protocol which leaves of an object at home here the worker has changed.
    pub(crate) fn compare(
        &mut self,
        oid: Oid,
        site: Option<CallSite>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut diff = step.pool.take();
        let gathered = step.heap.gather_diff(oid, diff.buffer());
        gathered.map_err(|cause| not_stored(oid, &cause))?;
        let by = self.id();
        self.changed(Changed { oid, by, site }, &diff, None, step)?;
        step.pool.give_back(diff);
        Ok(())
    }

    /// Tells the protocol that an object at home here was changed by these differences.
    fn changed(
        &mut self,
        changed: Changed,
        diff: &[u8],
        time: Option<&VectorTime>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut found = Commands::new();
        let leaves = diff_ranges(diff);
        self.protocol
            .changed_at_home(changed, leaves, time, &mut found);
        found
            .into_iter()
            .try_for_each(|command| self.carry_out(command, step))
    }

    /// The next bytes of the payload that is being delivered.
    pub(crate) fn next_bytes<'a>(
        step: &mut Step<'a, '_>,
        from: NodeId,
        bytes: u64,
    ) -> Result<&'a [u8], ProtocolError> {
        let (next, rest) = split(step.payload, bytes, from)?;
        step.payload = rest;
        Ok(next)
    }

    /// Keeps the payload that is being delivered until the worker's next call.
    pub(crate) fn hold(&mut self, from: NodeId, step: &mut Step<'_, '_>) {
        let mut payload = step.pool.take();
        payload.extend(step.payload);
        self.held.push((from, payload));
    }

    /// Changes objects by the differences in the payload, or in the one that was held.
    pub(crate) fn merge(
        &mut self,
        from: NodeId,
        flushed: &[Flushed],
        at: Option<&FlushedAt>,
        held: bool,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let place = self.held.iter().position(|(node, _)| *node == from);
        let payload = match place.filter(|_| held) {
            Some(place) => self.held.swap_remove(place).1,
            None => Payload::NONE,
        };
        let mut rest = if held { &payload[..] } else { step.payload };
        for (place, Flushed { oid, bytes }) in flushed.iter().enumerate() {
            let (diff, behind) = split(rest, *bytes, from)?;
            rest = behind;
            if step.heap.is_freed(*oid) {
                continue;
            }
            self.unpublish(*oid, step.heap);
            let merged = step.heap.merge(*oid, diff);
            merged.map_err(|refused| not_stored(*oid, &refused))?;
            if let Some(at) = at {
                let (oid, by, site) = (*oid, from, at.sites[place]);
                self.changed(Changed { oid, by, site }, diff, Some(&at.time), step)?;
            }
            self.publish(*oid, step.heap);
        }
        step.pool.give_back(payload);
        Ok(())
    }
}

pub(crate) fn split(
    payload: &[u8],
    bytes: u64,
    from: NodeId,
) -> Result<(&[u8], &[u8]), ProtocolError> {
    let at = usize::try_from(bytes).ok();
    let parts = at.and_then(|at| payload.split_at_checked(at));
    let what = "a message holds fewer bytes than it names";
    parts.ok_or(ProtocolError::BadMessage { from, what })
}
