use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dhole_model::NodeId;
use dhole_net::Envelope;
use dhole_protocol::Message;

use crate::random::Stream;
use crate::transit::Flight;

/// The events to come, in the order of virtual time. At one instant events of messages come before
/// workers that go on. Among events of one kind a random key decides, so that every seed tries
/// another order.
pub(crate) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    /// The messages in flight, at the places that entries name.
    messages: Places<Envelope<Message>>,
    flights: Places<Flight>,
    ties: Stream,
}

/// Values at places that are reused.
struct Places<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Places<T> {
    const NONE: Places<T> = Places {
        values: Vec::new(),
        free: Vec::new(),
    };

    fn put(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.values[place as usize] = Some(value);
                place
            }
            None => {
                let place = u32::try_from(self.values.len()).expect("fewer than 2^32 messages");
                self.values.push(Some(value));
                place
            }
        }
    }

    fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        let value = self.values[place as usize].take();
        value.expect("what an entry names is kept until its time has come")
    }
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
    Pass(u32),
    GoOn(NodeId),
    Sweep(NodeId),
    Crash(NodeId),
}

/// An event.
pub(crate) enum Event {
    /// A message arrives.
    Deliver(Envelope<Message>),
    /// A message reaches its next channel, or is sent again.
    Pass(Flight),
    /// The worker of a node goes on.
    GoOn(NodeId),
    /// A node that computes looks for messages.
    Sweep(NodeId),
    /// A node crashes.
    Crash(NodeId),
}

const GO_ON: u64 = 1 << 63;

impl Agenda {
    /// An agenda without events.
    pub(crate) fn new(ties: Stream) -> Agenda {
        Agenda {
            entries: BinaryHeap::new(),
            messages: Places::NONE,
            flights: Places::NONE,
            ties,
        }
    }

    /// Adds the arrival of a message.
    pub(crate) fn deliver(&mut self, time: u64, envelope: Envelope<Message>) {
        let place = self.messages.put(envelope);
        self.soon(time, What::Deliver(place));
    }

    /// Adds the event that a message reaches its next channel, or is sent again.
    pub(crate) fn pass(&mut self, time: u64, flight: Flight) {
        let place = self.flights.put(flight);
        self.soon(time, What::Pass(place));
    }

    #[inline]
    fn soon(&mut self, time: u64, what: What) {
        let order = self.ties.draw() & !GO_ON;
        self.entries.push(Reverse(Entry { time, order, what }));
    }

    /// Adds the event that a node looks for messages.
    pub(crate) fn sweep(&mut self, time: u64, node: NodeId) {
        self.soon(time, What::Sweep(node));
    }

    /// Adds the crash of a node.
    pub(crate) fn crash(&mut self, time: u64, node: NodeId) {
        self.soon(time, What::Crash(node));
    }

    /// Adds the event that the worker of a node goes on.
    pub(crate) fn go_on(&mut self, time: u64, node: NodeId) {
        let order = self.ties.draw() | GO_ON;
        self.entries.push(Reverse(Entry {
            time,
            order,
            what: What::GoOn(node),
        }));
    }

    /// The time of the next event, and whether it comes before workers that go on.
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
            What::Sweep(node) => Event::Sweep(node),
            What::Crash(node) => Event::Crash(node),
            What::Deliver(place) => Event::Deliver(self.messages.take(place)),
            What::Pass(place) => Event::Pass(self.flights.take(place)),
        };
        Some((entry.time, event))
    }
}
