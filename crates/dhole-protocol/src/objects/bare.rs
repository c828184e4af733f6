//! Bare calls: of those that wait for one operation on a copy elsewhere most have nothing to tell
//! with it, nor has whoever executes it with the result. Their bytes are as few as can be, and
//! where nothing stands in the way they are executed without an event of the machine. So are
//! [writes of replicas](ordered).

pub mod ordered;

use dhole_model::{NodeId, ObjectId};

use super::Objects;
use super::bytes::number;
use super::call::{CallId, CallRef, Refusal};
use super::entry::Place;
use super::host::Host;
pub use super::message::reply_bytes;
use super::message::{Answers, ObjectsMessage};
use crate::group::{Numbered, Submitted};

/// How the bytes of a bare call begin, and those of its reply: no other message's do, for these are
/// numbers that are written longer than need be. Zeros follow, up to whole words.
const CALL: [u8; 2] = [0x80, 0];
const REPLY: [u8; 8] = [0x81, 0, 0, 0, 0, 0, 0, 0];

const CALL_HEAD: usize = 40;
const REPLY_HEAD: usize = 24;

/// What stands before the arguments of a bare call.
#[inline]
pub fn call_head(call: CallRef<'_>, delivered: u64) -> [u8; CALL_HEAD] {
    let mut head = [0; CALL_HEAD];
    head[..2].copy_from_slice(&CALL);
    head[2..4].copy_from_slice(&call.operation.to_le_bytes());
    head[4..6].copy_from_slice(&call.id.node.0.to_le_bytes());
    head[6] = u8::from(call.writes);
    head[8..16].copy_from_slice(&call.id.number.to_le_bytes());
    head[16..24].copy_from_slice(&call.object.0.to_le_bytes());
    head[24..32].copy_from_slice(&call.kind.to_le_bytes());
    head[32..].copy_from_slice(&delivered.to_le_bytes());
    head
}

/// What stands before the result in the reply to the call of this number.
pub fn reply_head(call: u64, delivered: u64) -> [u8; REPLY_HEAD] {
    let mut head = [0; REPLY_HEAD];
    head[..8].copy_from_slice(&REPLY);
    head[8..16].copy_from_slice(&call.to_le_bytes());
    head[16..].copy_from_slice(&delivered.to_le_bytes());
    head
}

/// Whether bytes are those of a bare call or reply, or of an ordered call, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    let calls = bytes.starts_with(&CALL) || bytes.starts_with(&REPLY[..2]);
    calls || ordered::is_begun_by(bytes)
}

/// Whether bytes are a bare call, the reply to one, or an ordered call, which [`decode`] brings
/// then.
pub fn is_whole(bytes: &[u8]) -> bool {
    match bytes.first_chunk() {
        Some(&REPLY) => bytes.len() >= REPLY_HEAD,
        Some([0x80, 0, .., 0 | 1, 0]) => bytes.len() >= CALL_HEAD,
        _ => ordered::decode(bytes).is_some(),
    }
}

/// A bare message, where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lies<'a> {
    /// A call that is to be multicast.
    Submit(CallRef<'a>, Submitted),
    /// A call that is multicast.
    Data(CallRef<'a>, Numbered),
    /// A call, and the last ordered message delivered to its caller.
    Call(CallRef<'a>, u64),
    /// The reply to one.
    Reply {
        /// The number of the call.
        call: u64,
        /// The last ordered message delivered to the sender.
        delivered: u64,
        /// The result.
        result: &'a [u8],
    },
}

/// The bare message of these bytes, if they are one.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<Lies<'_>> {
    let (first, rest) = bytes.split_first_chunk()?;
    if *first == REPLY {
        let (call, rest) = number(rest)?;
        let (delivered, result) = number(rest)?;
        return Some(Lies::Reply {
            call,
            delivered,
            result,
        });
    }
    let [0x80, 0, o1, o2, n1, n2, writes @ (0 | 1), 0] = *first else {
        return ordered::decode(bytes);
    };
    let (call, rest) = number(rest)?;
    let (object, rest) = number(rest)?;
    let (kind, rest) = number(rest)?;
    let (delivered, arguments) = number(rest)?;
    let call = CallRef {
        id: CallId {
            node: NodeId(u16::from_le_bytes([n1, n2])),
            number: call,
        },
        object: ObjectId(object),
        kind,
        operation: u16::from_le_bytes([o1, o2]),
        writes: writes == 1,
        arguments,
    };
    Some(Lies::Call(call, delivered))
}

impl From<Lies<'_>> for ObjectsMessage {
    fn from(lies: Lies<'_>) -> ObjectsMessage {
        match lies {
            Lies::Call(call, delivered) => {
                let call = call.into();
                ObjectsMessage::Bare { call, delivered }
            }
            Lies::Submit(call, submitted) => ordered::submit(call, &submitted),
            Lies::Data(call, numbered) => ordered::data(call, &numbered),
            Lies::Reply {
                call,
                delivered,
                result,
            } => ObjectsMessage::BareReply {
                call,
                delivered,
                result: result.into(),
            },
        }
    }
}

