//! Short messages, which nodes take where they lie: fetches of objects, their replies, and
//! rounds of barriers. The bytes of objects follow a reply as its payload.

use dhole_wire::{Tail, Wire};

use super::{AFTER, BARRIER_ROUND, FETCH, FETCH_REPLY};
use crate::barrier::BarrierRound;
use crate::transfer::{Fetch, FetchReply, Sent};

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
        let short = match *tail.head::<u8>().ok()? {
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
                all.min(1 + size_of_val(head) + objects)
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
