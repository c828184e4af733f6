//! Walks in passes: each item is run on what is here, and what is missed is fetched for many items
//! at once.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dhole_heap::{Absent, Access, ArrayMiss, Miss, Share, Token};
use dhole_model::{Elements, NodeId, Oid};
use rustc_hash::FxHashMap;

use crate::access::each_element_once;
use crate::error::{AccessError, Result};
use crate::worker::Worker;

/// Of how many items that follow on each other one is run first: neighbours need the same, so the
/// others find most of it here.
const STRIDES: [usize; 3] = [64, 8, 1];

/// What a pass notes at most. The items behind are run in the next one.
const MOST_NOTED: usize = 1 << 16;

/// What an item of [`Worker::in_passes`] reads with, as with the worker: `r.get(pass)`,
/// `r.try_get(pass)`, `array.slice(pass, 3..8)`.
///
/// What is missing here is noted. `get` then ends the item, which is run again later. `try_get`
/// returns [`Absent`], so that the item can go on and name what else it misses.
pub struct Pass<'p, 'id> {
    worker: &'p mut Worker<'id>,
    /// A miss takes no round trip.
    at_once: bool,
    /// Which pass this is.
    pass: Cell<usize>,
    noted: RefCell<Noted>,
}

#[derive(Default)]
struct Noted {
    objects: Vec<Miss>,
    elements: Vec<ArrayMiss>,
    /// In which pass each was noted. What is missed again in a later one is fetched at once, so
    /// that an item comes further whatever else happens to what it reads.
    objects_in: FxHashMap<Oid, usize>,
    elements_in: FxHashMap<Elements, usize>,
    /// The item that runs has missed something.
    misses: bool,
    /// Why something could not be had.
    failed: Option<AccessError>,
}

impl Noted {
    fn is_full(&self) -> bool {
        self.objects.len() + self.elements.len() >= MOST_NOTED
    }
}

/// The payload with which an item is unwound that has missed something.
struct Missed;

impl<'id> Worker<'id> {
    /// Runs `f` on each of `items`, which read shared objects, and returns what it gives, in the
    /// order of the items. It is for walks through trees and graphs that other nodes wrote, where
    /// a miss takes a round trip: what many items miss is fetched in one.
    ///
    /// An item that misses something is put aside; the others go on with what is here. Then all
    /// that was missed is fetched, each node asked once, and the items that were put aside run
    /// again. One item in 64 runs first, then one in 8, then all, for neighbours mostly need the
    /// same. What is missed twice is fetched at once, so each pass comes further. Between items
    /// the worker [polls](Worker::poll). Where a miss takes no round trip (threads, processes of
    /// one machine that see each other's memory, one node) nothing is put aside, and the items run
    /// in their order.
    ///
    /// So `f` may run several times for an item, and changes nothing but what it returns.
    ///
    /// ```
    /// # use dhole_heap::{Access, Ref};
    /// # use dhole_node::{Result, Worker};
    /// type List = [Option<Ref<u64>>; 2];
    ///
    /// /// Works with a worker and in a pass.
    /// fn sum<'id>(w: &impl Access<'id>, list: Ref<List>) -> u64 {
    ///     let numbers = list.get(w).iter().flatten();
    ///     numbers.map(|number| *number.get(w)).sum()
    /// }
    ///
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let numbers = w.alloc_range(2, |i| i as u64 + 3);
    /// let lists = w.alloc_range(2, |i| [Some(numbers.at(0)), numbers.get(i)]);
    /// let items: Vec<Ref<List>> = lists.iter().collect();
    /// let sums = w.in_passes(&items, |pass, list| Ok(sum(pass, *list)))?;
    /// assert_eq!(sums, [6, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The first error of `f`, of an item that has missed nothing; why an object cannot be had, as
    /// [`Ref::try_get`](dhole_heap::Ref::try_get) says; [`poll`](Worker::poll)'s. Then the values
    /// of other items are dropped.
    #[track_caller]
    pub fn in_passes<I, T>(
        &mut self,
        items: &[I],
        mut f: impl FnMut(&Pass<'_, 'id>, &I) -> Result<T>,
    ) -> Result<Vec<T>> {
        let at_once = self.misses_take_no_round_trip();
        let strides = match at_once {
            true => &STRIDES[STRIDES.len() - 1..],
            false => &STRIDES[..],
        };
        let mut values: Vec<Option<T>> = items.iter().map(|_| None).collect();
        let pass = Pass {
            worker: self,
            at_once,
            pass: Cell::default(),
            noted: RefCell::default(),
        };
        for stride in strides {
            let is_due = |at: &usize| values[*at].is_none();
            let mut due: Vec<usize> = (0..items.len()).step_by(*stride).filter(is_due).collect();
            while !due.is_empty() {
                let mut aside = Vec::new();
                for (place, at) in due.iter().enumerate() {
                    if pass.noted.borrow().is_full() {
                        aside.extend(&due[place..]);
                        break;
                    }
                    values[*at] = pass.item(|| f(&pass, &items[*at]))?;
                    if values[*at].is_none() {
                        aside.push(*at);
                    }
                    pass.worker.poll()?;
                }
                due = aside;
                pass.fetch()?;
            }
        }
        Ok(values.into_iter().flatten().collect())
    }

