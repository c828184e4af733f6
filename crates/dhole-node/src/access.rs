//! From a miss down to the protocol, and back with the object.

use std::panic::Location;

use dhole_heap::{
    Access, AllocError, ArrayMiss, BindError, Borrow, BorrowError, ForeignKind, HeapMut, Miss,
    MonitorCall, Name, Names, Own, Readers, Ref, Refs, Rows, Scalar, Share, Token, TypeRef,
};
use dhole_model::{Coherence, Elements, NodeId, Oid, OidRange};
use dhole_protocol::{Event, Freed, Protocol, ProtocolError, Unread};
use rustc_hash::FxHashSet;

use crate::ended::Ended;
use crate::error::{AccessError, Error};
use crate::node::State;
use crate::waits::Awaited;
use crate::worker::{Failure, Link, Worker};

/// A shared object and the worker with which to go on from it: `r.at(w)`.
pub type Cursor<'w, 'id, T> = dhole_heap::ObjectCursor<'w, Worker<'id>, T>;

impl<'id> Access<'id> for Worker<'id> {
    type Error = AccessError;

    fn token(&self) -> &Token<'id> {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        &mut self.token
    }

    fn read_miss(&self, miss: &Miss) -> Result<(), AccessError> {
        if self.is_paged() {
            return self.read_on_pages(miss);
        }
        if self.token.note_read(miss) {
            return Ok(());
        }
        let unread = self.locate(miss)?;
        let called = self.shared(miss.site, |link, call| match bind(call, miss, unread) {
            Err(clash) => Ok(Err(clash)),
            Ok(unread) => link.miss(call, miss, unread, false).map(Ok),
        });
        self.accessed(miss, called)
    }

    fn write_miss(&mut self, miss: &Miss) -> Result<(), AccessError> {
        if self.is_paged() {
            return self.write_on_pages(miss);
        }
        // What is written without being read first was of use too.
        self.token.note_read(miss);
        if self.token.note_write(miss) {
            return Ok(());
        }
        let unread = self.locate(miss)?;
        let (oid, site) = (miss.oid, miss.call_site());
        let called = self.exclusive(site, |link, call| {
            call.split().1.faulted = false;
            if !call.split().0.is_present(oid) {
                let unread = match bind(call, miss, unread) {
                    Ok(unread) => unread,
                    Err(clash) => return Ok(Err(clash)),
                };
                link.miss(call, miss, unread, true)?;
            }
            link.make_present_writable(call, miss).map(Ok)
        });
        self.accessed(miss, called)
    }

    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), AccessError> {
        self.bring_elements(std::slice::from_ref(miss), true)
    }

    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), AccessError> {
        self.bring_elements_to_write(miss)
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        values: &[T],
    ) -> Result<(), AccessError> {
        self.overwrite(std::slice::from_ref(miss), values)
    }

    fn read_all_elements(&self, misses: &[ArrayMiss]) -> Result<(), AccessError> {
        self.bring_elements(misses, false)
    }

    fn overwrite_all_elements<T: Share + Copy>(
        &mut self,
        misses: &[ArrayMiss],
        values: &[T],
    ) -> Result<(), AccessError> {
        self.overwrite(misses, values)
    }

    fn overwrite_objects(&mut self, misses: &[Miss], values: &[u8]) -> Result<(), AccessError> {
        self.put(misses, values)
    }

    fn fail(&self, error: AccessError) -> ! {
        std::panic::resume_unwind(Box::new(Error::from(error)))
    }
}

/// What was accessed, for an error.
#[derive(Clone, Copy)]
pub(crate) struct Accessed {
    pub oid: Oid,
    ty: TypeRef,
    site: &'static Location<'static>,
}

impl From<&Miss> for Accessed {
    fn from(miss: &Miss) -> Accessed {
        let (oid, ty, site) = (miss.oid, miss.ty, miss.site);
        Accessed { oid, ty, site }
    }
}

