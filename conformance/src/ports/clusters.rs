//! Clusters of ports within this process, one for each kind of port.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{
    Chances, FailureDetector, Local, Lossy, Mixed, Port, Reliable, ReliableLimits, Shm, ShmLink,
    Stream, Tcp, TcpLimits, Udp, UdpGroup, UdpKey, UdpLimits, UdpPeer,
};
use dhole_space::VisibleMemory;

/// Ports that copy frames from queue to queue.
pub fn local(nodes: usize) -> Vec<Box<dyn Port>> {
    let ports = Local::cluster(nodes).expect("a doorbell for each node");
    ports.into_iter().map(|port| Box::new(port) as _).collect()
}

/// TCP over the loopback.
pub fn tcp(nodes: usize) -> Vec<Box<dyn Port>> {
    tcp_with(nodes, TcpLimits::default())
}

/// TCP that keeps next to nothing back, so that almost every frame meets a limit.
pub fn narrow_tcp(nodes: usize) -> Vec<Box<dyn Port>> {
    let limits = TcpLimits {
        largest: 1 << 20,
        kept_back: 100,
    };
    tcp_with(nodes, limits)
}

/// Shared memory, with the rings that processes have.
pub fn shm(nodes: usize) -> Vec<Box<dyn Port>> {
    shm_with(nodes, ShmLink::RING_BYTES, 64 << 20)
}

/// Shared memory with the least rings, so that almost every frame comes to their end.
pub fn narrow_shm(nodes: usize) -> Vec<Box<dyn Port>> {
    shm_with(nodes, 0, 1 << 20)
}

/// Shared memory between nodes 0 and 1, 2 and 3, and so on; TCP between all others.
pub fn mixed(nodes: usize) -> Vec<Box<dyn Port>> {
    let near = |node: usize, peer: usize| node / 2 == peer / 2;
    let ports = (0..nodes).zip(links(nodes, ShmLink::RING_BYTES));
    let ports = ports
        .zip(connections(nodes))
        .map(|((node, links), streams)| {
            let me = NodeId::at(node);
            let links = links.into_iter().enumerate();
            let links = links.map(|(peer, link)| link.filter(|_| near(node, peer)));
            let streams = streams.into_iter().enumerate();
            let streams = streams.map(|(peer, s)| s.filter(|_| !near(node, peer)));
            let shm = Shm::new(me, links.collect()).expect("a port over sound links");
            let streams = streams.map(|s| s.map(Stream::Plain)).collect();
            let tcp = Tcp::new(me, streams).expect("a port over sound sockets");
            let is_near = (0..nodes).map(|peer| near(node, peer)).collect();
            Box::new(Mixed::new(shm, tcp, is_near)) as _
        });
    ports.collect()
}

/// MPI within this process.
#[cfg(feature = "mpi")]
pub fn mpi(nodes: usize) -> Vec<Box<dyn Port>> {
    let ports = dhole_mpi::Mpi::cluster(nodes).expect("an MPI library");
    ports.into_iter().map(|port| Box::new(port) as _).collect()
}

/// Watched shared memory. A live node sees nothing that the watch does.
pub fn watched(nodes: usize) -> Vec<Box<dyn Port>> {
    let watch = |port| Box::new(FailureDetector::new(port, Duration::from_secs(60))) as _;
    shm(nodes).into_iter().map(watch).collect()
}

/// Watched shared memory between nodes that see each other's memory, and that memory: what
/// processes of one machine have as a rule.
pub fn seeing(nodes: usize) -> Vec<(Box<dyn Port>, VisibleMemory)> {
    let memory = |_| VisibleMemory::make().expect("memory that others can map");
    let all: Vec<VisibleMemory> = (0..nodes).map(memory).collect();
    let mut links = links(nodes, ShmLink::RING_BYTES);
    for (node, memory) in all.iter().enumerate() {
        for peer in (0..nodes).filter(|peer| *peer != node) {
            let files = memory.all_files().expect("descriptors");
            let link = links[node][peer].as_ref().expect("a link to each");
            link.show(&files).expect("a peer");
        }
    }
    let seen = links.iter_mut().flatten().flatten();
    seen.for_each(|link| link.see().expect("what was shown"));
    let port = |((node, links), memory)| {
        let port = Shm::new(NodeId::at(node), links).expect("a port over sound links");
        let port = FailureDetector::new(port, Duration::from_secs(60));
        (Box::new(port) as Box<dyn Port>, memory)
    };
    links.into_iter().enumerate().zip(all).map(port).collect()
}

/// Watched UDP over the loopback, made reliable.
pub fn udp(nodes: usize) -> Vec<Box<dyn Port>> {
    udp_with(nodes, UdpLimits::ETHERNET, Chances::default())
}