    /// Whether a miss takes no round trip, whoever wrote what is missed; or takes a page's, which
    /// brings what no item asks for.
    fn misses_take_no_round_trip(&mut self) -> bool {
        let me = self.node();
        let mut others = (0..self.nodes()).map(NodeId::at).filter(|node| *node != me);
        let Worker { token, link } = self;
        let is_near = link.node.monitor.exclusive_call(token, |call| {
            call.split().0.publishes() && !link.reads_are_round_trips(call)
        });
        link.coherence.properties().keeps_pages()
            || others.all(|node| is_near && link.machine.sees(me, node))
    }
}

impl<'id> Pass<'_, 'id> {
    /// What an item gives, unless it misses something.
    fn item<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        self.noted.borrow_mut().misses = false;
        // An item that is put aside runs again from its beginning.
        let ran = catch_unwind(AssertUnwindSafe(run));
        let mut noted = self.noted.borrow_mut();
        if let Some(failed) = noted.failed.take() {
            return Err(failed.into());
        }
        match ran {
            Err(payload) if !payload.is::<Missed>() => resume_unwind(payload),
            Ok(value) if !noted.misses => value.map(Some),
            _ => Ok(None),
        }
    }

    /// Fetches what was noted, in one round, and begins the next pass.
    fn fetch(&self) -> Result<(), AccessError> {
        let mut noted = self.noted.borrow_mut();
        self.pass.set(self.pass.get() + 1);
        self.worker.bring(&std::mem::take(&mut noted.objects))?;
        let elements = each_element_once(std::mem::take(&mut noted.elements));
        self.worker.bring_elements(&elements, false)
    }

    /// As [`Worker::work`].
    #[inline]
    pub fn work(&self, units: u64) {
        self.worker.work(units);
    }

    /// Whether an object is here now.
    fn is_found(&self, miss: &Miss) -> Result<bool, AccessError> {
        let w = &*self.worker;
        match self.is_fetched_at_once(self.noted.borrow().objects_in.get(&miss.oid)) {
            true => w.read_miss(miss).map(|()| true),
            false => Ok(w.token.note_read(miss)),
        }
    }

    fn are_found(&self, miss: &ArrayMiss) -> Result<bool, AccessError> {
        match self.is_fetched_at_once(self.noted.borrow().elements_in.get(&miss.elements)) {
            true => self.worker.read_elements(miss).map(|()| true),
            false => Ok(false),
        }
    }

    /// Whether what is missed is fetched at once that was noted in this pass: where that takes no
    /// round trip, and in a later pass.
    fn is_fetched_at_once(&self, noted_in: Option<&usize>) -> bool {
        self.at_once || noted_in.is_some_and(|pass| *pass < self.pass.get())
    }

    /// What an access came to; where nothing was found, `note` notes what is missing.
    fn came(
        &self,
        found: Result<bool, AccessError>,
        note: impl FnOnce(&mut Noted),
        absent: impl FnOnce() -> Absent,
    ) -> Result<(), Absent> {
        let mut noted = self.noted.borrow_mut();
        match found {
            Ok(true) => return Ok(()),
            Ok(false) => note(&mut noted),
            Err(error) => noted.failed = Some(error),
        }
        noted.misses = true;
        Err(absent())
    }
}

impl<'id> Access<'id> for Pass<'_, 'id> {
    type Error = Absent;

    #[inline]
    fn token(&self) -> &Token<'id> {
        self.worker.token()
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        self.worker.token_mut()
    }

    fn read_miss(&self, miss: &Miss) -> Result<(), Absent> {
        let note = |noted: &mut Noted| {
            if noted.objects_in.insert(miss.oid, self.pass.get()).is_none() {
                noted.objects.push(miss.clone());
            }
        };
        self.came(self.is_found(miss), note, || miss.into())
    }

    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), Absent> {
        let note = |noted: &mut Noted| {
            if noted
                .elements_in
                .insert(miss.elements, self.pass.get())
                .is_none()
            {
                noted.elements.push(miss.clone());
            }
        };
        self.came(self.are_found(miss), note, || miss.into())
    }

    // No program has a pass mutably, so none writes through it.
    fn write_miss(&mut self, miss: &Miss) -> Result<(), Absent> {
        self.read_miss(miss)
    }

    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), Absent> {
        self.read_elements(miss)
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        _values: &[T],
    ) -> Result<(), Absent> {
        self.read_elements(miss)
    }

    fn fail(&self, _error: Absent) -> ! {
        resume_unwind(Box::new(Missed))
    }
}
