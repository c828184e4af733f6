//! How a reference is followed: one load and one null test, and everything else out of line.

use std::panic::Location;

use crate::target::Target;
use crate::{ArrayMiss, Miss, Ref, Row, Scalar, Share, Token};

/// The holder of a token that can answer a [`Miss`]: the engine's worker. Programs neither
/// implement nor call it; they write `r.get(w)`.
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

    /// Makes elements of an array readable here.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), Self::Error>;

    /// Makes elements of an array writable here.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), Self::Error>;

    /// Writes `values` over the elements, whatever they were.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        values: &[T],
    ) -> Result<(), Self::Error>;

    /// Puts values in the place of those of the objects that are not here and need not be fetched
    /// to be written: after `Ok` their write handles are set, or were. `values` are the bytes of
    /// all, packed, one after the other.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    #[doc(hidden)]
    fn overwrite_objects(&mut self, _misses: &[Miss], _values: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Makes elements of an array readable here, all in one round. After `Ok` they are, but for
    /// those that a protocol of the program's took away again.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    #[doc(hidden)]
    fn read_all_elements(&self, misses: &[ArrayMiss]) -> Result<(), Self::Error> {
        misses.iter().try_for_each(|miss| self.read_elements(miss))
    }

    /// Writes `values` over the elements of one array that `misses` name one after the other.
    ///
    /// # Errors
    /// Why that cannot be done; the engine stays consistent.
    #[doc(hidden)]
    fn overwrite_all_elements<T: Share + Copy>(
        &mut self,
        misses: &[ArrayMiss],
        mut values: &[T],
    ) -> Result<(), Self::Error> {
        for miss in misses {
            let (these, rest) = values.split_at(miss.elements.count as usize);
            self.overwrite_elements(miss, these)?;
            values = rest;
        }
        Ok(())
    }

    /// Unwinds with `error` to where the node's run began.
    fn fail(&self, error: Self::Error) -> !;
}

/// What `target` refers to, to read: one load and one null test, or out of line.
#[inline(always)]
pub(crate) fn read<'w, 'id: 'w, W: Access<'id>, R: Target>(
    target: R,
    w: &'w W,
    site: &'static Location<'static>,
) -> R::Shared<'w> {
    // SAFETY: a target is a reference (the contract of `Target`).
    match unsafe { w.token().readable(target.oid()) } {
        // SAFETY: what was found is a valid object of the type and length that the id is bound to
        // (the contract of `HandleTable::set`). Nobody writes it while the token is borrowed (the
        // contract of `Token::new`), which it is through `w` for all of 'w.
        Some(found) => unsafe { target.shared(found.object()) },
        None => read_slowly(target, w, site),
    }
}

/// What `target` refers to, to write: one load and one null test, or out of line.
#[inline(always)]
fn write<'w, 'id: 'w, W: Access<'id>, R: Target>(
    target: R,
    w: &'w mut W,
    site: &'static Location<'static>,
) -> R::Mutable<'w> {
    // SAFETY: a target is a reference (the contract of `Target`).
    match unsafe { w.token_mut().writable(target.oid()) } {
        // SAFETY: as in `read`; and the token is borrowed mutably for all of 'w, which excludes
        // other references, and all who read or write an object whose write handle is set:
        // `token_mut` could have been called for that long, and on this path `w` is not used
        // again (what the borrow checker accepts once it tracks borrows by path).
        Some(found) => unsafe { target.mutable(found.object()) },
        None => write_slowly(target, w, site),
    }
}

#[cold]
#[inline(never)]
fn read_slowly<'w, 'id: 'w, W: Access<'id>, R: Target>(
    target: R,
    w: &'w W,
    site: &'static Location<'static>,
) -> R::Shared<'w> {
    if let Err(error) = w.read_miss(&target.miss(site)) {
        w.fail(error)
    }
    let read = w.token().shared(target);
    read.unwrap_or_else(|| unanswered(&target.miss(site), "read"))
}

#[cold]
#[inline(never)]
fn write_slowly<'w, 'id: 'w, W: Access<'id>, R: Target>(
    target: R,
    w: &'w mut W,
    site: &'static Location<'static>,
) -> R::Mutable<'w> {
    if let Err(error) = make_writable(target, w, site) {
        w.fail(error)
    }
    let written = w.token_mut().mutable(target);
    written.unwrap_or_else(|| unanswered(&target.miss(site), "write"))
}

