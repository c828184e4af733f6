//! Units behind messages, and messages that are taken again.

use dhole_model::NodeId;
use dhole_protocol::{Behind, Event, Message, ProtocolError, Unit};
use smallvec::SmallVec;

use crate::blocks;
use crate::node::State;
use crate::region_commands::Stored;
use crate::step::Step;

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
                (Unit::Object(oid), Behind::Changes) => {
                    oid.gather_written(step.heap, payload.buffer())?
                }
                (Unit::Object(oid), _) => oid.gather(step.heap, payload.buffer())?,
                (Unit::Block(block), Behind::Changes) => {
                    blocks::gather_changes(block, &mut payload, step)?
                }
                (Unit::Block(block), _) => block.gather(step.heap, payload.buffer())?,
            }
            sizes.push((payload.len() - before) as u64);
        }
        message.set_sizes(&sizes);
        let (all, units) = (&mut self.counting.all, units.len() as u64);
        match what {
            Behind::Bytes => {}
            Behind::Pushed => all.pushes += units * to.len() as u64,
            Behind::Changes => {
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
