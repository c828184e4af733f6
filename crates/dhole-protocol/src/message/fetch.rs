//! Fetches of objects and their replies: messages that nodes take where they lie. The objects'
//! bytes follow a reply as its payload.

use dhole_wire::{Tail, Wire};

use super::{FETCH, FETCH_REPLY};
use crate::transfer::{Fetch, FetchReply, Sent};

/// A message, and the payload behind it.
#[derive(PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// A fetch, which is all that is there.
    Fetch(Fetch),
    /// Its reply.
    Reply {
        /// The message.
        reply: FetchReply,
        /// The objects' bytes.
        payload: &'a [u8],
    },
}

/// Whether bytes are those of a fetch or of its reply, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    matches!(bytes, [FETCH | FETCH_REPLY, ..])
}

/// How many of `all` bytes are those of the message, where it begins with `begin` and may have its
/// payload right behind it.
#[inline]
pub fn without_payload(begin: &[u8], all: usize) -> usize {
    let [FETCH_REPLY, rest @ ..] = begin else {
        return all;
    };
    // The list of objects is all that a reply has behind its head.
    match Tail::new(rest).head::<<FetchReply as Wire>::Head>() {
        Ok(head) => {
            let objects = size_of::<<Sent as Wire>::Head>() * head.1.0.get() as usize;
            all.min(1 + size_of_val(head) + objects)
        }
        Err(_) => all,
    }
}

/// The message that these bytes are, a reply with its payload behind it. `None` where they are
/// none.
#[inline]
pub fn parse(bytes: &[u8]) -> Option<Parsed<'_>> {
    match bytes {
        [FETCH, rest @ ..] => Fetch::parse(rest).ok().map(Parsed::Fetch),
        [FETCH_REPLY, rest @ ..] => {
            let mut tail = Tail::new(rest);
            let reply = FetchReply::take(&mut tail).ok()?;
            Some(Parsed::Reply {
                reply,
                payload: tail.rest(),
            })
        }
        _ => None,
    }
}

/// Whether the bytes of such a message are all there, and no more.
#[inline]
pub fn is_whole(message: &[u8]) -> bool {
    match parse(message) {
        Some(Parsed::Reply { payload, .. }) => payload.is_empty(),
        Some(Parsed::Fetch(_)) => true,
        None => false,
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
