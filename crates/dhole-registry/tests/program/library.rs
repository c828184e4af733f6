//! A crate between the program and the table, as dhole is one.

use std::marker::PhantomData;

use dhole_registry::{Ship, Shipped};

/// An operation on `T`, which is told apart by its type alone.
pub struct Operation<T, F>(PhantomData<fn(T, F)>);

/// What is known of an operation.
pub struct Does(pub fn(u64) -> u64);

/// Something that is done to a number.
pub trait Act: 'static {
    fn act(number: u64) -> u64;
}

impl<T: 'static, F: Act> Ship for Operation<T, F> {
    type Is = Does;
    const IS: &'static Does = &Does(F::act);
}

/// Makes `F` on `T`s something that can be named.
#[inline]
pub fn name<T: 'static, F: Act>() -> Option<u32> {
    dhole_registry::put::<Operation<T, F>>();
    Shipped::of::<Operation<T, F>>().map(Shipped::place)
}
