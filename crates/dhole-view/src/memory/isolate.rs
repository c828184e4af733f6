//! Allocations that are isolated: each on pages of its own, with a red zone behind it.

use dhole_model::CallSite;
use dhole_protocol::memory::{MINIPAGE_PAGE, MinipageRefusal, MinipageRun};

use super::{Memory, locked};
use crate::red_zones::RedZones;
use crate::sites::AllocationSite;

impl Memory {
    /// Whether each allocation has pages of its own, with a red zone behind it.
    pub fn isolates(&self) -> bool {
        self.red_zones.is_some()
    }

    /// The program's globals, which are the first that node 0 allocates, a page each.
    pub(super) fn allocate_globals(&self, pages: u64) -> Result<MinipageRun, MinipageRefusal> {
        let page = MINIPAGE_PAGE;
        let run = self.lock().machine.allocate(pages, page, page)?;
        let site = CallSite::runtime("the program's globals");
        let site = AllocationSite::Own(site);
        self.sites().allocated(&run, page, &site);
        Ok(run)
    }

    /// As [`allocate`](Memory::allocate). The run's stride is the bytes from one minipage to the
    /// next.
    pub(super) fn allocate_isolated(
        &self,
        count: u64,
        bytes: u64,
        align: u64,
        in_groups: bool,
        site: CallSite,
    ) -> Result<MinipageRun, MinipageRefusal> {
        let size = MinipageRefusal::Size { count, bytes };
        if bytes == 0 || bytes > 1 << 40 {
            return Err(size);
        }
        let words = words_of(bytes, site);
        let all = RedZones::minipage_bytes(bytes, &words);
        let machine = &mut self.lock().machine;
        let run = match in_groups {
            true => machine.allocate_in_groups(count, all, align),
            false => machine.allocate(count, all, align),
        };
        let run = run.map_err(|cause| match cause {
            MinipageRefusal::Size { .. } => size,
            full @ MinipageRefusal::Full { .. } => full,
        })?;
        self.keep_isolated(&run, bytes, (bytes, site));
        let stride = all as u32;
        Ok(MinipageRun { stride, ..run })
    }

    /// Allocates so many bytes one behind the other, of which each page is a minipage but the last:
    /// that one has the red zone. Errors name `named` bytes.
    ///
    /// # Errors
    /// [`MinipageRefusal`]
    pub fn allocate_contiguous(
        &self,
        bytes: u64,
        named: u64,
        site: CallSite,
    ) -> Result<MinipageRun, MinipageRefusal> {
        let count = 1;
        if bytes == 0 || bytes > 1 << 40 {
            return Err(MinipageRefusal::Size { count, bytes });
        }
        let whole = (bytes - 1) / MINIPAGE_PAGE;
        let last = bytes - whole * MINIPAGE_PAGE;
        let page = MINIPAGE_PAGE;
        let all = RedZones::minipage_bytes(last, &words_of(named, site));
        let inside = &mut self.lock();
        // Both or none: what is left of the node's part must have room for all of them.
        let (pages, left) = (whole * page + all, inside.machine.bytes_left());
        if pages > left {
            return Err(MinipageRefusal::Full {
                count,
                bytes: named,
                used: inside.machine.allocated_bytes(),
                left,
            });
        }
        let before = match whole {
            0 => None,
            _ => Some(inside.machine.allocate(whole, page, page)?),
        };
        let run = inside.machine.allocate(1, all, page)?;
        let first = before.map_or(run.at, |before| before.at);
        // One node allocates page by page from its own part, and nothing that was freed.
        assert_eq!(first + whole * page, run.at, "pages that follow each other");
        if let Some(before) = before {
            self.sites()
                .allocated(&before, named, &AllocationSite::Own(site));
        }
        self.keep_isolated(&run, last, (named, site));
        Ok(MinipageRun { at: first, ..run })
    }

    fn keep_isolated(&self, run: &MinipageRun, bytes: u64, (named, site): (u64, CallSite)) {
        self.sites()
            .allocated(run, named, &AllocationSite::Own(site));
        if let Some(zones) = &self.red_zones {
            locked(zones).allocated(run, bytes, &words_of(named, site));
        }
    }
}

fn words_of(bytes: u64, site: CallSite) -> String {
    format!("{bytes} bytes, allocated at {site}")
}
