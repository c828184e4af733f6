//! Allocations of a run in which chosen nodes manage all minipages: the other nodes ask them for
//! new ones (MultiView and Millipage, section 3.3: node 0; VOTE, section 4.1: idle or dedicated
//! processors).

use dhole_model::NodeId;
use dhole_part::PartEffects;

use super::Millipage;
use super::command::MemoryAct;
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::Minipage;
use super::run::MinipageRun;
use super::table::{MinipageRefusal, check_size};

type Taken = Result<(), &'static str>;

/// The bit beside the alignment in a request for minipages that nodes may write together.
const RELEASED: u32 = 1 << 31;

/// What a node has asked the manager of all minipages to allocate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Allocation {
    count: u64,
    bytes: u64,
    align: u64,
    answer: Option<Result<MinipageRun, MinipageRefusal>>,
}

impl Millipage {
    /// Whether this node asks another one for new minipages.
    pub fn asks_to_allocate(&self) -> bool {
        !self.managers.is_empty() && !self.managers.contains(&self.me)
    }

    /// The node that allocates for another one, where chosen nodes manage all minipages.
    fn allocator_of(&self, node: NodeId) -> Option<NodeId> {
        let place = node.index().checked_rem(self.managers.len())?;
        self.managers.get(place).copied()
    }

    /// Asks the manager that allocates for this node to allocate `count` of so many bytes, at
    /// multiples of `align`, in groups or not. The ticket of the request, for
    /// [`allocated`](Millipage::allocated).
    ///
    /// # Errors
    /// [`MinipageRefusal::Size`]: nothing is asked then.
    pub fn ask_to_allocate(
        &mut self,
        (count, bytes, align): (u64, u64, u64),
        in_groups: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Result<u32, MinipageRefusal> {
        check_size(count, bytes, align)?;
        let manager = self.allocator_of(self.me).unwrap_or(self.me);
        let ticket = self.next_ticket();
        let allocation = Allocation {
            count,
            bytes,
            align,
            answer: None,
        };
        self.allocations.insert(ticket, allocation);
        let message = MemoryMessage {
            kind: MemoryKind::Request,
            operation: match in_groups {
                true => MemoryOperation::AllocateInGroups,
                false => MemoryOperation::Allocate,
            },
            asker: self.me,
            number: align as u32 | if self.table.releases { RELEASED } else { 0 },
            ticket,
            address: count,
            // The length of words takes the place of the bytes.
            minipage: Minipage {
                at: bytes,
                bytes: 0,
            },
        };
        self.send(manager, message, out);
        Ok(ticket)
    }

    /// The answer to a request for new minipages, once it has come; then the request is over.
    pub fn allocated(&mut self, ticket: u32) -> Option<Result<MinipageRun, MinipageRefusal>> {
        let answer = self.allocations.get(&ticket)?.answer?;
        self.allocations.remove(&ticket);
        Some(answer)
    }

    /// A node asks for new minipages.
    pub(super) fn take_allocation(
        &mut self,
        from: NodeId,
        request: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let MemoryMessage {
            address: count,
            number,
            minipage,
            ..
        } = request;
        let is_for_it = self.allocator_of(from) == Some(self.me) && !self.managers.contains(&from);
        if !is_for_it || request.asker != from {
            return Err("an allocation for another node, or by one that does not manage it");
        }
        let (bytes, align) = (minipage.at, u64::from(number & !RELEASED));
        let own = self.allocate_released(number & RELEASED != 0);
        let allocated = match request.operation {
            MemoryOperation::AllocateInGroups => self.allocate_in_groups(count, bytes, align),
            _ => self.allocate(count, bytes, align),
        };
        self.allocate_released(own);
        let answer = match allocated {
            Ok(run) => {
                out.act(MemoryAct::Allocated(run));
                let bytes = run.bytes;
                MemoryMessage {
                    kind: MemoryKind::Grant,
                    address: run.at,
                    minipage: Minipage { at: run.at, bytes },
                    ..request
                }
            }
            Err(MinipageRefusal::Full { used, left, .. }) => MemoryMessage {
                kind: MemoryKind::Gone,
                address: used,
                minipage: Minipage { at: left, bytes: 0 },
                ..request
            },
            Err(MinipageRefusal::Size { .. }) => {
                return Err("an allocation of a size that there is not");
            }
        };
        self.send(from, answer, out);
        Ok(())
    }

    /// The manager has allocated what this node asked for, or has no room for it.
    pub(super) fn take_allocated(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let MemoryMessage {
            kind,
            address,
            minipage,
            ..
        } = message;
        let (object_bytes, views) = (self.object_bytes, self.views);
        let is_of_manager = self.allocator_of(self.me) == Some(from);
        let allocation = self.allocations.get_mut(&message.ticket);
        let allocation = allocation.filter(|it| it.answer.is_none() && is_of_manager);
        let allocation =
            allocation.ok_or("an answer about an allocation that was not asked for")?;
        let Allocation {
            count,
            bytes,
            align,
            ..
        } = *allocation;
        allocation.answer = Some(match kind {
            MemoryKind::Grant => {
                let run = MinipageRun::laid_out(minipage.at, (count, bytes, align), views);
                let last = run.minipage(count - 1);
                let fits = last.is_some_and(|last| last.is_within(object_bytes, views));
                if !fits || u64::from(minipage.bytes) != bytes {
                    return Err("minipages that are not those that were asked for");
                }
                Ok(run)
            }
            MemoryKind::Gone => Err(MinipageRefusal::Full {
                count,
                bytes,
                used: address,
                left: minipage.at,
            }),
            _ => return Err("an answer about an allocation that is none"),
        });
        out.over(address);
        Ok(())
    }
}
