use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dhole_model::NodeId;
use dhole_net::Envelope;
use dhole_protocol::Message;

use crate::random::Stream;

/// What is to happen, in the order of virtual time. At one instant all deliveries come before
/// all workers that go on, and among their like a random key decides, so that every seed tries
/// another order.
pub(crate) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    /// The messages on their way, at the places that entries name.
    messages: Vec<Option<Envelope<Message>>>,
    free: Vec<u32>,
    ties: Stream,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    /// The kind of event in the highest bit, a random key in the others.
    order: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Deliver(u32),
    GoOn(NodeId),
}

/// An event whose time has come.
pub(crate) enum Event {
    /// A message arrives.
    Deliver(Envelope<Message>),
    /// The worker of a node goes on.
    GoOn(NodeId),
}

const GO_ON: u64 = 1 << 63;

impl Agenda {
    /// Nothing is to happen yet.
    pub(crate) fn new(ties: Stream) -> Agenda {
        Agenda {
            entries: BinaryHeap::new(),
            messages: Vec::new(),
            free: Vec::new(),
            ties,
        }
    }

    /// A message will arrive.
    pub(crate) fn deliver(&mut self, time: u64, envelope: Envelope<Message>) {
        let place = match self.free.pop() {
            Some(place) => {
                self.messages[place as usize] = Some(envelope);
                place
            }
            None => {
                let place = u32::try_from(self.messages.len()).expect("fewer than 2^32 messages");
                self.messages.push(Some(envelope));
                place
            }
        };
        let order = self.ties.draw() & !GO_ON;
        self.entries.push(Reverse(Entry {
            time,
            order,
            what: What::Deliver(place),
        }));
    }

    /// The worker of a node will go on.
    pub(crate) fn go_on(&mut self, time: u64, node: NodeId) {
        let order = self.ties.draw() | GO_ON;
        self.entries.push(Reverse(Entry {
            time,
            order,
            what: What::GoOn(node),
        }));
    }

    /// The time of the next event, and whether it is a delivery.
    #[inline]
    pub(crate) fn next(&self) -> Option<(u64, bool)> {
        self.entries
            .peek()
            .map(|Reverse(entry)| (entry.time, entry.order & GO_ON == 0))
    }

    /// Takes the next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse(entry) = self.entries.pop()?;
        let event = match entry.what {
            What::GoOn(node) => Event::GoOn(node),
            What::Deliver(place) => {
                self.free.push(place);
                let message = self.messages[place as usize].take();
                Event::Deliver(message.expect("an entry's message is kept until it arrives"))
            }
        };
        Some((entry.time, event))
    }
}
