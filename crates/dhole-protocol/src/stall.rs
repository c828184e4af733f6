//! Finding that every node waits and none can ever be woken.
//!
//! Whoever waits for a permit or on a condition can be woken by any node, so no cycle of the
//! wait-for graph shows that it never will be. But when all nodes wait and no message that could
//! end a wait is on its way, nothing will happen any more. A *stall probe* visits the nodes in
//! order and is dropped by one that computes. It adds up how many messages the nodes have sent and
//! received; a second round follows. Numbers that have not changed belong to one moment, between
//! the rounds, at which all waited; if as much was received as sent, nothing was in flight then
//! (Mattern's four counters).

use dhole_model::NodeId;

use crate::command::{Command, Commands};
use crate::{Message, Waiter};
use serde::{Deserialize, Serialize};

/// A stall probe.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Stall {
    /// The node that has waited for long.
    pub asker: NodeId,
    /// This round, as far as it has come.
    pub round: Round,
    /// The first round, in the second.
    pub first: Option<Round>,
}

/// What a round has found so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// The nodes visited, in order, each in a wait.
    pub waiters: Vec<Waiter>,
    /// Messages that they sent.
    pub sent: u64,
    /// Messages that they received.
    pub received: u64,
}

/// How many messages that may end a wait this node has sent and received.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Traffic {
    pub sent: u64,
    pub received: u64,
}

impl Traffic {
    /// Counts what a step sends.
    pub fn count_sent(&mut self, commands: &[Command]) {
        let sent = |command: &&Command| match command {
            Command::Send { message, .. } => message.may_end_a_wait(),
            _ => false,
        };
        self.sent += commands.iter().filter(sent).count() as u64;
    }
}

impl Stall {
    /// The first step of the first round: a probe that goes to node 0.
    pub fn begin(asker: NodeId) -> Stall {
        Stall {
            asker,
            round: Round::default(),
            first: None,
        }
    }

    /// Visits node `me`, one of `nodes`, which is in the wait `me_waiting`.
    pub(crate) fn visit(mut self, me: Waiter, traffic: Traffic, nodes: usize, out: &mut Commands) {
        let asks_itself = me.waiting_for.any_node_may_end_it() && me.node < self.asker;
        if asks_itself || self.round.waiters.len() != me.node.index() {
            return;
        }
        self.round.waiters.push(me);
        self.round.sent = self.round.sent.wrapping_add(traffic.sent);
        self.round.received = self.round.received.wrapping_add(traffic.received);
        let visited = self.round.waiters.len();
        if visited < nodes {
            let message = Message::Stall(Box::new(self));
            out.push(Command::Send {
                to: NodeId::at(visited),
                message,
            });
            return;
        }
        match &self.first {
            None => {
                let message = Message::Stall(Box::new(Stall {
                    asker: self.asker,
                    round: Round::default(),
                    first: Some(self.round),
                }));
                out.push(Command::Send {
                    to: NodeId(0),
                    message,
                });
            }
            Some(first) if *first == self.round && first.sent == first.received => {
                tell(self.round.waiters, out);
            }
            Some(_) => {}
        }
    }
}

/// Tells all that none of them will go on.
fn tell(waiters: Vec<Waiter>, out: &mut Commands) {
    let cycle: std::sync::Arc<[Waiter]> = waiters.into();
    for waiter in cycle.iter() {
        out.push(Command::Send {
            to: waiter.node,
            message: Message::Deadlock {
                cycle: std::sync::Arc::clone(&cycle),
            },
        });
    }
}
