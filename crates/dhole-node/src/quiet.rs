//! Barriers of two processes that have nothing to tell each other: what they say goes past the
//! outbox, and the worker looks for the other's at once.

use dhole_heap::Call;
use dhole_model::{CallSite, NodeId};
use dhole_net::{Payload, Wake};
use dhole_protocol::{Message, here};

use crate::node::State;
use crate::worker::{Failure, Link};

impl State {
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
        Some(match goes_on && self.may_go_on() {
            true => Wake::Yes,
            false => Wake::No,
        })
    }
}

impl Link<'_> {
    /// Arrives at a barrier where no node brings a value, and waits there; whether this node has
    /// nothing to tell there, and that is all that happens. Else nothing has.
    pub(crate) fn arrive_quietly(
        &self,
        call: &mut Call<'_, State>,
        site: CallSite,
    ) -> Result<bool, Failure> {
        let state = call.split().1;
        if !self.machine.sends_bytes() || !state.may_be_bare() {
            return Ok(false);
        }
        let Some((here, over)) = state.protocol.arrive_quietly(site) else {
            return Ok(false);
        };
        let (to, delivered) = (state.protocol.other(), state.delivered());
        let told = here.site.is_none() && {
            let bytes = here::bytes(&here, delivered);
            self.machine.send_bytes_at_leisure(self.node.id, to, &bytes)
        };
        // What is counted can be counted while that is on its way.
        let message = Message::from(here).after(delivered);
        state.protocol.count_objects(to, true);
        match told {
            true => state.counting.sent(&message, 0),
            false => state.send(to, message, Payload::NONE, &mut self.out.borrow_mut()),
        }
        // What the other said may come after operations that were not delivered here yet.
        if over {
            call.split().1.woken();
        }
        self.outcome(call)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dhole_heap::Cluster;
    use dhole_net::{Outbox, PayloadPool, Receiver};
    use dhole_protocol::{Event, Here};

    use super::*;
    use crate::launch::Settings;
    use crate::node::{Node, Step};

    fn node(me: u16, nodes: usize) -> Node {
        let cluster = Cluster::new(nodes).unwrap();
        let pool = Arc::new(PayloadPool::default());
        Node::new(NodeId(me), nodes, &Settings::nodes(nodes), &cluster, &pool)
    }

    /// The worker of a node arrives, by an event, where it has nothing to tell.
    fn arrive(node: &Node) {
        let mut guard = node.monitor.lock();
        let (mut heap, state) = guard.split();
        let mut step = Step {
            from: node.id,
            heap: &mut heap,
            pool: &node.pool,
            out: &mut Outbox::default(),
            payload: &[],
        };
        let site = CallSite::caller();
        let arrived = state.step(Event::ArriveQuietly { site }, &mut step);
        arrived.expect("a barrier");
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

    fn passed(node: &Node) -> bool {
        node.monitor.lock().split().1.is_over()
    }

    #[test]
    fn whoever_waits_goes_on_and_who_comes_later_need_not_wait() {
        for me in [0, 1] {
            let node = node(me, 2);
            arrive(&node);
            assert!(!passed(&node));
            assert_eq!(tell(&node, 0, 0), Some(Wake::Yes));
            assert!(passed(&node));
            node.monitor.lock().split().1.take_outcome();
            assert_eq!(tell(&node, 1, 0), Some(Wake::No));
            assert!(!passed(&node));
            arrive(&node);
            assert!(passed(&node));
        }
    }

    #[test]
    fn what_more_comes_of_is_left_to_the_whole_message() {
        let node = node(1, 2);
        arrive(&node);
        // Of a barrier ahead, and one that has passed; after more than can have been ordered.
        assert_eq!(tell(&node, 1, 0), None);
        assert_eq!(tell(&node, 0, u64::MAX), None);
        assert!(!passed(&node));
        // After what has been ordered and is not here, the worker waits for that.
        assert_eq!(tell(&node, 0, 1), Some(Wake::No));
        assert!(!passed(&node) || !node.monitor.lock().split().1.may_go_on());
        assert_eq!(tell(&node, 0, 0), None);
    }
}
