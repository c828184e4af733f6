//! Nodes that are threads meet over sockets of this machine, with and without strangers among them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use dhole_model::NodeId;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::net::sockopt;

use super::accept_queue::AcceptQueue;
use super::channel::{Channel, Encryption};
use super::error::{HandshakeError, JoinError, RefusedConnections};
use super::handshake::Use;
use super::mesh::Mesh;
use super::places::Places;
use super::rendezvous::{Reach, Rendezvous};
use super::secret::Secret;
use super::terms::Terms;
use super::{BuildId, Encrypts, PROTOCOL_VERSION};
use dhole_net::launcher::Launcher;
use dhole_net::tls::{Identity, Session};
use dhole_net::{Port, SendError};

type MakePort = fn(Mesh, NodeId) -> Result<Box<dyn Port>, JoinError>;
type Joined = Result<Mesh, JoinError>;

/// Longer than a test that is right takes, on a machine however busy.
const LONG: Duration = Duration::from_secs(60);

/// What one node is, before a test changes it.
struct Node {
    me: u16,
    secret: Vec<u8>,
    terms: Terms,
    within: Duration,
    reach: Reach,
    encrypts: Encrypts,
    /// The name by which others are to reach it.
    host: Option<&'static str>,
}

fn node(me: u16, nodes: usize) -> Node {
    Node {
        me,
        secret: b"what only nodes know".to_vec(),
        terms: Terms {
            version: PROTOCOL_VERSION,
            build: BuildId::from_bytes(&[1; 20]).unwrap(),
            nodes,
            settings: Vec::new(),
            places: Places::default(),
        },
        within: LONG,
        reach: Reach::Tcp,
        encrypts: Encrypts::BetweenMachines,
        host: None,
    }
}

impl Node {
    fn join(self, meeting: Result<TcpListener, SocketAddr>) -> Joined {
        let secret = Secret::new(&self.secret).unwrap();
        let me = NodeId(self.me);
        let encryption = Encryption::new(self.encrypts).unwrap();
        let it = Rendezvous::new(
            me,
            &secret,
            self.host,
            self.reach,
            encryption,
            self.terms,
            self.within,
        );
        match meeting {
            Ok(listener) => it.receive(listener),
            Err(address) => it.attend(&address.to_string()),
        }
    }
}

/// Lets all join, while `strangers` do what they do to the meeting point.
fn meet(nodes: Vec<Node>, strangers: impl FnOnce(SocketAddr) + Send) -> Vec<Joined> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let mut listener = Some(listener);
    thread::scope(|scope| {
        let strangers = scope.spawn(move || strangers(at));
        let nodes: Vec<_> = nodes
            .into_iter()
            .map(|node| {
                let meeting = match node.me {
                    0 => Ok(listener.take().expect("there is one node 0")),
                    _ => Err(at),
                };
                scope.spawn(move || node.join(meeting))
            })
            .collect();
        let joined = nodes.into_iter().map(|n| n.join().unwrap()).collect();
        strangers.join().unwrap();
        joined
    })
}

fn all(nodes: usize) -> Vec<Node> {
    (0..nodes as u16).map(|me| node(me, nodes)).collect()
}

/// Every node sends each other its own number, over the port made of the streams.
fn assert_connected(joined: Vec<Joined>) {
    assert_carries(joined, |mesh, me| Ok(Box::new(mesh.into_tcp(me)?)));
}

/// The same over the port that `make` makes.
fn assert_carries(joined: Vec<Joined>, make: MakePort) {
    let nodes = joined.len();
    thread::scope(|scope| {
        for (me, mesh) in joined.into_iter().enumerate() {
            scope.spawn(move || {
                let port = make(mesh.expect("joined"), NodeId::at(me)).unwrap();
                for to in (0..nodes).filter(|to| *to != me) {
                    port.send(NodeId::at(to), &[&[me as u8]]).unwrap();
                }
                let mut heard = Vec::new();
                while heard.len() + 1 < nodes {
                    port.poll(&mut |from, frame| heard.push((from.index(), frame.to_vec())));
                    port.park(Duration::from_millis(10));
                }
                heard.sort();
                let others = (0..nodes).filter(|n| *n != me);
                let wanted: Vec<_> = others.map(|n| (n, vec![n as u8])).collect();
                assert_eq!(heard, wanted);
                port.close(LONG);
            });
        }
    });
}

#[test]
fn all_are_connected_with_all() {
    for nodes in [2, 3, 8] {
        assert_connected(meet(all(nodes), |_| ()));
    }
}

