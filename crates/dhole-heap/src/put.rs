//! Objects written as wholes, without a fetch of what they were.

use std::ops::RangeBounds;
use std::panic::Location;

use dhole_model::{CallSite, Counted, Grouped};
use thiserror::Error;

use crate::access::try_write;
use crate::array::span;
use crate::reference::places;
use crate::value::pack;
use crate::{Access, Miss, Ref, Refs, Share};

/// Why values were not put in the place of several objects.
#[derive(Clone, PartialEq, Error)]
pub enum PutError<E: std::error::Error + 'static> {
    /// There are no such objects.
    #[error("putting objects {} of {} at {site}: there are no such objects",
        span(*start, *end), Grouped(*len))]
    OutOfBounds {
        /// How many objects there are.
        len: u64,
        /// Where the range starts.
        start: u64,
        /// Where it ends.
        end: u64,
        /// Where in the program.
        site: CallSite,
    },
    /// There are more objects than values, or fewer.
    #[error("putting {} at {site}: there are {}: give one for each object",
        Counted(*objects, "object", "objects"), Counted(*values, "value", "values"))]
    Lengths {
        /// How many objects.
        objects: u64,
        /// How many values.
        values: u64,
        /// Where in the program.
        site: CallSite,
    },
    /// One of them cannot be written.
    #[error(transparent)]
    Access(E),
}

impl<E: std::error::Error + 'static> std::fmt::Debug for PutError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        dhole_model::write_error(self, f)
    }
}

impl<T: Share> Ref<T> {
    /// Writes `value` over the object. What the object was before is not fetched.
    ///
    /// The object counts as written in this interval, as after `get_mut`. Under lazy and update a
    /// node sends nothing for that before it synchronises. Under home, a protocol that the program
    /// brings and TreadMarks, and where comparisons find what was written (`--write-detection`),
    /// an object that is not here is fetched first, as by `get_mut`.
    ///
    /// # Errors
    /// Why the object cannot be written.
    #[track_caller]
    pub fn put<'id, W: Access<'id>>(self, w: &mut W, value: T) -> Result<(), W::Error> {
        let site = Location::caller();
        if w.token_mut().mutable(self).is_none() && w.token().shared(self).is_none() {
            let mut bytes = Vec::new();
            pack(&value, &mut bytes);
            w.overwrite_objects(&[Miss::of(self, site)], &bytes)?;
        }
        *try_write(self, w, site)? = value;
        Ok(())
    }
}

impl<T: Share + Copy> Refs<T> {
    /// Writes `values` over the objects `range`, as [`Ref::put`], in one call of the runtime for
    /// those that are not here.
    ///
    /// # Errors
    /// [`PutError`]: there are no such objects, or not as many values, and nothing is written; or
    /// one of them cannot be written.
    #[track_caller]
    pub fn put_all<'id, W: Access<'id>>(
        self,
        w: &mut W,
        range: impl RangeBounds<usize>,
        values: &[T],
    ) -> Result<(), PutError<W::Error>> {
        let (site, len) = (Location::caller(), self.len() as u64);
        let range = places(range, len);
        if range.start > range.end || range.end > len {
            return Err(PutError::OutOfBounds {
                len,
                start: range.start,
                end: range.end,
                site: site.into(),
            });
        }
        let objects = range.end - range.start;
        if objects != values.len() as u64 {
            return Err(PutError::Lengths {
                objects,
                values: values.len() as u64,
                site: site.into(),
            });
        }
        let these = self.slice(range.start as usize..range.end as usize);
        let (mut absent, mut bytes) = (Vec::new(), Vec::new());
        for (r, value) in these.iter().zip(values) {
            if w.token_mut().mutable(r).is_none() && w.token().shared(r).is_none() {
                absent.push(Miss::of(r, site));
                pack(value, &mut bytes);
            }
        }
        let put = w.overwrite_objects(&absent, &bytes);
        put.map_err(PutError::Access)?;
        for (r, value) in these.iter().zip(values) {
            *try_write(r, w, site).map_err(PutError::Access)? = *value;
        }
        Ok(())
    }
}
