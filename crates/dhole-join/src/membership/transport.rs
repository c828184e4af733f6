//! The transports: which port carries the messages of processes that have met.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::launcher::Launcher;
use dhole_net::{FailureDetector, Port};

use super::error::JoinError;
use super::mesh::Mesh;
use super::rendezvous::Reach;
use super::secret::Secret;

/// What makes a port of the connections over which processes have met. A new port is a type that
/// implements this, in [`ALL`].
pub(super) trait Transport: fmt::Debug + Sync {
    /// Its name in `DHOLE_TRANSPORT`.
    fn name(&self) -> &'static str;

    /// Over which sockets the processes meet.
    fn reach(&self) -> Reach;

    /// Whether others see files that this process shows.
    fn can_show(&self) -> bool {
        false
    }

    /// As many processes as share the cores of this one, itself among them, as far as is known.
    fn neighbours(&self, mesh: &Mesh) -> usize {
        mesh.channels.len()
    }

    /// The port of this node.
    ///
    /// # Errors
    /// [`JoinError`] if the system refuses what the port needs, or a peer sends what is not valid.
    fn connect(&self, mesh: Mesh, node: Node<'_>) -> Result<Box<dyn Port>, JoinError>;
}

/// What a transport is told of the node.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub me: NodeId,
    pub secret: &'a Secret,
    /// Files of its memory, for processes of the same machine.
    pub shows: &'a [OwnedFd],
    /// A node of which nothing is heard for so long is lost.
    pub bound: Duration,
    pub launcher: Option<Arc<Launcher>>,
}

impl Node<'_> {
    /// The port with a failure detector.
    fn watch<P: Port + 'static>(self, port: P) -> Box<dyn Port> {
        if let Some(launcher) = &self.launcher {
            launcher.joined();
        }
        Box::new(FailureDetector::new(port, self.bound).telling(self.launcher))
    }
}

/// All transports. The first is what carries messages unless `DHOLE_TRANSPORT` says otherwise.
pub(super) static ALL: [&dyn Transport; 4] = [&Tcp, &Shm, &Mixed, &Udp];

/// The transport of this name.
pub(super) fn named(name: &str) -> Option<&'static dyn Transport> {
    ALL.into_iter().find(|transport| transport.name() == name)
}

/// TCP connections between all.
#[derive(Debug)]
struct Tcp;

impl Transport for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn reach(&self) -> Reach {
        Reach::Tcp
    }

    fn connect(&self, mesh: Mesh, node: Node<'_>) -> Result<Box<dyn Port>, JoinError> {
        let port = mesh.into_tcp(node.me)?;
        Ok(node.watch(port))
    }
}

/// Memory shared by each two of them, on one machine.
#[derive(Debug)]
struct Shm;

impl Transport for Shm {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn reach(&self) -> Reach {
        Reach::Near
    }

    fn can_show(&self) -> bool {
        true
    }

    fn connect(&self, mesh: Mesh, node: Node<'_>) -> Result<Box<dyn Port>, JoinError> {
        let port = mesh.into_shm(node.me, node.shows)?;
        Ok(node.watch(port))
    }
}

/// Shared memory within each machine, TCP between machines.
#[derive(Debug)]
struct Mixed;

impl Transport for Mixed {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn reach(&self) -> Reach {
        Reach::Both
    }

    fn can_show(&self) -> bool {
        true
    }

    fn neighbours(&self, mesh: &Mesh) -> usize {
        1 + mesh.near()
    }

    fn connect(&self, mesh: Mesh, node: Node<'_>) -> Result<Box<dyn Port>, JoinError> {
        let port = mesh.into_mixed(node.me, node.shows)?;
        Ok(node.watch(port))
    }
}

/// Datagrams between all, acknowledged and sent again by dhole itself. They prove their sender, and
/// are not encrypted.
#[derive(Debug)]
struct Udp;

impl Transport for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn reach(&self) -> Reach {
        Reach::Tcp
    }

    fn connect(&self, mesh: Mesh, node: Node<'_>) -> Result<Box<dyn Port>, JoinError> {
        let port = mesh.into_udp(node.me, node.secret, node.bound)?;
        Ok(node.watch(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_of_one_transport() {
        for transport in ALL {
            assert_eq!(named(transport.name()).unwrap().name(), transport.name());
        }
        let mut names = ALL.map(|it| it.name());
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
        assert!(named("carrier pigeon").is_none());
    }
}
