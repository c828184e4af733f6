//! From connections over which nodes have proved who they are to datagrams: each node tells each
//! other where its socket is and half of what their key is made of. Then the connections end.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags};

use super::channel::Channel;
use super::mesh::Mesh;
use super::secret::Secret;
use super::{address, error::JoinError, poll};
use dhole_net::{Reliable, ReliableLimits, Udp, UdpGroup, UdpKey, UdpLimits, UdpPeer};

/// What a key is made for.
const PURPOSE: &[u8] = b"dhole datagrams";
/// Random bytes of each side.
const HALF: usize = 32;
/// What is said: a port, half of what the key is made of, and of node 0 the port and the seed of
/// the group for what goes to all. Without a group its port is 0.
const HELLO: usize = 2 + HALF + 2 + HALF;
/// What the group's key is made for.
const GROUP: &[u8] = b"dhole datagrams to all";
/// What was said before is there at once, as a rule: this only keeps a wait from being none.
const LEAST_WAIT: Duration = Duration::from_millis(100);

impl Mesh {
    /// The port over UDP, made reliable. A peer that leaves what it is sent unanswered for
    /// `patience` is lost.
    pub fn into_udp(
        self,
        me: NodeId,
        secret: &Secret,
        patience: Duration,
    ) -> Result<Reliable<Udp>, JoinError> {
        let failed = |doing| move |cause| JoinError::System { me, doing, cause };
        let opening = failed("opening a socket for datagrams");
        let exchanging = |peer: NodeId, cause: io::Error| {
            let cause = io::Error::new(cause.kind(), format!("with {peer}: {cause}"));
            failed("exchanging where datagrams go")(cause)
        };
        let end = |(peer, channel): (usize, &Option<Channel>)| {
            let end = channel.as_ref().map(Channel::peer).transpose();
            end.map_err(|cause| exchanging(NodeId::at(peer), cause))
        };
        let ends: Vec<Option<SocketAddr>> = self
            .channels
            .iter()
            .enumerate()
            .map(end)
            .collect::<Result<_, _>>()?;
        let hosts: Vec<Option<IpAddr>> = ends
            .iter()
            .map(|end| end.map(|end| end.ip().to_canonical()))
            .collect();
        let all = |is: fn(&IpAddr) -> bool| hosts.iter().flatten().all(is);
        let everywhere: IpAddr = match all(IpAddr::is_ipv4) {
            true => Ipv4Addr::UNSPECIFIED.into(),
            false => Ipv6Addr::UNSPECIFIED.into(),
        };
        let limits = match all(IpAddr::is_loopback) {
            true => UdpLimits::LOOPBACK,
            false => UdpLimits::ETHERNET,
        };
        let socket = UdpSocket::bind((everywhere, 0)).map_err(opening)?;
        let port = socket.local_addr().map_err(opening)?.port();
        let mut half = [0; HALF];
        SystemRandom::new()
            .fill(&mut half)
            .map_err(|_| failed("making a key")(ErrorKind::Other.into()))?;
        let mut hello = [0; HELLO];
        hello[..2].copy_from_slice(&port.to_le_bytes());
        hello[2..2 + HALF].copy_from_slice(&half);
        let here = self.channels.iter().flatten().next().map(Channel::local);
        let here = here.and_then(Result::ok);
        let mut group = None;
        if me == NodeId(0) && nodes_share(&hosts) {
            let mut seed = [0; HALF];
            SystemRandom::new()
                .fill(&mut seed)
                .map_err(|_| failed("making a key")(ErrorKind::Other.into()))?;
            group = join_group(here, 0, &seed, secret);
            let port = group.as_ref().map_or(0, UdpGroup::port);
            hello[2 + HALF..4 + HALF].copy_from_slice(&port.to_le_bytes());
            hello[4 + HALF..].copy_from_slice(&seed);
        }
        let deadline = self.deadline;
        // All have said it before any waits.
        for (peer, channel) in self.channels.iter().enumerate() {
            if let Some(channel) = channel {
                let said = say(channel, &hello, deadline);
                said.map_err(|cause| exchanging(NodeId::at(peer), cause))?;
            }
        }
        let mut peers = Vec::new();
        for (peer, (channel, end)) in self.channels.iter().zip(ends).enumerate() {
            let peer = NodeId::at(peer);
            let (Some(channel), Some(end)) = (channel, end) else {
                peers.push(None);
                continue;
            };
            let theirs = hear(channel, deadline).map_err(|cause| exchanging(peer, cause))?;
            let (port, rest) = theirs.split_at(2);
            let (their_half, rest) = rest.split_at(HALF);
            if peer == NodeId(0) {
                let (port, seed) = rest.split_at(2);
                let port = u16::from_le_bytes([port[0], port[1]]);
                if port != 0 {
                    group = join_group(here, port, seed, secret);
                }
            }
            let (lower, higher) = match me < peer {
                true => (&half[..], their_half),
                false => (their_half, &half[..]),
            };
            let host = end.ip().to_canonical();
            let host = match everywhere {
                IpAddr::V4(_) => host,
                IpAddr::V6(_) => mapped(host).into(),
            };
            let address = SocketAddr::new(host, u16::from_le_bytes([port[0], port[1]]));
            peers.push(Some(UdpPeer {
                address: address::in_zone(address, address::zone(end)),
                key: UdpKey::new(&secret.prove(&[PURPOSE, lower, higher])),
            }));
        }
        let mut udp = Udp::new(me, socket, peers, limits).map_err(opening)?;
        if let Some(group) = group {
            udp = udp.with_group(group);
        }
        let limits = ReliableLimits {
            patience,
            ..ReliableLimits::default()
        };
        Ok(Reliable::new(udp, limits))
    }
}

