//! Coherence protocols of the program's own.
//!
//! A [`CoherenceProtocol`] is one type: a pure state machine, of which every node has a part. It
//! has messages and notices of its own. It runs on threads, processes and in the simulator as the
//! protocols do that dhole brings, and is chosen as they are: for a run by
//! [`Config::coherence`](crate::Config::coherence), for an allocation by
//! [`Worker::under`](crate::Worker::under), between phases by
//! [`Worker::switch`](crate::Worker::switch), and by its name with `dhole run --protocol`
//! ([`Config::with_protocol`](crate::Config::with_protocol)).
//!
//! `examples/protocol-of-your-own` is a crate with such a protocol, a program that uses it, and
//! tests that explore all its runs with the crate `dhole-check`. `docs/protocols.md` says what a
//! protocol has to do.

pub use dhole_model::{Coherence, MAX_MEMBERS, NodeId, Oid, OidRange, Version};
pub use dhole_protocol::{CoherenceProtocol, Context, WorkerIs};
/// The form in bytes of messages and notices, by `#[derive(Wire)]`.
///
/// Numbers, flags, options, lists, sets and maps in order, words, pairs and the ids of this module
/// have one. A value has one form alone, and other bytes are refused where they arrive.
pub use dhole_wire::program::Wire;
