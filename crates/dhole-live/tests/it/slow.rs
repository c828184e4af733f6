//! A process whose program computes for long within a call, or whose operation does, is not taken
//! for lost: somebody attends to its port all the while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use dhole_live::Processes;
use dhole_model::NodeId;
use dhole_net::FailureDetector;
use dhole_node::{Outcome, Races, Result, RunError, Settings, StartError, Worker, run_on};

use crate::{alone, pair};

const BOUND: Duration = Duration::from_millis(800);

/// Time goes on by an eighth of the bound when both nodes have been attended to once more.
#[derive(Default)]
struct Rounds([AtomicU32; 2]);

impl Rounds {
    fn both(&self) -> u32 {
        let [zero, one] = &self.0;
        zero.load(Ordering::SeqCst).min(one.load(Ordering::SeqCst))
    }

    fn time(&self) -> Duration {
        BOUND / 8 * self.both()
    }
}

fn machines(rounds: &Arc<Rounds>) -> [Processes; 2] {
    pair().map(|port| {
        let rounds = Arc::clone(rounds);
        let port = FailureDetector::with_clock(port, BOUND, move || rounds.time());
        Processes::new(Box::new(port), 0).unwrap()
    })
}

type Ended = std::result::Result<Outcome<u64>, RunError>;

/// What both nodes come to, while each is attended to.
fn both(
    machines: &[Processes; 2],
    rounds: &Rounds,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<u64> + Sync,
) -> [Ended; 2] {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (machine, own) in machines.iter().zip(&rounds.0) {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    machine.attend();
                    let done = own.fetch_add(1, Ordering::SeqCst) + 1;
                    while rounds.both() < done && !over.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let run = |machine| run_on(machine, &Settings::nodes(2), &program);
        let zero = scope.spawn(move || run(&machines[0]));
        let one = scope.spawn(move || run(&machines[1]));
        let ended = [zero.join().unwrap(), one.join().unwrap()];
        over.store(true, Ordering::SeqCst);
        ended
    })
}

#[test]
fn who_is_slow_within_a_call_is_not_taken_for_lost() {
    let _alone = alone();
    let rounds = Arc::new(Rounds::default());
    let machines = machines(&rounds);
    let in_the_call = AtomicBool::new(false);
    let ended = both(&machines, &rounds, |w| {
        // What the other sends comes when this node cannot take it.
        while w.node() == NodeId(1) && !in_the_call.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let array = w.once(|w| {
            Ok(w.alloc_array_with(10, |i| {
                in_the_call.store(true, Ordering::SeqCst);
                // Many times the bound.
                while i == 5 && rounds.both() < 100 {
                    std::thread::yield_now();
                }
                i as u64
            }))
        })?;
        Ok(array.slice(w, ..).iter().sum())
    });
    let values = ended
        .each_ref()
        .map(|ended| ended.as_ref().map(|ended| ended.value));
    assert!(matches!(values, [Ok(45), Ok(45)]), "{values:?}");
}

#[test]
fn a_run_within_a_run_is_refused() {
    let _alone = alone();
    let rounds = Arc::new(Rounds::default());
    let machines = machines(&rounds);
    let ended = both(&machines, &rounds, |w| {
        let machine = &machines[w.node().index()];
        let within = run_on(machine, &Settings::nodes(2), |_| Ok(()));
        let Err(RunError::Start(StartError::Apart { why, .. })) = within else {
            panic!("{within:?}");
        };
        assert!(why.contains("in a run already"), "{why}");
        w.barrier()?;
        Ok(1)
    });
    for ended in ended {
        assert_eq!(ended.unwrap().value, 1);
    }
}

/// How a run ends on both nodes whose settings node 1 changes.
fn with_settings(changes: impl Fn(&mut Settings) + Sync) -> [Option<RunError>; 2] {
    let _alone = alone();
    let machines = machines(&Arc::new(Rounds::default()));
    std::thread::scope(|scope| {
        let run = |node: usize| {
            let mut settings = Settings::nodes(2);
            if node == 1 {
                changes(&mut settings);
            }
            run_on(&machines[node], &settings, |_| Ok(())).err()
        };
        let zero = scope.spawn(move || run(0));
        let one = scope.spawn(move || run(1));
        [zero.join().unwrap(), one.join().unwrap()]
    })
}

#[test]
fn settings_that_cannot_be_on_one_node_are_told_to_the_other() {
    let [zero, one] = with_settings(|settings| {
        settings.races = Races::Fail;
        settings.optimisations.write_detection = dhole_node::WriteDetection::Twins;
    });
    assert!(matches!(one, Some(RunError::Config(_))), "{one:?}");
    let Some(RunError::Start(StartError::Apart { why, .. })) = zero else {
        panic!("{zero:?}");
    };
    assert!(why.contains("contradicts optimisations `twins`"), "{why}");
}

#[test]
fn why_a_run_does_not_begin_is_said_once_and_alike_by_each_node() {
    let ended = with_settings(|settings| settings.races = Races::Fail);
    let words = ended.map(|error| error.expect("no run").to_string());
    assert_eq!(words[0], words[1]);
    assert_eq!(words[0].matches("beginning a run").count(), 1, "{words:?}");
}
