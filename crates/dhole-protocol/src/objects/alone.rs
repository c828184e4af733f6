//! Ordered calls: writes of replicated objects that have nothing to tell, multicast where nothing
//! else is under way ([`broadcasts_alone`](crate::group::Group::broadcasts_alone)). Other ordered
//! messages go as the group's messages do; these are the same ones in fewer bytes.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId};

use super::Objects;
use super::bytes::number;
use super::call::{CallId, CallRef, Refusal};
use super::entry::Place;
use super::host::Host;
use super::message::{ObjectsMessage, Ordered};
use crate::group::{Numbered, Submitted, ViewId};

/// How they begin: no other message's bytes do, as with calls of objects elsewhere.
const SUBMIT: [u8; 2] = [0x85, 0];
const DATA: [u8; 2] = [0x86, 0];

const HEAD: usize = 56;

/// An ordered call, where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lies<'a> {
    /// A call that is to be multicast.
    Submit(CallRef<'a>, Submitted),
    /// A call that is multicast.
    Data(CallRef<'a>, Numbered),
}

impl From<Lies<'_>> for ObjectsMessage {
    fn from(lies: Lies<'_>) -> ObjectsMessage {
        match lies {
            Lies::Submit(call, submitted) => submit(call, &submitted),
            Lies::Data(call, numbered) => data(call, &numbered),
        }
    }
}

/// Whether bytes are an ordered call, which [`decode`] brings then.
#[inline]
pub fn is_whole(bytes: &[u8]) -> bool {
    decode(bytes).is_some()
}

/// Whether bytes are those of such a message, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    bytes.starts_with(&SUBMIT) || bytes.starts_with(&DATA)
}

/// What stands before the arguments: all words but the first two.
fn head(begin: [u8; 2], call: CallRef<'_>, view: ViewId, numbers: [u64; 2]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..2].copy_from_slice(&begin);
    head[2..4].copy_from_slice(&call.operation.to_le_bytes());
    head[4..6].copy_from_slice(&call.id.node.0.to_le_bytes());
    head[6..8].copy_from_slice(&view.sequencer.0.to_le_bytes());
    head[16..24].copy_from_slice(&numbers[0].to_le_bytes());
    head[24..32].copy_from_slice(&numbers[1].to_le_bytes());
    head[32..40].copy_from_slice(&call.id.number.to_le_bytes());
    head[40..48].copy_from_slice(&call.object.0.to_le_bytes());
    head[48..].copy_from_slice(&call.kind.to_le_bytes());
    head
}

/// A view and what is a little below a number, in the second word, if they are not large.
fn second(view: ViewId, below: u64) -> Option<[u8; 8]> {
    let (view, below) = (u32::try_from(view.number).ok()?, u32::try_from(below).ok()?);
    Some((u64::from(view) | u64::from(below) << 32).to_le_bytes())
}

/// What stands before the arguments of a call that is to be multicast, which writes; `None` where
/// numbers are too large for it.
#[inline]
pub fn submit_head(call: CallRef<'_>, submitted: &Submitted) -> Option<[u8; HEAD]> {
    let Submitted { view, serial, done } = *submitted;
    let mut head = head(SUBMIT, call, view, [done, serial]);
    head[8..16].copy_from_slice(&second(view, 0)?);
    Some(head)
}

/// What stands before the arguments of a call that is multicast, which writes; `None` where numbers
/// are too large for it.
#[inline]
pub fn data_head(call: CallRef<'_>, numbered: &Numbered) -> Option<[u8; HEAD]> {
    let Numbered {
        view,
        number,
        serial,
        stable,
        ..
    } = *numbered;
    let mut head = head(DATA, call, view, [number, serial]);
    head[8..16].copy_from_slice(&second(view, number.checked_sub(stable)?)?);
    Some(head)
}

/// The ordered call of these bytes, if they are one.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<Lies<'_>> {
    if !is_begun_by(bytes) {
        return None;
    }
    let ([b1, b2, o1, o2, n1, n2, s1, s2], rest) = bytes.split_first_chunk()?;
    let (second, rest) = number(rest)?;
    let (first, rest) = number(rest)?;
    let (serial, rest) = number(rest)?;
    let (call, rest) = number(rest)?;
    let (object, rest) = number(rest)?;
    let (kind, arguments) = number(rest)?;
    let origin = NodeId(u16::from_le_bytes([*n1, *n2]));
    let view = ViewId {
        number: second & u64::from(u32::MAX),
        sequencer: NodeId(u16::from_le_bytes([*s1, *s2])),
    };
    let below = second >> 32;
    let call = CallRef {
        id: CallId {
            node: origin,
            number: call,
        },
        object: ObjectId(object),
        kind,
        operation: u16::from_le_bytes([*o1, *o2]),
        writes: true,
        arguments,
    };
    match [*b1, *b2] {
        SUBMIT if below == 0 => {
            let done = first;
            Some(Lies::Submit(call, Submitted { view, serial, done }))
        }
        SUBMIT => None,
        _ => {
            let numbered = Numbered {
                view,
                number: first,
                origin,
                serial,
                stable: first.checked_sub(below)?,
            };
            Some(Lies::Data(call, numbered))
        }
    }
}

