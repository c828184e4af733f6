//! Borrowing several objects at once, some of them mutably.
//!
//! A token lends one object mutably, or any number shared. [`Borrow`] lends a tuple of both, after
//! it has made sure that nothing that is written is named twice.

use std::ops::Range;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::{CallSite, Oid};
use dhole_space::touch::Found;
use thiserror::Error;

use crate::target::Target;
use crate::{Access, ArrayRange, Name, Share, Token};

/// An object to be borrowed shared: `Read(r)`.
#[derive(Clone, Copy, Debug)]
pub struct Read<R>(pub R);

/// An object to be borrowed mutably: `Write(r)`.
#[derive(Clone, Copy, Debug)]
pub struct Write<R>(pub R);

/// Why objects cannot be borrowed together.
#[derive(Clone, PartialEq, Error)]
pub enum BorrowError<E: std::error::Error + 'static> {
    /// An object that is to be written is named twice; or elements of an array, which has the id
    /// of its first block.
    #[error("borrowing several objects at {site}: {}", named_twice(*oid, *both, elements))]
    Overlap {
        /// The object.
        oid: Oid,
        /// Which of what is borrowed, counted from 0, name it.
        both: [usize; 2],
        /// The elements that both name, where they are an array's.
        elements: Option<Range<u64>>,
        /// Where in the program.
        site: CallSite,
    },
    /// One of the objects cannot be had.
    #[error(transparent)]
    Access(E),
}

impl<E: std::error::Error + 'static> std::fmt::Debug for BorrowError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        dhole_model::write_error(self, f)
    }
}

fn named_twice(oid: Oid, [first, second]: [usize; 2], elements: &Option<Range<u64>>) -> String {
    let what = match elements {
        Some(Range { start, end }) => format!("elements {start}..{end} of array {oid} are"),
        None => format!("{oid} is"),
    };
    format!("{what} to be written and named twice, as number {first} and number {second}")
}

use sealed::{Claim, Place};

// SAFETY: what a handle points to is the object, whole, and a region of its own.
unsafe impl<R: Target> Place for R {
    type Shared<'w> = R::Shared<'w>;
    type Mutable<'w> = R::Mutable<'w>;

    #[inline(always)]
    fn region(self) -> Region {
        Region {
            oid: self.oid(),
            start: 0,
            end: u64::MAX,
        }
    }

    #[inline(always)]
    fn find(self, token: &mut Token<'_>, writes: bool) -> Option<NonNull<u8>> {
        // SAFETY: a target is a reference (the contract of `Target`).
        let found = unsafe {
            match writes {
                true => token.writable(self.oid()),
                false => token.readable(self.oid()),
            }
        };
        found.map(Found::object)
    }

    #[cold]
    fn named(self, site: &'static Location<'static>) -> Name {
        Name::Object(self.miss(site))
    }

    #[inline(always)]
    unsafe fn lend<'w>(self, object: NonNull<u8>) -> R::Shared<'w> {
        // SAFETY: the caller's promise is the target's.
        unsafe { self.shared(object) }
    }

    #[inline(always)]
    unsafe fn lend_mut<'w>(self, object: NonNull<u8>) -> R::Mutable<'w> {
        // SAFETY: the caller's promise is the target's.
        unsafe { self.mutable(object) }
    }
}

// SAFETY: what is found are the elements of the range and no others.
unsafe impl<T: Share> Place for ArrayRange<T> {
    type Shared<'w> = &'w [T];
    type Mutable<'w> = &'w mut [T];

    #[inline(always)]
    fn region(self) -> Region {
        Region {
            oid: self.array.oid(),
            start: self.start,
            end: self.end,
        }
    }

    #[inline(always)]
    fn find(self, token: &mut Token<'_>, writes: bool) -> Option<NonNull<u8>> {
        let at = match writes {
            true => token.writable_elements(self),
            false => token.readable_elements(self),
        };
        at.map(NonNull::cast)
    }

    #[cold]
    fn named(self, site: &'static Location<'static>) -> Name {
        Name::Elements(self.miss(site))
    }

    #[inline(always)]
    unsafe fn lend<'w>(self, elements: NonNull<u8>) -> &'w [T] {
        // SAFETY: the caller's promise: `find` gave the place, where so many elements are.
        unsafe { NonNull::slice_from_raw_parts(elements.cast(), self.len()).as_ref() }
    }

    #[inline(always)]
    unsafe fn lend_mut<'w>(self, elements: NonNull<u8>) -> &'w mut [T] {
        // SAFETY: as in `lend`.
        unsafe { NonNull::slice_from_raw_parts(elements.cast(), self.len()).as_mut() }
    }
}

/// What a claim claims: an object, or some elements of an array.
#[derive(Clone, Copy)]
pub struct Region {
    oid: Oid,
    start: u64,
    end: u64,
}

impl Region {
    #[inline(always)]
    fn meets(&self, other: &Region) -> bool {
        self.oid == other.oid && self.start.max(other.start) < self.end.min(other.end)
    }
}

mod sealed {
    use super::{Location, Name, NonNull, Region, Token};

    /// What can be borrowed with others: an object, or elements of an array.
    ///
    /// # Safety
    /// `lend` and `lend_mut` turn the pointer that `find` gave into a reference to all of
    /// `region` and to nothing else.
    pub unsafe trait Place: Copy {
        type Shared<'w>;
        type Mutable<'w>;
        fn region(self) -> Region;
        fn find(self, token: &mut Token<'_>, writes: bool) -> Option<NonNull<u8>>;
        fn named(self, site: &'static Location<'static>) -> Name;
        /// # Safety
        /// `find` gave the place, and nobody writes what is there during `'w`.
        unsafe fn lend<'w>(self, at: NonNull<u8>) -> Self::Shared<'w>;
        /// # Safety
        /// `find` gave the place, for writing, and nobody else reads or writes what is there
        /// during `'w`.
        unsafe fn lend_mut<'w>(self, at: NonNull<u8>) -> Self::Mutable<'w>;
    }

