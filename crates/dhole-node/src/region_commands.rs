//! What a node does with regions of either kind, objects or elements of arrays.

use std::sync::Arc;

use dhole_heap::HeapMut;
use dhole_model::NodeId;
use dhole_net::Payload;
use dhole_protocol::{
    Flush, Flushed, FlushedAt, ProtocolError, Pushed, RegionKind, RegionMessage, Sent,
};

use crate::node::State;
use crate::step::Step;

/// A kind of regions, as the heap stores them.
pub(crate) trait Stored: RegionKind {
    /// Whether the regions are elements of arrays.
    const ELEMENTS: bool;

    /// Appends the bytes of the region.
    fn gather(self, heap: &mut HeapMut<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError>;

    /// Appends what the worker has written, as a flush carries it.
    fn gather_written(
        self,
        heap: &mut HeapMut<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        self.gather(heap, out)
    }
}

impl State {
    /// Sends the bytes of regions to a node that read them before.
    pub(crate) fn push<R: Stored>(
        &mut self,
        to: NodeId,
        sent: &[Sent<R>],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = sent.iter().map(|&sent| {
            let before = payload.len();
            sent.region.gather(step.heap, payload.buffer())?;
            let bytes = (payload.len() - before) as u64;
            Ok(Pushed { sent, bytes })
        });
        let pushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.pushes += sent.len() as u64;
        let message = R::message(RegionMessage::Update { pushed });
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Sends what the worker has written of regions to their home.
    pub(crate) fn flush<R: Stored>(
        &mut self,
        (to, number): (NodeId, u32),
        regions: &[R],
        at: Option<Arc<FlushedAt>>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = regions.iter().map(|&region| {
            let before = payload.len();
            region.gather_written(step.heap, payload.buffer())?;
            let bytes = (payload.len() - before) as u64;
            Ok(Flushed { region, bytes })
        });
        let flushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.diffs += regions.len() as u64;
        self.counting.all.diff_bytes += payload.len() as u64;
        let flush = Flush {
            number,
            flushed,
            at,
        };
        let message = R::message(RegionMessage::Flush(flush));
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Keeps the payload that is being delivered until the worker's next call.
    pub(crate) fn hold<R: Stored>(&mut self, from: NodeId, step: &mut Step<'_, '_>) {
        let mut payload = step.pool.take();
        payload.extend(step.payload);
        self.held.push((from, R::ELEMENTS, payload));
    }

    /// Calls `merge` with what was flushed of each region that is merged next, from the payload or
    /// from the one that was held.
    pub(crate) fn merge<R: Stored>(
        &mut self,
        (from, flush): (NodeId, &Flush<R>),
        held: bool,
        step: &mut Step<'_, '_>,
        mut merge: impl FnMut(
            &mut State,
            (usize, R),
            &[u8],
            &mut Step<'_, '_>,
        ) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let of_it = |(node, elements, _): &_| (*node, *elements) == (from, R::ELEMENTS);
        let place = self.held.iter().position(of_it).filter(|_| held);
        let payload = place.map_or(Payload::NONE, |place| self.held.swap_remove(place).2);
        let mut rest = if held { &payload[..] } else { step.payload };
        for (place, Flushed { region, bytes }) in flush.flushed.iter().enumerate() {
            let (written, behind) = split(rest, *bytes, from)?;
            rest = behind;
            merge(self, (place, *region), written, step)?;
        }
        step.pool.give_back(payload);
        Ok(())
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
}

/// Bytes of a number before what it counts.
pub(crate) const NUMBER: u64 = size_of::<u64>() as u64;

/// The number that eight bytes are.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
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
