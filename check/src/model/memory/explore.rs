//! Takes every step, and says what was found and seen.

use dhole_protocol::memory::{Permission, RequestState};

use super::super::world::{Found, explore};
use super::{MemoryFault, MemoryModel, MemoryOp, MemorySight, Moment, Phase, Thread, minipage};

impl MemoryModel {
    /// Whether a moment shows this.
    pub(super) fn sees(&self, moment: &Moment, sight: MemorySight) -> bool {
        let mut nodes = moment.nodes.iter().zip(&self.nodes);
        nodes.any(|(node, ops)| {
            // Minipages for which threads wait, and whether to write them.
            let waits = |thread: &Thread, ops: &Vec<MemoryOp>| match thread.phase {
                Phase::Waits { .. } => Some(ops[thread.done]),
                _ => None,
            };
            let threads = || node.threads.iter().zip(ops);
            let waiting: Vec<MemoryOp> = threads()
                .filter_map(|(thread, ops)| waits(thread, ops))
                .collect();
            let has = |op: &MemoryOp, least| node.copies[minipage(*op)].0 >= least;
            match sight {
                MemorySight::QueueOfTwo => node.machine.longest_queue() >= 2,
                MemorySight::UpgradeLostCopy => waiting.iter().any(|op| {
                    let of = minipage(*op);
                    node.upgrading & (1 << of) != 0 && node.copies[of].0 == Permission::Nothing
                }),
                MemorySight::ReadJoinedByWrite => {
                    let reads = |op: &MemoryOp| matches!(op, MemoryOp::Read(_));
                    let writes = |op: &MemoryOp| matches!(op, MemoryOp::Write(_));
                    waiting.iter().any(reads) && waiting.iter().any(writes)
                }
                MemorySight::PushOntoRequest => waiting
                    .iter()
                    .any(|op| matches!(op, MemoryOp::Read(_)) && has(op, Permission::Read)),
                MemorySight::PrefetchJoined => {
                    let ahead = |op: &MemoryOp| node.prefetched & (1 << minipage(*op)) != 0;
                    waiting.iter().any(ahead)
                }
                MemorySight::HeldBack => node.machine.defers_any(),
                MemorySight::FetchLost => threads().any(|(thread, ops)| {
                    let woken = matches!(thread.phase, Phase::Woken { .. });
                    let lost = |op: &MemoryOp| {
                        let came = || node.machine.came(self.address(minipage(*op)));
                        matches!(op, MemoryOp::Fetch(_)) && came().is_none()
                    };
                    woken && ops.get(thread.done).is_some_and(lost)
                }),
                MemorySight::FreeAgainstRequest => threads().any(|(thread, ops)| {
                    let woken = matches!(thread.phase, Phase::Woken { .. });
                    let address = |op: &MemoryOp| self.address(minipage(*op));
                    let state = |op| node.machine.state(address(op));
                    woken && ops.get(thread.done).map(state) == Some(RequestState::Gone)
                }),
            }
        })
    }

    /// Takes every step from every state, until the first fault.
    pub fn explore(self) -> Found<MemoryFault, MemorySight> {
        explore(self)
    }
}
