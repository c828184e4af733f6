//! Borrowing several objects at once, some of them mutably.
//!
//! A token lends one object mutably, or any number shared. [`borrow`] lends a tuple of both, after
//! it has made sure that nothing that is written is named twice.

use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::{CallSite, Oid};
use thiserror::Error;

use crate::{Access, Miss, Ref, Row, Scalar, Share, Token};

/// An object to be borrowed shared: `Read(r)`.
#[derive(Clone, Copy, Debug)]
pub struct Read<R>(pub R);

/// An object to be borrowed mutably: `Write(r)`.
#[derive(Clone, Copy, Debug)]
pub struct Write<R>(pub R);

/// Why objects cannot be borrowed together.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BorrowError<E: std::error::Error + 'static> {
    /// An object that is to be written is named twice.
    #[error("borrowing several objects at {site}: {oid} is to be written and is named twice")]
    Overlap {
        /// The object.
        oid: Oid,
        /// Where in the program.
        site: CallSite,
    },
    /// One of the objects cannot be had.
    #[error(transparent)]
    Access(E),
}

use sealed::Claim;
pub(crate) use sealed::Target;

// SAFETY: the object is a `T`.
unsafe impl<T: Share> Target for Ref<T> {
    type Shared<'w> = &'w T;
    type Mutable<'w> = &'w mut T;

    #[inline(always)]
    fn oid(self) -> Oid {
        Ref::oid(self)
    }

    fn miss(self, site: &'static Location<'static>) -> Miss {
        Miss::of(self, site)
    }