/// Before the call that makes something writable is over, another node may be answered that asked
/// for it, and has it then: it is made writable again. What was asked for stays writable.
pub(crate) const MOST_FAULTS: usize = 2;

fn make_writable<'id, W: Access<'id>, R: Target>(
    target: R,
    w: &mut W,
    site: &'static Location<'static>,
) -> Result<(), W::Error> {
    for _ in 0..MOST_FAULTS {
        w.write_miss(&target.miss(site))?;
        if w.token_mut().mutable(target).is_some() {
            break;
        }
    }
    Ok(())
}

#[inline]
pub(crate) fn try_read<'w, 'id: 'w, W: Access<'id>, R: Target>(
    target: R,
    w: &'w W,
    site: &'static Location<'static>,
) -> Result<R::Shared<'w>, W::Error> {
    if let Some(object) = w.token().shared(target) {
        return Ok(object);
    }
    w.read_miss(&target.miss(site))?;
    let read = w.token().shared(target);
    Ok(read.unwrap_or_else(|| unanswered(&target.miss(site), "read")))
}

#[inline]
pub(crate) fn try_write<'w, 'id: 'w, W: Access<'id>, R: Target>(
    target: R,
    w: &'w mut W,
    site: &'static Location<'static>,
) -> Result<R::Mutable<'w>, W::Error> {
    if w.token_mut().mutable(target).is_none() {
        make_writable(target, w, site)?;
    }
    let written = w.token_mut().mutable(target);
    Ok(written.unwrap_or_else(|| unanswered(&target.miss(site), "write")))
}

#[cold]
#[inline(never)]
fn unanswered(miss: &Miss, kind: &str) -> ! {
    panic!(
        "the engine answered a {kind} miss of {} at {} and set no handle",
        miss.oid, miss.site
    )
}

macro_rules! access {
    ($($reference:ident<$element:ident> is $object:ty;)*) => {$(
        impl<T: $element> $reference<T> {
            /// What it refers to, to read. Fetches it where this node has no valid copy.
            ///
            /// An access that cannot be made unwinds to the node's boundary, with an error that
            /// names object and place; `try_get` returns that error.
            #[inline(always)]
            #[track_caller]
            pub fn get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> &'w $object {
                read(self, w, Location::caller())
            }

            /// What it refers to, to write. Fetches it where this node has no valid copy, and
            /// notes that this interval writes it.
            ///
            /// An access that cannot be made unwinds to the node's boundary, with an error that
            /// names object and place; `try_get_mut` returns that error.
            #[inline(always)]
            #[track_caller]
            pub fn get_mut<'w, 'id: 'w, W: Access<'id>>(self, w: &'w mut W) -> &'w mut $object {
                write(self, w, Location::caller())
            }

            /// Calls `f` with what it refers to, to change it.
            #[inline(always)]
            #[track_caller]
            pub fn update<'id, W: Access<'id>, R>(
                self,
                w: &mut W,
                f: impl FnOnce(&mut $object) -> R,
            ) -> R {
                f(self.get_mut(w))
            }

            /// Like `get`, but returns the error.
            ///
            /// # Errors
            /// Why the object cannot be had.
            #[inline]
            #[track_caller]
            pub fn try_get<'w, 'id: 'w, W: Access<'id>>(
                self,
                w: &'w W,
            ) -> Result<&'w $object, W::Error> {
                try_read(self, w, Location::caller())
            }

            /// Like `get_mut`, but returns the error.
            ///
            /// # Errors
            /// Why the object cannot be had.
            #[inline]
            #[track_caller]
            pub fn try_get_mut<'w, 'id: 'w, W: Access<'id>>(
                self,
                w: &'w mut W,
            ) -> Result<&'w mut $object, W::Error> {
                try_write(self, w, Location::caller())
            }
        }
    )*};
}
access! {
    Ref<Share> is T;
    Row<Scalar> is [T];
}

impl<T: Share + Copy> Ref<T> {
    /// A copy of the object.
    #[inline(always)]
    #[track_caller]
    pub fn read<'id, W: Access<'id>>(self, w: &W) -> T {
        *self.get(w)
    }
}
