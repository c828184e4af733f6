//! What a node does with a probe, and the count of messages by which a probe decides.

use std::sync::Arc;

use dhole_model::NodeId;

use super::Protocol;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::message::Message;
use crate::sync::probes::DeadlockProbe;
use crate::waiting::Waiter;

impl Protocol {
    /// Counts what a step sends, but for rounds of barriers, which are counted as they are said.
    pub(super) fn count_sent(&mut self, commands: &[Command]) {
        for command in commands {
            if let Command::Send { to, message } = command
                && message.may_end_a_wait()
                && !matches!(message, Message::BarrierRound(_))
            {
                self.traffic.sent_to(*to);
            }
        }
    }

    /// A probe visits this node, or has come to its end here.
    pub(super) fn probed(
        &mut self,
        from: NodeId,
        mut probe: Box<DeadlockProbe>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if probe.edges.is_over {
            if probe.asker() != self.me {
                let what = "a probe that ends at a node that has not asked";
                return Err(ProtocolError::BadMessage { from, what });
            }
            // Threads that look themselves are told first, where they wait: their lines are those
            // that the program can do something about.
            let found = probe.found();
            let found = found.filter(|waits| !waits.iter().any(Waiter::is_looked_after));
            found.iter().for_each(|waits| tell(waits, out));
            return Ok(());
        }
        probe.edges.visit(&self.edges());
        let (sent, received) = self.traffic.totals();
        probe.edges.adds_traffic(sent, received);
        let nodes = self.coherence.intervals.time().nodes();
        let after = self.traffic.next_left(self.me.index() + 1);
        let to = match after.index() < nodes {
            true => after,
            false => self.traffic.next_left(0),
        };
        if probe.edges.pass(self.me, to, self.traffic.lost()) {
            let message = Message::Probe(probe);
            out.push(Command::Send { to, message });
        }
        Ok(())
    }
}

/// Tells the workers that they wait for ever, each node once.
fn tell(waits: &Arc<[Waiter]>, out: &mut Commands) {
    let mut told = Vec::new();
    let workers = waits.iter().filter(|wait| wait.raw_thread().is_none());
    for to in workers.map(|wait| wait.node) {
        if !told.contains(&to) {
            told.push(to);
            let cycle = Arc::clone(waits);
            let message = Message::Deadlock { cycle };
            out.push(Command::Send { to, message });
        }
    }
}
