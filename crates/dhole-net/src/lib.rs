//! Ports: what carries messages between the nodes of a cluster.
//!
//! Between processes a [`Port`] carries frames of bytes. Within one, [`InProcess`] posts
//! [`Envelope`]s as they are. Whoever receives is a
//! [`Receiver`], whose `deliver` may be called by a poller, a service thread, the sender itself
//! or a simulator. Bodies are the business of the crates above.
//!
//! ```
//! use dhole_model::NodeId;
//! use dhole_net::{Envelope, InProcess, Outbox, Payload, Receiver, Wake};
//! use std::sync::Mutex;
//!
//! /// Answers every number below 3 with the next one.
//! struct Counting(NodeId, Mutex<Vec<u32>>);
//! impl Receiver<u32> for Counting {
//!     fn deliver(&self, e: Envelope<u32>, out: &mut Outbox<u32>) -> Wake {
//!         self.1.lock().unwrap().push(e.body);
//!         if e.body < 3 {
//!             out.push(Envelope { from: self.0, to: e.from, body: e.body + 1, payload:
//! Payload::NONE });
//!         }
//!         Wake::No
//!     }
//! }
//!
//! let nodes = [0, 1].map(|n| Counting(NodeId(n), Mutex::default()));
//! let receivers: Vec<&dyn Receiver<u32>> = nodes.iter().map(|n| n as _).collect();
//! let port = InProcess::new(&receivers);
//! let mut out = Outbox::default();
//! out.push(Envelope { from: NodeId(0), to: NodeId(1), body: 0, payload: Payload::NONE });
//! port.post(&mut out, &|_| ()).unwrap();
//! assert_eq!(*nodes[1].1.lock().unwrap(), [0, 2]);
//! assert_eq!(*nodes[0].1.lock().unwrap(), [1, 3]);
//! ```
#![deny(unsafe_code)]

mod atomic;
#[cfg(all(feature = "processes", not(loom)))]
#[doc(hidden)]
pub mod decoders;
mod deferred;
#[doc(hidden)]
pub mod doorbell;
mod envelope;
mod environment_error;
#[cfg(not(loom))]
mod exit_notice;
mod failure_detector;
mod handover;
mod in_process;
mod incoming;
#[cfg(not(loom))]
#[cfg_attr(
    not(feature = "processes"),
    allow(
        dead_code,
        reason = "a process that does not join tells its launcher nothing"
    )
)]
#[doc(hidden)]
pub mod launcher;
mod layer;
mod local;
mod lossy;
#[cfg(not(loom))]
mod mixed;
mod owed;
mod parker;
#[doc(hidden)]
pub mod peers;
mod port;
mod receiver;
mod reliable;
mod ring;
#[cfg(not(loom))]
mod shm;
mod tcp;
#[cfg(feature = "tls")]
#[doc(hidden)]
pub mod tls;
#[cfg(not(feature = "tls"))]
#[doc(hidden)]
#[path = "without_tls.rs"]
pub mod tls;
#[cfg(all(feature = "processes", not(loom)))]
mod udp;
#[doc(hidden)]
pub mod variables;
mod waiting;

pub use deferred::Deferred;
pub use envelope::{Envelope, Outbox, Payload, PayloadPool};
pub use environment_error::{EnvironmentError, SecretError};
#[cfg(not(loom))]
pub use exit_notice::at_exit;
pub use failure_detector::FailureDetector;
pub use handover::Handover;
pub use in_process::InProcess;
pub use incoming::Incoming;
pub use layer::Layer;
pub use local::Local;
pub use lossy::{Chances, Lossy};
#[cfg(not(loom))]
pub use mixed::Mixed;
pub use owed::Owed;
pub use port::{LARGEST_FRAME, Loss, Offers, Port, SendError};
pub use receiver::{PostError, Receiver, Wake};
pub use reliable::{Reliable, ReliableLimits};
#[cfg(not(loom))]
pub use shm::{Shm, ShmError, ShmLink};
pub use tcp::{Stream, Tcp, TcpLimits};
#[cfg(all(feature = "processes", not(loom)))]
pub use udp::{Udp, UdpGroup, UdpKey, UdpLimits, UdpPeer};
pub use waiting::Waiting;
