//! The minipage table of a manager: which minipages it has allocated (MultiView, section 2.3,
//! dynamic layout).

use dhole_model::SortedMap;
use std::ops::Range;

use thiserror::Error;

use super::freed::Freed;
use super::minipage::{
    MINIPAGE_PAGE, MOST_MINIPAGE_BYTES, Minipage, VIEW_BITS, first_of_page, offset_of,
};
use super::run::MinipageRun;

/// Why minipages cannot be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum MinipageRefusal {
    /// None were asked for, empty ones, or too large ones.
    #[error(
        "allocating {count} minipages of {bytes} bytes: there must be one at least, of 1 to \
         {MOST_MINIPAGE_BYTES} bytes"
    )]
    Size {
        /// How many.
        count: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// The node's part of the memory has no room for them.
    #[error(
        "allocating {count} minipages of {bytes} bytes: {used} bytes of this node's part of the \
         memory are used, by whole pages, and {left} are left (MemorySettings::bytes, of which \
         each node may allocate an equal part, or all nodes together with one manager)"
    )]
    Full {
        /// How many.
        count: u64,
        /// Bytes of each.
        bytes: u64,
        /// Bytes that are used, by whole pages; those of freed minipages too.
        used: u64,
        /// Bytes that are left.
        left: u64,
    },
}

/// Whether there can be `count` minipages of so many bytes at multiples of `align`.
pub(super) fn check_size(count: u64, bytes: u64, align: u64) -> Result<(), MinipageRefusal> {
    let fits = (1..=u64::from(MOST_MINIPAGE_BYTES)).contains(&bytes);
    match count > 0 && fits && align.is_power_of_two() && align <= MINIPAGE_PAGE {
        true => Ok(()),
        false => Err(MinipageRefusal::Size { count, bytes }),
    }
}

/// What a manager has allocated of its part of the memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Table {
    /// Offsets that are this manager's.
    window: Range<u64>,
    /// Most minipages of a page.
    views: u64,
    /// By the offset of their first minipage.
    runs: SortedMap<u64, MinipageRun>,
    /// Freed minipages.
    freed: Freed,
    /// None of those is allocated again.
    pub keeps_freed: bool,
    /// Nodes may write together what is allocated next.
    pub releases: bool,
    /// The last pages that have room, in the order in which they were begun.
    open: Vec<OpenPage>,
    /// The first page of which nothing is taken.
    next: u64,
}

/// A page on which there is room for more minipages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct OpenPage {
    /// Where it begins.
    at: u64,
    /// Bytes that are taken.
    taken: u64,
    /// How many minipages are on it, each in the lowest view that was free.
    minipages: u64,
}

/// So many pages are kept open.
const MOST_OPEN: usize = 16;

impl Table {
    pub fn new(window: Range<u64>, views: u64) -> Table {
        Table {
            next: window.start,
            window,
            views,
            runs: SortedMap::new(),
            freed: Freed::default(),
            keeps_freed: false,
            releases: false,
            open: Vec::new(),
        }
    }

    /// Allocates minipages that begin at multiples of `align`: freed ones of the same shape, or on
    /// the first open page that has room for all of them (first fit), or else from a new page on.
    /// Whether they were freed before.
    pub fn allocate(
        &mut self,
        count: u64,
        bytes: u64,
        align: u64,
    ) -> Result<(MinipageRun, bool), MinipageRefusal> {
        let shape = (bytes, (align, self.releases));
        if let Some(run) = self.freed.take(count, shape, &self.runs) {
            return Ok((run, true));
        }
        let run = self.allocate_unused(count, bytes, align)?;
        let kind = (align, self.releases);
        self.freed.shapes.insert(offset_of(run.at), kind);
        Ok((run, false))
    }

    /// Whether nodes may write the minipage at an address together.
    pub fn is_released(&self, address: u64) -> bool {
        let run = self.run_of(address);
        let kind = run.and_then(|run| self.freed.shapes.get(&offset_of(run.at)));
        kind.is_some_and(|(_, releases)| *releases)
    }

    /// A minipage is no node's any more.
    pub fn free(&mut self, minipage: Minipage) {
        if self.keeps_freed {
            return;
        }
        if let Some(run) = self.run_of(minipage.at) {
            self.freed.put(minipage, &run);
        }
    }

