//! What objects own travels with them.

use dhole_model::NodeId;
use dhole_net::Payload;
use dhole_protocol::{MOST_ALONG, ProtocolError, Sent, SentList};

use crate::node::State;
use crate::step::{Step, bad, gather, must, worker_is};

/// The most bytes that the objects of a reply own and take along.
const MOST_BYTES: usize = 64 << 10;

impl State {
    /// Adds to a reply what its objects own, the nearest first, as far as the protocol lets it.
    pub fn add_owned(
        &mut self,
        to: NodeId,
        sent: &mut SentList,
        payload: &mut Payload,
        step: &mut Step<'_, '_>,
    ) {
        let worker = worker_is(step.heap.presence());
        let (asked, most_bytes) = (sent.len(), payload.len() + MOST_BYTES);
        let mut next = 0;
        while let Some(&oid) = self
            .owned
            .get(next)
            .filter(|_| sent.len() < asked + MOST_ALONG)
        {
            next += 1;
            let fits = step
                .heap
                .bytes_of(oid)
                .is_some_and(|bytes| payload.len() + bytes <= most_bytes);
            if !fits || sent.iter().any(|sent| sent.oid == oid) {
                continue;
            }
            let Some(along) = self.protocol.send_along(oid, to, worker) else {
                continue;
            };
            if along.make_clean {
                must(step.heap.make_clean(oid), "the worker is in a call");
                self.publish(oid, step.heap);
            }
            let start = payload.len();
            gather(step.heap, oid, false, payload);
            step.heap.owned(oid, &payload[start..], &mut self.owned);
            sent.push(Sent {
                oid,
                version: along.version,
            });
        }
        self.owned.clear();
    }

    /// Whether an object that came along is owned by one before it.
    pub fn check_owned(&self, sent: Sent) -> Result<(), ProtocolError> {
        match self.owned.contains(&sent.oid) {
            true => Ok(()),
            false => Err(bad(sent, "an object that nothing in the reply owns")),
        }
    }
}
