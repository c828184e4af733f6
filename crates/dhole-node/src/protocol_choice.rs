//! Which protocol keeps an object consistent: chosen where it is allocated, and changed between
//! phases.

use std::panic::Location;

use dhole_heap::{Array, Array2, Name, Names, Own, Ref, Refs, Rows, Scalar, Share};
use dhole_model::{CallSite, Coherence, OidRange};
use dhole_protocol::{Event, ProtocolError, Unread, keeps_arrays};

use crate::error::{Error, ProtocolLacks, Result};
use crate::worker::{Failure, Worker};

/// A worker that allocates under a chosen protocol; [`Worker::under`] makes it.
pub struct Under<'w, 'id> {
    worker: &'w mut Worker<'id>,
    coherence: Coherence,
}

impl<'id> Worker<'id> {
    /// Chooses the protocol of the next allocation, instead of the run's default:
    /// `w.under(Coherence::Home).alloc(value)`. Under [`Coherence::Home`] this node becomes the
    /// objects' home.
    pub fn under(&mut self, coherence: Coherence) -> Under<'_, 'id> {
        Under {
            worker: self,
            coherence,
        }
    }

    /// Changes the protocol of objects or of an array, and is a barrier. Every node calls it at the
    /// same point with the same objects and protocol. `what` names one object, objects that were
    /// allocated together, or an array. Under [`Coherence::Home`] the home becomes the last writer,
    /// or the allocating node if no node wrote it.
    ///
    /// # Errors
    /// [`AccessError::Foreign`](crate::AccessError) for a reference of another cluster,
    /// [`AccessError::Freed`](crate::AccessError) for what this node knows as freed; an error
    /// of the program when `what` names objects that do not follow on each other, or several
    /// arrays; [`AccessError::PartOfArray`](crate::AccessError) for some elements of one;
    /// [`ProtocolLacks`](crate::ProtocolLacks) where `to` is a protocol that the program brings: in
    /// a run that survives the loss of nodes, and for an array unless it has several writers;
    /// [`SyncError::Deadlock`](crate::SyncError), on every node, with what each of them switches
    /// and where, when they do not agree; otherwise as [`barrier`](Worker::barrier).
    #[track_caller]
    pub fn switch(&mut self, what: impl Names, to: Coherence) -> Result<()> {
        let at = Location::caller();
        let site = CallSite::from(at);
        self.only_the_program("switching", site)?;
        if self.is_paged() || to.properties().keeps_pages() {
            return Err(self.mixed(to, site).into());
        }
        self.may_keep_objects(to, site)?;
        let (mut first, mut ranges, mut arrays) = (None, Vec::new(), Vec::new());
        what.each(at, &mut |name| match name {
            Name::Object(miss) => {
                OidRange::push(&mut ranges, miss.oid);
                first.get_or_insert(miss);
            }
            Name::Elements(miss) => arrays.push(miss),
        });
        if let ([miss], []) = (&arrays[..], &ranges[..]) {
            return self.switch_array(miss, to);
        }
        let (Some(first), [range], []) = (first, &ranges[..], &arrays[..]) else {
            let found = ranges.len() + arrays.len();
            return Err(Error::program(format!(
                "switching to {to} at {site}: {found} ranges of objects and arrays are named, and \
                 not one"
            )));
        };
        let (range, unread) = (*range, self.locate(&first)?);
        let Unread {
            creator, zero_ok, ..
        } = unread;
        let called = self.exclusive(site, |link, call| {
            if let Err(clash) = call.split().0.bind_all(&first, range) {
                return Ok(Err(clash));
            }
            let bound = call.split().0.binding(range.first);
            let allocated = bound.map_or(to, |bound| bound.coherence);
            let event = Event::Switch {
                range,
                creator,
                zero_ok,
                to,
                site,
            };
            link.and_wait(call, event)?;
            call.split().1.counting.all.barriers += 1;
            let event = Event::Switched {
                range,
                creator,
                allocated,
                to,
            };
            link.local(call, Some(event)).map(Ok)
        });
        match called {
            Ok(Ok(())) => Ok(()),
            Ok(clash) => Ok(self.accessed(&first, Ok(clash))?),
            Err(failure) => match *failure {
                Failure::Refused(freed @ ProtocolError::Freed(_)) => {
                    Ok(self.accessed(&first, Err(freed.into()))?)
                }
                failure => Err(self.link.sync_error(failure, site).into()),
            },
        }
    }
}

