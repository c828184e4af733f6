//! Elements of arrays that are combined with updates: sums, minima, maxima, bits.

use dhole_model::{Elements, Oid};

use crate::array_store::{ElementsRefusal, ElementsRefused, Refusable};
use crate::heap::Heap;
use crate::{ArrayMiss, HeapMut, Scalar, TypeInfo};

/// How an element and an update become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// The sum; of integers the wrapping one.
    Add,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The bits of both; of integers alone.
    Or,
}

impl Operator {
    const ALL: [Operator; 4] = [Operator::Add, Operator::Min, Operator::Max, Operator::Or];
}

mod sealed {
    use super::Operator;

    pub trait Combine: Copy {
        /// Its number among the types.
        const NUMBER: u8;
        fn bits(self) -> u64;
        fn of_bits(bits: u64) -> Self;
        /// `None` where the type has no such operator.
        fn combine(self, operator: Operator, other: Self) -> Option<Self>;
        /// The number that leaves each other as it is.
        fn identity(operator: Operator) -> Self;
    }
}

use sealed::Combine;

/// A number of up to 8 bytes, which updates of arrays have:
/// [`Array::add_all`](crate::Array::add_all).
pub trait Combinable: Scalar + Combine {}

/// An integer of up to 8 bytes: what has bits for [`Array::or_all`](crate::Array::or_all).
pub trait Bits: Combinable {}

macro_rules! integers {
    ($($number:literal $t:ty as $unsigned:ty;)*) => {$(
        impl Combine for $t {
            const NUMBER: u8 = $number;

            #[inline(always)]
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> $t {
                bits as $t
            }

            #[inline(always)]
            fn combine(self, operator: Operator, other: $t) -> Option<$t> {
                Some(match operator {
                    Operator::Add => self.wrapping_add(other),
                    Operator::Min => self.min(other),
                    Operator::Max => self.max(other),
                    Operator::Or => self | other,
                })
            }

            #[inline(always)]
            fn identity(operator: Operator) -> $t {
                match operator {
                    Operator::Add | Operator::Or => 0,
                    Operator::Min => <$t>::MAX,
                    Operator::Max => <$t>::MIN,
                }
            }
        }
        impl Combinable for $t {}
        impl Bits for $t {}
    )*};
}
integers! {
    0 u8 as u8;
    1 u16 as u16;
    2 u32 as u32;
    3 u64 as u64;
    4 usize as usize;
    5 i8 as u8;
    6 i16 as u16;
    7 i32 as u32;
    8 i64 as u64;
    9 isize as usize;
}

macro_rules! floats {
    ($($number:literal $t:ty;)*) => {$(
        impl Combine for $t {
            const NUMBER: u8 = $number;

            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> $t {
                <$t>::from_bits(bits as _)
            }

            #[inline(always)]
            fn combine(self, operator: Operator, other: $t) -> Option<$t> {
                match operator {
                    Operator::Add => Some(self + other),
                    Operator::Min => Some(self.min(other)),
                    Operator::Max => Some(self.max(other)),
                    Operator::Or => None,
                }
            }

            #[inline(always)]
            fn identity(operator: Operator) -> $t {
                match operator {
                    // Added to 0.0 too it leaves the sign.
                    Operator::Add | Operator::Or => -0.0,
                    // The smaller and the larger one of a number and no number is the number.
                    Operator::Min | Operator::Max => <$t>::NAN,
                }
            }
        }
        impl Combinable for $t {}
    )*};
}
floats! {
    10 f32;
    11 f64;
}

/// Types with numbers.
const TYPES: u8 = 12;

/// An operator on numbers of a type, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Combining(u8);

impl Combining {
    /// This operator on numbers of the type.
    pub fn of<T: Combinable>(operator: Operator) -> Combining {
        Combining(operator as u8 * TYPES + T::NUMBER)
    }

    /// As it travels.
    pub fn number(self) -> u8 {
        self.0
    }

    fn operator(self) -> Option<Operator> {
        Operator::ALL.get(usize::from(self.0 / TYPES)).copied()
    }

    /// The update that leaves each element as it is, as bits.
    pub fn identity<T: Combinable>(operator: Operator) -> u64 {
        T::identity(operator).bits()
    }

    /// One update in the place of two, as bits.
    #[inline(always)]
    pub fn merge<T: Combinable>(operator: Operator, one: u64, other: u64) -> u64 {
        let merged = T::of_bits(one).combine(operator, T::of_bits(other));
        merged.map_or(one, T::bits)
    }
}

/// The bits of an update.
pub fn bits_of<T: Combinable>(value: T) -> u64 {
    value.bits()
}

