use dhole_model::NodeId;

use crate::{Outbox, PostError, Receiver, Wake};

/// What carries messages between nodes of one process: the thread that sends runs the receiver's
/// handler, under the receiver's lock, and then whatever that handler wants sent, until nothing is
/// left. No thread stands between two nodes, and none has to be woken for a request to be served.
pub struct InProcess<'a, M> {
    receivers: &'a [&'a dyn Receiver<M>],
}

impl<'a, M> InProcess<'a, M> {
    /// A port between these nodes; node `i` is `receivers[i]`.
    pub fn new(receivers: &'a [&'a dyn Receiver<M>]) -> Self {
        InProcess { receivers }
    }

    /// Sends everything in `out`, and whatever receivers want sent while this call runs their
    /// handlers. Leaves `out` empty. Calls `wake` for every node whose worker a delivery made
    /// ready to go on, holding no lock of any node.
    ///
    /// # Errors
    /// [`PostError`] when a message is addressed to a node that is not among the receivers; the
    /// messages behind it stay in `out`.
    pub fn post(&self, out: &mut Outbox<M>, wake: &dyn Fn(NodeId)) -> Result<(), PostError> {
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
