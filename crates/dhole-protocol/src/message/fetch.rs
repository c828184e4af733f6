//! The bytes of a [`Message::Fetch`] and of its reply: a head of twelve bytes, then 24 for each
//! object. They are read where they lie. The objects' bytes follow a reply as its payload.

use dhole_model::{NodeId, Oid, Version};
use smallvec::SmallVec;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Message;
use crate::transfer::{Sent, SentList, Wanted, WantedList};

/// The first two bytes of a fetch. No other kind of message begins so: read as numbers of
/// postcard's they are longer than need be.
const FETCH: [u8; 2] = [0x82, 0];
/// The first two bytes of a reply.
const REPLY: [u8; 2] = [0x83, 0];

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    kind: [u8; 2],
    /// Of a fetch, the number of objects; of a reply, twice that, and one more where the asker is
    /// to keep them.
    objects: U16,
    round: U32,
    /// Of a fetch, how many of the objects nobody waits for.
    beside: U16,
    zeros: [u8; 2],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Entry {
    oid: U64,
    lamport: U64,
    node: U16,
    zeros: [u8; 6],
}

const HEAD: usize = size_of::<Head>();
const ENTRY: usize = size_of::<Entry>();
/// The most objects of a message.
const MOST: usize = (u16::MAX >> 1) as usize;

/// A message, and the payload behind it.
#[derive(PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// A [`Message::Fetch`], which is all that is there.
    Fetch {
        /// The asker's round.
        round: u32,
        /// The objects.
        wanted: WantedList,
        /// How many of the last ones nobody waits for.
        beside: u16,
    },
    /// A [`Message::FetchReply`].
    Reply {
        /// The asker's round.
        round: u32,
        /// The objects.
        sent: SentList,
        /// Whether the asker is to keep its copies.
        keep: bool,
        /// The objects' bytes.
        payload: &'a [u8],
    },
}

impl Entry {
    #[inline]
    fn new(oid: Oid, version: Version) -> Entry {
        Entry {
            oid: oid.0.into(),
            lamport: version.lamport.into(),
            node: version.node.0.into(),
            zeros: [0; 6],
        }
    }

    #[inline]
    fn get(&self) -> (Oid, Version) {
        let (lamport, node) = (self.lamport.get(), NodeId(self.node.get()));
        (Oid(self.oid.get()), Version { lamport, node })
    }

    #[inline]
    fn list<T>(entries: &[Entry], make: impl Fn((Oid, Version)) -> T) -> SmallVec<[T; 1]> {
        match entries {
            [entry] => SmallVec::from_buf([make(entry.get())]),
            entries => entries.iter().map(|entry| make(entry.get())).collect(),
        }
    }
}

/// How many bytes a message of so many objects has, without its payload.
#[inline]
pub const fn bytes(objects: usize) -> usize {
    HEAD + ENTRY * objects
}

/// Whether bytes are those of a fetch or of its reply, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    bytes.starts_with(&FETCH) || bytes.starts_with(&REPLY)
}

/// How many of `all` bytes are those of the message, where it begins with `begin` and may have its
/// payload right behind it.
#[inline]
pub fn without_payload(begin: &[u8], all: usize) -> usize {
    match Head::ref_from_prefix(begin) {
        Ok((head, _)) if head.kind == REPLY => all.min(bytes(head.count())),
        _ => all,
    }
}

impl Head {
    /// The number of objects.
    #[inline]
    fn count(&self) -> usize {
        let objects = self.objects.get();
        usize::from(if self.kind == FETCH {
            objects
        } else {
            objects >> 1
        })
    }

    /// The message of these objects, with what is behind it.
    #[inline]
    fn with<'a>(&self, entries: &[Entry], behind: &'a [u8]) -> Parsed<'a> {
        let round = self.round.get();
        match self.kind {
            FETCH => Parsed::Fetch {
                round,
                wanted: Entry::list(entries, |(oid, need)| Wanted { oid, need }),
                beside: self.beside.get(),
            },
            _ => Parsed::Reply {
                round,
                sent: Entry::list(entries, |(oid, version)| Sent { oid, version }),
                keep: self.objects.get() & 1 == 1,
                payload: behind,
            },
        }
    }

    #[inline]
    fn is_sound(&self) -> bool {
        let is_known = self.kind == FETCH || self.kind == REPLY && self.beside.get() == 0;
        is_known && self.zeros == [0; 2]
    }
}

/// The parts of a message, and what is behind it. `None` where the bytes are none.
#[inline]
fn split(bytes: &[u8]) -> Option<(&Head, &[Entry], &[u8])> {
    let (head, rest) = Head::ref_from_prefix(bytes).ok()?;
    if !head.is_sound() {
        return None;
    }
    let (entries, behind) = <[Entry]>::ref_from_prefix_with_elems(rest, head.count()).ok()?;
    let sound = entries.iter().all(|entry| entry.zeros == [0; 6]);
    sound.then_some((head, entries, behind))
}

/// Whether the bytes of such a message are all there, and no more.
#[inline]
pub fn is_whole(message: &[u8]) -> bool {
    split(message).is_some_and(|(_, _, behind)| behind.is_empty())
}

