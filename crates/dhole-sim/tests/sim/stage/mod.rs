//! Nodes that ask each other, for the tests of the simulator.
#![allow(
    dead_code,
    reason = "each of the two tests that stand on it uses its own part"
)]

use std::sync::{Arc, Mutex};

use dhole_model::{NodeId, Notify};
use dhole_net::{Envelope, Outbox, Payload, Receiver, Wake};
use dhole_node::{Machine, Receivers};
use dhole_protocol::{AbortReason, Fetch, FetchReply, Follow, Message};
use dhole_sim::{Network, Settings, Sim};

/// Who got a message from whom, and which.
pub type Log = Arc<Mutex<Vec<(u16, u16, u32)>>>;

/// Answers a `Fetch`; a `FetchReply` and an `Abort` wake its worker; a `Fetch` of round
/// [`CURSED`] unwinds.
struct Player(NodeId, Log);

pub const CURSED: u32 = u32::MAX;

impl Receiver<Message> for Player {
    fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        let Envelope { from, to, body, .. } = envelope;
        assert_eq!(to, self.0);
        match body {
            Message::Fetch(Fetch { round, .. }) => {
                assert_ne!(round, CURSED, "this round is cursed");
                self.1.lock().unwrap().push((to.0, from.0, round));
                out.push(Envelope {
                    from: to,
                    to: from,
                    body: reply(round),
                    payload: Payload::NONE,
                });
                Wake::No
            }
            Message::FetchReply(FetchReply { round, .. }) => {
                self.1.lock().unwrap().push((to.0, from.0, round));
                Wake::Yes
            }
            _ => Wake::Yes,
        }
    }
}

pub fn ask(round: u32) -> Message {
    Message::Fetch(Fetch {
        round,
        wanted: Default::default(),
        beside: 0,
        follow: Follow::default(),
    })
}

pub fn reply(round: u32) -> Message {
    Message::FetchReply(FetchReply {
        keep: false,
        round,
        sent: Default::default(),
    })
}

pub fn wake_up() -> Message {
    Message::Abort {
        node: NodeId(0),
        reason: AbortReason::Failed("".into()),
    }
}

/// What a body may do: the machine, and its node's part of it.
pub struct Actor<'a> {
    pub sim: &'a Sim,
    pub receivers: &'a Receivers<'a>,
    pub node: NodeId,
}

impl Actor<'_> {
    pub fn send(&self, to: u16, body: Message) {
        self.send_with(to, body, 0);
    }

    pub fn send_with(&self, to: u16, body: Message, payload_bytes: usize) {
        let (mut out, mut payload) = (Outbox::default(), Payload::NONE);
        payload.extend(&vec![0; payload_bytes]);
        out.push(Envelope {
            from: self.node,
            to: NodeId(to),
            body,
            payload,
        });
        let notify = Notify::Now;
        self.sim.send(self.receivers, self.node, &mut out, notify);
        assert!(out.is_empty());
    }

    /// Leaves the runtime, computes so many units there, and comes back.
    pub fn computes(&self, units: u64) {
        self.sim.leave(self.node);
        self.sim.work(self.node, units);
        self.sim.enter(self.node);
    }

    pub fn now(&self) -> u64 {
        self.sim.now(self.node)
    }
}

/// Runs `body` on every node and returns the log.
pub fn run(sim: &Sim, body: impl Fn(Actor<'_>) + Sync) -> Log {
    let log = Log::default();
    let players: Vec<Player> = (0..sim.settings().nodes)
        .map(|n| Player(NodeId::at(n), Arc::clone(&log)))
        .collect();
    let receivers: Vec<&dyn Receiver<Message>> = players.iter().map(|p| p as _).collect();
    let receivers = receivers.as_slice();
    sim.start(receivers, &|node| {
        body(Actor {
            sim,
            receivers,
            node,
        })
    })
    .unwrap();
    log
}

/// A cluster whose every cost is another number, and a unit of work 1 ns.
pub fn settings(nodes: usize) -> Settings {
    let network = Network {
        latency_ns: 10_000,
        bytes_per_second: 1_000_000_000,
        send_ns: 700,
        receive_ns: 900,
        ..Network::default()
    };
    Settings {
        network,
        ..Settings::fixed_cost(nodes)
    }
}
