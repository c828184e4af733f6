//! Messages as bytes, for nodes in other processes.
//!
//! The form is [postcard]'s: compact, and without names; but for [bare](bare) calls of operations,
//! [fetches and their replies](fetch), and [rounds of barriers](barrier_round), of which there are
//! many. What is decoded is a message, not a sound one: that is for the protocol to judge
//! (`check`), as with every message that comes. Decoding takes no more memory than a small multiple
//! of the bytes that are there, whatever lengths these claim, and does not nest deeper than the
//! types do.

use std::sync::Arc;

use postcard::ser_flavors::Flavor;
use serde::Deserialize;
use thiserror::Error;

use super::{Message, barrier_round, fetch};
use crate::collection::Gossip;
use crate::objects::bare;

/// A message could not be put into bytes.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("encoding a {kind} message: {cause}")]
pub struct EncodeError {
    /// What is encoded.
    pub kind: &'static str,
    /// Why not.
    pub cause: postcard::Error,
}

/// Bytes are no message.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// They do not form one.
    #[error("{bytes} bytes that are no message: {cause}")]
    Malformed {
        /// How many.
        bytes: usize,
        /// What is wrong.
        cause: postcard::Error,
    },
    /// They begin as those of a bare call or its reply do, and form none.
    #[error("{bytes} bytes that are no bare call and no reply to one")]
    Bare {
        /// How many.
        bytes: usize,
    },
    /// They begin as a fetch does, or its reply, and are neither.
    #[error("{bytes} bytes that are no fetch and no reply to one")]
    Fetch {
        /// How many.
        bytes: usize,
    },
    /// They begin as those of a round of a barrier do, and are none.
    #[error("{bytes} bytes that are no round of a barrier")]
    BarrierRound {
        /// How many.
        bytes: usize,
    },
    /// There are more than the message has.
    #[error("{rest} of {bytes} bytes are left behind a message")]
    TooLong {
        /// How many.
        bytes: usize,
        /// Those behind it.
        rest: usize,
    },
}

/// Appends what postcard writes: numbers for the most part, of a byte or two.
#[derive(Debug)]
pub struct Appending<'a>(pub &'a mut Vec<u8>);

impl Flavor for Appending<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        match *bytes {
            [one] => self.0.push(one),
            [one, two] => self.0.extend_from_slice(&[one, two]),
            // Of a known length, as most numbers are that are greater.
            [a, b, c] => self.0.extend_from_slice(&[a, b, c]),
            [a, b, c, d] => self.0.extend_from_slice(&[a, b, c, d]),
            [a, b, c, d, e] => self.0.extend_from_slice(&[a, b, c, d, e]),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl Message {
    /// Appends the message to `out`. Gossip, and up to where the order of the objects had come,
    /// stand beside the message that carries them.
    ///
    /// # Errors
    /// [`EncodeError`] for a message that carries a message that carries gossip: no protocol
    /// makes one. `out` may have grown.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if let Message::Objects(message) = self
            && message.encode_bare(out)
        {
            return Ok(());
        }
        if let Some(bytes) = barrier_round::encode(self) {
            out.extend_from_slice(&bytes);
            return Ok(());
        }
        if fetch::encode(self, out) {
            return Ok(());
        }
        let (delivered, message) = match self {
            Message::After { delivered, carrier } => (*delivered, &**carrier),
            message => (0, message),
        };
        let (gossip, message): (Option<&Gossip>, _) = match message {
            Message::Gossiped { gossip, carrier } => (Some(gossip), &**carrier),
            message => (None, message),
        };
        let encoded =
            postcard::serialize_with_flavor(&(delivered, gossip, message), Appending(out));
        encoded.map_err(|cause| EncodeError {
            kind: self.kind().name(),
            cause,
        })
    }

    /// The message that is all of `bytes`.
    ///
    /// # Errors
    /// [`DecodeError`]
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        if bare::is_begun_by(bytes) {
            let message = bare::decode(bytes);
            let message = message.ok_or(DecodeError::Bare { bytes: bytes.len() })?;
            return Ok(Message::Objects(Box::new(message.into())));
        }
        if barrier_round::is_begun_by(bytes) {
            let (bytes, decoded) = (bytes.len(), barrier_round::decode(bytes));
            let (said, delivered) = decoded.ok_or(DecodeError::BarrierRound { bytes })?;
            return Ok(Message::BarrierRound(said).after(delivered));
        }
        if fetch::is_begun_by(bytes) {
            let (bytes, decoded) = (bytes.len(), fetch::decode(bytes));
            return match decoded.ok_or(DecodeError::Fetch { bytes })? {
                (message, 0) => Ok(message),
                (_, rest) => Err(DecodeError::TooLong { bytes, rest }),
            };
        }
        let malformed = |cause| DecodeError::Malformed {
            bytes: bytes.len(),
            cause,
        };
        // One after the other: a message is not small, and a tuple of it is moved several times.
        let mut from = postcard::Deserializer::from_bytes(bytes);
        let delivered = u64::deserialize(&mut from).map_err(malformed)?;
        let gossip = Option::<Arc<Gossip>>::deserialize(&mut from).map_err(malformed)?;
        let message = Message::deserialize(&mut from).map_err(malformed)?;
        let rest = from.finalize().map_err(malformed)?;
        if !rest.is_empty() {
            return Err(DecodeError::TooLong {
                bytes: bytes.len(),
                rest: rest.len(),
            });
        }
        let message = match gossip {
            None => message,
            Some(gossip) => Message::Gossiped {
                gossip,
                carrier: Box::new(message),
            },
        };
        Ok(match delivered {
            0 => message,
            delivered => Message::After {
                delivered,
                carrier: Box::new(message),
            },
        })
    }
}
