use dhole_model::NodeId;

use crate::{Outbox, Port, PostError, Receiver, Wake};

/// The port between nodes of one process: the thread that sends runs the receiver's handler,
/// under the receiver's lock, and then whatever that handler wants sent, until nothing is left.
/// No thread stands between two nodes, and none has to be woken for a request to be served.
pub struct InProcess<'a, M> {
    receivers: &'a [&'a dyn Receiver<M>],
}

impl<'a, M> InProcess<'a, M> {
    /// A port between these nodes; node `i` is `receivers[i]`.
    pub fn new(receivers: &'a [&'a dyn Receiver<M>]) -> Self {
        InProcess { receivers }
    }
}

impl<M> Port<M> for InProcess<'_, M> {
    fn post(&self, out: &mut Outbox<M>, wake: &dyn Fn(NodeId)) -> Result<(), PostError> {
        while let Some(envelope) = out.pop() {
            let receiver =
                self.receivers
                    .get(envelope.to.index())
                    .ok_or(PostError::NoSuchNode {
                        from: envelope.from,
                        to: envelope.to,
                        nodes: self.receivers.len(),
                    })?;
            let to = envelope.to;
            if receiver.deliver(envelope, out) == Wake::Yes {
                wake(to);
            }
        }
        Ok(())
    }
}
