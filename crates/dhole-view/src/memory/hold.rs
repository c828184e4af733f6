//! Holding minipages, so that what would take them away waits.

use dhole_node::AnnexStep;
use dhole_protocol::memory::{HoldRefusal, MemoryOperation, RequestState};

use super::{Effects, Inside, Kept, Memory, waits_for};
use crate::context::{self, MemoryWaitError};

/// Bytes that a thread wants to hold.
struct Wanted {
    thread: usize,
    address: u64,
    bytes: u64,
    writes: bool,
    asked: bool,
    counted: bool,
}

impl Memory {
    /// Holds bytes of a minipage, and waits until this node may have them.
    ///
    /// # Errors
    /// [`MemoryWaitError`]; [`HoldRefusal`], where [`Lacks`](HoldRefusal::Lacks) says that nothing
    /// is allocated there.
    pub fn hold(
        &self,
        address: u64,
        bytes: u64,
        writes: bool,
    ) -> Result<Result<(), HoldRefusal>, MemoryWaitError> {
        if context::holds() {
            return Err(MemoryWaitError::Holds);
        }
        let mut wanted = Wanted {
            thread: context::own_number(),
            address,
            bytes,
            writes,
            asked: false,
            counted: false,
        };
        let mut held = Err(HoldRefusal::Lacks);
        self.steps(waits_for(address), &mut |inside, effects| {
            let step = hold_step(&mut wanted, inside, effects);
            inside.waits.remove(&wanted.thread);
            let Some(ended) = step else {
                let operation = operation(writes);
                inside.waits.insert(wanted.thread, (address, operation));
                return AnnexStep::Waits;
            };
            held = ended;
            AnnexStep::Over
        })?;
        Ok(held)
    }

    /// Holds them no more.
    ///
    /// # Errors
    /// [`MemoryWaitError`]
    pub fn release(&self, address: u64, writes: bool) -> Result<(), MemoryWaitError> {
        let mut released = Ok(());
        self.acts(|machine, effects| released = machine.release(address, writes, effects))?;
        released.map_err(MemoryWaitError::Refused)
    }
}

/// Takes a step; what came of it, if it is over.
fn hold_step(
    wanted: &mut Wanted,
    inside: &mut Inside,
    effects: &mut Effects<'_, '_>,
) -> Option<Result<(), HoldRefusal>> {
    let Inside { machine, kept, .. } = inside;
    let Wanted {
        address,
        bytes,
        writes,
        ..
    } = *wanted;
    loop {
        let held = machine.hold(address, bytes, writes);
        // A thread that keeps the page until its instruction is over has asked for it.
        let is_page = |kept: &Kept| waits_for(kept.page) == waits_for(address);
        let is_kept = kept.iter().any(is_page);
        // What others wrote is merged first. The flush may wait for this acknowledgement.
        if held == Err(HoldRefusal::Flushes) {
            let waits = machine.state(address) == RequestState::Waits;
            if wanted.asked && !is_kept && !waits {
                machine.goes_on(address, effects);
                wanted.asked = false;
            }
            return None;
        }
        if held != Err(HoldRefusal::Lacks) {
            // What came of its request is acknowledged now that it is held.
            if wanted.asked {
                machine.goes_on(address, effects);
            }
            return Some(held);
        }
        if is_kept {
            return None;
        }
        if wanted.asked {
            let state = machine.state(address);
            if state == RequestState::Waits {
                return None;
            }
            machine.goes_on(address, effects);
            // Otherwise it came to read, for another thread, or was lost again.
            if state == RequestState::Gone {
                return Some(held);
            }
        }
        wanted.asked = true;
        machine.access(address, operation(writes), true, effects);
        if !wanted.counted {
            wanted.counted = true;
            effects.out.work.faults += 1;
            match writes {
                true => effects.out.write_faults += 1,
                false => effects.out.read_faults += 1,
            }
        }
        if effects.failed.is_some() {
            return None;
        }
    }
}

fn operation(writes: bool) -> MemoryOperation {
    match writes {
        true => MemoryOperation::Write,
        false => MemoryOperation::Read,
    }
}
