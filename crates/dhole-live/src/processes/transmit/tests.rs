//! How often the messages of a thread notify their receivers, and when.

use dhole_net::{Layer, Local};
use dhole_protocol::{Flush, RegionMessage};

use super::*;

/// What a port was asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Did {
    Sent(u16),
    SentLazily(u16),
    /// There was no room for a frame.
    Refused(u16),
    Notified(u16),
    Polled,
}
use Did::{Notified, Polled, Refused, Sent, SentLazily};

struct Notes {
    port: Local,
    did: Arc<Mutex<Vec<Did>>>,
    /// So many frames go before one finds no room.
    room: Mutex<usize>,
}

impl Notes {
    fn notes(&self, did: Did, to: NodeId) -> Result<(), SendError> {
        let room = &mut *lock(&self.room);
        let has_room = *room != 0;
        *room = room.wrapping_sub(1);
        lock(&self.did).push(if has_room { did } else { Refused(to.0) });
        has_room.then_some(()).ok_or(SendError::Busy { to })
    }
}

impl Layer for Notes {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        let did = match notify {
            Notify::Now => Sent(to.0),
            Notify::Lazy => SentLazily(to.0),
        };
        self.notes(did, to)?;
        Port::send_with(&self.port, to, parts, notify)
    }

    fn notify(&self, to: NodeId) {
        lock(&self.did).push(Notified(to.0));
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        lock(&self.did).push(Polled);
        Port::poll(&self.port, take)
    }
}

/// A message to a node, which notifies it or does not.
fn message(to: u16, notify: Notify) -> Envelope<Message> {
    let body = match notify {
        Notify::Now => Message::Region(RegionMessage::Flush(Flush {
            number: 1,
            at: Default::default(),
            flushed: Default::default(),
        })),
        Notify::Lazy => Message::Region(RegionMessage::FlushAck { number: 1 }),
    };
    let to = NodeId(to);
    assert_eq!(body.notify(to), notify);
    Envelope {
        from: NodeId(0),
        to,
        body,
        payload: Payload::NONE,
    }
}

fn now(to: u16) -> Envelope<Message> {
    message(to, Notify::Now)
}

fn lazy(to: u16) -> Envelope<Message> {
    message(to, Notify::Lazy)
}

/// What node 0 of three does with its port when it sends these, where so many frames find room.
fn does_within(room: usize, messages: impl IntoIterator<Item = Envelope<Message>>) -> Vec<Did> {
    let mut ports = Local::cluster(3).unwrap();
    let did: Arc<Mutex<Vec<Did>>> = Arc::default();
    let notes = Notes {
        port: ports.remove(0),
        did: Arc::clone(&did),
        room: Mutex::new(room),
    };
    let machine = Processes::new(Box::new(notes), 0).unwrap();
    let mut out = Outbox::default();
    messages.into_iter().for_each(|message| out.push(message));
    machine.post_all(&[], &mut out);
    lock(&did).clone()
}

fn does(messages: impl IntoIterator<Item = Envelope<Message>>) -> Vec<Did> {
    does_within(usize::MAX, messages)
}

#[test]
fn messages_to_one_node_notify_it_once() {
    assert_eq!(does([]), []);
    assert_eq!(does([lazy(1), lazy(1)]), [SentLazily(1), SentLazily(1)]);
    assert_eq!(does([now(1)]), [Sent(1)]);
    let three = [SentLazily(1), SentLazily(1), Sent(1)];
    assert_eq!(does([now(1), now(1), now(1)]), three);
    // The last of them does, though it would not notify by itself.
    assert_eq!(does([now(1), lazy(1), lazy(1)]), three);
}

#[test]
fn each_of_several_nodes_is_notified_once() {
    let did = does([now(2), now(1), lazy(2), now(2), now(1), lazy(1), lazy(2)]);
    let lazily = [2, 1, 2, 2, 1, 1].map(SentLazily);
    assert_eq!(did[..6], lazily);
    assert_eq!(did[6..], [Sent(2), Notified(1)]);
    let did = does([now(2), lazy(1), now(1), lazy(2), now(1)]);
    assert_eq!(did[5..], [Notified(2)]);
    assert_eq!(did[4], Sent(1));
}

#[test]
fn a_long_message_notifies_as_it_goes() {
    let mut long = lazy(1);
    long.payload.extend(&[0; AT_ONCE + 1]);
    let did = does([now(1), long, lazy(1), lazy(2)]);
    let rest = [SentLazily(1), SentLazily(2)];
    assert_eq!(did, [[SentLazily(1), Sent(1)], rest].concat());
}

#[test]
fn nodes_are_notified_before_this_one_executes_something() {
    let did = does([now(1), now(2), now(0), now(1), now(1)]);
    let before = [SentLazily(1), SentLazily(2), Notified(1), Notified(2)];
    assert_eq!(did, [&before[..], &[SentLazily(1), Sent(1)]].concat());
}

#[test]
fn nodes_are_notified_before_this_one_waits_for_room() {
    let did = does_within(2, [now(2), lazy(1), lazy(1), lazy(2)]);
    let waits = [Refused(1), Notified(1), Notified(2), Polled];
    let before = [SentLazily(2), SentLazily(1)];
    let after = [SentLazily(1), SentLazily(2)];
    assert_eq!(did, [&before[..], &waits, &after].concat());
    // What finds room in the end notifies as it would have.
    let did = does_within(1, [now(1), now(1), lazy(2)]);
    let waits = [SentLazily(1), Refused(1), Notified(1), Polled];
    let after = [SentLazily(1), SentLazily(2), Notified(1)];
    assert_eq!(did, [&waits[..], &after].concat());
}
