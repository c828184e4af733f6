//! What programs see: numbers in raw memory, by references that all nodes can have.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::panic::Location;

use dhole_heap::Share;
use dhole_model::CallSite;
use dhole_node::{IntoError, MemoryConsistency, Worker};
use dhole_protocol::memory::{Accessed, MINIPAGE_PAGE, MinipageRefusal, MinipageRun, VIEW_BITS};

use crate::access_error::{self, MemoryAccessError};
use crate::borrowed;
use crate::context::MemoryWaitError;
use crate::memory::{Memory, NodeMemory};
use crate::number::SharedNumber;

/// Why memory cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MemoryError {
    /// The run has none.
    #[error("using raw memory: this run has none (Config::memory)")]
    None,
    /// It cannot be allocated.
    #[error("{0}")]
    Refused(#[from] MinipageRefusal),
    /// A reference of another run, or none at all.
    #[error("{len} numbers at {at:#x} are not in the memory of this run")]
    Foreign {
        /// The address.
        at: u64,
        /// How many.
        len: u64,
    },
    /// This node has used numbers of another size there: a reference that some node has made up.
    #[error("numbers of {size} bytes at {at:#x}, where this node has used some of {used} bytes")]
    Mixed {
        /// The address.
        at: u64,
        /// Bytes of a number of the reference.
        size: usize,
        /// Bytes of a number before.
        used: u8,
    },
    /// This node has used the numbers otherwise: as cells, where slices are wanted, or as slices.
    #[error(
        "numbers at {at:#x} as cells and as slices (SharedRow::read), which a node does not mix"
    )]
    Used {
        /// The address.
        at: u64,
    },
    /// A row to write has numbers in common with another one.
    #[error("holding a row at {at:#x} and one at {other:#x}, which have numbers in common")]
    Overlap {
        /// The address of the first.
        at: u64,
        /// The address of the other.
        other: u64,
    },
    /// Nothing is allocated there, or no longer.
    #[error(
        "using memory at {at:#x}: nothing is allocated there, or no longer{}",
        access_error::known(.allocation)
    )]
    Gone {
        /// The address.
        at: u64,
        /// What is known of the allocation that was there.
        allocation: Option<String>,
    },
    /// An access that was tried ([`TryAccess`](crate::TryAccess)) cannot be made.
    #[error(transparent)]
    Access(#[from] MemoryAccessError),
    /// What is needed cannot be waited for, or the system refuses it.
    #[error("asking for raw memory: {0}")]
    Wait(#[from] MemoryWaitError),
}

impl IntoError for MemoryError {}

impl MemoryError {
    /// Whether the run has failed, which no thread survives. Otherwise this call alone has.
    pub fn has_failed_run(&self) -> bool {
        matches!(self, MemoryError::Wait(cause) if cause.has_failed_run())
    }
}

/// Nothing is allocated at an address.
pub(crate) fn gone(memory: &Memory, at: u64) -> MemoryError {
    let allocation = memory.known(at);
    MemoryError::Gone { at, allocation }
}

/// How a node uses the numbers of a row. Cells may change at any time; slices do not, so the two do
/// not meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Use {
    Cells = 0,
    Slices = SLICES,
}

/// The bit of a page's size that says that its numbers are used as slices.
const SLICES: u8 = 1 << 7;

/// How much of a run's memory a node has allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryUsage {
    /// How faults are caught: `userfaultfd` or `mprotect`; `none` where all nodes have the same
    /// memory, and no access faults.
    pub faults: &'static str,
    /// How many nodes have the same memory as this one, itself among them.
    pub domain_nodes: usize,
    /// Most of its minipages that lie on one page: so many views they need.
    pub views: u64,
    /// Bytes, by whole pages.
    pub bytes: u64,
    /// Bytes of its minipages.
    pub minipage_bytes: u64,
}

/// The memory of a worker's node.
pub(crate) fn memory<'id>(w: &Worker<'id>) -> Result<&'id Memory, MemoryError> {
    let parts = w.parts().ok_or(MemoryError::None)?;
    NodeMemory::of(parts).ok_or(MemoryError::None)
}

/// How much memory this node has allocated, and how faults are caught.
///
/// # Errors
/// [`MemoryError::None`]
pub fn usage(w: &Worker<'_>) -> Result<MemoryUsage, MemoryError> {
    let memory = memory(w)?;
    let [views, bytes, minipage_bytes] = memory.allocated();
    let faults = memory.arena.faults();
    Ok(MemoryUsage {
        faults,
        domain_nodes: memory.domain_nodes,
        views,
        bytes,
        minipage_bytes,
    })
}

