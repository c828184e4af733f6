//! Messages as bytes, for nodes in other processes: in the [wire format](dhole_wire), but for
//! [calls of operations](codec), their replies, and [ordered writes](ordered_codec).
//!
//! What is decoded is a message, not a sound one: that is for the protocol to judge (`check`), as
//! with every message that comes.

use dhole_wire::{Wire, WireError};
use thiserror::Error;

use super::Message;
use crate::objects::{ObjectsMessage, codec, ordered_codec};

/// Bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// They do not form one.
    #[error("{bytes} bytes that are no message: {cause}")]
    Malformed {
        /// How many.
        bytes: usize,
        /// What is wrong.
        cause: WireError,
    },
    /// They begin as those of a call of an object or its reply do, and are neither.
    #[error("{bytes} bytes that are no call of an object and no reply to one")]
    Operation {
        /// How many.
        bytes: usize,
    },
}

impl Message {
    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Message::Objects(message) if message.encode_operation(out) => {}
            message => message.write(out),
        }
    }

    /// Bytes that [`encode`](Message::encode) appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            Message::Objects(message) => {
                let operation = message.operation_len();
                operation.unwrap_or_else(|| self.wire_len())
            }
            message => message.wire_len(),
        }
    }

    /// The message that is all of `bytes`.
    ///
    /// # Errors
    /// [`DecodeError`]
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        let length = bytes.len();
        if codec::is_begun_by(bytes) || ordered_codec::is_begun_by(bytes) {
            let message = match codec::parse(bytes) {
                Some(parsed) => Some(parsed.into()),
                None => ordered_codec::parse(bytes).map(|(it, _)| ObjectsMessage::Group(it)),
            };
            let message = message.ok_or(DecodeError::Operation { bytes: length })?;
            return Ok(Message::Objects(Box::new(message)));
        }
        let malformed = |cause| DecodeError::Malformed {
            bytes: length,
            cause,
        };
        match Message::parse(bytes).map_err(malformed)? {
            // Each message has one form.
            Message::Objects(message) if message.operation_len().is_some() => {
                Err(DecodeError::Operation { bytes: length })
            }
            message => Ok(message),
        }
    }
}
