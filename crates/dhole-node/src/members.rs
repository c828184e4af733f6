//! Commands of the protocols that the program brings.

use dhole_model::NodeId;
use dhole_protocol::{Command, Event, Message, ProtocolError, Unit};

use crate::blocks;
use crate::node::State;
use crate::region_commands::Stored;
use crate::step::Step;

impl State {
    /// Carries out a command that members alone give.
    pub(crate) fn carry_out_for_member(
        &mut self,
        command: Command,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        match command {
            Command::SendBytes { to, message, units } => {
                self.send_bytes_of(to, message, &units, step)
            }
            Command::SendChanges { to, message, units } => {
                self.send_changes_of(to, message, &units, step)
            }
            Command::DeliverAgain { from, message } => {
                self.keep_message(from, message, step);
                Ok(())
            }
            other => self.carry_out(other, step),
        }
    }

    /// Gathers the bytes of units and sends them behind a message.
    fn send_bytes_of(
        &mut self,
        to: NodeId,
        message: Message,
        units: &[Unit],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload = step.pool.take();
        for unit in units {
            match *unit {
                Unit::Object(oid) => oid.gather(step.heap, payload.buffer())?,
                Unit::Block(block) => block.gather(step.heap, payload.buffer())?,
            };
        }
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Gathers what the worker has changed in units and sends it behind a message.
    fn send_changes_of(
        &mut self,
        to: NodeId,
        message: Message,
        units: &[Unit],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let (mut payload, mut diff) = (step.pool.take(), step.pool.take());
        for unit in units {
            diff.buffer().clear();
            match *unit {
                Unit::Object(oid) => oid.gather_written(step.heap, diff.buffer())?,
                Unit::Block(block) => blocks::gather_changes(block, &mut diff, step)?,
            }
            payload.extend(&(diff.len() as u64).to_le_bytes());
            payload.extend(&diff);
        }
        self.counting.all.diffs += units.len() as u64;
        self.counting.all.diff_bytes += payload.len() as u64;
        step.pool.give_back(diff);
        self.send(to, message, payload, step.out);
        Ok(())
    }

    /// Keeps a message that is being delivered, with its payload.
    fn keep_message(&mut self, from: NodeId, message: Message, step: &mut Step<'_, '_>) {
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
