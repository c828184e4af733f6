//! How the processes of a cluster find each other, and why they trust each other.
//!
//! A process learns from its environment which node it is ([`Membership::from_env`]) and then
//! [joins](Membership::join) the others. `docs/trust.md` says what this protects from, and what
//! not.
//!
//! | variable | says |
//! |---|---|
//! | `DHOLE_NODE` | the number of this process, from 0 |
//! | `DHOLE_NODES` | processes of the cluster |
//! | `DHOLE_MEETING` | `host:port` where node 0 listens and all others go |
//! | `DHOLE_MEETING_FD` | for node 0: a descriptor that listens there already |
//! | `DHOLE_LISTEN` | for node 0: where it listens, if not at the meeting point's own address |
//! | `DHOLE_HOST` | the name by which others reach this process, if not its address |
//! | `DHOLE_SECRET_FILE` | a file with the secret, which nobody else may read |
//! | `DHOLE_SECRET_FD` | a descriptor to read the secret from, instead |
//! | `DHOLE_RUN` | names the run; processes of two runs do not join |
//! | `DHOLE_TRANSPORT` | `tcp` unless set, `udp`, `shm`, or `mixed`: `shm` in a machine, `tcp` between |
//! | `DHOLE_TLS` | which TCP connections are encrypted: `auto` for those between machines, `always`, `never` |
//! | `DHOLE_BOUND_MS` | a node of which nothing is heard for so long is lost; 5000 unless set |
//! | `DHOLE_MESSAGE_MIB` | the longest message, with its payload, in MiB; 256 unless set |
//! | `DHOLE_LEARNT_RUNS` | runs of objects that may be known where others tell of more; 4194304 unless set |
//! | `DHOLE_LAUNCHER_FD` | a socket over which `dhole run` hears how far the process is |
//! | `DHOLE_INHERITED` | `NUMBER:DEVICE:INODE` of the descriptors above that this process may close; it uses duplicates of others |
//! | `DHOLE_JOIN_MS` | the longest that joining may take; 30000 unless set |
//! | `DHOLE_SPIN_US`, `DHOLE_BACKOFF_US`, `DHOLE_SLEEP_MS` | how threads wait (`dhole_net::Waiting`) |
//!
//! A process that `mpirun` or `srun` started learns it from them instead, unless `DHOLE_NODE` is
//! set, and MPI carries its messages: this takes the feature `mpi`. Of the variables
//! `DHOLE_MESSAGE_MIB`, `DHOLE_LEARNT_RUNS`, what stands below `DHOLE_LAUNCHER_FD`, and `DHOLE_RUN`
//! count then.
#![deny(unsafe_code)]

#[cfg(feature = "processes")]
mod inherited;
mod joined;
#[cfg(feature = "processes")]
mod membership;
#[cfg(not(feature = "processes"))]
#[path = "without_processes.rs"]
mod membership;

pub use joined::Joined;
pub use membership::{
    BuildId, HandshakeError, HandshakeRefusal, JoinError, Membership, RefusedConnections,
};
#[cfg(feature = "processes")]
pub use membership::{PROTOCOL_VERSION, Secret, transports};

/// What turns a stranger's bytes into something, one function each, for fuzzers.
#[cfg(feature = "processes")]
#[doc(hidden)]
pub mod decoders {
    pub use crate::membership::decoders::{handshake, terms};
}
