//! A simulated cluster: any number of nodes up to 1,024 on one thread, in virtual time.
//!
//! [`Sim`] is a [`Machine`](dhole_node::Machine). It runs the body of each node as a coroutine,
//! keeps a clock for each of them, and carries their messages over a [`Network`] of numbers, which
//! a [`Description`] in a file says: latency, bandwidth, what a message costs the processors at
//! either end, and what messages share on their way. What the
//! program itself computes takes as long as it takes on this host, or as long as the program
//! says ([`Computation`]); in the second case the [`Settings`] decide the run, event for event,
//! and another seed tries another order of whatever happens at the same time.
//!
//! The rules of the model:
//!
//! - A node is one processor. A message that arrives interrupts whatever the worker does, at the
//!   cost of `interrupt_ns` if that is the program's computation; messages that arrive meanwhile
//!   queue. Receiving and sending cost what [`Network::receiving_ns`] and [`Network::sending_ns`]
//!   say, of the worker's time or the handler's, whoever sends; a call into the runtime takes
//!   `call_ns`.
//! - A message occupies its sender's link, or the ports of a switch, or hubs ([`Medium`]), for its
//!   bytes divided by the bandwidth, behind those before it, and arrives `latency_ns` after that,
//!   and later by the jitter. A message of a node to itself takes no time.
//! - A message that is lost is sent again after `retransmit_ns`, as it was sent the first time: a
//!   receiver gets each once.
//! - Before a worker's call into the runtime goes on, everything has happened that comes before the
//!   worker's clock. At one instant deliveries come first, then waits that expire, then workers.
//! - When all bodies have returned the run is over, whatever messages are still on their way.
//!
//! A question and its answer:
//!
//! ```
//! use dhole_model::NodeId;
//! use dhole_net::{Envelope, Outbox, Payload, Receiver, Wake};
//! use dhole_node::Machine;
//! use dhole_protocol::Message;
//! use dhole_sim::{Settings, Sim};
//! use std::time::Duration;
//!
//! /// Answers every question; an answer wakes the worker.
//! struct Echo(NodeId);
//! impl Receiver<Message> for Echo {
//!     fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
//!         let Message::Fetch { round, .. } = envelope.body else { return Wake::Yes };
//!         let body = Message::FetchReply { round, sent: Default::default(), keep: false };
//!         let (from, to) = (self.0, envelope.from);
//!         out.push(Envelope { from, to, body, payload: Payload::NONE });
//!         Wake::No
//!     }
//! }
//!
//! let sim = Sim::new(Settings::fixed_cost(2));
//! let nodes = [Echo(NodeId(0)), Echo(NodeId(1))];
//! let receivers: Vec<&dyn Receiver<Message>> = nodes.iter().map(|n| n as _).collect();
//! sim.start(&receivers, &|node| {
//!     if node == NodeId(0) {
//!         let body = Message::Fetch { round: 1, wanted: Default::default(), beside: 0 };
//!         let mut out = Outbox::default();
//!         out.push(Envelope { from: node, to: NodeId(1), body, payload: Payload::NONE });
//!         sim.send(&receivers, node, &mut out);
//!         sim.wait(node, Duration::from_secs(1));
//!     }
//! })
//! .unwrap();
//! // Twice: 1 us to send, 20 ns for 24 bytes on the link, 10 us on the way, 1 us to receive.
//! assert_eq!(sim.report().elapsed_ns, 2 * (1_000 + 20 + 10_000 + 1_000));
//! ```
#![deny(clippy::undocumented_unsafe_blocks)]

mod agenda;
mod cluster;
mod confined;
mod crash;
mod network;
mod node;
mod random;
mod report;
mod round_trip;
mod settings;
mod sim;
mod stopwatch;
mod timers;
mod transit;

pub use crash::{Crash, NoCrash};
pub use network::{Description, Medium, Network, NetworkError, Primitive, Published};
pub use report::Report;
pub use round_trip::round_trip_ns;
pub use settings::{Computation, ENVIRONMENT_VARIABLE, Settings, SettingsError};
pub use sim::Sim;
