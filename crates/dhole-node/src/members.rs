//! Commands of the protocols that the program brings.

use dhole_model::{NodeId, Oid};
use dhole_protocol::{Event, Message, ProtocolError};

use crate::node::State;
use crate::step::{Step, not_stored};

impl State {
    /// Gathers the bytes of objects and sends them behind a message.
    pub(crate) fn send_bytes_of(
        &mut self,
        to: NodeId,
        message: Message,
        objects: &[Oid],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        for oid in objects {
            let gathered = step.heap.gather(*oid, payload.buffer());
            gathered.map_err(|refused| not_stored(*oid, &refused))?;
        }
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Keeps a message that is being delivered, with its payload.
    pub(crate) fn keep_message(&mut self, from: NodeId, message: Message, step: &mut Step<'_, '_>) {
        let mut payload = step.pool.take();
        payload.extend(step.payload);
        self.counting.all.deferred_requests += 1;
        self.again.push((from, message, payload));
    }

    /// Answers the requests that waited for a call of the worker, and takes again what was kept.
    pub(crate) fn serve_all(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        self.step(Event::Serve, step)?;
        for (from, message, payload) in std::mem::take(&mut self.again) {
            let mut again = Step {
                from,
                heap: &mut *step.heap,
                pool: step.pool,
                out: &mut *step.out,
                payload: &payload,
                at_once: None,
            };
            let taken = self.step(Event::DeliverAgain { from, message }, &mut again);
            step.pool.give_back(payload);
            taken?;
        }
        Ok(())
    }
}
