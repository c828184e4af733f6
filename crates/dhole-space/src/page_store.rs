//! Where a node keeps its objects: pages filled in the order of first access, so that objects
//! used together lie together (DOSA, sections 3.3 and 3.6).

use std::ops::Range;
use std::ptr::NonNull;

use dhole_model::{IdSet, Oid};

use crate::geometry::{HUGE_BYTES, PAGE_BYTES};
use crate::space;

/// A node's storage. Raw memory: nothing here ever forms a reference to it.
pub struct PageStore {
    base: NonNull<u8>,
    capacity: u64,
    /// Bytes of all pages that were ever in use.
    end: u64,
    /// Bytes of the objects in each of these pages.
    live: Vec<u32>,
    /// The pages without objects, which are used again.
    free: IdSet,
    /// The free rest of the page that small objects go to.
    open: u64,
    open_end: u64,
    /// The end of the last large object, where the rest of its last page begins.
    large: u64,
    large_end: u64,
    /// The last large objects, as long as their ids follow on each other.
    run: Run,
    /// From here to `top` is address space of arrays.
    reserved: u64,
    /// The end of what objects and arrays share: of the file, until that is full.
    top: u64,
    /// Address space of arrays that lies before the objects' end.
    passed: u64,
    /// The pages of it that belonged to arrays which were freed.
    unreserved: IdSet,
    /// By how much the next array is moved off the start of a page.
    stagger: u64,
    /// Up to here the system may use huge pages.
    advised: u64,
    /// A file that neighbours map is behind what lies before this place.
    of_file: u64,
}

/// Address space of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reserved {
    /// Where the array begins.
    pub at: u64,
    /// The bytes of the pages that are its alone.
    pub pages: Range<u64>,
}

/// Large objects that were stored in turn, each with the next id.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Where the first of them begins.
    first: u64,
    /// How many there are.
    count: u64,
    /// The id that goes on with it.
    next: Oid,
}

/// Large objects begin on a cache line.
const LINE_BYTES: u64 = 64;

/// By how much arrays, and runs of large objects, lie apart within their pages: of two far from
/// each other in either direction, and of up to 64 each at a place of its own.
const STAGGER_BYTES: u64 = 25 * LINE_BYTES;

/// The length from which on a run of large objects is kept apart from what follows: what that
/// leaves unused is less than a page.
const LONG_RUN: u64 = 16;

// SAFETY: the store hands out places and addresses, and reads and writes nothing there itself.
unsafe impl Send for PageStore {}

impl PageStore {
    /// An empty store of `capacity` bytes at `base`, which is page-aligned.
    ///
    /// # Safety
    /// They are mapped as long as the store is used.
    pub unsafe fn new(base: NonNull<u8>, capacity: u64) -> PageStore {
        PageStore {
            base,
            capacity,
            end: 0,
            live: Vec::new(),
            free: IdSet::default(),
            open: 0,
            open_end: 0,
            large: 0,
            large_end: 0,
            run: Run::default(),
            reserved: capacity,
            top: capacity,
            passed: 0,
            unreserved: IdSet::default(),
            stagger: 0,
            advised: HUGE_BYTES,
            of_file: 0,
        }
    }

    /// The same, whose first bytes are memory of a file that neighbours map. Objects and arrays lie
    /// there until it is full.
    pub fn of_file(self, of_file: u64) -> PageStore {
        let top = match of_file {
            0 => self.capacity,
            of_file => of_file.min(self.capacity),
        };
        PageStore {
            of_file,
            top,
            reserved: top,
            ..self
        }
    }

    /// Whether what ends there is memory of a file.
    pub fn is_of_file(&self, end: u64) -> bool {
        end <= self.of_file
    }

    /// The file is full: from here on objects lie behind it, and arrays at the end of the store.
    /// Whether there was a file.
    fn leave_file(&mut self) -> bool {
        if self.top == self.capacity {
            return false;
        }
        let rest = self.end / PAGE_BYTES..self.reserved / PAGE_BYTES;
        self.free.add(rest);
        self.passed = self.top - self.reserved;
        self.end = self.top;
        self.live.resize((self.end / PAGE_BYTES) as usize, 0);
        (self.top, self.reserved) = (self.capacity, self.capacity);
        true
    }

