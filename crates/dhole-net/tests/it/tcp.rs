//! What a TCP port does with peers that are not sound: each is lost for its own reason.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{Loss, Port, SendError, Stream, Tcp, TcpLimits};

const BOUND: Duration = Duration::from_secs(20);
const LIMITS: TcpLimits = TcpLimits {
    largest: 1 << 20,
    kept_back: 1 << 20,
};

/// Two ends of one connection.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let there = TcpStream::connect(listener.local_addr().expect("its address")).expect("a peer");
    (listener.accept().expect("a connection").0, there)
}

/// Node 0, and the bare end of what leads to node 1.
fn port_and_peer() -> (Tcp, TcpStream) {
    let (here, there) = connection();
    let streams = vec![None, Some(Stream::Plain(here))];
    let port = Tcp::with_limits(NodeId(0), streams, LIMITS).expect("a port");
    (port, there)
}

/// Polls until a peer is lost; what came before goes to `frames`.
fn loss(port: &Tcp, frames: &mut Vec<Vec<u8>>) -> Loss {
    let until = Instant::now() + BOUND;
    let mut found = None;
    while found.is_none() {
        assert!(Instant::now() < until, "no peer was lost");
        port.park(Duration::from_millis(100));
        port.poll(&mut |_, frame| frames.push(frame.to_vec()));
        port.lost(&mut |_, loss| found = Some(loss));
    }
    found.expect("a loss")
}

#[test]
fn frames_before_a_goodbye_are_taken_and_then_the_peer_has_left() {
    let (here, there) = connection();
    let a = Tcp::new(NodeId(0), vec![None, Some(Stream::Plain(here))]).expect("a port");
    let b = Tcp::new(NodeId(1), vec![Some(Stream::Plain(there)), None]).expect("a port");
    for n in 0..100u8 {
        b.send(NodeId(0), &[&[n], &[n; 3]])
            .expect("room for small frames");
    }
    let closing = std::thread::spawn(move || b.close(BOUND));
    let mut frames = Vec::new();
    assert_eq!(loss(&a, &mut frames), Loss::Left);
    assert_eq!(frames, (0..100).map(|n| vec![n; 4]).collect::<Vec<_>>());
    closing.join().expect("the peer closes");
    let refused = a.send(NodeId(1), &[b"late"]);
    let (to, loss) = (NodeId(1), Loss::Left);
    assert_eq!(refused, Err(SendError::Lost { to, loss }));
}

#[test]
fn a_connection_that_ends_without_a_goodbye_is_broken() {
    let (port, peer) = port_and_peer();
    drop(peer);
    assert!(matches!(loss(&port, &mut Vec::new()), Loss::Broken(_)));
}

#[test]
fn half_a_frame_and_the_end_is_broken_and_says_so() {
    let (port, mut peer) = port_and_peer();
    peer.write_all(&[1, 0, 0, 0, 7, 100, 0, 0, 0, 1, 2, 3])
        .expect("bytes are sent");
    drop(peer);
    let mut frames = Vec::new();
    let Loss::Broken(how) = loss(&port, &mut frames) else {
        panic!("broken");
    };
    assert!(how.contains("7 bytes of a frame"), "{how}");
    assert_eq!(frames, [[7]]);
}

#[test]
fn a_length_of_four_gibibytes_is_cut_off_before_anything_is_kept_for_it() {
    let (port, mut peer) = port_and_peer();
    peer.write_all(&u32::MAX.to_le_bytes())
        .expect("bytes are sent");
    let Loss::CutOff(what) = loss(&port, &mut Vec::new()) else {
        panic!("cut off");
    };
    assert!(what.contains("4294967295 bytes"), "{what}");
}

#[test]
fn bytes_behind_the_goodbye_are_cut_off() {
    let (port, mut peer) = port_and_peer();
    peer.write_all(&[0, 0, 0, 0x80, 1, 0, 0, 0, 1])
        .expect("bytes are sent");
    let lost = loss(&port, &mut Vec::new());
    assert_eq!(lost, Loss::CutOff("bytes behind its goodbye".into()));
}

#[test]
fn what_was_read_before_a_panic_is_taken_after_it() {
    // As many bytes as the port reads at once, so that nothing more fits beside them.
    for (size, frames) in [(60, 1_usize << 10), (124, 1 << 10), ((1 << 20) - 4, 3)] {
        let (port, mut peer) = port_and_peer();
        let mut bytes = Vec::new();
        for number in 0..frames {
            bytes.extend((size as u32).to_le_bytes());
            bytes.extend(vec![number as u8; size]);
        }
        let writing = std::thread::spawn(move || {
            peer.write_all(&bytes).expect("bytes are sent");
            peer
        });
        while frames > 3 && !writing.is_finished() {
            std::thread::yield_now();
        }
        let (mut taken, mut panics) = (0, 0);
        let until = Instant::now() + BOUND;
        while taken < frames {
            assert!(Instant::now() < until, "{taken} of {frames} were taken");
            let polled = catch_unwind(AssertUnwindSafe(|| {
                port.poll(&mut |_, frame| {
                    assert_eq!(frame, vec![taken as u8; size]);
                    taken += 1;
                    if taken % 97 == 1 {
                        resume_unwind(Box::new("a taker that fails"));
                    }
                })
            }));
            panics += usize::from(polled.is_err());
            port.lost(&mut |_, loss| panic!("{loss}"));
        }
        assert_eq!(panics, frames.div_ceil(97), "of frames of {size} bytes");
        drop(writing.join().expect("the peer"));
    }
}

#[test]
fn a_peer_that_says_nothing_loses_nothing_and_gets_no_more_than_the_limit() {
    let (port, _peer) = port_and_peer();
    let mut accepted = 0;
    while port.send(NodeId(1), &[&[0; 1000]]).is_ok() {
        accepted += 1004;
        assert!(accepted < 64 << 20, "what is kept back has a limit");
    }
    let refused = port.send(NodeId(1), &[&[0; 1000]]);
    assert_eq!(refused, Err(SendError::Busy { to: NodeId(1) }));
    port.lost(&mut |_, loss| panic!("{loss}"));
}

#[test]
fn what_cannot_be_addressed_is_an_error() {
    let (port, _peer) = port_and_peer();
    assert_eq!(
        port.send(NodeId(7), &[]),
        Err(SendError::NoSuchNode {
            to: NodeId(7),
            nodes: 2
        })
    );
    assert_eq!(
        port.send(NodeId(0), &[]),
        Err(SendError::ToItself { node: NodeId(0) })
    );
    let large = vec![0; LIMITS.largest + 1];
    assert!(matches!(
        port.send(NodeId(1), &[&large]),
        Err(SendError::TooLarge { .. })
    ));
}