/// Runs `f`, whose allocations on this node are of this consistency, whatever the run's is
/// (`Config::memory_consistency`). Also those of other threads of the node meanwhile.
///
/// # Errors
/// [`MemoryError::None`]
pub fn with_consistency<'id, R>(
    w: &mut Worker<'id>,
    consistency: MemoryConsistency,
    f: impl FnOnce(&mut Worker<'id>) -> R,
) -> Result<R, MemoryError> {
    let _changed = memory(w)?.allocates_with(consistency);
    Ok(f(w))
}

/// Allocates a number that is zero, a minipage of its own. This node manages it. Called within
/// [`Worker::once`] it gives all nodes the reference.
///
/// # Errors
/// [`MemoryError`]: the run has no memory, or no more of it.
#[track_caller]
pub fn alloc<N: SharedNumber>(w: &mut Worker<'_>) -> Result<SharedCell<N>, MemoryError> {
    let rows = alloc_rows(w, 1, 1)?;
    Ok(SharedCell(rows.row(0)))
}

/// Allocates `count` rows of `len` numbers that are zero, each row a minipage of its own, several
/// on a page where that has room. This node manages them.
///
/// # Errors
/// [`MemoryError`]: the run has no memory, or no more of it; or rows are empty or larger than
/// 64 MiB.
#[track_caller]
pub fn alloc_rows<N: SharedNumber>(
    w: &mut Worker<'_>,
    count: usize,
    len: usize,
) -> Result<SharedRows<N>, MemoryError> {
    alloc_chunks(w, count, len, 1)
}

/// As [`alloc_rows`], with `chunk` rows in each minipage: nodes get and lose them together
/// (MultiView, section 4.4).
///
/// # Errors
/// As there; a chunk of no rows is refused too.
#[track_caller]
pub fn alloc_chunks<N: SharedNumber>(
    w: &mut Worker<'_>,
    count: usize,
    len: usize,
    chunk: usize,
) -> Result<SharedRows<N>, MemoryError> {
    let size = size_of::<N>() as u64;
    let (count, len, chunk) = (count as u64, len as u64, chunk as u64);
    let bytes = len.saturating_mul(size).saturating_mul(chunk);
    let minipages = count.div_ceil(chunk.max(1));
    let run = memory(w)?.allocate(minipages, bytes, size, false, CallSite::caller())??;
    Ok(rows_of(run, run.on_page.into(), [count, len, chunk]))
}

/// As [`alloc_rows`], in groups: a node that reads or writes one row gets rows behind it as well.
/// The manager learns how many, up to 32: twice as many where a node goes on from group to group,
/// and half as many where nodes wait for each other. Each row stays a minipage. In a run of one
/// domain all nodes have all rows, and groups change nothing.
///
/// # Errors
/// As there.
#[track_caller]
pub fn alloc_groups<N: SharedNumber>(
    w: &mut Worker<'_>,
    count: usize,
    len: usize,
) -> Result<SharedRows<N>, MemoryError> {
    let size = size_of::<N>() as u64;
    let (count, len) = (count as u64, len as u64);
    let bytes = len.saturating_mul(size);
    let run = memory(w)?.allocate(count, bytes, size, true, CallSite::caller())??;
    Ok(rows_of(run, run.on_page.into(), [count, len, 1]))
}

/// Allocates `count` rows of `len` numbers that are zero, one behind the other, each page of them a
/// minipage: what a program gets that does not control false sharing (MultiView, section 4.4). A
/// row may lie on two pages: slices hold both, and [`SharedRow::prefetch`], `push` and `free` are
/// for the first of them.
///
/// # Errors
/// As [`alloc_rows`].
#[track_caller]
pub fn alloc_contiguous<N: SharedNumber>(
    w: &mut Worker<'_>,
    count: usize,
    len: usize,
) -> Result<SharedRows<N>, MemoryError> {
    let (count, len) = (count as u64, len as u64);
    let bytes = len.saturating_mul(size_of::<N>() as u64);
    let pages = bytes.saturating_mul(count).div_ceil(MINIPAGE_PAGE);
    // By the size of the numbers, so that freed pages are allocated again for such alone.
    let align = size_of::<N>() as u64;
    let memory = memory(w)?;
    let run = match memory.isolates() {
        true => {
            let bytes = bytes.saturating_mul(count);
            memory.allocate_contiguous(bytes, bytes, CallSite::caller())?
        }
        false => memory.allocate(pages, MINIPAGE_PAGE, align, false, CallSite::caller())??,
    };
    Ok(rows_of(run, PAGES, [count, len, count]))
}

