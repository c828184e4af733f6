//! Datagrams that no member of the cluster sent are dropped before anybody looks into them.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{Port, Udp, UdpKey, UdpLimits, UdpPeer};

const BOUND: Duration = Duration::from_secs(20);

fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("its address");
    (socket, address)
}

/// Node `me` of three, whose only peers are those at these addresses and of these keys.
fn port(me: u16, socket: UdpSocket, peers: [Option<(SocketAddr, u8)>; 3]) -> Udp {
    let peers = peers.map(|peer| {
        peer.map(|(address, key)| UdpPeer {
            address,
            key: UdpKey::new(&[key; 32]),
        })
    });
    let limits = UdpLimits::ETHERNET;
    Udp::new(NodeId(me), socket, peers.into(), limits).expect("a port")
}

/// Polls until so many datagrams were refused, and none was taken.
fn await_refusals(port: &Udp, count: u64) {
    let until = Instant::now() + BOUND;
    while port.refused() < count {
        assert!(Instant::now() < until, "{} of {count}", port.refused());
        port.park(Duration::from_millis(50));
        port.poll(&mut |from, frame| panic!("{from} sent {frame:?}"));
    }
}

#[test]
fn bytes_of_strangers_are_refused() {
    let (own, address) = socket();
    let port = port(0, own, [None, Some((socket().1, 1)), Some((socket().1, 2))]);
    let (stranger, _) = socket();
    for bytes in [&[][..], b"x", &[0; 35], &[0; 36], &[7; 500], &[0xff; 9_000]] {
        stranger.send_to(bytes, address).expect("sent");
    }
    await_refusals(&port, 6);
}

#[test]
fn who_has_another_key_or_another_name_is_refused() {
    let (own, address) = socket();
    let ours = port(0, own, [None, Some((socket().1, 1)), Some((socket().1, 2))]);
    // Another key, the key of node 1 in the name of node 2, and a datagram for another node.
    for (name, key) in [(1, 9), (2, 1)] {
        let liar = port(name, socket().0, [Some((address, key)), None, None]);
        liar.send(NodeId(0), &[b"let me in"]).expect("sent");
    }
    let misled = port(1, socket().0, [None, None, Some((address, 1))]);
    misled.send(NodeId(2), &[b"for node 2"]).expect("sent");
    await_refusals(&ours, 3);
}

#[test]
fn a_datagram_that_was_changed_or_sent_back_is_refused() {
    let (own, address) = socket();
    let (between, there) = socket();
    let ours = port(0, own, [None, Some((there, 1)), None]);
    let theirs = port(1, socket().0, [Some((there, 1)), None, None]);
    theirs.send(NodeId(0), &[b"unchanged"]).expect("sent");
    let mut datagram = [0; 100];
    let bytes = between.recv(&mut datagram).expect("the datagram");
    for at in 0..bytes {
        datagram[at] ^= 1;
        between.send_to(&datagram[..bytes], address).expect("sent");
        datagram[at] ^= 1;
        await_refusals(&ours, at as u64 + 1);
    }
    ours.send(NodeId(1), &[b"to and fro"]).expect("sent");
    let mut own = [0; 100];
    let length = between.recv(&mut own).expect("the datagram");
    between.send_to(&own[..length], address).expect("sent");
    await_refusals(&ours, bytes as u64 + 1);
    between.send_to(&datagram[..bytes], address).expect("sent");
    let mut taken = Vec::new();
    let until = Instant::now() + BOUND;
    while taken.is_empty() && Instant::now() < until {
        ours.park(Duration::from_millis(50));
        ours.poll(&mut |from, frame| taken.push((from, frame.to_vec())));
    }
    assert_eq!(taken, [(NodeId(1), b"unchanged".to_vec())]);
}
