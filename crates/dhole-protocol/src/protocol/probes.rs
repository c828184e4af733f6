//! Probes as messages, and the count of messages by which a quiescence probe decides.

use std::sync::Arc;

use dhole_model::NodeId;

use super::Protocol;
use crate::command::{Command, Commands};
use crate::message::Message;
use crate::sync::probes::{Probe, SendProbes};
use crate::sync::quiescence_probe::QuiescenceProbe;
use crate::waiting::{Waiter, WaitingFor};

impl SendProbes for Commands {
    fn probe(&mut self, to: NodeId, probe: Probe, at_manager_of: Option<WaitingFor>) {
        let Probe { path, confirms } = probe;
        let message = Message::Probe {
            path,
            confirms,
            at_manager_of: at_manager_of.map(Box::new),
        };
        self.push(Command::Send { to, message });
    }

    fn quiescence_probe(&mut self, to: NodeId, probe: QuiescenceProbe) {
        let message = Message::QuiescenceProbe(Box::new(probe));
        self.push(Command::Send { to, message });
    }

    fn deadlock(&mut self, to: NodeId, waits: Arc<[Waiter]>) {
        let message = Message::Deadlock { cycle: waits };
        self.push(Command::Send { to, message });
    }
}

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
}
