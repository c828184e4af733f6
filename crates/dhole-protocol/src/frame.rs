//! Messages of parts, as the machines carry them: bytes that only their part reads. This is where
//! the parts are registered.

use std::fmt;

use dhole_model::MessageKind;
use dhole_part::{NodePart, PartMessage};
use dhole_wire::{Head, Tail, Wire, WireError};
use smallvec::SmallVec;

use crate::memory::Millipage;
use crate::memory::sync::ThreadSync;

/// The parts, by their numbers.
const PARTS: [Registered; 2] = [
    Registered::of::<Millipage>(),
    Registered::of::<ThreadSync>(),
];

/// The first byte of the frames of the first part. Those of the others follow.
const FIRST: u8 = 47;

/// A message of a part.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    part: u8,
    /// The message in wire form.
    bytes: SmallVec<[u8; 32]>,
}

/// A part, as the frames of all parts know it.
#[derive(Clone, Copy)]
struct Registered {
    number: u8,
    kind: fn(&[u8]) -> Result<MessageKind, WireError>,
    debug: fn(&[u8], &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl Registered {
    const fn of<P: NodePart>() -> Registered {
        Registered {
            number: P::TAG,
            kind: |bytes| P::Message::parse(bytes).map(|message| message.kind()),
            debug: |bytes, f| match P::Message::parse(bytes) {
                Ok(message) => fmt::Debug::fmt(&message, f),
                Err(error) => write!(f, "{error}"),
            },
        }
    }
}

const _: () = {
    let mut number = 0;
    while number < PARTS.len() {
        assert!(PARTS[number].number as usize == number);
        number += 1;
    }
};

impl Frame {
    /// The frame of a message.
    pub fn of<P: NodePart>(message: &P::Message) -> Frame {
        let mut bytes = SmallVec::new();
        bytes.resize(P::Message::HEAD_LEN, 0);
        message.head().put(&mut bytes);
        if message.tail_len() > 0 {
            let mut tail = Vec::with_capacity(message.tail_len());
            message.write_tail(&mut tail);
            bytes.extend_from_slice(&tail);
        }
        let part = P::TAG;
        Frame { part, bytes }
    }

    /// The number of the part, and the bytes of its message, where `message` is one of a part.
    pub fn split(message: &[u8]) -> Option<(u8, &[u8])> {
        let (first, bytes) = message.split_first()?;
        let part = first.checked_sub(FIRST)?;
        (usize::from(part) < PARTS.len()).then_some((part, bytes))
    }

    /// The number of the part.
    pub fn part(&self) -> u8 {
        self.part
    }

    /// The bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The message, if it is one of this part.
    pub fn message<P: NodePart>(&self) -> Option<P::Message> {
        let is_its = self.part == P::TAG;
        is_its
            .then(|| P::Message::parse(&self.bytes).ok())
            .flatten()
    }

    /// What the message is counted as.
    pub(crate) fn kind(&self) -> MessageKind {
        let kind = (PARTS[usize::from(self.part)].kind)(&self.bytes);
        kind.expect("a frame is made of a message, or read as one")
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (PARTS[usize::from(self.part)].debug)(&self.bytes, f)
    }
}

impl Wire for Frame {
    type Head = u8;

    #[inline]
    fn head(&self) -> u8 {
        self.part
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    fn read(part: &u8, tail: &mut Tail<'_>) -> Result<Frame, WireError> {
        let bytes = tail.bytes(tail.rest().len())?;
        (PARTS[usize::from(*part)].kind)(bytes)?;
        Ok(Frame {
            part: *part,
            bytes: bytes.into(),
        })
    }
}
