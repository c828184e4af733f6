//! References whose object travels with the one that holds them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::layout::ReferenceForm;
use crate::{Ref, Share, TypeMap};

/// A reference to an object that belongs to the one that holds it. Where the owner is fetched, its
/// reply carries what it owns as well, and what that owns, as far as the sender has valid copies
/// that nobody is writing: at most 256 objects and 64 KiB, the nearest first. What does not come
/// along, as objects under the home protocol never do, is fetched when it is accessed.
///
/// It is a [`Ref`] for all that follows it (`owner.get(w).part.get(w)`), but is not copied: it
/// moves, so that an object has one owner. Nothing depends on that but what travels; an object
/// that two own is sent with either.
///
/// ```
/// # extern crate dhole_heap as dhole;
/// use dhole::{Own, Share};
///
/// #[derive(Share)]
/// struct Tree {
///     key: u64,
///     left: Option<Own<Tree>>,
///     right: Option<Own<Tree>>,
/// }
/// ```
/// ```compile_fail,E0277
/// # use dhole_heap::Own;
/// fn copied<T: Copy>() {}
/// copied::<Own<u64>>();
/// ```
#[repr(transparent)]
pub struct Own<T>(Ref<T>);

impl<T> From<Ref<T>> for Own<T> {
    /// Whoever gets the result owns the object; that nobody else does is the program's business.
    fn from(r: Ref<T>) -> Own<T> {
        Own(r)
    }
}

impl<T> Deref for Own<T> {
    type Target = Ref<T>;

    #[inline(always)]
    fn deref(&self) -> &Ref<T> {
        &self.0
    }
}

impl<T> PartialEq for Own<T> {
    #[inline(always)]
    fn eq(&self, other: &Own<T>) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Own<T> {}

impl<T> Hash for Own<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Debug for Own<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Own({:?})", self.0.oid())
    }
}

// SAFETY: transparent over a `Ref`, and described as one.
unsafe impl<T: Share> Share for Own<T> {
    fn describe(map: &mut TypeMap) {
        map.owned::<T>(ReferenceForm::One);
    }
}

// SAFETY: transparent over a `Ref`, so `None` is zero and nothing else changes.
unsafe impl<T: Share> Share for Option<Own<T>> {
    fn describe(map: &mut TypeMap) {
        map.owned::<T>(ReferenceForm::Maybe);
    }
}