/// Appends the bytes of a fetch.
///
/// # Panics
/// As [`write_reply`].
#[inline]
pub fn write_fetch(round: u32, wanted: &[Wanted], beside: u16, out: &mut Vec<u8>) {
    assert!(wanted.len() <= MOST, "a fetch of {} objects", wanted.len());
    let head = Head {
        kind: FETCH,
        objects: (wanted.len() as u16).into(),
        round: round.into(),
        beside: beside.into(),
        zeros: [0; 2],
    };
    out.extend_from_slice(head.as_bytes());
    for Wanted { oid, need } in wanted {
        out.extend_from_slice(Entry::new(*oid, *need).as_bytes());
    }
}

/// Appends the bytes of a reply, but for its payload.
///
/// # Panics
/// When there are more than 32,767 objects. No node is asked for so many.
#[inline]
pub fn write_reply(round: u32, sent: &[Sent], keep: bool, out: &mut Vec<u8>) {
    assert!(sent.len() <= MOST, "a reply of {} objects", sent.len());
    let head = Head {
        kind: REPLY,
        objects: ((sent.len() as u16) << 1 | u16::from(keep)).into(),
        round: round.into(),
        beside: 0.into(),
        zeros: [0; 2],
    };
    out.extend_from_slice(head.as_bytes());
    for Sent { oid, version } in sent {
        out.extend_from_slice(Entry::new(*oid, *version).as_bytes());
    }
}

/// The message that these bytes are, a reply with its payload behind it. `None` where they are
/// none.
#[inline]
pub fn parse(bytes: &[u8]) -> Option<Parsed<'_>> {
    let (head, entries, behind) = split(bytes)?;
    match head.kind {
        FETCH if !behind.is_empty() => None,
        _ => Some(head.with(entries, behind)),
    }
}

/// Appends the bytes of a message, if it is one of the two.
pub(super) fn encode(message: &Message, out: &mut Vec<u8>) -> bool {
    match message {
        Message::Fetch {
            round,
            wanted,
            beside,
        } => write_fetch(*round, wanted, *beside, out),
        Message::FetchReply { round, sent, keep } => write_reply(*round, sent, *keep, out),
        _ => return false,
    }
    true
}

/// The message that is all of these bytes, and how many are left behind it. `None` where they are
/// none.
pub(super) fn decode(bytes: &[u8]) -> Option<(Message, usize)> {
    let (head, entries, behind) = split(bytes)?;
    let message = match head.with(entries, behind) {
        Parsed::Fetch {
            round,
            wanted,
            beside,
        } => Message::Fetch {
            round,
            wanted,
            beside,
        },
        Parsed::Reply {
            round, sent, keep, ..
        } => Message::FetchReply { round, sent, keep },
    };
    Some((message, behind.len()))
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
    fn messages_of_any_number_of_objects_come_back_as_they_were() {
        for objects in [0, 1, 2, 256] {
            for one in [fetch(objects), reply(objects, true), reply(objects, false)] {
                let bytes = bytes_of(&one);
                assert!(is_begun_by(&bytes));
                assert_eq!(bytes.len(), 12 + 24 * objects as usize);
            }
        }
        for delivered in (1..1 << 16).chain([u64::MAX]) {
            let carrier = Box::new(fetch(1));
            let after = Message::After { delivered, carrier };
            let mut bytes = Vec::new();
            after.encode(&mut bytes).unwrap();
            assert!(!is_begun_by(&bytes), "{delivered}");
        }
    }

    #[test]
    fn the_bytes_are_these() {
        let version = Version {
            lamport: 0x0102,
            node: NodeId(3),
        };
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        let wanted = Wanted {
            oid: Oid(64),
            need: version,
        };
        write_fetch(5, &[wanted], 1, &mut asked);
        let sent = Sent {
            oid: Oid(64),
            version,
        };
        write_reply(5, &[sent], true, &mut answered);
        let entry = [
            64, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(
            asked,
            [&[0x82, 0, 1, 0, 5, 0, 0, 0, 1, 0, 0, 0][..], &entry].concat()
        );
        assert_eq!(
            answered,
            [&[0x83, 0, 3, 0, 5, 0, 0, 0, 0, 0, 0, 0][..], &entry].concat()
        );
    }

    #[test]
    fn a_reply_is_told_from_the_payload_behind_it_and_a_fetch_has_none() {
        let bytes = bytes_of(&reply(2, false));
        let behind = [&bytes[..], &[1, 2, 3]].concat();
        let Some(Parsed::Reply { payload, sent, .. }) = parse(&behind) else {
            panic!("{behind:?}");
        };
        assert_eq!((payload, sent.len()), (&[1, 2, 3][..], 2));
        assert_eq!(without_payload(&behind, behind.len()), bytes.len());
        assert!(Message::decode(&behind).is_err());
        let bytes = bytes_of(&fetch(2));
        assert_eq!(without_payload(&bytes, bytes.len()), bytes.len());
        assert_eq!(parse(&[&bytes[..], &[1]].concat()), None);
    }

    #[test]
    fn what_is_cut_short_or_has_bits_that_mean_nothing_is_refused() {
        for one in [fetch(2), reply(2, true)] {
            let bytes = bytes_of(&one);
            for end in 2..bytes.len() {
                assert!(Message::decode(&bytes[..end]).is_err(), "{end}");
            }
            let is_zero = |place: &usize| *place < 12 || (place - 12) % 24 >= 18;
            for place in (10..bytes.len()).filter(is_zero) {
                let mut bytes = bytes.clone();
                bytes[place] = 1;
                assert!(Message::decode(&bytes).is_err());
            }
        }
    }
}
