//! Threads that wait for a round of requests, and open what came.

use dhole_protocol::memory::{Accessed, Permission, RequestState};

use super::{MemoryBug, Phase, Step};

/// Bytes of a minipage here.
const BYTES: u32 = 8;

impl Step<'_> {
    /// A thread makes the requests of a round.
    pub(super) fn fetches(&mut self, at: usize, number: usize) {
        let of = self.next_minipage(at, number);
        let address = self.model.address(of);
        let mut is_over = false;
        self.at(at, |node, out| {
            let accessed = node.machine.fetch(address, BYTES, out);
            is_over = matches!(accessed, Accessed::Permitted | Accessed::Dropped);
            let asked = accessed == Accessed::Asked;
            node.prefetched |= u8::from(asked) << of;
            node.threads[number].phase = match node.machine.state(address) {
                _ if is_over => Phase::Computes,
                RequestState::Waits => Phase::Waits { asked },
                RequestState::Over | RequestState::Gone => Phase::Woken { asked },
            };
        });
        if is_over {
            self.over(at, number);
        }
    }

    /// A thread opens what has come of its round and is there still.
    pub(super) fn opens(&mut self, at: usize, number: usize) {
        let of = self.next_minipage(at, number);
        let address = self.model.address(of);
        let came = self.moment.nodes[at].machine.came(address);
        let permission = match self.model.bug {
            Some(MemoryBug::OpenLost) => Some(Permission::Read),
            _ => came.map(|(_, permission)| permission),
        };
        self.node(at, |node| {
            if let Some(permission) = permission {
                node.copies[of].0 = permission;
            }
            node.threads[number].phase = Phase::Computes;
        });
        self.look(of);
        self.over(at, number);
    }
}
