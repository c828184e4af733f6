//! The port over UDP: datagrams of which each proves that a member of the cluster sent it. Neither
//! reliable nor ordered, which [`Reliable`](crate::Reliable) supplies.

mod group;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole_model::unpoisoned::try_lock;
use dhole_model::{NodeId, Notify};
use ring::hmac;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg_addr, sockopt};

pub use self::group::UdpGroup;

use crate::doorbell::Doorbell;
use crate::peers::Peers;
use crate::port::send_one_by_one;
use crate::{Loss, Offers, Owed, Port, SendError};

/// What stands before each frame: who sends to whom, and the tag over both and the frame.
const ADDRESSED: usize = 4;
const TAG: usize = 32;
const HEAD: usize = TAG + ADDRESSED;
/// Stands in the place of a receiver in what goes to all: no cluster has so many nodes.
const ALL: NodeId = NodeId(u16::MAX);
/// The largest datagram that UDP carries over IPv4.
const MOST: usize = 65_507;
/// Datagrams that are taken in one poll.
const AT_ONCE: usize = 64;
/// Parts of a frame that go to the kernel without being copied together.
const PARTS: usize = 14;
/// What the kernel is asked to keep for this process while it computes.
const KERNEL_KEEPS: usize = 4 << 20;

/// What two nodes know, and nobody else: datagrams between them that it did not tag are dropped.
/// Those of one run must have other keys than those of the next, or datagrams of the one are good
/// in the other.
pub struct UdpKey(hmac::Key);

impl UdpKey {
    /// The key that these bytes are, which were made of the cluster's secret for this pair alone.
    pub fn new(secret: &[u8; 32]) -> Self {
        UdpKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The tag of a datagram: of what addresses it, and of its parts.
    fn tag(&self, addressed: &[u8; ADDRESSED], parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(addressed);
        for part in parts {
            context.update(part);
        }
        context.sign()
    }
}

impl std::fmt::Debug for UdpKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UdpKey(..)")
    }
}

/// Where a peer is, and how datagrams between it and this node are tagged.
#[derive(Debug)]
pub struct UdpPeer {
    /// The address of its socket.
    pub address: SocketAddr,
    /// The key that it has too.
    pub key: UdpKey,
}

/// Limits of a UDP port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpLimits {
    /// The largest datagram that is sent, in bytes: what the network carries without cutting it up,
    /// for then one lost packet costs one packet.
    pub datagram: usize,
}

impl UdpLimits {
    /// What an Ethernet carries, with room for tunnels.
    pub const ETHERNET: UdpLimits = UdpLimits { datagram: 1_400 };
    /// What the loopback of one machine carries well.
    pub const LOOPBACK: UdpLimits = UdpLimits { datagram: 16 << 10 };
}

/// One socket, over which datagrams go to all peers.
pub struct Udp {
    peers: Peers,
    socket: UdpSocket,
    others: Vec<Option<UdpPeer>>,
    doorbell: Doorbell,
    /// Where a datagram is read to.
    datagram: Mutex<Vec<u8>>,
    refused: AtomicU64,
    sent: AtomicU64,
    group: Option<UdpGroup>,
}

impl Udp {
    /// The port of node `me`, whose socket is bound; `peers[n]` says where node `n`'s is, and there
    /// is none for `me`. A peer of which nothing is known is lost from the beginning.
    ///
    /// # Errors
    /// What the kernel says when the socket cannot be made ready or no descriptor is left.
    pub fn new(
        me: NodeId,
        socket: UdpSocket,
        peers: Vec<Option<UdpPeer>>,
        limits: UdpLimits,
    ) -> io::Result<Udp> {
        let datagram = limits.datagram.clamp(HEAD + 1, MOST);
        socket.set_nonblocking(true)?;
        // The kernel gives as much of it as it may.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, KERNEL_KEEPS);
        let _ = sockopt::set_socket_send_buffer_size(&socket, KERNEL_KEEPS);
        let known = Peers::new(me, peers.len(), datagram - HEAD);
        for (node, _) in peers.iter().enumerate().filter(|(_, peer)| peer.is_none()) {
            let loss = Loss::Broken("it has no address".into());
            known.lose(NodeId::at(node), loss);
        }
        Ok(Udp {
            peers: known,
            socket,
            others: peers,
            doorbell: Doorbell::new()?,
            datagram: Mutex::new(vec![0; MOST]),
            refused: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            group: None,
        })
    }

    /// Sends what goes to all to a group of which all are members, if the kernel lets it. A member
    /// that gets nothing there loses what goes to all.
    pub fn with_group(mut self, group: UdpGroup) -> Udp {
        if group.open(&self.socket).is_ok() {
            self.group = Some(group);
        }
        self
    }

    /// Datagrams that were given to the network.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Datagrams that were dropped because no member of the cluster had sent them to this node.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Who sent this datagram, if a member sent it here.
    fn sender(&self, datagram: &[u8]) -> Option<NodeId> {
        let (tag, rest) = datagram.split_first_chunk::<TAG>()?;
        let (addressed, _) = rest.split_first_chunk::<ADDRESSED>()?;
        let [from_low, from_high, to_low, to_high] = *addressed;
        let from = NodeId(u16::from_le_bytes([from_low, from_high]));
        let to = NodeId(u16::from_le_bytes([to_low, to_high]));
        let peer = self.others.get(from.index())?.as_ref()?;
        let (key, is_here) = match &self.group {
            Some(group) if to == ALL => (&group.key, true),
            _ => (&peer.key, to == self.peers.me()),
        };
        hmac::verify(&key.0, rest, tag).ok()?;
        (from != to && is_here).then_some(from)
    }

