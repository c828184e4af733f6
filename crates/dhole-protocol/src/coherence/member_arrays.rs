//! Arrays under members: each block of an array is a unit, which a member keeps consistent as it
//! does an object.
//!
//! A call that needs several blocks brings them here one after the other, in their order. What it
//! has brought stays here until the call returns: a message that would take it away is delivered
//! again at the worker's next call. Nodes wait only for blocks behind those that they keep, so they
//! do not wait for each other in a circle.

use dhole_model::{Coherence, Elements, MemberId, NodeId, Oid, OidRange, Version};
use smallvec::SmallVec;

use super::Protocols;
use crate::RegionCommand;
use crate::array_blocks::{ArrayBlocks, BlockAccess, BlockEvent};
use crate::coherence::blocks::Kept;
use crate::coherence::region::Table;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;

impl Protocols {
    /// The member that keeps an array consistent, which was allocated under this protocol.
    pub fn member_of_array(&self, array: Oid, allocated: Coherence) -> Option<MemberId> {
        let known = self.arrays.table.coherence(array);
        known.unwrap_or(allocated).member()
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
        if let BlockAccess::Switched(to) = what {
            self.switch_blocks(blocks, creator, [coherence, to], out);
            return Ok(());
        }
        let coherence = self.arrays.table.meet(blocks.array, coherence);
        let Some(member) = coherence.member() else {
            unreachable!("{coherence} keeps elements consistent, and not blocks");
        };
        self.blocks.meet(blocks);
        match what {
            BlockAccess::Switched(_) | BlockAccess::Allocated => {
                self.allocated(blocks.ids(), coherence, out)
            }
            BlockAccess::Read(units) => {
                let first = units.first().and_then(|unit| blocks.block(*unit));
                self.members.kept = Kept::before(first, needs, false);
                let meets = |unit: &Oid| {
                    self.objects.get_mut(*unit).coherence = Some(coherence);
                    (member, *unit, creator)
                };
                let misses: SmallVec<[_; 1]> = units.iter().map(meets).collect();
                self.members_miss(&misses, out);
                self.brought(out);
            }
            BlockAccess::Write(elements) => {
                self.members.writes = Some(elements);
                for (unit, _) in blocks.parts(elements) {
                    self.members.kept = Kept::before(blocks.block(unit), needs, true);
                    self.objects.get_mut(unit).coherence = Some(coherence);
                    self.member_write_fault(member, unit, out);
                }
            }
        }
        Ok(())
    }

    /// All nodes have met, and an array changes to another protocol.
    fn switch_blocks(
        &mut self,
        blocks: ArrayBlocks,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        let (array, me) = (blocks.all(), self.me);
        let before = self.arrays.table.meet(blocks.array, allocated);
        if before == to {
            return;
        }
        if blocks.len == 0 {
            return self.switch_array(array, creator, [allocated, to], out);
        }
        let mut holders = Vec::new();
        for unit in blocks.ids().iter() {
            let holder = before.member().map_or(creator, |member| {
                self.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                    it.give_up(unit, creator, turn)
                })
            });
            holders.push((unit, holder));
        }
        if before.member().is_some() {
            for &(unit, holder) in &holders {
                self.elements_given_up(blocks.block(unit), creator, holder);
                self.objects.get_mut(unit).coherence = None;
            }
            self.blocks.forget(blocks.ids());
        }
        self.switch_array(array, creator, [allocated, to], out);
        let Some(member) = to.member() else {
            return;
        };
        if before.member().is_none() {
            self.arrays.table.update(array, |part, state| {
                if creator != me && state.is_valid() {
                    out.push(Command::Array(RegionCommand::Invalidate(part)));
                }
            });
        }
        self.arrays
            .table
            .update(array, |_, state| state.drop_copy());
        self.blocks.meet(blocks);
        for (unit, holder) in holders {
            self.objects.get_mut(unit).coherence = Some(to);
            self.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                it.adopt(unit, holder, turn);
            });
        }
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
        let Some(member) = self.member_of_array(ids.first, Coherence::Lazy) else {
            return;
        };
        let members = &mut self.members;
        self.objects.for_each(&[ids], |unit, state| {
            members.freed(member, unit);
            state.free();
        });
        self.blocks.forget(ids);
    }
}