impl From<&ArrayMiss> for Accessed {
    fn from(miss: &ArrayMiss) -> Accessed {
        let (oid, ty, site) = (miss.elements.array, miss.ty, miss.site);
        Accessed { oid, ty, site }
    }
}

/// The most bytes of a value that is passed over a stack: half of a node's, for the caller holds it
/// as well as the call.
const MOST_PASSED: usize = 4 << 20;

/// Refuses types whose values no node's stack holds, when the program is compiled: when it runs,
/// the stack overflows before a call begins.
const fn passes_the_stack<T>() {
    const {
        assert!(
            size_of::<T>() <= MOST_PASSED,
            "a value of more than 4 MiB is too large for the stack of a node: make it in place \
             with `alloc_with` (or `alloc_range_with`), or give it in a box to `alloc_boxed`"
        );
    }
}

impl<'id> Worker<'id> {
    /// The object, and the node that allocated it.
    pub(crate) fn locate(&self, miss: &Miss) -> Result<Unread, AccessError> {
        let Miss { oid, row, .. } = *miss;
        Ok(Unread {
            oid,
            creator: self.creator(miss.into())?,
            zero_ok: row,
            coherence: Coherence::default(),
        })
    }

    /// The node that allocated an object or array.
    pub(crate) fn creator(&self, accessed: Accessed) -> Result<NodeId, AccessError> {
        let found = self.link.node.cluster.creator(accessed.oid);
        found.map_err(|cause| match cause.kind {
            ForeignKind::Freed => self.freed(&accessed, Freed::known_only(accessed.oid)),
            _ => AccessError::Foreign {
                oid: accessed.oid,
                type_name: accessed.ty.info().name,
                node: self.node(),
                site: accessed.site.into(),
                cause,
            },
        })
    }

    /// Makes objects and elements of arrays readable here: each node that has some of the objects
    /// is asked once, all at the same time, and then so is each that has some of the elements.
    /// `names` are references, ranges, rows, arrays and their ranges, or slices and tuples of
    /// these. What is here already costs a look at its handle.
    ///
    /// # Errors
    /// Why one of them cannot be had, as [`Ref::try_get`] says; then others may be here.
    #[track_caller]
    pub fn prefetch(&self, names: impl Names) -> Result<(), AccessError> {
        let (mut objects, mut elements) = (Vec::new(), Vec::new());
        names.each(Location::caller(), &mut |name| match name {
            Name::Object(miss) if self.token.is_readable(&miss) => {}
            Name::Object(miss) => objects.push(miss),
            Name::Elements(miss) if self.token.are_readable(&miss) => {}
            Name::Elements(miss) => elements.push(miss),
        });
        self.bring(&each_object_once(objects))?;
        self.bring_elements(&each_element_once(elements), false)
    }

    /// Makes objects readable here, in one round.
    pub(crate) fn bring(&self, absent: &[Miss]) -> Result<(), AccessError> {
        let Some(first) = absent.first() else {
            return Ok(());
        };
        if self.is_paged() {
            return absent.iter().try_for_each(|miss| self.read_on_pages(miss));
        }
        let unread = absent.iter().map(|miss| self.locate(miss));
        let mut unread = unread.collect::<Result<Vec<_>, _>>()?;
        let mut clash = None;
        let called = self.shared(first.site, |link, call| {
            for (miss, unread) in absent.iter().zip(&mut unread) {
                match bind(call, miss, *unread) {
                    Ok(bound) => {
                        *unread = bound;
                        // Where there is no room, storing the object will say so.
                        let _has_place = call.split().0.make_room(bound.oid).is_ok();
                    }
                    Err(cause) => {
                        clash = Some(miss);
                        return Ok(Err(cause));
                    }
                }
            }
            // One message for many is less than a round trip for each.
            let many = absent.len() > 1 && link.reads_are_round_trips(call);
            let mut left = Vec::with_capacity(absent.len());
            for (miss, unread) in absent.iter().zip(&unread) {
                if many || !link.read_there(call, miss, unread)? {
                    left.push(*unread);
                }
            }
            if left.is_empty() {
                return Ok(Ok(()));
            }
            link.awaits(first);
            call.split().1.graphs.misses_several();
            link.bring(call, &left).map(Ok)
        });
        self.accessed(clash.unwrap_or(first), called)
    }

