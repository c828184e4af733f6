//! Waits that end by chance: because a timer or a probe came, and not what was waited for
//! ([`Counters::waits_ended_by_time`](dhole_model::Counters::waits_ended_by_time)).

use dhole_heap::MonitorCall;
use dhole_model::{Counters, NodeId};
use dhole_protocol::{Event, is_built_in};

use crate::machine::{Machine, Receivers, Woken};
use crate::node::State;
use crate::worker::{Failure, Link};

/// Whether the wake comes that the machine owes the worker of a node: it is on its way then, and
/// the time of the wait was over just before.
pub(crate) fn is_woken(machine: &dyn Machine, receivers: &Receivers<'_>, node: NodeId) -> bool {
    machine.wait_polling(receivers, node, machine.owed_for()) == Woken::ByWake
}

impl State {
    /// A wait has ended so.
    pub(crate) fn ended_by_time(&mut self) {
        self.counting.all.waits_ended_by_time += 1;
    }

    /// A probe has come while the worker waited.
    pub(crate) fn probe_came(&mut self) {
        if self.may_go_on() && self.ended().is_none() {
            self.ended_by_time();
        }
    }
}

impl Link<'_> {
    /// The time of a wait is over, and what the worker waits for has come. Whether the machine was
    /// to wake it for that.
    pub(crate) fn found_late(&self, call: &mut MonitorCall<'_, State>, woke: bool) {
        call.unlock();
        if !(woke && is_woken(self.machine, self.receivers, self.node.id)) {
            call.split().1.ended_by_time();
        }
    }

    /// The time of a wait is over, and what the worker waits for has not come.
    pub(crate) fn waited_long(
        &self,
        call: &mut MonitorCall<'_, State>,
    ) -> Result<(), Box<Failure>> {
        let deferred = call.split().1.protocol.deferred();
        self.step(call, Some(Event::WaitedLong))?;
        let state = call.split().1;
        let goes_on = state.may_go_on() && state.ended().is_none();
        // What waited for a call of the worker was not to wait while it waits itself.
        if goes_on || state.protocol.deferred() < deferred {
            state.ended_by_time();
        }
        Ok(())
    }
}

/// What the program is told of waits that ended so on some nodes.
pub(crate) fn warning<'a>(nodes: impl Iterator<Item = &'a Counters> + Clone) -> Option<String> {
    let late: u64 = nodes.clone().map(|node| node.waits_ended_by_time).sum();
    if late == 0 {
        return None;
    }
    let names = nodes.flat_map(|node| node.by_protocol.keys());
    let mut own = names.filter(|name| !is_built_in(name));
    let whose = match own.next() {
        Some(name) => format!("the protocol {name} of this program, or dhole, has a mistake"),
        None => "dhole has a mistake".to_owned(),
    };
    let said = format!(
        "{late} waits ended only because time had passed (`waits_ended_by_time`), so that the run \
         took longer than it should: {whose}"
    );
    debug_assert!(!whose.starts_with("dhole"), "{said}");
    Some(said)
}
