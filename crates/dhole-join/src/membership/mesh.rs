//! What leads where when all have met, and the ports that are made of it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dhole_model::NodeId;

use super::channel::Channel;
use super::error::JoinError;
use dhole_net::{Mixed, Shm, ShmError, ShmLink, Tcp};

/// Memory that has been sent is there at once: this only keeps a wait from being refused as none.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// A channel to each other node, which has proved who it is.
#[derive(Debug)]
pub(crate) struct Mesh {
    pub channels: Vec<Option<Channel>>,
    /// When the time for joining is over.
    pub deadline: Instant,
}

impl Mesh {
    /// That of a cluster of one node.
    pub fn alone() -> Mesh {
        Mesh {
            channels: vec![None],
            deadline: Instant::now(),
        }
    }

    /// The other nodes that share this machine, as far as is known.
    pub fn near(&self) -> usize {
        let channels = self.channels.iter().flatten();
        channels.filter(|c| matches!(c, Channel::Unix(_))).count()
    }

    /// The port over TCP.
    pub fn into_tcp(self, me: NodeId) -> Result<Tcp, JoinError> {
        let channels = self.channels.into_iter();
        let streams = channels.map(|channel| channel.and_then(Channel::into_stream));
        Tcp::new(me, streams.collect()).map_err(|e| making_the_port(me, e))
    }

    /// The port through shared memory: of each two nodes the one of the lower number makes the
    /// memory, and the other takes it. Each shows the other the files `shows` of its own memory.
    pub fn into_shm(self, me: NodeId, shows: &[OwnedFd]) -> Result<Shm, JoinError> {
        let failed = |peer, cause: &dyn std::fmt::Display, own| {
            let advice = match own {
                true => "; `--transport tcp` (DHOLE_TRANSPORT=tcp) needs none",
                false => "",
            };
            let cause = format!("{cause}{advice}");
            JoinError::Memory {
                me,
                peer,
                cause,
                own,
            }
        };
        let refused = |peer, error: ShmError| failed(peer, &error, error.is_own());
        let deadline = self.deadline;
        let waits = |peer, socket: &UnixStream| {
            let left = deadline.saturating_duration_since(Instant::now());
            let bounded = socket
                .set_nonblocking(false)
                .and_then(|()| socket.set_read_timeout(Some(left.max(LEAST_WAIT))));
            bounded.map_err(|e| failed(peer, &e, true))
        };
        let mut links: Vec<Option<ShmLink>> = Vec::new();
        let mut taken = Vec::new();
        for (peer, channel) in self.channels.into_iter().enumerate() {
            links.push(None);
            let peer = NodeId::at(peer);
            let Some(socket) = channel.and_then(Channel::into_unix) else {
                continue;
            };
            if me < peer {
                // It does not wait for the peer, so all have sent before any waits.
                let link = ShmLink::offer(socket, ShmLink::RING_BYTES);
                let link = link.and_then(|link| link.show(shows).map(|()| link));
                links[peer.index()] = Some(link.map_err(|e| refused(peer, e))?);
            } else {
                taken.push((peer, socket));
            }
        }
        for (peer, socket) in taken {
            waits(peer, &socket)?;
            let link = ShmLink::accept(socket);
            let link = link.and_then(|link| link.show(shows).map(|()| link));
            links[peer.index()] = Some(link.map_err(|e| refused(peer, e))?);
        }
        for (peer, link) in links.iter_mut().enumerate() {
            let peer = NodeId::at(peer);
            if let Some(link) = link {
                waits(peer, link.stream())?;
                link.see().map_err(|e| refused(peer, e))?;
            }
        }
        Shm::new(me, links).map_err(|e| making_the_port(me, e))
    }

    /// The port through shared memory to the nodes of this machine, and TCP to the others.
    pub fn into_mixed(self, me: NodeId, shows: &[OwnedFd]) -> Result<Mixed, JoinError> {
        let is_unix = |channel: &Option<Channel>| matches!(channel, Some(Channel::Unix(_)));
        let is_near: Vec<bool> = self.channels.iter().map(is_unix).collect();
        let deadline = self.deadline;
        let divided = self
            .channels
            .into_iter()
            .map(|channel| match is_unix(&channel) {
                true => (channel, None),
                false => (None, channel),
            });
        let (near, far) = divided.unzip();
        let mesh = |channels| Mesh { channels, deadline };
        let near = mesh(near).into_shm(me, shows)?;
        let far = mesh(far).into_tcp(me)?;
        Ok(Mixed::new(near, far, is_near))
    }
}

fn making_the_port(me: NodeId, cause: io::Error) -> JoinError {
    JoinError::System {
        me,
        doing: "making the port",
        cause,
    }
}
