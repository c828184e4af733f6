//! Messages as bytes, for nodes in other processes: in the [wire format](dhole_wire), but for
//! [bare](bare) calls of operations. What is decoded is a message, not a sound one: that is for the
//! protocol to judge (`check`), as with every message that comes.

use dhole_wire::{Wire, WireError};
use thiserror::Error;

use super::Message;
use crate::objects::bare;

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
    /// They begin as those of a bare call or its reply do, and form none.
    #[error("{bytes} bytes that are no bare call and no reply to one")]
    Bare {
        /// How many.
        bytes: usize,
    },
}

impl Message {
    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Message::Objects(message) if message.encode_bare(out) => {}
            message => message.write(out),
        }
    }

    /// The message that is all of `bytes`.
    ///
    /// # Errors
    /// [`DecodeError`]
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        let length = bytes.len();
        if bare::is_begun_by(bytes) {
            let message = bare::decode(bytes).ok_or(DecodeError::Bare { bytes: length })?;
            return Ok(Message::Objects(Box::new(message.into())));
        }
        let malformed = |cause| DecodeError::Malformed {
            bytes: length,
            cause,
        };
        Message::parse(bytes).map_err(malformed)
    }
}
