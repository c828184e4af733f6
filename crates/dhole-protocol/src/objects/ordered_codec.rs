//! The bytes of an ordered write: a head of 68 bytes, which is read where it lies. Write notices
//! follow the head, if there are any, and the arguments are all that is left.
//!
//! A write is *submitted* to the sequencer, and comes from there with its number. Other ordered
//! messages go as the group's other messages do.

use std::sync::Arc;

use dhole_model::{ObjectId, VectorTime};
use dhole_wire::{Tail, Wire, WireError};

use super::bytes::Bytes;
use super::call::{Call, CallId};
use super::message::Ordered;
use crate::WriteNotices;
use crate::group::{GroupMessage, Part, ViewId};

/// The first byte of a write that is to be numbered. No other kind of message begins so: their
/// numbers are less.
const SUBMIT: u8 = 0x82;
/// The first byte of one that has its number.
const DATA: u8 = 0x83;

#[derive(Wire)]
struct Head {
    kind: u8,
    /// Of a submitted one, whether its worker waits for it; and whether it was started.
    flags: u8,
    operation: u16,
    /// Bytes of notices.
    notices: u32,
    view: ViewId,
    /// The number; of a submitted one, up to where its originator has delivered.
    number: u64,
    /// Up to where all have delivered; of a submitted one 0.
    stable: u64,
    serial: u64,
    id: CallId,
    object: ObjectId,
    of_type: u64,
}

const WAITS: u8 = 1;
const STARTED: u8 = 2;

/// Whether bytes are those of such a message, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    matches!(bytes, [SUBMIT | DATA, ..])
}

#[inline]
fn head(bytes: &mut Tail<'_>) -> Result<Head, WireError> {
    let head = Head::take(bytes)?;
    let sound = match head.kind {
        SUBMIT => head.stable == 0 && head.flags & !(WAITS | STARTED) == 0,
        DATA => head.flags & !STARTED == 0,
        _ => false,
    };
    match sound {
        true => Ok(head),
        false => Err(WireError::Value("no ordered write")),
    }
}

/// How many bytes of notices there are.
#[inline]
pub(super) fn length(notices: &[u8]) -> u32 {
    u32::try_from(notices.len()).expect("no message is so long")
}

/// What the bytes of notices say. Where nothing is said there are none.
#[inline]
pub(super) fn said(notices: &[u8]) -> Result<Said, WireError> {
    if notices.is_empty() {
        return Ok((None, None));
    }
    match Wire::parse(notices)? {
        (None, None) => Err(WireError::Value("notices that say nothing")),
        said => Ok(said),
    }
}

/// What an operation tells its receiver.
pub(super) type Said = (Option<VectorTime>, Option<Arc<WriteNotices>>);

/// What a write tells.
type Notices<'m> = (&'m Option<VectorTime>, &'m Option<Arc<WriteNotices>>);

/// A write that is the whole body of a message.
#[inline]
fn whole<'m>(part: &Part, body: &'m Ordered) -> Option<(&'m Call, Notices<'m>)> {
    let Ordered::Operate { call, time, news } = body else {
        return None;
    };
    let is_whole = (part.part, part.parts) == (0, 1) && part.origin == call.id.node;
    (is_whole && call.writes).then_some((call, (time, news)))
}

/// Bytes of a message; `None` where it is none of these.
pub(super) fn len(message: &GroupMessage<Arc<Ordered>>) -> Option<usize> {
    let (GroupMessage::Submit { part, body, .. } | GroupMessage::Data { part, body, .. }) = message
    else {
        return None;
    };
    let (call, (time, news)) = whole(part, body)?;
    let notices = match time.is_some() || news.is_some() {
        true => time.wire_len() + news.wire_len(),
        false => 0,
    };
    Some(Head::HEAD_LEN + notices + call.arguments.len())
}

/// Appends the bytes of a message, but for the arguments, which follow them; `None` where it is
/// none of these. `waits` says whether the worker of this node waits for a submitted one.
#[inline]
pub fn write_head<'m>(
    message: &'m GroupMessage<Arc<Ordered>>,
    waits: bool,
    out: &mut Vec<u8>,
) -> Option<&'m [u8]> {
    let (kind, view, part, body, number, stable) = match message {
        GroupMessage::Submit {
            view,
            part,
            body,
            done,
        } => (SUBMIT, view, part, body, *done, 0),
        GroupMessage::Data {
            view,
            number,
            part,
            body,
            stable,
        } => (DATA, view, part, body, *number, *stable),
        _ => return None,
    };
    let (call, (time, news)) = whole(part, body)?;
    let notices = match time.is_some() || news.is_some() {
        true => (time.clone(), news.clone()).to_bytes(),
        false => Vec::new(),
    };
    let head = Head {
        kind,
        flags: (WAITS * u8::from(waits && kind == SUBMIT)) | (STARTED * u8::from(call.started)),
        operation: call.operation,
        notices: length(&notices),
        view: *view,
        number,
        stable,
        serial: part.serial,
        id: call.id,
        object: call.object,
        of_type: call.kind,
    };
    head.write(out);
    out.extend_from_slice(&notices);
    Some(&call.arguments)
}

