//! Which protocol keeps an object consistent: chosen where it is allocated, and changed between
//! phases.

use std::panic::Location;

use dhole_heap::{Name, Names, Own, Ref, Refs, Rows, Scalar, Share};
use dhole_model::{CallSite, Coherence, OidRange};
use dhole_protocol::{Event, Unread};

use crate::error::{Error, Result};
use crate::worker::Worker;

/// A worker that allocates under a protocol of its own: see [`Worker::under`].
pub struct Under<'w, 'id> {
    worker: &'w mut Worker<'id>,
    coherence: Coherence,
}

impl<'id> Worker<'id> {
    /// Allocates under this protocol, whatever the run's default is:
    /// `w.under(Coherence::Home).alloc(value)`. Under [`Coherence::Home`] this node becomes the
    /// objects' home.
    pub fn under(&mut self, coherence: Coherence) -> Under<'_, 'id> {
        Under {
            worker: self,
            coherence,
        }
    }

    /// From here on these objects are kept consistent by another protocol. Every node calls it at
    /// the same point with the same objects and protocol; it is a barrier. `what` names one
    /// object, or objects that were allocated together. What changes to [`Coherence::Home`] is at
    /// home where it was written last, or, never written, where it was allocated.
    ///
    /// # Errors
    /// [`AccessError::Foreign`](crate::AccessError) for a reference of another cluster; an error
    /// of the program when `what` names objects that do not follow on each other, or an array;
    /// [`SyncError::Deadlock`](crate::SyncError), on every node, with what each of them switches
    /// and where, when they do not agree; otherwise as [`barrier`](Worker::barrier).
    #[track_caller]
    pub fn switch(&mut self, what: impl Names, to: Coherence) -> Result<()> {
        let at = Location::caller();
        let site = CallSite::from(at);
        let (mut first, mut ranges, mut arrays) = (None, Vec::new(), false);
        what.each(at, &mut |name| match name {
            Name::Object(miss) => {
                OidRange::push(&mut ranges, miss.oid);
                first.get_or_insert(miss);
            }
            Name::Elements(_) => arrays = true,
        });
        if arrays {
            return Err(Error::program(format!(
                "switching to {to} at {site}: an array is named, and arrays are always kept lazily"
            )));
        }
        let (Some(first), [range]) = (first, &ranges[..]) else {
            let found = ranges.len();
            return Err(Error::program(format!(
                "switching to {to} at {site}: {found} ranges of objects are named, and not one"
            )));
        };
        let (range, unread) = (*range, self.locate(&first)?);
        let Unread {
            creator, zero_ok, ..
        } = unread;
        let called = self.exclusive(|link, call| {
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
            Err(failure) => Err(self.link.sync_error(failure, site).into()),
        }
    }
}

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

    /// As [`Worker::alloc_rows`]. Rows that have a home are stored there from the start.
    #[track_caller]
    pub fn alloc_rows<T: Scalar>(&mut self, count: usize, len: usize) -> Rows<T> {
        self.worker.alloc_rows_under(self.coherence, count, len)
    }
}
