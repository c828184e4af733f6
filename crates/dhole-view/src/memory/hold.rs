//! WantedHold minipages, so that what would take them away waits.

use dhole_model::{CallSite, WaitCause};
use dhole_node::PartsStep;
use dhole_protocol::memory::{HoldRefusal, MemoryOperation, Minipage, WantedHold};

use super::{Inside, Kept, Memory, waits_at, waits_for};
use crate::context::{self, MemoryWaitError};

impl Memory {
    /// Holds the minipage at an address, for a call of the program there, and waits until this node
    /// may have it.
    ///
    /// # Errors
    /// [`MemoryWaitError`]; [`HoldRefusal`], where [`Lacks`](HoldRefusal::Lacks) says that nothing
    /// is allocated there.
    pub fn hold(
        &self,
        address: u64,
        writes: bool,
        site: CallSite,
    ) -> Result<Result<Minipage, HoldRefusal>, MemoryWaitError> {
        if context::holds() {
            return Err(MemoryWaitError::Holds);
        }
        let thread = context::own_number();
        let mut holding = WantedHold::new(address, writes);
        let mut counted = false;
        let mut held = Err(HoldRefusal::Lacks);
        let cause = match writes {
            true => WaitCause::ToWrite,
            false => WaitCause::Object,
        };
        let told = waits_at(cause, Some(site));
        self.steps((waits_for(address), told), &mut |inside, effects| {
            let Inside { machine, kept, .. } = &mut *inside;
            // A thread that keeps the page until its instruction is over has asked for it.
            let is_page = |kept: &Kept| waits_for(kept.page) == waits_for(address);
            let is_kept = kept.iter().any(is_page);
            let step = machine.hold_step(&mut holding, is_kept, effects);
            if holding.has_asked() && !counted {
                counted = true;
                effects.out.work().faults += 1;
                match writes {
                    true => effects.out.write_faults += 1,
                    false => effects.out.read_faults += 1,
                }
            }
            inside.waits.remove(&thread);
            let Some(ended) = step else {
                let operation = match writes {
                    true => MemoryOperation::Write,
                    false => MemoryOperation::Read,
                };
                inside.waits.insert(thread, (address, operation));
                return PartsStep::Waits;
            };
            held = ended;
            PartsStep::Over
        })?;
        Ok(held)
    }

    /// Holds it no more.
    ///
    /// # Errors
    /// [`MemoryWaitError`]
    pub fn release(&self, address: u64, writes: bool) -> Result<(), MemoryWaitError> {
        let mut released = Ok(());
        self.acts(|machine, effects| released = machine.release(address, writes, effects))?;
        released.map_err(MemoryWaitError::Refused)
    }
}
