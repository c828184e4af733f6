//! The types that may be shared.

use std::marker::PhantomData;
use std::num::NonZero;

use crate::validity::LeafTest;

pub(crate) mod type_map;

use type_map::TypeMap;

/// The largest alignment that a shared type may have: a page.
pub const MAX_ALIGN: usize = 4096;

/// A type whose values may live in the shared object space. Implemented by
/// `#[derive(Share)]`, which proves what the trait promises; do not implement it by hand.
///
/// A shared value is plain data and references: numbers, `bool`, `char`, `NonZero`, enums without
/// fields, [`Ref`](crate::Ref), [`Own`](crate::Own), [`Refs`](crate::Refs), [`Row`](crate::Row),
/// [`Rows`](crate::Rows), [`Array`](crate::Array), [`Array2`](crate::Array2), and structs, tuples
/// and arrays of these.
///
/// ```
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share, Clone, Copy)]
/// struct Account {
///     balance: i64,
///     next: Option<dhole::Ref<Account>>,
/// }
/// ```
///
/// A type with a pointer in it cannot be shared:
///
/// ```compile_fail,E0277
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// struct Named { name: &'static str }
/// ```
///
/// nor one that owns memory, nor one with interior mutability:
///
/// ```compile_fail,E0277
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// struct List { items: Vec<u32> }
/// ```
/// ```compile_fail,E0277
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// struct Count { hits: std::cell::Cell<u32> }
/// ```
/// ```compile_fail,E0277
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// struct Count { hits: std::sync::atomic::AtomicU32 }
/// ```
///
/// nor one that must be dropped:
///
/// ```compile_fail,E0080
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// struct File { number: i32 }
/// impl Drop for File { fn drop(&mut self) {} }
/// ```
///
/// whatever the program calls `assert`:
///
/// ```compile_fail,E0080
/// # extern crate dhole_heap as dhole;
/// macro_rules! assert { ($($any:tt)*) => {} }
/// #[derive(dhole::Share)]
/// struct File { number: i32 }
/// impl Drop for File { fn drop(&mut self) {} }
/// ```
///
/// and whatever the derive's paths lead to in the program:
///
/// ```compile_fail,E0080
/// # extern crate dhole_heap as dhole;
/// extern crate self as core; // `::core` is this program
/// pub mod mem {
///     pub const fn needs_drop<T>() -> bool { false }
///     pub const fn align_of<T>() -> usize { 1 }
/// }
/// #[derive(dhole::Share)]
/// struct File { number: i32 }
/// impl Drop for File { fn drop(&mut self) {} }
/// #[macro_export]
/// macro_rules! assert { ($($any:tt)*) => {} }
/// # fn main() { dhole::TypeInfo::of::<File>(); }
/// ```
/// ```compile_fail,E0080
/// # extern crate dhole_heap as dhole;
/// mod __private {
///     pub use dhole::__private::{Share, TypeMap};
///     pub const MAX_ALIGN: usize = 1 << 20;
/// }
/// #[derive(dhole::Share)]
/// #[share(crate = "crate")]
/// #[repr(align(8192))]
/// struct Aligned { number: i32 }
/// # fn main() { dhole::TypeInfo::of::<Aligned>(); }
/// ```
///
/// nor an enum with fields, nor one with an alignment of its own, nor a union:
///
/// ```compile_fail
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// enum Shape { Circle(f64), Empty }
/// ```
/// ```compile_fail
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// #[repr(u8, align(8))]
/// enum Level { Low, High }
/// ```
/// ```compile_fail
/// # extern crate dhole_heap as dhole;
/// #[derive(dhole::Share)]
/// union Bits { float: f32, word: u32 }
/// ```
///
/// # Safety
/// [`describe`](Share::describe) must describe the type truly: every byte of every valid value
/// is either in a described field and initialised, or padding; every bit pattern that passes the
/// described tests, with references that the directory knows, is a valid value. The type has no
/// drop glue, no interior mutability and no pointers, and an alignment of at most 4,096 bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot live in the shared object space",
    label = "not a shared type",
    note = "shared types are numbers, `bool`, `char`, `NonZero`, enums without fields, `Ref`, \
            `Own`, `Refs`, `Row`, `Rows`, `Array`, `Array2`, `Object`, locks and their like, and \
            arrays, tuples and structs of these",
    note = "for a struct or an enum without fields of your own, add `#[derive(Share)]`; in place \
            of a pointer, a `Box` or a `Vec`, use a `Ref`, `Refs`, `Row` or `Array`"
)]
pub unsafe trait Share: Send + Sync + Sized + 'static {
    /// Adds the layout of the type to `map`.
    #[doc(hidden)]
    fn describe(map: &mut TypeMap);
}

