//! Functions that travel: named by their place in the linker's table.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use dhole_protocol::objects::Bytes;
use dhole_registry::{Ship, Shipped, Stateless, put_carrying};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::object::{Malformed, decode, encode};
use crate::worker::Worker;

/// A function that takes a worker and an argument, and that any process of the program knows by its
/// name. Made by [`op!`](macro@crate::op), which proves that argument and result travel.
pub struct Op<A, R> {
    place: Option<u32>,
    name: &'static str,
    /// The argument as bytes.
    pub(super) encode: fn(&A) -> std::result::Result<Bytes, Malformed>,
    /// The result, of its bytes.
    pub(super) decode: Decode<R>,
}

/// What makes a result of its bytes.
pub(super) type Decode<R> = fn(&[u8]) -> std::result::Result<R, Malformed>;

impl<A, R> Clone for Op<A, R> {
    fn clone(&self) -> Op<A, R> {
        *self
    }
}

impl<A, R> Copy for Op<A, R> {}

impl<A, R> fmt::Debug for Op<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op!({})", self.name)
    }
}

/// What the table says of a function.
pub(crate) struct Runs {
    run: fn(Shipped, &mut Worker<'_>, &[u8]) -> Result<Bytes>,
}

impl Runs {
    /// Runs the function of this place in the table.
    pub fn run(what: u32, w: &mut Worker<'_>, arguments: &[u8]) -> Result<Bytes> {
        let shipped = Shipped::at(what).map_err(|none| Error::program(none.to_string()))?;
        let runs = shipped.is::<Runs>();
        let not_one = || Error::program(format!("{shipped:?} is not a function to be run"));
        (runs.ok_or_else(not_one)?.run)(shipped, w, arguments)
    }
}

/// A function of this type, from `A` to `R`.
struct Of<F, A, R>(F, PhantomData<fn(A) -> R>);

impl<F, A, R> Ship for Of<F, A, R>
where
    F: for<'w, 'id> Fn(&'w mut Worker<'id>, A) -> Result<R> + Copy + Send + Sync + 'static,
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    type Is = Runs;
    const IS: &'static Runs = &Runs {
        run: |shipped, w, arguments| {
            let function = shipped.function::<F>();
            let function = function.ok_or_else(|| Error::program("it carries no function"))?;
            let arguments = decode("the arguments", arguments).map_err(Error::program)?;
            let result = function(w, arguments)?;
            encode("the result", &result).map_err(Error::program)
        },
    };
}

impl<A, R> Op<A, R>
where
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    /// What [`op!`](macro@crate::op) makes of a function that captures nothing.
    #[doc(hidden)]
    #[inline]
    pub fn of<F>(function: Stateless<F>) -> Op<A, R>
    where
        F: for<'w, 'id> Fn(&'w mut Worker<'id>, A) -> Result<R> + Copy + Send + Sync + 'static,
    {
        put_carrying::<Of<F, A, R>, F>(function);
        Op {
            place: Shipped::of::<Of<F, A, R>>().map(Shipped::place),
            name: type_name::<F>(),
            encode: |arguments| encode("the arguments", arguments),
            decode: |result| decode("the result", result),
        }
    }
}

impl<A, R> Op<A, R> {
    /// The name that goes on a wire; `None` where the linker makes no table.
    pub(super) fn place(self) -> Option<u32> {
        self.place
    }

    /// The name in reports.
    pub(super) fn name(self) -> &'static str {
        self.name
    }
}

/// Says what [`op!`](macro@crate::op) takes, so that the compiler knows the signature of a closure.
#[doc(hidden)]
#[inline(always)]
pub fn function<F, A, R>(function: F) -> F
where
    F: for<'w, 'id> Fn(&'w mut Worker<'id>, A) -> Result<R> + Copy + Send + Sync + 'static,
{
    function
}

/// A function, or a closure that captures nothing, as something that travels to other nodes: for
/// [`Worker::spawn`](crate::Worker::spawn). It takes the worker of the node on which it runs and
/// one argument, and returns a [`Result`](crate::Result); argument and result go by value (serde):
/// a `String` in place of a `&str`, a tuple in place of several arguments.
///
/// ```
/// # use dhole_node::{Result, Worker, op};
/// fn double(_w: &mut Worker<'_>, n: u64) -> Result<u64> {
///     Ok(2 * n)
/// }
/// let doubles = op!(double);
/// let halves = op!(|_w, n: u64| Ok(n / 2));
/// ```
///
/// What it would capture does not exist where it runs, so that is an error:
///
/// ```compile_fail,E0308
/// # use dhole_node::op;
/// let factor = 3;
/// let times = op!(move |_w, n: u64| Ok(factor * n));
/// ```
///
/// even if it takes no room:
///
/// ```compile_fail,E0308
/// # use dhole_node::op;
/// let nothing = ();
/// let times = op!(move |_w, n: u64| { let () = nothing; Ok(n) });
/// ```
///
/// The function is no place for what only `unsafe` code may do:
///
/// ```compile_fail,E0133
/// # use dhole_node::{op, Result, Worker};
/// # unsafe fn made() -> fn(&mut Worker<'_>, u64) -> Result<u64> { |_, n| Ok(n) }
/// let unsound = op!({ made(); |_w, n: u64| Ok(n) });
/// ```
///
/// What cannot be written as bytes is an error too:
///
/// ```compile_fail,E0277
/// # use dhole_node::op;
/// let starts = op!(|_w, n: std::time::Instant| Ok(0_u64));
/// ```
#[macro_export]
macro_rules! op {
    ($function:expr) => {
        match $crate::__private::function($function) {
            function => {
                let coerced: for<'w, 'id> fn(&'w mut $crate::Worker<'id>, _) -> $crate::Result<_> =
                    function;
                // SAFETY: `coerced` is `function`, coerced in the line above. Nothing of the
                // program's is in this block.
                $crate::Op::of(unsafe { $crate::__private::Stateless::new(function, coerced) })
            }
        }
    };
}