/// What is multicast.
pub fn operate(call: CallRef<'_>) -> Arc<Ordered> {
    Arc::new(Ordered::Operate {
        call: call.into(),
        time: None,
        news: None,
    })
}

/// The message of a call that is to be multicast.
pub(super) fn submit(call: CallRef<'_>, submitted: &Submitted) -> ObjectsMessage {
    ObjectsMessage::Group(submitted.message(call.id.node, operate(call)))
}

/// The message of a call that is multicast.
pub fn data(call: CallRef<'_>, numbered: &Numbered) -> ObjectsMessage {
    ObjectsMessage::Group(numbered.message(operate(call)))
}

impl Objects {
    /// Whether a call that writes this object may be multicast as an ordered call.
    pub fn is_ordered_alone(&self, object: ObjectId, host: &dyn Host) -> bool {
        let entry = self.table.get(&object);
        let replicated = entry.is_some_and(|entry| entry.place == Place::Replicated);
        replicated && !host.has_news_since(&self.told)
    }

    /// Executes an ordered call of `from`, which has the next place in the order, if nothing comes
    /// of that but its outcome: with the bytes of the result behind those of `result`. Else nothing
    /// has happened, and it is to be [delivered](super::ObjectsEvent::Delivered) as others
    /// are.
    pub fn serve_ordered(
        &mut self,
        sequence: u64,
        from: NodeId,
        call: CallRef<'_>,
        host: &mut dyn Host,
        result: &mut Vec<u8>,
    ) -> Option<Result<(), Refusal>> {
        let entry = self.table.get(&call.object)?;
        let alone = entry.place == Place::Replicated && entry.blocked.is_empty();
        let kept = self.digests || self.survives || !self.held.is_empty();
        if !alone || kept || call.id.node != from {
            return None;
        }
        let tried = host.apply_to(call, result);
        let executed = tried.map(|done| done.then_some(())).transpose()?;
        self.delivered = sequence;
        self.acquire_due = true;
        if from == self.me {
            self.pending.forget(call.id.number);
        }
        Some(executed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use dhole_wire::Wire;

    const VIEW: ViewId = ViewId {
        number: u32::MAX as u64,
        sequencer: NodeId(700),
    };

    fn call(arguments: &[u8]) -> CallRef<'_> {
        CallRef {
            id: CallId {
                node: NodeId(300),
                number: 1 << 40,
            },
            object: ObjectId(77),
            kind: u64::MAX,
            operation: 300,
            writes: true,
            arguments,
        }
    }

    const SUBMITTED: Submitted = Submitted {
        view: VIEW,
        serial: 1 << 41,
        done: 1 << 50,
    };

    const NUMBERED: Numbered = Numbered {
        view: VIEW,
        number: (1 << 50) + 7,
        origin: NodeId(300),
        serial: 9,
        stable: 1 << 50,
    };

    /// The bytes of both, and what they are.
    fn both(arguments: &[u8]) -> [(Vec<u8>, ObjectsMessage); 2] {
        let call = call(arguments);
        let submit = submit_head(call, &SUBMITTED).unwrap();
        let data_ = data_head(call, &NUMBERED).unwrap();
        [
            ([&submit[..], arguments].concat(), submit_of(call)),
            ([&data_[..], arguments].concat(), data(call, &NUMBERED)),
        ]
    }

    fn submit_of(call: CallRef<'_>) -> ObjectsMessage {
        submit(call, &SUBMITTED)
    }

    #[test]
    fn ordered_calls_come_back_as_they_were() {
        for arguments in [&[][..], &[7; 3], &[9; 100]] {
            for (bytes, message) in both(arguments) {
                assert!(is_begun_by(&bytes) && is_whole(&bytes));
                let decoded = Message::decode(&bytes).unwrap();
                assert_eq!(decoded, Message::Objects(Box::new(message)));
            }
        }
    }

    #[test]
    fn they_weigh_what_the_messages_do() {
        for arguments in [&[][..], &[5; 11], &[5; 100]] {
            let call = call(arguments);
            assert_eq!(operate(call).wire_len(), call.ordered_bytes());
        }
    }

    #[test]
    fn what_ends_too_early_or_says_what_nobody_says_is_none() {
        for (bytes, _) in both(&[]) {
            for end in 0..HEAD {
                assert!(!is_whole(&bytes[..end]));
                assert!(Message::decode(&bytes[..end]).is_err());
            }
        }
        let [(mut submit, _), (mut data, _)] = both(&[]);
        submit[12] = 1;
        assert!(!is_whole(&submit), "below what?");
        data[16..24].copy_from_slice(&6_u64.to_le_bytes());
        assert!(!is_whole(&data), "below the first number");
    }

    #[test]
    fn numbers_that_do_not_fit_have_no_head() {
        let number = u64::from(u32::MAX) + 1;
        let view = ViewId { number, ..VIEW };
        assert!(submit_head(call(&[]), &Submitted { view, ..SUBMITTED }).is_none());
        assert!(data_head(call(&[]), &Numbered { view, ..NUMBERED }).is_none());
        let far = Numbered {
            stable: NUMBERED.number - number,
            ..NUMBERED
        };
        assert!(data_head(call(&[]), &far).is_none());
        let above = Numbered {
            stable: NUMBERED.number + 1,
            ..NUMBERED
        };
        assert!(data_head(call(&[]), &above).is_none());
    }
}
