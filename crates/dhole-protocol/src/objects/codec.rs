//! The bytes of an operation on an object elsewhere, and of its reply: a head of 42 bytes or of 22,
//! which is read where it lies. Write notices follow the head, if there are any, and the arguments
//! or the result are all that is left.

use std::sync::Arc;

use dhole_model::{ObjectId, VectorTime};
use dhole_wire::{Tail, Wire, WireError};

use super::call::{CallId, CallRef, Refusal, flags, of_flags};
use super::message::ObjectsMessage;
use super::ordered_codec::{self, length};
use crate::WriteNotices;

/// The first byte of a request. No other kind of message begins so: their numbers are less.
const REQUEST: u8 = 0x80;
/// Of the flags: the chain of the call comes before the notices, with its length.
const CHAINED: u8 = 0x80;
/// The first byte of a reply.
const REPLY: u8 = 0x81;

#[derive(Wire)]
struct RequestHead {
    kind: u8,
    /// Whether it writes, and whether it was started.
    flags: u8,
    operation: u16,
    /// Bytes of notices.
    notices: u32,
    id: CallId,
    object: ObjectId,
    of_type: u64,
    delivered: u64,
}

#[derive(Wire)]
struct ReplyHead {
    kind: u8,
    /// Whether a refusal follows, and no result.
    refused: bool,
    /// Bytes of notices.
    notices: u32,
    call: u64,
    delivered: u64,
}

/// An operation that is asked for, as [`ObjectsMessage::Request`]. Its arguments lie elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationRequest<'a> {
    /// The call.
    pub call: CallRef<'a>,
    /// The last ordered message delivered to the caller.
    pub delivered: u64,
    /// What the caller has seen; `None` where that is what it said before.
    pub time: Option<VectorTime>,
    /// What happened before that the receiver may not know.
    pub news: Option<Arc<WriteNotices>>,
}

/// What an operation came to, as [`ObjectsMessage::Reply`]. Its result lies elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationReply<'a> {
    /// The number of the call.
    pub call: u64,
    /// What it came to.
    pub outcome: Result<&'a [u8], Refusal>,
    /// The last ordered message delivered to the sender.
    pub delivered: u64,
    /// What happened before that the caller may not know.
    pub news: Option<Arc<WriteNotices>>,
}

impl From<OperationRequest<'_>> for ObjectsMessage {
    fn from(request: OperationRequest<'_>) -> ObjectsMessage {
        ObjectsMessage::Request {
            call: request.call.into(),
            delivered: request.delivered,
            time: request.time,
            news: request.news,
        }
    }
}

impl From<OperationReply<'_>> for ObjectsMessage {
    fn from(reply: OperationReply<'_>) -> ObjectsMessage {
        ObjectsMessage::Reply {
            call: reply.call,
            outcome: reply.outcome.map(Into::into),
            delivered: reply.delivered,
            news: reply.news,
        }
    }
}

impl OperationRequest<'_> {
    /// Appends its bytes, but for the arguments.
    #[inline]
    pub fn write_head(&self, out: &mut Vec<u8>) {
        let notices = match self.time.is_some() || self.news.is_some() {
            true => (self.time.clone(), self.news.clone()).to_bytes(),
            false => Vec::new(),
        };
        let chain = self.call.chain;
        let (chained, notices) = match chain.is_empty() {
            true => (0, notices),
            false => (
                CHAINED,
                [&length(chain).to_le_bytes(), chain, &notices].concat(),
            ),
        };
        let head = RequestHead {
            kind: REQUEST,
            flags: flags(self.call.writes, self.call.started) | chained,
            operation: self.call.operation,
            notices: length(&notices),
            id: self.call.id,
            object: self.call.object,
            of_type: self.call.kind,
            delivered: self.delivered,
        };
        head.write(out);
        out.extend_from_slice(&notices);
    }
}

impl OperationReply<'_> {
    /// Appends its bytes, but for the result.
    #[inline]
    pub fn write_head(&self, out: &mut Vec<u8>) {
        let news = self.news.as_ref();
        let notices = news.map_or(Vec::new(), |news| news.to_bytes());
        let head = ReplyHead {
            kind: REPLY,
            refused: self.outcome.is_err(),
            notices: length(&notices),
            call: self.call,
            delivered: self.delivered,
        };
        head.write(out);
        out.extend_from_slice(&notices);
        if let Err(refusal) = &self.outcome {
            refusal.write(out);
        }
    }

    /// The bytes of the result, which follow the head.
    #[inline]
    pub fn result(&self) -> &[u8] {
        self.outcome.as_ref().map_or(&[], |result| result)
    }
}

