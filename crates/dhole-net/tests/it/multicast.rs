//! A frame to all is one datagram, where the network carries it to all; and where it does not, it
//! arrives all the same.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{Port, Reliable, ReliableLimits, Udp, UdpGroup, UdpKey, UdpLimits, UdpPeer};

const NODES: usize = 4;
const BOUND: Duration = Duration::from_secs(20);

/// The group of a cluster, at a port that is free or known; none where the system has none.
fn group(port: u16, key: u8) -> Option<UdpGroup> {
    let address = SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 7), port);
    let joined = UdpGroup::join(address, Ipv4Addr::LOCALHOST, UdpKey::new(&[key; 32]));
    joined.ok()
}

/// Ports over the loopback; `member` says which nodes are in the group, by which key. The clock
/// stands still, so that nothing is taken for lost.
fn cluster(member: impl Fn(usize) -> Option<u8>) -> Option<Vec<Reliable<Udp>>> {
    let socket = |_| UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sockets: Vec<UdpSocket> = (0..NODES).map(socket).collect();
    let addresses: Vec<_> = sockets.iter().map(|s| s.local_addr().unwrap()).collect();
    let free = group(0, 0)?;
    let port = |(node, socket)| {
        let peer = |(peer, &address): (usize, _)| {
            let key = UdpKey::new(&[9; 32]);
            (peer != node).then_some(UdpPeer { address, key })
        };
        let peers = addresses.iter().enumerate().map(peer).collect();
        let udp = Udp::new(NodeId::at(node), socket, peers, UdpLimits::ETHERNET).unwrap();
        let udp = match member(node) {
            Some(key) => udp.with_group(group(free.port(), key).expect("it is there")),
            None => udp,
        };
        Reliable::with_clock(udp, ReliableLimits::default(), || Duration::ZERO)
    };
    let ports: Vec<_> = sockets.into_iter().enumerate().map(port).collect();
    if member(0).is_some() && !ports[0].multicasts() {
        return None;
    }
    Some(ports)
}

fn others(me: usize) -> Vec<NodeId> {
    (0..NODES).filter(|n| *n != me).map(NodeId::at).collect()
}