    /// One member of a borrow.
    ///
    /// # Safety
    /// `take` gives a reference to all of the place's region and to nothing else, mutable only
    /// where `WRITES`, if the pointer is what `find` gave.
    pub unsafe trait Claim: Copy {
        const WRITES: bool;
        type Borrowed<'w>;
        type Of: Place;
        fn of(self) -> Self::Of;
        /// # Safety
        /// The place's `find` gave `at`, for writing where `WRITES`. During `'w` nobody writes what
        /// is there, and where `WRITES` nobody else reads it.
        unsafe fn take<'w>(self, at: NonNull<u8>) -> Self::Borrowed<'w>;
    }
}

// SAFETY: as the place's `lend`.
unsafe impl<R: Place> Claim for Read<R> {
    const WRITES: bool = false;
    type Borrowed<'w> = R::Shared<'w>;
    type Of = R;

    #[inline(always)]
    fn of(self) -> R {
        self.0
    }

    #[inline(always)]
    unsafe fn take<'w>(self, object: NonNull<u8>) -> R::Shared<'w> {
        // SAFETY: the caller's promise is the place's.
        unsafe { self.0.lend(object) }
    }
}

// SAFETY: as the place's `lend_mut`.
unsafe impl<R: Place> Claim for Write<R> {
    const WRITES: bool = true;
    type Borrowed<'w> = R::Mutable<'w>;
    type Of = R;

    #[inline(always)]
    fn of(self) -> R {
        self.0
    }

    #[inline(always)]
    unsafe fn take<'w>(self, object: NonNull<u8>) -> R::Mutable<'w> {
        // SAFETY: the caller's promise is the place's.
        unsafe { self.0.lend_mut(object) }
    }
}

/// A tuple of up to eight [`Read`]s and [`Write`]s of [`Ref`](crate::Ref)s, [`Row`](crate::Row)s
/// and [`ArrayRange`]s.
pub trait Borrow: Copy {
    /// The tuple of references.
    type Borrowed<'w>;

    #[doc(hidden)]
    fn borrow<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        site: &'static Location<'static>,
    ) -> Result<Self::Borrowed<'w>, BorrowError<W::Error>>;

    /// Has `w` bring what of it is not here, one after the other.
    #[doc(hidden)]
    fn bring_all<'id, W: Access<'id>>(
        self,
        w: &mut W,
        site: &'static Location<'static>,
    ) -> Result<(), BorrowError<W::Error>>;
}

/// What is named twice, and written.
struct Twice {
    oid: Oid,
    both: [usize; 2],
    elements: Option<Range<u64>>,
}

/// The first object or array of which something is named twice and written.
#[inline(always)]
fn overlap(claims: &[(Region, bool)]) -> Option<Twice> {
    claims.iter().enumerate().find_map(|(i, (region, writes))| {
        let twice = |(other, also): &(Region, bool)| other.meets(region) && (*writes || *also);
        let before = claims[..i].iter().position(twice)?;
        let other = &claims[before].0;
        let elements = region.start.max(other.start)..region.end.min(other.end);
        Some(Twice {
            oid: region.oid,
            both: [before, i],
            elements: (elements.end < u64::MAX).then_some(elements),
        })
    })
}

/// Has `w` bring what is not here.
#[cold]
fn bring<'id, W: Access<'id>>(w: &mut W, name: &Name, writes: bool) -> Result<(), W::Error> {
    match (name, writes) {
        (Name::Object(miss), false) => w.read_miss(miss),
        (Name::Object(miss), true) => w.write_miss(miss),
        (Name::Elements(miss), false) => w.read_elements(miss),
        (Name::Elements(miss), true) => w.write_elements(miss),
    }
}

/// A call that brings one object may end an interval, and with it the right to write another one
/// (a lock that was dropped is released); but not twice. And others may be answered meanwhile, who
/// have one of up to eight then; but each only once.
const MOST_PASSES: usize = 12;

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
                let claims = [$((self.$field.of().region(), $claim::WRITES)),+];
                if let Some(Twice { oid, both, elements }) = overlap(&claims) {
                    return Err(BorrowError::Overlap { oid, both, elements, site: site.into() });
                }
                let mut passes = 0;
                loop {
                    let token: &mut Token<'id> = w.token_mut();
                    let found = ($(self.$field.of().find(token, $claim::WRITES),)+);
                    if let ($(Some($at),)+) = found {
                        // SAFETY: all were found through one token, with no code of `W` between
                        // the first and the last, and `w` is borrowed mutably for 'w from here on;
                        // a `W` that merely shares its token has none to give. So each is readable
                        // or writable as claimed, and nobody else has a reference to any (the
                        // contract of `Token::new`). No region that is claimed mutably meets
                        // another, as `overlap` has found, so no two of these references overlap.
                        return Ok(unsafe { ($(self.$field.take($at),)+) });
                    }
                    assert!(passes < MOST_PASSES, "bringing objects at {site} takes others away");
                    passes += 1;
                    self.bring_all(w, site)?;
                }
            }

            #[cold]
            #[inline(never)]
            fn bring_all<'id, W: Access<'id>>(
                self,
                w: &mut W,
                site: &'static Location<'static>,
            ) -> Result<(), BorrowError<W::Error>> {
                $(
                    if self.$field.of().find(w.token_mut(), $claim::WRITES).is_none() {
                        let name = self.$field.of().named(site);
                        let brought = bring(w, &name, $claim::WRITES);
                        brought.map_err(BorrowError::Access)?;
                    }
                )+
                Ok(())
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