    fn freed(&self, accessed: &Accessed, Freed { oid, by, at }: Freed) -> AccessError {
        let known = self.link.node.cluster.who_freed(oid);
        let by = by.or(known.map(|(node, _)| node));
        let same = known.filter(|(node, _)| by == Some(*node));
        let at = at.or(same.map(|(_, site)| site));
        AccessError::Freed {
            oid,
            type_name: accessed.ty.info().name,
            node: self.node(),
            site: accessed.site.into(),
            by,
            at,
        }
    }

    /// What an access came to, with the place where it was made.
    pub(crate) fn accessed(
        &self,
        accessed: impl Into<Accessed>,
        called: Result<Result<(), BindError>, Box<Failure>>,
    ) -> Result<(), AccessError> {
        let accessed = accessed.into();
        let Accessed { oid, site, .. } = accessed;
        let (site, node) = (site.into(), self.node());
        let failure = match called {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(BindError::Foreign(cause))) if cause.kind == ForeignKind::Freed => {
                return Err(self.freed(&accessed, Freed::known_only(oid)));
            }
            Ok(Err(cause)) => {
                return Err(AccessError::Type {
                    oid,
                    node,
                    site,
                    cause,
                });
            }
            Err(failure) => failure,
        };
        Err(match *failure {
            Failure::Refused(ProtocolError::Freed(freed)) => self.freed(&accessed, freed),
            Failure::Refused(cause) | Failure::Ended(Ended::Broken(cause)) => {
                AccessError::Protocol {
                    oid,
                    node,
                    site,
                    cause,
                }
            }
            Failure::Memory(cause) => AccessError::Memory {
                oid,
                node,
                site,
                cause,
            },
            Failure::Ended(Ended::Deadlock(cycle)) => AccessError::Deadlock { oid, node, cycle },
            Failure::Ended(Ended::Race(race)) => AccessError::Race { oid, node, race },
            Failure::Ended(Ended::Out(why)) => AccessError::Out {
                oid,
                node,
                site,
                why,
            },
            Failure::Ended(Ended::Elsewhere(ended)) => AccessError::Ended {
                oid,
                node,
                site,
                ended,
            },
        })
    }

    /// Borrows several objects at once: `w.borrow((Write(a), Read(b)))` gives
    /// `(&mut A, &B)`, of up to eight [`Ref`]s, rows and ranges of arrays. It first answers
    /// requests of processes of the same machine, which costs a poll of the port. So a loop that
    /// borrows row by row answers other nodes soon, and no thread is woken for that.
    ///
    /// # Errors
    /// [`BorrowError::Overlap`] when an object or element that is to be written is named twice;
    /// [`BorrowError::Access`] when one cannot be had.
    #[inline(always)]
    #[track_caller]
    pub fn borrow<'w, B: Borrow>(
        &'w mut self,
        objects: B,
    ) -> Result<B::Borrowed<'w>, BorrowError<AccessError>> {
        self.looks();
        objects.borrow(self, Location::caller())
    }

    /// Lends what is present on this node to `f`, for scoped threads to read. They fetch nothing,
    /// so read what they need before; `w` itself is not used within `f`. In a simulation the
    /// threads run for real while the other nodes stand still, and the time until `f` returns is
    /// the node's computing time.
    ///
    /// ```
    /// # use dhole_heap::Absent;
    /// # use dhole_node::{Result, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let numbers = w.alloc_range(4, |i| i as u64);
    /// let sum = w.readers(|present| {
    ///     std::thread::scope(|scope| {
    ///         let sum = |half| numbers.slice(half).iter().map(|r| present.get(r).copied()).sum();
    ///         let upper = scope.spawn(move || sum(2..4));
    ///         let lower: Result<u64, Absent> = sum(0..2);
    ///         Ok::<u64, Absent>(lower? + upper.join().expect("it does not panic")?)
    ///     })
    /// })?;
    /// assert_eq!(sum, 6);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn readers<R>(&mut self, f: impl for<'r> FnOnce(Readers<'r>) -> R) -> R {
        dhole_heap::readers(self, f)
    }

    /// Allocates an object on this node. The value passes the stack. The compiler refuses one of
    /// more than 4 MiB, half of a node's stack: that is made in place by
    /// [`alloc_with`](Worker::alloc_with), or given in a box to
    /// [`alloc_boxed`](Worker::alloc_boxed). In a simulation a stack has 1 MiB.
    ///
    /// An allocation that fails unwinds to the node's boundary, and `run` returns its
    /// [`AllocError`]: there are no ids or no store left.
    #[track_caller]
    pub fn alloc<T: Share>(&mut self, value: T) -> Ref<T> {
        self.alloc_under(self.link.coherence, value)
    }

    #[track_caller]
    pub(crate) fn alloc_under<T: Share>(&mut self, coherence: Coherence, value: T) -> Ref<T> {
        passes_the_stack::<T>();
        let site = Location::caller();
        let value = match self.token.bear(coherence, site, value) {
            Ok(r) => return r,
            Err(value) => value,
        };
        self.allocate::<T, _>([1, 1, 1], coherence, site, |heap, protocol| {
            let r = heap.alloc(value)?;
            if protocol.keeps_young(coherence) {
                heap.set_aside::<T>(site);
            }
            let range = OidRange::one(r.oid());
            Ok((r, Some(Event::Allocated { range, coherence })))
        })
    }

    /// Allocates an object on this node that belongs to the one in which the result is stored,
    /// and travels with it. Fails as [`alloc`](Worker::alloc).
    pub fn alloc_own<T: Share>(&mut self, value: T) -> Own<T> {
        self.alloc(value).into()
    }

    /// Allocates `count` objects on this node, with consecutive ids; `init` makes the value of
    /// each from its place, and must not wait for other nodes: this node answers none of them
    /// meanwhile. A simulation measures what `init` computes as any computation.
    /// Each is an object of its own. Fails as [`alloc`](Worker::alloc).
    #[track_caller]
    pub fn alloc_range<T: Share>(&mut self, count: usize, init: impl FnMut(usize) -> T) -> Refs<T> {
        self.alloc_range_under(self.link.coherence, count, init)
    }

    #[track_caller]
    pub(crate) fn alloc_range_under<T: Share>(
        &mut self,
        coherence: Coherence,
        count: usize,
        mut init: impl FnMut(usize) -> T,
    ) -> Refs<T> {
        passes_the_stack::<T>();
        let (site, machine, node) = (Location::caller(), self.link.machine, self.node());
        self.allocate::<T, _>([count, count, count], coherence, site, |heap, _| {
            machine.computes(node, true);
            let range = heap.alloc_range(count as u64, |i| init(i as usize));
            machine.computes(node, false);
            let range = range?;
            let event = |range| Event::Allocated { range, coherence };
            Ok((range, range.oids().map(event)))
        })
    }

    /// Allocates `count` rows of `len` scalars each. Each row is one object. It is all zeros
    /// until somebody writes it, and stored where it is touched. Fails as
    /// [`alloc`](Worker::alloc).
    #[track_caller]
    pub fn alloc_rows<T: Scalar>(&mut self, count: usize, len: usize) -> Rows<T> {
        self.alloc_rows_under(self.link.coherence, count, len)
    }

    #[track_caller]
    pub(crate) fn alloc_rows_under<T: Scalar>(
        &mut self,
        coherence: Coherence,
        count: usize,
        len: usize,
    ) -> Rows<T> {
        let site = Location::caller();
        self.allocate::<T, _>([count, 0, count], coherence, site, |heap, _| {
            let rows = heap.alloc_rows(count as u64, len as u64)?;
            let at_home = rows.oids().filter(|_| coherence.properties().has_home);
            if let Some(all) = at_home {
                heap.store_rows::<T>(all)?;
            }
            let event = |range| Event::Allocated { range, coherence };
            Ok((rows, at_home.map(event)))
        })
    }

    /// Makes `count` objects, of which `stored` values are stored here from the start. They need so
    /// many `ids`. The protocol is told of them, or has them written like any others on their
    /// pages.
    pub(crate) fn allocate<T: Share, R>(
        &mut self,
        [count, stored, ids]: [usize; 3],
        coherence: Coherence,
        site: &'static Location<'static>,
        make: impl FnOnce(&mut HeapMut<'_>, &Protocol) -> Result<(R, Option<Event>), AllocError>,
    ) -> R {
        let name = std::any::type_name::<T>();
        if let Err(lacks) = self.may_keep_objects(coherence, site.into()) {
            std::panic::resume_unwind(Box::new(Error::from(lacks)));
        }
        let paged = self.is_paged();
        if paged != coherence.properties().keeps_pages() {
            let mixed = Error::from(self.mixed(coherence, site.into()));
            std::panic::resume_unwind(Box::new(mixed));
        }
        let called = self.exclusive(site, |link, call| {
            // Between processes ids may have to be asked for.
            while let Some(ids) = call.split().0.ids_wanted(ids as u64) {
                link.and_wait(call, Event::AskIds { ids })?;
            }
            if paged
                && stored > 0
                && let Err(error) = link.bring_next_pages::<T>(call, stored as u64)?
            {
                return Ok(Err(error));
            }
            let (heap, state) = call.split();
            let mut heap = heap.for_site(site);
            let (made, stored) = match make(&mut heap.under(coherence), &state.protocol) {
                Ok(made) => made,
                Err(error) => return Ok(Err(error)),
            };
            call.split().1.counting.of_type(name).allocated += count as u64;
            link.local(call, stored.filter(|_| !paged))?;
            link.within_memory(call).map(|()| Ok(made))
        });
        let error = match called {
            Ok(Ok(made)) => return made,
            Ok(Err(error)) => Error::from(error),
            Err(failure) => Error::from(self.link.sync_error(*failure, site.into())),
        };
        std::panic::resume_unwind(Box::new(error))
    }
}

