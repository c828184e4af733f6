//! Functions that have no state, and so need not be sent: their type says all.

use std::any::TypeId;

use crate::table::section;
use crate::{Ship, Shipped};

/// As [`put`](crate::put), of something that carries a function: whoever finds it in the table, in
/// whatever process of the program, has the [function](Shipped::function). A part of the macro
/// `dhole::op!`, and of nothing else.
///
/// `coerced` shows that the function captures nothing, which a size of zero does not: a closure may
/// capture a value that has no size. But it coerces to a function pointer only if it captures
/// nothing. Whoever calls this makes both of one expression; the macro `dhole::op!` does.
#[doc(hidden)]
#[inline(always)]
pub fn put_carrying<S: Ship, F: Copy + Send + Sync + 'static, P: Copy>(_function: &F, _coerced: P) {
    const {
        assert!(
            size_of::<F>() == 0,
            "a function that is to travel has no state"
        );
    }
    section::put_carrying::<S, F>();
}

impl Shipped {
    /// The function that this carries, if it is of this type.
    pub fn function<F: Copy + Send + Sync + 'static>(self) -> Option<F> {
        if self.carries() != Some(TypeId::of::<F>()) || size_of::<F>() != 0 {
            return None;
        }
        // SAFETY: the type has no size, so there are no bytes to be read, and a dangling pointer
        // that is aligned will do. Only what `put_carrying` put here says that it carries
        // something, and the macro that calls it made the function and a function pointer of one
        // expression, which only what captures nothing can be made. So the type has a value
        // wherever the program runs, and one is as good as another: it stands for nothing else.
        Some(unsafe { std::ptr::NonNull::<F>::dangling().read() })
    }
}
