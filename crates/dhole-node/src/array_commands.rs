//! What a node does with elements of arrays, as its protocol says.

use dhole_model::{Elements, Oid};
use dhole_protocol::{Behind, Message, ProtocolError, RegionCommand, Reply, Sent};

use crate::blocks::merge_block;
use crate::node::State;
use crate::notice_check::not_awaited;
use crate::step::{Step, must, not_stored};

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
                let sent = step.heap.publishes_blocks().then(|| message.sent.clone());
                for sent in &message.sent {
                    let gathered = step.heap.gather_elements(sent.region, payload.buffer());
                    must(
                        gathered,
                        "the protocol sends only what is here and not being written",
                    );
                }
                self.send(to, Message::ElementsReply(message), payload, step.out);
                if let Some(sent) = sent {
                    let sent = sent.iter();
                    sent.for_each(|sent| self.publish_later(sent.region, step.heap));
                }
            }
            RegionCommand::Install(sent) => self.install_elements(sent, step)?,
            RegionCommand::ZeroFill(elements) => {
                counted.zero_fills += 1;
                let filled = step.heap.zero_fill_elements(elements);
                filled.map_err(|refused| not_stored(elements.array, &refused))?;
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
                made.map_err(|refused| not_stored(elements.array, &refused))?;
            }
            RegionCommand::MakeClean(elements) => {
                let made = step.heap.make_elements_clean(elements);
                made.map_err(|refused| not_stored(elements.array, &refused))?;
                self.publish_later(elements, step.heap);
            }
            RegionCommand::Free(ids) => {
                let made = step.heap.free_array(ids);
                must(made, "who frees or hears of it is in a call with `&mut w`");
            }
            RegionCommand::Skip(sent) => {
                State::next_elements(sent.region, step)?;
            }
            RegionCommand::MergeNext {
                region: elements,
                bytes,
                form,
                ..
            } => {
                let changes = step.next_bytes(bytes)?;
                if step.heap.is_array_freed(elements.array) {
                    return Ok(());
                }
                if form == Behind::Changes {
                    return merge_block(elements, changes, step);
                }
                let merged = step.heap.merge_elements(elements, changes);
                merged.map_err(|refused| not_stored(elements.array, &refused))?;
            }
            RegionCommand::Keep {
                region: elements,
                bytes,
            } => {
                let bytes = step.next_bytes(bytes)?;
                step.heap.keep_elements(elements, bytes);
            }
            RegionCommand::Discard(elements) => step.heap.discard_kept_elements(elements),
            RegionCommand::InstallKept(elements) => {
                self.counting.all.pushes_read += 1;
                let installed = step.heap.install_kept_elements(elements);
                installed.map_err(|refused| not_stored(elements.array, &refused))?;
            }
        }
        self.hear_unpublished(step.heap);
        Ok(())
    }

    /// Combines elements, which may be written here, with updates.
    pub(crate) fn combine_here(
        &mut self,
        array: Oid,
        (combining, updates): (u8, &[(u64, u64)]),
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let combined = step.heap.combine_elements(array, combining, updates);
        combined.map_err(|refused| not_stored(array, &refused))?;
        self.hear_unpublished(step.heap);
        Ok(())
    }

    /// Makes the next elements in the payload valid here.
    fn install_elements(
        &mut self,
        sent: Sent<Elements>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let elements = sent.region;
        let bytes = State::next_elements(elements, step)?;
        let installed = step.heap.install_elements(elements, bytes);
        installed.map_err(|refused| not_stored(elements.array, &refused))?;
        if let Some(info) = step.heap.type_of_array(elements.array) {
            self.counting.installed(info.name, bytes.len());
        }
        Ok(())
    }

    /// The bytes of elements, which are the next ones in the payload.
    fn next_elements<'a>(
        elements: Elements,
        step: &mut Step<'a, '_>,
    ) -> Result<&'a [u8], ProtocolError> {
        let sized = step.heap.bytes_of_elements(elements);
        let bytes = sized.map_err(|refused| not_stored(elements.array, &refused))?;
        step.next_bytes(bytes as u64)
    }
}
