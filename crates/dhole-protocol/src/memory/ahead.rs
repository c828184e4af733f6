//! Requests for which no thread waits alone: prefetches, and those of a round that a thread waits
//! for together.

use dhole_part::PartEffects;

use super::command::Permission;
use super::message::MemoryOperation;
use super::minipage::Minipage;
use super::{Accessed, Millipage};

/// Most requests of a node that have no thread of their own, and are not answered yet.
pub const MOST_PREFETCHES: usize = 1024;

/// Most bytes of the minipages that those ask for, where they are several.
pub const MOST_PREFETCH_BYTES: u64 = 64 << 20;

/// Whether a thread waits for a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Waits {
    /// One does, and acknowledges when it goes on.
    Thread,
    /// One does for a round of requests. Each is acknowledged when it is answered, and the thread
    /// opens the minipages of the round together.
    Round {
        /// Bytes of the minipage.
        bytes: u32,
    },
    /// None does.
    Nobody {
        /// Bytes of the minipage.
        bytes: u32,
    },
}

impl Waits {
    /// Bytes of a request that is limited.
    fn limited(self) -> Option<u64> {
        match self {
            Waits::Thread => None,
            Waits::Round { bytes } | Waits::Nobody { bytes } => Some(bytes.into()),
        }
    }
}

impl Millipage {
    /// A thread may read a minipage of so many bytes soon, and does not wait. The request is
    /// dropped where [`MOST_PREFETCHES`] are under way, or [`MOST_PREFETCH_BYTES`].
    pub fn prefetch(
        &mut self,
        address: u64,
        bytes: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Accessed {
        self.reads_ahead(address, Waits::Nobody { bytes }, out)
    }

    /// A thread wants to read a minipage of so many bytes, one of a round of which it makes all
    /// requests before it waits. It is woken at each answer. The threads of the node may do
    /// nothing with the minipage before the thread opens those that [came](Millipage::came).
    ///
    /// [`Dropped`](Accessed::Dropped) says that others must be answered first.
    pub fn fetch(
        &mut self,
        address: u64,
        bytes: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Accessed {
        self.reads_ahead(address, Waits::Round { bytes }, out)
    }

    fn reads_ahead(
        &mut self,
        address: u64,
        waits: Waits,
        out: &mut impl PartEffects<Self>,
    ) -> Accessed {
        match self.held_at(address) {
            Some(_) => Accessed::Permitted,
            None => self.joins_or_asks(address, MemoryOperation::Read, waits, out),
        }
    }

    /// A minipage of a round, if this node has a copy now, and what its threads may do with it.
    pub fn came(&self, address: u64) -> Option<(Minipage, Permission)> {
        let held = self.held_at(address)?;
        Some((held.minipage, held.permission))
    }

    /// Joins a request for a page, if there is one.
    pub(super) fn joins_ahead(&mut self, page: u64, waits: Waits) -> bool {
        let Some(asked) = self.asked.get_mut(&page) else {
            return false;
        };
        asked.threads |= waits == Waits::Thread;
        match (asked.waits, waits) {
            (Waits::Round { .. } | Waits::Nobody { .. }, Waits::Thread) => {
                let before = std::mem::replace(&mut asked.waits, waits);
                self.uncount_ahead(before);
            }
            (Waits::Nobody { bytes }, Waits::Round { .. }) => {
                asked.waits = Waits::Round { bytes };
            }
            _ => {}
        }
        true
    }

    pub(super) fn has_room_ahead(&self, waits: Waits) -> bool {
        let Some(bytes) = waits.limited() else {
            return true;
        };
        let all = self.prefetched_bytes + bytes;
        let fits = self.prefetches == 0 || all <= MOST_PREFETCH_BYTES;
        fits && self.prefetches < MOST_PREFETCHES
    }

    pub(super) fn count_ahead(&mut self, waits: Waits) {
        if let Some(bytes) = waits.limited() {
            self.prefetches += 1;
            self.prefetched_bytes += bytes;
        }
    }

    pub(super) fn uncount_ahead(&mut self, waits: Waits) {
        if let Some(bytes) = waits.limited() {
            self.prefetches -= 1;
            self.prefetched_bytes -= bytes;
        }
    }
}
