//! Accesses to single numbers that return an error where they cannot be made.

use std::sync::atomic::Ordering::{self, AcqRel, Release, SeqCst};
use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
};

use crate::access_error::{self, MemoryAccessError};
use crate::checked_access as checked;
use crate::number::{AtomicF32, AtomicF64};

mod sealed {
    pub trait Sealed {}
}

/// Loads and stores of numbers in raw memory that return an error where an ordinary access would
/// end the process: the minipage was freed, or the run has ended because a node is lost.
///
/// An access that the node may make costs what an ordinary one does: one instruction, and no call.
pub trait TryAccess: sealed::Sealed {
    /// The number.
    type Number: Copy;

    /// Loads the number.
    ///
    /// # Errors
    /// [`MemoryAccessError`]
    ///
    /// # Panics
    /// For an order that no load has ([`Release`], [`AcqRel`]).
    fn try_load(&self, order: Ordering) -> Result<Self::Number, MemoryAccessError>;

    /// Stores a number.
    ///
    /// # Errors
    /// [`MemoryAccessError`]; the number is not stored then.
    ///
    /// # Panics
    /// For an order that no store has ([`Acquire`](Ordering::Acquire), [`AcqRel`]).
    fn try_store(&self, number: Self::Number, order: Ordering) -> Result<(), MemoryAccessError>;
}

macro_rules! attempts {
    ($($atomic:ty: $number:ty as $bits:ty, $load:ident $store:ident $swap:ident,
        $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $atomic {}
        impl TryAccess for $atomic {
            type Number = $number;

            #[inline(always)]
            #[track_caller]
            fn try_load(&self, order: Ordering) -> Result<$number, MemoryAccessError> {
                assert!(!matches!(order, Release | AcqRel), "a load that is {order:?}");
                let at = std::ptr::from_ref(self).cast_mut().cast::<$bits>();
                // SAFETY: a borrowed atomic is mapped and aligned, and accessed as an atomic of its
                // size by all threads. Loads of this processor are acquires, and those of one order
                // with the stores below.
                let loaded = unsafe { checked::$load(at) };
                loaded.map($from).ok_or_else(access_error::take)
            }

            #[inline(always)]
            #[track_caller]
            fn try_store(&self, number: $number, order: Ordering) -> Result<(), MemoryAccessError> {
                let unfit = matches!(order, Ordering::Acquire | AcqRel);
                assert!(!unfit, "a store that is {order:?}");
                let at = std::ptr::from_ref(self).cast_mut().cast::<$bits>();
                let bits: $bits = $to(number);
                // SAFETY: as of the load. An atomic may be changed behind a shared reference.
                let made = unsafe {
                    match order {
                        SeqCst => checked::$swap(at, bits),
                        _ => checked::$store(at, bits),
                    }
                };
                made.then_some(()).ok_or_else(access_error::take)
            }
        }
    )*};
}
attempts! {
    AtomicU8: u8 as u8, load_8 store_8 swap_8, |it| it, |it| it;
    AtomicU16: u16 as u16, load_16 store_16 swap_16, |it| it, |it| it;
    AtomicU32: u32 as u32, load_32 store_32 swap_32, |it| it, |it| it;
    AtomicU64: u64 as u64, load_64 store_64 swap_64, |it| it, |it| it;
    AtomicI8: i8 as u8, load_8 store_8 swap_8, i8::cast_unsigned, u8::cast_signed;
    AtomicI16: i16 as u16, load_16 store_16 swap_16, i16::cast_unsigned, u16::cast_signed;
    AtomicI32: i32 as u32, load_32 store_32 swap_32, i32::cast_unsigned, u32::cast_signed;
    AtomicI64: i64 as u64, load_64 store_64 swap_64, i64::cast_unsigned, u64::cast_signed;
    AtomicF32: f32 as u32, load_32 store_32 swap_32, f32::to_bits, f32::from_bits;
    AtomicF64: f64 as u64, load_64 store_64 swap_64, f64::to_bits, f64::from_bits;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::{Acquire, Relaxed};

    #[test]
    fn numbers_of_each_size_go_in_and_out() {
        macro_rules! each {
            ($($atomic:ty: $first:expr, $second:expr;)*) => {$(
                let number = <$atomic>::default();
                for (value, order) in [($first, Relaxed), ($second, Release), ($first, SeqCst)] {
                    number.try_store(value, order).unwrap();
                    assert_eq!(number.load(Relaxed), value);
                    for order in [Relaxed, Acquire, SeqCst] {
                        assert_eq!(number.try_load(order).unwrap(), value);
                    }
                }
            )*};
        }
        each! {
            AtomicU8: 0xff, 1;
            AtomicU16: 0xfffe, 2;
            AtomicU32: u32::MAX, 3;
            AtomicU64: u64::MAX, 4;
            AtomicI8: -1, 5;
            AtomicI16: -2, 6;
            AtomicI32: i32::MIN, 7;
            AtomicI64: i64::MIN, 8;
            AtomicF32: -1.5, 1e30;
            AtomicF64: -2.5, 1e300;
        }
        // Its neighbours stay as they are.
        let bytes = [const { AtomicU8::new(9) }; 3];
        bytes[1].try_store(1, SeqCst).unwrap();
        bytes[1].try_store(2, Relaxed).unwrap();
        assert_eq!(bytes.map(AtomicU8::into_inner), [9, 2, 9]);
    }
}
