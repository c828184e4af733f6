//! A simulated cluster: up to 1,024 nodes on one thread, in virtual time.
//!
//! [`Sim`] is a [`Machine`](dhole_node::Machine). It runs the body of each node as a coroutine,
//! keeps a clock for each node, and carries their messages over a [`Network`].
//!
//! A [`Description`] in a file gives the network's numbers: latency, bandwidth, the cost of a
//! message to the processors at either end, and the medium that messages share.
//!
//! Computation takes as long as on this host, or as long as the program says ([`Computation`]). In
//! the second case the [`Settings`] decide the run, event for event. Another seed then tries
//! another order of the events at one instant.
//!
//! The rules of the model:
//!
//! - A node is one processor. A message that arrives interrupts the worker. That costs
//!   `interrupt_ns` if the program computes. Messages that arrive meanwhile queue.
//! - Receiving and sending cost [`Network::receiving_ns`] and [`Network::sending_ns`]: of the
//!   worker's time if the worker sends, or else of the handler's. A call of the runtime takes
//!   `call_ns`.
//! - A message occupies its sender's link, or the ports of a switch, or hubs ([`Medium`]), behind
//!   those before it, for its bytes divided by the bandwidth. It arrives `latency_ns` and the
//!   jitter after that. A message of a node to itself takes no time.
//! - The sender sends a lost message again after `retransmit_ns`, in the same way. A receiver gets
//!   each message once.
//! - Before a worker's call of the runtime goes on, every event before the worker's clock has
//!   happened. At one instant deliveries come first, then waits that expire, then workers.
//! - The run is over when all bodies have returned, whatever messages are still in flight.
//!
//! A request and its reply:
//!
//! ```
//! use dhole_model::{NodeId, Notify};
//! use dhole_net::{Envelope, Outbox, Payload, Receiver, Wake};
//! use dhole_node::Machine;
//! use dhole_protocol::{Fetch, FetchReply, Message};
//! use dhole_sim::{Settings, Sim};
//! use std::time::Duration;
//!
//! /// Answers every question; an answer wakes the worker.
//! struct Echo(NodeId);
//! impl Receiver<Message> for Echo {
//!     fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
//!         let Message::Fetch(Fetch { round, .. }) = envelope.body else { return Wake::Yes };
//!         let sent = Default::default();
//!         let body = Message::FetchReply(FetchReply { round, sent, keep: false });
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
//!         let (wanted, follow) = Default::default();
//!         let body = Message::Fetch(Fetch { round: 1, wanted, beside: 0, follow });
//!         let mut out = Outbox::default();
//!         out.push(Envelope { from: node, to: NodeId(1), body, payload: Payload::NONE });
//!         sim.send(&receivers, node, &mut out, Notify::Now);
//!         sim.wait(node, Duration::from_secs(1));
//!     }
//! })
//! .unwrap();
//! // Twice: 1 us to send, 10 us on the way, 1 us to receive. On the link 33 bytes, and then 26.
//! assert_eq!(sim.report().elapsed_ns, 2 * (1_000 + 10_000 + 1_000) + 27 + 21);
//! ```
#![deny(clippy::undocumented_unsafe_blocks)]

mod agenda;
mod cluster;
mod confined;
mod crash;
mod network;
mod node;
mod paper_sizes;
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
