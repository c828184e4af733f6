//! Allocating minipages again that were freed.

use dhole_protocol::memory::MinipageRun;

use super::{Phase, Step, minipage};

impl Step<'_> {
    /// A thread allocates a minipage again, or asks the manager of all to do so.
    pub(super) fn allocates(&mut self, at: usize, number: usize) {
        if !self.model.chosen.is_empty() && !self.model.chosen.contains(&at) {
            return self.at(at, |node, out| {
                let asked = node.machine.ask_to_allocate((1, 8, 8), false, out);
                let thread = &mut node.threads[number];
                thread.ticket = asked.expect("it is of a size that there is");
                thread.phase = Phase::Waits { asked: true };
            });
        }
        let done = self.moment.nodes[at].threads[number].done;
        let of = minipage(self.model.nodes[at][number][done]);
        let address = self.model.address(of);
        let mut run = None;
        self.node(at, |node| {
            run = node.machine.allocate(1, 8, 8).ok();
        });
        let run = run.expect("it was freed");
        assert_eq!(run.at, address);
        self.was_allocated(run);
        self.over(at, number);
    }

    /// A manager has allocated a minipage: it is zero, and there.
    pub(super) fn was_allocated(&mut self, run: MinipageRun) {
        let of = self.model.minipage_of(run.at);
        self.moment.latest[of.expect("it was freed")] = (0, false);
    }

    /// A thread that has asked the manager of all was woken: by its answer, or by something else on
    /// the page.
    pub(super) fn has_allocated(&mut self, at: usize, number: usize) {
        let mut is_over = false;
        self.node(at, |node| {
            let thread = &mut node.threads[number];
            let allocated = node.machine.allocated(thread.ticket);
            assert!(!matches!(allocated, Some(Err(_))), "it was freed before");
            is_over = allocated.is_some();
            thread.phase = match is_over {
                true => Phase::Computes,
                false => Phase::Waits { asked: true },
            };
            if is_over {
                thread.ticket = 0;
            }
        });
        if is_over {
            self.over(at, number);
        }
    }
}