/// An error as the node reports it, when its launcher has said this.
fn explained(error: JoinError, launcher_says: &str, is_gone: bool) -> String {
    let (here, mut there) = UnixStream::pair().unwrap();
    let launcher = Launcher::new(here.into()).unwrap();
    there.write_all(launcher_says.as_bytes()).unwrap();
    let there = (!is_gone).then_some(there);
    let said = error.explained(NodeId(0), Duration::from_secs(7), Some(&launcher));
    drop(there);
    said.to_string()
}

#[test]
fn a_connection_that_breaks_is_explained_by_the_end_of_the_process() {
    let (me, peer) = (NodeId(0), NodeId(1));
    let lost = || {
        let cause = "the connection broke: x".to_owned();
        JoinError::Lost { me, peer, cause }
    };
    let unconnected = || JoinError::System {
        me,
        doing: "making the port",
        cause: ErrorKind::NotConnected.into(),
    };
    let ended = "node 0 waited for node 1, which ended before it had joined";
    for error in [lost(), unconnected()] {
        assert_eq!(explained(error, "ended 1\n", false), ended);
    }
    assert_eq!(explained(lost(), "", true), lost().to_string());
    let own = || JoinError::Far { me, peer };
    assert_eq!(explained(own(), "ended 1\n", false), own().to_string());
}

#[test]
fn a_wait_in_vain_is_explained_by_the_process_that_is_stopped() {
    let (me, peer) = (NodeId(0), NodeId(2));
    let missing = || JoinError::Missing {
        me,
        missing: vec![peer],
        waited: Duration::ZERO,
        refused: RefusedConnections::default(),
    };
    let silent = || JoinError::Handshake {
        me,
        peer,
        address: "x".into(),
        cause: Box::new(HandshakeError::Silent {
            waited: Duration::ZERO,
        }),
    };
    let says = "stopped 1 process 4 is stopped\n";
    let stopped = "node 0 waited 7s for node 1: its process 4 is stopped";
    for error in [missing(), silent(), JoinError::Ended { me, peer }] {
        assert_eq!(explained(error, says, false), stopped);
    }
    let goes_on = format!("{says}resumed 1\n");
    assert_eq!(explained(missing(), &goes_on, false), missing().to_string());
}

/// The peer resets the connection before this node has looked at its other end.
#[test]
fn a_connection_that_is_reset_at_once_is_not_this_node_s_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    sockopt::set_socket_linger(&accepted, Some(Duration::ZERO)).unwrap();
    drop(accepted);
    let secret = Secret::new(b"what only nodes know").unwrap();
    let encryption = Encryption::new(Encrypts::BetweenMachines).unwrap();
    let mut queue = AcceptQueue::new(NodeId(1), &secret, encryption, node(1, 2).terms);
    let channel = Channel::tcp(stream).unwrap();
    let greeted = queue.greet(NodeId(0), Use::Rendezvous, channel, "x".into());
    assert!(greeted.is_ok(), "{greeted:?}");
    assert!(!queue.is_greeting(NodeId(0), Use::Rendezvous));
    assert_eq!(queue.refused.connections, 1);
}

#[test]
fn nodes_of_one_machine_share_memory() {
    for count in [2, 5] {
        let mut nodes = all(count);
        nodes.iter_mut().for_each(|node| node.reach = Reach::Near);
        assert_carries(meet(nodes, |_| ()), |mesh, me| {
            let port = mesh.into_shm(me, &shows(me))?;
            assert_shown(&port);
            Ok(Box::new(port))
        });
        let mut nodes = all(count);
        nodes.iter_mut().for_each(|node| node.reach = Reach::Both);
        let joined = meet(nodes, |_| ());
        let channels = joined
            .iter()
            .flat_map(|mesh| &mesh.as_ref().unwrap().channels);
        assert!(channels.flatten().all(|c| matches!(c, Channel::Unix(_))));
        assert_carries(joined, |mesh, me| {
            let port = mesh.into_mixed(me, &shows(me))?;
            assert_shown(&port);
            Ok(Box::new(port))
        });
    }
    assert_carries(meet(all(2), |_| ()), |mesh, me| {
        let port = mesh.into_mixed(me, &shows(me))?;
        let over_tcp = NodeId::at(1 - me.index());
        assert!(port.shown_by(over_tcp).is_none());
        Ok(Box::new(port))
    });
}

/// What a node shows others of its own memory: two files of as many bytes as its number says, or
/// none.
fn shows(node: NodeId) -> Vec<OwnedFd> {
    let file = |place: usize| {
        let file = memfd_create("shown", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, (10 * node.index() + place) as u64).expect("a length");
        file
    };
    (0..2 * (node.index() % 2)).map(file).collect()
}

