//! The effects of commands on regions, objects and elements of arrays, as in the engine: on each
//! place of the heap that a region has.

use std::ops::Range;

use dhole_model::{Elements, NodeId, Oid};
use dhole_protocol::{Changed, Follow, Made, RegionCommand, RegionKind, Reply, SentList, Unit};

use crate::Bug;
use crate::model::node::Around;
use crate::model::{Fault, Node, Program, WriteId};

/// A kind of regions.
pub(crate) trait Modelled: RegionKind {
    /// Whether the regions are elements of arrays.
    const ELEMENTS: bool;

    /// The places of a region in the heap.
    fn places(self, program: &Program) -> Range<usize>;

    /// Adds to a reply what goes along.
    fn add_along(
        _: &mut Node,
        _: (NodeId, &Follow),
        _: &mut SentList<Self>,
        _: &mut Vec<WriteId>,
        _: &Around<'_>,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// Others can read a clean region without a message.
    fn publish(self, _: &mut Node, _: &Around<'_>) {}

    /// Others cannot any more: other bytes come.
    fn unpublish(self, _: &mut Node, _: &Around<'_>) {}

    /// As above, before the region is written. Whether it is to stay clean.
    fn ends_version(self, _: &mut Node, _: &Around<'_>) -> bool {
        false
    }

    /// A region that may be behind a gate is to be clean.
    fn leaves_gate(self, _: &mut Node, _: &Program) {}

    /// The protocol is told which places were changed by a node that had seen what `at` says.
    fn changed(
        self,
        _: &mut Node,
        _: &Made,
        _places: Vec<u64>,
        _: &mut Around<'_>,
    ) -> Result<(), Fault> {
        Ok(())
    }
}

impl Modelled for Oid {
    const ELEMENTS: bool = false;

    fn places(self, program: &Program) -> Range<usize> {
        program.leaves(self)
    }

    fn add_along(
        node: &mut Node,
        to: (NodeId, &Follow),
        sent: &mut SentList,
        values: &mut Vec<WriteId>,
        around: &Around<'_>,
    ) -> Result<(), Fault> {
        node.add_along(to, sent, values, around)
    }

    fn publish(self, node: &mut Node, around: &Around<'_>) {
        node.publish(self, around.program);
    }

    fn unpublish(self, node: &mut Node, _: &Around<'_>) {
        node.unpublish(self);
    }

    fn leaves_gate(self, node: &mut Node, program: &Program) {
        node.leaves_gate(self, program);
    }

    fn ends_version(self, node: &mut Node, _: &Around<'_>) -> bool {
        node.ends_version(self)
    }

    fn changed(
        self,
        node: &mut Node,
        made: &Made,
        places: Vec<u64>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let Made { by, at, place } = made;
        let changed = Changed {
            oid: self,
            by: *by,
            site: at.sites[*place],
        };
        node.changed(changed, places, Some(&at.time), around)
    }
}

impl Modelled for Elements {
    const ELEMENTS: bool = true;

    fn places(self, program: &Program) -> Range<usize> {
        let (objects, range) = (program.objects.len(), self.range());
        objects + range.start as usize..objects + range.end as usize
    }

    fn publish(self, node: &mut Node, around: &Around<'_>) {
        node.publish_elements(self, around);
    }

    fn unpublish(self, node: &mut Node, around: &Around<'_>) {
        node.unpublish_elements(self, around);
    }

    fn ends_version(self, node: &mut Node, around: &Around<'_>) -> bool {
        node.unpublish_elements(self, around);
        false
    }
}

impl Node {
    pub(crate) fn carry_out_on<R: Modelled>(
        &mut self,
        command: RegionCommand<R>,
        payload: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, program) = (self.presence(), around.program);
        // A part of a block may be writable already. A block that leaves its protocol is made clean
        // after it has left.
        let blocks = self.keeps_blocks(program) || program.coherence.properties().keeps_blocks();
        let in_part = R::ELEMENTS && blocks;
        match command {
            RegionCommand::Reply(Reply {
                to,
                message: mut reply,
                follow,
                pre_images,
            }) => {
                let mut values = Vec::new();
                for sent in &reply.sent {
                    for place in sent.region.places(program) {
                        if pre_images.contains(&sent.region) {
                            values.push(self.heap.gather_pre_image(place)?);
                            continue;
                        }
                        let value = self.heap.readable(place);
                        let value = value.filter(|_| self.heap.is_writable(place));
                        value.into_iter().for_each(|it| around.history.peeked(it));
                        values.push(self.heap.gather(place, at)?);
                    }
                }
                R::add_along(self, (to, &follow), &mut reply.sent, &mut values, around)?;
                let from_pre_image = !pre_images.is_empty();
                let sent = reply.sent.clone();
                self.send(to, R::reply_message(reply), values, from_pre_image, around);
                if R::ELEMENTS {
                    let regions = sent.iter().map(|sent| sent.region);
                    regions.for_each(|region| region.publish(self, around));
                }
            }
            RegionCommand::Install(sent) => {
                sent.region.unpublish(self, around);
                for place in sent.region.places(program) {
                    let value = payload.next().ok_or(Fault::Heap)?;
                    self.heap.install(place, value, at)?;
                }
                sent.region.publish(self, around);
            }
            RegionCommand::Skip(sent) => {
                for _place in sent.region.places(program) {
                    payload.next().ok_or(Fault::Heap)?;
                }
            }
            RegionCommand::Keep { region, .. } => {
                for place in region.places(program) {
                    let value = payload.next().ok_or(Fault::Heap)?;
                    self.heap.keep(place, Some(value));
                }
            }
            RegionCommand::Discard(region) => {
                let mut places = region.places(program);
                places
                    .by_ref()
                    .for_each(|place| self.heap.keep(place, None));
            }
            RegionCommand::InstallKept(region) => {
                let mut places = region.places(program);
                places.try_for_each(|place| self.heap.install_kept(place, at))?;
            }
            RegionCommand::ZeroFill(region) => {
                region.unpublish(self, around);
                let mut places = region.places(program);
                places.try_for_each(|place| self.heap.install(place, WriteId::INITIAL, at))?;
                region.publish(self, around);
            }
            RegionCommand::Invalidate(region) => {
                if around.bug == Some(Bug::KeepAhead)
                    && let Unit::Object(oid) = region.unit()
                    && self.came_ahead.contains(&oid)
                {
                    return Ok(());
                }
                if !R::ELEMENTS {
                    // Invalid elements keep their bytes, which are as new as others need.
                    region.unpublish(self, around);
                }
                let mut places = region.places(program);
                places.try_for_each(|place| self.heap.invalidate(place, at))?;
            }
            RegionCommand::MakeWritable { region, pre_image } => {
                if around.bug != Some(Bug::WritePublished) && region.ends_version(self, around) {
                    region.publish(self, around);
                    return Ok(());
                }
                for place in region.places(program) {
                    if !(in_part && self.heap.is_writable(place)) {
                        self.heap.make_writable(place, pre_image, at)?;
                    }
                }
            }
            RegionCommand::MakeClean(region) => {
                let mut places = region.places(program);
                let is_gated = places.any(|place| self.heap.is_gated(place));
                if is_gated && around.bug == Some(Bug::KeepServed) {
                    return Ok(());
                }
                region.leaves_gate(self, program);
                for place in region.places(program) {
                    if !in_part || self.heap.is_writable(place) {
                        self.heap.make_clean(place, at)?;
                    }
                }
                region.publish(self, around);
            }
            RegionCommand::MergeNext { region, made, .. } => {
                region.ends_version(self, around);
                let mut changed = Vec::new();
                for (place, number) in region.places(program).zip(0_u64..) {
                    let value = payload.next().ok_or(Fault::Heap)?;
                    self.heap.merge(place, value, at)?;
                    if value != WriteId::UNCHANGED {
                        changed.push(number);
                    }
                }
                let mut places = region.places(program);
                let is_freed = places.all(|place| self.heap.is_freed(place));
                if let Some(made) = made.filter(|_| !is_freed) {
                    region.changed(self, &made, changed, around)?;
                }
                region.publish(self, around);
            }
            RegionCommand::Free(ids) => self.free(ids, around)?,
        }
        Ok(())
    }
}
