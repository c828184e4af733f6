//! PartEffects that are recorded.

use dhole_model::NodeId;

use crate::{NodePart, PartEffects};

/// An effect, recorded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect<P: NodePart> {
    /// [`PartEffects::send`].
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: P::Message,
    },
    /// [`PartEffects::act`].
    Act(P::Act),
    /// [`PartEffects::over`].
    Over(P::Waiter),
}

impl<P: NodePart> PartEffects<P> for Vec<Effect<P>> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        self.push(Effect::Send { to, message });
    }

    fn act(&mut self, act: P::Act) {
        self.push(Effect::Act(act));
    }

    fn over(&mut self, waiter: P::Waiter) {
        self.push(Effect::Over(waiter));
    }
}
