//! What one step of a node works with beside the node's state, and what it may ask of the heap.

use dhole_heap::{HeapMut, Presence};
use dhole_model::{Elements, NodeId, Notify, Oid};
use dhole_net::{Outbox, Payload, PayloadPool};
use dhole_protocol::{Message, ProtocolError, Sent, WorkerIs};

/// What one step works with beside the state.
pub(crate) struct Step<'a, 'g> {
    /// Whose message is taken; this node itself where its worker does something.
    pub from: NodeId,
    pub heap: &'a mut HeapMut<'g>,
    pub pool: &'a PayloadPool,
    pub out: &'a mut Outbox<Message>,
    /// The bytes that came with the message being delivered, from the next object on.
    pub payload: &'a [u8],
    /// How the bytes of a message are sent at once, where that can be done; whether they were.
    pub at_once: Option<AtOnce<'a>>,
}

/// The part of a step that sends, for what sends while the heap is in use.
pub(crate) struct Posts<'a, 's> {
    pub from: NodeId,
    pub out: &'a mut Outbox<Message>,
    pub at_once: &'a mut Option<AtOnce<'s>>,
}

impl<'s> Posts<'_, 's> {
    /// The same, for as long as this is lent.
    pub fn again(&mut self) -> Posts<'_, 's> {
        Posts {
            from: self.from,
            out: self.out,
            at_once: self.at_once,
        }
    }
}

impl<'a> Step<'a, '_> {
    /// Takes the next bytes of the payload.
    pub(crate) fn next_bytes(&mut self, bytes: u64) -> Result<&'a [u8], ProtocolError> {
        let (next, rest) = split(self.payload, bytes, self.from)?;
        self.payload = rest;
        Ok(next)
    }
}

/// So many bytes, and those behind them.
pub(crate) fn split(
    payload: &[u8],
    bytes: u64,
    from: NodeId,
) -> Result<(&[u8], &[u8]), ProtocolError> {
    let at = usize::try_from(bytes).ok();
    let parts = at.and_then(|at| payload.split_at_checked(at));
    let what = "a message holds fewer bytes than it names";
    parts.ok_or(ProtocolError::BadMessage { from, what })
}

/// Sends a message as [`Machine::send_bytes`](crate::Machine::send_bytes); whether it was sent.
pub(crate) type AtOnce<'a> = &'a mut dyn FnMut(NodeId, [&[u8]; 3], Notify) -> bool;

/// What the protocol has to know of where the worker is.
pub(crate) fn worker_is(presence: Presence) -> WorkerIs {
    match presence {
        Presence::Computing => WorkerIs::Computing,
        Presence::Shared => WorkerIs::Sharing,
        Presence::Exclusive => WorkerIs::InCall,
    }
}

pub(crate) fn bad(sent: Sent, what: &'static str) -> ProtocolError {
    ProtocolError::BadMessage {
        from: sent.version.node,
        what,
    }
}

pub(crate) fn gather(heap: &HeapMut<'_>, oid: Oid, pre_image: bool, payload: &mut Payload) {
    let gathered = match pre_image {
        false => heap.gather(oid, payload.buffer()),
        true => heap.gather_pre_image(oid, payload.buffer()),
    };
    if let Err(refused) = gathered {
        panic!("{oid}: the protocol sends only what is stored and not being written: {refused}");
    }
}

/// Appends the bytes of elements.
pub(crate) fn gather_elements(
    elements: Elements,
    heap: &mut HeapMut<'_>,
    out: &mut Payload,
) -> Result<(), ProtocolError> {
    let gathered = heap.gather_elements(elements, out.buffer());
    gathered.map_err(|refused| not_stored(elements.array, &refused))
}

/// The heap refuses what a protocol asks of it.
pub(crate) fn not_stored(oid: Oid, cause: &dyn std::fmt::Display) -> ProtocolError {
    ProtocolError::NotStored {
        oid,
        cause: cause.to_string(),
    }
}

/// The protocol asks the heap only for what the worker's state allows.
pub(crate) fn must<E: std::fmt::Display>(done: Result<(), E>, why: &str) {
    if let Err(refused) = done {
        panic!("{why}: {refused}");
    }
}
