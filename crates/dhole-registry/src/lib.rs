//! Names of types and operations that another process of the same program understands.
//!
//! An address says nothing in another process. What each process of one program has alike is a
//! *table* that the linker made: [`put`] leaves an entry in it for every type that it is compiled
//! for, whether it ever runs or not, so nothing is registered and no order of calls matters. What
//! stands at a place of the table in one process stands there in all, and so the place, a small
//! number, is the name that goes on a wire.
//!
//! ```
//! use dhole_registry::{Ship, Shipped};
//!
//! /// Whatever can say its own size.
//! struct Sized<T>(std::marker::PhantomData<T>);
//! impl<T: 'static> Ship for Sized<T> {
//!     type Is = usize;
//!     const IS: &'static usize = &size_of::<T>();
//! }
//!
//! fn name_of<T: 'static>() -> Option<u32> {
//!     dhole_registry::put::<Sized<T>>();
//!     Shipped::of::<Sized<T>>().map(Shipped::place)
//! }
//!
//! if let Some(place) = name_of::<[u16; 3]>() {
//!     assert_eq!(Shipped::at(place)?.is::<usize>(), Some(&6)); // in any process of the program
//! }
//! assert!(Shipped::at(u32::MAX).is_err());
//! # Ok::<(), dhole_registry::NoEntry>(())
//! ```
//!
//! # What is relied on
//!
//! - An entry is four bytes in the link section `dhole_registry`: the distance to a function that
//!   describes what stands there. The section has the flag `R`, so linkers that drop what is not
//!   referred to keep it.
//! - The linker merges functions that are alike, and the compiler may write one entry several
//!   times. So nothing is told apart by address, but by [`TypeId`](std::any::TypeId), and of
//!   several entries any will do; the first is the one that [`Shipped::of`] answers.
//! - Two processes understand each other only if they run the same executable. Whoever connects
//!   them compares [`fingerprint`]s, and does better to compare build ids too.
//! - It holds in debug and release builds, with and without link-time optimisation
//!   (`tests/builds.rs` builds a program in each way and looks).
//!
//! Elsewhere than on Linux and the processors x86-64 and AArch64 there is no table: it is empty,
//! and nothing can be named.

mod carried;
mod hash;
mod stateless;
mod table;

pub use carried::put_carrying;
pub use hash::fnv1a;
pub use stateless::Stateless;
pub use table::{NoEntry, Shipped, all, fingerprint, put};

/// Something that can be named across processes.
pub trait Ship: 'static {
    /// What is known of it: a descriptor's type, which tells the kinds of entries apart.
    type Is: Sync + 'static;
    /// The descriptor, known when the program is compiled.
    const IS: &'static Self::Is;
}