    /// As [`allocate`](Table::allocate), of what was never allocated.
    fn allocate_unused(
        &mut self,
        count: u64,
        bytes: u64,
        align: u64,
    ) -> Result<MinipageRun, MinipageRefusal> {
        check_size(count, bytes, align)?;
        let stride = bytes.next_multiple_of(align);
        if let Some(place) = self.open.iter().position(|open| {
            let free = MINIPAGE_PAGE.checked_sub(open.taken.next_multiple_of(align));
            let all = count.checked_mul(stride);
            let has_room = all.is_some_and(|all| free.is_some_and(|free| all <= free));
            has_room && count <= self.views - open.minipages
        }) {
            let OpenPage {
                at: page,
                taken,
                minipages,
            } = self.open[place];
            let start = taken.next_multiple_of(align);
            let at = (page + start) | (minipages << VIEW_BITS);
            self.open[place] = OpenPage {
                at: page,
                taken: start + count * stride,
                minipages: minipages + count,
            };
            self.close_full();
            return Ok(self.keep(at, bytes, stride, count, count));
        }
        let on_page = (MINIPAGE_PAGE / stride).clamp(1, self.views);
        let pages_each = bytes.div_ceil(MINIPAGE_PAGE);
        let pages = count.div_ceil(on_page).checked_mul(pages_each);
        let left = self.left();
        let all = pages.and_then(|pages| pages.checked_mul(MINIPAGE_PAGE));
        let Some(all) = all.filter(|all| *all <= left) else {
            let used = self.taken();
            return Err(MinipageRefusal::Full {
                count,
                bytes,
                used,
                left,
            });
        };
        let at = self.next;
        self.next += all;
        let last = count - (count.div_ceil(on_page) - 1) * on_page;
        if pages_each == 1 {
            self.open.push(OpenPage {
                at: self.next - MINIPAGE_PAGE,
                taken: last * stride,
                minipages: last,
            });
            self.close_full();
        }
        Ok(self.keep(at, bytes, stride, on_page, count))
    }

    /// Closes pages without room, and the first of too many.
    fn close_full(&mut self) {
        let views = self.views;
        self.open
            .retain(|open| open.taken < MINIPAGE_PAGE && open.minipages < views);
        if self.open.len() > MOST_OPEN {
            self.open.remove(0);
        }
    }

    fn keep(&mut self, at: u64, bytes: u64, stride: u64, on_page: u64, count: u64) -> MinipageRun {
        let run = MinipageRun {
            at,
            bytes: bytes as u32,
            stride: stride.min(MINIPAGE_PAGE) as u32,
            on_page: on_page as u32,
            count,
        };
        self.runs.insert(offset_of(at), run);
        run
    }

    /// The minipage whose page, in its view, has this address.
    pub fn find(&self, address: u64) -> Option<Minipage> {
        self.run_of(address)?.find(address)
    }

    /// The run of the minipage whose page, in its view, has this address.
    pub fn run_of(&self, address: u64) -> Option<MinipageRun> {
        let page = first_of_page(offset_of(address));
        let before = self.runs.range(..page + MINIPAGE_PAGE).rev();
        // Those that begin on the page, and one that began before.
        for (start, run) in before {
            if run.find(address).is_some() {
                return Some(*run);
            }
            if *start <= page {
                return None;
            }
        }
        None
    }

    /// Bytes of the memory object that are taken.
    pub fn taken(&self) -> u64 {
        self.next - self.window.start
    }

    /// Bytes of the memory object that are left.
    pub fn left(&self) -> u64 {
        self.window.end - self.next
    }

    /// Bytes of all minipages that are not freed.
    pub fn minipage_bytes(&self) -> u64 {
        let bytes = |run: &MinipageRun| run.count * u64::from(run.bytes);
        self.runs.values().map(bytes).sum::<u64>() - self.freed.bytes
    }

    /// Most minipages that lie on one page: so many views the program needs.
    pub fn views_used(&self) -> u64 {
        let last =
            |run: &MinipageRun| (run.at >> VIEW_BITS) + u64::from(run.on_page).min(run.count);
        self.runs.values().map(last).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(1 << 20..1 << 30, 32)
    }

    /// Views of so many minipages of so many bytes, allocated one after the other.
    fn views(count: u64, bytes: u64, align: u64) -> u64 {
        let mut table = table();
        for _ in 0..count {
            table.allocate(1, bytes, align).unwrap();
        }
        let mut together = self::table();
        together.allocate(count, bytes, align).unwrap();
        assert_eq!(table.views_used(), together.views_used());
        assert_eq!(table.taken(), together.taken());
        table.views_used()
    }

    #[test]
    fn the_paper_s_programs_need_as_many_views_as_it_says() {
        // Table 2: SOR, IS, LU (blocks of 8 KiB) and TSP.
        assert_eq!(views(32_768, 256, 8), 16);
        assert_eq!(views(8, 256, 8), 8);
        assert_eq!(views(1024, 8192, 8), 1);
        assert_eq!(views(5431, 148, 4), 27);
    }

    #[test]
    fn the_first_page_with_room_is_taken_whatever_was_allocated_since() {
        let mut table = table();
        let small = |table: &mut Table, bytes| table.allocate(1, bytes, 8).unwrap().0.at;
        let first = small(&mut table, 2_000);
        let large = table.allocate(1, 10_000, 8).unwrap().0.at;
        assert_eq!(large, first + 4096);
        // There is no room for this on the first page, in the second view of which lies the next.
        let third = small(&mut table, 3_000);
        assert_eq!(third, large + 3 * 4096);
        assert_eq!(small(&mut table, 2_000), first + 2_000 + (1 << VIEW_BITS));
        assert_eq!(small(&mut table, 90), first + 4_000 + (2 << VIEW_BITS));
        assert_eq!(small(&mut table, 90), third + 3_000 + (1 << VIEW_BITS));
        assert_eq!(table.minipage_bytes(), 2 * 2_000 + 10_000 + 3_000 + 180);
        // Of many pages with room the last ones are kept.
        for _ in 0..2 * MOST_OPEN {
            small(&mut table, 4_000);
        }
        assert_eq!(table.open.len(), MOST_OPEN);
    }

