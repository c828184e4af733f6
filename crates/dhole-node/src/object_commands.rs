//! What a node does with objects, as its protocol says.

use dhole_heap::{HeapMut, diff_ranges};
use dhole_model::{CallSite, NodeId, Oid, VectorTime};
use dhole_protocol::{
    Changed, Commands, FlushedAt, Message, ProtocolError, RegionCommand, Reply, Sent,
};

use crate::install::{install, take};
use crate::node::State;
use crate::notice_check::not_awaited;
use crate::region_commands::Stored;
use crate::step::{Step, gather, must, not_stored};

impl Stored for Oid {
    const ELEMENTS: bool = false;

    fn gather(self, heap: &mut HeapMut<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let gathered = heap.gather(self, out).map(drop);
        gathered.map_err(|cause| not_stored(self, &cause))
    }

    fn gather_written(
        self,
        heap: &mut HeapMut<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let gathered = heap.gather_diff(self, out).map(drop);
        gathered.map_err(|cause| not_stored(self, &cause))
    }
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
            RegionCommand::Install(sent) => install(sent, counting, &mut self.graphs, step)?,
            RegionCommand::Skip(sent) => {
                let object = take(sent, step)?;
                self.graphs.names(sent.region, object, None, step.heap);
            }
            RegionCommand::Push { to, sent } => self.push(to, &sent, step)?,
            RegionCommand::Keep { region: oid, bytes } => {
                let bytes = State::next_bytes(step, self.id, bytes)?;
                step.heap.keep_pushed(oid, bytes);
            }
            RegionCommand::Discard(oid) => step.heap.discard_pushed(oid),
            RegionCommand::InstallKept(oid) => {
                counting.all.pushes_read += 1;
                step.heap
                    .install_pushed(oid)
                    .map_err(|refused| not_stored(oid, &refused))?;
            }
            RegionCommand::Flush {
                to,
                number,
                regions,
                at,
            } => self.flush((to, number), &regions, at, step)?,
            RegionCommand::Hold { from } => self.hold::<Oid>(from, step),
            RegionCommand::Merge { from, flush, held } => {
                let by = (from, flush.at.as_deref());
                self.merge((from, &flush), held, step, |it, object, diff, step| {
                    it.merge_object(object, diff, by, step)
                })?
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
                self.graphs.invalidated(oid);
                if let Some(info) = step.heap.type_of(oid) {
                    counting.of_type(info.name).invalidated += 1;
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
                let made = step.heap.make_clean(oid);
                made.map_err(|refused| not_stored(oid, &refused))?;
                self.publish(oid, step.heap);
            }
            RegionCommand::Free(range) => must(
                step.heap.free(range),
                "who frees or hears of it is in a call with `&mut w`",
            ),
            RegionCommand::MergeNext { region: oid, bytes } => {
                let diff = State::next_bytes(step, step.from, bytes)?;
                if !step.heap.is_freed(oid) {
                    let merged = step.heap.merge(oid, diff);
                    merged.map_err(|refused| not_stored(oid, &refused))?;
                }
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
        oid.gather_written(step.heap, diff.buffer())?;
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

    /// Changes an object by the differences that another node flushed.
    fn merge_object(
        &mut self,
        (place, oid): (usize, Oid),
        diff: &[u8],
        (from, at): (NodeId, Option<&FlushedAt>),
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        if step.heap.is_freed(oid) {
            return Ok(());
        }
        self.unpublish(oid, step.heap);
        let merged = step.heap.merge(oid, diff);
        merged.map_err(|refused| not_stored(oid, &refused))?;
        if let Some(at) = at {
            let (by, site) = (from, at.sites[place]);
            self.changed(Changed { oid, by, site }, diff, Some(&at.time), step)?;
        }
        self.publish(oid, step.heap);
        Ok(())
    }
}