/// The message that is all of these bytes, and whether its worker waits for it. `None` where they
/// are none.
#[inline]
pub fn parse(bytes: &[u8]) -> Option<(GroupMessage<Arc<Ordered>>, bool)> {
    let mut bytes = Tail::new(bytes);
    let head = head(&mut bytes).ok()?;
    let (time, news) = said(bytes.bytes(head.notices as usize).ok()?).ok()?;
    let call = Call {
        id: head.id,
        object: head.object,
        kind: head.of_type,
        operation: head.operation,
        writes: true,
        started: head.flags & STARTED != 0,
        chain: Bytes::default(),
        arguments: bytes.rest().into(),
    };
    let body = Arc::new(Ordered::Operate { call, time, news });
    let part = Part {
        origin: head.id.node,
        serial: head.serial,
        part: 0,
        parts: 1,
    };
    let (view, number) = (head.view, head.number);
    let message = match head.kind {
        SUBMIT => GroupMessage::Submit {
            view,
            part,
            body,
            done: number,
        },
        _ => GroupMessage::Data {
            view,
            number,
            part,
            body,
            stable: head.stable,
        },
    };
    Some((message, head.flags & WAITS != 0))
}

#[cfg(test)]
mod tests {
    use dhole_model::NodeId;

    use super::super::ObjectsMessage;
    use super::*;
    use crate::Message;

    const VIEW: ViewId = ViewId {
        number: 1 << 52,
        sequencer: NodeId(700),
    };

    fn body(arguments: &[u8]) -> Arc<Ordered> {
        let call = Call {
            id: CallId {
                node: NodeId(300),
                number: 1 << 40,
            },
            object: ObjectId(77),
            kind: u64::MAX,
            operation: 300,
            writes: true,
            started: arguments.len() > 9,
            chain: Bytes::default(),
            arguments: arguments.into(),
        };
        let (time, news) = (None, None);
        Arc::new(Ordered::Operate { call, time, news })
    }

    fn part() -> Part {
        Part {
            origin: NodeId(300),
            serial: 1 << 41,
            part: 0,
            parts: 1,
        }
    }

    fn submit(arguments: &[u8]) -> GroupMessage<Arc<Ordered>> {
        GroupMessage::Submit {
            view: VIEW,
            part: part(),
            body: body(arguments),
            done: 1 << 50,
        }
    }

    fn data(view: ViewId, number: u64, stable: u64) -> GroupMessage<Arc<Ordered>> {
        GroupMessage::Data {
            view,
            number,
            part: part(),
            body: body(&[7; 3]),
            stable,
        }
    }

    fn both() -> [GroupMessage<Arc<Ordered>>; 2] {
        [submit(&[9; 100]), data(VIEW, (1 << 50) + 7, 1 << 50)]
    }

    fn bytes_of(message: &GroupMessage<Arc<Ordered>>, waits: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let arguments = write_head(message, waits, &mut bytes).unwrap();
        bytes.extend_from_slice(arguments);
        bytes
    }

    #[test]
    fn ordered_writes_come_back_as_they_were() {
        for message in both() {
            for waits in [false, true] {
                let bytes = bytes_of(&message, waits);
                let is_submit = matches!(message, GroupMessage::Submit { .. });
                assert!(is_begun_by(&bytes));
                let (parsed, waited) = parse(&bytes).unwrap();
                assert_eq!((&parsed, waited), (&message, waits && is_submit));
                let message = ObjectsMessage::Group(message.clone());
                let message = Message::Objects(Box::new(message));
                assert_eq!(Message::decode(&bytes), Ok(message));
            }
        }
    }

    #[test]
    fn what_ends_too_early_or_says_what_nobody_says_is_none() {
        for message in both() {
            let bytes = bytes_of(&message, false);
            for end in 0..68 {
                assert!(parse(&bytes[..end]).is_none());
                assert!(Message::decode(&bytes[..end]).is_err());
            }
            let mut bytes = bytes.clone();
            bytes[1] = 4;
            assert!(parse(&bytes).is_none());
        }
        let [mut submitted, mut numbered] = both().map(|it| bytes_of(&it, false));
        submitted[26] = 1;
        assert!(parse(&submitted).is_none(), "all have delivered what?");
        numbered[1] = 1;
        assert!(parse(&numbered).is_none(), "who waits?");
    }

    #[test]
    fn what_is_no_whole_write_has_no_head() {
        let none = |message| assert_eq!(write_head(&message, false, &mut Vec::new()), None);
        let mut parts = submit(&[]);
        if let GroupMessage::Submit { part, .. } = &mut parts {
            part.parts = 2;
        }
        none(parts);
        let mut others = submit(&[]);
        if let GroupMessage::Submit { part, .. } = &mut others {
            part.origin = NodeId(1);
        }
        none(others);
    }
}
