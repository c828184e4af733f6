//! How frames lie in a stream of bytes: four bytes that say how long it is, little-endian, then the
//! frame. One length that no frame has is the goodbye.

/// Bytes before each frame.
pub(crate) const HEADER: usize = 4;

/// What stands in place of a length when a peer leaves.
pub(crate) const GOODBYE: u32 = 0x8000_0000;

/// The largest frame that can be configured: far below [`GOODBYE`].
pub(crate) const LARGEST: usize = 1 << 30;

/// What begins at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// A frame; it ends `HEADER` and its length further on.
    Frame(&'a [u8]),
    /// The beginning of a frame that needs so many bytes in all, header included.
    Partial(usize),
    /// The peer leaves.
    Goodbye,
    /// A frame larger than any that is sent.
    TooLarge(u32),
}

/// Looks at the front of `bytes`, where no frame is larger than `largest`.
pub(crate) fn next(bytes: &[u8], largest: usize) -> Next<'_> {
    let Some((&header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Next::Partial(HEADER);
    };
    let length = u32::from_le_bytes(header);
    if length == GOODBYE {
        return Next::Goodbye;
    }
    match usize::try_from(length) {
        Ok(bytes) if bytes <= largest => match rest.get(..bytes) {
            Some(frame) => Next::Frame(frame),
            None => Next::Partial(HEADER + bytes),
        },
        _ => Next::TooLarge(length),
    }
}
