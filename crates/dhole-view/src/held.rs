//! Rows as slices, which no other node changes while a closure has them.

use dhole_model::{CallSite, WaitCause};
use dhole_node::Worker;
use dhole_protocol::memory::{HoldRefusal, Minipage, VIEW_BITS};

use crate::context::{self, MemoryWaitError};
use crate::domain_holds::HeldPages;
use crate::memory::{Memory, waits_at};
use crate::number::SharedNumber;
use crate::shared::{MemoryError, SharedRow, Use, gone, memory};

/// A minipage that is held until this is dropped, by unwinding too.
struct Held<'a> {
    memory: &'a Memory,
    address: u64,
    writes: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let released = self.memory.release(self.address, self.writes);
        let doing = "releasing a row that a closure has held";
        context::must(self.memory.threads(), released, doing);
    }
}

/// A row to be held: where it is, and whether to write it.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    address: u64,
    bytes: u64,
    /// How many numbers.
    len: u64,
    writes: bool,
}

impl Wanted {
    /// Where it begins in the memory object, which all views show.
    fn offset(&self) -> u64 {
        self.address & ((1 << VIEW_BITS) - 1)
    }

    fn foreign(&self) -> MemoryError {
        let (at, len) = (self.address, self.len);
        MemoryError::Foreign { at, len }
    }
}

/// Minipages that are held, and the pages of the domain, which are dropped last: the other nodes of
/// the domain have this memory too, and wait.
struct AllHeld<'a> {
    minipages: Vec<Held<'a>>,
    locked: Option<HeldPages<'a>>,
}

/// Holds rows in the order of their places, which all nodes have alike, for a call of the program,
/// and runs `f` meanwhile.
pub(crate) fn holding<R>(
    of: (&Memory, CallSite),
    wanted: Vec<Wanted>,
    f: impl FnOnce() -> R,
) -> Result<R, MemoryError> {
    let _held = hold_all(of, wanted)?;
    Ok(context::run_holding(f))
}

fn hold_all(
    of @ (memory, site): (&Memory, CallSite),
    mut wanted: Vec<Wanted>,
) -> Result<AllHeld<'_>, MemoryError> {
    wanted.sort_by_key(Wanted::offset);
    for (place, one) in wanted.iter().enumerate() {
        let end = one.offset() + one.bytes;
        let mut met = wanted[place + 1..]
            .iter()
            .take_while(|it| it.offset() < end);
        if let Some(other) = met.find(|it| one.writes || it.writes) {
            return Err(MemoryError::Overlap {
                at: one.address,
                other: other.address,
            });
        }
    }
    wanted.sort_by_key(|it| it.address);
    let mut held = AllHeld {
        minipages: Vec::new(),
        locked: None,
    };
    if let Some(holds) = &memory.domain_holds {
        if context::holds() {
            return Err(MemoryWaitError::Holds.into());
        }
        for it in &wanted {
            let place = memory.arena.place_of(it.address, it.bytes as usize);
            place.ok_or_else(|| it.foreign())?;
        }
        let ranges = wanted.iter().map(|it| (it.address, it.bytes, it.writes));
        let mut began_ns = None;
        let waits = &mut || {
            began_ns = Some(memory.now_ns()?);
            Ok(())
        };
        held.locked = Some(holds.hold(ranges, waits)?);
        if let Some(began_ns) = began_ns {
            memory.waited(waits_at(WaitCause::Object, Some(site)), began_ns)?;
        }
        if !memory.arena.catches() {
            return Ok(held);
        }
    }
    // All that have been held are released, in the other order, where one cannot be.
    let mut last = None;
    for place in 0..wanted.len() {
        let row = wanted[place];
        let (mut at, end) = (row.address, row.address + row.bytes);
        loop {
            let is_held = |of: &Minipage| (of.at..end_of(*of)).contains(&at);
            let minipage = match last.filter(is_held) {
                Some(minipage) => minipage,
                None => hold_minipage(of, at, &wanted[place..], &mut held.minipages)?,
            };
            (at, last) = (end_of(minipage), Some(minipage));
            if at >= end {
                break;
            }
        }
    }
    Ok(held)
}

/// The address behind a minipage.
fn end_of(minipage: Minipage) -> u64 {
    minipage.at + u64::from(minipage.bytes)
}

/// Holds the minipage at an address of the first of these rows. If one of the others lies on it too
/// and is to be written, it is held to be written at once: a thread that holds it to read it does
/// not wait for that.
fn hold_minipage<'a>(
    (memory, site): (&'a Memory, CallSite),
    address: u64,
    wanted: &[Wanted],
    held: &mut Vec<Held<'a>>,
) -> Result<Minipage, MemoryError> {
    let (row, mut writes) = (wanted[0], wanted[0].writes);
    loop {
        let minipage = memory.hold(address, writes, site)?;
        let minipage = minipage.map_err(|refusal| match refusal {
            // It waits for a flush (`Memory::hold`).
            HoldRefusal::Lacks | HoldRefusal::Flushes => gone(memory, address),
            HoldRefusal::Beyond => row.foreign(),
        })?;
        let one = Held {
            memory,
            address,
            writes,
        };
        let mut on_it = wanted.iter().take_while(|it| it.address < end_of(minipage));
        let is_written = on_it.any(|it| it.writes);
        if writes || !is_written {
            held.push(one);
            return Ok(minipage);
        }
        drop(one);
        writes = true;
    }
}

