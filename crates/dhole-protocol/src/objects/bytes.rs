//! Arguments, results and states, as bytes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use dhole_wire::{Tail, Wire, WireError, count};

/// So many bytes lie in place: the arguments and the result of most calls, for which nothing need
/// be allocated then.
const FEW: usize = 22;

/// Arguments, results and states, as bytes that cost little to copy.
#[derive(Clone)]
pub struct Bytes(Kept);

#[derive(Clone)]
enum Kept {
    Few { length: u8, bytes: [u8; FEW] },
    Many(Arc<[u8]>),
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Few { length, bytes } => &bytes[..usize::from(*length).min(FEW)],
            Kept::Many(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(slice: &[u8]) -> Bytes {
        if slice.len() > FEW {
            return Bytes(Kept::Many(slice.into()));
        }
        let mut bytes = [0; FEW];
        copy_few(slice, &mut bytes);
        let length = slice.len() as u8;
        Bytes(Kept::Few { length, bytes })
    }
}

impl Bytes {
    /// Becomes these bytes. Few are written where they stay: what is put together elsewhere and
    /// moved there at once is waited for.
    #[inline]
    pub fn put(&mut self, slice: &[u8]) {
        match &mut self.0 {
            Kept::Few { length, bytes } if slice.len() <= FEW => {
                copy_few(slice, bytes);
                *length = slice.len() as u8;
            }
            _ => *self = Bytes::from(slice),
        }
    }
}

/// Copies the few bytes of `from` to the beginning of `to` by one or two copies of a known size
/// that may overlap: of an unknown size it would be a call that takes longer.
#[inline]
fn copy_few(from: &[u8], to: &mut [u8; FEW]) {
    fn ends<const N: usize>(from: &[u8], to: &mut [u8; FEW]) {
        let last = from.len() - N;
        to[..N].copy_from_slice(&from[..N]);
        to[last..last + N].copy_from_slice(&from[last..]);
    }
    match from.len() {
        0 => {}
        1 => to[0] = from[0],
        2..4 => ends::<2>(from, to),
        4..8 => ends::<4>(from, to),
        8..16 => ends::<8>(from, to),
        _ => ends::<16>(from, to),
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Bytes {
        Bytes::from(&bytes[..])
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::from(&[][..])
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Wire for Bytes {
    type Head = u32;

    #[inline]
    fn head(&self) -> u32 {
        count(self.len())
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    #[inline]
    fn read(head: &u32, tail: &mut Tail<'_>) -> Result<Bytes, WireError> {
        tail.bytes(*head as usize).map(Bytes::from)
    }
}

/// The first number of `bytes`, and what is behind it.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were_however_many() {
        for length in (0..=FEW + 1).chain([1000]) {
            let all: Vec<u8> = (0..length).map(|it| it as u8).collect();
            let bytes = Bytes::from(&all[..]);
            assert_eq!(*bytes, *all);
            let written = bytes.to_bytes();
            assert_eq!(Bytes::parse(&written), Ok(bytes));
            // The form that a list of bytes has.
            assert_eq!(written, all.to_bytes());
        }
    }

    #[test]
    fn bytes_become_others_where_they_are() {
        let lengths = [0, 3, FEW, 2, FEW + 1, 100, 1, 0];
        let mut bytes = Bytes::default();
        for (round, length) in lengths.into_iter().enumerate() {
            let all = vec![round as u8; length];
            bytes.put(&all);
            assert_eq!((&*bytes, &bytes), (&all[..], &Bytes::from(&all[..])));
        }
    }

    #[test]
    fn a_length_that_is_only_claimed_is_refused() {
        assert!(Bytes::parse(&[200, 0, 0, 0, 7]).is_err());
    }
}