/// The same over a network that loses, repeats and reorders.
pub fn lossy_udp(nodes: usize) -> Vec<Box<dyn Port>> {
    udp_with(nodes, UdpLimits::LOOPBACK, BAD)
}

/// The reference over a network that loses, repeats and reorders.
pub fn lossy(nodes: usize) -> Vec<Box<dyn Port>> {
    let ports = Local::cluster(nodes).expect("a doorbell for each node");
    let port = |port| Box::new(Reliable::new(Lossy::new(port, 7, BAD), SMALL)) as _;
    ports.into_iter().map(port).collect()
}

/// A bad network: of a hundred frames five are lost, five come twice and ten late.
const BAD: Chances = Chances {
    drop: 50,
    duplicate: 50,
    delay: 100,
    latest: 20,
};

/// The limits of reliable flows: a frame of 64 MiB would take long on a bad network.
const SMALL: ReliableLimits = ReliableLimits {
    largest: 2 << 20,
    kept_back: 1 << 20,
    patience: Duration::from_secs(60),
};

fn udp_with(nodes: usize, limits: UdpLimits, chances: Chances) -> Vec<Box<dyn Port>> {
    let socket = |_| UdpSocket::bind("127.0.0.1:0").expect("a socket on the loopback");
    let sockets: Vec<UdpSocket> = (0..nodes).map(socket).collect();
    let addresses = sockets.iter().map(UdpSocket::local_addr);
    let addresses: Vec<_> = addresses.map(|a| a.expect("its address")).collect();
    // Where the system has no groups, the checks are those of a port without one.
    let group = |port| {
        let address = SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 1), port);
        UdpGroup::join(address, Ipv4Addr::LOCALHOST, UdpKey::new(&[7; 32])).ok()
    };
    let first = group(0);
    let at = first.as_ref().map_or(0, UdpGroup::port);
    let port = |(node, socket)| {
        let peer = |&address| {
            let key = UdpKey::new(&[7; 32]);
            Some(UdpPeer { address, key })
        };
        let mut peers: Vec<_> = addresses.iter().map(peer).collect();
        peers[node] = None;
        let port = Udp::new(NodeId::at(node), socket, peers, limits).expect("a port");
        let port = match group(at) {
            Some(group) => port.with_group(group),
            None => port,
        };
        let port = Reliable::new(Lossy::new(port, 7, chances), SMALL);
        // Long enough for a busy machine, and short enough to wait for in a check.
        Box::new(FailureDetector::new(port, Duration::from_secs(8))) as _
    };
    sockets.into_iter().enumerate().map(port).collect()
}

fn shm_with(nodes: usize, ring_bytes: usize, largest: usize) -> Vec<Box<dyn Port>> {
    let port = |(node, links)| {
        let port = Shm::with_largest(NodeId::at(node), links, largest);
        Box::new(port.expect("a port over sound links")) as _
    };
    let links = links(nodes, ring_bytes).into_iter().enumerate();
    links.map(port).collect()
}

/// Memory shared by each two of `nodes`: node `a`'s side of that with `b` is `[a][b]`.
fn links(nodes: usize, ring_bytes: usize) -> Vec<Vec<Option<ShmLink>>> {
    let mut links: Vec<Vec<Option<ShmLink>>> = Vec::new();
    for _ in 0..nodes {
        let mut own = Vec::new();
        for theirs in &mut links {
            let (here, there) = UnixStream::pair().expect("a pair of sockets");
            theirs.push(Some(ShmLink::offer(here, ring_bytes).expect("memory")));
            own.push(Some(ShmLink::accept(there).expect("the same memory")));
        }
        own.push(None);
        links.push(own);
    }
    links
}

fn tcp_with(nodes: usize, limits: TcpLimits) -> Vec<Box<dyn Port>> {
    let streams = connections(nodes).into_iter().enumerate();
    let port = |(node, streams): (usize, Vec<Option<TcpStream>>)| {
        let streams = streams.into_iter().map(|s| s.map(Stream::Plain)).collect();
        let port = Tcp::with_limits(NodeId::at(node), streams, limits);
        Box::new(port.expect("a port over sound sockets")) as _
    };
    streams.map(port).collect()
}

/// A connection between each two of `nodes`: node `a`'s end of that to `b` is `[a][b]`.
pub fn connections(nodes: usize) -> Vec<Vec<Option<TcpStream>>> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener on the loopback");
    let address = listener.local_addr().expect("the listener's address");
    let mut ends: Vec<Vec<Option<TcpStream>>> = Vec::new();
    for _ in 0..nodes {
        let mut own = Vec::new();
        for theirs in &mut ends {
            own.push(Some(TcpStream::connect(address).expect("a connection")));
            theirs.push(Some(listener.accept().expect("a connection").0));
        }
        own.push(None);
        ends.push(own);
    }
    ends
}
