//! Arrays under the update and the home protocol: pushes, flushes and merges.

use std::sync::Arc;

use dhole_model::{Elements, NodeId};
use dhole_net::Payload;
use dhole_protocol::{
    ArrayCommand, FlushedAt, FlushedElements, Message, ProtocolError, PushedElements, SentElements,
};

use crate::array::not_stored;
use crate::family::split;
use crate::node::State;
use crate::step::Step;

impl State {
    pub(crate) fn carry_out_array_family(
        &mut self,
        command: ArrayCommand,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        match command {
            ArrayCommand::Push { to, sent } => self.push_elements(to, &sent, step)?,
            ArrayCommand::Keep { elements, bytes } => {
                let bytes = State::next_bytes(step, self.id, bytes)?;
                step.heap.keep_elements(elements, bytes);
            }
            ArrayCommand::Discard(elements) => step.heap.discard_kept_elements(elements),
            ArrayCommand::InstallKept(elements) => {
                self.counting.all.pushes_read += 1;
                let installed = step.heap.install_kept_elements(elements);
                installed.map_err(|refused| not_stored(elements, &refused))?;
            }
            ArrayCommand::Flush {
                to,
                number,
                elements,
                at,
            } => self.flush_elements((to, number), &elements, at, step)?,
            ArrayCommand::Hold { from } => {
                let mut payload = step.pool.take();
                payload.extend(step.payload);
                self.held_elements.push((from, payload));
            }
            ArrayCommand::Merge {
                from,
                flushed,
                held,
            } => self.merge_elements(from, &flushed, held, step)?,
            command => unreachable!("{command:?} is carried out with those of every protocol"),
        }
        Ok(())
    }

    fn push_elements(
        &mut self,
        to: NodeId,
        sent: &[SentElements],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = sent.iter().map(|sent| {
            let bytes = gather(sent.elements, &mut payload, step)?;
            Ok(PushedElements { sent: *sent, bytes })
        });
        let pushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.pushes += sent.len() as u64;
        self.send(to, Message::UpdateElements { pushed }, payload, step.out);
        Ok(())
    }

    fn flush_elements(
        &mut self,
        (to, number): (NodeId, u32),
        elements: &[Elements],
        at: Option<Arc<FlushedAt>>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = elements.iter().map(|&elements| {
            let bytes = gather(elements, &mut payload, step)?;
            Ok(FlushedElements { elements, bytes })
        });
        let flushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.diffs += elements.len() as u64;
        self.counting.all.diff_bytes += payload.len() as u64;
        let message = Message::FlushElements {
            number,
            flushed,
            at,
        };
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Puts the payload's bytes, or those of the one that was held, in the place of elements.
    fn merge_elements(
        &mut self,
        from: NodeId,
        flushed: &[FlushedElements],
        held: bool,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let place = self
            .held_elements
            .iter()
            .position(|(node, _)| *node == from);
        let payload = match place.filter(|_| held) {
            Some(place) => self.held_elements.swap_remove(place).1,
            None => Payload::NONE,
        };
        let mut rest = if held { &payload[..] } else { step.payload };
        for FlushedElements { elements, bytes } in flushed {
            let (these, behind) = split(rest, *bytes, from)?;
            rest = behind;
            if !step.heap.is_array_freed(elements.array) {
                let merged = step.heap.merge_elements(*elements, these);
                merged.map_err(|refused| not_stored(*elements, &refused))?;
            }
        }
        step.pool.give_back(payload);
        Ok(())
    }
}

/// Appends the bytes of elements; how many.
pub(crate) fn gather(
    elements: Elements,
    payload: &mut Payload,
    step: &mut Step<'_, '_>,
) -> Result<u64, ProtocolError> {
    let before = payload.len();
    let gathered = step.heap.gather_elements(elements, payload.buffer());
    gathered.map_err(|refused| not_stored(elements, &refused))?;
    Ok((payload.len() - before) as u64)
}
