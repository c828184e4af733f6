use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dhole_model::{NodeId, Notify};

use crate::doorbell::Doorbell;
use crate::parker::{Park, Parker};
use crate::{Incoming, Loss, Offers, Owed, Port, SendError, Shm, Tcp};

/// Shared memory to the nodes of this machine, TCP to the others.
pub struct Mixed {
    near: Shm,
    far: Tcp,
    is_near: Vec<bool>,
    /// Both ports' too: whoever sleeps here hears what either has to say.
    doorbell: Arc<Doorbell>,
}

impl Mixed {
    /// The port of the node that both are ports of: node `n` is reached through shared memory where
    /// `is_near[n]`, and by TCP otherwise. Neither port needs a link to those that the other
    /// reaches.
    ///
    /// # Panics
    /// When the ports are not ends of the same node of the same cluster.
    pub fn new(near: Shm, mut far: Tcp, is_near: Vec<bool>) -> Mixed {
        let both = [near.nodes(), far.nodes()];
        assert_eq!(near.me(), far.me(), "ends of one node");
        assert_eq!(both, [is_near.len(); 2], "ends in one cluster");
        let doorbell = near.doorbell();
        far.share(&doorbell);
        Mixed {
            near,
            far,
            is_near,
            doorbell,
        }
    }

    fn is_near(&self, node: NodeId) -> bool {
        self.is_near.get(node.index()).is_some_and(|&near| near)
    }

    fn to(&self, node: NodeId) -> &dyn Port {
        match self.is_near(node) {
            true => &self.near,
            false => &self.far,
        }
    }

    fn park_as(&self, park: Park, at_most: Duration, looks: Duration) {
        if self.doorbell.heard() {
            return;
        }
        let mut wakers = Vec::new();
        let near = self.near.prepare_park(park, at_most, &mut wakers);
        let far = self.far.prepare_park(park, at_most, &mut wakers);
        if let (Some(near), Some(far)) = (near, far) {
            let look = || self.near.peek();
            let at_most = near.min(far);
            let has_come = || self.near.owes_ring(park);
            self.doorbell
                .wait_looking(wakers, at_most, (looks, look), has_come);
        }
        self.near.finish_park(park);
        self.far.finish_park(park);
    }
}

impl Port for Mixed {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn me(&self) -> NodeId {
        self.near.me()
    }

    fn nodes(&self) -> usize {
        self.is_near.len()
    }

    fn offers(&self) -> Offers {
        let (near, far) = (self.near.offers(), self.far.offers());
        Offers {
            reliable: near.reliable && far.reliable,
            ordered: near.ordered && far.ordered,
            largest: near.largest.min(far.largest),
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        self.to(to).send_with(to, parts, notify)
    }

    fn notify(&self, to: NodeId) {
        self.to(to).notify(to);
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.near.poll(take) + self.far.poll(take)
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        self.near.poll_in_place(take) + self.far.poll_in_place(take)
    }

    fn peek(&self) -> bool {
        self.near.peek()
    }

    fn shown_by(&self, peer: NodeId) -> Option<&[OwnedFd]> {
        self.to(peer).shown_by(peer)
    }

    fn park(&self, at_most: Duration) {
        self.park_as(Park::Fine, at_most, Duration::MAX);
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        self.park_as(Park::Coarse, at_most, looks);
    }

    fn unpark(&self) {
        self.doorbell.ring();
    }

    fn owe(&self, owed: Owed) {
        self.doorbell.owe(owed);
    }

    fn lost_doorbells(&self) -> u64 {
        self.doorbell.lost()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        self.to(peer).give_up(peer, loss);
    }

    fn flush(&self) {
        self.near.flush();
        self.far.flush();
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        self.near.heard(tell);
        self.far.heard(tell);
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        // Each port has lost, from the beginning, those that the other reaches.
        let mut of = |near: bool, node, loss| {
            if self.is_near(node) == near {
                tell(node, loss);
            }
        };
        self.near.lost(&mut |node, loss| of(true, node, loss));
        self.far.lost(&mut |node, loss| of(false, node, loss));
    }

    fn close(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        self.near.close(at_most);
        self.far
            .close(until.saturating_duration_since(Instant::now()));
    }
}