/// An operation that is asked for, or the reply.
#[derive(PartialEq, Eq, Debug)]
pub enum ParsedOperation<'a> {
    /// As [`ObjectsMessage::Request`].
    Request(OperationRequest<'a>),
    /// As [`ObjectsMessage::Reply`].
    Reply(OperationReply<'a>),
}

impl From<ParsedOperation<'_>> for ObjectsMessage {
    fn from(parsed: ParsedOperation<'_>) -> ObjectsMessage {
        match parsed {
            ParsedOperation::Request(request) => request.into(),
            ParsedOperation::Reply(reply) => reply.into(),
        }
    }
}

/// Whether bytes are those of such a message, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    matches!(bytes, [REQUEST | REPLY, ..])
}

/// The message that is all of these bytes. `None` where they are none.
#[inline]
pub fn parse(bytes: &[u8]) -> Option<ParsedOperation<'_>> {
    let bytes = Tail::new(bytes);
    match bytes.rest() {
        [REQUEST, ..] => parse_request(bytes).ok().map(ParsedOperation::Request),
        [REPLY, ..] => parse_reply(bytes).ok().map(ParsedOperation::Reply),
        _ => None,
    }
}

#[inline]
fn parse_request(mut bytes: Tail<'_>) -> Result<OperationRequest<'_>, WireError> {
    let head = RequestHead::take(&mut bytes)?;
    let (writes, started) = of_flags(head.flags & !CHAINED)?;
    let mut notices = bytes.bytes(head.notices as usize)?;
    let mut chain: &[u8] = &[];
    if head.flags & CHAINED != 0 {
        let no_chain = WireError::Value("a chain of calls that is cut short");
        let (length, rest) = notices.split_first_chunk().ok_or(no_chain)?;
        let length = u32::from_le_bytes(*length) as usize;
        (chain, notices) = rest.split_at_checked(length).ok_or(no_chain)?;
    }
    let (time, news) = ordered_codec::said(notices)?;
    let call = CallRef {
        id: head.id,
        object: head.object,
        kind: head.of_type,
        operation: head.operation,
        writes,
        started,
        chain,
        arguments: bytes.rest(),
    };
    Ok(OperationRequest {
        call,
        delivered: head.delivered,
        time,
        news,
    })
}

#[inline]
fn parse_reply(mut bytes: Tail<'_>) -> Result<OperationReply<'_>, WireError> {
    let head = ReplyHead::take(&mut bytes)?;
    let news = match bytes.bytes(head.notices as usize)? {
        [] => None,
        notices => Some(Wire::parse(notices)?),
    };
    let outcome = match head.refused {
        false => Ok(bytes.rest()),
        true => Err(Wire::parse(bytes.rest())?),
    };
    Ok(OperationReply {
        call: head.call,
        outcome,
        delivered: head.delivered,
        news,
    })
}

impl ObjectsMessage {
    /// Bytes of a request, a reply or an ordered write, if it is one.
    pub(crate) fn operation_len(&self) -> Option<usize> {
        match self {
            ObjectsMessage::Request {
                call, time, news, ..
            } => {
                let notices = match time.is_some() || news.is_some() {
                    true => time.wire_len() + news.wire_len(),
                    false => 0,
                };
                let chain = match call.chain.is_empty() {
                    true => 0,
                    false => size_of::<u32>() + call.chain.len(),
                };
                let head = RequestHead::HEAD_LEN + chain;
                Some(head + notices + call.arguments.len())
            }
            ObjectsMessage::Reply { outcome, news, .. } => {
                let notices = news.as_ref().map_or(0, |news| news.wire_len());
                let head = ReplyHead::HEAD_LEN;
                let outcome = outcome.as_ref();
                Some(head + notices + outcome.map_or_else(Wire::wire_len, |it| it.len()))
            }
            ObjectsMessage::Group(message) => ordered_codec::len(message),
            _ => None,
        }
    }

    /// Appends the bytes of a request, a reply or an ordered write; whether it is one.
    pub(crate) fn encode_operation(&self, out: &mut Vec<u8>) -> bool {
        match self {
            ObjectsMessage::Request {
                call,
                delivered,
                time,
                news,
            } => {
                let request = OperationRequest {
                    call: call.by_ref(),
                    delivered: *delivered,
                    time: time.clone(),
                    news: news.clone(),
                };
                request.write_head(out);
                out.extend_from_slice(&call.arguments);
            }
            ObjectsMessage::Reply {
                call,
                outcome,
                delivered,
                news,
            } => {
                let outcome = outcome.as_deref().map_err(Refusal::clone);
                let reply = OperationReply {
                    call: *call,
                    outcome,
                    delivered: *delivered,
                    news: news.clone(),
                };
                reply.write_head(out);
                out.extend_from_slice(reply.result());
            }
            ObjectsMessage::Group(message) => {
                let begin = out.len();
                let Some(arguments) = ordered_codec::write_head(message, false, out) else {
                    out.truncate(begin);
                    return false;
                };
                out.extend_from_slice(arguments);
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests;
