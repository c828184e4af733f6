//! Joining the other processes of a cluster.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dhole_model::NodeId;

mod accept_queue;
mod address;
mod build_id;
mod channel;
mod datagrams;
pub(crate) mod decoders;
mod environment;
mod error;
mod frame;
mod handshake;
mod member;
mod mesh;
#[cfg(feature = "mpi")]
mod mpi;
mod mpirun;
mod open_files;
mod places;
mod poll;
mod rendezvous;
mod secret;
mod terms;
#[cfg(test)]
mod tests;
mod transport;
mod wire;

pub use build_id::BuildId;
pub use error::{HandshakeError, HandshakeRefusal, JoinError, RefusedConnections};
pub use secret::Secret;
pub use terms::PROTOCOL_VERSION;

use crate::Joined;
use channel::Encryption;
use dhole_net::Port;
use dhole_net::launcher::Launcher;
use mesh::Mesh;
use places::Places;
use rendezvous::Rendezvous;
use terms::Terms;
use transport::Transport;

/// What a process knows of its cluster before it has joined.
#[derive(Debug)]
pub struct Membership {
    node: NodeId,
    nodes: usize,
    way: Way,
    within: Duration,
    bound: Duration,
    build: BuildId,
    settings: Vec<(String, String)>,
    longest_message: Option<usize>,
    learnt_runs: Option<usize>,
}

/// How the processes come together.
#[derive(Debug)]
enum Way {
    /// They meet, and prove to each other that they know the secret.
    Meet(Box<Meet>),
    /// An MPI launcher has started them.
    #[cfg(feature = "mpi")]
    Launched {
        /// As many of them as share the cores of this one, itself among them.
        neighbours: usize,
    },
}

/// Where a process meets the others, and what they need for it.
#[derive(Debug)]
struct Meet {
    meeting: String,
    listens: Listens,
    host: Option<String>,
    secret: Secret,
    transport: &'static dyn Transport,
    encrypts: Encrypts,
    launcher: Option<Launcher>,
}

/// Which connections over TCP are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encrypts {
    BetweenMachines,
    Always,
    Never,
}

/// How node 0 comes to listen.
#[derive(Debug)]
enum Listens {
    /// At the meeting point, or at this address.
    At(Option<String>),
    /// It does so already.
    Already(TcpListener),
}

/// The names of the transports, as `DHOLE_TRANSPORT` has them. The first is used unless it says
/// otherwise.
pub fn transports() -> impl Iterator<Item = &'static str> {
    transport::ALL.into_iter().map(|it| it.name())
}

impl Membership {
    /// What the environment says of this process: nothing where `DHOLE_NODE` is not set and no MPI
    /// launcher started it as one of several.
    ///
    /// # Errors
    /// [`JoinError::Environment`] when it says something that cannot be, the secret cannot be
    /// read, or an MPI launcher started a program without the feature `mpi`;
    /// [`JoinError::System`] when this process cannot read its own executable.
    pub fn from_env() -> Result<Option<Membership>, JoinError> {
        environment::read(&|name| std::env::var_os(name), std::env::args_os().skip(1))
    }

    /// The node that this process is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Nodes of the cluster.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Bytes of the longest message with its payload, where that was said: the same on all nodes.
    pub fn longest_message(&self) -> Option<usize> {
        self.longest_message
    }

    /// Runs of objects that may be known where others tell of more, where that was said.
    pub fn learnt_runs(&self) -> Option<usize> {
        self.learnt_runs
    }

    /// Demands that this setting has the same value on all nodes: joining fails, on both sides,
    /// with [`HandshakeError::Setting`] where it does not. At most 200 bytes of name and of value
    /// count, and at most 30 settings.
    pub(crate) fn setting(mut self, name: &str, value: &str) -> Membership {
        let cut =
            |text: &str| text[..text.floor_char_boundary(Terms::MOST_SETTING_BYTES)].to_owned();
        if self.settings.len() < Terms::MOST_SETTINGS {
            self.settings.push((cut(name), cut(value)));
        }
        self
    }

