//! What a node does with objects, as its protocol says.

use std::sync::Arc;

use dhole_heap::diff_ranges;
use dhole_model::{CallSite, NodeId, Oid, VectorTime};
use dhole_net::Payload;
use dhole_protocol::{
    Changed, Commands, Flush, Flushed, FlushedAt, Message, ProtocolError, Pushed, RegionCommand,
    Reply, Sent,
};

use crate::install::{install, take};
use crate::node::State;
use crate::notice_check::not_awaited;
use crate::step::{Step, gather, must, not_stored};

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
            RegionCommand::Hold { from } => self.hold(from, step),
            RegionCommand::Merge { from, flush, held } => self.merge(from, &flush, held, step)?,
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
            RegionCommand::MergeNext(oid) => State::merge_next(oid, step)?,
        }
        Ok(())
    }

    /// Sends the bytes of objects to a node that read them before.
    pub(crate) fn push(
        &mut self,
        to: NodeId,
        objects: &[Sent],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let gathered = objects.iter().map(|sent| {
            let bytes = step.heap.gather(sent.region, payload.buffer());
            let bytes = bytes.map_err(|cause| not_stored(sent.region, &cause))? as u64;
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
        let gathered = objects.iter().map(|&region| {
            let bytes = step.heap.gather_diff(region, payload.buffer());
            let bytes = bytes.map_err(|cause| not_stored(region, &cause))? as u64;
            Ok(Flushed { region, bytes })
        });
        let flushed = gathered.collect::<Result<_, ProtocolError>>()?;
        self.counting.all.diffs += objects.len() as u64;
        self.counting.all.diff_bytes += payload.len() as u64;
        let message = Message::Flush(Flush {
            number,
            flushed,
            at,
        });
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
        flush: &Flush,
        held: bool,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let place = self.held.iter().position(|(node, _)| *node == from);
        let payload = match place.filter(|_| held) {
            Some(place) => self.held.swap_remove(place).1,
            None => Payload::NONE,
        };
        let mut rest = if held { &payload[..] } else { step.payload };
        for (place, Flushed { region: oid, bytes }) in flush.flushed.iter().enumerate() {
            let (diff, behind) = split(rest, *bytes, from)?;
            rest = behind;
            if step.heap.is_freed(*oid) {
                continue;
            }
            self.unpublish(*oid, step.heap);
            let merged = step.heap.merge(*oid, diff);
            merged.map_err(|refused| not_stored(*oid, &refused))?;
            if let Some(at) = &flush.at {
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
