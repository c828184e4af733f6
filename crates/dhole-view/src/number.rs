//! The numbers of which raw memory is made, each with an atomic of the same bytes.

use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

use dhole_heap::Scalar;

mod sealed {
    pub trait Sealed {}
}

/// A number that raw memory holds: of 1, 2, 4 or 8 bytes. A program sees it as an atomic, for other
/// nodes may change it at any time.
pub trait SharedNumber: Scalar + sealed::Sealed {
    /// The atomic of as many bytes, of which every pattern is one.
    type Atomic: Sync + 'static;
}

macro_rules! numbers {
    ($($number:ty: $atomic:ty,)*) => {$(
        impl sealed::Sealed for $number {}
        impl SharedNumber for $number {
            type Atomic = $atomic;
        }
        const _: () = assert!(size_of::<$number>() == size_of::<$atomic>());
        const _: () = assert!(align_of::<$atomic>() == size_of::<$atomic>());
    )*};
}
numbers! {
    u8: AtomicU8,
    u16: AtomicU16,
    u32: AtomicU32,
    u64: AtomicU64,
    i8: AtomicI8,
    i16: AtomicI16,
    i32: AtomicI32,
    i64: AtomicI64,
    f32: AtomicF32,
    f64: AtomicF64,
}

macro_rules! floats {
    ($($(#[$doc:meta])* $name:ident: $float:ty, $bits:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name($bits);

        impl $name {
            /// The number.
            #[inline(always)]
            pub fn load(&self, order: Ordering) -> $float {
                <$float>::from_bits(self.0.load(order))
            }

            /// Makes it another one.
            #[inline(always)]
            pub fn store(&self, number: $float, order: Ordering) {
                self.0.store(number.to_bits(), order);
            }
        }
    )*};
}
floats! {
    /// An `f32` that other nodes may change at any time.
    AtomicF32: f32, AtomicU32;
    /// An `f64` that other nodes may change at any time.
    AtomicF64: f64, AtomicU64;
}
