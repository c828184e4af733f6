//! Threads that hold minipages.

use dhole_protocol::memory::Permission;

use super::{MemoryBug, MemoryFault, Step, minipage};

/// Bytes of a minipage here.
const BYTES: u64 = 8;

fn needed(writes: bool) -> Permission {
    match writes {
        true => Permission::Write,
        false => Permission::Read,
    }
}

impl Step<'_> {
    /// A thread holds a minipage from here on, if it may.
    pub(super) fn holds(&mut self, at: usize, number: usize, writes: bool) -> bool {
        let of = self.next_minipage(at, number);
        let address = self.model.address(of);
        let mut held = false;
        self.at(at, |node, _| {
            held = node.machine.hold(address, BYTES, writes).is_ok()
        });
        if !held {
            return false;
        }
        let (permission, value) = (self.moment.nodes[at].copies[of].0, self.value(at, of));
        let latest = self.moment.latest[of].0;
        if permission < needed(writes) {
            self.fault(MemoryFault::NotAlone);
        } else if value != latest {
            self.fault(MemoryFault::Stale);
        }
        self.node(at, |node| node.threads[number].held[of] = Some(latest));
        if self.model.bug == Some(MemoryBug::ReleaseEarly) {
            self.gives_up(at, of, writes);
        }
        self.over(at, number);
        true
    }

    /// A thread holds a minipage no more, which no other node has written meanwhile.
    pub(super) fn releases(&mut self, at: usize, number: usize, writes: bool) {
        let of = self.next_minipage(at, number);
        // What it wanted to hold may be gone.
        if let Some(held) = self.moment.nodes[at].threads[number].held[of] {
            let (permission, value) = (self.moment.nodes[at].copies[of].0, self.value(at, of));
            let latest = self.moment.latest[of].0;
            if permission < needed(writes) {
                self.fault(MemoryFault::NotAlone);
            } else if held != latest || value != latest {
                self.fault(MemoryFault::Stale);
            }
            if writes {
                self.moment.writes += 1;
                let value = self.moment.writes;
                self.moment.latest[of].0 = value;
                self.set_value(at, of, value);
            }
            self.node(at, |node| node.threads[number].held[of] = None);
            if self.model.bug != Some(MemoryBug::ReleaseEarly) {
                self.gives_up(at, of, writes);
            }
        }
        self.over(at, number);
    }

    fn gives_up(&mut self, at: usize, of: usize, writes: bool) {
        let address = self.model.address(of);
        let mut refused = false;
        self.at(at, |node, out| {
            refused = node.machine.release(address, writes, out).is_err();
        });
        if refused {
            self.fault(MemoryFault::Refused);
        }
    }

    pub(super) fn next_minipage(&self, at: usize, number: usize) -> usize {
        let done = self.moment.nodes[at].threads[number].done;
        minipage(self.model.nodes[at][number][done])
    }
}
