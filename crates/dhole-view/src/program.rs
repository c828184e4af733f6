//! Memory that lies at the same addresses in all processes of a run, and of which the globals of
//! the program are a part: what programs in C need, whose pointers are addresses.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use dhole_model::CallSite;
use dhole_node::{NodeParts, PartsMaker, PartsPlace, Worker};
use dhole_protocol::memory::{Accessed, MINIPAGE_PAGE, MemoryOperation, MinipageRun};

use crate::arena::Placed;
use crate::fault::HandlerStack;
use crate::memory::{Memory, NodeMemory};
use crate::settings::MemorySettings;
use crate::shared::{MemoryError, memory};

/// Raw memory at the same addresses in all processes, with globals of the program in it.
///
/// Each process has one node. The globals are minipages of a page each; node 0 manages them, and
/// has their values when the run starts.
#[derive(Clone, Debug)]
pub struct ProgramMemory {
    settings: MemorySettings,
    placed: Placed,
}

impl ProgramMemory {
    /// Memory that begins at the first of `bases` that is free in all processes, and globals at
    /// these addresses, whole pages. Where none is free the run does not start: the error says what
    /// lies there, and on which node.
    ///
    /// # Safety
    /// The ranges are mapped in this process, and nothing but the program's own variables lies
    /// there: no Rust reference to them exists while a run has the memory. While a run starts, no
    /// thread accesses them. After it they are zero.
    pub unsafe fn new(
        settings: MemorySettings,
        bases: Vec<usize>,
        globals: Vec<Range<usize>>,
    ) -> ProgramMemory {
        let placed = Placed {
            bases,
            globals,
            handlers: HandlerStack::Own,
        };
        ProgramMemory { settings, placed }
    }

    /// Has faults handled on the alternate stack of the thread (`sigaltstack`) that faults, if it
    /// has one: what programs need whose stacks are in the memory. A handler needs 256 KiB. Of a
    /// thread with a smaller one no access that faults can be made
    /// ([`MemoryAccessFailure::SmallStack`](crate::MemoryAccessFailure::SmallStack)).
    pub fn with_alternate_stacks(mut self) -> ProgramMemory {
        self.placed.handlers = HandlerStack::Alternate;
        self
    }
}

impl PartsMaker for ProgramMemory {
    fn make(&self, place: PartsPlace) -> io::Result<Box<dyn NodeParts>> {
        let here = place.here;
        if here != 1 {
            let why = format!(
                "{here} nodes in one process, where the addresses of one only can be those of the \
                 others: run it by `dhole run`"
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let memory = NodeMemory::new(place, self.settings, &self.placed)?;
        Ok(Box::new(memory))
    }
}

/// A node's raw memory by addresses.
#[derive(Clone, Copy)]
pub struct RawMemory<'id>(&'id Memory);

impl<'id> RawMemory<'id> {
    /// The memory of this node.
    ///
    /// # Errors
    /// [`MemoryError::None`]
    pub fn of(w: &Worker<'id>) -> Result<RawMemory<'id>, MemoryError> {
        memory(w).map(RawMemory)
    }

    /// Allocates so many zeros, a minipage, or a minipage for each page where they are more than
    /// that. They begin at a multiple of `align`, a power of two up to a page. This node manages
    /// them.
    ///
    /// # Errors
    /// [`MemoryError::Refused`]: there is no more room, or no such size.
    #[track_caller]
    pub fn allocate(self, bytes: usize, align: usize) -> Result<NonNull<u8>, MemoryError> {
        self.allocate_at(bytes, align, bytes, CallSite::caller())
    }

    /// As [`allocate`](RawMemory::allocate), of which errors name so many bytes, and this place in
    /// the program.
    ///
    /// # Errors
    /// As there.
    pub fn allocate_at(
        self,
        bytes: usize,
        align: usize,
        named: usize,
        site: CallSite,
    ) -> Result<NonNull<u8>, MemoryError> {
        let (bytes, align) = (bytes as u64, align as u64);
        let run = match bytes {
            _ if self.0.isolates() => self.0.allocate_contiguous(bytes, named as u64, site)?,
            0..=MINIPAGE_PAGE => self.0.allocate(1, bytes, align, false, site)??,
            _ => {
                let pages = bytes.div_ceil(MINIPAGE_PAGE);
                self.0
                    .allocate(pages, MINIPAGE_PAGE, align, false, site)??
            }
        };
        Ok(self.place(run, bytes as usize))
    }

    /// Whether each allocation has pages of its own, with a red zone behind it
    /// ([`MemoryLayout::Isolate`](dhole_node::MemoryLayout)).
    pub fn isolates(self) -> bool {
        self.0.isolates()
    }

    /// The addresses of all views.
    pub fn views(self) -> Range<usize> {
        let mut all = self.0.arena.program_views();
        all.next().unwrap_or_default()
    }

    /// Frees all minipages of so many bytes, for all nodes: an access afterwards cannot be made.
    /// The place in the program is named there.
    ///
    /// # Errors
    /// [`MemoryError`]: the bytes are not in the memory, or the run has ended; or the program has
    /// written behind the end of an allocation, where they are isolated.
    pub fn free_at(self, at: usize, bytes: usize, site: CallSite) -> Result<(), MemoryError> {
        for address in self.pages(at, bytes)? {
            // Of a minipage of several pages the first frees all.
            let _freed: bool = self.0.free(address, site)?;
        }
        Ok(())
    }

    fn place(self, run: MinipageRun, bytes: usize) -> NonNull<u8> {
        let place = self.0.arena.place_of(run.at, bytes);
        place.expect("what was allocated is in the views of the program")
    }

    /// Whether some of so many bytes from an address on are in the memory.
    pub fn meets(self, at: usize, bytes: usize) -> bool {
        let end = at.saturating_add(bytes);
        let mut all = self.0.arena.program_views();
        all.any(|views| at < views.end && views.start < end)
    }

    /// Asks for the minipages of so many bytes, and does not wait: they may have come when they
    /// are read. Dropped where 1,024 such requests are under way.
    ///
    /// # Errors
    /// [`MemoryError`]: the bytes are not in the memory, or the run has ended.
    pub fn prefetch(self, at: usize, bytes: usize) -> Result<(), MemoryError> {
        let pages = self.pages(at, bytes)?;
        self.0.gives(|machine, effects| {
            for address in &pages {
                let read = MemoryOperation::Read;
                let _later: Accessed = machine.access(*address, read, false, effects);
            }
        })?;
        Ok(())
    }

    /// Sends all other nodes copies of the minipages of so many bytes of which this node has one.
    ///
    /// # Errors
    /// [`MemoryError`]: the bytes are not in the memory, or the run has ended.
    pub fn push(self, at: usize, bytes: usize) -> Result<(), MemoryError> {
        let pages = self.pages(at, bytes)?;
        self.0.gives(|machine, effects| {
            for address in &pages {
                machine.push(*address, effects);
            }
        })?;
        Ok(())
    }

    /// An address on each page of so many bytes.
    fn pages(self, at: usize, bytes: usize) -> Result<Vec<u64>, MemoryError> {
        const PAGE: usize = MINIPAGE_PAGE as usize;
        let (first, end) = (at / PAGE * PAGE, at.saturating_add(bytes.max(1)));
        let places = (first..end).step_by(PAGE).map(|page| page.max(at));
        let all = places.map(|place| self.0.arena.address_of(place));
        let all = all.collect::<Option<Vec<u64>>>();
        all.ok_or(MemoryError::Foreign {
            at: at as u64,
            len: bytes as u64,
        })
    }
}
