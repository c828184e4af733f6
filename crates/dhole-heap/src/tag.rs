//! Numbers that stand for something of a type that is not in the heap.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;

use crate::plain::plain;
use crate::validity::LeafTest;
use crate::{Nullable, Share, TypeMap};

/// A number that stands for a value of type `T`, kept elsewhere than in the heap: 8 bytes, and so
/// is `Option<Tag<T>>`. It proves nothing about the value, so any number will do.
#[repr(transparent)]
pub struct Tag<T> {
    number: NonZeroU64,
    of: PhantomData<fn(T) -> T>,
}

plain! {
    Tag: number;
}

impl<T> Tag<T> {
    /// The tag of this number.
    #[inline]
    pub const fn new(number: NonZeroU64) -> Tag<T> {
        let of = PhantomData;
        Tag { number, of }
    }

    /// The number.
    #[inline]
    pub const fn number(self) -> NonZeroU64 {
        self.number
    }
}

impl<T> fmt::Debug for Tag<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tag").field(&self.number).finish()
    }
}

// SAFETY: transparent over a `NonZero`, whose layout this is.
unsafe impl<T: 'static> Share for Tag<T> {
    fn describe(map: &mut TypeMap) {
        map.leaf(LeafTest::NonZero(size_of::<u64>()));
    }
}

// SAFETY: transparent over a `NonZero`: `None` is zero, and every pattern is valid.
unsafe impl<T: 'static> Nullable for Tag<T> {
    fn describe_option(map: &mut TypeMap) {
        map.data(size_of::<u64>());
    }
}
