//! A process that sends what no sound process sends is cut off: the run ends everywhere with an
//! error that names it.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dhole_model::NodeId;
use dhole_net::{Layer, Port, SendError, Stream, Tcp};
use dhole_node::{LostNode, Outcome, Processes, RunError, Settings, StartError, run_on};

/// A port that sends a frame of its own before the next one that it is given, once it is told to.
struct Lying {
    port: Tcp,
    lie: Vec<u8>,
    now: Arc<AtomicBool>,
}

impl Layer for Lying {
    type Inner = Tcp;

    fn inner(&self) -> &Tcp {
        &self.port
    }

    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        if self.now.swap(false, Ordering::SeqCst) {
            self.port.send(to, &[&self.lie])?;
        }
        self.port.send(to, parts)
    }
}

/// What both nodes come to when node 1 sends `lie` in the middle of a run, or before it has begun.
fn both(lie: &[u8], before: bool) -> [Result<Outcome<()>, RunError>; 2] {
    // Two clusters of one process at once would not agree on ids.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let here = listener.accept().unwrap().0;
    let sound = Tcp::new(NodeId(0), vec![None, Some(Stream::Plain(here))]).unwrap();
    let now = Arc::new(AtomicBool::new(before));
    let lying = Lying {
        port: Tcp::new(NodeId(1), vec![Some(Stream::Plain(there)), None]).unwrap(),
        lie: lie.to_vec(),
        now: Arc::clone(&now),
    };
    let node = |port: Box<dyn Port>| {
        let machine = Processes::new(port, 0).unwrap();
        run_on(&machine, &Settings::nodes(2), |w| {
            let one = w.once(|w| Ok(w.alloc(0_u64)))?;
            if w.node().index() == 1 {
                now.store(true, Ordering::SeqCst);
            }
            for _ in 0..10 {
                w.barrier()?;
                one.read(w);
            }
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        let zero = scope.spawn(|| node(Box::new(sound)));
        let one = scope.spawn(|| node(Box::new(lying)));
        [zero.join().unwrap(), one.join().unwrap()]
    })
}

fn frame(kind: u8, run: u32, told: u32, message: u32, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind, 0, 0, 0];
    for number in [run, told, message] {
        frame.extend(number.to_le_bytes());
    }
    frame.extend(rest);
    frame
}

#[test]
fn a_lie_in_a_run_ends_it_for_all_with_the_name_of_who_lied() {
    let lies = [
        (vec![], "a frame of 0 bytes"),
        (vec![1; 15], "a frame of 15 bytes"),
        (frame(0, 1, 0, 0, &[]), "a frame of the kind 0"),
        (frame(1, 1, u32::MAX, u32::MAX, &[]), "parts"),
        (frame(1, 1, 3, 0, &[9, 9, 9]), "malformed"),
        (frame(1, 1, 0, 3, &[0, 255, 1]), "no message"),
        (frame(1, 9, 0, 0, &[]), "run 9 in run 1"),
        (frame(4, 1, 0, 0, &[]), "not its to send"),
        (frame(6, 1, 0, 0, &[]), "not its to send"),
        (frame(3, 2, 0, 1, &[7]), "malformed"),
    ];
    for (lie, words) in lies {
        for (node, ended) in both(&lie, false).into_iter().enumerate() {
            let Err(RunError::Lost { lost, .. }) = ended else {
                panic!("{words}: node {node}: {ended:?}");
            };
            assert_eq!(lost.node, NodeId(1), "{words}: {lost}");
            assert!(lost.how.contains(words), "node {node}: {lost}");
        }
    }
}

#[test]
fn a_lie_before_a_run_keeps_it_from_beginning() {
    let [zero, one] = both(b"random bytes from nobody", true);
    let Err(RunError::Start(StartError::Lost { lost, .. })) = zero else {
        panic!("{zero:?}");
    };
    let LostNode { node, how } = lost;
    assert!(node == NodeId(1) && how.contains("cut off"), "{how}");
    assert!(one.is_err());
}
