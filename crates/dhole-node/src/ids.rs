//! Object ids that node 0 hands out to other processes, which have used up what they had.

use dhole_model::NodeId;
use dhole_net::Payload;
use dhole_protocol::{HandedOut, Message, ProtocolError};

use crate::node::State;
use crate::step::Step;

impl State {
    /// Hands ids out to a node that asked for so many, or says that there are too few.
    pub(crate) fn hand_ids_out(
        &mut self,
        to: NodeId,
        ids: u64,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let (part, left) = step.heap.cluster().hand_ids_out(to, ids);
        let part = part.unwrap_or(0..0);
        let handed = HandedOut {
            first: part.start,
            count: part.end - part.start,
            left,
        };
        if to == step.heap.node() {
            return State::take_ids(handed, step);
        }
        self.send(to, Message::HandIdsOut(handed), Payload::NONE, step.out);
        Ok(())
    }

    /// Takes the ids that this node was handed out.
    pub(crate) fn take_ids(
        handed: HandedOut,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let HandedOut { first, count, left } = handed;
        if count == 0 {
            step.heap.cluster().no_more_ids(left);
            return Ok(());
        }
        let taken = step.heap.take_ids(first..first.saturating_add(count));
        taken.map_err(|_not_mine| ProtocolError::BadMessage {
            from: NodeId(0),
            what: "ids that are another node's, or none of this run's",
        })
    }
}
