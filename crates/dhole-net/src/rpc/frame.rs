//! What nodes say to each other: a head of a fixed size, and bytes behind it.

use super::RpcRefusal;
use super::memory::{Capability, KEY};

/// Bytes of a head: kind, what more it says, the number of the call.
pub(super) const HEAD: usize = 16;
/// Bytes that say which memory: key, offset, length.
pub(super) const PLACE: usize = KEY + 16;

/// Part of a memory, as a request names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub key: [u8; KEY],
    pub offset: u64,
    pub bytes: u64,
}

/// What a frame says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said<'a> {
    /// An answer is wanted.
    Call {
        procedure: u16,
        arguments: &'a [u8],
    },
    /// None is.
    Tell {
        procedure: u16,
        arguments: &'a [u8],
    },
    Answer(&'a [u8]),
    Refused(RpcRefusal),
    Fetch(Place),
    /// The last of a store is answered.
    Store {
        place: Place,
        last: bool,
        bytes: &'a [u8],
    },
}

const CALL: u8 = 1;
const TELL: u8 = 2;
const ANSWER: u8 = 3;
const REFUSED: u8 = 4;
const FETCH: u8 = 5;
const STORE: u8 = 6;

fn head(kind: u8, more: u16, call: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = kind;
    head[2..4].copy_from_slice(&more.to_le_bytes());
    head[8..].copy_from_slice(&call.to_le_bytes());
    head
}

pub(super) fn call(procedure: u16, call: u64) -> [u8; HEAD] {
    head(CALL, procedure, call)
}

pub(super) fn tell(procedure: u16) -> [u8; HEAD] {
    head(TELL, procedure, 0)
}

pub(super) fn answer(call: u64) -> [u8; HEAD] {
    head(ANSWER, 0, call)
}

pub(super) fn refused(call: u64, refusal: RpcRefusal) -> [u8; HEAD] {
    head(REFUSED, u16::from(refusal.code()), call)
}

pub(super) fn fetch(call: u64) -> [u8; HEAD] {
    head(FETCH, 0, call)
}

pub(super) fn store(call: u64, last: bool) -> [u8; HEAD] {
    head(STORE, u16::from(last), call)
}

impl Place {
    /// Part of what a capability is for.
    pub fn of(capability: &Capability, offset: usize, bytes: usize) -> Place {
        Place {
            key: *capability.key(),
            offset: offset as u64,
            bytes: bytes as u64,
        }
    }

    pub fn to_bytes(self) -> [u8; PLACE] {
        let mut bytes = [0; PLACE];
        bytes[..KEY].copy_from_slice(&self.key);
        bytes[KEY..KEY + 8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[KEY + 8..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<(Place, &[u8])> {
        let (key, rest) = bytes.split_first_chunk::<KEY>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let place = Place {
            key: *key,
            offset: u64::from_le_bytes(*offset),
            bytes: u64::from_le_bytes(*length),
        };
        Some((place, rest))
    }
}

/// The number of the call and what is said; nothing where no sound node says it.
pub(super) fn parse(frame: &[u8]) -> Option<(u64, Said<'_>)> {
    let (head, rest) = frame.split_first_chunk::<HEAD>()?;
    let more = u16::from_le_bytes([head[2], head[3]]);
    let mut call = [0; 8];
    call.copy_from_slice(&head[8..]);
    let said = match head[0] {
        CALL => Said::Call {
            procedure: more,
            arguments: rest,
        },
        TELL => Said::Tell {
            procedure: more,
            arguments: rest,
        },
        ANSWER => Said::Answer(rest),
        REFUSED if rest.is_empty() => {
            Said::Refused(RpcRefusal::from_code(u8::try_from(more).ok()?)?)
        }
        FETCH => {
            let (place, rest) = Place::read(rest)?;
            rest.is_empty().then_some(Said::Fetch(place))?
        }
        STORE => {
            let (place, bytes) = Place::read(rest)?;
            let fits = place.bytes == bytes.len() as u64 && more <= 1;
            let last = more == 1;
            fits.then_some(Said::Store { place, last, bytes })?
        }
        _ => return None,
    };
    Some((u64::from_le_bytes(call), said))
}
