//! What a node does with objects, as its protocol says.

use dhole_heap::{HeapMut, diff_ranges};
use dhole_model::{CallSite, Oid, VectorTime};
use dhole_net::Payload;
use dhole_protocol::{Changed, Commands, Made, Message, ProtocolError, RegionCommand, Reply, Sent};

use crate::graphs::Way;
use crate::install::{install, take};
use crate::node::State;
use crate::notice_check::not_awaited;
use crate::read_ahead::came_ahead;
use crate::step::{Step, gather, must, not_stored};

/// Appends what the worker has changed in an object.
pub(crate) fn gather_diff(
    oid: Oid,
    heap: &mut HeapMut<'_>,
    out: &mut Payload,
) -> Result<(), ProtocolError> {
    let gathered = heap.gather_diff(oid, out.buffer()).map(drop);
    gathered.map_err(|cause| not_stored(oid, &cause))
}

impl State {
    pub(crate) fn carry_out_on_objects(
        &mut self,
        command: RegionCommand<Oid>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        if let RegionCommand::MakeWritable { region, .. } = command
            && self.unpublish(region, step.heap)
        {
            // Somebody has read it: it is written with a notice, when it is.
            self.publish(region, step.heap);
            return Ok(());
        }
        let counting = &mut self.counting;
        match command {
            RegionCommand::Reply(Reply {
                to,
                message: mut reply,
                follow,
                pre_images,
            }) => {
                let mut payload = step.pool.take();
                for Sent { region: oid, .. } in &reply.sent {
                    let start = payload.len();
                    gather(step.heap, *oid, pre_images.contains(oid), &mut payload);
                    self.graphs
                        .names(*oid, &payload[start..], Some(&follow), step.heap);
                }
                counting.all.pre_image_replies += pre_images.len() as u64;
                self.add_along((to, &follow), &mut reply.sent, &mut payload, step);
                self.send(to, Message::FetchReply(reply), payload, step.out);
            }
            RegionCommand::Install(sent) => {
                install(sent, counting, &mut self.graphs, step)?;
                let came = (sent.region, Way::Message);
                came_ahead(came, &mut self.graphs, counting, step.heap);
            }
            RegionCommand::Skip(sent) => {
                let object = take(sent, step)?;
                self.graphs.names(sent.region, object, None, step.heap);
            }
            RegionCommand::Keep { region: oid, bytes } => {
                let bytes = step.next_bytes(bytes)?;
                step.heap.keep_pushed(oid, bytes);
            }
            RegionCommand::Discard(oid) => step.heap.discard_pushed(oid),
            RegionCommand::InstallKept(oid) => {
                counting.all.pushes_read += 1;
                step.heap
                    .install_pushed(oid)
                    .map_err(|refused| not_stored(oid, &refused))?;
            }
            RegionCommand::ZeroFill(oid) => {
                counting.all.zero_fills += 1;
                step.heap
                    .zero_fill(oid)
                    .map_err(|refused| not_stored(oid, &refused))?;
                self.publish(oid, step.heap);
            }
            RegionCommand::Invalidate(oid) => {
                counting.all.invalidations += 1;
                if let Some(info) = step.heap.type_of(oid) {
                    counting.of_type(info.name).invalidated += 1;
                }
                if self.graphs.expects_reads() {
                    self.note_reads(step.heap);
                    self.graphs.invalidated(oid);
                }
                step.heap
                    .invalidate(oid)
                    .map_err(|_refused| not_awaited(step.from))?;
            }
            RegionCommand::MakeWritable {
                region: oid,
                pre_image,
            } => {
                counting.all.pre_images += u64::from(pre_image);
                if let Some(info) = step.heap.type_of(oid) {
                    counting.of_type(info.name).write_faults += 1;
                }
                let made = step.heap.make_writable(oid, pre_image);
                made.map_err(|refused| not_stored(oid, &refused))?;
            }
            RegionCommand::MakeClean(oid) => {
                self.leave_gate(oid, step.heap);
                let made = step.heap.make_clean(oid);
                made.map_err(|refused| not_stored(oid, &refused))?;
                self.publish(oid, step.heap);
            }
            RegionCommand::Free(range) => {
                if self.graphs.expects_reads() {
                    self.note_reads(step.heap);
                    self.graphs.freed(range);
                }
                must(
                    step.heap.free(range),
                    "a node that frees, or hears of it, is in a call with `&mut w`",
                );
            }
            RegionCommand::MergeNext {
                region,
                bytes,
                made,
                ..
            } => {
                let diff = step.next_bytes(bytes)?;
                self.merge_object(region, diff, made, step)?;
            }
        }
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
        gather_diff(oid, step.heap, &mut diff)?;
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

    /// Changes an object by the differences that another node sent.
    fn merge_object(
        &mut self,
        oid: Oid,
        diff: &[u8],
        made: Option<Made>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        if step.heap.is_freed(oid) {
            return Ok(());
        }
        self.unpublish(oid, step.heap);
        let merged = step.heap.merge(oid, diff);
        merged.map_err(|refused| not_stored(oid, &refused))?;
        if let Some(Made { by, at, place }) = made {
            let site = at.sites[place];
            self.changed(Changed { oid, by, site }, diff, Some(&at.time), step)?;
        }
        self.publish(oid, step.heap);
        Ok(())
    }
}