/// The port has what every other node shows.
fn assert_shown(port: &dyn Port) {
    for node in (0..port.nodes()).map(NodeId::at) {
        let bytes = |files: &[OwnedFd]| -> Vec<i64> {
            let sizes = files
                .iter()
                .map(|file| fstat(file).expect("a file").st_size);
            sizes.collect()
        };
        let shown = port.shown_by(node).map(bytes);
        let is_other = node != port.me();
        assert_eq!(shown, is_other.then(|| bytes(&shows(node))), "{node}");
    }
}

fn encrypted(nodes: usize) -> Vec<Node> {
    let mut nodes = all(nodes);
    let each = nodes.iter_mut();
    each.for_each(|node| node.encrypts = Encrypts::Always);
    nodes
}

#[test]
fn nodes_that_encrypt_are_connected_with_all() {
    for nodes in [2, 5] {
        let joined = meet(encrypted(nodes), |_| ());
        let channels = joined
            .iter()
            .flat_map(|mesh| &mesh.as_ref().unwrap().channels);
        assert!(channels.flatten().all(|c| matches!(c, Channel::Tls(_))));
        assert_connected(joined);
    }
}

#[test]
fn datagrams_go_where_the_connections_went() {
    for nodes in [all(2), all(5), encrypted(3)] {
        assert_carries(meet(nodes, |_| ()), |mesh, me| {
            let secret = Secret::new(b"the same for all of these nodes").unwrap();
            Ok(Box::new(mesh.into_udp(me, &secret, LONG)?))
        });
    }
}

#[test]
fn who_does_not_encrypt_where_others_do_is_refused() {
    let mut nodes = encrypted(2);
    nodes[0].within = Duration::from_millis(700);
    nodes[1].within = Duration::from_millis(700);
    nodes[1].encrypts = Encrypts::Never;
    let mut joined = meet(nodes, |at| {
        stranger(at, b"GET / HTTP/1.1\r\n\r\n", Then::Listens);
    });
    assert!(joined.pop().unwrap().is_err());
    match joined.pop().unwrap().unwrap_err() {
        JoinError::Missing { refused, .. } => {
            let last = *refused.last.unwrap().1;
            assert!(matches!(last, HandshakeError::Encryption(_)), "{last}");
        }
        other => panic!("{other}"),
    }
}

/// Connects, says something, and hears what comes until the other side has had enough.
fn stranger(at: SocketAddr, says: &[u8], then: Then) -> Vec<u8> {
    let mut heard = Vec::new();
    let Ok(mut stream) = TcpStream::connect(at) else {
        return heard;
    };
    let _ = stream.write_all(says);
    if then == Then::Listens {
        let _ = stream.set_read_timeout(Some(LONG));
        let _ = stream.read_to_end(&mut heard);
    }
    heard
}

#[derive(PartialEq)]
enum Then {
    Leaves,
    Listens,
}

#[test]
fn strangers_of_every_kind_keep_nobody_from_joining() {
    let (came, comes) = std::sync::mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let joined = thread::scope(|scope| {
        let zero = scope.spawn(move || node(0, 3).join(Ok(listener)));
        for says in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0x16, 3, 1, 2, 0, 1],
            b"DHJ1\x01\xff\xff\xff\xff",
            b"DHJ1\x09\x01\0\0\0\0",
        ] {
            // Each is cut off: the call returns because node 0 has closed the connection.
            assert_eq!(stranger(at, says, Then::Listens), b"");
        }
        // These stay as long as node 0 lets them: half a frame, and silence.
        let silent: Vec<_> = [&b"DHJ1\x01\x25\0\0\0half"[..], b""]
            .map(|says| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(says).unwrap();
                stream
            })
            .into();
        stranger(at, b"DHJ1\x01\x25\0\0\0half", Then::Leaves);
        came.send(()).unwrap();
        comes.recv().unwrap();
        let others = [1, 2].map(|me| scope.spawn(move || node(me, 3).join(Err(at))));
        let joined: Vec<_> = std::iter::once(zero)
            .chain(others)
            .map(|n| n.join().unwrap())
            .collect();
        drop(silent);
        joined
    });
    assert_connected(joined);
}

/// As many connections as the listener takes, up to 600.
fn flood(at: SocketAddr) -> Vec<TcpStream> {
    let connect = || TcpStream::connect_timeout(&at, Duration::from_millis(200));
    // Some fail while the listener's queue is full.
    (0..600).filter_map(|_| connect().ok()).collect()
}