impl Link<'_> {
    /// Makes a copy that is here writable.
    pub(crate) fn make_present_writable(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &Miss,
    ) -> Result<(), Box<Failure>> {
        let (oid, site) = (miss.oid, miss.call_site());
        if call.split().0.is_behind_gate(oid) {
            self.acts(call, |state, step| {
                state.open_gate(oid, step);
                Ok(())
            })?;
            self.send(call);
            if call.split().0.is_writable(oid) {
                return Ok(());
            }
        }
        let (mut heap, state) = call.split();
        let event = match heap.see_bytes_of(oid) {
            Ok(0) => Event::Touch { oid },
            _ => {
                state.look_beside_written(oid, &mut heap);
                Event::WriteFault { oid, site }
            }
        };
        if call.split().1.protocol.waits_to_write(oid) {
            self.awaits(Awaited::to_write(miss));
            self.and_wait(call, event)?;
            let heap = call.split().0;
            return match heap.is_writable(oid) {
                true => Ok(()),
                false => {
                    let bound = heap.binding(oid).map(|bound| bound.coherence);
                    Err(not_ready(oid, bound.unwrap_or_default(), true).into())
                }
            };
        }
        self.local(call, Some(event))
    }

    /// Whether a one-sided read takes a round trip of a network, as in a simulation and through
    /// windows.
    pub(crate) fn reads_are_round_trips(&self, call: &mut MonitorCall<'_, State>) -> bool {
        self.machine.charges_reads() || call.split().0.reads_windows()
    }

    /// Waits for an object and what is fetched with it.
    fn miss(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &Miss,
        missed: Unread,
        to_write: bool,
    ) -> Result<(), Box<Failure>> {
        let ahead = self.dense_around(call, miss, &missed);
        // Where a one-sided read takes a round trip too, a message is better if more comes with it.
        let far = self.reads_are_round_trips(call);
        let charged = self.machine.charges_reads();
        let (mut heap, state) = call.split();
        let by_message = charged && state.follow_from(miss, &mut heap) || far && ahead.is_some();
        if !by_message && self.read_there(call, miss, &missed)? {
            return match ahead {
                Some(ahead) => self.read_ahead_there(call, (miss, &missed), ahead),
                None => Ok(()),
            };
        }
        self.awaits(Awaited::object(miss, to_write));
        let (mut heap, state) = call.split();
        state.look_beside(missed.oid, &mut heap);
        if !charged {
            state.follow_from(miss, &mut heap);
        }
        if let Some(ahead) = ahead {
            state.protocol.reads_ahead(ahead);
        }
        self.bring(call, &[missed])?;
        call.split().1.graphs.ends_ahead();
        let is_here = call.split().0.is_present(missed.oid);
        if !missed.coherence.properties().has_versions() && !is_here {
            return Err(not_ready(missed.oid, missed.coherence, false).into());
        }
        Ok(())
    }
}

