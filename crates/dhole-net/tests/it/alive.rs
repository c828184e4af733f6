//! A frame that is long on its way is a sign of life as long as bytes of it come, over every port;
//! its sender is silent when they stop.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{
    FailureDetector, Loss, Port, Reliable, ReliableLimits, Shm, ShmLink, Stream, Tcp, Udp, UdpKey,
    UdpLimits, UdpPeer,
};

const BOUND: Duration = Duration::from_secs(8);
/// What the clock advances by: as much as counts at a time. A frame that takes more than four
/// steps takes longer than the bound.
const STEP: Duration = Duration::from_secs(2);
const SENDER: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);

fn tcp() -> [Box<dyn Port>; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let there = TcpStream::connect(listener.local_addr().expect("its address")).expect("a peer");
    let here = listener.accept().expect("a connection").0;
    let here = Tcp::new(SENDER, vec![None, Some(Stream::Plain(here))]).expect("a port");
    let there = Tcp::new(PEER, vec![Some(Stream::Plain(there)), None]).expect("a port");
    [Box::new(here), Box::new(there)]
}

fn shm() -> [Box<dyn Port>; 2] {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let here = ShmLink::offer(here, ShmLink::RING_BYTES).expect("memory");
    let there = ShmLink::accept(there).expect("the same memory");
    let here = Shm::new(SENDER, vec![None, Some(here)]).expect("a port");
    let there = Shm::new(PEER, vec![Some(there), None]).expect("a port");
    [Box::new(here), Box::new(there)]
}

fn udp() -> [Box<dyn Port>; 2] {
    let sockets = [SENDER, PEER].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let addresses = [0, 1].map(|at: usize| sockets[at].local_addr().expect("its address"));
    let mut node = 0;
    sockets.map(|socket| {
        let me = NodeId::at(node);
        let peer = |at: usize| {
            (at != node).then(|| UdpPeer {
                address: addresses[at],
                key: UdpKey::new(&[7; 32]),
            })
        };
        let peers = vec![peer(0), peer(1)];
        node += 1;
        let udp = Udp::new(me, socket, peers, UdpLimits::LOOPBACK).expect("a port");
        Box::new(Reliable::new(udp, ReliableLimits::default())) as Box<dyn Port>
    })
}

/// What a peer that watches makes of a frame of `bytes` bytes, which its sender lets on its way for
/// as many steps as `goes_on` says: how long it is when it is whole, or how its sender is lost.
fn takes(
    [sender, peer]: [Box<dyn Port>; 2],
    bytes: usize,
    mut goes_on: impl FnMut(u32) -> bool,
) -> Result<(usize, u32), Loss> {
    let clock = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&clock);
    let watch = FailureDetector::with_clock(peer, BOUND, move || {
        Duration::from_secs(now.load(Ordering::Relaxed))
    });
    sender.send(PEER, &[&vec![5; bytes]]).expect("room");
    for step in 0..10_000 {
        if goes_on(step) {
            sender.poll(&mut |_, _| ());
        }
        let mut whole = None;
        watch.poll(&mut |_, frame| whole = Some(frame.len()));
        let at = clock.fetch_add(STEP.as_secs(), Ordering::Relaxed) + STEP.as_secs();
        watch.tick(Duration::from_secs(at));
        let mut lost = None;
        watch.lost(&mut |_, loss| lost = Some(loss));
        match (whole, lost) {
            (Some(bytes), _) => return Ok((bytes, step)),
            (None, Some(loss)) => return Err(loss),
            (None, None) => {}
        }
    }
    panic!("the frame is neither whole nor lost");
}

/// So long a frame that a peer takes more than four looks to read it.
const BYTES: usize = 16 << 20;

/// A sender and its peer.
type Pair = [Box<dyn Port>; 2];

fn ports() -> [(&'static str, Pair); 3] {
    [("tcp", tcp()), ("shm", shm()), ("udp", udp())]
}

#[test]
fn who_sends_a_long_frame_slowly_is_not_silent() {
    for (name, pair) in ports() {
        let (whole, steps) = takes(pair, BYTES, |_| true).unwrap_or_else(|loss| {
            panic!("{name}: {loss}");
        });
        assert_eq!(whole, BYTES, "{name}");
        assert!(steps > 4, "{name}: {steps} steps show nothing");
    }
}

#[test]
fn who_stops_in_the_middle_of_a_long_frame_is_silent() {
    for (name, pair) in ports() {
        let ended = takes(pair, BYTES, |step| step < 2);
        assert_eq!(ended, Err(Loss::Silent(BOUND)), "{name}");
    }
}

#[test]
fn the_rest_of_a_long_frame_goes_where_its_sender_only_beats() {
    for (name, [sender, peer], bytes) in [("tcp", tcp(), 32 << 20), ("shm", shm(), 16 << 20)] {
        let watch = FailureDetector::new(sender, BOUND);
        watch.send(PEER, &[&vec![5; bytes]]).expect("room");
        let mut whole = None;
        for _ in 0..100_000 {
            watch.beat();
            peer.poll(&mut |_, frame| whole = whole.or((!frame.is_empty()).then_some(frame.len())));
            if whole.is_some() {
                break;
            }
        }
        assert_eq!(whole, Some(bytes), "{name}");
    }
}