/// The rows in minipages that were allocated: how many, the numbers of each, and the rows of a
/// minipage.
fn rows_of<N: SharedNumber>(
    run: MinipageRun,
    on_page: u64,
    [count, len, chunk]: [u64; 3],
) -> SharedRows<N> {
    SharedRows {
        at: run.at,
        count,
        stride: run.stride.into(),
        on_page,
        len,
        chunk,
        of: PhantomData,
    }
}

/// Stands for how many minipages lie on a page where each page is one, whatever lies on it.
const PAGES: u64 = 0;

/// References to rows of numbers that were allocated together. 48 bytes.
#[derive(Share)]
#[share(crate = "dhole_heap")]
pub struct SharedRows<N: SharedNumber> {
    at: u64,
    count: u64,
    stride: u64,
    on_page: u64,
    len: u64,
    /// Rows in a minipage.
    chunk: u64,
    of: PhantomData<N>,
}

/// A reference to a row of numbers, a minipage or a part of one. 16 bytes.
#[derive(Share)]
#[share(crate = "dhole_heap")]
pub struct SharedRow<N: SharedNumber> {
    at: u64,
    len: u64,
    of: PhantomData<N>,
}

/// A reference to one number, a minipage. 16 bytes.
#[derive(Share)]
#[share(crate = "dhole_heap")]
pub struct SharedCell<N: SharedNumber>(SharedRow<N>);

macro_rules! references {
    ($($name:ident)*) => {$(
        impl<N: SharedNumber> Clone for $name<N> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<N: SharedNumber> Copy for $name<N> {}
    )*};
}
references!(SharedRows SharedRow SharedCell);

impl<N: SharedNumber> fmt::Debug for SharedRows<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SharedRows({:#x}, {} x {})",
            self.at, self.count, self.len
        )
    }
}

impl<N: SharedNumber> fmt::Debug for SharedRow<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedRow({:#x}, {})", self.at, self.len)
    }
}

impl<N: SharedNumber> fmt::Debug for SharedCell<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedCell({:#x})", self.0.at)
    }
}

impl<N: SharedNumber> SharedRows<N> {
    /// How many rows.
    pub fn count(self) -> usize {
        self.count as usize
    }

    /// How many numbers in each.
    pub fn row_len(self) -> usize {
        self.len as usize
    }

    /// The `i`-th row.
    ///
    /// # Panics
    /// When there is none, like a slice.
    #[track_caller]
    pub fn row(self, i: usize) -> SharedRow<N> {
        let (i, on_page, chunk) = (i as u64, self.on_page.max(1), self.chunk.max(1));
        assert!(i < self.count, "row {i} of {}", self.count);
        // A reference that some node has made up leads anywhere, and is tested when it is used.
        let bytes = self.len.wrapping_mul(size_of::<N>() as u64);
        let (minipage, within) = (i / chunk, (i % chunk).wrapping_mul(bytes));
        // Those of an isolated minipage are more than its bytes take.
        let apart = if on_page == 1 { self.stride } else { 0 };
        let pages = bytes.wrapping_mul(chunk).max(apart).div_ceil(MINIPAGE_PAGE);
        let page = (minipage / on_page).wrapping_mul(pages.wrapping_mul(MINIPAGE_PAGE));
        let place = (minipage % on_page).wrapping_mul(self.stride.wrapping_add(1 << VIEW_BITS));
        let begins = self.at.wrapping_add(page).wrapping_add(place);
        SharedRow {
            at: begins.wrapping_add(within),
            len: self.len,
            of: PhantomData,
        }
    }
}

