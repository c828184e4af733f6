//! PartEffects that are carried out as the part calls them.

use dhole_model::NodeId;

use crate::{NodePart, PartEffects, PartMessage};

/// What carries the messages of parts away.
pub trait Outlet {
    /// An empty buffer for the bytes of a message.
    fn buffer(&mut self) -> Vec<u8>;

    /// Sends a message with its bytes.
    fn send<P: NodePart>(&mut self, to: NodeId, message: &P::Message, payload: Vec<u8>);
}

/// What the engine does for a part: one implementation for each part.
pub trait PartHost<P: NodePart, O: Outlet> {
    /// Does what the part cannot.
    fn act(&mut self, act: P::Act, out: &mut O);

    /// Lets a waiter go on.
    fn over(&mut self, waiter: P::Waiter, out: &mut O);

    /// Counts what happened.
    fn happens(&mut self, event: P::Event, out: &mut O) {
        let (_, _) = (event, out);
    }

    /// Appends the bytes that go with a message, and says in the message how many they are.
    fn gather(&mut self, to: NodeId, message: &mut P::Message, into: &mut Vec<u8>, out: &mut O) {
        let (_, _, _, _) = (to, message, into, out);
    }

    /// Whether something could not be done. Nothing is carried out after that.
    fn has_failed(&self) -> bool {
        false
    }
}

/// Carries effects out.
pub struct Live<'a, H, O> {
    /// What does what only it can.
    pub host: H,
    /// What carries messages away.
    pub out: &'a mut O,
}

impl<P: NodePart, H: PartHost<P, O>, O: Outlet> PartEffects<P> for Live<'_, H, O> {
    fn send(&mut self, to: NodeId, mut message: P::Message) {
        if self.host.has_failed() {
            return;
        }
        let mut payload = Vec::new();
        if message.has_payload() {
            payload = self.out.buffer();
            self.host.gather(to, &mut message, &mut payload, self.out);
        }
        if !self.host.has_failed() {
            self.out.send::<P>(to, &message, payload);
        }
    }

    fn act(&mut self, act: P::Act) {
        if !self.host.has_failed() {
            self.host.act(act, self.out);
        }
    }

    fn over(&mut self, waiter: P::Waiter) {
        if !self.host.has_failed() {
            self.host.over(waiter, self.out);
        }
    }

    fn happens(&mut self, event: P::Event) {
        self.host.happens(event, self.out);
    }
}