#[test]
fn a_flood_of_strangers_keeps_nobody_from_joining() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let joined = thread::scope(|scope| {
        let zero = scope.spawn(move || node(0, 3).join(Ok(listener)));
        let held = flood(at);
        assert!(held.len() > 200, "only {} strangers", held.len());
        let others = [1, 2].map(|me| scope.spawn(move || node(me, 3).join(Err(at))));
        let nodes = [zero].into_iter().chain(others);
        nodes.map(|node| node.join().unwrap()).collect()
    });
    assert_connected(joined);
}

/// Why the last stranger was refused while node 0 waited alone, and how many were.
fn refused(within: Duration, strangers: impl FnOnce(SocketAddr) + Send) -> (HandshakeError, u64) {
    let mut zero = node(0, 2);
    zero.within = within;
    let mut joined = meet(vec![zero], strangers);
    match joined.pop().unwrap().unwrap_err() {
        JoinError::Missing { refused, .. } => (*refused.last.unwrap().1, refused.connections),
        other => panic!("{other}"),
    }
}

#[test]
fn who_keeps_silent_is_heard_for_so_long_and_no_longer() {
    let (cause, connections) = refused(Duration::from_secs(7), |at| {
        let mut silent = TcpStream::connect(at).unwrap();
        // Until it is refused.
        let _ = silent.read(&mut [0]);
    });
    assert!(matches!(cause, HandshakeError::Silent { .. }), "{cause}");
    assert_eq!(connections, 1);
}

#[test]
fn who_makes_too_many_connections_is_refused_those_that_said_nothing() {
    let (cause, connections) = refused(Duration::from_secs(3), |at| {
        let held = flood(at);
        let _ = (&held[held.len() - 1]).read(&mut [0]);
    });
    assert_eq!(cause, HandshakeError::Crowded);
    assert!(connections > 100, "{connections}");
}

#[test]
fn who_looks_for_a_node_in_vain_hears_that_another_gave_up() {
    let mut nodes = all(3);
    nodes[0].within = Duration::from_millis(500);
    // Node 1 listens at another address of the loopback than it says.
    nodes[1].host = Some("127.0.0.2");
    let joined = meet(nodes, |_| ());
    let said = joined[2].as_ref().map(|_| ()).unwrap_err();
    assert!(
        matches!(
            said,
            JoinError::Elsewhere {
                peer: NodeId(0),
                ..
            }
        ),
        "{said}"
    );
}

#[test]
fn who_is_missing_and_who_came_instead_is_told() {
    let mut zero = node(0, 3);
    zero.within = Duration::from_millis(500);
    let mut joined = meet(vec![zero, node(1, 3)], |at| {
        stranger(at, b"\0\0\0\0\0\0\0\0\0", Then::Listens);
    });
    let said = joined.pop().unwrap().unwrap_err();
    assert!(
        matches!(
            &said,
            JoinError::Elsewhere {
                peer: NodeId(0),
                ..
            }
        ),
        "{said}"
    );
    match joined.pop().unwrap().unwrap_err() {
        JoinError::Missing {
            missing, refused, ..
        } => {
            assert_eq!(missing, [NodeId(2)]);
            assert_eq!(refused.connections, 1);
            assert_eq!(*refused.last.unwrap().1, HandshakeError::NotDhole);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_node_with_a_wrong_secret_is_told_and_refused_and_the_others_go_on_waiting() {
    let (mut zero, mut wrong) = (node(0, 2), node(1, 2));
    zero.within = Duration::from_millis(700);
    wrong.secret = b"what a stranger guesses".to_vec();
    let mut joined = meet(vec![zero, wrong], |_| ());
    let wrong = joined.pop().unwrap().unwrap_err();
    let cause = HandshakeError::WrongSecret;
    assert!(matches!(wrong, JoinError::Handshake { peer: NodeId(0), cause: c, .. } if *c == cause));
    let zero = joined.pop().unwrap().unwrap_err();
    assert!(matches!(zero, JoinError::Missing { .. }), "{zero}");
    assert!(zero.to_string().contains("the secrets differ"), "{zero}");
}

#[test]
fn a_node_of_another_build_ends_it_and_both_know_why() {
    let mut nodes = all(2);
    nodes[1].terms.build = BuildId::from_bytes(&[2; 20]).unwrap();
    for ended in meet(nodes, |_| ()) {
        let said = ended.unwrap_err().to_string();
        assert!(said.contains("another build"), "{said}");
    }
}

#[test]
fn one_that_dies_while_the_others_wait_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let joined = thread::scope(|scope| {
        let zero = scope.spawn(move || node(0, 3).join(Ok(listener)));
        // Node 1 is given up as soon as it has no time left, with node 2 still missing.
        let mut short = node(1, 3);
        short.within = Duration::from_millis(300);
        let one = scope.spawn(move || short.join(Err(at)));
        [zero.join().unwrap(), one.join().unwrap()]
    });
    let [zero, one] = joined.map(|j| j.unwrap_err());
    assert!(
        matches!(
            zero,
            JoinError::Elsewhere {
                peer: NodeId(1),
                ..
            }
        ),
        "{zero}"
    );
    assert!(matches!(one, JoinError::Missing { .. }), "{one}");
}

#[test]
fn the_same_node_twice_is_refused_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let zero = scope.spawn(move || node(0, 3).join(Ok(listener)));
        for _ in 0..2 {
            let tell = tell.clone();
            scope.spawn(move || tell.send(node(1, 3).join(Err(at))));
        }
        let refused = told.recv().unwrap();
        assert!(refused.is_err(), "nobody joins before node 2 has come");
        let two = scope.spawn(move || node(2, 3).join(Err(at)));
        let joined = vec![
            zero.join().unwrap(),
            told.recv().unwrap(),
            two.join().unwrap(),
        ];
        assert_connected(joined);
    });
}