    #[inline(always)]
    unsafe fn shared<'w>(self, object: NonNull<u8>) -> &'w T {
        // SAFETY: the caller has checked the handle and holds the borrow.
        unsafe { object.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn mutable<'w>(self, object: NonNull<u8>) -> &'w mut T {
        // SAFETY: as in `shared`, and nothing else borrows this object.
        unsafe { object.cast().as_mut() }
    }
}

// SAFETY: the object is a row of `len` scalars: a row's length is part of its binding.
unsafe impl<T: Scalar> Target for Row<T> {
    type Shared<'w> = &'w [T];
    type Mutable<'w> = &'w mut [T];

    #[inline(always)]
    fn oid(self) -> Oid {
        Row::oid(self)
    }

    fn miss(self, site: &'static Location<'static>) -> Miss {
        Miss::of_row(self, site)
    }

    #[inline(always)]
    unsafe fn shared<'w>(self, object: NonNull<u8>) -> &'w [T] {
        // SAFETY: the caller has checked the handle and holds the borrow.
        unsafe { NonNull::slice_from_raw_parts(object.cast(), self.len()).as_ref() }
    }

    #[inline(always)]
    unsafe fn mutable<'w>(self, object: NonNull<u8>) -> &'w mut [T] {
        // SAFETY: as in `shared`, and nothing else borrows this object.
        unsafe { NonNull::slice_from_raw_parts(object.cast(), self.len()).as_mut() }
    }
}

mod sealed {
    use super::{Access, Location, Miss, NonNull, Oid, Token};

    /// What a reference refers to: the borrow it gives, and how a pointer becomes one.
    ///
    /// # Safety
    /// `shared` and `mutable` turn a pointer to the object named `oid` into a reference to all of
    /// that object and to nothing else.
    pub unsafe trait Target: Copy {
        type Shared<'w>;
        type Mutable<'w>;
        fn oid(self) -> Oid;
        fn miss(self, site: &'static Location<'static>) -> Miss;
        unsafe fn shared<'w>(self, object: NonNull<u8>) -> Self::Shared<'w>;
        unsafe fn mutable<'w>(self, object: NonNull<u8>) -> Self::Mutable<'w>;
    }

    /// One member of a borrow.
    ///
    /// # Safety
    /// `take` gives a reference to the whole object `oid` and to nothing else, mutable only where
    /// `WRITES`.
    pub unsafe trait Claim: Copy {
        const WRITES: bool;
        type Borrowed<'w>;
        fn oid(self) -> Oid;
        fn miss(self, site: &'static Location<'static>) -> Miss;
        unsafe fn take<'w>(self, object: NonNull<u8>) -> Self::Borrowed<'w>;

        /// Where the object is, if the claim can be met at once.
        #[inline(always)]
        fn find(self, token: &mut Token<'_>) -> Option<NonNull<u8>> {
            // SAFETY: the id comes from a reference.
            unsafe {
                match Self::WRITES {
                    true => token.writable(self.oid()),
                    false => token.readable(self.oid()),
                }
            }
        }

        /// Brings the object.
        #[cold]
        fn bring<'id, W: Access<'id>>(
            self,
            w: &mut W,
            site: &'static Location<'static>,
        ) -> Result<(), W::Error> {
            match Self::WRITES {
                true => w.write_miss(&self.miss(site)),
                false => w.read_miss(&self.miss(site)),
            }
        }
    }
}

// SAFETY: as the target's `shared`.
unsafe impl<R: Target> Claim for Read<R> {
    const WRITES: bool = false;
    type Borrowed<'w> = R::Shared<'w>;

    #[inline(always)]
    fn oid(self) -> Oid {
        self.0.oid()
    }

    fn miss(self, site: &'static Location<'static>) -> Miss {
        self.0.miss(site)
    }

    #[inline(always)]
    unsafe fn take<'w>(self, object: NonNull<u8>) -> R::Shared<'w> {
        // SAFETY: the caller's promise is the target's.
        unsafe { self.0.shared(object) }
    }
}

// SAFETY: as the target's `mutable`.
unsafe impl<R: Target> Claim for Write<R> {
    const WRITES: bool = true;
    type Borrowed<'w> = R::Mutable<'w>;

    #[inline(always)]
    fn oid(self) -> Oid {
        self.0.oid()
    }

    fn miss(self, site: &'static Location<'static>) -> Miss {
        self.0.miss(site)
    }

    #[inline(always)]
    unsafe fn take<'w>(self, object: NonNull<u8>) -> R::Mutable<'w> {
        // SAFETY: the caller's promise is the target's.
        unsafe { self.0.mutable(object) }
    }
}

/// A tuple of up to eight [`Read`]s and [`Write`]s of [`Ref`]s and [`Row`]s.
pub trait Borrow: Copy {
    /// The tuple of references.
    type Borrowed<'w>;

    #[doc(hidden)]
    fn borrow<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        site: &'static Location<'static>,
    ) -> Result<Self::Borrowed<'w>, BorrowError<W::Error>>;
}

/// The first object that is named twice and written.
#[inline(always)]
fn overlap(claims: &[(Oid, bool)]) -> Option<Oid> {
    claims.iter().enumerate().find_map(|(i, (oid, writes))| {
        let twice = |(other, also): &(Oid, bool)| other == oid && (*writes || *also);
        claims[..i].iter().any(twice).then_some(*oid)
    })
}

/// A call that brings one object may end an interval, and with it the right to write another one
/// (a lock that was dropped is released); but not twice.
const MOST_PASSES: usize = 4;

macro_rules! tuple {
    ($($claim:ident $field:tt $at:ident),+) => {
        impl<$($claim: Claim),+> Borrow for ($($claim,)+) {
            type Borrowed<'w> = ($($claim::Borrowed<'w>,)+);

            #[inline(always)]
            fn borrow<'w, 'id: 'w, W: Access<'id>>(
                self,
                w: &'w mut W,
                site: &'static Location<'static>,
            ) -> Result<Self::Borrowed<'w>, BorrowError<W::Error>> {
                if let Some(oid) = overlap(&[$((self.$field.oid(), $claim::WRITES)),+]) {
                    return Err(BorrowError::Overlap { oid, site: site.into() });
                }
                let mut all_here = false;
                for _ in 0..MOST_PASSES {
                    all_here = true;
                    $(
                        if self.$field.find(w.token_mut()).is_none() {
                            all_here = false;
                            self.$field.bring(w, site).map_err(BorrowError::Access)?;
                        }
                    )+
                    if all_here {
                        break;
                    }
                }
                assert!(all_here, "bringing objects at {site} takes others away");
                // Held for 'w, and taken once: no code of `W` runs between the first handle and
                // the last reference. A `W` that merely shares its token has none to give here.
                let token: &'w mut Token<'id> = w.token_mut();
                $(
                    let $at = self.$field.find(token).expect("what was brought is here");
                )+
                // SAFETY: all handles were loaded from one token that is borrowed mutably for
                // 'w, so each points to its object, readable or writable as claimed, and nobody
                // else has a reference to any. No object that is claimed mutably is claimed
                // twice, so no two of these references overlap.
                Ok(unsafe { ($(self.$field.take($at),)+) })
            }
        }
    };
}
tuple!(A 0 a);
tuple!(A 0 a, B 1 b);
tuple!(A 0 a, B 1 b, C 2 c);
tuple!(A 0 a, B 1 b, C 2 c, D 3 d);
tuple!(A 0 a, B 1 b, C 2 c, D 3 d, E 4 e);
tuple!(A 0 a, B 1 b, C 2 c, D 3 d, E 4 e, F 5 f);
tuple!(A 0 a, B 1 b, C 2 c, D 3 d, E 4 e, F 5 f, G 6 g);
tuple!(A 0 a, B 1 b, C 2 c, D 3 d, E 4 e, F 5 f, G 6 g, H 7 h);
