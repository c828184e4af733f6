use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use dhole_model::NodeId;
use dhole_net::SendError;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Make, Node, Patience, together};

/// The frames from one node to another in an exchange: both know them from the seed.
struct Talk {
    random: SmallRng,
    left: u32,
    large: usize,
}

impl Talk {
    fn new(seed: u64, from: NodeId, to: NodeId, frames: u32, large: usize) -> Self {
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        Talk {
            random: SmallRng::seed_from_u64(seed ^ pair.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            left: frames,
            large,
        }
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(1)?;
        let up_to = match self.random.random_range(0..100) {
            0..80 => 64,
            80..98 => 5_000,
            _ => self.large,
        };
        let bytes = self.random.random_range(0..=up_to);
        let mut frame = vec![0; bytes];
        self.random.fill(&mut frame[..]);
        Some(frame)
    }
}

/// Sends every other node `frames` frames of all sizes up to `large` and takes as many from each,
/// each of which must be the one that follows.
///
/// # Panics
/// When a frame is missing, comes twice or at the wrong place, or is not what was sent.
pub fn exchange(node: &Node<'_>, seed: u64, frames: u32, large: usize) {
    let me = node.port.me();
    let talk = |from, to| Talk::new(seed, from, to, frames, large);
    let nodes = (0..node.port.nodes()).map(NodeId::at);
    let mut heard: Vec<Talk> = nodes.map(|from| talk(from, me)).collect();
    heard[me.index()].left = 0;
    let missing = Cell::new(frames as usize * (node.port.nodes() - 1));
    let mut take = |from: NodeId, frame: &[u8]| {
        let expected = heard[from.index()].next();
        let expected = expected.unwrap_or_else(|| panic!("seed {seed}: one too many of {from}"));
        let number = frames - heard[from.index()].left;
        assert!(
            frame == expected,
            "seed {seed}: {me} got {} bytes as frame {number} of {from}, which has {}",
            frame.len(),
            expected.len()
        );
        missing.set(missing.get() - 1);
    };
    let mut said: Vec<Talk> = node.others().map(|to| talk(me, to)).collect();
    for _ in 0..frames {
        for (to, talk) in node.others().zip(&mut said) {
            let frame = talk.next().expect("as many frames as promised");
            let (front, back) = frame.split_at(frame.len() / 3);
            node.send(to, &[front, &[], back], &mut take);
        }
    }
    node.take_until("frames", &mut || missing.get() == 0, &mut take);
}

/// Among two, three and five nodes, frames of random sizes come once each, whole, in order.
pub fn every_frame_comes_once_and_in_order(make: Make) {
    for (nodes, frames) in [(2, 2_000), (3, 500), (5, 100)] {
        together(&make(nodes), |node| exchange(node, 1, frames, 100_000));
    }
}

/// Sizes around every limit that a port may have inside.
pub fn frames_of_every_size_up_to_the_largest_come_whole(make: Make) {
    let ports = make(2);
    let largest = ports[0].offers().largest;
    // Where ports divide frames, or do otherwise with larger ones.
    let ends = (0..=20).flat_map(|power| [1usize << power, 3 << power]);
    let mut sizes: Vec<usize> = ends.flat_map(|size| [size - 1, size, size + 1]).collect();
    sizes.extend([largest - 1, largest]);
    sizes.retain(|&size| size <= largest);
    let byte = |size: usize, at: usize| (size * 31 + at * 7 + at / 251) as u8;
    together(&ports, |node| {
        if node.port.me() == NodeId(0) {
            for &size in &sizes {
                let frame: Vec<u8> = (0..size).map(|at| byte(size, at)).collect();
                node.send(NodeId(1), &[&frame], &mut |_, _| ());
            }
        } else {
            let taken = Cell::new(0);
            let mut done = || taken.get() == sizes.len();
            node.take_until("every size", &mut done, &mut |_, frame| {
                let size = sizes[taken.get()];
                assert_eq!(frame.len(), size);
                let whole = frame.iter().enumerate().all(|(at, &b)| b == byte(size, at));
                assert!(whole, "a frame of {size} bytes");
                taken.set(taken.get() + 1);
            });
        }
    });
}

/// Both send far more than any queue holds before either has taken anything, and neither hangs.
pub fn both_may_flood_each_other(make: Make) {
    const FRAMES: u64 = 400;
    let ports = make(2);
    let size = ports[0].offers().largest.min(40_000);
    together(&ports, |node| {
        let to = node.others().next().expect("another node");
        let taken = Cell::new(0);
        let mut take = |_, frame: &[u8]| {
            assert_eq!(Node::number(&frame[..8]), taken.get(), "the next frame");
            taken.set(taken.get() + 1);
        };
        let rest = vec![0; size - 8];
        for frame in 0..FRAMES {
            node.send(to, &[&frame.to_le_bytes(), &rest], &mut take);
        }
        node.take_until("the flood", &mut || taken.get() == FRAMES, &mut take);
    });
}

/// Frames of several threads of one node are not mixed, and each thread's come in its order.
pub fn many_threads_may_send(make: Make) {
    const THREADS: u8 = 4;
    const FRAMES: u64 = 1_000;
    together(&make(2), |node| {
        if node.port.me() == NodeId(0) {
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let node = Node::new(node.port);
                    scope.spawn(move || {
                        for frame in 0..FRAMES {
                            let tail = vec![thread; frame as usize % 300];
                            let parts: [&[u8]; 3] = [&[thread], &frame.to_le_bytes(), &tail];
                            node.send(NodeId(1), &parts, &mut |_, _| ());
                        }
                    });
                }
            });
        } else {
            let next = RefCell::new([0; THREADS as usize]);
            let mut done = || next.borrow().iter().all(|&n| n == FRAMES);
            node.take_until("every thread's frames", &mut done, &mut |_, frame| {
                let (thread, number) = (frame[0], Node::number(&frame[1..9]));
                let expected = &mut next.borrow_mut()[usize::from(thread)];
                assert_eq!(number, *expected, "the next frame of thread {thread}");
                assert!(frame[9..].iter().all(|&byte| byte == thread), "unmixed");
                assert_eq!(frame.len() - 9, number as usize % 300);
                *expected += 1;
            });
        }
    });
}