/// Polls until `port` has taken a frame.
fn take(port: &Reliable<Udp>) -> (NodeId, Vec<u8>) {
    let until = Instant::now() + BOUND;
    let mut taken = Vec::new();
    while taken.is_empty() {
        assert!(Instant::now() < until, "nothing comes");
        port.park(Duration::from_millis(50));
        port.poll(&mut |from, frame| taken.push((from, frame.to_vec())));
    }
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

/// Past the test harness, which shows what a test prints only if it fails.
fn say_passed_over() {
    let words = "passed over: the system has no multicast on its loopback";
    writeln!(io::stderr(), "{words}").expect("somewhere to say it");
}

#[test]
fn a_frame_to_all_is_one_datagram_and_each_answers_with_one() {
    let Some(ports) = cluster(|_| Some(1)) else {
        say_passed_over();
        return;
    };
    const FRAMES: u64 = 5;
    for number in 0..FRAMES {
        let frame = number.to_le_bytes();
        let mut to = others(0);
        ports[0].send_each(&mut to, &[b"to all: ", &frame]).unwrap();
        assert_eq!((to.len(), ports[0].inner().sent()), (0, number + 1));
        for port in &ports[1..] {
            let wanted = [&b"to all: "[..], &frame].concat();
            assert_eq!(take(port), (NodeId(0), wanted));
            // The acknowledgement, which a frame of its own would have carried.
            assert_eq!(port.inner().sent(), number + 1);
        }
        while ports[0].poll(&mut |_, _| ()) > 0 {}
    }
    let refused: u64 = ports.iter().map(|port| port.inner().refused()).sum();
    assert_eq!(refused, 0);
}

#[test]
fn a_frame_that_is_too_large_for_one_goes_to_each() {
    let Some(ports) = cluster(|_| Some(1)) else {
        say_passed_over();
        return;
    };
    let frame = vec![7; 1_332];
    ports[0].send_each(&mut others(0), &[&frame]).unwrap();
    assert_eq!(ports[0].inner().sent(), 3);
    for port in &ports[1..] {
        assert_eq!(take(port), (NodeId(0), frame.clone()));
    }
}

#[test]
fn frames_to_all_and_to_one_keep_their_order() {
    let Some(ports) = cluster(|_| Some(1)) else {
        say_passed_over();
        return;
    };
    ports[0].send(NodeId(2), &[b"first"]).unwrap();
    ports[0].send_each(&mut others(0), &[b"second"]).unwrap();
    ports[0].send(NodeId(2), &[b"third"]).unwrap();
    let mut taken = Vec::new();
    let until = Instant::now() + BOUND;
    while taken.len() < 3 {
        assert!(Instant::now() < until, "{taken:?}");
        ports[2].park(Duration::from_millis(50));
        ports[2].poll(&mut |_, frame| taken.push(frame.to_vec()));
    }
    assert_eq!(taken, [&b"first"[..], b"second", b"third"]);
}

#[test]
fn where_there_is_no_group_a_frame_goes_to_each() {
    let Some(ports) = cluster(|_| None) else {
        say_passed_over();
        return;
    };
    assert!(!ports[0].multicasts());
    ports[0]
        .send_each(&mut others(0), &[b"one by one"])
        .unwrap();
    assert_eq!(ports[0].inner().sent(), 3);
    for port in &ports[1..] {
        assert_eq!(take(port), (NodeId(0), b"one by one".to_vec()));
    }
}

#[test]
fn what_a_stranger_sends_to_the_group_is_refused_and_missed_by_nobody() {
    // Node 0 tags with another key than the others know: they refuse what it sends to all.
    let Some(ports) = cluster(|node| Some(u8::from(node > 0))) else {
        say_passed_over();
        return;
    };
    ports[0].send_each(&mut others(0), &[b"to all"]).unwrap();
    for port in &ports[1..] {
        let until = Instant::now() + BOUND;
        while port.inner().refused() == 0 {
            assert!(Instant::now() < until, "nothing is refused");
            port.park(Duration::from_millis(50));
            port.poll(&mut |from, frame| panic!("{from} sent {frame:?}"));
        }
    }
}

#[test]
fn who_gets_nothing_that_goes_to_all_gets_it_by_itself() {
    // By a clock that runs: what node 3 lost, for it is in no group, is sent to it again.
    let Some(ports) = cluster(|node| (node != 3).then_some(1)) else {
        say_passed_over();
        return;
    };
    drop(ports);
    let begun = Instant::now();
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sockets = [socket(), socket(), socket()];
    let addresses: Vec<_> = sockets.iter().map(|s| s.local_addr().unwrap()).collect();
    let free = group(0, 1).expect("it was there before");
    let mut ports = Vec::new();
    for (node, socket) in sockets.into_iter().enumerate() {
        let peer = |(peer, &address): (usize, _)| {
            let key = UdpKey::new(&[9; 32]);
            (peer != node).then_some(UdpPeer { address, key })
        };
        let peers = addresses.iter().enumerate().map(peer).collect();
        let mut udp = Udp::new(NodeId::at(node), socket, peers, UdpLimits::ETHERNET).unwrap();
        if node != 2 {
            udp = udp.with_group(group(free.port(), 1).expect("it is there"));
        }
        let clock = move || begun.elapsed();
        ports.push(Reliable::with_clock(udp, ReliableLimits::default(), clock));
    }
    const FRAMES: u8 = 40;
    let mut taken = [Vec::new(), Vec::new()];
    let mut sent = 0;
    let until = Instant::now() + BOUND;
    while taken.iter().any(|taken| taken.len() < usize::from(FRAMES)) {
        assert!(Instant::now() < until, "{taken:?}");
        if sent < FRAMES {
            ports[0]
                .send_each(&mut vec![NodeId(1), NodeId(2)], &[&[sent]])
                .unwrap();
            sent += 1;
        }
        ports[0].poll(&mut |_, _| ());
        for (port, taken) in ports[1..].iter().zip(&mut taken) {
            port.poll(&mut |_, frame| taken.push(frame[0]));
        }
    }
    let all: Vec<u8> = (0..FRAMES).collect();
    assert_eq!(taken, [all.clone(), all]);
}
