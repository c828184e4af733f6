//! Entries of the table that carry a function.

use std::any::TypeId;

use crate::table::section;
use crate::{Ship, Shipped, Stateless};

/// As [`put`](crate::put), of something that carries a function: whoever finds it in the table, in
/// whatever process of the program, has the [function](Shipped::function).
#[inline(always)]
pub fn put_carrying<S: Ship, F: Copy + Send + Sync + 'static>(function: Stateless<F>) {
    section::put_carrying::<S, F>(function);
}

impl Shipped {
    /// The function that this carries, if it is of this type.
    pub fn function<F: Copy + Send + Sync + 'static>(self) -> Option<F> {
        if self.carries() != Some(TypeId::of::<F>()) || size_of::<F>() != 0 {
            return None;
        }
        // SAFETY: the type has no size, so there are no bytes to be read, and a dangling pointer
        // that is aligned will do. An entry that carries `F` is made of a `Stateless<F>`, a type
        // that proves that `F` is a function which captures nothing. So the type has a value
        // wherever the program runs, and one is as good as another.
        Some(unsafe { std::ptr::NonNull::<F>::dangling().read() })
    }
}