/// A shared type that is never zero, so that an `Option` of it is shared too and takes no more
/// room. Implemented by `#[derive(Share)]` with `#[share(nullable)]` for a `#[repr(transparent)]`
/// struct around one; do not implement it by hand.
///
/// # Safety
/// The type is `NonZero` or transparent over it, and
/// [`describe_option`](Nullable::describe_option) describes its `Option` as
/// [`Share::describe`] must.
#[diagnostic::on_unimplemented(
    message = "`Option<{Self}>` cannot live in the shared object space",
    label = "an option of this has no bit pattern of its own for `None`",
    note = "options are shared of `Ref`, `Own`, `Refs`, `Lock` and its like, and `NonZero`; \
            for others put a `bool` beside the value, or a value that stands for none"
)]
pub unsafe trait Nullable: Share {
    /// Adds the layout of an `Option` of the type to `map`.
    #[doc(hidden)]
    fn describe_option(map: &mut TypeMap);
}

// SAFETY: what `describe_option` promises.
unsafe impl<T: Nullable> Share for Option<T> {
    fn describe(map: &mut TypeMap) {
        T::describe_option(map);
    }
}

macro_rules! scalars {
    ($($t:ty)*) => {$(
        // SAFETY: a number is `size_of` bytes without padding, of which every pattern is valid.
        unsafe impl Share for $t {
            fn describe(map: &mut TypeMap) {
                map.data(size_of::<$t>());
            }
        }
    )*};
}
scalars!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

macro_rules! non_zeros {
    ($($t:ty)*) => {$(
        // SAFETY: every pattern of the number is valid but zero.
        unsafe impl Share for NonZero<$t> {
            fn describe(map: &mut TypeMap) {
                map.leaf(LeafTest::NonZero(size_of::<$t>()));
            }
        }
        // SAFETY: the `None` of an optional `NonZero` is zero, so every pattern is valid; the
        // standard library guarantees the layout.
        unsafe impl Nullable for NonZero<$t> {
            fn describe_option(map: &mut TypeMap) {
                map.data(size_of::<$t>());
            }
        }
    )*};
}
non_zeros!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

// SAFETY: one byte, 0 or 1.
unsafe impl Share for bool {
    fn describe(map: &mut TypeMap) {
        map.leaf(LeafTest::Bool);
    }
}

// SAFETY: four bytes, a Unicode scalar value.
unsafe impl Share for char {
    fn describe(map: &mut TypeMap) {
        map.leaf(LeafTest::Char);
    }
}

// SAFETY: no bytes at all.
unsafe impl<T: Send + Sync + 'static> Share for PhantomData<T> {
    fn describe(_: &mut TypeMap) {}
}

// SAFETY: an array is its elements, `size_of` bytes apart, and nothing else.
unsafe impl<T: Share, const N: usize> Share for [T; N] {
    fn describe(map: &mut TypeMap) {
        map.array::<T>(N);
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt)*))*) => {$(
        // SAFETY: a tuple is its fields, at the offsets that the compiler says, and padding.
        unsafe impl<$($t: Share),*> Share for ($($t,)*) {
            fn describe(_map: &mut TypeMap) {
                $(_map.field::<$t>(std::mem::offset_of!(Self, $i));)*
            }
        }
    )*};
}
tuples! {
    ()
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
}