/// The mistake of a protocol that says that an access is ready which cannot be made.
pub(crate) fn not_ready(oid: Oid, coherence: Coherence, writes: bool) -> ProtocolError {
    let what = match writes {
        true => "write it is ready, and has not made it writable (Context::make_writable)",
        false => "read it is ready, and has installed no copy (Context::install)",
    };
    ProtocolError::Member {
        protocol: coherence.name(),
        what: format!("of {oid} it says that the access to {what}"),
    }
}

/// Tests that an object is what the access takes it for, and looks its protocol up.
pub(crate) fn bind(
    call: &mut MonitorCall<'_, State>,
    miss: &Miss,
    unread: Unread,
) -> Result<Unread, BindError> {
    let mut heap = call.split().0;
    heap.bind(miss)?;
    let bound = heap.binding(miss.oid);
    let coherence = bound.map_or(unread.coherence, |bound| bound.coherence);
    Ok(Unread {
        coherence,
        ..unread
    })
}

/// The same objects in their order, none of them named twice.
fn each_object_once(mut names: Vec<Miss>) -> Vec<Miss> {
    let mut sorted: Vec<Oid> = names.iter().map(|miss| miss.oid).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|two| two[0] == two[1]) {
        let mut seen = FxHashSet::default();
        names.retain(|miss| seen.insert(miss.oid));
    }
    names
}

/// The same elements, none of them named twice. Names that do not meet stay in their order.
pub(crate) fn each_element_once(names: Vec<ArrayMiss>) -> Vec<ArrayMiss> {
    let mut sorted = names.clone();
    sorted.sort_by_key(|miss| miss.elements);
    let meet = |two: &[ArrayMiss]| two[0].elements.meets(two[1].elements);
    if !sorted.windows(2).any(meet) {
        return names;
    }
    let mut each: Vec<ArrayMiss> = Vec::with_capacity(sorted.len());
    for mut miss in sorted {
        let its = miss.elements;
        if let Some(before) = each.last().map(|last| last.elements)
            && before.array == its.array
        {
            let first = its.first.max(before.range().end);
            miss.elements = Elements::new(its.array, first..its.range().end);
            miss.within = miss.elements;
        }
        if miss.elements.count > 0 {
            each.push(miss);
        }
    }
    each
}
