//! Allocating minipages, where this node manages them or another one does.

use dhole_model::{CallSite, WaitCause};
use dhole_node::PartsStep;
use dhole_protocol::memory::{MinipageRefusal, MinipageRun};

use super::{Memory, waits_at};
use crate::context::{self, MemoryWaitError};
use crate::sites::AllocationSite;
use crate::waiters::WaitsFor;

/// Minipages, or why there are none.
pub(crate) type Allocated = Result<MinipageRun, MinipageRefusal>;

impl Memory {
    /// Allocates minipages: this node manages them, or asks the node that manages all, and waits.
    ///
    /// # Errors
    /// [`MemoryWaitError`], where another node is to be asked.
    pub fn allocate(
        &self,
        count: u64,
        bytes: u64,
        align: u64,
        in_groups: bool,
        site: CallSite,
    ) -> Result<Allocated, MemoryWaitError> {
        if self.isolates() {
            return Ok(self.allocate_isolated(count, bytes, align, in_groups, site));
        }
        let shape = (count, bytes, align);
        let asks = self.lock().machine.asks_to_allocate();
        let allocated = match asks {
            true => self.ask_to_allocate(shape, in_groups, site)?,
            false => self.allocate_own(shape, in_groups, site),
        };
        if let (Ok(run), false) = (&allocated, self.arena.catches()) {
            for minipage in (0..run.count).filter_map(|index| run.minipage(index)) {
                self.sizes.allocated(minipage.at, minipage.bytes as usize);
            }
        }
        Ok(allocated)
    }

    fn allocate_own(
        &self,
        (count, bytes, align): (u64, u64, u64),
        in_groups: bool,
        site: CallSite,
    ) -> Allocated {
        let machine = &mut self.lock().machine;
        let run = match in_groups {
            true => machine.allocate_in_groups(count, bytes, align)?,
            false => machine.allocate(count, bytes, align)?,
        };
        let site = AllocationSite::Own(site);
        self.sites().allocated(&run, bytes, &site);
        Ok(run)
    }

    /// Asks the node that manages all minipages for new ones, and waits for its answer.
    fn ask_to_allocate(
        &self,
        shape: (u64, u64, u64),
        in_groups: bool,
        site: CallSite,
    ) -> Result<Allocated, MemoryWaitError> {
        if context::holds() {
            return Err(MemoryWaitError::Holds);
        }
        let (mut asked, mut answer) = (None, None);
        let told = waits_at(WaitCause::Operation, Some(site));
        self.steps((WaitsFor::AnyPage, told), &mut |inside, effects| {
            let machine = &mut inside.machine;
            effects.host.site = Some(site);
            let asks = || machine.ask_to_allocate(shape, in_groups, effects);
            answer = match *asked.get_or_insert_with(asks) {
                Ok(ticket) => machine.allocated(ticket),
                Err(refused) => Some(Err(refused)),
            };
            match answer {
                Some(_) => PartsStep::Over,
                None => PartsStep::Waits,
            }
        })?;
        Ok(answer.expect("a wait that is over has an answer"))
    }
}