impl<N: SharedNumber> SharedRow<N> {
    /// Runs `f` with the numbers, which no node writes meanwhile. The row is fetched first, if this
    /// node has no copy.
    ///
    /// In `f` no thread waits: not for other memory, nor by [`sync`](crate::sync); and it has no
    /// worker. So nodes that hold memory never wait for each other. A node uses a row by slices, or
    /// by [cells](SharedRow::cells).
    ///
    /// # Errors
    /// [`MemoryError`]: nothing is allocated there, or the run has ended, say.
    #[track_caller]
    pub fn read<R>(self, w: &mut Worker<'_>, f: impl FnOnce(&[N]) -> R) -> Result<R, MemoryError> {
        hold(w, [self], [], |[row], []| f(row))
    }

    /// Runs `f` with the numbers to write, which no other node holds meanwhile, and of which no
    /// node of another domain has a copy. As [`read`](SharedRow::read).
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn write<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&mut [N]) -> R,
    ) -> Result<R, MemoryError> {
        hold(w, [], [self], |[], [row]| f(row))
    }

    /// Runs `f` with the numbers as [cells](SharedRow::cells), which no other node holds meanwhile,
    /// and of which no node of another domain has a copy: no access to them in `f` faults. Cells of
    /// other nodes of the domain may change them. As [`write`](SharedRow::write), for rows that the
    /// node uses by cells.
    ///
    /// # Errors
    /// As there. `f` does not run then.
    #[track_caller]
    pub fn try_with<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&[N::Atomic]) -> R,
    ) -> Result<R, MemoryError> {
        let cells = self.try_cells(w)?;
        holding(
            (memory(w)?, CallSite::caller()),
            vec![self.wanted(true)],
            || f(cells),
        )
    }

    pub(crate) fn wanted(self, writes: bool) -> Wanted {
        Wanted {
            address: self.address(),
            bytes: (self.len() * size_of::<N>()) as u64,
            len: self.len() as u64,
            writes,
        }
    }
}

/// Runs `f` with the numbers of several rows: some to read, and some to write. They are held all
/// together. As [`SharedRow::read`].
///
/// # Errors
/// As there; [`MemoryError::Overlap`]: a row to write is, or meets, another one.
#[track_caller]
pub fn hold<N: SharedNumber, const READS: usize, const WRITES: usize, R>(
    w: &mut Worker<'_>,
    reads: [SharedRow<N>; READS],
    writes: [SharedRow<N>; WRITES],
    f: impl FnOnce([&[N]; READS], [&mut [N]; WRITES]) -> R,
) -> Result<R, MemoryError> {
    let memory = memory(w)?;
    for row in reads.iter().chain(&writes) {
        row.place(memory, Use::Slices)?;
    }
    let wanted = reads.iter().map(|row| row.wanted(false));
    let wanted = wanted.chain(writes.iter().map(|row| row.wanted(true)));
    let place = |row: SharedRow<N>| {
        let place = row.place(memory, Use::Slices);
        place.expect("a row that was tested").cast::<N>()
    };
    let (reads, writes) = (
        reads.map(|row| (place(row), row)),
        writes.map(|row| (place(row), row)),
    );
    holding((memory, CallSite::caller()), wanted.collect(), || {
        // SAFETY: see `numbers`; rows to write overlap none of the others (`holding`), and `w` is
        // borrowed mutably, so no other closure of this node has one of them.
        let reads = reads.map(|(place, row)| unsafe { numbers(place, row.len()) });
        let writes = writes.map(|(place, row)| {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts_mut(place, row.len()) }
        });
        f(reads, writes)
    })
}

/// The numbers of a row that is held.
///
/// # Safety
/// The row is held for 'a, as long as which the worker is borrowed, and `place` is its place in the
/// views of the program.
///
/// In a domain no other node that writes a page of the row has it meanwhile (`DomainHolds`). All
/// its nodes use these pages by slices alone (`Sizes`).
///
/// Otherwise: while a row is held no other node writes it, and its bytes lie within minipages that
/// are held (`hold_all`). No two minipages of which a node has copies have bytes in common, so none
/// that comes meanwhile has some of these. The threads of this node use the page by slices alone
/// (`Sizes`), which only a worker has, and to write them it is borrowed mutably. Every pattern is a
/// number (`SharedNumber`).
unsafe fn numbers<'a, N: SharedNumber>(place: *mut N, len: usize) -> &'a [N] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(place, len) }
}