    #[test]
    fn each_minipage_is_found_by_each_address_of_its_page_and_by_no_other() {
        let mut table = table();
        let mut all = Vec::new();
        for (count, bytes) in [
            (3, 100),
            (1, 4096),
            (40, 256),
            (2, 9000),
            (1, 8),
            (5, 3000),
            (1, 8),
        ] {
            let (run, _) = table.allocate(count, bytes, 8).unwrap();
            all.extend((0..count).map(|index| run.minipage(index).unwrap()));
            assert_eq!(run.minipage(count), None);
        }
        for minipage in &all {
            assert!(minipage.is_within(1 << 30, 32), "{minipage:?}");
            for page in (minipage.first_page()..minipage.end_of_pages()).step_by(4096) {
                assert_eq!(table.find(page), Some(*minipage));
                assert_eq!(table.find(page + 4095), Some(*minipage));
            }
            let overlaps = |other: &&Minipage| {
                let (one, two) = (minipage.offset(), other.offset());
                one < two + u64::from(other.bytes) && two < one + u64::from(minipage.bytes)
            };
            assert_eq!(all.iter().filter(overlaps).count(), 1, "{minipage:?}");
        }
        let pages: std::collections::BTreeSet<u64> = all
            .iter()
            .flat_map(|it| it.first_page()..it.first_page() + 1)
            .collect();
        assert_eq!(pages.len(), all.len(), "no two share a page of a view");
        assert_eq!(table.find((31 << VIEW_BITS) | (1 << 20)), None);
        assert_eq!(table.find((1 << 20) + table.taken()), None);
        assert_eq!(table.find(0), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_takes_nothing() {
        let mut table = Table::new(0..8192, 2);
        let size = MinipageRefusal::Size { count: 0, bytes: 8 };
        assert_eq!(table.allocate(0, 8, 8), Err(size));
        for bytes in [0, u64::from(MOST_MINIPAGE_BYTES) + 1, u64::MAX] {
            let size = MinipageRefusal::Size { count: 1, bytes };
            assert_eq!(table.allocate(1, bytes, 8), Err(size));
        }
        // Two minipages a page: five take three pages.
        for (count, bytes) in [(5, 8), (u64::MAX, 8), (1, 8193), (u64::MAX, 4097)] {
            let full = MinipageRefusal::Full {
                count,
                bytes,
                used: 0,
                left: 8192,
            };
            assert_eq!(table.allocate(count, bytes, 8), Err(full));
        }
        assert_eq!(table.taken(), 0);
        table.allocate(4, 8, 8).unwrap();
        assert_eq!((table.taken(), table.views_used()), (8192, 2));
    }

    #[test]
    fn freed_minipages_are_allocated_again_for_the_same_shape() {
        let mut table = Table::new(1 << 20..1 << 30, 16);
        let (run, _) = table.allocate(40, 256, 8).unwrap();
        let (taken, bytes) = (table.taken(), table.minipage_bytes());
        let minipage = |index| run.minipage(index).unwrap();
        table.free(minipage(17));
        table.free(minipage(3));
        // The same bytes of other numbers, or other bytes of the same, are none of them.
        for (bytes, align) in [(256, 4), (248, 8), (264, 8)] {
            assert!(!table.allocate(1, bytes, align).unwrap().1);
        }
        let again = |table: &mut Table| {
            let (one, were_freed) = table.allocate(1, 256, 8).unwrap();
            were_freed.then(|| one.minipage(0).unwrap())
        };
        let found = [again(&mut table), again(&mut table)];
        assert_eq!(found, [Some(minipage(17)), Some(minipage(3))]);
        assert_eq!(again(&mut table), None);
        // They came by their addresses: row 17 is in a view before. All of a run, and one of it.
        let (other, _) = table.allocate(40, 256, 8).unwrap();
        for index in 0..40 {
            assert!(!table.allocate(40, 512, 8).unwrap().1);
            table.free(other.minipage(index).unwrap());
        }
        assert_eq!(table.allocate(40, 256, 8).unwrap(), (other, true));
        (0..40).for_each(|index| table.free(other.minipage(index).unwrap()));
        assert_eq!(again(&mut table), other.minipage(0));
        assert!(!table.allocate(40, 256, 8).unwrap().1);
        table.free(other.minipage(0).unwrap());
        table.free(other.minipage(0).unwrap());
        assert_eq!(table.allocate(40, 256, 8).unwrap(), (other, true));
        assert!(table.taken() > taken && table.minipage_bytes() > bytes);
    }
}
