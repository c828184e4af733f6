//! Functions that travel: named by their place in the linker's table.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use dhole_registry::{Ship, Shipped, Stateless, put_carrying};

/// A function that changes a value by another one, and that any process of the program knows by its
/// name. Made by [`combine!`](macro@crate::combine).
pub struct Combine<V> {
    place: Option<u32>,
    name: &'static str,
    apply: fn(&mut V, V),
}

impl<V> Clone for Combine<V> {
    fn clone(&self) -> Combine<V> {
        *self
    }
}

impl<V> Copy for Combine<V> {}

impl<V> fmt::Debug for Combine<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "combine!({})", self.name)
    }
}

/// What is done with a function.
type Using<'a, V> = dyn FnMut(&mut dyn FnMut(&mut V, V)) + 'a;

/// What the table says of a function.
pub(super) struct Combines<V> {
    lend: fn(Shipped, &mut Using<'_, V>) -> bool,
    of: PhantomData<fn(V)>,
}

impl<V: 'static> Combines<V> {
    /// Lends the function of this place in the table. Whether there is one for these values.
    pub fn lend(place: u32, using: &mut Using<'_, V>) -> bool {
        let Ok(shipped) = Shipped::at(place) else {
            return false;
        };
        let combines = shipped.is::<Combines<V>>();
        combines.is_some_and(|it| (it.lend)(shipped, using))
    }
}

/// A function of this type, for values `V`.
struct Of<F, V>(F, PhantomData<fn(V)>);

impl<F, V> Ship for Of<F, V>
where
    F: Fn(&mut V, V) + Copy + Send + Sync + 'static,
    V: 'static,
{
    type Is = Combines<V>;
    const IS: &'static Combines<V> = &Combines {
        lend: |shipped, using| match shipped.function::<F>() {
            Some(function) => {
                using(&mut |value, next| function(value, next));
                true
            }
            None => false,
        },
        of: PhantomData,
    };
}

impl<V: 'static> Combine<V> {
    /// What [`combine!`](macro@crate::combine) makes of a function that captures nothing.
    #[doc(hidden)]
    #[inline]
    pub fn of<F>(function: Stateless<F>, coerced: fn(&mut V, V)) -> Combine<V>
    where
        F: Fn(&mut V, V) + Copy + Send + Sync + 'static,
    {
        put_carrying::<Of<F, V>, F>(function);
        Combine {
            place: Shipped::of::<Of<F, V>>().map(Shipped::place),
            name: type_name::<F>(),
            apply: coerced,
        }
    }

    /// The name that goes on a wire; `None` where the linker makes no table.
    pub(super) fn place(self) -> Option<u32> {
        self.place
    }

    /// The name in errors.
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    #[inline]
    pub(super) fn apply(self, value: &mut V, next: V) {
        (self.apply)(value, next);
    }
}

/// Says what [`combine!`](macro@crate::combine) takes, so that the compiler knows the signature of
/// a closure.
#[doc(hidden)]
#[inline(always)]
pub fn combines<F, V>(function: F) -> F
where
    F: Fn(&mut V, V) + Copy + Send + Sync + 'static,
{
    function
}

/// A function `fn(&mut V, V)`, or such a closure that captures nothing, as something that travels
/// to other nodes: for [`DistMap::update_all`](crate::collections::DistMap::update_all).
///
/// ```
/// use dhole::combine;
///
/// fn longer(known: &mut String, next: String) {
///     if next.len() > known.len() {
///         *known = next;
///     }
/// }
/// let longest = combine!(longer);
/// let sum = combine!(|sum: &mut u64, more| *sum += more);
/// ```
///
/// What it would capture does not exist where it runs, so that is an error:
///
/// ```compile_fail,E0308
/// use dhole::combine;
///
/// let factor = 3;
/// let sum = combine!(move |sum: &mut u64, more| *sum += factor * more);
/// ```
#[macro_export]
macro_rules! combine {
    ($function:expr) => {
        match $crate::collections::combines($function) {
            function => {
                let coerced: fn(&mut _, _) = function;
                $crate::collections::Combine::of(
                    // SAFETY: `coerced` is `function`, coerced in the line above. Nothing of the
                    // program's is in this block.
                    unsafe { $crate::__private::Stateless::new(function, coerced) },
                    coerced,
                )
            }
        }
    };
}
