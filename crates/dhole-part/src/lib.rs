//! Parts of a node. A [`NodePart`] is a pure state machine that talks to the same part of other
//! nodes. It has no I/O, clock, thread or randomness.
//!
//! A step of a part changes its state and calls [`PartEffects`]: it sends messages, lets waiters go
//! on, and has its [`PartHost`] do what only the host can. Two implementations of the effects
//! exist:
//!
//! | effects | are | for |
//! |---|---|---|
//! | [`Live`] | carried out as the part calls them | the engine |
//! | a list of [`Effect`] | recorded, in their order | models and tests |
//!
//! A part never names another part. What it needs of another part is a method of its host. The
//! first byte of a message's frame says to which part the message goes, so the engine knows no
//! messages of parts.
//!
//! ```
//! use dhole_model::{MessageKind, NodeId};
//! use dhole_part::{Effect, NodePart, PartEffects, PartMessage};
//! use dhole_wire::Wire;
//!
//! /// Says how often it was asked.
//! #[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
//! struct Counts(u64);
//!
//! #[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
//! enum Said {
//!     Ask,
//!     Times(u64),
//! }
//!
//! impl PartMessage for Said {
//!     fn kind(&self) -> MessageKind {
//!         MessageKind::Notify
//!     }
//! }
//!
//! impl NodePart for Counts {
//!     const TAG: u8 = 0;
//!     type Message = Said;
//!     type Act = ();
//!     type Waiter = u64;
//!     type Event = ();
//!
//!     fn deliver(
//!         &mut self,
//!         from: NodeId,
//!         message: Said,
//!         _payload: usize,
//!         fx: &mut impl PartEffects<Counts>,
//!     ) -> Result<(), &'static str> {
//!         match message {
//!             Said::Ask => {
//!                 self.0 += 1;
//!                 fx.send(from, Said::Times(self.0));
//!             }
//!             Said::Times(times) => fx.over(times),
//!         }
//!         Ok(())
//!     }
//!
//!     fn is_at_rest(&self) -> bool {
//!         true
//!     }
//! }
//!
//! let mut out: Vec<Effect<Counts>> = Vec::new();
//! Counts::default().deliver(NodeId(1), Said::Ask, 0, &mut out)?;
//! assert_eq!(out, [Effect::Send { to: NodeId(1), message: Said::Times(1) }]);
//! # Ok::<(), &str>(())
//! ```
#![forbid(unsafe_code)]

mod counters;
mod live;
mod recorded;

use std::fmt::Debug;
use std::hash::Hash;

use dhole_model::{MessageKind, NodeId};
use dhole_wire::Wire;

pub use counters::PartCounters;
pub use live::{Live, Outlet, PartHost};
pub use recorded::Effect;

/// A part of a node: a pure state machine that talks to the same part of other nodes.
pub trait NodePart: Clone + Eq + Hash + Debug {
    /// The number of the part: no two parts have the same one.
    const TAG: u8;

    /// What the parts of two nodes say to each other.
    type Message: PartMessage;

    /// What only the part's host can do.
    type Act: Clone + Eq + Hash + Debug;

    /// Who waits for the part.
    type Waiter: Copy + Eq + Hash + Debug;

    /// What happens in a step and changes nothing: it is counted, or priced.
    type Event: Copy + Eq + Debug;

    /// Takes a message that came with `payload` bytes.
    ///
    /// # Errors
    /// Why no sound node says this. The run ends then.
    fn deliver(
        &mut self,
        from: NodeId,
        message: Self::Message,
        payload: usize,
        fx: &mut impl PartEffects<Self>,
    ) -> Result<(), &'static str>;

    /// Whether nothing waits for the part, and it owes nothing: for models and tests.
    fn is_at_rest(&self) -> bool;
}

/// A message of a part.
pub trait PartMessage: Wire + Clone + Eq + Hash + Debug {
    /// What the message is counted as.
    fn kind(&self) -> MessageKind;

    /// Whether bytes go with it, which the [host](PartHost::gather) has.
    fn has_payload(&self) -> bool {
        false
    }
}

/// What a step of a part wants done, in this order.
pub trait PartEffects<P: NodePart> {
    /// Sends a message to another node. If the message [has bytes](PartMessage::has_payload) they
    /// are read now.
    fn send(&mut self, to: NodeId, message: P::Message);

    /// Has the host do something.
    fn act(&mut self, act: P::Act);

    /// What a waiter waits for has come.
    fn over(&mut self, waiter: P::Waiter);

    /// Counts what happened. Nothing depends on it.
    fn happens(&mut self, event: P::Event) {
        let _ = event;
    }
}
