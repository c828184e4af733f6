//! Who sleeps at a TCP port is woken by room, whoever it was that found none.

use std::io::{IoSlice, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;

use super::{Link, Stream, Tcp, TcpLimits};
use crate::parker::{Park, Parker};
use crate::peers::Peers;
use crate::{Loss, Mixed, Port, SendError, Shm, ShmLink};

const BOUND: Duration = Duration::from_secs(20);
/// Longer than the test may take: a park that ends because of it has failed.
const LONG: Duration = Duration::from_secs(3_600);
const PEER: NodeId = NodeId(1);

/// A port that keeps so many bytes back, and the bare end of what leads to its peer.
fn port_and_peer(kept_back: usize) -> (Tcp, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let there = TcpStream::connect(listener.local_addr().expect("its address")).expect("a peer");
    let here = listener.accept().expect("a connection").0;
    let largest = 4 << 20;
    let limits = TcpLimits { largest, kept_back };
    let streams = vec![None, Some(Stream::Plain(here))];
    (
        Tcp::with_limits(NodeId(0), streams, limits).expect("a port"),
        there,
    )
}

/// Fills the connection with what is no frame.
fn fill(port: &Tcp) -> &Link {
    let link = port.links[1].as_ref().expect("a link");
    while link.stream.write(&[IoSlice::new(&[0; 4_096])]).is_ok() {}
    link
}

#[test]
fn who_sleeps_already_is_woken_for_what_is_kept_or_refused() {
    for kept_back in [1_000, 100_000] {
        let (port, _peer) = port_and_peer(kept_back);
        let mut wakers = Vec::new();
        port.poll(&mut |_, _| ());
        assert_eq!(port.prepare_park(Park::Fine, LONG, &mut wakers), Some(LONG));
        assert_eq!(wakers.len(), 1, "nothing waits for room");
        let link = fill(&port);
        // As another thread would, while the first sleeps.
        let kept = port.send(PEER, &[&[7; 2_000]]).is_ok();
        assert_eq!(kept, kept_back > 2_000);
        assert_eq!(lock(&link.outbound).kept() > 0, kept);
        assert!(port.doorbell.heard(), "nobody would wait for room");
        port.finish_park(Park::Fine);
        let mut wakers = Vec::new();
        assert_eq!(port.prepare_park(Park::Fine, LONG, &mut wakers), Some(LONG));
        assert_eq!(wakers.len(), 2, "the stream is waited for");
    }
}

#[test]
fn both_parts_of_a_mixed_port_wake_who_sleeps_in_it() {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let near = ShmLink::offer(here, 0).expect("memory");
    let _near_peer = ShmLink::accept(there).expect("the same memory");
    let near = Shm::new(NodeId(0), vec![None, None, Some(near)]).expect("a port");
    let (mut far, _peer) = port_and_peer(1_000);
    far.links.push(None);
    far.peers = Peers::new(NodeId(0), 3, 4 << 20);
    fill(&far);
    let mixed = Mixed::new(near, far, vec![false, false, true]);
    for (to, bytes) in [(NodeId(1), 2_000), (NodeId(2), 1 << 20)] {
        mixed.poll(&mut |_, _| ());
        let _ = mixed.send(to, &[&vec![7; bytes]]);
        let (up, ups) = mpsc::channel();
        thread::scope(|scope| {
            let mixed = &mixed;
            scope.spawn(move || {
                mixed.park(LONG);
                // Nobody waits any more where it is too late.
                let _ = up.send(());
            });
            let in_time = ups.recv_timeout(BOUND);
            mixed.unpark();
            in_time.expect("a park that ends at once");
        });
    }
}

#[test]
fn who_was_refused_while_nothing_was_kept_is_woken_by_room() {
    // More than may be kept: while the kernel takes nothing of it, it is refused with nothing kept.
    let frame = [7; 2_000];
    let (port, peer) = port_and_peer(1_000);
    let link = fill(&port);
    let refused = port.send(PEER, &[&frame]);
    assert_eq!(refused, Err(SendError::Busy { to: PEER }));
    assert_eq!(lock(&link.outbound).kept(), 0);
    assert_eq!(port.poll(&mut |_, _| ()), 0);
    let (woken, wakes) = mpsc::channel();
    thread::scope(|scope| {
        let port = &port;
        scope.spawn(move || {
            while port.send(PEER, &[&frame]) == Err(SendError::Busy { to: PEER }) {
                port.park(LONG);
                port.poll(&mut |_, _| ());
            }
            // Nobody waits any more where it is too late.
            let _ = woken.send(());
        });
        let reading =
            scope.spawn(|| while (&peer).read(&mut [0; 4_096]).is_ok_and(|bytes| bytes > 0) {});
        let in_time = wakes.recv_timeout(BOUND);
        // Whatever has become of it, the threads end.
        peer.shutdown(Shutdown::Both).expect("an end");
        port.unpark();
        reading.join().expect("the peer");
        in_time.expect("the refused frame is sent once there is room");
    });
}

/// How a peer is lost that ends, as a read finds it or a write.
fn lost(unread: bool, looks: fn(&Tcp) -> Option<Loss>) -> Loss {
    let (port, peer) = port_and_peer(1_000);
    if unread {
        // Then the system resets the connection.
        port.send(PEER, &[&[7; 100]]).expect("room");
    }
    drop(peer);
    let began = Instant::now();
    let mut found = std::iter::from_fn(|| (began.elapsed() < BOUND).then(|| looks(&port)));
    found.find_map(|loss| loss).expect("the peer has ended")
}

#[test]
fn a_peer_that_ends_is_lost_in_the_same_words_whatever_was_under_way() {
    let reads = |port: &Tcp| {
        let mut found = None;
        port.poll(&mut |_, _| ());
        port.lost(&mut |_, loss| found = Some(loss));
        found
    };
    let writes = |port: &Tcp| match port.send(PEER, &[&[7; 100]]) {
        Err(SendError::Lost { loss, .. }) => Some(loss),
        _ => None,
    };
    let closed = Loss::Broken("it closed the connection".into());
    for unread in [false, true] {
        assert_eq!(lost(unread, reads), closed);
        assert_eq!(lost(unread, writes), closed);
    }
}
