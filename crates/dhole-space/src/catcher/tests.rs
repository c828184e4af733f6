//! Views of one file, opened and closed page by page.

use std::ops::Range;

use super::uffd::calls;
use super::*;
use crate::mapping::Mapping;
use crate::shared_file::SharedFile;

const PAGE: usize = 4096;

/// Some views of a file, and one of it that is always open.
struct Watched {
    views: Mapping,
    open: Mapping,
    /// Bytes of each.
    bytes: usize,
    catcher: Catcher,
}

impl Watched {
    fn new(views: usize, pages: usize, catcher: Catcher) -> Watched {
        let bytes = pages * PAGE;
        let file = SharedFile::make(c"views", bytes as u64).expect("a file");
        let whole = 0..bytes as u64;
        let watched = Watched {
            views: Mapping::reserve(None, views * bytes).expect("addresses"),
            open: Mapping::of_part(&file, whole.clone()).expect("a mapping"),
            bytes,
            catcher,
        };
        for view in 0..views {
            let closed = watched.catcher.closed();
            // SAFETY: nothing refers to what is there, nor touches it but below.
            unsafe {
                let shown = watched
                    .views
                    .show(view * bytes, &file, whole.clone(), closed);
                shown.expect("a view");
                let watches = watched.catcher.watch(watched.place(view, 0), bytes);
                watches.expect("it is watched");
            }
        }
        watched
    }

    /// Where a page of a view is.
    fn place(&self, view: usize, page: usize) -> NonNull<u8> {
        let offset = view * self.bytes + page * PAGE;
        assert!(offset as u64 <= self.views.bytes());
        // SAFETY: within the mapping, by the test above.
        unsafe { self.views.start().add(offset) }
    }

    fn protect(&self, view: usize, pages: Range<usize>, protection: Protection) {
        assert!(pages.end * PAGE <= self.bytes);
        for page in pages.clone() {
            // SAFETY: within the mapping, by the test above; a page must exist to be opened.
            unsafe { self.open.start().add(page * PAGE).read_volatile() };
        }
        let place = self.place(view, pages.start);
        // SAFETY: pages of a view that is watched.
        let protected = unsafe { self.catcher.protect(place, pages.len() * PAGE, protection) };
        protected.expect("it may");
    }

    /// Calls of the system that opening pages of the first view, or closing them, takes.
    fn taken(&self, pages: Range<usize>, protection: Protection) -> u64 {
        let before = calls::made();
        self.protect(0, pages, protection);
        calls::made() - before
    }

    /// Mappings of the process within the views.
    fn mappings(&self) -> usize {
        let start = self.views.start().addr().get();
        let views = start..start + self.views.bytes() as usize;
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the process has mappings");
        let begins = |line: &str| {
            let (start, _) = line.split_once('-')?;
            usize::from_str_radix(start, 16).ok()
        };
        let within = maps.lines().filter_map(begins);
        within.filter(|start| views.contains(start)).count()
    }
}

#[test]
fn mprotect_splits_views_into_as_many_mappings_as_are_counted() {
    use Protection::{Closed, Open, ReadOnly};
    const PAGES: usize = 24;
    let catcher = Catcher::new(CatcherKind::Mprotect).expect("a catcher");
    let watched = Watched::new(3, PAGES, catcher);
    let counted = || watched.catcher.mappings().expect("they are counted");
    assert_eq!((counted(), watched.mappings()), (3, 3));
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let mut most = 0;
    for _ in 0..2_000 {
        let (view, first) = (next(3), next(PAGES));
        let last = first + 1 + next((PAGES - first).min(4));
        watched.protect(view, first..last, [Closed, ReadOnly, Open][next(3)]);
        assert_eq!(counted(), watched.mappings());
        most = most.max(counted());
    }
    assert!(most > 30, "{most}");
    for view in 0..3 {
        watched.protect(view, 0..PAGES, Closed);
    }
    assert_eq!((counted(), watched.mappings()), (3, 3));
}

#[test]
fn pages_of_a_view_are_opened_and_closed_by_one_call() {
    use Protection::{Closed, Open, ReadOnly};
    let Ok(catcher) = Catcher::new(CatcherKind::Uffd) else {
        println!("passed over, for userfaultfd is refused");
        return;
    };
    let watched = Watched::new(2, 256, catcher);
    assert_eq!(watched.taken(0..200, ReadOnly), 1);
    assert_eq!(watched.taken(0..200, Closed), 1);
    assert_eq!(watched.taken(0..200, Open), 1);
    // All are open before: one call finds that out, and one changes them.
    assert_eq!(watched.taken(10..11, ReadOnly), 2);
    assert_eq!(watched.taken(50..51, Closed), 1);
    assert_eq!(watched.taken(100..101, Closed), 1);
    // The two that are closed are opened, whatever lies between.
    assert_eq!(watched.taken(40..110, Open), 70 + 1);
    assert_eq!(watched.taken(0..200, Closed), 1);
    assert_eq!(watched.taken(0..3, ReadOnly), 1);
    // SAFETY: the page is mapped, and open.
    assert_eq!(unsafe { watched.place(0, 2).read_volatile() }, 0);
}
