//! Walking graphs of shared objects.

use std::fmt;
use std::ops::Deref;
use std::panic::Location;

use crate::access::{read, try_read};
use crate::{Access, Own, Ref, Share};

/// A shared object, and the worker with which to go on from it: `r.at(w)`. It is the object for
/// all that reads it, may be copied, and costs no more than [`get`](Ref::get). Like every
/// reference into the space it ends before anything that takes the worker mutably.
///
/// ```
/// # use dhole_heap::{Access, ObjectCursor, Ref, Share};
/// #[derive(Share)]
/// # #[share(crate = "dhole_heap")]
/// struct Item {
///     value: u64,
///     next: Option<Ref<Item>>,
/// }
///
/// fn sum<'id>(list: Ref<Item>, w: &impl Access<'id>) -> u64 {
///     let items = std::iter::successors(Some(list.at(w)), |at| at.follow(|item| item.next));
///     items.map(|item| item.value).sum()
/// }
/// ```
///
/// A cursor does not live over a synchronisation, nor does what it saw:
///
/// ```compile_fail,E0502
/// # use dhole_heap::{Access, Ref};
/// fn late<'id, W: Access<'id>>(r: Ref<u64>, w: &mut W, synchronise: fn(&mut W)) -> u64 {
///     let at = r.at(w);
///     synchronise(w);
///     *at
/// }
/// ```
/// ```compile_fail,E0502
/// # use dhole_heap::{Access, Ref};
/// fn late<'id, W: Access<'id>>(r: Ref<u64>, w: &mut W, synchronise: fn(&mut W)) -> u64 {
///     let seen = r.at(w).get();
///     synchronise(w);
///     *seen
/// }
/// ```
pub struct ObjectCursor<'w, W, T> {
    w: &'w W,
    reference: Ref<T>,
    object: &'w T,
}

impl<T: Share> Ref<T> {
    /// A cursor at the object. Fetches it where this node has no valid copy, and fails as
    /// [`get`](Ref::get).
    #[inline(always)]
    #[track_caller]
    pub fn at<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> ObjectCursor<'w, W, T> {
        let object = read(self, w, Location::caller());
        ObjectCursor {
            w,
            reference: self,
            object,
        }
    }

    /// Like [`at`](Ref::at), but returns the error.
    ///
    /// # Errors
    /// Why the object cannot be had.
    #[inline]
    #[track_caller]
    pub fn try_at<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w W,
    ) -> Result<ObjectCursor<'w, W, T>, W::Error> {
        let object = try_read(self, w, Location::caller())?;
        Ok(ObjectCursor {
            w,
            reference: self,
            object,
        })
    }
}

impl<'w, W, T> ObjectCursor<'w, W, T> {
    /// The object, for as long as the worker is borrowed: longer, perhaps, than the cursor is.
    #[inline(always)]
    pub fn get(self) -> &'w T {
        self.object
    }

    /// The reference that leads here.
    #[inline(always)]
    pub fn reference(self) -> Ref<T> {
        self.reference
    }

    /// A cursor at the object that `field` of this one refers to. Fails as [`get`](Ref::get).
    #[inline(always)]
    #[track_caller]
    pub fn to<'id: 'w, L: Link>(self, field: impl FnOnce(&'w T) -> L) -> ObjectCursor<'w, W, L::To>
    where
        W: Access<'id>,
    {
        field(self.object).reference().at(self.w)
    }

    /// A cursor at the object that `field` of this one refers to, if it does. Fails as
    /// [`get`](Ref::get).
    #[inline(always)]
    #[track_caller]
    pub fn follow<'id: 'w, L: Link>(
        self,
        field: impl FnOnce(&'w T) -> Option<L>,
    ) -> Option<ObjectCursor<'w, W, L::To>>
    where
        W: Access<'id>,
    {
        let link = field(self.object)?;
        Some(link.reference().at(self.w))
    }
}

impl<W, T> Clone for ObjectCursor<'_, W, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, T> Copy for ObjectCursor<'_, W, T> {}

impl<W, T> Deref for ObjectCursor<'_, W, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.object
    }
}

impl<W, T: fmt::Debug> fmt::Debug for ObjectCursor<'_, W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.object, self.reference)
    }
}

/// What a cursor follows: a [`Ref`], or a borrowed [`Own`] (`at.follow(|t| t.left.as_ref())`).
pub trait Link: sealed::Sealed {
    /// What it refers to.
    type To: Share;

    /// The reference.
    fn reference(self) -> Ref<Self::To>;
}

impl<T: Share> Link for Ref<T> {
    type To = T;

    #[inline(always)]
    fn reference(self) -> Ref<T> {
        self
    }
}

impl<T: Share> Link for &Own<T> {
    type To = T;

    #[inline(always)]
    fn reference(self) -> Ref<T> {
        **self
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for &crate::Own<T> {}
    impl<T> Sealed for crate::Ref<T> {}
}
