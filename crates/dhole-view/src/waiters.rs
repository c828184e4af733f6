//! The threads of a node that wait beside its worker: for pages, locks, or each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_node::PartsWaiter;
use dhole_protocol::memory::sync::ThreadId;

/// Most threads of a node that wait at once.
pub(crate) const MOST_WAITERS: usize = 4096;

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitsFor {
    /// The page at this address of the protocol's.
    Page(u64),
    /// Pages of a round: each of them wakes the thread.
    AnyPage,
    /// What this thread of the node has asked for.
    Thread(ThreadId),
}

/// A place to wait for each thread, all of them there before the first one waits: a thread that
/// faults may be anywhere.
pub(crate) struct Waiters {
    all: Box<[PartsWaiter]>,
    places: Mutex<Places>,
}

struct Places {
    /// Waiters that nobody uses.
    free: Vec<u16>,
    /// Who waits, and for what.
    used: Vec<(WaitsFor, u16)>,
}

/// A waiter that a thread uses until this is dropped.
pub(crate) struct Waits<'a> {
    of: &'a Waiters,
    place: u16,
}

impl Waiters {
    pub fn new() -> Waiters {
        let all = 0..MOST_WAITERS as u16;
        Waiters {
            all: all.clone().map(|_| PartsWaiter::default()).collect(),
            places: Mutex::new(Places {
                free: all.rev().collect(),
                used: Vec::with_capacity(MOST_WAITERS),
            }),
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A waiter for a thread, from here on woken by what it waits for; `None` where all are used.
    pub fn begin(&self, waits_for: WaitsFor) -> Option<Waits<'_>> {
        let mut places = self.places();
        let place = places.free.pop()?;
        places.used.push((waits_for, place));
        Some(Waits { of: self, place })
    }

    /// Wakes all threads that wait for this; whether there is one.
    pub fn wake(&self, waits_for: WaitsFor) -> bool {
        let places = self.places();
        let is_page = matches!(waits_for, WaitsFor::Page(_));
        let is_any = |it: &WaitsFor| is_page && *it == WaitsFor::AnyPage;
        let all = places.used.iter();
        let waiting = all.filter(|(it, _)| *it == waits_for || is_any(it));
        let woken = waiting.map(|(_, place)| self.all[usize::from(*place)].wake());
        woken.count() > 0
    }

    /// Wakes all threads.
    pub fn wake_all(&self) {
        let places = self.places();
        let waiting = places.used.iter();
        waiting.for_each(|(_, place)| self.all[usize::from(*place)].wake());
    }
}

impl Waits<'_> {
    pub fn waiter(&self) -> &PartsWaiter {
        &self.of.all[usize::from(self.place)]
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut places = self.of.places();
        places.used.retain(|(_, place)| *place != self.place);
        places.free.push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_waiters_and_each_is_used_again() {
        let waiters = Waiters::new();
        let begin = |page: usize| waiters.begin(WaitsFor::Page(page as u64));
        let mut all: Vec<_> = (0..MOST_WAITERS).map(|page| begin(page).unwrap()).collect();
        assert!(begin(0).is_none());
        let places: std::collections::BTreeSet<u16> = all.iter().map(|it| it.place).collect();
        assert_eq!(places.len(), MOST_WAITERS);
        let last = all.pop().map(|last| last.place);
        assert_eq!(begin(0).map(|it| it.place), last);
    }
}
