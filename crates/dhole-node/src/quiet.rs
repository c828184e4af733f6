//! Barriers of two processes that have nothing to tell each other: what they say goes past the
//! outbox, and the worker looks for the other's at once.

use dhole_heap::Call;
use dhole_model::{CallSite, NodeId};
use dhole_net::{Payload, Wake};
use dhole_protocol::{Event, Here, Message, here};

use crate::node::State;
use crate::worker::{Failure, Link};

impl State {
    /// The worker arrives at a barrier and has nothing to tell: what it says there. It goes on when
    /// the other has, and what that comes after was delivered here.
    fn arrive_quietly(&mut self, site: CallSite) -> Option<Here> {
        if !self.may_be_bare() {
            return None;
        }
        let (here, over) = self.protocol.arrive_quietly(site)?;
        if over {
            self.woken();
        }
        Some(here)
    }

    /// Takes what the other node says at a barrier, by its bytes, where that is all that happens.
    pub(crate) fn take_here(&mut self, from: NodeId, bytes: &[u8]) -> Option<Wake> {
        let (here, delivered) = here::decode(bytes)?;
        if !self.may_have_come_to(delivered) {
            return None;
        }
        let goes_on = self.protocol.hears_here(from, here)?;
        self.comes_after(delivered);
        if goes_on {
            self.woken();
        }
        Some(self.wakes(goes_on))
    }
}

impl Link<'_> {
    /// How the worker arrives otherwise. What it says then is a message as others: where processes
    /// were started on this node, or what it wrote goes home first and leaves nothing to tell.
    pub(crate) fn arrival(&self, once: bool, site: CallSite) -> Event {
        match !once && self.machine.sends_bytes() {
            true => Event::ArriveQuietly { site },
            false => Event::Arrive { once, site },
        }
    }

    /// Arrives at a barrier where no node brings a value, and waits there; whether this node has
    /// nothing to tell there, and that is all that happens. Else nothing has.
    pub(crate) fn arrive_quietly(
        &self,
        call: &mut Call<'_, State>,
        site: CallSite,
    ) -> Result<bool, Box<Failure>> {
        let state = call.split().1;
        if !self.machine.sends_bytes() {
            return Ok(false);
        }
        let Some(here) = state.arrive_quietly(site) else {
            return Ok(false);
        };
        let (to, delivered) = (state.protocol.other(), state.delivered());
        let told = here.site.is_none() && {
            let bytes = here::bytes(&here, delivered);
            self.machine.send_bytes_at_leisure(self.node.id, to, &bytes)
        };
        // What is counted can be counted while that is on its way.
        let message = Message::BarrierHere(here).after(delivered);
        state.protocol.count_objects(to, true);
        match told {
            true => state.counting.sent(&message, 0),
            false => state.send(to, message, Payload::NONE, &mut self.out.borrow_mut()),
        }
        self.outcome(call)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dhole_heap::Cluster;
    use dhole_net::{PayloadPool, Receiver};

    use super::*;
    use crate::launch::Settings;
    use crate::node::Node;

    fn node(me: u16, nodes: usize) -> Node {
        let cluster = Cluster::new(nodes).unwrap();
        let pool = Arc::new(PayloadPool::default());
        Node::new(NodeId(me), nodes, &Settings::nodes(nodes), &cluster, &pool)
    }

    /// The worker of a node arrives, where it has nothing to tell.
    fn arrive(node: &Node) {
        let mut guard = node.monitor.lock();
        let arrived = guard.split().1.arrive_quietly(CallSite::caller());
        arrived.expect("nothing to tell");
    }

    fn tell(node: &Node, number: u64, delivered: u64) -> Option<Wake> {
        let here = Here {
            number,
            manages: node.id != NodeId(0),
            place: 0,
            site: None,
        };
        let from = NodeId(1 - node.id.0);
        let bytes = here::bytes(&here, delivered);
        node.deliver_bytes(from, &bytes, &mut |_| panic!("an answer"))
    }

    /// Whether the worker goes on; then it does.
    fn goes_on(node: &Node) -> bool {
        let mut guard = node.monitor.lock();
        let state = guard.split().1;
        state.take_outcome() && !state.has_failed()
    }

    #[test]
    fn whoever_waits_goes_on_and_who_comes_later_need_not_wait() {
        for me in [0, 1] {
            let node = node(me, 2);
            arrive(&node);
            assert!(!goes_on(&node));
            assert_eq!(tell(&node, 0, 0), Some(Wake::Yes));
            assert!(goes_on(&node));
            assert_eq!(tell(&node, 1, 0), Some(Wake::No));
            assert!(!goes_on(&node));
            arrive(&node);
            assert!(goes_on(&node));
        }
    }

    #[test]
    fn nobody_goes_on_before_what_the_other_comes_after_is_here() {
        for comes_later in [false, true] {
            let node = node(1, 2);
            if !comes_later {
                arrive(&node);
            }
            assert_eq!(tell(&node, 0, 1), Some(Wake::No));
            if comes_later {
                arrive(&node);
            }
            assert!(!goes_on(&node));
            let mut guard = node.monitor.lock();
            assert!(guard.split().1.is_over(), "but for the order");
        }
    }

    #[test]
    fn what_more_comes_of_is_left_to_the_whole_message() {
        let node = node(1, 2);
        arrive(&node);
        // Of a barrier ahead; after more than can have been ordered; and of one that has passed.
        assert_eq!(tell(&node, 1, 0), None);
        assert_eq!(tell(&node, 0, u64::MAX), None);
        assert!(!goes_on(&node));
        assert_eq!(tell(&node, 0, 0), Some(Wake::Yes));
        assert_eq!(tell(&node, 0, 0), None);
    }
}
