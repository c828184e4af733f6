//! Units behind messages, and messages that are taken again.

use dhole_model::NodeId;
use dhole_protocol::{Behind, Event, Message, ProtocolError, Unit};
use smallvec::SmallVec;

use crate::blocks::gather_changes;
use crate::node::State;
use crate::object_commands::gather_diff;
use crate::step::{Step, gather_elements, not_stored};

impl State {
    /// Gathers units and sends them behind a message.
    pub(crate) fn send_units(
        &mut self,
        (to, mut message): (&[NodeId], Message),
        units: &[Unit],
        what: Behind,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        let mut sizes = SmallVec::<[u64; 1]>::new();
        for unit in units {
            let before = payload.len();
            match (*unit, what) {
                (Unit::Object(oid), Behind::Changes) => gather_diff(oid, step.heap, &mut payload)?,
                (Unit::Object(oid), _) => {
                    let gathered = step.heap.gather(oid, payload.buffer());
                    gathered.map_err(|refused| not_stored(oid, &refused))?;
                }
                (Unit::Block(block), Behind::Changes) => gather_changes(block, &mut payload, step)?,
                (Unit::Block(elements), _) => gather_elements(elements, step.heap, &mut payload)?,
            }
            sizes.push((payload.len() - before) as u64);
        }
        message.set_sizes(&sizes);
        let (all, units) = (&mut self.counting.all, units.len() as u64);
        match what {
            Behind::Bytes => {}
            Behind::Pushed => all.pushes += units * to.len() as u64,
            Behind::Changes | Behind::Written => {
                all.diffs += units;
                all.diff_bytes += payload.len() as u64;
            }
        }
        let Some((last, others)) = to.split_last() else {
            return Ok(());
        };
        for other in others {
            let mut copy = step.pool.take();
            copy.extend(&payload);
            self.send(*other, message.clone(), copy, step.out);
        }
        self.send(*last, message, payload, step.out);
        Ok(())
    }

    /// Keeps a message that is being delivered, with its payload.
    pub(crate) fn keep_message(&mut self, from: NodeId, message: Message, step: &mut Step<'_, '_>) {
        let mut payload = step.pool.take();
        payload.extend(step.payload);
        self.again.push((from, message, payload));
        self.is_deferred();
    }

    /// Takes what was kept again, and answers the requests that waited for a call of the worker.
    pub(crate) fn serve_all(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        let deferred = self.counting.all.deferred_requests;
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
        self.step(Event::Serve, step)?;
        // What waits on is counted once.
        self.counting.all.deferred_requests = deferred;
        Ok(())
    }
}