impl Worker<'_> {
    /// Whether objects can be kept consistent under a protocol.
    pub(crate) fn may_keep_objects(
        &self,
        under: Coherence,
        site: CallSite,
    ) -> Result<(), ProtocolLacks> {
        match !under.properties().has_versions() && self.survives() {
            true => Err(self.lacks("objects that survive the loss of nodes", under, site)),
            false => Ok(()),
        }
    }

    /// Whether arrays can.
    pub(crate) fn may_keep_arrays(
        &self,
        under: Coherence,
        site: CallSite,
    ) -> Result<(), ProtocolLacks> {
        match keeps_arrays(under) {
            true => self.may_keep_objects(under, site),
            false => Err(self.lacks("an array", under, site)),
        }
    }

    /// As above, of an allocation.
    pub(crate) fn must_keep_arrays(&self, under: Coherence, site: CallSite) {
        if let Err(lacks) = self.may_keep_arrays(under, site) {
            std::panic::resume_unwind(Box::new(Error::from(lacks)));
        }
    }

    fn lacks(&self, what: &'static str, protocol: Coherence, site: CallSite) -> ProtocolLacks {
        ProtocolLacks {
            protocol,
            what,
            node: self.node(),
            site,
        }
    }
}

/// Every allocation here fails as its model in [`Worker`]; and with
/// [`MixedProtocols`](crate::MixedProtocols), as [`Error::Mixed`], where the protocol or the run's
/// is TreadMarks and the other one is not; and with [`ProtocolLacks`](crate::ProtocolLacks), as
/// [`Error::Lacks`], for an array under a protocol that the program brings and that has one writer
/// at a time, and for anything under one in a run that survives the loss of nodes.
impl Under<'_, '_> {
    /// As [`Worker::alloc`].
    #[track_caller]
    pub fn alloc<T: Share>(&mut self, value: T) -> Ref<T> {
        self.worker.alloc_under(self.coherence, value)
    }

    /// As [`Worker::alloc_own`]. What has a home is fetched from there alone, and so does not
    /// travel with its owner.
    #[track_caller]
    pub fn alloc_own<T: Share>(&mut self, value: T) -> Own<T> {
        self.alloc(value).into()
    }

    /// As [`Worker::alloc_range`].
    #[track_caller]
    pub fn alloc_range<T: Share>(&mut self, count: usize, init: impl FnMut(usize) -> T) -> Refs<T> {
        self.worker.alloc_range_under(self.coherence, count, init)
    }

    /// As [`Worker::alloc_with`].
    #[track_caller]
    pub fn alloc_with<T: Share>(&mut self, init: impl FnOnce(&mut T)) -> Ref<T> {
        self.worker.alloc_with_under(self.coherence, init)
    }

    /// As [`Worker::alloc_range_with`].
    #[track_caller]
    pub fn alloc_range_with<T: Share>(
        &mut self,
        count: usize,
        init: impl FnMut(usize, &mut T),
    ) -> Refs<T> {
        self.worker
            .alloc_range_with_under(self.coherence, count, init)
    }

    /// As [`Worker::alloc_boxed`].
    #[track_caller]
    pub fn alloc_boxed<T: Share>(&mut self, value: Box<T>) -> Ref<T> {
        self.worker.alloc_boxed_under(self.coherence, value)
    }

    /// As [`Worker::alloc_rows`]. Rows that have a home are stored there from the start.
    #[track_caller]
    pub fn alloc_rows<T: Scalar>(&mut self, count: usize, len: usize) -> Rows<T> {
        self.worker.alloc_rows_under(self.coherence, count, len)
    }

    /// As [`Worker::alloc_array`]. An array that has a home is stored there from the start.
    #[track_caller]
    pub fn alloc_array<T: Scalar>(&mut self, len: usize) -> Array<T> {
        self.worker.alloc_array_under(self.coherence, len)
    }

    /// As [`Worker::alloc_array2`].
    #[track_caller]
    pub fn alloc_array2<T: Scalar>(&mut self, rows: usize, columns: usize) -> Array2<T> {
        self.worker
            .alloc_array2_under(self.coherence, rows, columns)
    }

    /// As [`Worker::alloc_array_with`].
    #[track_caller]
    pub fn alloc_array_with<T: Share>(
        &mut self,
        len: usize,
        init: impl FnMut(usize) -> T,
    ) -> Array<T> {
        self.worker
            .alloc_array_with_under(self.coherence, len, init)
    }
}