/// The holder of a token whose engine brings updates to the owners of elements: the engine's
/// worker. Programs neither implement nor call it.
pub trait Combines<'id>: crate::Access<'id> {
    /// Gathers updates of elements of the array that `all` names, all of which there are, for the
    /// next synchronisation.
    ///
    /// # Errors
    /// Why the array is not combined with updates. None is gathered then.
    #[doc(hidden)]
    fn combine_elements<T: Combinable>(
        &mut self,
        all: &ArrayMiss,
        operator: Operator,
        updates: (&[usize], &[T]),
    ) -> Result<(), Self::Error>;
}

impl HeapMut<'_> {
    /// Combines elements, which are valid here and may be written, with updates: places in
    /// ascending order, and bits.
    ///
    /// # Errors
    /// [`ElementsRefused`] outside of an exclusive call, where the array is of another type, or
    /// where it has no such elements; nothing was written.
    pub fn combine_elements(
        &mut self,
        array: Oid,
        combining: u8,
        updates: &[(u64, u64)],
    ) -> Result<(), ElementsRefused> {
        let [Some((first, _)), Some((last, _))] = [updates.first(), updates.last()] else {
            return Ok(());
        };
        let elements = Elements::new(array, *first..last.saturating_add(1));
        self.refusable("combining", elements, |heap| {
            let operator = Combining(combining).operator();
            let operator = operator.ok_or(ElementsRefusal::NoOperator)?;
            let to = (elements, operator, updates);
            match combining % TYPES {
                u8::NUMBER => heap.combine::<u8>(to),
                u16::NUMBER => heap.combine::<u16>(to),
                u32::NUMBER => heap.combine::<u32>(to),
                u64::NUMBER => heap.combine::<u64>(to),
                usize::NUMBER => heap.combine::<usize>(to),
                i8::NUMBER => heap.combine::<i8>(to),
                i16::NUMBER => heap.combine::<i16>(to),
                i32::NUMBER => heap.combine::<i32>(to),
                i64::NUMBER => heap.combine::<i64>(to),
                isize::NUMBER => heap.combine::<isize>(to),
                f32::NUMBER => heap.combine::<f32>(to),
                _ => heap.combine::<f64>(to),
            }
        })
    }
}

impl Heap {
    fn combine<T: Combinable>(
        &mut self,
        (elements, operator, updates): (Elements, Operator, &[(u64, u64)]),
    ) -> Refusable<()> {
        self.exclusive_call()?;
        let bound = self.array(elements)?.binding;
        let taken_for = TypeInfo::of::<T>();
        if bound.info.type_id != taken_for.type_id {
            return Err(bound.clash(elements.array, taken_for, bound.len).into());
        }
        let is_there = |(place, _): &(u64, u64)| elements.range().contains(place);
        if !updates.iter().all(is_there) {
            return Err(ElementsRefusal::Beyond(bound.len));
        }
        if self.is_paged() {
            let pages = self.pages_of_elements(elements)?;
            if !self.are_pages_writable(pages) {
                return Err(ElementsRefusal::Absent);
            }
            self.note_array_writes(elements);
        }
        self.unpublish_elements(elements);
        let first = self.span(elements).0.cast::<T>();
        for &(place, bits) in updates {
            // SAFETY: `array` has found the elements from the first to the last, and the place is
            // one of theirs, as was just tested; they are of type `T`, by the test above.
            let element = unsafe { first.add((place - elements.first) as usize) };
            // SAFETY: the storage of an array of numbers is initialised, and any bits are a number.
            // It is an exclusive call, so no reference to any object of this node lives.
            let value = unsafe { element.read() };
            let value = value.combine(operator, T::of_bits(bits));
            let value = value.ok_or(ElementsRefusal::NoOperator)?;
            // SAFETY: as above.
            unsafe { element.write(value) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves<T: Combinable>(operators: &[Operator], numbers: &[T]) {
        for operator in operators {
            let identity = Combining::identity::<T>(*operator);
            for number in numbers {
                let merge = Combining::merge::<T>;
                assert_eq!(merge(*operator, identity, number.bits()), number.bits());
                assert_eq!(merge(*operator, number.bits(), identity), number.bits());
            }
        }
    }

    #[test]
    fn the_identity_of_an_operator_leaves_each_number_as_it_is() {
        leaves(&Operator::ALL, &[u8::MIN, 1, u8::MAX]);
        leaves(&Operator::ALL, &[u64::MIN, 1, u64::MAX]);
        leaves(&Operator::ALL, &[i16::MIN, -1, 0, i16::MAX]);
        leaves(&Operator::ALL, &[i64::MIN, -1, 0, i64::MAX]);
        let floats = &Operator::ALL[..3];
        leaves(
            floats,
            &[
                0.0,
                -0.0,
                1.5,
                f32::MIN,
                f32::MAX,
                f32::INFINITY,
                f32::NEG_INFINITY,
            ],
        );
        leaves(
            floats,
            &[
                0.0,
                -0.0,
                1.5,
                f64::MIN,
                f64::MAX,
                f64::INFINITY,
                f64::NEG_INFINITY,
            ],
        );
    }
}