    /// Storage for the object `oid`, as [`take`](PageStore::take) gives it.
    ///
    /// The objects of a range lie one behind the other where they are touched so, and what follows
    /// on a long one begins at another place of a page. Else an object that is written would lie
    /// at the place of its page where those lie that are read with it, as rows of two matrices
    /// do; a processor that looks at the lower bits of addresses alone when it looks for what was
    /// stored and not yet written takes one for the other then, and waits.
    /// Ranges whose ids follow on each other count as one here, which only who touches all of the
    /// first finds.
    pub fn take_for(&mut self, oid: Oid, bytes: u64, align: u64) -> Option<u64> {
        if bytes < PAGE_BYTES {
            return self.take(bytes, align);
        }
        let Run { first, count, next } = self.run;
        let goes_on = oid == next;
        let apart = !goes_on && count >= LONG_RUN;
        let place = apart.then_some((first + STAGGER_BYTES) % PAGE_BYTES);
        let at = self.take_at_place(bytes, align, place);
        let at = at.or_else(|| self.take(bytes, align))?;
        let (first, count) = match goes_on {
            true => (first, count + 1),
            false => (at, 1),
        };
        let next = oid.plus(1);
        self.run = Run { first, count, next };
        Some(at)
    }

    /// Storage for one object, which no other object has; `None` when the store is full. `align`
    /// is a power of two of at most a page.
    pub fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        self.take_at_place(bytes, align, None)
    }

    /// The same; a large object begins at this place of a page, if it gets no pages that are free
    /// again.
    fn take_at_place(&mut self, bytes: u64, align: u64, place: Option<u64>) -> Option<u64> {
        debug_assert!(align.is_power_of_two() && align <= PAGE_BYTES);
        let at = if bytes >= PAGE_BYTES {
            self.take_large(bytes, align.max(LINE_BYTES), place)?
        } else {
            self.take_small(bytes.max(1), align)?
        };
        self.each_page(at, bytes, |live, of_object| *live += of_object);
        Some(at)
    }

    /// Storage for one object at a place that was chosen for it, where no other object is, in a
    /// store whose objects are all placed so; `None` where the store does not reach.
    pub fn take_at(&mut self, at: u64, bytes: u64) -> Option<u64> {
        self.reach(at.checked_add(bytes.max(1))?)?;
        let mut used = IdSet::default();
        let mut page = at / PAGE_BYTES;
        self.each_page(at, bytes, |live, of_object| {
            if *live == 0 {
                used.add(page..page + 1);
            }
            *live += of_object;
            page += 1;
        });
        used.ranges().for_each(|pages| self.free.remove(pages));
        Some(at)
    }

    /// The page that begins at `at` is in use; `None` where the store does not reach.
    pub fn touch(&mut self, at: u64) -> Option<()> {
        self.reach(at.checked_add(PAGE_BYTES)?)?;
        let page = at / PAGE_BYTES;
        self.free.remove(page..page + 1);
        Some(())
    }

    /// The page that begins at `at` is not in use any more.
    pub fn forget(&mut self, at: u64) {
        let page = at / PAGE_BYTES;
        self.free.add(page..page + 1);
    }

    /// Address space for an array at a place that was chosen for it.
    pub fn reserve_at(&mut self, at: u64, bytes: u64) -> Option<u64> {
        self.reach(at.checked_add(bytes)?)?;
        Some(at)
    }

    /// Takes all pages up to `end`, as free ones.
    fn reach(&mut self, end: u64) -> Option<()> {
        let more = end.checked_next_multiple_of(PAGE_BYTES)?;
        if more > self.reserved {
            return None;
        }
        if more > self.end {
            let pages = self.end / PAGE_BYTES..more / PAGE_BYTES;
            self.live.resize(pages.end as usize, 0);
            self.free.add(pages);
            self.end = more;
        }
        Some(())
    }

    /// An object without bytes takes one, so that no two objects share an address.
    fn take_small(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let mut at = self.open.next_multiple_of(align);
        if at + bytes > self.open_end {
            at = match self.free.take(1) {
                Some(page) => page * PAGE_BYTES,
                None => self.take_pages(PAGE_BYTES)?,
            };
            self.open_end = at + PAGE_BYTES;
        }
        self.open = at + bytes;
        Some(at)
    }

    /// Takes the storage of an object back: the bytes from where to where that belong to no
    /// object any more and are whole pages.
    pub fn give_back(&mut self, at: u64, bytes: u64) -> Range<u64> {
        let (mut freed, mut page) = (IdSet::default(), at / PAGE_BYTES);
        let (open_page, large_page) = (self.open_end, self.large_end);
        let (mut is_open, mut was_last_large) = (false, false);
        self.each_page(at, bytes, |live, of_object| {
            *live -= of_object;
            let end = (page + 1) * PAGE_BYTES;
            if *live == 0 {
                is_open |= end == open_page;
                was_last_large |= end == large_page;
                if end != open_page {
                    freed.add(page..page + 1);
                }
            }
            page += 1;
        });
        if is_open {
            self.open = self.open_end - PAGE_BYTES;
        }
        if was_last_large {
            // No large object follows on one whose page is used otherwise now.
            self.large_end = u64::MAX;
        }
        let freed = freed.ranges().next().unwrap_or(0..0);
        self.free.add(freed.clone());
        freed.start * PAGE_BYTES..freed.end * PAGE_BYTES
    }

    /// Whether no object lies on the page.
    #[inline]
    pub fn is_empty(&self, page: u64) -> bool {
        self.live[page as usize] == 0
    }

    /// Calls `f` with the count of each page that the object lies in, and its bytes there.
    fn each_page(&mut self, at: u64, bytes: u64, mut f: impl FnMut(&mut u32, u32)) {
        let end = at + bytes.max(1);
        let (first, last) = (at / PAGE_BYTES, (end - 1) / PAGE_BYTES);
        for (page, live) in (first..=last).zip(&mut self.live[first as usize..]) {
            let here = end.min((page + 1) * PAGE_BYTES) - at.max(page * PAGE_BYTES);
            f(live, here as u32);
        }
    }

    /// A large object begins where the one before it ends, if no page was taken since. Were each
    /// to begin on a page, rows of an array would lie at one offset of their pages, compete for
    /// the same few sets of the cache, and leave the rest of their last page unused. Where a place
    /// of a page is named it begins at the next such place, less than a page behind that.
    fn take_large(&mut self, bytes: u64, align: u64, place: Option<u64>) -> Option<u64> {
        if let Some(page) = self.free.take(bytes.div_ceil(PAGE_BYTES)) {
            return Some(page * PAGE_BYTES);
        }
        let from = match self.large_end == self.end {
            true => self.large,
            false => self.end,
        };
        let at = match place {
            Some(place) => {
                let place = place.next_multiple_of(align);
                from + (place + PAGE_BYTES - from % PAGE_BYTES) % PAGE_BYTES
            }
            None => from.next_multiple_of(align),
        };
        let end = at.checked_add(bytes)?;
        let pages = end.checked_next_multiple_of(PAGE_BYTES)?;
        self.take_pages(pages - self.end)?;
        (self.large, self.large_end) = (end, self.end);
        Some(at)
    }

    /// Address space for an array, from the end of the store; `None` when there is not enough.
    /// It holds nothing, and reads as zeros, until it is written. `align` is a power of two of at
    /// most a page.
    ///
    /// Arrays begin at different places of their pages: elements at one place of several large
    /// ones would compete for the same few sets of the cache.
    pub fn reserve(&mut self, bytes: u64, align: u64) -> Option<Reserved> {
        debug_assert!(align.is_power_of_two() && align <= PAGE_BYTES);
        let length = bytes.checked_next_multiple_of(PAGE_BYTES)? + PAGE_BYTES;
        let start = match self.unreserved.take(length / PAGE_BYTES) {
            Some(page) => page * PAGE_BYTES,
            None => loop {
                let start = self.reserved.checked_sub(length);
                let start = start.map(|start| start / PAGE_BYTES * PAGE_BYTES);
                if let Some(start) = start.filter(|start| *start >= self.end) {
                    self.reserved = start;
                    break start;
                }
                if !self.leave_file() {
                    return None;
                }
            },
        };
        self.stagger = (self.stagger + STAGGER_BYTES) % PAGE_BYTES;
        Some(Reserved {
            at: (start + self.stagger).next_multiple_of(align),
            pages: start..start + length,
        })
    }

    /// Takes the address space of an array back, whose pages hold nothing any more.
    pub fn unreserve(&mut self, pages: Range<u64>) {
        let pages = pages.start / PAGE_BYTES..pages.end / PAGE_BYTES;
        self.unreserved.add(pages);
    }

    /// What arrays reserved behind the [extent](PageStore::extent) of the objects.
    #[inline]
    pub fn reserved(&self) -> Range<u64> {
        self.reserved..self.top
    }

    fn take_pages(&mut self, bytes: u64) -> Option<u64> {
        if self.end.checked_add(bytes)? > self.reserved && !self.leave_file() {
            return None;
        }
        let at = self.end;
        let end = at.checked_add(bytes).filter(|&end| end <= self.reserved)?;
        self.end = end;
        self.live.resize((end / PAGE_BYTES) as usize, 0);
        if end > self.advised {
            self.advise(end);
        }
        Some(at)
    }

    /// A store that has filled a huge page may have more of them: many objects in few pages are
    /// found in fewer steps of address translation. A small store stays small. Memory of a file is
    /// taken with the advice, so it gets no more than it reaches.
    #[cold]
    fn advise(&mut self, end: u64) {
        let is_file = end <= self.of_file;
        let reached = match is_file {
            true => end,
            false => end.next_power_of_two(),
        };
        let more = space::huge_from(self.base, reached).min(self.capacity);
        assert!(
            self.advised <= self.capacity,
            "a store that is filled beyond its end"
        );
        // SAFETY: within the `capacity` mapped bytes, by the test above, as what is advised is.
        unsafe {
            let at = self.base.add(self.advised as usize);
            match is_file {
                true => space::make_huge(at, more - self.advised),
                false => space::advise_huge(at, more - self.advised),
            }
        }
        self.advised = more;
    }

    /// The system may use huge pages for bytes of an array, which is in the file or is not.
    ///
    /// # Safety
    /// They are within the store.
    pub unsafe fn advise_array(&self, at: u64, bytes: u64) {
        let address = self.pointer(at);
        // SAFETY: the store is mapped, and the bytes are within it, as the caller promises.
        unsafe {
            match self.is_of_file(at + bytes) {
                true => space::make_huge(address, bytes),
                false => space::advise_huge(address, bytes),
            }
        }
    }

    /// The address of a place in the store.
    ///
    /// # Panics
    /// When it is beyond its end.
    #[inline]
    pub fn pointer(&self, at: u64) -> NonNull<u8> {
        assert!(at <= self.capacity, "a place beyond the store");
        // SAFETY: `capacity` bytes from `base` on are mapped, by the contract of `new`, and the
        // place is within them or at their end, by the test above.
        unsafe { self.base.add(at as usize) }
    }

    /// Bytes of the pages in use, but for those of arrays.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.end - self.passed - self.free.count() * PAGE_BYTES
    }

    /// Bytes of the pages that were ever in use; they are the first of the store.
    #[inline]
    pub fn extent(&self) -> u64 {
        self.end
    }

    /// The most that one object may take.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(pages: u64) -> PageStore {
        // SAFETY: these tests ask for places alone, and for no address.
        unsafe { PageStore::new(NonNull::dangling(), pages * PAGE_BYTES) }
    }

    /// Objects fill the file from its beginning and arrays from its end. Once it is full, objects
    /// go on behind it, and arrays at the end of the store.
    #[test]
    fn objects_and_arrays_lie_in_the_file_until_it_is_full() {
        const P: u64 = PAGE_BYTES;
        let mut s = store(40).of_file(10 * P);
        assert_eq!(s.reserve(2 * P, 8).unwrap().pages, 7 * P..10 * P);
        assert_eq!(s.take(3 * P, 8), Some(0));
        assert_eq!((s.bytes(), s.reserved()), (3 * P, 7 * P..10 * P));
        // The four pages that are left are too few for an array, and hold objects.
        assert_eq!(s.reserve(5 * P, 8).unwrap().pages, 34 * P..40 * P);
        assert_eq!((s.bytes(), s.reserved()), (3 * P, 34 * P..40 * P));
        assert_eq!(s.take(4 * P, 8), Some(3 * P));
        assert_eq!(s.take(P, 8), Some(10 * P));
        assert_eq!((s.bytes(), s.extent()), (8 * P, 11 * P));
        // The pages of the first array are used again.
        s.unreserve(7 * P..10 * P);
        assert_eq!(s.reserve(2 * P, 8).unwrap().pages, 7 * P..10 * P);
        assert_eq!(s.take(24 * P, 8), None);
        assert_eq!(s.take(23 * P, 8), Some(11 * P));
        assert!(s.reserve(1, 8).is_none());
    }

    /// Of a huge page that lies astride of what is advised the rest would be small pages.
    #[test]
    fn huge_pages_are_advised_to_the_end_of_one_wherever_the_store_begins() {
        let memory = vec![0_u8; 24 << 20];
        for at in [
            0,
            PAGE_BYTES,
            (1 << 20) + PAGE_BYTES,
            (2 << 20) - PAGE_BYTES,
        ] {
            let base = memory[at as usize..].as_ptr().cast_mut();
            let base = NonNull::new(base).expect("it is not null");
            // SAFETY: the memory is longer, and outlives the store.
            let mut s = unsafe { PageStore::new(base, 20 << 20) };
            let mut advised = vec![s.advised];
            while s.end < 11 << 20 {
                s.take(3 * PAGE_BYTES, 8).expect("there is room");
                if advised.last() != Some(&s.advised) {
                    advised.push(s.advised);
                    assert!((s.end..=s.capacity).contains(&s.advised));
                    let end = base.addr().get() as u64 + s.advised;
                    assert!(end.is_multiple_of(HUGE_BYTES) || s.advised == s.capacity);
                }
            }
            assert_eq!(advised.len(), 4, "behind 2, 4 and 8 MiB");
        }
    }

    #[test]
    fn small_objects_fill_a_page_in_order() {
        let mut s = store(8);
        assert_eq!(
            (s.take(24, 8), s.take(1, 1), s.take(8, 8)),
            (Some(0), Some(24), Some(32))
        );
        assert_eq!(s.bytes(), PAGE_BYTES);
    }

    #[test]
    fn an_object_that_does_not_fit_starts_a_page() {
        let mut s = store(8);
        assert_eq!(s.take(4000, 8), Some(0));
        assert_eq!(s.take(100, 4), Some(4096));
        assert_eq!(
            s.take(90, 2),
            Some(4196),
            "the page left behind is not filled up"
        );
    }

    #[test]
    fn an_object_of_a_page_or_more_shares_no_page_with_a_small_one() {
        let mut s = store(8);
        assert_eq!(s.take(8, 8), Some(0));
        assert_eq!(s.take(4097, 8), Some(4096));
        assert_eq!(s.take(8, 8), Some(8), "the open page stays open");
        assert_eq!(s.bytes(), 3 * PAGE_BYTES);
    }

    #[test]
    fn large_objects_follow_on_each_other() {
        let mut s = store(16);
        assert_eq!(s.take(8200, 8), Some(0));
        assert_eq!(s.take(8200, 8), Some(8256), "on the next cache line");
        assert_eq!(s.bytes(), 5 * PAGE_BYTES);
        assert_eq!(s.take(8, 8), Some(5 * PAGE_BYTES));
        assert_eq!(
            s.take(4096, 8),
            Some(6 * PAGE_BYTES),
            "pages were taken since"
        );
        assert_eq!(s.take(4096, 4096), Some(7 * PAGE_BYTES));
    }

    fn rows(s: &mut PageStore, ids: std::ops::Range<u64>) -> Vec<u64> {
        let each = ids.map(|id| s.take_for(Oid(id), 8200, 8).expect("there is room"));
        each.collect()
    }

    /// What is read and written together, row by row, lies at other places of its pages.
    #[test]
    fn rows_of_two_ranges_lie_apart() {
        let mut s = store(400);
        let (red, black) = (rows(&mut s, 100..116), rows(&mut s, 130..146));
        let green = rows(&mut s, 160..176);
        for (row, &at) in red.iter().enumerate() {
            assert_eq!(at, 8256 * row as u64, "one behind the other");
            let place = |at: u64| at % PAGE_BYTES;
            assert_eq!(place(black[row]), place(at + 25 * 64));
            assert_eq!(place(green[row]), place(at + 50 * 64));
        }
        assert_eq!(
            black[0],
            32 * PAGE_BYTES + 25 * 64,
            "on the page where red ends"
        );
        for at in [red, black, green].concat() {
            s.give_back(at, 8200);
        }
        assert_eq!(s.bytes(), 0, "all of it is used again");
    }

    #[test]
    fn rows_apart_begin_behind_pages_that_were_taken_since() {
        let mut s = store(100);
        rows(&mut s, 100..117);
        let small = s.take(8, 8).expect("there is room");
        let black = rows(&mut s, 200..202);
        assert_eq!(
            black,
            [
                small + PAGE_BYTES + 25 * 64,
                small + PAGE_BYTES + 25 * 64 + 8256
            ]
        );
    }

    /// Places that were skipped to and not used do not add up, and alignment adds no page.
    #[test]
    fn every_page_in_use_has_an_object() {
        let mut s = store(400);
        let first = rows(&mut s, 1000..1032);
        rows(&mut s, 2000..2016);
        s.take(8, 8).expect("there is room");
        for at in first {
            s.give_back(at, 8200);
        }
        rows(&mut s, 3000..3016);
        rows(&mut s, 4000..4020);
        for id in (100..116).chain(200..218).chain([300]) {
            let at = s.take_for(Oid(id), 4096, 4096).expect("there is room");
            assert!(at.is_multiple_of(4096));
        }
        let unused = |page: &u64| s.is_empty(*page);
        let empty = (0..s.extent() / PAGE_BYTES).filter(unused).count();
        assert_eq!(empty as u64, s.free.count());
    }

    #[test]
    fn a_place_apart_is_given_up_where_the_store_has_no_room_for_it() {
        let mut s = store(34);
        let end = rows(&mut s, 100..116)[15] + 8200;
        assert_eq!(
            s.take_for(Oid(200), 6900, 8),
            Some(end.next_multiple_of(64))
        );
        assert_eq!(s.take_for(Oid(300), 4096, 8), None);
    }

    /// Objects that are touched here and there leave nothing unused between them.
    #[test]
    fn short_runs_follow_on_each_other() {
        let mut s = store(200);
        let at: Vec<u64> = (0..6)
            .flat_map(|run| rows(&mut s, 100 * run..100 * run + 15))
            .collect();
        assert!(at.windows(2).all(|two| two[1] - two[0] == 8256));
    }

    #[test]
    fn arrays_lie_at_the_end_of_the_store_and_apart() {
        let mut s = store(8);
        let first = s.reserve(4096, 8).unwrap();
        assert_eq!(first.at, 6 * PAGE_BYTES + 25 * 64);
        assert_eq!(
            s.reserve(1, 4096).map(|reserved| reserved.at),
            Some(5 * PAGE_BYTES),
            "as it must be aligned"
        );
        assert_eq!(s.reserve(u64::MAX, 1), None);
        assert_eq!(s.reserve(4 * PAGE_BYTES, 1), None);
        assert_eq!(s.bytes(), 0, "nothing is stored");
        assert_eq!(s.take(5 * PAGE_BYTES, 8), None);
        assert_eq!(s.take(4 * PAGE_BYTES, 8), Some(0));
        assert_eq!(s.reserve(1, 1), None, "it is full");
        s.unreserve(first.pages.clone());
        let again = s.reserve(5, 1).map(|reserved| reserved.pages);
        assert_eq!(again, Some(first.pages), "a freed array's place");
    }

    #[test]
    fn a_page_whose_objects_are_all_freed_is_used_again() {
        let mut s = store(8);
        let first: Vec<u64> = (0..2).filter_map(|_| s.take(2048, 8)).collect();
        let second = s.take(100, 4).unwrap();
        assert_eq!(s.give_back(first[1], 2048), 0..0, "another object is there");
        assert_eq!(s.give_back(first[0], 2048), 0..4096);
        assert_eq!((s.bytes(), s.extent()), (4096, 8192));
        assert_eq!(s.give_back(second, 100), 0..0, "the open page stays open");
        assert_eq!(s.take(4000, 8), Some(second), "from its beginning");
        assert_eq!(s.take(4000, 8), Some(0));
        assert_eq!(s.bytes(), 8192);
    }

    #[test]
    fn large_objects_share_pages_and_give_back_those_of_their_own() {
        let mut s = store(16);
        let at: Vec<u64> = (0..3).filter_map(|_| s.take(8200, 8)).collect();
        assert_eq!(at, [0, 8256, 16512]);
        assert_eq!(s.give_back(at[1], 8200), 3 * 4096..4 * 4096);
        assert_eq!(s.give_back(at[2], 8200), 4 * 4096..7 * 4096);
        assert_eq!(
            s.take(4 * 4096, 64),
            Some(3 * 4096),
            "pages that are free again"
        );
        assert_eq!(
            s.take(4096, 64),
            Some(7 * 4096),
            "the last large object is gone"
        );
        assert_eq!(s.give_back(at[0], 8200), 0..3 * 4096);
    }

    #[test]
    fn a_full_store_says_so() {
        let mut s = store(2);
        assert_eq!(s.take(3 * PAGE_BYTES, 8), None);
        assert_eq!(s.take(2 * PAGE_BYTES, 8), Some(0));
        assert_eq!(s.take(1, 1), None);
        assert_eq!(s.take(u64::MAX, 1), None);
    }
}