impl ObjectsMessage {
    /// Appends the bytes of a bare call or reply; whether it is one.
    pub(crate) fn encode_bare(&self, out: &mut Vec<u8>) -> bool {
        match self {
            ObjectsMessage::Bare { call, delivered } => {
                out.extend_from_slice(&call_head(call.by_ref(), *delivered));
                out.extend_from_slice(&call.arguments);
            }
            ObjectsMessage::BareReply {
                call,
                delivered,
                result,
            } => {
                out.extend_from_slice(&reply_head(*call, *delivered));
                out.extend_from_slice(result);
            }
            _ => return false,
        }
        true
    }
}

impl Objects {
    /// Whether another node has heard all that this one has seen.
    pub(super) fn has_nothing_to_tell(&self, node: NodeId, host: &dyn Host) -> bool {
        !host.has_news_since(self.told_to(node))
    }

    /// Where a call of an operation on this object goes bare. Whoever sends it there says that it
    /// [asks](Objects::asks), before anything else but the [reply](Objects::bare_reply) comes.
    pub fn goes_bare(&self, object: ObjectId, host: &dyn Host) -> Option<NodeId> {
        self.asked_at(object)
            .filter(|to| self.has_nothing_to_tell(*to, host))
    }

    /// The reply to a bare call of the worker has come, of which the machine was not told that it
    /// was made. It is an acquire as every other.
    pub fn bare_reply(&mut self) {
        self.acquire_due = true;
    }

    /// Executes a bare call of `from` if nothing comes of that but its outcome, which `from` is to
    /// be told: with the bytes of the result behind those of `result`, or that it was
    /// [refused](Objects::refused). Else nothing has happened, and the message is to be delivered
    /// as others are.
    pub fn serve_bare(
        &mut self,
        from: NodeId,
        call: CallRef<'_>,
        delivered: u64,
        host: &mut dyn Host,
        result: &mut Vec<u8>,
    ) -> Option<Result<(), Refusal>> {
        let entry = self.table.get(&call.object)?;
        let alone = entry.place == Place::Here && entry.blocked.is_empty();
        let in_order = delivered <= self.delivered;
        let tells = self.notices.is_more(self.told_by.get(&from));
        if !alone || !in_order || tells || call.id.node != from {
            return None;
        }
        let tried = host.apply_to(call, result);
        let executed = tried.map(|done| done.then_some(())).transpose()?;
        self.acquire_due = true;
        Some(executed)
    }

    /// The reply to a call that was refused and has nothing to tell.
    pub fn refused(&self, call: u64, refusal: Refusal) -> ObjectsMessage {
        let answers = Answers::from_buf([(call, Err(refusal))]);
        ObjectsMessage::replies(answers, false, self.delivered, None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bytes, Call};
    use super::*;
    use crate::Message;

    fn messages() -> Vec<ObjectsMessage> {
        let call = |number, writes, arguments| ObjectsMessage::Bare {
            call: Call {
                id: CallId {
                    node: NodeId(2),
                    number,
                },
                object: ObjectId(77),
                kind: u64::MAX,
                operation: 300,
                writes,
                arguments,
            },
            delivered: number + 1,
        };
        let reply = |result| ObjectsMessage::BareReply {
            call: 9,
            delivered: 1 << 50,
            result,
        };
        let long = Bytes::from(&[7; 100][..]);
        vec![
            call(1 << 40, true, Bytes::from([0x80, 0])),
            call(0, false, Bytes::default()),
            reply(Bytes::default()),
            reply(long),
        ]
    }

    #[test]
    fn bare_messages_come_back_as_they_were_and_no_others_begin_so() {
        for message in messages() {
            let message = Message::Objects(Box::new(message));
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            assert!(is_begun_by(&bytes) && is_whole(&bytes));
            assert_eq!(Message::decode(&bytes).unwrap(), message);
        }
        for delivered in (0..1 << 16).chain([u64::MAX]) {
            let carrier = Box::new(Message::Objects(Box::new(messages().remove(0))));
            let mut bytes = Vec::new();
            let message = Message::After { delivered, carrier };
            message.encode(&mut bytes);
            assert!(!is_begun_by(&bytes), "{delivered}");
        }
    }

    #[test]
    fn what_ends_too_early_is_no_bare_message() {
        for message in messages() {
            let mut bytes = Vec::new();
            assert!(message.encode_bare(&mut bytes));
            let is_call = matches!(message, ObjectsMessage::Bare { .. });
            for end in 0..if is_call { CALL_HEAD } else { REPLY_HEAD } {
                assert_eq!(decode(&bytes[..end]), None);
                assert!(!is_whole(&bytes[..end]));
                assert!(Message::decode(&bytes[..end]).is_err());
            }
            // Neither true nor false, where a call says whether it writes; and what nobody says.
            for (place, byte) in [(6, 2), (7, 1)] {
                let mut bytes = bytes.clone();
                bytes[place] = byte;
                assert_eq!(decode(&bytes), None);
                assert!(!is_whole(&bytes));
            }
        }
    }
}
