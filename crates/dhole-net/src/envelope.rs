use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::Mutex;

use dhole_model::{NodeId, Work};

/// One message on its way: who, to whom, the protocols' part, and the bytes of objects that
/// travel with it.
#[derive(Debug)]
pub struct Envelope<M> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// What the protocols say to each other.
    pub body: M,
    /// Bytes of objects, which the protocols name and never look at.
    pub payload: Payload,
}

/// Bytes of objects that travel with a message; most messages carry none.
#[derive(Default)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// No bytes.
    pub const NONE: Payload = Payload(Vec::new());

    /// Adds bytes at the end.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Whether there is no buffer that could be used again.
    pub fn has_no_buffer(&self) -> bool {
        self.0.capacity() == 0
    }

    /// The buffer itself.
    pub fn into_buffer(self) -> Vec<u8> {
        self.0
    }

    /// The buffer itself, for a gatherer that appends.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload(bytes)
    }
}

impl Deref for Payload {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// Messages that a handler wants sent, in order, and what it did for them. Reused, so that sending
/// allocates nothing once it is warm.
#[derive(Debug)]
pub struct Outbox<M> {
    envelopes: VecDeque<Envelope<M>>,
    work: Work,
}

impl<M> Default for Outbox<M> {
    fn default() -> Self {
        Outbox {
            envelopes: VecDeque::new(),
            work: Work::default(),
        }
    }
}

impl<M> Outbox<M> {
    /// Adds a message behind the others.
    pub fn push(&mut self, envelope: Envelope<M>) {
        self.envelopes.push_back(envelope);
    }

    /// Takes the first message.
    pub fn pop(&mut self) -> Option<Envelope<M>> {
        self.envelopes.pop_front()
    }

    /// Takes the first message if it is as wanted.
    pub fn pop_if(&mut self, wanted: impl FnOnce(&Envelope<M>) -> bool) -> Option<Envelope<M>> {
        self.envelopes.pop_front_if(|envelope| wanted(envelope))
    }

    /// What is to be sent but for the first `before` messages.
    pub fn since(&self, before: usize) -> impl Iterator<Item = &Envelope<M>> {
        self.envelopes.iter().skip(before)
    }

    /// How many messages are to be sent.
    pub fn len(&self) -> usize {
        self.envelopes.len()
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.envelopes.is_empty()
    }

    /// What was done before the messages are sent, for machines that charge it.
    pub fn work(&mut self) -> &mut Work {
        &mut self.work
    }

    /// Whether a machine has to be told of [`work`](Outbox::work).
    pub fn has_work(&self) -> bool {
        self.work != Work::default()
    }

    /// Takes what was done.
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }
}

/// Buffers for payloads, shared by the nodes of a process: a reply's buffer moves from the node
/// that answers to the node that asked, so a pool of each node's own would run dry.
#[derive(Default, Debug)]
pub struct PayloadPool {
    free: Mutex<Vec<Vec<u8>>>,
}

impl PayloadPool {
    /// Buffers that are kept; more than these are given back to the allocator.
    const MOST_BUFFERS: usize = 256;
    /// A buffer that has grown past this is not kept.
    const MOST_BYTES: usize = 1 << 20;

    /// An empty payload, with room where a used buffer is at hand.
    pub fn take(&self) -> Payload {
        let mut free = self
            .free
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        Payload(free.pop().unwrap_or_default())
    }

    /// Gives a payload's buffer back.
    pub fn give_back(&self, payload: Payload) {
        let mut buffer = payload.0;
        if buffer.capacity() == 0 || buffer.capacity() > Self::MOST_BYTES {
            return;
        }
        buffer.clear();
        let mut free = self
            .free
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if free.len() < Self::MOST_BUFFERS {
            free.push(buffer);
        }
    }
}
