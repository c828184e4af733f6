//! Processes that workers start on nodes: a start is told like a request for an operation, and its
//! end like the result. So a process sees what was written before it was started, and whoever has
//! waited for its end sees what it wrote.

use dhole_model::{NodeId, VectorTime};

use super::call::{CallId, Outcome, Refusal};
use super::host::Host;
use super::message::{ObjectsMessage, Start};
use super::{Objects, ObjectsCommand, Out};

impl Objects {
    /// The worker starts a process.
    pub(super) fn spawn(&mut self, start: Start, to: NodeId, host: &dyn Host, out: Out<'_>) {
        if to == self.me {
            out.push(ObjectsCommand::Start(start));
            return;
        }
        if self.gone.contains_key(&to) {
            let (call, outcome) = (start.by.number, Err(Refusal::Lost(to)));
            out.push(ObjectsCommand::Finished { call, outcome });
            return;
        }
        let (time, news) = self.release_to(to, host);
        let number = start.by.number;
        self.pending.insert_once(to, number, time.clone());
        let (chain, delivered) = (start.chain.clone(), self.delivered);
        let start = Start { time, ..start };
        let message = match chain.is_empty() {
            true => ObjectsMessage::Spawn {
                start,
                delivered,
                news,
            },
            false => ObjectsMessage::SpawnInChain {
                start,
                chain,
                delivered,
                news,
            },
        };
        out.push(ObjectsCommand::Send { to, message });
    }

    /// A process has come to its end here, after the end of its last interval.
    pub(super) fn ended(
        &mut self,
        by: CallId,
        time: Option<VectorTime>,
        outcome: Outcome,
        host: &dyn Host,
        out: Out<'_>,
    ) {
        if by.node == self.me {
            let call = by.number;
            out.push(ObjectsCommand::Finished { call, outcome });
            return;
        }
        self.hear_own(host);
        self.merge_seen(by.node, time.as_ref());
        self.reply(by, outcome.as_deref().map_err(Refusal::clone), out);
    }
}
