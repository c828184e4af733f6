//! How a reference is followed: one load and one null test, and everything else out of line.

use std::panic::Location;

use dhole_model::{CallSite, Oid};

use crate::{Ref, Row, Scalar, Share, Token, TypeRef};

/// An access that found no handle: which object, taken for what, from where.
#[derive(Clone, Debug)]
pub struct Miss {
    /// The object.
    pub oid: Oid,
    /// The type that the reference takes it for.
    pub ty: TypeRef,
    /// Scalars in the row, or 1.
    pub len: usize,
    /// Whether it is a row, which starts as zeros that nobody needs to send.
    pub zero_ok: bool,
    /// Where the program accessed it.
    pub site: &'static Location<'static>,
}

impl Miss {
    /// An access to `r` from `site`.
    #[inline]
    pub fn of<T: Share>(r: Ref<T>, site: &'static Location<'static>) -> Miss {
        Miss {
            oid: r.oid(),
            ty: TypeRef::of::<T>(),
            len: 1,
            zero_ok: false,
            site,
        }
    }

    /// An access to the row `r` from `site`.
    #[inline]
    pub fn of_row<T: Scalar>(r: Row<T>, site: &'static Location<'static>) -> Miss {
        Miss {
            oid: r.oid(),
            ty: TypeRef::of::<T>(),
            len: r.len(),
            zero_ok: true,
            site,
        }
    }

    /// Where the program accessed the object.
    pub fn call_site(&self) -> CallSite {
        self.site.into()
    }
}

/// Whoever holds a token and knows how to answer a [`Miss`]: the engine's worker.
pub trait Access<'id> {
    /// Why an object could not be had.
    type Error: std::error::Error;

    /// The worker's token.
    #[doc(hidden)]
    fn token(&self) -> &Token<'id>;

    /// The worker's token.
    #[doc(hidden)]
    fn token_mut(&mut self) -> &mut Token<'id>;

    /// Makes the object readable here: after `Ok` its read handle is set.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    fn read_miss(&self, miss: &Miss) -> Result<(), Self::Error>;

    /// Makes the object writable here: after `Ok` its write handle is set.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    fn write_miss(&mut self, miss: &Miss) -> Result<(), Self::Error>;

    /// Unwinds with `error` to where the node's run began.
    fn fail(&self, error: Self::Error) -> !;
}

#[cold]
#[inline(never)]
fn unanswered(miss: &Miss, kind: &str) -> ! {
    panic!(
        "the engine answered a {kind} miss of {} at {} and set no handle",
        miss.oid, miss.site
    )
}

#[cold]
#[inline(never)]
fn read_failed<'id, W: Access<'id>>(w: &W, miss: &Miss) {
    if let Err(error) = w.read_miss(miss) {
        w.fail(error)
    }
}

#[cold]
#[inline(never)]
fn write_failed<'id, W: Access<'id>>(w: &mut W, miss: &Miss) {
    if let Err(error) = w.write_miss(miss) {
        w.fail(error)
    }
}

