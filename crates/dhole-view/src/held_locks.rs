//! Where each thread acquired the locks that it has: a report of a deadlock names these lines.

use std::cell::{Cell, RefCell};

use dhole_model::CallSite;
use dhole_protocol::memory::sync::ThreadId;

/// A place in the program, which may be put into words only where a report names it.
#[derive(Clone, Copy, Debug)]
pub enum LockSite {
    /// A line.
    At(CallSite),
    /// An address, and what makes a place of it.
    From(usize, fn(usize) -> CallSite),
}

impl LockSite {
    /// The place.
    pub fn site(self) -> CallSite {
        match self {
            LockSite::At(site) => site,
            LockSite::From(address, place) => place(address),
        }
    }
}

impl From<CallSite> for LockSite {
    fn from(site: CallSite) -> LockSite {
        LockSite::At(site)
    }
}

thread_local! {
    static HELD: RefCell<Vec<(u64, LockSite)>> = const { RefCell::new(Vec::new()) };
    /// They have changed since they were noted.
    static HAVE_CHANGED: Cell<bool> = const { Cell::new(false) };
    /// As which thread they were noted: a simulation runs all of them on one.
    static NOTED_BY: Cell<ThreadId> = const { Cell::new(ThreadId(u64::MAX)) };
}

/// This thread has acquired a lock.
#[inline]
pub(crate) fn acquired(key: u64, site: LockSite) {
    // A handler of a signal may come in between: then the line is not known.
    let _unknown =
        HELD.try_with(|held| held.try_borrow_mut().map(|mut held| held.push((key, site))));
    HAVE_CHANGED.set(true);
}

/// This thread has released a lock.
#[inline]
pub(crate) fn released(key: u64) {
    let _unknown = HELD.try_with(|held| {
        let Ok(mut held) = held.try_borrow_mut() else {
            return;
        };
        if let Some(place) = held.iter().rposition(|(own, _)| *own == key) {
            held.remove(place);
        }
    });
    HAVE_CHANGED.set(true);
}

/// Notes the locks that this thread has, if they have changed since it last did.
pub(crate) fn note(thread: ThreadId, note: impl FnOnce(&[(u64, CallSite)])) {
    let is_noted = NOTED_BY.replace(thread) == thread;
    if !HAVE_CHANGED.replace(false) && is_noted {
        return;
    }
    let _unknown = HELD.try_with(|held| {
        if let Ok(held) = held.try_borrow() {
            let all: Vec<_> = held.iter().map(|(key, site)| (*key, site.site())).collect();
            note(&all);
        }
    });
}

/// Whether this thread has acquired or released locks since they were [noted](note).
pub(crate) fn have_changed() -> bool {
    HAVE_CHANGED.get()
}
