use std::os::fd::OwnedFd;
use std::time::Duration;

use dhole_model::{NodeId, Notify};

use crate::{Incoming, Loss, Offers, Owed, Port, SendError};

/// Makes the trait of layers, and the port that each is, of one list of methods: what the port
/// beneath does, unless the layer does it in its own way.
macro_rules! layer {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $output:ty)?;)*) => {
        /// A port over another: what it does not do in its own way, the port beneath does.
        ///
        /// Every method but [`inner`](Layer::inner) is the method of [`Port`] of that name. Where a
        /// layer does not say how frames are taken where they lie, they are taken as
        /// [`poll`](Layer::poll) says; where it does not say how it parks coarsely, that is a
        /// [`park`](Layer::park). It cannot peek.
        #[expect(missing_docs, reason = "they are those of Port")]
        pub trait Layer: Send + Sync {
            /// What the port beneath is.
            type Inner: Port + ?Sized;

            /// The port beneath.
            fn inner(&self) -> &Self::Inner;

            fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
                self.poll(&mut |from, frame| take(from, Incoming::of(frame)))
            }

            fn can_peek(&self) -> bool {
                false
            }

            fn park_coarse(&self, at_most: Duration, _looks: Duration) {
                self.park(at_most);
            }

            $(
                fn $name(&self $(, $argument: $type)*) $(-> $output)? {
                    self.inner().$name($($argument),*)
                }
            )*
        }

        impl<L: Layer> Port for L {
            fn me(&self) -> NodeId {
                self.inner().me()
            }

            fn nodes(&self) -> usize {
                self.inner().nodes()
            }

            fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
                Layer::poll_in_place(self, take)
            }

            fn can_peek(&self) -> bool {
                Layer::can_peek(self)
            }

            fn park_coarse(&self, at_most: Duration, looks: Duration) {
                Layer::park_coarse(self, at_most, looks);
            }

            $(
                fn $name(&self $(, $argument: $type)*) $(-> $output)? {
                    Layer::$name(self $(, $argument)*)
                }
            )*
        }
    };
}

layer! {
    fn name(&self) -> &'static str;
    fn offers(&self) -> Offers;
    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError>;
    fn notify(&self, to: NodeId);
    fn multicasts(&self) -> bool;
    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError>;
    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize;
    fn peek(&self) -> bool;
    fn shown_by(&self, peer: NodeId) -> Option<&[OwnedFd]>;
    fn park(&self, at_most: Duration);
    fn unpark(&self);
    fn owe(&self, owed: Owed);
    fn lost_doorbells(&self) -> u64;
    fn beat(&self) -> Duration;
    fn give_up(&self, peer: NodeId, loss: Loss);
    fn flush(&self);
    fn heard(&self, tell: &mut dyn FnMut(NodeId));
    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss));
    fn missed(&self, peer: NodeId, how: &str);
    fn failed(&self, how: &str);
    fn exits(&self, code: u8);
    fn begins(&self, survives: bool);
    fn ends(&self);
    fn close(&self, at_most: Duration);
}

impl<P: Port + ?Sized> Layer for Box<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        self
    }

    fn can_peek(&self) -> bool {
        (**self).can_peek()
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        (**self).park_coarse(at_most, looks);
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        (**self).poll_in_place(take)
    }
}
