//! A process that sends what no sound process sends is cut off: the run ends everywhere with an
//! error that names it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dhole_live::{ProcessLimits, Processes};
use dhole_model::{NodeId, Notify};
use dhole_net::{Layer, Port, SendError, Tcp};
use dhole_node::{LostNode, Outcome, Result, RunError, Settings, StartError, Worker, run_on};

use crate::{alone, pair};

/// What both nodes come to.
type Ended = [std::result::Result<Outcome<()>, RunError>; 2];

/// A port that sends frames of its own before the next one that it is given, once it is told to.
struct Lying {
    port: Tcp,
    lies: Vec<Vec<u8>>,
    now: Arc<AtomicBool>,
}

impl Layer for Lying {
    type Inner = Tcp;

    fn inner(&self) -> &Tcp {
        &self.port
    }

    fn send_with(
        &self,
        to: NodeId,
        parts: &[&[u8]],
        notify: Notify,
    ) -> std::result::Result<(), SendError> {
        if self.now.swap(false, Ordering::SeqCst) {
            for lie in &self.lies {
                // There is no room for more than who is to take it has been lied to.
                while let Err(SendError::Busy { .. }) = self.port.send(to, &[lie]) {
                    std::thread::yield_now();
                }
            }
        }
        self.port.send_with(to, parts, notify)
    }
}

/// What both nodes come to when node 1 sends `lie` in the middle of a run, or before it has begun.
fn both(lie: &[u8], before: bool) -> Ended {
    within(ProcessLimits::default(), &[lie.to_vec()], before)
}

/// The same with these limits, and more than one frame.
fn within(limits: ProcessLimits, lies: &[Vec<u8>], before: bool) -> Ended {
    run(limits, lies, before, |w, now| {
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
}

/// Runs a program on two nodes, of which node 1 sends `lies` when the program says so.
fn run(
    limits: ProcessLimits,
    lies: &[Vec<u8>],
    before: bool,
    program: impl for<'id> Fn(&mut Worker<'id>, &AtomicBool) -> Result<()> + Sync,
) -> Ended {
    let _alone = alone();
    let [sound, port] = pair();
    let now = Arc::new(AtomicBool::new(before));
    let lying = Lying {
        port,
        lies: lies.to_vec(),
        now: Arc::clone(&now),
    };
    let node = |port: Box<dyn Port>| {
        let machine = Processes::new(port, 0).unwrap().limits(limits);
        run_on(&machine, &Settings::nodes(2), |w| program(w, &now))
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

/// Both nodes say that node 1 is lost, and why.
fn all_name_who_exceeds(ended: Ended, words: &str) {
    for (node, ended) in ended.into_iter().enumerate() {
        let Err(RunError::Lost { lost, .. }) = ended else {
            panic!("{words}: node {node}: {ended:?}");
        };
        assert_eq!(lost.node, NodeId(1), "{words}: {lost}");
        assert!(lost.how.contains(words), "node {node}: {lost}");
    }
}

#[test]
fn a_payload_without_an_end_is_cut_off_at_the_limit() {
    let limits = ProcessLimits {
        message: 1 << 20,
        ..ProcessLimits::default()
    };
    // 64 KiB at a time, of a payload or a message that never comes to its end, or of both.
    let (payload, part) = (
        frame(2, 1, 0, 0, &[7; 64 << 10]),
        frame(8, 1, 0, 0, &[7; 64 << 10]),
    );
    let both: Vec<_> = (0..9)
        .flat_map(|_| [payload.clone(), part.clone()])
        .collect();
    for lies in [vec![payload; 17], vec![part; 17], both] {
        let words = "a message of 1114112 bytes, where 1048576 are allowed";
        all_name_who_exceeds(within(limits, &lies, false), words);
    }
    // In one frame, before anything of it is understood.
    let lies = [frame(1, 1, 0, 1 << 20, &[0; (1 << 20) + 1])];
    let words = "a message of 1048577 bytes, where 1048576 are allowed";
    all_name_who_exceeds(within(limits, &lies, false), words);
}

#[test]
fn messages_of_a_run_to_come_are_kept_up_to_the_limit() {
    let limits = ProcessLimits {
        early: 1 << 20,
        message: 1 << 20,
        ..ProcessLimits::default()
    };
    let lies = vec![frame(1, 2, 0, 0, &[7; 64 << 10]); 33];
    let words = "more than 2097152 bytes before the run has begun";
    all_name_who_exceeds(within(limits, &lies, false), words);
}

#[test]
fn who_tells_of_more_objects_than_may_be_known_is_cut_off() {
    let limits = ProcessLimits {
        learnt: 20,
        ..ProcessLimits::default()
    };
    let ended = run(limits, &[], false, |w, _| {
        if w.node().index() == 1 {
            for i in 0..40_u64 {
                let _ = w.alloc_range(2, |_| i);
            }
        }
        Ok(w.barrier()?)
    });
    let words = "it announces one run of objects more than the 20 that may be known";
    all_name_who_exceeds(ended, words);
}

#[test]
fn a_message_that_no_other_would_take_is_an_error_of_who_would_send_it() {
    let limits = ProcessLimits {
        message: 1 << 20,
        ..ProcessLimits::default()
    };
    let ended = run(limits, &[], false, |w, _| {
        let array = w.once(|w| Ok(w.alloc_array_with(1 << 20, |i| i as u64)))?;
        if w.node().index() == 1 {
            let _ = array.slice(w, ..);
        }
        Ok(w.barrier()?)
    });
    for ended in ended {
        let error = ended.expect_err("8 MiB do not go").to_string();
        let words = [
            "node 0 failed: sending elements 0..1048576 of array",
            "to node 1: a message of 8",
            "where the limit is 1048576. Set DHOLE_MESSAGE_MIB to 9 or more",
        ];
        assert!(words.iter().all(|words| error.contains(words)), "{error}");
    }
}