    /// Whether others see files that this process [shows](Membership::join_neighbours).
    pub fn can_show(&self) -> bool {
        match &self.way {
            Way::Meet(meet) => meet.transport.can_show(),
            #[cfg(feature = "mpi")]
            Way::Launched { .. } => false,
        }
    }

    /// Joins the others, and returns when all are connected with all: then nothing that a stranger
    /// says is heard any more.
    ///
    /// # Errors
    /// [`JoinError`]; every node that had proved itself learns of it, and its own call fails too.
    pub fn join(self) -> Result<Box<dyn Port>, JoinError> {
        self.join_neighbours(&[]).map(|joined| joined.port)
    }

    /// The same, with what else is known of the others then. Those of this machine are shown these
    /// files, at most three, if the port shares memory with them ([`Port::shown_by`]).
    ///
    /// # Errors
    /// As [`join`](Membership::join).
    pub fn join_neighbours(self, shows: &[OwnedFd]) -> Result<Joined, JoinError> {
        let (me, nodes) = (self.node, self.nodes);
        let (within, bound) = (self.within, self.bound);
        let terms = Terms {
            version: PROTOCOL_VERSION,
            build: self.build,
            nodes,
            settings: self.settings,
            places: Places::default(),
        };
        match self.way {
            Way::Meet(meet) => {
                let (port, neighbours) = meet.join(me, terms, within, bound, shows)?;
                Ok(Joined {
                    port,
                    neighbours,
                    windows: None,
                })
            }
            #[cfg(feature = "mpi")]
            Way::Launched { neighbours } => {
                let (port, windows) = mpi::join(me, &terms, within, bound)?;
                Ok(Joined {
                    port,
                    neighbours,
                    windows: Some(windows),
                })
            }
        }
    }
}

impl Meet {
    fn join(
        mut self,
        me: NodeId,
        terms: Terms,
        within: Duration,
        bound: Duration,
        shows: &[OwnedFd],
    ) -> Result<(Box<dyn Port>, usize), JoinError> {
        let launcher = self.launcher.take().map(Arc::new);
        if let Some(launcher) = &launcher {
            launcher.meets();
        }
        let joined = self.connect(me, terms, (within, bound), shows, launcher.clone());
        if let (Err(error), Some(launcher)) = (&joined, launcher)
            && error.is_own()
        {
            launcher.failed(&error.to_string());
        }
        joined
    }

    fn connect(
        self,
        me: NodeId,
        terms: Terms,
        (within, bound): (Duration, Duration),
        shows: &[OwnedFd],
        launcher: Option<Arc<Launcher>>,
    ) -> Result<(Box<dyn Port>, usize), JoinError> {
        let (began, nodes) = (Instant::now(), terms.nodes);
        open_files::make_room(nodes);
        let reach = self.transport.reach();
        let encryption = Encryption::new(self.encrypts);
        let encryption = encryption.map_err(|cause| JoinError::System {
            me,
            doing: "making a key",
            cause,
        })?;
        let host = self.host.as_deref();
        let rendezvous = Rendezvous::new(me, &self.secret, host, reach, encryption, terms, within)
            .listening_to(launcher.as_deref());
        let mesh = match me {
            _ if nodes == 1 => Mesh::alone(),
            NodeId(0) => rendezvous.receive(self.listens.listen(&self.meeting, within)?)?,
            _ => rendezvous.attend(&self.meeting)?,
        };
        let neighbours = self.transport.neighbours(&mesh);
        let node = transport::Node {
            me,
            secret: &self.secret,
            shows,
            bound,
            launcher: launcher.clone(),
        };
        let port = self.transport.connect(mesh, node);
        let launcher = launcher.as_deref();
        let port = port.map_err(|error| error.explained(me, began.elapsed(), launcher))?;
        Ok((port, neighbours))
    }
}

impl Listens {
    fn listen(self, meeting: &str, within: Duration) -> Result<TcpListener, JoinError> {
        let at = match self {
            Listens::Already(listener) => return Ok(listener),
            Listens::At(at) => at.unwrap_or_else(|| meeting.to_owned()),
        };
        address::resolve(&at, within)
            .and_then(|all| TcpListener::bind(all.as_slice()))
            .map_err(|cause| JoinError::Listen {
                me: NodeId(0),
                address: at,
                cause,
            })
    }
}
