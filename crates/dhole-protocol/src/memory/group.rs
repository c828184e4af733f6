//! Groups of minipages that were allocated together: their manager brings a node the neighbours of
//! what it uses, and learns how many.
//!
//! Where a node goes on behind its last group, the group doubles. Where a request waits for another
//! node's operation on its minipage, nodes compete: the group halves. Addresses stay as they are,
//! and each minipage is still one node's to write by itself.
//!
//! Between domains the manager knows the leaders alone, and brings neighbours to them. Other nodes
//! of the domain are lent those when they ask. What was lent of a minipage that is brought to
//! another domain is withdrawn, as for a request. In a run of one domain its leader has all
//! minipages, so none is brought.

use std::ops::Range;

use dhole_model::{NodeId, SortedMap};
use dhole_part::PartEffects;

use super::Millipage;
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::{Minipage, offset_of};
use super::run::MinipageRun;

/// Most members of a group.
pub const MOST_IN_A_GROUP: u64 = 32;

/// What a manager has learned of minipages that were allocated together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Group {
    run: MinipageRun,
    /// How many come together.
    size: u64,
    /// By node, and whether it writes: the members that came last.
    last: SortedMap<(NodeId, bool), Range<u64>>,
}

impl Group {
    fn new(run: MinipageRun) -> Group {
        Group {
            run,
            size: 2,
            last: SortedMap::new(),
        }
    }
}

/// The operation on the neighbours of what a node reads or writes.
fn brought_by(request: &MemoryMessage) -> Option<MemoryOperation> {
    match request.operation {
        MemoryOperation::Read => Some(MemoryOperation::Bring),
        MemoryOperation::Write => Some(MemoryOperation::BringToWrite),
        _ => None,
    }
}

impl Millipage {
    /// As [`allocate`](Millipage::allocate), in groups: a node that reads or writes one of the
    /// minipages gets those behind it as well, up to [`MOST_IN_A_GROUP`].
    ///
    /// # Errors
    /// As there.
    pub fn allocate_in_groups(
        &mut self,
        count: u64,
        bytes: u64,
        align: u64,
    ) -> Result<MinipageRun, super::MinipageRefusal> {
        let run = self.allocate(count, bytes, align)?;
        // A single one may be a freed member of other ones, whose group stays.
        if count > 1 {
            self.groups.insert(offset_of(run.at), Group::new(run));
        }
        Ok(run)
    }

    /// How many minipages come together of those that were allocated with the one at an address.
    pub fn group_size(&self, address: u64) -> u64 {
        let run = self.table.run_of(address);
        let group = run.and_then(|run| self.groups.get(&offset_of(run.at)));
        group.map_or(1, |group| group.size)
    }

    /// Learns from a request for a minipage, and whether it waits for another node's operation. The
    /// neighbours that are to be brought.
    pub(super) fn learn_group(&mut self, request: &MemoryMessage, competes: bool) -> Vec<Minipage> {
        let run = self.table.run_of(request.address);
        let Some(group) = run.and_then(|run| self.groups.get_mut(&offset_of(run.at))) else {
            return Vec::new();
        };
        if competes {
            group.size = (group.size / 2).max(1);
        }
        let index = group.run.index_of(request.address);
        let Some((index, _)) = index.zip(brought_by(request)) else {
            return Vec::new();
        };
        let asker = (request.asker, request.operation == MemoryOperation::Write);
        let last = group.last.get(&asker);
        // The node asked before it came.
        if last.is_some_and(|last| last.start < index && index < last.end) {
            return Vec::new();
        }
        if !competes && last.is_some_and(|last| last.end == index) {
            group.size = (2 * group.size).min(MOST_IN_A_GROUP);
        }
        group.last.insert(asker, index..index + group.size);
        let members = index + 1..index + group.size;
        members
            .filter_map(|member| group.run.minipage(member))
            .collect()
    }

    /// Brings minipages to the node of a request, unless it has them or gets them.
    pub(super) fn bring(
        &mut self,
        minipages: Vec<Minipage>,
        request: &MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) {
        let Some(operation) = brought_by(request) else {
            return;
        };
        for minipage in minipages {
            let brought = MemoryMessage {
                kind: MemoryKind::Request,
                operation,
                address: minipage.at,
                ticket: 0,
                minipage,
                ..*request
            };
            let managed = self.managed.get(&minipage.at);
            let is_released = match managed {
                Some(managed) => managed.is_released(),
                None => self.table.is_released(minipage.at),
            };
            // Where nodes may write together they get it to write when they ask.
            let brought = match is_released {
                true => MemoryMessage {
                    operation: MemoryOperation::Bring,
                    ..brought
                },
                false => brought,
            };
            // The leader has what nobody has used, and hears so at its first request.
            let is_unused = !self.managed.contains_key(&minipage.at);
            if is_unused && request.asker == self.leader() {
                continue;
            }
            if self.managed_of(minipage).queue_brought(brought) {
                self.begin_next(minipage.at, out);
            }
        }
    }
}
