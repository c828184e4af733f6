//! Which line of the program borrowed raw memory: a fault knows an address alone, and the address
//! leads to the call by which the program got it.

use std::cell::Cell;
use std::ops::Range;
use std::panic::Location;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use dhole_model::CallSite;

type Line = &'static Location<'static>;

/// So many borrows of a thread are kept each: of a program that goes from row to row.
const BORROWS: usize = 32;
/// So many lines are kept, each with all that it has borrowed: of a program that keeps its rows.
const LINES: usize = 64;

/// What was borrowed by a call: its addresses, and the line.
struct Borrow {
    start: Cell<usize>,
    end: Cell<usize>,
    line: Cell<Option<Line>>,
}

thread_local! {
    static BORROWED: [Borrow; BORROWS] = const {
        [const {
            Borrow { start: Cell::new(0), end: Cell::new(0), line: Cell::new(None) }
        }; BORROWS]
    };
    /// The place of the last one.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// A line of the program, and the addresses that it has borrowed: from the first to the last.
struct Span {
    line: AtomicPtr<Location<'static>>,
    start: AtomicUsize,
    end: AtomicUsize,
}

static SPANS: [Span; LINES] = [const {
    Span {
        line: AtomicPtr::new(null_mut()),
        start: AtomicUsize::new(usize::MAX),
        end: AtomicUsize::new(0),
    }
}; LINES];

/// A line borrows so many bytes from an address on.
pub(crate) fn note(start: usize, bytes: usize, line: Line) {
    let end = start + bytes;
    BORROWED.with(|all| {
        let last = &all[LAST.get()];
        let is_same = last.line.get().is_some_and(|of| std::ptr::eq(of, line));
        if is_same && last.start.get() == start && last.end.get() == end {
            return;
        }
        let next = (LAST.get() + 1) % BORROWS;
        LAST.set(next);
        all[next].start.set(start);
        all[next].end.set(end);
        all[next].line.set(Some(line));
        widen(start, end, line);
    });
}

/// Adds to what a line has borrowed, where there is room for the line.
fn widen(start: usize, end: usize, line: Line) {
    let own = std::ptr::from_ref(line).cast_mut();
    let first = own.addr() / size_of::<Location<'_>>();
    for place in 0..LINES {
        let span = &SPANS[(first + place) % LINES];
        let mut of = span.line.load(Ordering::Relaxed);
        if of.is_null() {
            let order = Ordering::Relaxed;
            let taken = span.line.compare_exchange(null_mut(), own, order, order);
            of = taken.map_or_else(|other| other, |_| own);
        }
        if of == own {
            // Most borrows add nothing, and so write nothing that other threads read.
            if start < span.start.load(Ordering::Relaxed) {
                span.start.fetch_min(start, Ordering::Relaxed);
            }
            if end > span.end.load(Ordering::Relaxed) {
                span.end.fetch_max(end, Ordering::Relaxed);
            }
            return;
        }
    }
}

/// Forgets what all lines have borrowed within addresses that are given back: a next run may have
/// other memory there.
pub(crate) fn forget(within: Range<usize>) {
    for span in &SPANS {
        let start = span.start.load(Ordering::Relaxed);
        if within.contains(&start) {
            span.start.store(usize::MAX, Ordering::Relaxed);
            span.end.store(0, Ordering::Relaxed);
        }
    }
}

/// The line that borrowed an address: the last one of this thread, or else, of those of all threads
/// that have borrowed addresses before it and behind it, the one that has borrowed the narrowest
/// range. It takes no lock, and allocates nothing: a handler of a signal calls it.
pub(crate) fn line_of(address: usize) -> Option<CallSite> {
    let last = BORROWED.with(|all| {
        let newest_first = (0..BORROWS).map(|back| &all[(LAST.get() + BORROWS - back) % BORROWS]);
        let mut has = newest_first.filter(|it| (it.start.get()..it.end.get()).contains(&address));
        has.next().and_then(|it| it.line.get())
    });
    let narrowest = || {
        let spans = SPANS.iter().map(|span| {
            let range = span.start.load(Ordering::Relaxed)..span.end.load(Ordering::Relaxed);
            (span.line.load(Ordering::Relaxed).cast_const(), range)
        });
        let has = spans.filter(|(line, range)| !line.is_null() && range.contains(&address));
        let (line, _) = has.min_by_key(|(_, range)| range.len())?;
        // SAFETY: `widen` alone stores there, addresses of lines that last for ever.
        Some(unsafe { &*line })
    };
    last.or_else(narrowest).map(CallSite::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn here_1() -> Line {
        Location::caller()
    }

    const fn here_2() -> Line {
        Location::caller()
    }

    const fn here_3() -> Line {
        Location::caller()
    }

    /// Addresses that no other test borrows.
    const BASE: usize = 1 << 60;

    #[test]
    fn the_last_borrow_of_an_address_is_its_line() {
        let (wide, narrow) = (here_1(), here_2());
        for row in 0..100 {
            note(BASE + row * 64, 64, wide);
        }
        note(BASE + 99 * 64, 64, narrow);
        note(BASE + 98 * 64, 8, narrow);
        assert_eq!(line_of(BASE + 99 * 64 + 5), Some(narrow.into()));
        assert_eq!(line_of(BASE + 98 * 64 + 8), Some(wide.into()));
        // It is no longer among the last ones, and no other line has borrowed about there.
        assert_eq!(line_of(BASE), Some(wide.into()));
        assert_eq!(line_of(BASE + 100 * 64), None);
        assert_eq!(line_of(BASE - 1), None);
    }

    #[test]
    fn another_thread_knows_the_lines_of_all_by_what_they_have_borrowed() {
        let far = BASE << 1;
        note(far, 8, here_3());
        note(far + 800, 8, here_3());
        let found = std::thread::spawn(move || [far + 80, far + 808].map(line_of));
        let found = found.join().expect("it finds them");
        assert_eq!(found, [Some(here_3().into()), None]);
        forget(far..far + 4_096);
        let found = std::thread::spawn(move || line_of(far + 80)).join();
        assert_eq!(found.expect("it finds none"), None);
    }
}