/// A frame is answered from within the poll that takes it.
pub fn a_taker_may_send(make: Make) {
    const ROUNDS: u64 = 300;
    together(&make(2), |node| {
        let to = node.others().next().expect("another node");
        let next = Cell::new(u64::from(node.port.me().0));
        if next.get() == 0 {
            node.send(to, &[&0u64.to_le_bytes()], &mut |_, _| ());
            next.set(1);
        }
        let mut done = || next.get() > ROUNDS;
        node.take_until("the ball", &mut done, &mut |from, frame| {
            let ball = Node::number(frame) + 1;
            next.set(ball + 1);
            if ball <= ROUNDS {
                let sent = node.port.send(from, &[&ball.to_le_bytes()]);
                sent.expect("room for the one frame there is");
            }
        });
    });
}

/// Frames to a missing node, to the own node and above the limit are refused by name.
pub fn what_cannot_be_addressed_is_an_error(make: Make) {
    let ports = make(2);
    let (port, nodes) = (&ports[0], 2);
    let send = |to: u16, bytes: usize| port.send(NodeId(to), &[&vec![0; bytes]]);
    let to = NodeId(9);
    assert_eq!(send(9, 0), Err(SendError::NoSuchNode { to, nodes }));
    let node = NodeId(0);
    assert_eq!(send(0, 0), Err(SendError::ToItself { node }));
    let (to, largest) = (NodeId(1), port.offers().largest);
    let bytes = largest + 1;
    let refused = Err(SendError::TooLarge { to, bytes, largest });
    assert_eq!(send(1, bytes), refused);
    assert_eq!(port.nodes(), 2);
    assert_eq!(port.me(), NodeId(0));
    assert!(port.offers().reliable && port.offers().ordered);
}

/// A panic in what takes a frame does not spoil the port, nor does the frame come again.
pub fn a_taker_that_panics_takes_its_frame_once(make: Make) {
    let ports = make(2);
    together(&ports, |node| {
        if node.port.me() == NodeId(0) {
            for number in 0..10u64 {
                node.send(NodeId(1), &[&number.to_le_bytes()], &mut |_, _| ());
            }
            return;
        }
        let taken = RefCell::new(Vec::new());
        let mut done = || taken.borrow().len() == 10;
        node.take_until("ten frames", &mut done, &mut |_, frame| {
            taken.borrow_mut().push(Node::number(frame));
        });
        assert_eq!(*taken.borrow(), (0..10).collect::<Vec<_>>());
    });
    let sender = Node::new(&*ports[0]);
    for number in 0..10u64 {
        sender.send(NodeId(1), &[&number.to_le_bytes()], &mut |_, _| ());
    }
    let mut taken = Vec::new();
    let patience = Patience::default();
    while taken.len() < 10 {
        patience.for_a("ten frames");
        ports[0].poll(&mut |_, _| ());
        let polled = catch_unwind(AssertUnwindSafe(|| {
            ports[1].poll(&mut |_, frame| {
                taken.push(Node::number(frame));
                assert!(
                    taken.len() % 3 != 0,
                    "as intended, one panic for three frames"
                );
            })
        }));
        drop(polled);
    }
    assert_eq!(taken, (0..10).collect::<Vec<_>>());
}

/// Whether a frame goes to all at once or to one, each receiver takes its own in their order.
pub fn frames_to_all_and_to_one_come_once_and_in_order(make: Make) {
    const NODES: usize = 4;
    const FRAMES: u64 = 300;
    // Every fifth frame goes to one node alone, in turn.
    let goes_to = |number: u64, me: NodeId, node: NodeId| {
        let others: Vec<NodeId> = (0..NODES).map(NodeId::at).filter(|n| *n != me).collect();
        number % 5 != 4 || others[number as usize / 5 % others.len()] == node
    };
    together(&make(NODES), |node| {
        let me = node.port.me();
        let due = |from: NodeId| (0..FRAMES).filter(move |&number| goes_to(number, from, me));
        let mut missing: Vec<_> = (0..NODES).map(|from| due(NodeId::at(from))).collect();
        let left = Cell::new(node.others().map(|from| due(from).count()).sum::<usize>());
        let mut take = |from: NodeId, frame: &[u8]| {
            let number = Node::number(&frame[..8]);
            assert_eq!(missing[from.index()].next(), Some(number), "from {from}");
            assert!(frame[8..].iter().all(|&byte| byte == number as u8));
            left.set(left.get() - 1);
        };
        for number in 0..FRAMES {
            let rest = vec![number as u8; number as usize * 7 % 2_000];
            let mut to: Vec<NodeId> = node.others().collect();
            to.retain(|&to| goes_to(number, me, to));
            let patience = Patience::default();
            loop {
                match node
                    .port
                    .send_each(&mut to, &[&number.to_le_bytes(), &rest])
                {
                    Ok(()) => break,
                    Err(SendError::Busy { .. }) => {}
                    Err(error) => panic!("{me}: {error}"),
                }
                patience.for_a("room");
                node.port.poll(&mut take);
            }
            assert!(to.is_empty(), "{to:?} are left");
        }
        node.take_until("frames to all", &mut || left.get() == 0, &mut take);
    });
}