/// Whether there are several others, all of which can be in one group.
fn nodes_share(hosts: &[Option<IpAddr>]) -> bool {
    let others = || hosts.iter().flatten();
    others().count() > 1 && others().all(IpAddr::is_ipv4)
}

/// The group that is made of `seed`, which goes no further than an organisation (RFC 2365); none
/// where the system has none, and then frames go to each by itself.
fn join_group(here: Option<IpAddr>, port: u16, seed: &[u8], secret: &Secret) -> Option<UdpGroup> {
    let Some(IpAddr::V4(interface)) = here else {
        return None;
    };
    let address = Ipv4Addr::new(239, 192 | seed[0] & 3, seed[1], seed[2]);
    let key = UdpKey::new(&secret.prove(&[GROUP, seed]));
    UdpGroup::join(SocketAddrV4::new(address, port), interface, key).ok()
}

/// As a socket that speaks both kinds of addresses names it.
fn mapped(host: IpAddr) -> Ipv6Addr {
    match host {
        IpAddr::V4(host) => host.to_ipv6_mapped(),
        IpAddr::V6(host) => host,
    }
}

/// What of the time for joining is left.
fn left(deadline: Instant) -> io::Result<Duration> {
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) => Ok(left.max(LEAST_WAIT)),
        None => Err(ErrorKind::TimedOut.into()),
    }
}

fn say(channel: &Channel, hello: &[u8; HELLO], deadline: Instant) -> io::Result<()> {
    let mut said = 0;
    while said < HELLO || channel.wants_write() {
        // Nothing more, where only what was taken before is to be sent.
        match channel.write(&hello[said..]) {
            Ok(more) => said += more,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                poll::writable(channel, left(deadline)?)?;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn hear(channel: &Channel, deadline: Instant) -> io::Result<[u8; HELLO]> {
    let mut hello = [0; HELLO];
    let mut heard = 0;
    while heard < HELLO {
        match channel.read(&mut hello[heard..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => heard += more,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut sockets = [PollFd::new(channel, PollFlags::IN)];
                poll::any(&mut sockets, left(deadline)?)?;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(hello)
}