impl<N: SharedNumber> SharedRows<N> {
    /// Rows, to be asked for together.
    ///
    /// # Panics
    /// When there are not so many, like a slice.
    #[track_caller]
    pub fn range(self, rows: impl RangeBounds<usize>) -> SharedRange<N> {
        let (start, end) = (rows.start_bound(), rows.end_bound());
        // Behind the last number there is none.
        let begins = match start {
            Bound::Included(first) => Some(*first),
            Bound::Excluded(before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let ends = match end {
            Bound::Included(last) => last.checked_add(1),
            Bound::Excluded(behind) => Some(*behind),
            Bound::Unbounded => Some(self.count()),
        };
        let both = begins.zip(ends);
        let fits = both.filter(|(begins, ends)| begins <= ends && *ends <= self.count());
        let Some((begins, ends)) = fits else {
            panic!("rows from {start:?} to {end:?} of {}", self.count);
        };
        SharedRange {
            of: self,
            rows: begins..ends,
        }
    }

    /// Frees all rows, one after the other. As [`SharedRow::free`]. All of them are allocated again
    /// by [`alloc_rows`], or what they were allocated by, for as many rows of as many numbers of
    /// the same size; a single one also by an allocation of one.
    ///
    /// # Errors
    /// As there, of the first that cannot be freed.
    #[track_caller]
    pub fn free(self, w: &mut Worker<'_>) -> Result<(), MemoryError> {
        let memory = memory(w)?;
        self.tested(memory, 0..self.count())?;
        for (at, _) in self.minipages(0..self.count()) {
            if !memory.free(at, CallSite::caller())? {
                return Err(gone(memory, at));
            }
        }
        Ok(())
    }

    /// Tests rows: all of them lie in the memory, as some allocation lays rows out.
    fn tested(self, memory: &Memory, rows: Range<usize>) -> Result<(), MemoryError> {
        if !self.is_laid_out() {
            let (at, len) = (self.at, self.count.saturating_mul(self.len));
            return Err(MemoryError::Foreign { at, len });
        }
        // What lies between them is tested where it is used.
        if !rows.is_empty() {
            self.row(rows.start).tested(memory)?;
            self.row(rows.end - 1).tested(memory)?;
        }
        Ok(())
    }

    /// Whether an allocation may have laid rows out so. A reference that some node has made up says
    /// anything.
    fn is_laid_out(self) -> bool {
        let bytes = self.len.checked_mul(size_of::<N>() as u64);
        let fits = |bytes: &u64| *bytes <= 1 << VIEW_BITS;
        if self.on_page == PAGES {
            let all = bytes.and_then(|bytes| bytes.checked_mul(self.count));
            return self.chunk == self.count && all.as_ref().is_some_and(fits);
        }
        let of_chunk = bytes.and_then(|bytes| bytes.checked_mul(self.chunk));
        let Some(of_chunk) = of_chunk.filter(fits).filter(|_| self.chunk > 0) else {
            return false;
        };
        let on_page = self.stride.checked_mul(self.on_page);
        let are_on_page = of_chunk <= self.stride && on_page <= Some(MINIPAGE_PAGE);
        if self.on_page > 1 && !are_on_page || self.stride > 1 << VIEW_BITS {
            return false;
        }
        let pages = of_chunk.max(self.stride).div_ceil(MINIPAGE_PAGE);
        let groups = self.count.div_ceil(self.chunk).div_ceil(self.on_page);
        let all = groups.checked_mul(pages * MINIPAGE_PAGE);
        all.as_ref().is_some_and(fits)
    }

    /// An address on each minipage of rows, and how many bytes it has.
    fn minipages(self, rows: Range<usize>) -> impl Iterator<Item = (u64, u32)> {
        let bytes = self.len.wrapping_mul(size_of::<N>() as u64);
        let are_pages = self.on_page == PAGES;
        let first_page = |address: u64| address / MINIPAGE_PAGE * MINIPAGE_PAGE;
        let pages = match (are_pages, rows.is_empty()) {
            (true, false) => {
                let last = self.row(rows.end - 1).at.wrapping_add(bytes);
                first_page(self.row(rows.start).at)..last
            }
            _ => 0..0,
        };
        let chunk = self.chunk.max(1) as usize;
        let chunks = match are_pages || rows.is_empty() {
            true => 0..0,
            false => rows.start / chunk..(rows.end - 1) / chunk + 1,
        };
        let of_chunk = bytes.checked_mul(self.chunk);
        let of_chunk = of_chunk.and_then(|it| u32::try_from(it).ok());
        let of_chunk = of_chunk.unwrap_or(u32::MAX);
        let pages = pages.step_by(MINIPAGE_PAGE as usize);
        let pages = pages.map(|page| (page, MINIPAGE_PAGE as u32));
        pages.chain(chunks.map(move |number| (self.row(number * chunk).at, of_chunk)))
    }
}

/// Rows that are asked for together ([`SharedRows::range`]).
#[derive(Clone, Debug)]
pub struct SharedRange<N: SharedNumber> {
    of: SharedRows<N>,
    rows: Range<usize>,
}

impl<N: SharedNumber> SharedRange<N> {
    /// Fetches copies to read of all rows of which this node has none, in one round of messages,
    /// and waits until they have come. At most 1,024 minipages, or 64 MiB, are under way at once.
    /// The views are opened by few calls of the system. Another node may write a row meanwhile:
    /// then an access waits for it as for any other. Freed rows are passed over.
    ///
    /// # Errors
    /// [`MemoryError`]: the run has ended, say.
    #[track_caller]
    pub fn fetch(self, w: &mut Worker<'_>) -> Result<(), MemoryError> {
        let memory = self.tested(w)?;
        Ok(memory.fetch(&mut self.minipages(), true, CallSite::caller())?)
    }

    /// Asks for all rows of which this node has no copy, and does not wait. What goes beyond 1,024
    /// minipages, or 64 MiB, under way is dropped and counted (`dropped_prefetches`).
    ///
    /// # Errors
    /// [`MemoryError`]
    pub fn prefetch(self, w: &Worker<'_>) -> Result<(), MemoryError> {
        let memory = self.tested(w)?;
        memory.gives(|machine, effects| {
            for (address, bytes) in self.of.minipages(self.rows.clone()) {
                let _later: Accessed = machine.prefetch(address, bytes, effects);
            }
        })?;
        Ok(())
    }

    /// How many rows.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// How many numbers in each.
    pub(crate) fn row_len(&self) -> usize {
        self.of.row_len()
    }

    /// Each of the rows.
    pub(crate) fn each(&self) -> impl Iterator<Item = SharedRow<N>> {
        let of = self.of;
        self.rows.clone().map(move |row| of.row(row))
    }

    /// An address on each minipage of the rows, and how many bytes it has.
    pub(crate) fn minipages(&self) -> impl Iterator<Item = (u64, u32)> + use<N> {
        self.of.minipages(self.rows.clone())
    }

    /// The memory, which has the first and the last row.
    pub(crate) fn tested<'id>(&self, w: &Worker<'id>) -> Result<&'id Memory, MemoryError> {
        let memory = memory(w)?;
        self.of.tested(memory, self.rows.clone())?;
        Ok(memory)
    }
}

