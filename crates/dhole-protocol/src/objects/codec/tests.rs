use dhole_model::NodeId;

use super::*;
use crate::objects::{Bytes, Call};
use crate::{Attached, Interval, Message};

fn news() -> Arc<WriteNotices> {
    let mut time = VectorTime::zero(3);
    time.see(NodeId(1), 9);
    let interval = Interval {
        node: NodeId(1),
        first: 9,
        index: 9,
        lamport: 4,
        written: Vec::new(),
        base: None,
        elements: Vec::new(),
        freed: Vec::new(),
        attached: Attached::Nothing,
    };
    Arc::new(WriteNotices {
        time,
        lamport: 4,
        intervals: vec![Arc::new(interval)],
    })
}

fn request(number: u64, writes: bool, arguments: &[u8]) -> ObjectsMessage {
    ObjectsMessage::Request {
        call: Call {
            id: CallId {
                node: NodeId(2),
                number,
            },
            object: ObjectId(77),
            kind: u64::MAX,
            operation: 300,
            writes,
            started: !writes,
            chain: Bytes::default(),
            arguments: arguments.into(),
        },
        delivered: number + 1,
        time: None,
        news: None,
    }
}

fn reply(outcome: Result<Bytes, Refusal>) -> ObjectsMessage {
    ObjectsMessage::Reply {
        call: 9,
        outcome,
        delivered: 1 << 50,
        news: None,
    }
}

/// Messages that bring no notices, and no refusal.
fn plain() -> Vec<ObjectsMessage> {
    vec![
        request(1 << 40, true, &[0x80, 0]),
        request(0, false, &[]),
        reply(Ok(Bytes::default())),
        reply(Ok(Bytes::from(&[7; 100][..]))),
    ]
}

/// The same with notices, and refusals with and without.
fn others() -> Vec<ObjectsMessage> {
    let refused = || reply(Err(Refusal::Malformed("no number".into())));
    let mut all = plain();
    all.push(refused());
    for message in &mut all {
        match message {
            ObjectsMessage::Request { time, news: it, .. } => {
                (*time, *it) = (Some(news().time.clone()), Some(news()));
            }
            ObjectsMessage::Reply { news: it, .. } => *it = Some(news()),
            _ => {}
        }
    }
    let mut seen = request(5, true, &[1, 2, 3]);
    if let ObjectsMessage::Request { time, .. } = &mut seen {
        *time = Some(VectorTime::zero(3));
    }
    all.extend([refused(), seen]);
    all
}

fn bytes_of(message: &ObjectsMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = Message::Objects(Box::new(message.clone()));
    message.encode(&mut bytes);
    bytes
}

#[test]
fn messages_come_back_as_they_were_and_no_others_begin_so() {
    for message in plain().into_iter().chain(others()) {
        let bytes = bytes_of(&message);
        assert!(is_begun_by(&bytes));
        let message = Message::Objects(Box::new(message));
        assert_eq!(Message::decode(&bytes).unwrap(), message);
    }
    for delivered in (0..1 << 16).chain([u64::MAX]) {
        let carrier = Box::new(Message::Objects(Box::new(plain().remove(0))));
        let mut bytes = Vec::new();
        let message = Message::After { delivered, carrier };
        message.encode(&mut bytes);
        assert!(!is_begun_by(&bytes), "{delivered}");
    }
}

#[test]
fn the_bytes_are_these() {
    let mut asked = request(5, true, &[6, 7]);
    if let ObjectsMessage::Request { call, .. } = &mut asked {
        call.kind = 0x0102;
    }
    let head = [
        &[0x80, 1, 44, 1, 0, 0, 0, 0][..],
        &[2, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        &[77, 0, 0, 0, 0, 0, 0, 0],
        &[2, 1, 0, 0, 0, 0, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(bytes_of(&asked), [&head.concat()[..], &[6, 7]].concat());
    let head = [
        &[0x81, 0, 0, 0, 0, 0][..],
        &[9, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 4, 0],
    ];
    let answered = bytes_of(&reply(Ok(Bytes::from([8]))));
    assert_eq!(answered, [&head.concat()[..], &[8]].concat());
}

#[test]
fn what_ends_too_early_or_has_bits_that_mean_nothing_is_refused() {
    for message in plain().into_iter().chain(others()) {
        let bytes = bytes_of(&message);
        let (head, notices) = match &message {
            ObjectsMessage::Request { .. } => (42, bytes[4]),
            _ => (22, bytes[2]),
        };
        for end in 0..head + usize::from(notices) {
            assert_eq!(parse(&bytes[..end]), None);
            assert!(Message::decode(&bytes[..end]).is_err());
        }
        // A request writes, or was started; a reply is refused. No other bit means anything.
        let mut bytes = bytes.clone();
        bytes[1] = 4;
        assert_eq!(parse(&bytes), None);
    }
}

#[test]
fn notices_and_refusals_are_all_that_is_said_to_be_theirs() {
    for message in others() {
        let bytes = bytes_of(&message);
        let is_refused = matches!(
            &message,
            ObjectsMessage::Reply {
                outcome: Err(_),
                ..
            }
        );
        if is_refused {
            assert_eq!(parse(&[&bytes[..], &[0]].concat()), None);
        }
        let place = if bytes[0] == REQUEST { 4 } else { 2 };
        if bytes[place] > 0 {
            let mut fewer = bytes.clone();
            fewer[place] -= 1;
            assert_eq!(parse(&fewer), None);
        }
    }
}

#[test]
fn a_length_that_is_only_claimed_is_refused() {
    let mut bytes = bytes_of(&plain()[0]);
    bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(parse(&bytes), None);
}

#[test]
fn messages_have_the_length_that_they_say() {
    for message in plain().into_iter().chain(others()) {
        assert_eq!(message.operation_len(), Some(bytes_of(&message).len()));
    }
}
