//! Who sleeps at a TCP port is woken by room, whoever it was that found none.

use std::io::{IoSlice, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dhole_model::NodeId;

use super::{Stream, Tcp, TcpLimits};
use crate::sync::locked;
use crate::{Port, SendError};

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

#[test]
fn who_was_refused_while_nothing_was_kept_is_woken_by_room() {
    // More than may be kept: while the kernel takes nothing of it, it is refused with nothing kept.
    let frame = [7; 2_000];
    let (port, peer) = port_and_peer(1_000);
    let link = port.links[1].as_ref().expect("a link");
    while link.stream.write(&[IoSlice::new(&[0; 4_096])]).is_ok() {}
    let refused = port.send(PEER, &[&frame]);
    assert_eq!(refused, Err(SendError::Busy { to: PEER }));
    assert_eq!(locked(&link.outbound).kept(), 0);
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