impl<N: SharedNumber> SharedRow<N> {
    /// How many numbers.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The numbers. An access to one that this node may not make faults, and waits for the row.
    ///
    /// An access that cannot be made ends the process with exit code 70 and words that name the
    /// node, the address and the cause: there is no way back from within a load. So does one within
    /// a call of the runtime (an operation, an initialiser), and one by another thread than the
    /// program's where nodes are simulated. [`TryAccess`](crate::TryAccess) has accesses that
    /// return an error instead.
    ///
    /// # Errors
    /// [`MemoryError`]: the run has no memory, or not this.
    #[track_caller]
    pub fn try_cells<'id>(self, w: &Worker<'id>) -> Result<&'id [N::Atomic], MemoryError> {
        let cells = self.as_ptr(w)?.cast::<N::Atomic>();
        // SAFETY: so many bytes of the views lie there (`place`), as long as the memory is
        // borrowed, and are aligned for the atomic, by the test in `place`. Every pattern is an
        // atomic's (`SharedNumber`), and an atomic may be changed by others.
        Ok(unsafe { std::slice::from_raw_parts(cells, self.len()) })
    }

    /// As [`try_cells`](SharedRow::try_cells).
    ///
    /// # Panics
    /// Where that returns an error.
    #[track_caller]
    pub fn cells<'id>(self, w: &Worker<'id>) -> &'id [N::Atomic] {
        match self.try_cells(w) {
            Ok(cells) => cells,
            Err(error) => panic!("{error}"),
        }
    }

    /// Where the numbers are in this node's memory, as a raw pointer to the first. An access
    /// behind it faults, and waits, as one to [cells](SharedRow::cells) does.
    ///
    /// To have it is safe. Whoever follows it sees to this:
    ///
    /// - it is followed before the run ends, and within the row's numbers;
    /// - an access is a volatile or atomic one, or an instruction of the program's own; other nodes
    ///   may change the numbers at any time, so no reference to a plain number is made of it unless
    ///   the program keeps the others from writing (a barrier, a lock);
    /// - the node that follows it does not use the row by slices (`read`, `write`);
    /// - atomic accesses are of the size of a number.
    ///
    /// # Errors
    /// As [`try_cells`](SharedRow::try_cells).
    #[track_caller]
    pub fn as_ptr(self, w: &Worker<'_>) -> Result<*mut N, MemoryError> {
        let place = self.place(memory(w)?, Use::Cells)?;
        let bytes = self.len() * size_of::<N>();
        borrowed::note(place.addr(), bytes, Location::caller());
        Ok(place.cast())
    }

    /// Where the row is in the views of the program, if it can be there.
    fn tested(self, memory: &Memory) -> Result<*mut u8, MemoryError> {
        let size = size_of::<N>();
        let foreign = MemoryError::Foreign {
            at: self.at,
            len: self.len,
        };
        let len = usize::try_from(self.len).ok();
        let Some(bytes) = len.and_then(|len| len.checked_mul(size)) else {
            return Err(foreign);
        };
        let is_aligned = self.at.is_multiple_of(size as u64);
        let place = memory.arena.place_of(self.at, bytes);
        let place = place.filter(|_| is_aligned).ok_or(foreign)?;
        Ok(place.as_ptr())
    }

    /// Where the row is in the views of the program, for this use.
    pub(crate) fn place(self, memory: &Memory, is_used: Use) -> Result<*mut u8, MemoryError> {
        let place = self.tested(memory)?;
        let size = size_of::<N>();
        match memory
            .sizes
            .claim(self.at, self.len() * size, size as u8 | is_used as u8)
        {
            Ok(()) => Ok(place),
            Err(0) => Err(gone(memory, self.at)),
            Err(used) if used & !SLICES == size as u8 => Err(MemoryError::Used { at: self.at }),
            Err(used) => Err(MemoryError::Mixed {
                at: self.at,
                size,
                used: used & !SLICES,
            }),
        }
    }

    /// Where it begins, by the protocol's addresses.
    pub(crate) fn address(self) -> u64 {
        self.at
    }

    /// Frees the minipage of the row, for all nodes, and waits until none has it any more. An
    /// access afterwards ends the process of the node that makes it, or returns an error
    /// ([`TryAccess`](crate::TryAccess)), until the space is allocated again: for numbers of the
    /// same size, in a minipage of as many bytes. Then the old reference leads to those.
    ///
    /// # Errors
    /// [`MemoryError`]: it was freed before, say.
    #[track_caller]
    pub fn free(self, w: &mut Worker<'_>) -> Result<(), MemoryError> {
        let memory = memory(w)?;
        self.tested(memory)?;
        match memory.free(self.at, CallSite::caller())? {
            true => Ok(()),
            false => Err(gone(memory, self.at)),
        }
    }

    /// Asks for the row, and does not wait: it may have come when it is read. Dropped where 1,024
    /// such requests are under way, or 64 MiB, and counted (`dropped_prefetches`).
    ///
    /// # Errors
    /// [`MemoryError`]
    pub fn prefetch(self, w: &Worker<'_>) -> Result<(), MemoryError> {
        let memory = memory(w)?;
        self.tested(memory)?;
        let bytes = (self.len() * size_of::<N>()) as u32;
        memory.gives(|machine, effects| {
            let _later: Accessed = machine.prefetch(self.at, bytes, effects);
        })?;
        Ok(())
    }

    /// Sends all other nodes a copy to read, if this node has one. It is no synchronisation: a
    /// node that reads before the copy comes waits for it as for any other.
    ///
    /// # Errors
    /// [`MemoryError`]
    pub fn push(self, w: &Worker<'_>) -> Result<(), MemoryError> {
        let memory = memory(w)?;
        self.tested(memory)?;
        memory.gives(|machine, effects| machine.push(self.at, effects))?;
        Ok(())
    }
}

impl<N: SharedNumber> SharedCell<N> {
    /// The number. As [`SharedRow::cells`].
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn get<'id>(self, w: &Worker<'id>) -> &'id N::Atomic {
        let cells = self.0.cells(w);
        assert!(!cells.is_empty(), "a cell that is none");
        &cells[0]
    }

    /// As [`SharedRow::push`].
    ///
    /// # Errors
    /// As there.
    pub fn push(self, w: &Worker<'_>) -> Result<(), MemoryError> {
        self.0.push(w)
    }
}
