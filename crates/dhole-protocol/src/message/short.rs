//! Short messages, which nodes take where they lie: fetches of objects, their replies, and
//! rounds of barriers. The bytes of objects follow a reply as its payload.

use dhole_wire::{Pair, Tail, Wire};

use super::{AFTER, BARRIER_ROUND, FETCH, FETCH_REPLY};
use crate::barrier::BarrierRound;
use crate::transfer::{Fetch, FetchReply, FollowedReferences, Sent, Wanted};

/// A short message.
#[derive(PartialEq, Eq, Debug)]
pub enum Short<'a> {
    /// A [`Message::Fetch`](super::Message::Fetch).
    Fetch(Fetch),
    /// A [`Message::FetchReply`](super::Message::FetchReply), and its payload.
    FetchReply(FetchReply, &'a [u8]),
    /// A [`Message::BarrierRound`](super::Message::BarrierRound), and after what of the objects'
    /// order it comes.
    BarrierRound(BarrierRound, u64),
}

impl Short<'_> {
    /// The message that is all of these bytes, its payload included. `None` where they are none, or
    /// not such a one.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Short<'_>> {
        let mut tail = Tail::new(bytes);
        let short = match tail.head::<u8>().ok()? {
            FETCH => Short::Fetch(Fetch::take(&mut tail).ok()?),
            FETCH_REPLY => {
                let reply = FetchReply::take(&mut tail).ok()?;
                return Some(Short::FetchReply(reply, tail.rest()));
            }
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

    /// How many bytes of payload are behind the short message that [`parse`](Short::parse) makes of
    /// these bytes. `None` where it makes none. Makes no list: objects may be of any bytes.
    #[inline]
    pub fn check(bytes: &[u8]) -> Option<usize> {
        let mut tail = Tail::new(bytes);
        match tail.head::<u8>().ok()? {
            FETCH => {
                let head = tail.head::<<Fetch as Wire>::Head>().ok()?;
                let Pair(_, Pair(wanted, Pair(_, Pair(_, followed)))) = head;
                let [wanted, followed] = [wanted, followed].map(|count| count.get() as usize);
                tail.heads::<<Wanted as Wire>::Head>(wanted).ok()?;
                tail.heads::<<FollowedReferences as Wire>::Head>(followed)
                    .ok()?;
                tail.end().ok()?;
                Some(0)
            }
            FETCH_REPLY => {
                let Pair(_, Pair(sent, keep)) = tail.head::<<FetchReply as Wire>::Head>().ok()?;
                bool::read(&keep, &mut tail).ok()?;
                let sent = sent.get() as usize;
                tail.heads::<<Sent as Wire>::Head>(sent).ok()?;
                Some(tail.rest().len())
            }
            _ => Short::parse(bytes).map(|_| 0),
        }
    }

    /// How many of `all` bytes are those of the message, where it begins with `begin` and may have
    /// its payload right behind it.
    #[inline]
    pub fn without_payload(begin: &[u8], all: usize) -> usize {
        let [FETCH_REPLY, rest @ ..] = begin else {
            return all;
        };
        // The list of objects is all that a reply has behind its head.
        match Tail::new(rest).head::<<FetchReply as Wire>::Head>() {
            Ok(head) => {
                let objects = size_of::<<Sent as Wire>::Head>() * head.1.0.get() as usize;
                all.min(1 + size_of_val(&head) + objects)
            }
            Err(_) => all,
        }
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
    use crate::{Follow, Message};

    const VERSION: Version = Version {
        lamport: 1 << 40,
        node: NodeId(700),
    };

    fn of_type(slots: u64) -> FollowedReferences {
        let shipped = 7;
        FollowedReferences { shipped, slots }
    }

    /// Messages of several numbers of objects, with their payload, and how many bytes that has.
    fn all() -> Vec<(Vec<u8>, usize)> {
        let mut all = Vec::new();
        for objects in [0, 1, 2, 8] {
            let oids = || (0..objects).map(|oid| Oid(u64::MAX - oid));
            let mut fetch = Vec::new();
            Fetch {
                round: 7,
                wanted: oids().map(|oid| Wanted { oid, need: VERSION }).collect(),
                beside: 1,
                follow: Follow {
                    most: 3,
                    references: (0..objects / 2).map(of_type).collect(),
                },
            }
            .encode(&mut fetch);
            all.push((fetch, 0));
            for payload in [0, 3] {
                let version = VERSION;
                let mut reply = Vec::new();
                FetchReply {
                    round: 7,
                    sent: oids().map(|oid| Sent { oid, version }).collect(),
                    keep: payload > 0,
                }
                .encode(&mut reply);
                reply.extend(vec![9; payload]);
                all.push((reply, payload));
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
            all.push((round, 0));
        }
        all
    }

    /// How many bytes of payload there are, if there is a short message, by each who says so.
    fn payload(bytes: &[u8]) -> Option<usize> {
        let parsed = Short::parse(bytes).map(|short| match short {
            Short::FetchReply(_, payload) => payload.len(),
            Short::Fetch(_) | Short::BarrierRound(..) => 0,
        });
        assert_eq!(Short::check(bytes), parsed, "{bytes:?}");
        if let Some(payload) = parsed {
            let message = Short::without_payload(bytes, bytes.len());
            assert_eq!(message + payload, bytes.len(), "{bytes:?}");
            let mut again = Vec::new();
            let decoded = Message::decode(&bytes[..message]);
            decoded.expect("a short message is one").encode(&mut again);
            assert_eq!(again, bytes[..message]);
        }
        parsed
    }

    #[test]
    fn what_is_checked_is_parsed_and_is_all_of_a_message() {
        for (bytes, behind) in all() {
            assert_eq!(payload(&bytes), Some(behind));
            let without = bytes.len() - behind;
            for end in 0..without {
                assert_eq!(payload(&bytes[..end]), None, "{end} of {bytes:?}");
            }
            let more = [&bytes[..], &[1]].concat();
            let is_reply = bytes[0] == FETCH_REPLY;
            assert_eq!(payload(&more), is_reply.then_some(behind + 1));
            for bit in 0..8 * bytes.len() {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                payload(&other);
            }
        }
    }
}
