//! What has a form in bytes.

use crate::{Head, Tail, WireError, write_head};

/// A value with a form in bytes. Implement it by the derive [`Wire`](derive@crate::Wire).
pub trait Wire: Sized {
    /// The fixed part.
    type Head: Head;

    /// Bytes of the fixed part.
    const HEAD_LEN: usize = Self::Head::LEN;

    /// The fixed part of this value.
    ///
    /// # Panics
    /// When a list has 2^32 items or more.
    fn head(&self) -> Self::Head;

    /// Bytes of the part behind the head.
    fn tail_len(&self) -> usize;

    /// Appends the part behind the head.
    fn write_tail(&self, out: &mut Vec<u8>);

    /// The value with this head, whose tail begins `tail`.
    ///
    /// # Errors
    /// The bytes are not those of a value.
    fn read(head: &Self::Head, tail: &mut Tail<'_>) -> Result<Self, WireError>;

    /// Bytes of the whole value.
    #[inline]
    fn wire_len(&self) -> usize {
        Self::HEAD_LEN + self.tail_len()
    }

    /// Appends the whole value.
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        write_head(&self.head(), out);
        self.write_tail(out);
    }

    /// The bytes of the whole value.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.wire_len());
        self.write(&mut bytes);
        bytes
    }

    /// The value whose head and tail begin `bytes`.
    ///
    /// # Errors
    /// The bytes are not those of a value.
    #[inline]
    fn take(bytes: &mut Tail<'_>) -> Result<Self, WireError> {
        let head = bytes.head::<Self::Head>()?;
        Self::read(&head, bytes)
    }

    /// The value that is all of `bytes`.
    ///
    /// # Errors
    /// The bytes are not those of a value.
    #[inline]
    fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut tail = Tail::new(bytes);
        let value = Self::take(&mut tail)?;
        tail.end()?;
        Ok(value)
    }
}
