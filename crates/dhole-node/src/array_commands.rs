//! What a node does with elements of arrays, as its protocol says.

use std::sync::Arc;

use dhole_model::{Elements, NodeId};
use dhole_net::Payload;
use dhole_protocol::{
    Flush, Flushed, FlushedAt, Message, ProtocolError, Pushed, RegionCommand, Reply, Sent,
};

use crate::array::not_stored;
use crate::node::State;
use crate::notice_check::not_awaited;
use crate::object_commands::split;
use crate::step::{Step, must};

impl State {
    pub(crate) fn carry_out_on_array(
        &mut self,
        command: RegionCommand<Elements>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let counted = &mut self.counting.all;
        match command {
            RegionCommand::Reply(Reply { to, message, .. }) => {
                let mut payload = step.pool.take();
                for sent in &message.sent {
                    let gathered = step.heap.gather_elements(sent.region, payload.buffer());
                    must(
                        gathered,
                        "the protocol sends only what is here and not being written",
                    );
                }
                self.send(to, Message::ElementsReply(message), payload, step.out);
            }
            RegionCommand::Install(sent) => self.install_elements(sent, step)?,
            RegionCommand::ZeroFill(elements) => {
                counted.zero_fills += 1;
                let filled = step.heap.zero_fill_elements(elements);
                filled.map_err(|refused| not_stored(elements, &refused))?;
            }
            RegionCommand::Invalidate(elements) => {
                counted.invalidations += 1;
                if let Some(info) = step.heap.type_of_array(elements.array) {
                    self.counting.of_type(info.name).invalidated += 1;
                }
                let made = step.heap.invalidate_elements(elements);
                made.map_err(|_refused| not_awaited(step.from))?;
            }
            RegionCommand::MakeWritable { region, .. } => {
                let elements = region;
                counted.write_faults += 1;
                if let Some(info) = step.heap.type_of_array(elements.array) {
                    self.counting.of_type(info.name).write_faults += 1;
                }
                // What is larger than a page faults page by page, and has no twin.
                let bytes = step.heap.bytes_of_elements(elements).unwrap_or(0) as u64;
                let pages = bytes.div_ceil(dhole_heap::PAGE_BYTES);
                let before = u64::from(std::mem::take(&mut self.faulted));
                step.out.work().object_faults += pages.saturating_sub(before);
                let made = step.heap.make_elements_writable(elements);
                made.map_err(|refused| not_stored(elements, &refused))?;
            }
            RegionCommand::MakeClean(elements) => {
                let made = step.heap.make_elements_clean(elements);
                made.map_err(|refused| not_stored(elements, &refused))?;
            }
            RegionCommand::Free(ids) => {
                let made = step.heap.free_array(ids);
                must(made, "who frees or hears of it is in a call with `&mut w`");
            }
            RegionCommand::Skip(sent) => State::skip_elements(sent.region, step)?,
            RegionCommand::MergeNext(block) => State::merge_next_block(block, step)?,
            RegionCommand::Push { to, sent } => self.push_elements(to, &sent, step)?,
            RegionCommand::Keep {
                region: elements,
                bytes,
            } => {
                let bytes = State::next_bytes(step, self.id, bytes)?;
                step.heap.keep_elements(elements, bytes);
            }
            RegionCommand::Discard(elements) => step.heap.discard_kept_elements(elements),
            RegionCommand::InstallKept(elements) => {
                self.counting.all.pushes_read += 1;
                let installed = step.heap.install_kept_elements(elements);
                installed.map_err(|refused| not_stored(elements, &refused))?;
            }
            RegionCommand::Flush {
                to,
                number,
                regions,
                at,
            } => self.flush_elements((to, number), &regions, at, step)?,
            RegionCommand::Hold { from } => {
                let mut payload = step.pool.take();
                payload.extend(step.payload);
                self.held_elements.push((from, payload));
            }
            RegionCommand::Merge { from, flush, held } => {
                self.merge_elements(from, &flush.flushed, held, step)?
            }
        }
        Ok(())
    }

    /// Makes the next elements in the payload valid here.
    fn install_elements(
        &mut self,
        sent: Sent<Elements>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let Sent {
            region: elements,
            version,
        } = sent;
        let sized = step.heap.bytes_of_elements(elements);
        let bytes = sized.map_err(|refused| not_stored(elements, &refused))?;
        let Some((these, rest)) = step.payload.split_at_checked(bytes) else {
            let what = "a reply holds fewer bytes than its elements";
            let from = version.node;
            return Err(ProtocolError::BadMessage { from, what });
        };
        step.payload = rest;
        let installed = step.heap.install_elements(elements, these);
        installed.map_err(|refused| not_stored(elements, &refused))?;
        if let Some(info) = step.heap.type_of_array(elements.array) {
            self.counting.installed(info.name, bytes);
        }
        Ok(())
    }

    fn push_elements(
        &mut self,
        to: NodeId,
        sent: &[Sent<Elements>],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = sent.iter().map(|sent| {
            let bytes = gather(sent.region, &mut payload, step)?;
            Ok(Pushed { sent: *sent, bytes })
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
        let gathered = elements.iter().map(|&region| {
            let bytes = gather(region, &mut payload, step)?;
            Ok(Flushed { region, bytes })
        });
        let flushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.diffs += elements.len() as u64;
        self.counting.all.diff_bytes += payload.len() as u64;
        let message = Message::FlushElements(Flush {
            number,
            flushed,
            at,
        });
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Puts the payload's bytes, or those of the one that was held, in the place of elements.
    fn merge_elements(
        &mut self,
        from: NodeId,
        flushed: &[Flushed<Elements>],
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
        for Flushed {
            region: elements,
            bytes,
        } in flushed
        {
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
