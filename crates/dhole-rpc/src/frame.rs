//! What nodes say to each other: a head of a fixed size, and bytes behind it.

use dhole_net::Incoming;

use super::RpcRefusal;
use super::place::{PLACE, Place};

/// Bytes of a head: kind, what more it says, the number of the call.
pub(super) const HEAD: usize = 16;
/// What a frame says, which is followed by as many bytes as there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// An answer is wanted. The arguments follow on the [head](HEAD).
    Call {
        procedure: u16,
    },
    /// None is.
    Tell {
        procedure: u16,
    },
    /// The answer follows on the head.
    Answer,
    Refused(RpcRefusal),
    Fetch(Place),
    /// The last of a store is answered. What is stored follows on the head and the
    /// [place](PLACE).
    Store {
        place: Place,
        last: bool,
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

/// The number of the call and what is said; nothing where no sound node says it.
pub(super) fn parse(frame: &mut Incoming<'_>) -> Option<(u64, Said)> {
    let behind_place = frame.len().checked_sub(HEAD + PLACE);
    let (head, rest) = frame.first(HEAD + PLACE).split_first_chunk::<HEAD>()?;
    let more = u16::from_le_bytes([head[2], head[3]]);
    let mut call = [0; 8];
    call.copy_from_slice(&head[8..]);
    let said = match head[0] {
        CALL => Said::Call { procedure: more },
        TELL => Said::Tell { procedure: more },
        ANSWER => Said::Answer,
        REFUSED if rest.is_empty() => {
            Said::Refused(RpcRefusal::from_code(u8::try_from(more).ok()?)?)
        }
        FETCH => {
            let place = Place::read(rest)?;
            (behind_place == Some(0)).then_some(Said::Fetch(place))?
        }
        STORE => {
            let place = Place::read(rest)?;
            let fits = behind_place.is_some_and(|bytes| bytes as u64 == place.bytes);
            let last = more == 1;
            (fits && more <= 1).then_some(Said::Store { place, last })?
        }
        _ => return None,
    };
    Some((u64::from_le_bytes(call), said))
}