    /// Whether this is one of this node's own datagrams to all, which come here as well.
    fn is_own(&self, datagram: &[u8]) -> bool {
        let own = self.addressed(ALL);
        datagram
            .get(TAG..HEAD)
            .is_some_and(|addressed| addressed == own)
    }

    fn addressed(&self, to: NodeId) -> [u8; ADDRESSED] {
        let mut addressed = [0; ADDRESSED];
        addressed[..2].copy_from_slice(&self.peers.me().0.to_le_bytes());
        addressed[2..].copy_from_slice(&to.0.to_le_bytes());
        addressed
    }

    /// Gives a datagram of `bytes` bytes to the network.
    fn give(
        &self,
        to: NodeId,
        (address, key): (&SocketAddr, &UdpKey),
        parts: &[&[u8]],
        bytes: usize,
    ) -> Result<(), SendError> {
        let addressed = self.addressed(to);
        let tag = key.tag(&addressed, parts);
        let joined;
        let joined_part;
        let mut parts = parts;
        if parts.len() > PARTS {
            joined = parts.concat();
            joined_part = [&joined[..]];
            parts = &joined_part;
        }
        let mut slices = [io::IoSlice::new(&[]); 2 + PARTS];
        slices[0] = io::IoSlice::new(tag.as_ref());
        slices[1] = io::IoSlice::new(&addressed);
        for (slice, part) in slices[2..].iter_mut().zip(parts) {
            *slice = io::IoSlice::new(part);
        }
        let sent = sendmsg_addr(
            &self.socket,
            address,
            &slices[..2 + parts.len()],
            &mut SendAncillaryBuffer::default(),
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        );
        match sent {
            Ok(_) => {
                self.sent.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Err(SendError::Busy { to }),
            Err(Errno::MSGSIZE) => Err(SendError::TooLarge {
                to,
                bytes,
                largest: self.peers.largest(),
            }),
            // Whatever else may be wrong on the way: a datagram may be lost.
            Err(_) => Ok(()),
        }
    }

    /// Takes what has come at one of the sockets.
    fn take_from(
        &self,
        socket: &UdpSocket,
        buffer: &mut [u8],
        take: &mut dyn FnMut(NodeId, &[u8]),
    ) -> usize {
        let mut frames = 0;
        for _ in 0..AT_ONCE {
            let bytes = match socket.recv_from(buffer) {
                Ok((bytes, _)) => bytes,
                // That nobody listens at a peer's address is told here, and means nothing yet.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => break,
            };
            let datagram = &buffer[..bytes];
            match self.sender(datagram) {
                Some(from) if self.peers.loss(from).is_none() => {
                    frames += 1;
                    take(from, &datagram[HEAD..]);
                }
                Some(_) => {}
                None if self.group.is_some() && self.is_own(datagram) => {}
                None => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
            }
        }
        frames
    }
}

impl Port for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn me(&self) -> NodeId {
        self.peers.me()
    }

    fn nodes(&self) -> usize {
        self.peers.nodes()
    }

    fn offers(&self) -> Offers {
        Offers {
            reliable: false,
            ordered: false,
            largest: self.peers.largest(),
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], _: Notify) -> Result<(), SendError> {
        let bytes = self.peers.admit(to, parts)?;
        let Some(peer) = &self.others[to.index()] else {
            let loss = Loss::Broken("it has no address".into());
            return Err(SendError::Lost { to, loss });
        };
        self.give(to, (&peer.address, &peer.key), parts, bytes)
    }

    fn multicasts(&self) -> bool {
        self.group.is_some()
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        let all = self.peers.others().all(|peer| to.contains(&peer));
        let (Some(group), Some(&first), true) = (&self.group, to.first(), all) else {
            return send_one_by_one(self, to, parts);
        };
        let bytes = parts.iter().map(|part| part.len()).sum();
        if bytes > self.peers.largest() {
            return self.peers.admit(first, parts).map(drop);
        }
        self.give(ALL, (&group.address, &group.key), parts, bytes)?;
        to.clear();
        Ok(())
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut buffer) = try_lock(&self.datagram) else {
            return 0;
        };
        let group = self.group.as_ref().map(|group| &group.socket);
        let sockets = [Some(&self.socket), group].into_iter().flatten();
        sockets
            .map(|socket| self.take_from(socket, &mut buffer, take))
            .sum()
    }

    fn park(&self, at_most: Duration) {
        let group = self.group.as_ref().map(|group| &group.socket);
        let sockets = [Some(&self.socket), group].into_iter().flatten();
        let sockets = sockets.map(|socket| (socket.as_fd(), PollFlags::IN));
        // The kernel wakes for what comes.
        self.doorbell.wait(sockets, at_most, || false);
    }

    fn unpark(&self) {
        self.doorbell.ring();
    }

    fn owe(&self, owed: Owed) {
        self.doorbell.owe(owed);
    }

    fn lost_doorbells(&self) -> u64 {
        self.doorbell.lost()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        self.peers.lose(peer, loss);
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.peers.tell(tell);
    }

    fn close(&self, _at_most: Duration) {
        self.peers.close();
    }
}
