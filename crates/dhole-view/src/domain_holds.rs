//! What nodes of one domain hold, between which no protocol runs: a lock for each page of each
//! view, in the memory of the domain.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dhole_protocol::memory::MINIPAGE_PAGE;
use dhole_space::DomainFile;

use crate::context::{Body, MemoryWaitError};
use crate::page_words::PageWords;

/// The lock of each page: how many nodes read it, or that one writes it.
pub(crate) struct DomainHolds(PageWords<AtomicU32>);

/// A node writes the page.
const WRITES: u32 = 1 << 31;
/// A node waits to write it: no further node begins to read it.
const WANTS: u32 = 1 << 30;

/// A thread that waits yields so often before it sleeps between two looks.
const YIELDS: u32 = 1_000;
const SLEEP: Duration = Duration::from_micros(50);

/// Locks of pages that are held until this is dropped, by unwinding too.
pub(crate) struct HeldPages<'a>(Vec<(&'a AtomicU32, bool)>);

impl DomainHolds {
    /// # Errors
    /// The system's own.
    pub fn new(bytes: u64, views: usize, file: &DomainFile) -> io::Result<DomainHolds> {
        PageWords::new(bytes, views, Some(file)).map(DomainHolds)
    }

    /// Holds ranges of bytes at addresses of the protocol's, each to read it or to write it. Their
    /// pages are taken in their order, so nodes that want the same ones do not wait for each other.
    /// `waits` is called when the thread begins to wait.
    ///
    /// # Errors
    /// [`MemoryWaitError`]: the run has ended.
    pub fn hold(
        &self,
        ranges: impl Iterator<Item = (u64, u64, bool)>,
        waits: &mut dyn FnMut() -> Result<(), MemoryWaitError>,
    ) -> Result<HeldPages<'_>, MemoryWaitError> {
        let pages = |(address, bytes, writes): (u64, u64, bool)| {
            let all = address / MINIPAGE_PAGE..(address + bytes).div_ceil(MINIPAGE_PAGE);
            all.map(move |page| (page, writes))
        };
        let mut wanted: Vec<(u64, bool)> = ranges.flat_map(pages).collect();
        // Two of the ranges may have a page in common, which is taken once.
        wanted.sort_unstable();
        wanted.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 |= is_same && next.1;
            is_same
        });
        let mut held = HeldPages(Vec::with_capacity(wanted.len()));
        let mut waits = Some(waits);
        for (page, writes) in wanted {
            let word = self.0.of(page * MINIPAGE_PAGE, 1).next();
            let word = word.expect("a page that is in a view");
            if !takes(word, writes) {
                waits.take().map_or(Ok(()), |waits| waits())?;
                wait_until(|| takes(word, writes))?;
            }
            held.0.push((word, writes));
        }
        Ok(held)
    }
}

impl Drop for HeldPages<'_> {
    fn drop(&mut self) {
        for (word, writes) in self.0.drain(..).rev() {
            match writes {
                true => word.fetch_and(!WRITES, Ordering::Release),
                false => word.fetch_sub(1, Ordering::Release),
            };
        }
    }
}

/// Takes a page, if no other node has it otherwise; whether it did.
fn takes(word: &AtomicU32, writes: bool) -> bool {
    let now = word.load(Ordering::Relaxed);
    let after = match writes {
        true if now & !WANTS == 0 => WRITES,
        true => {
            word.fetch_or(WANTS, Ordering::Relaxed);
            return false;
        }
        false if now & (WRITES | WANTS) == 0 => now + 1,
        false => return false,
    };
    let taken = word.compare_exchange(now, after, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok()
}

/// Tries until it succeeds. Meanwhile the node takes messages, and hears of the end of the run.
fn wait_until(mut tries: impl FnMut() -> bool) -> Result<(), MemoryWaitError> {
    let mut tried = 0_u32;
    while !tries() {
        Body::current().ok_or(MemoryWaitError::NoBody)?.look()?;
        tried = tried.saturating_add(1);
        match tried {
            0..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(SLEEP),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_readers_or_one_writer_and_a_writer_that_waits_comes_next() {
        let word = AtomicU32::new(0);
        assert!(takes(&word, false) && takes(&word, false));
        assert!(!takes(&word, true));
        // A reader that comes now waits until the writer has had it.
        assert!(!takes(&word, false));
        drop(HeldPages(vec![(&word, false), (&word, false)]));
        assert!(takes(&word, true));
        assert!(!takes(&word, false) && !takes(&word, true));
        drop(HeldPages(vec![(&word, true)]));
        // The second writer has said that it waits.
        assert!(!takes(&word, false) && takes(&word, true));
    }
}
