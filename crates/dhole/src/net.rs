//! Messages between processes without shared objects: remote procedures, and memory that other
//! processes fetch from and store into as far as a capability allows.
//!
//! ```
//! use std::time::Duration;
//! use dhole::net::{Local, Rights, Rpc};
//!
//! const SOON: Duration = Duration::from_secs(10);
//! let mut ports = Local::cluster(2)?.into_iter();
//! let server = Rpc::new(Box::new(ports.next().unwrap()))?
//!     .procedure(|_from, arguments| arguments.to_ascii_uppercase());
//! let client = Rpc::new(Box::new(ports.next().unwrap()))?;
//! let memory = server.memory(vec![7; 1_000_000]);
//! let capability = memory.grant(0..500_000, Rights::Read).unwrap();
//!
//! std::thread::scope(|scope| {
//!     scope.spawn(|| server.serve_until(SOON, &|| server.lost(client.me()).is_some()));
//!     assert_eq!(client.call(server.me(), 0, b"abc", SOON).unwrap(), b"ABC");
//!     let mut some = vec![0; 1000];
//!     client.fetch(&capability, 499_000, &mut some, SOON).unwrap();
//!     assert!(some.iter().all(|&byte| byte == 7));
//!     assert!(client.fetch(&capability, 499_001, &mut some, SOON).is_err());
//!     client.close(SOON);
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use dhole_join::{HandshakeError, JoinError, RefusedConnections};
pub use dhole_net::{
    EnvironmentError, Incoming, Local, Loss, Offers, Port, SecretError, SendError, Waiting,
};
pub use dhole_rpc::{
    Capability, Doing, GrantError, Memory, PendingCall, Rights, Rpc, RpcError, RpcLimits,
    RpcRefusal, UnfitPort,
};

use dhole_join::Membership;

use crate::settings::Defaults;

/// Joins this process to the others of its cluster, and returns its port to them. It returns `None`
/// if no launcher (`dhole run`, a batch script, or with the feature `mpi` `mpirun`) started this
/// process as one of several. A process has one port: a program that calls [`run`](crate::run) must
/// not call this.
///
/// # Errors
/// [`JoinError`] if the environment describes no valid cluster, or the other processes cannot be
/// joined.
pub fn join() -> Result<Option<Box<dyn Port>>, JoinError> {
    Defaults::check_names().map_err(EnvironmentError::from)?;
    Membership::from_env()?.map(Membership::join).transpose()
}