impl<T: Share> Ref<T> {
    /// The object, to read. Fetches it where this node has no valid copy.
    ///
    /// An access that cannot be made unwinds to the node's boundary, with an error that names
    /// object and place; [`try_get`](Ref::try_get) returns that error.
    #[inline(always)]
    #[track_caller]
    pub fn get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> &'w T {
        // SAFETY: the id comes from a reference.
        match unsafe { w.token().readable(self.oid()) } {
            // SAFETY: as in `Token::get`; the token is borrowed, through `w`, for all of 'w.
            Some(object) => unsafe { object.cast().as_ref() },
            None => self.get_slowly(w, Location::caller()),
        }
    }

    /// The object, to write. Fetches it where this node has no valid copy, and notes that this
    /// interval writes it.
    ///
    /// An access that cannot be made unwinds to the node's boundary, with an error that names
    /// object and place; [`try_get_mut`](Ref::try_get_mut) returns that error.
    #[inline(always)]
    #[track_caller]
    pub fn get_mut<'w, 'id: 'w, W: Access<'id>>(self, w: &'w mut W) -> &'w mut T {
        // SAFETY: the id comes from a reference.
        match unsafe { w.token_mut().writable(self.oid()) } {
            // SAFETY: as in `Token::get_mut`. The token is borrowed mutably for all of 'w:
            // `token_mut` could have been called for that long, and on this path `w` is not used
            // again (what the borrow checker accepts once it tracks borrows by path).
            Some(object) => unsafe { object.cast().as_mut() },
            None => self.get_mut_slowly(w, Location::caller()),
        }
    }

    /// A copy of the object.
    #[inline(always)]
    #[track_caller]
    pub fn read<'id, W: Access<'id>>(self, w: &W) -> T
    where
        T: Copy,
    {
        *self.get(w)
    }

    /// Calls `f` with the object, to change it.
    #[inline(always)]
    #[track_caller]
    pub fn update<'id, W: Access<'id>, R>(self, w: &mut W, f: impl FnOnce(&mut T) -> R) -> R {
        f(self.get_mut(w))
    }

    /// Like [`get`](Ref::get), but returns the error.
    ///
    /// # Errors
    /// Why the object cannot be had.
    #[inline]
    #[track_caller]
    pub fn try_get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> Result<&'w T, W::Error> {
        let miss = match w.token().get(self) {
            Ok(object) => return Ok(object),
            Err(miss) => miss,
        };
        w.read_miss(&miss)?;
        Ok(w.token()
            .get(self)
            .unwrap_or_else(|_| unanswered(&miss, "read")))
    }

    /// Like [`get_mut`](Ref::get_mut), but returns the error.
    ///
    /// # Errors
    /// Why the object cannot be had.
    #[inline]
    #[track_caller]
    pub fn try_get_mut<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
    ) -> Result<&'w mut T, W::Error> {
        if let Err(miss) = w.token_mut().get_mut(self) {
            w.write_miss(&miss)?;
        }
        Ok(w.token_mut()
            .get_mut(self)
            .unwrap_or_else(|miss| unanswered(&miss, "write")))
    }

    #[cold]
    #[inline(never)]
    fn get_slowly<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w W,
        site: &'static Location<'static>,
    ) -> &'w T {
        let miss = Miss::of(self, site);
        read_failed(w, &miss);
        w.token()
            .get(self)
            .unwrap_or_else(|_| unanswered(&miss, "read"))
    }

    #[cold]
    #[inline(never)]
    fn get_mut_slowly<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        site: &'static Location<'static>,
    ) -> &'w mut T {
        let miss = Miss::of(self, site);
        write_failed(w, &miss);
        w.token_mut()
            .get_mut(self)
            .unwrap_or_else(|_| unanswered(&miss, "write"))
    }
}

impl<T: Scalar> Row<T> {
    /// The row, to read. See [`Ref::get`].
    #[inline(always)]
    #[track_caller]
    pub fn get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> &'w [T] {
        match w.token().row(self) {
            Ok(row) => row,
            Err(_) => self.get_slowly(w, Location::caller()),
        }
    }

    /// The row, to write. See [`Ref::get_mut`].
    #[inline(always)]
    #[track_caller]
    pub fn get_mut<'w, 'id: 'w, W: Access<'id>>(self, w: &'w mut W) -> &'w mut [T] {
        // SAFETY: the id comes from a reference.
        match unsafe { w.token_mut().writable(self.oid()) } {
            // SAFETY: as in `Ref::get_mut` and `Token::row_mut`.
            Some(at) => unsafe {
                std::ptr::NonNull::slice_from_raw_parts(at.cast(), self.len()).as_mut()
            },
            None => self.get_mut_slowly(w, Location::caller()),
        }
    }

    /// Calls `f` with the row, to change it.
    #[inline(always)]
    #[track_caller]
    pub fn update<'id, W: Access<'id>, R>(self, w: &mut W, f: impl FnOnce(&mut [T]) -> R) -> R {
        f(self.get_mut(w))
    }

    /// Like [`get`](Row::get), but returns the error.
    ///
    /// # Errors
    /// Why the row cannot be had.
    #[inline]
    #[track_caller]
    pub fn try_get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> Result<&'w [T], W::Error> {
        let miss = match w.token().row(self) {
            Ok(row) => return Ok(row),
            Err(miss) => miss,
        };
        w.read_miss(&miss)?;
        Ok(w.token()
            .row(self)
            .unwrap_or_else(|_| unanswered(&miss, "read")))
    }

    /// Like [`get_mut`](Row::get_mut), but returns the error.
    ///
    /// # Errors
    /// Why the row cannot be had.
    #[inline]
    #[track_caller]
    pub fn try_get_mut<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
    ) -> Result<&'w mut [T], W::Error> {
        if let Err(miss) = w.token_mut().row_mut(self) {
            w.write_miss(&miss)?;
        }
        Ok(w.token_mut()
            .row_mut(self)
            .unwrap_or_else(|miss| unanswered(&miss, "write")))
    }

    #[cold]
    #[inline(never)]
    fn get_slowly<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w W,
        site: &'static Location<'static>,
    ) -> &'w [T] {
        let miss = Miss::of_row(self, site);
        read_failed(w, &miss);
        w.token()
            .row(self)
            .unwrap_or_else(|_| unanswered(&miss, "read"))
    }

    #[cold]
    #[inline(never)]
    fn get_mut_slowly<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        site: &'static Location<'static>,
    ) -> &'w mut [T] {
        let miss = Miss::of_row(self, site);
        write_failed(w, &miss);
        w.token_mut()
            .row_mut(self)
            .unwrap_or_else(|_| unanswered(&miss, "write"))
    }
}
