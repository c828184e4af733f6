//! Arguments that a caller lends to an operation: how slices of numbers travel, and how what comes
//! back is written into the caller's borrows.

use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::kind::Malformed;

/// A number whose slices travel as one copy of their bytes, little-endian.
pub trait Number: Copy + Default + 'static {
    /// Its bytes.
    const BYTES: usize;

    /// The bytes of these numbers, if they lie in memory as they travel.
    fn bytes_of(numbers: &[Self]) -> Option<&[u8]>;

    /// The same bytes, to be written.
    fn bytes_of_mut(numbers: &mut [Self]) -> Option<&mut [u8]>;

    /// Appends the bytes of a number.
    fn append(self, to: &mut Vec<u8>);

    /// The number of these bytes; zero where they are not as many as it has.
    fn of_bytes(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn bytes_of(numbers: &[Self]) -> Option<&[u8]> {
                cfg!(target_endian = "little").then(|| zerocopy::IntoBytes::as_bytes(numbers))
            }

            #[inline]
            fn bytes_of_mut(numbers: &mut [Self]) -> Option<&mut [u8]> {
                let bytes = zerocopy::IntoBytes::as_mut_bytes(numbers);
                cfg!(target_endian = "little").then_some(bytes)
            }

            #[inline]
            fn append(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn of_bytes(bytes: &[u8]) -> Self {
                bytes.try_into().map_or(Self::default(), Self::from_le_bytes)
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

/// A slice of numbers on its way: how many bytes they have, and the bytes.
pub struct Numbers<S>(pub S);

impl<S: Deref<Target = [N]>, N: Number> Serialize for Numbers<S> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        if let Some(bytes) = N::bytes_of(&self.0) {
            return to.serialize_bytes(bytes);
        }
        let mut bytes = Vec::with_capacity(N::BYTES * self.0.len());
        for number in self.0.iter() {
            number.append(&mut bytes);
        }
        to.serialize_bytes(&bytes)
    }
}

impl<'de, N: Number> Deserialize<'de> for Numbers<Vec<N>> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let received = NumberBytes::<N>::deserialize(from)?;
        let mut numbers = vec![N::default(); received.len()];
        received.put(&mut numbers);
        Ok(Numbers(numbers))
    }
}

/// The bytes of numbers, where they arrived.
pub struct NumberBytes<'a, N> {
    bytes: &'a [u8],
    of: PhantomData<fn() -> N>,
}

impl<N: Number> NumberBytes<'_, N> {
    /// How many numbers there are.
    #[expect(clippy::len_without_is_empty, reason = "only the length is compared")]
    pub fn len(&self) -> usize {
        self.bytes.len() / N::BYTES
    }

    /// Copies the numbers into the caller's borrow, in one piece where they lie as they travel.
    pub fn put(self, to: &mut [N]) {
        let count = to.len().min(self.len());
        let (to, from) = (&mut to[..count], &self.bytes[..count * N::BYTES]);
        if let Some(bytes) = N::bytes_of_mut(to) {
            return bytes.copy_from_slice(from);
        }
        for (to, number) in to.iter_mut().zip(from.chunks_exact(N::BYTES)) {
            *to = N::of_bytes(number);
        }
    }
}

impl<'de: 'a, 'a, N: Number> Deserialize<'de> for NumberBytes<'a, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(from)?;
        let of = PhantomData;
        if !bytes.len().is_multiple_of(N::BYTES) {
            return Err(D::Error::custom("bytes of numbers that are cut short"));
        }
        Ok(NumberBytes { bytes, of })
    }
}

/// A slice whose numbers come back, and go to no object: its length travels.
pub struct Zeros<S>(pub S);

/// The most bytes of an `#[out]`: a request of a few bytes must not make its receiver keep more.
const MOST_OUT_BYTES: usize = 64 << 20;

/// Tests that an `#[out]` is not too long, before room is made for it.
///
/// # Errors
/// [`Malformed`], which names the argument.
pub fn check_out<N: Number>(argument: &str, length: usize) -> Result<(), Malformed> {
    if is_bounded::<N>(length) {
        return Ok(());
    }
    let cause = format!(
        "`{argument}`, an `#[out]` of {length} numbers, has more than {MOST_OUT_BYTES} bytes, the \
         most where the object is elsewhere: ask for parts of it"
    );
    Err(Malformed {
        what: "the arguments",
        cause: cause.into(),
    })
}

fn is_bounded<N: Number>(length: usize) -> bool {
    let bytes = length.checked_mul(N::BYTES);
    bytes.is_some_and(|bytes| bytes <= MOST_OUT_BYTES)
}

impl<S: Deref<Target = [N]>, N: Number> Serialize for Zeros<S> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        to.serialize_u64(self.0.len() as u64)
    }
}

impl<'de, N: Number> Deserialize<'de> for Zeros<Vec<N>> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let length = usize::try_from(u64::deserialize(from)?);
        let length = length.ok().filter(|it| is_bounded::<N>(*it));
        let length = length.ok_or_else(|| D::Error::custom("an `#[out]` of too many numbers"))?;
        Ok(Zeros(vec![N::default(); length]))
    }
}

/// What an operation sees of an `#[out]` where the object is its caller's: zeros, as elsewhere.
#[inline]
pub fn zeroed<N: Number>(numbers: &mut [N]) -> &mut [N] {
    numbers.fill(N::default());
    numbers
}

/// Tests that as many elements came back as the caller lent.
///
/// # Errors
/// [`Malformed`], which names the argument.
pub fn check_length(argument: &str, lent: usize, received: usize) -> Result<(), Malformed> {
    if lent == received {
        return Ok(());
    }
    let elements = dhole_model::Counted(lent as u64, "element", "elements");
    let cause = format!("`{argument}` has {elements}, and {received} came back");
    Err(Malformed {
        what: "the result",
        cause: cause.into(),
    })
}

/// Moves the elements that came back into the caller's borrow.
pub fn put<T>(to: &mut [T], received: Vec<T>) {
    for (to, element) in to.iter_mut().zip(received) {
        *to = element;
    }
}

/// Stands for borrows that come back with the result.
pub struct Borrows<'a>(PhantomData<&'a mut ()>);

/// What a caller may go on with before the operation is over. Borrows that come back are not.
#[diagnostic::on_unimplemented(
    message = "an operation that gives something back in its arguments cannot be started",
    label = "its arguments are borrowed until it is over",
    note = "call it without `start_`, or have it return what it gives back"
)]
pub trait GoesOn {}
