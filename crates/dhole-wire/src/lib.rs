//! The wire format of dhole: values as bytes.
//!
//! A value is a *head* of a fixed number of bytes and a *tail* of a length that the head says. The
//! head holds all numbers, little-endian and unaligned, and of each list its count. The tail holds
//! the lists: the heads of all items one behind the other, then their tails.
//!
//! Each value has exactly one encoding. A reader refuses every other one: a flag that is neither 0
//! nor 1, an unknown variant, a count beyond the bytes that are left, bytes left behind the value.
//! It allocates no more than a small multiple of the bytes that are there, whatever they claim.
//!
//! ```
//! use dhole_wire::{Wire, WireError};
//!
//! #[derive(Wire, PartialEq, Debug)]
//! struct Ask {
//!     round: u32,
//!     wanted: Vec<u64>,
//!     keep: bool,
//! }
//!
//! let ask = Ask { round: 7, wanted: vec![1, 2], keep: true };
//! let bytes = ask.to_bytes();
//! assert_eq!(bytes.len(), ask.wire_len());
//! assert_eq!(bytes[..9], [7, 0, 0, 0, 2, 0, 0, 0, 1]);
//! assert_eq!(Ask::parse(&bytes), Ok(ask));
//! assert!(matches!(Ask::parse(&bytes[..20]), Err(WireError::Short { .. })));
//! ```
#![forbid(unsafe_code)]

extern crate self as dhole_wire;

mod head;
mod impls;
mod value;
mod varint;

pub use dhole_macros::{Message, Wire};
pub use head::{Head, Pair, write_head};
pub use impls::count;
pub use value::Wire;
pub use varint::{take_varint, varint_len, write_varint};

use thiserror::Error;

/// [`Wire`](trait@Wire) for programs that use the crate `dhole` alone.
pub mod program {
    pub use crate::value::Wire;
    pub use dhole_macros::WireOfProgram as Wire;
}

/// Why bytes are no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WireError {
    /// They end before the value does.
    #[error("{left} bytes are left where {needed} follow")]
    Short {
        /// Bytes that are left.
        left: usize,
        /// Bytes that the next part has.
        needed: usize,
    },
    /// There are more bytes than the value has.
    #[error("{rest} bytes are left behind the value")]
    Long {
        /// Bytes behind it.
        rest: usize,
    },
    /// An enum has no such variant.
    #[error("no variant {tag} of {what}")]
    Variant {
        /// The enum.
        what: &'static str,
        /// The number of the variant.
        tag: u8,
    },
    /// No value of the type is encoded so.
    #[error("{0}")]
    Value(&'static str),
}

/// Another form in bytes of values of the type `T`, for fields marked `#[wire(with = ..)]`. The
/// methods are those of [`Wire`].
pub trait WireAs<T> {
    /// The fixed part.
    type Head: Head;

    /// The fixed part of this value.
    fn head(value: &T) -> Self::Head;

    /// Bytes of the part behind the head.
    fn tail_len(value: &T) -> usize;

    /// Appends the part behind the head.
    fn write_tail(value: &T, out: &mut Vec<u8>);

    /// The value with this head, whose tail begins `tail`.
    ///
    /// # Errors
    /// [`WireError`]
    fn read(head: &Self::Head, tail: &mut Tail<'_>) -> Result<T, WireError>;
}

/// Bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a>(&'a [u8]);

impl<'a> Tail<'a> {
    /// All of these.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Tail<'a> {
        Tail(bytes)
    }

    /// The bytes that are left.
    #[inline]
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    #[inline]
    fn short(self, needed: usize) -> WireError {
        WireError::Short {
            left: self.0.len(),
            needed,
        }
    }

    /// Takes a head.
    ///
    /// # Errors
    /// [`WireError::Short`]
    #[inline]
    pub fn head<H: Head>(&mut self) -> Result<H, WireError> {
        self.bytes(H::LEN).map(H::of)
    }

    /// Takes so many heads, one behind the other.
    ///
    /// # Errors
    /// [`WireError::Short`]
    #[inline]
    pub fn heads<H: Head>(
        &mut self,
        count: usize,
    ) -> Result<impl ExactSizeIterator<Item = H> + use<'a, H>, WireError> {
        const { assert!(H::LEN > 0, "items without bytes are not counted by them") };
        let heads = self.bytes(H::LEN.saturating_mul(count))?;
        Ok(heads.chunks_exact(H::LEN).map(H::of))
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// [`WireError::Short`]
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(self.short(count))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// [`WireError::Long`]
    #[inline]
    pub fn end(self) -> Result<(), WireError> {
        match self.0.len() {
            0 => Ok(()),
            rest => Err(WireError::Long { rest }),
        }
    }
}