#[test]
fn large_frames_both_ways_at_once_arrive_over_encrypted_connections() {
    const FRAMES: usize = 60;
    const BYTES: usize = 300_000;
    let joined = meet(encrypted(2), |_| ());
    thread::scope(|scope| {
        for (me, mesh) in joined.into_iter().enumerate() {
            scope.spawn(move || {
                let port = mesh.unwrap().into_tcp(NodeId::at(me)).unwrap();
                let peer = NodeId::at(1 - me);
                let frame = |number: usize| -> Vec<u8> {
                    (0..BYTES).map(|i| (i * 7 + number) as u8).collect()
                };
                let (mut sent, mut heard) = (0, 0);
                while sent < FRAMES || heard < FRAMES {
                    if sent < FRAMES {
                        let bytes = frame(sent);
                        match port.send(peer, &[&bytes[..10], &bytes[10..]]) {
                            Ok(()) => sent += 1,
                            Err(SendError::Busy { .. }) => port.park(Duration::from_millis(1)),
                            Err(other) => panic!("{other}"),
                        }
                    }
                    port.poll(&mut |_, bytes| {
                        assert!(bytes == frame(heard), "frame {heard} is as it was sent");
                        heard += 1;
                    });
                }
                port.close(LONG);
            });
        }
    });
}

/// Passes on what one end says to the other, until one of them ends.
fn pass_on(from: &Session, to: &Session) -> bool {
    let mut buffer = [0; 4096];
    match from.read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            let mut bytes = &buffer[..count];
            while !bytes.is_empty() {
                match to.write(&[std::io::IoSlice::new(bytes)]) {
                    Ok(count) => bytes = &bytes[count..],
                    Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return false,
                }
            }
            true
        }
        Err(cause) => cause.kind() == ErrorKind::WouldBlock,
    }
}

#[test]
fn one_in_the_middle_who_passes_everything_on_meets_nobody() {
    let mut nodes = encrypted(2);
    nodes[0].within = Duration::from_millis(1500);
    let one = nodes.pop().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let middle = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_the_middle = middle.local_addr().unwrap();
    let zero = nodes.pop().unwrap();
    let [zero, one] = thread::scope(|scope| {
        let zero = scope.spawn(move || zero.join(Ok(listener)));
        let one = scope.spawn(move || one.join(Err(in_the_middle)));
        let identity = Identity::new().unwrap();
        let (caller, _) = middle.accept().unwrap();
        let called = TcpStream::connect(at).unwrap();
        caller.set_nonblocking(true).unwrap();
        called.set_nonblocking(true).unwrap();
        let caller = identity.listen(caller).unwrap();
        let called = identity.connect(called).unwrap();
        while pass_on(&caller, &called) && pass_on(&called, &caller) {
            thread::yield_now();
        }
        drop((caller, called));
        [zero.join().unwrap(), one.join().unwrap()]
    });
    let one = one.unwrap_err();
    let wrong = matches!(&one, JoinError::Handshake { cause, .. }
        if **cause == HandshakeError::WrongSecret);
    assert!(wrong, "{one}");
    assert!(zero.is_err());
}
