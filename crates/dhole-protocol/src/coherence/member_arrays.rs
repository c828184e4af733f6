//! Arrays under members: each block of an array is a unit, which a member keeps consistent as it
//! does an object.
//!
//! A call that needs several blocks brings them here one after the other, in their order. What it
//! has brought stays here until the call returns: a message that would take it away is delivered
//! again at the worker's next call. Nodes wait only for blocks behind those that they keep, so they
//! do not wait for each other in a circle.

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid, OidRange, Version};

use super::Protocols;
use crate::RegionCommand;
use crate::array_blocks::{ArrayBlocks, BlockAccess, BlockEvent};
use crate::coherence::blocks::Kept;
use crate::coherence::region::Table;
use crate::coherence::rules::rules;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;

impl Protocols {
    /// Whether an array is kept consistent by blocks, which was allocated under this protocol.
    pub fn keeps_blocks(&self, array: Oid, allocated: Coherence) -> bool {
        let known = self.arrays.table.coherence(array);
        known.unwrap_or(allocated).properties().keeps_blocks()
    }

    /// The worker does something with an array whose blocks are units.
    pub(super) fn block_event(
        &mut self,
        event: BlockEvent,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let BlockEvent {
            blocks,
            creator,
            coherence,
            needs,
            what,
        } = event;
        self.arrays.check_not_freed(blocks.array)?;
        let coherence = self.arrays.table.meet(blocks.array, coherence);
        self.meet_blocks(blocks, out);
        match what {
            BlockAccess::Read(units) => {
                let first = units.first().and_then(|unit| blocks.block(*unit));
                self.members.kept = Kept::before(first, needs, false);
                for &unit in &units {
                    self.objects.get_mut(unit).coherence = Some(coherence);
                    self.members.awaits(unit);
                }
                for unit in units {
                    rules::<Oid>(coherence).read_miss(self, unit, creator, out);
                }
                self.brought(out);
            }
            BlockAccess::Write(elements) => {
                self.members.writes = Some(elements);
                // No races of blocks are looked for.
                let site = CallSite::runtime("a block of an array");
                for (unit, _) in blocks.parts(elements) {
                    self.members.kept = Kept::before(blocks.block(unit), needs, true);
                    self.objects.get_mut(unit).coherence = Some(coherence);
                    rules::<Oid>(coherence).write_fault(self, unit, site, out);
                }
            }
        }
        Ok(())
    }

    /// The worker has allocated an array here.
    pub(super) fn array_allocated(
        &mut self,
        blocks: ArrayBlocks,
        coherence: Coherence,
        out: &mut Commands,
    ) {
        if !coherence.properties().keeps_blocks() {
            return self.arrays.allocated(blocks.all(), coherence);
        }
        self.arrays.table.meet(blocks.array, coherence);
        self.meet_blocks(blocks, out);
        self.allocated(blocks.ids(), coherence, out);
    }

    /// The worker uses an array. What was pushed of its blocks before was kept as of objects.
    fn meet_blocks(&mut self, blocks: ArrayBlocks, out: &mut Commands) {
        self.blocks.meet(blocks);
        if !self.remembered.inbox.is_empty() {
            self.remembered.freed_pushes(blocks.ids(), out);
        }
    }

    /// All nodes have met, and an array changes to another protocol.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`], where blocks are kept consistent.
    pub(super) fn array_switched(
        &mut self,
        blocks: ArrayBlocks,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let (array, me) = (blocks.all(), self.me);
        let before = self.arrays.table.meet(blocks.array, allocated);
        let mut both = [before, to].into_iter();
        if blocks.len == 0 || !both.any(|one| one.properties().keeps_blocks()) {
            self.switch_array(array, creator, [allocated, to], out);
            return Ok(());
        }
        self.arrays.check_not_freed(blocks.array)?;
        if before == to {
            return Ok(());
        }
        let mut holders = Vec::new();
        for unit in blocks.ids().iter() {
            let holder = rules::<Oid>(before).give_up(self, unit, creator, out);
            holders.push((unit, holder.unwrap_or(creator)));
        }
        let were_blocks = before.properties().keeps_blocks();
        if were_blocks {
            for &(unit, holder) in &holders {
                self.elements_given_up(blocks.block(unit), creator, holder);
                self.objects.get_mut(unit).coherence = None;
            }
            self.blocks.forget(blocks.ids());
        }
        self.switch_array(array, creator, [allocated, to], out);
        if !to.properties().keeps_blocks() {
            return Ok(());
        }
        if !were_blocks {
            self.arrays.table.update(array, |part, state| {
                if creator != me && state.is_valid() {
                    out.push(Command::Array(RegionCommand::Invalidate(part)));
                }
            });
        }
        self.arrays
            .table
            .update(array, |_, state| state.drop_copy());
        self.meet_blocks(blocks, out);
        for (unit, holder) in holders {
            self.objects.get_mut(unit).coherence = Some(to);
            rules::<Oid>(to).adopt(self, unit, holder, out);
        }
        Ok(())
    }

    /// A member has given up a block: its elements get a version of the node that has its copy, the
    /// next one.
    fn elements_given_up(&mut self, block: Option<Elements>, creator: NodeId, holder: NodeId) {
        let (Some(block), mut last) = (block, 0) else {
            return;
        };
        let table = &mut self.arrays.table;
        table.each(block, |_, state| {
            last = last.max(state.known(creator).lamport)
        });
        let version = Version {
            lamport: last + 1,
            node: holder,
        };
        table.update(block, |_, state| {
            state.hear(version);
            if holder == self.me {
                state.hold(version);
            }
        });
        self.intervals.sees(version.lamport);
    }

    /// The worker has freed an array.
    pub(super) fn blocks_freed(&mut self, ids: OidRange) {
        let known = self.arrays.table.coherence(ids.first);
        if known.is_none_or(|known| !known.properties().keeps_blocks()) {
            return;
        }
        let Protocols {
            objects,
            remembered,
            races,
            members,
            ..
        } = self;
        objects.for_each(&[ids], |unit, state| {
            rules::<Oid>(known).freed(unit, state, (&mut remembered.home, races, members));
            state.free();
        });
        self.blocks.forget(ids);
    }
}
