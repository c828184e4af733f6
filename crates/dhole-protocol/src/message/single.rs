//! Fetches of one object, and replies that bring one, which are most: their bytes are whole words,
//! so that neither they nor the object behind them are put together piece by piece.

use dhole_model::{NodeId, Oid, Version};
use smallvec::smallvec;

use super::{Message, Sent, Wanted};
use crate::objects::bare::number;

/// How they begin: no other message's bytes do, for these are numbers that are written longer than
/// need be.
const FETCH: [u8; 2] = [0x82, 0];
const REPLY: [u8; 2] = [0x83, 0];

/// Bytes of such a message, without its payload.
pub const BYTES: usize = 32;

/// A message of one object, as it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Single {
    /// A [`Message::Fetch`].
    Fetch {
        /// The asker's round.
        round: u32,
        /// The object.
        wanted: Wanted,
        /// How many of the objects nobody waits for.
        beside: u16,
    },
    /// A [`Message::FetchReply`]; the object's bytes are the payload.
    Reply {
        /// The asker's round.
        round: u32,
        /// The object.
        sent: Sent,
        /// Whether the asker is to keep its copy.
        keep: bool,
    },
}

/// Whether bytes are those of such a message, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    bytes.starts_with(&FETCH) || bytes.starts_with(&REPLY)
}

/// Bytes of a message, if it is one, that goes with its payload right behind it and begins so; of
/// both together there are `all`. Of messages that are told by their bytes only these have any.
#[inline]
pub fn without_payload(begin: &[u8], all: usize) -> usize {
    match is_begun_by(begin) {
        true => all.min(BYTES),
        false => all,
    }
}

/// The bytes of a message.
#[inline]
pub fn bytes(single: Single) -> [u8; BYTES] {
    let (first, few, round, oid, version) = match single {
        Single::Fetch {
            round,
            wanted: Wanted { oid, need },
            beside,
        } => (FETCH, beside, round, oid, need),
        Single::Reply {
            round,
            sent: Sent { oid, version },
            keep,
        } => (REPLY, u16::from(keep), round, oid, version),
    };
    let mut bytes = [0; BYTES];
    bytes[..2].copy_from_slice(&first);
    bytes[2..4].copy_from_slice(&few.to_le_bytes());
    bytes[4..8].copy_from_slice(&round.to_le_bytes());
    bytes[8..16].copy_from_slice(&oid.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&version.lamport.to_le_bytes());
    bytes[24..26].copy_from_slice(&version.node.0.to_le_bytes());
    bytes
}

/// The message that these bytes begin with, and what is behind it.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<(Single, &[u8])> {
    let (bytes, behind) = bytes.split_first_chunk::<BYTES>()?;
    let ([a, b, few @ ..], rest) = bytes.split_first_chunk::<4>()?;
    let (round, rest) = rest.split_first_chunk()?;
    let (oid, rest) = number(rest)?;
    let (lamport, rest) = number(rest)?;
    let (last, _) = number(rest)?;
    let oid = Oid(oid);
    let node = NodeId(u16::try_from(last).ok()?);
    let version = Version { lamport, node };
    let (round, few) = (u32::from_le_bytes(*round), u16::from_le_bytes(*few));
    let single = match ([*a, *b], few) {
        (FETCH, beside) => Single::Fetch {
            round,
            wanted: Wanted { oid, need: version },
            beside,
        },
        (REPLY, keep @ (0 | 1)) => Single::Reply {
            round,
            sent: Sent { oid, version },
            keep: keep == 1,
        },
        _ => return None,
    };
    Some((single, behind))
}

/// The bytes of a message, if it is such a one.
pub fn encode(message: &Message) -> Option<[u8; BYTES]> {
    Some(bytes(match message {
        Message::Fetch {
            round,
            wanted,
            beside,
        } => match wanted[..] {
            [wanted] => Single::Fetch {
                round: *round,
                wanted,
                beside: *beside,
            },
            _ => return None,
        },
        Message::FetchReply { round, sent, keep } => match sent[..] {
            [sent] => Single::Reply {
                round: *round,
                sent,
                keep: *keep,
            },
            _ => return None,
        },
        _ => return None,
    }))
}

impl Single {
    /// Bytes that the message takes on a wire, without its payload.
    pub fn wire_bytes(self) -> u64 {
        Message::HEADER_BYTES + super::wire::ROUND_AND_COUNT + super::wire::OID_AND_VERSION
    }
}

impl From<Single> for Message {
    fn from(single: Single) -> Message {
        match single {
            Single::Fetch {
                round,
                wanted,
                beside,
            } => Message::Fetch {
                round,
                wanted: smallvec![wanted],
                beside,
            },
            Single::Reply { round, sent, keep } => Message::FetchReply {
                round,
                sent: smallvec![sent],
                keep,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: Version = Version {
        lamport: 1 << 40,
        node: NodeId(700),
    };

    fn fetch(objects: u64) -> Message {
        let wanted = (0..objects).map(|oid| (Oid(u64::MAX - oid), NEED));
        Message::Fetch {
            round: u32::MAX - 1,
            wanted: wanted.map(|(oid, need)| Wanted { oid, need }).collect(),
            beside: 1,
        }
    }

    fn reply(objects: u64, keep: bool) -> Message {
        let sent = (0..objects).map(|oid| (Oid(oid + 300), NEED));
        Message::FetchReply {
            round: 7,
            sent: sent.map(|(oid, version)| Sent { oid, version }).collect(),
            keep,
        }
    }

    fn bytes_of(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        assert_eq!(Message::decode(&bytes).as_ref(), Ok(message));
        bytes
    }

    #[test]
    fn messages_of_one_object_come_back_as_they_were_and_no_others_begin_so() {
        for one in [fetch(1), reply(1, true), reply(1, false)] {
            let bytes = bytes_of(&one);
            assert!(is_begun_by(&bytes) && bytes.len() == BYTES);
            let (single, _) = decode(&bytes).unwrap();
            assert_eq!(single.wire_bytes(), one.wire_bytes());
        }
        for other in [fetch(0), fetch(2), reply(0, true), reply(2, false)] {
            assert!(!is_begun_by(&bytes_of(&other)));
        }
        for delivered in (1..1 << 16).chain([u64::MAX]) {
            let carrier = Box::new(fetch(1));
            let after = Message::After { delivered, carrier };
            assert!(!is_begun_by(&bytes_of(&after)), "{delivered}");
        }
    }

    #[test]
    fn what_is_too_short_or_says_what_nobody_says_is_no_message_of_one_object() {
        for one in [fetch(1), reply(1, true)] {
            let bytes = bytes_of(&one);
            for end in 2..BYTES {
                assert!(Message::decode(&bytes[..end]).is_err());
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(Message::decode(&longer).is_err());
            for place in 26..BYTES {
                let mut bytes = bytes.clone();
                bytes[place] = 1;
                assert!(Message::decode(&bytes).is_err());
            }
        }
        let mut bytes = bytes_of(&reply(1, true));
        bytes[2] = 2;
        assert!(Message::decode(&bytes).is_err());
    }
}
