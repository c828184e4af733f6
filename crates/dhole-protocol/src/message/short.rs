//! Short messages, which nodes take where they lie: fetches of objects, their replies, and
//! rounds of barriers. The bytes of objects are the payload of a reply.

use dhole_wire::{Tail, Wire};

use super::{AFTER, BARRIER_ROUND, FETCH, FETCH_REPLY};
use crate::sync::barrier::BarrierRound;
use crate::transfer::{Fetch, FetchReply};

/// A short message.
#[derive(PartialEq, Eq, Debug)]
pub enum Short {
    /// A [`Message::Fetch`](super::Message::Fetch).
    Fetch(Fetch),
    /// A [`Message::FetchReply`](super::Message::FetchReply).
    FetchReply(FetchReply),
    /// A [`Message::BarrierRound`](super::Message::BarrierRound), and after what of the objects'
    /// order it comes.
    BarrierRound(BarrierRound, u64),
}

impl Short {
    /// The message that is all of these bytes. `None` where they are none, or not such a one.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Short> {
        let mut tail = Tail::new(bytes);
        let short = match tail.head::<u8>().ok()? {
            FETCH => Short::Fetch(Fetch::take(&mut tail).ok()?),
            FETCH_REPLY => Short::FetchReply(FetchReply::take(&mut tail).ok()?),
            BARRIER_ROUND => Short::BarrierRound(BarrierRound::take(&mut tail).ok()?, 0),
            AFTER => {
                let delivered = u64::take(&mut tail).ok().filter(|it| *it > 0)?;
                let (&BARRIER_ROUND, rest) = tail.rest().split_first()? else {
                    return None;
                };
                return Some(Short::BarrierRound(
                    BarrierRound::parse(rest).ok()?,
                    delivered,
                ));
            }
            _ => return None,
        };
        tail.end().ok()?;
        Some(short)
    }
}

impl Fetch {
    /// Appends the bytes of the message.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(FETCH);
        self.write(out);
    }
}

impl FetchReply {
    /// Appends the bytes of the message, without its payload.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(FETCH_REPLY);
        self.write(out);
    }
}

impl BarrierRound {
    /// Appends the bytes of the message, which a node says to which so much of the objects' order
    /// was delivered.
    #[inline]
    pub fn encode(&self, delivered: u64, out: &mut Vec<u8>) {
        if delivered > 0 {
            out.push(AFTER);
            delivered.write(out);
        }
        out.push(BARRIER_ROUND);
        self.write(out);
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::{NodeId, Oid, Version};

    use super::*;
    use crate::{Follow, FollowedReferences, Message, Sent, Wanted};

    const VERSION: Version = Version {
        lamport: 1 << 40,
        node: NodeId(700),
    };

    fn of_type(slots: u64) -> FollowedReferences {
        let shipped = 7;
        FollowedReferences { shipped, slots }
    }

    /// Messages of several numbers of objects.
    fn all() -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for objects in [0, 1, 2, 8] {
            let oids = || (0..objects).map(|oid| Oid(u64::MAX - oid));
            let mut fetch = Vec::new();
            Fetch {
                round: 7,
                wanted: oids()
                    .map(|oid| Wanted {
                        region: oid,
                        need: VERSION,
                    })
                    .collect(),
                beside: 1,
                follow: Follow {
                    most: 3,
                    references: (0..objects / 2).map(of_type).collect(),
                },
            }
            .encode(&mut fetch);
            all.push(fetch);
            for keep in [false, true] {
                let (round, version) = (7, VERSION);
                let sent = oids()
                    .map(|oid| Sent {
                        region: oid,
                        version,
                    })
                    .collect();
                let mut reply = Vec::new();
                FetchReply { round, sent, keep }.encode(&mut reply);
                all.push(reply);
            }
        }
        for delivered in [0, 5] {
            let mut round = Vec::new();
            let said = BarrierRound {
                number: 3,
                round: 1,
                news: true,
                place: 4,
                site: None,
            };
            said.encode(delivered, &mut round);
            all.push(round);
        }
        all
    }

    /// Whether these bytes are a short message. It is the message that they decode to.
    fn is_short(bytes: &[u8]) -> bool {
        let parsed = Short::parse(bytes);
        if parsed.is_some() {
            let mut again = Vec::new();
            let decoded = Message::decode(bytes);
            decoded.expect("a short message is one").encode(&mut again);
            assert_eq!(again, bytes);
        }
        parsed.is_some()
    }

    #[test]
    fn what_is_parsed_is_all_of_a_message() {
        for bytes in all() {
            assert!(is_short(&bytes));
            for end in 0..bytes.len() {
                assert!(!is_short(&bytes[..end]), "{end} of {bytes:?}");
            }
            assert!(!is_short(&[&bytes[..], &[1]].concat()));
            for bit in 0..8 * bytes.len() {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                is_short(&other);
            }
        }
    }
}
