//! What a frame looks like: a header, the runs of objects that the receiver has not been told of,
//! a message or what a process brings to a run, and a payload.

use thiserror::Error;

/// What a frame is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A message between protocols, its payload behind it; or only what goes before one.
    Message = 1,
    /// The next part of the payload of a message that follows.
    Payload = 2,
    /// A process begins a run, and what it brings.
    Hello = 3,
    /// Node 0's answer: what they all go by.
    Welcome = 4,
    /// A process has come to the end of a run, and what it brings from it.
    End = 5,
    /// Node 0's answer: what they all take with them.
    Verdict = 6,
    /// A process has that.
    Bye = 7,
    /// The next part of a message that follows.
    Part = 8,
}

/// The fixed part of every frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub kind: Kind,
    /// The number of the run.
    pub run: u32,
    /// Bytes that tell of objects.
    pub told: u32,
    /// Bytes of the message behind these; what is left is its payload.
    pub message: u32,
}

/// Bytes of a header.
pub(super) const HEADER: usize = 16;

const _: () = assert!(HEADER as u64 == dhole_protocol::Message::HEADER_BYTES);

/// A port must carry frames of so many bytes at least.
pub(super) const LEAST: usize = 1024;

/// A frame has at most so many bytes, even where the port carries longer ones: what is longer goes
/// in several. So no message is too long for a port, neither side keeps much that is half gone, and
/// whoever gets a long message hears often that its sender is alive.
pub(super) const MOST: usize = 2 << 20;

/// Why bytes are no frame.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum FrameError {
    /// There is no whole header.
    #[error("a frame of {bytes} bytes")]
    Short { bytes: usize },
    /// Its kind does not exist.
    #[error("a frame of the kind {kind}")]
    Kind { kind: u8 },
    /// Its parts are longer than it is.
    #[error("a frame of {bytes} bytes whose parts are {parts} bytes long")]
    Parts { bytes: usize, parts: u64 },
}

/// A frame's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame<'a> {
    pub header: Header,
    pub told: &'a [u8],
    pub message: &'a [u8],
    /// The message, and the payload behind it.
    pub body: &'a [u8],
    pub payload: &'a [u8],
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.run.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.told.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.message.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> Result<Header, FrameError> {
        let number = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(number)
        };
        let kind = match bytes[0] {
            1 => Kind::Message,
            2 => Kind::Payload,
            3 => Kind::Hello,
            4 => Kind::Welcome,
            5 => Kind::End,
            6 => Kind::Verdict,
            7 => Kind::Bye,
            8 => Kind::Part,
            kind => return Err(FrameError::Kind { kind }),
        };
        Ok(Header {
            kind,
            run: number(4),
            told: number(8),
            message: number(12),
        })
    }
}

impl<'a> Frame<'a> {
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let short = FrameError::Short { bytes: bytes.len() };
        let (header, rest) = bytes.split_first_chunk().ok_or(short)?;
        let header = Header::from_bytes(header)?;
        let parts = u64::from(header.told) + u64::from(header.message);
        let split = || {
            let (told, body) = rest.split_at_checked(header.told as usize)?;
            let (message, payload) = body.split_at_checked(header.message as usize)?;
            Some(Frame {
                header,
                told,
                message,
                body,
                payload,
            })
        };
        split().ok_or(FrameError::Parts {
            bytes: bytes.len(),
            parts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_apart_as_it_was_put_together() {
        let header = Header {
            kind: Kind::End,
            run: 70_000,
            told: 2,
            message: 3,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend(b"abcdefg");
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.header, header);
        assert_eq!(
            (frame.told, frame.message, frame.payload),
            (&b"ab"[..], &b"cde"[..], &b"fg"[..])
        );
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let header = Header {
            kind: Kind::Message,
            run: 1,
            told: u32::MAX,
            message: u32::MAX,
        };
        let bytes = header.to_bytes();
        assert!(matches!(
            Frame::parse(&bytes),
            Err(FrameError::Parts { .. })
        ));
        for end in 0..HEADER {
            assert!(matches!(
                Frame::parse(&bytes[..end]),
                Err(FrameError::Short { .. })
            ));
        }
        for kind in (0..=255).filter(|kind| !(1..=8).contains(kind)) {
            let mut bytes = bytes;
            bytes[0] = kind;
            assert_eq!(Frame::parse(&bytes), Err(FrameError::Kind { kind }));
        }
    }
}
