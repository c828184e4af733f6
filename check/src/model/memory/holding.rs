//! Threads that hold minipages.

use dhole_protocol::memory::{Permission, WantedHold};

use super::{MemoryBug, MemoryFault, MemoryModel, MemoryOp, Moment, Phase, Step, minipage};

fn needed(writes: bool) -> Permission {
    match writes {
        true => Permission::Write,
        false => Permission::Read,
    }
}

impl Step<'_> {
    /// A thread that is to hold a minipage takes a step: it holds it, or waits.
    pub(super) fn holds(&mut self, at: usize, number: usize, writes: bool) {
        let of = self.next_minipage(at, number);
        let address = self.model.address(of);
        let leaves = self.model.bug == Some(MemoryBug::LeaveRequest);
        let mut held = None;
        self.at(at, |node, out| {
            let thread = &mut node.threads[number];
            let new = || WantedHold::new(address, writes);
            let mut holding = thread.holding.take().unwrap_or_else(new);
            let waits = matches!(thread.phase, Phase::Waits { .. });
            let early = (leaves && waits).then(|| node.machine.hold(address, writes).ok());
            held = match early.flatten() {
                Some(minipage) => Some(Ok(minipage)),
                None => node.machine.hold_step(&mut holding, false, out),
            };
            let waits = held.is_none();
            thread.holding = waits.then_some(holding);
            thread.phase = match waits {
                true => Phase::Waits { asked: true },
                false => Phase::Computes,
            };
        });
        match held {
            None => return,
            Some(Ok(_)) => {}
            Some(Err(_)) => {
                if !self.is_freeing(of) {
                    self.fault(MemoryFault::WrongFree);
                }
                return self.over(at, number);
            }
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

    /// A thread takes a lock of its domain, or gives it up.
    pub(super) fn locks(&mut self, at: usize, number: usize, locked: Option<bool>) {
        let of = self.next_minipage(at, number);
        self.node(at, |node| node.threads[number].locked[of] = locked);
        self.over(at, number);
    }

    pub(super) fn next_minipage(&self, at: usize, number: usize) -> usize {
        let done = self.moment.nodes[at].threads[number].done;
        minipage(self.model.nodes[at][number][done])
    }
}

impl MemoryModel {
    /// Whether a thread is to take a lock that others of its domain have.
    pub(super) fn is_locked_out(&self, moment: &Moment, at: usize, number: usize) -> bool {
        let done = moment.nodes[at].threads[number].done;
        let Some(MemoryOp::Lock(of, writes)) = self.nodes[at][number].get(done).copied() else {
            return false;
        };
        let mut nodes = moment.nodes.iter().enumerate();
        nodes.any(|(node, it)| {
            let mut locked = it.threads.iter().filter_map(|thread| thread.locked[of]);
            self.leader(node) == self.leader(at) && locked.any(|others| others || writes)
        })
    }
}
