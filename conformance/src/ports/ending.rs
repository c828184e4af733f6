use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{Loss, Port, SendError};

use super::{Make, Node, exchange, together};

/// As long as a goodbye may take.
const BOUND: Duration = Duration::from_secs(60);

/// A goodbye overtakes no frame, and nothing can be sent to a peer that has left.
pub fn who_closes_has_left_when_its_frames_are_taken(make: Make) {
    const FRAMES: u64 = 300;
    together(&make(2), |node| {
        if node.port.me() == NodeId(0) {
            let rest = vec![0; node.port.offers().largest.min(3_000) - 8];
            for frame in 0..FRAMES {
                node.send(NodeId(1), &[&frame.to_le_bytes(), &rest], &mut |_, _| ());
            }
            node.port.close(BOUND);
        } else {
            let mut next = 0;
            let lost = node.take_until_lost(&mut |_, frame| {
                assert_eq!(Node::number(&frame[..8]), next);
                next += 1;
            });
            assert_eq!(lost, (NodeId(0), Loss::Left));
            assert_eq!(next, FRAMES, "every frame before the goodbye");
            let (to, loss) = lost;
            let refused = node.port.send(to, &[b"late"]);
            assert_eq!(refused, Err(SendError::Lost { to, loss }));
        }
    });
}

/// After an exchange all nodes leave: none waits for the bound, and none is lost.
pub fn all_may_close_at_once(make: Make) {
    let ports = make(3);
    together(&ports, |node| exchange(node, 2, 50, 10_000));
    std::thread::scope(|scope| {
        for port in &ports {
            scope.spawn(|| port.close(BOUND));
        }
    });
    for port in &ports {
        port.lost(&mut |peer, loss| assert_eq!((peer, &loss), (peer, &Loss::Left)));
    }
}

/// As where a program says goodbye and the process then exits, while another thread polls.
pub fn who_closes_twice_says_one_goodbye(make: Make) {
    for _ in 0..20 {
        let ports = make(2);
        let (leaving, stays) = (&ports[0], Node::new(&*ports[1]));
        let left = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| leaving.close(BOUND));
            scope.spawn(|| leaving.close(BOUND));
            scope.spawn(|| {
                while !left.load(Ordering::SeqCst) {
                    leaving.poll(&mut |_, _| ());
                }
            });
            let lost = stays.take_until_lost(&mut |_, _| panic!("nothing was sent"));
            left.store(true, Ordering::SeqCst);
            assert_eq!(lost, (NodeId(0), Loss::Left));
        });
    }
}

/// A dropped port sends no goodbye: the peer is lost, and the loss is reported once.
pub fn who_ends_without_a_goodbye_is_lost_once(make: Make) {
    let mut ports = make(2);
    drop(ports.remove(0));
    let node = Node::new(&*ports[0]);
    let (peer, loss) = node.take_until_lost(&mut |_, _| ());
    assert_eq!(peer, NodeId(0));
    assert!(!matches!(loss, Loss::Left | Loss::CutOff(_)), "{loss:?}");
    let port = node.port;
    port.poll(&mut |_, _| panic!("of a lost peer"));
    port.lost(&mut |peer, _| panic!("{peer} is told twice"));
    let to = NodeId(0);
    assert_eq!(port.send(to, &[]), Err(SendError::Lost { to, loss }));
}

/// One of three dies in an exchange; the other two hear of it and exchange on.
pub fn the_others_go_on_when_one_is_lost(make: Make) {
    let mut ports = make(3);
    let dies = Mutex::new(ports.pop());
    let survivors: Vec<Box<dyn Port>> = ports;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let port = dies.lock().expect("a lock").take().expect("the third port");
            let node = Node::new(&*port);
            for to in node.others() {
                node.send(to, &[b"last words"], &mut |_, _| ());
            }
        });
        together(&survivors, |node| {
            let other = NodeId(1 - node.port.me().0);
            let early = std::cell::RefCell::new(Vec::new());
            let take = &mut |from, frame: &[u8]| {
                if from == other {
                    early.borrow_mut().push(Node::number(frame));
                }
            };
            let (peer, loss) = node.take_until_lost(take);
            assert_eq!(peer, NodeId(2));
            assert!(!matches!(loss, Loss::Left | Loss::CutOff(_)), "{loss:?}");
            for number in 0..100u64 {
                node.send(other, &[&number.to_le_bytes()], take);
            }
            let mut done = || early.borrow().len() == 100;
            node.take_until("the other's frames", &mut done, take);
            assert_eq!(*early.borrow(), (0..100).collect::<Vec<_>>());
        });
    });
}

/// If a node gives another up, for any reason, the other loses it in turn.
pub fn who_is_given_up_is_lost_and_learns_of_it(make: Make) {
    let ports = make(3);
    let silence = Loss::Silent(BOUND);
    ports[0].give_up(NodeId(1), silence.clone());
    ports[0].give_up(NodeId(1), Loss::Left);
    ports[0].give_up(NodeId(0), Loss::Left);
    ports[0].give_up(NodeId(7), Loss::Left);
    let (to, loss) = (NodeId(1), silence);
    let refused = ports[0].send(to, &[]);
    let lost = loss.clone();
    assert_eq!(refused, Err(SendError::Lost { to, loss }));
    let mut told = Vec::new();
    ports[0].lost(&mut |node, loss| told.push((node, loss)));
    assert_eq!(told, [(to, lost)]);
    let (peer, loss) = Node::new(&*ports[1]).take_until_lost(&mut |_, _| ());
    assert_eq!(peer, NodeId(0));
    assert!(!matches!(loss, Loss::Left | Loss::CutOff(_)), "{loss:?}");
    Node::new(&*ports[0]).send(NodeId(2), &[b"still here"], &mut |_, _| ());
}
