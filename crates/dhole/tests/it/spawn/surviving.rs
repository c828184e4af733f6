//! Processes in runs that go on when nodes are lost: what they wrote to replicated objects lives
//! on, and whoever waits for one that went with its node is told so.

use dhole::sim::{Crash, Settings};
use dhole::{
    Config, NodeId, Object, ProcessError, Refusal, Result, Worker, anywhere, on, op, replicated,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<u16>);

#[dhole::object]
impl Log {
    pub fn add(&mut self, node: u16) {
        self.0.push(node);
    }

    #[when(self.0.len() >= *least)]
    pub fn lines(&self, least: usize) -> Vec<u16> {
        self.0.clone()
    }
}

const CRASH_NS: u64 = 500_000;
const LATER: u64 = 2 * CRASH_NS;

/// Node 2 of three crashes.
fn cluster(seed: u64) -> Settings {
    let mut settings = Settings::fixed_cost(3);
    (settings.seed, settings.network.jitter) = (seed, 1.0);
    settings.notice_ns = 20_000 << (seed % 4);
    let node = NodeId(2);
    settings.crashes = vec![Crash {
        node,
        at_ns: CRASH_NS,
    }];
    settings
}

fn simulate<R: Send>(
    seed: u64,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> R {
    let run = Config::nodes(1).survive(true);
    let run = run.simulate(cluster(seed), program);
    run.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        .value
}

/// Says where it runs, and computes for so long.
fn says(w: &mut Worker<'_>, (log, units): (Object<Log>, u64)) -> Result<u16> {
    let me = w.node().0;
    log.add(w, me)?;
    w.work(units);
    log.add(w, me)?;
    Ok(me)
}

#[test]
fn who_waits_for_a_process_on_a_node_that_dies_is_told() {
    for seed in 0..50 {
        let lines = simulate(seed, |w| {
            let log = w.once(|w| Ok(w.new_object(replicated(), Log::default())?))?;
            if w.node() == NodeId(0) {
                let lives = w.spawn(NodeId(1), (log, 10), op!(says))?;
                let dies = w.spawn(NodeId(2), (log, LATER), op!(says))?;
                assert_eq!(lives.join(w)?, 1);
                let error = dies.join(w).expect_err("node 2 dies");
                let words = error.to_string();
                match error {
                    ProcessError::Ended { on, cause, .. } => {
                        assert_eq!(on, NodeId(2));
                        assert_eq!(cause, Refusal::WentWith(NodeId(2)));
                        assert!(
                            words.contains("says") && words.contains("node 2"),
                            "{words}"
                        );
                    }
                    other => panic!("{other}"),
                }
                // Nobody is started there any more.
                let refused = w.spawn(NodeId(2), (log, 0), op!(says)).map(drop);
                let Err(ProcessError::NotStarted { cause, .. }) = refused else {
                    panic!("{refused:?}");
                };
                assert_eq!(cause, Refusal::NoNode(NodeId(2)));
                for _ in 0..4 {
                    let there = w.spawn(anywhere(), (log, 0), op!(says))?;
                    assert_ne!(there.join(w)?, 2);
                }
            }
            // Where the others wait meanwhile, and processes have the turn.
            w.barrier()?;
            Ok(log.lines(w, 0)?)
        });
        let of = |node: u16| lines.iter().filter(|line| **line == node).count();
        // What it wrote before it died is there, and nothing that it would have written.
        assert_eq!([of(0) + of(1), of(2)], [2 + 8, 1], "seed {seed}: {lines:?}");
    }
}

/// Waits for what never comes.
fn waits(w: &mut Worker<'_>, log: Object<Log>) -> Result<()> {
    log.add(w, w.node().0)?;
    log.lines(w, 99)?;
    Ok(())
}

#[test]
fn a_process_whose_parent_died_ends_with_the_run() {
    for seed in 0..50 {
        let lines = simulate(seed, |w| {
            let log = w.once(|w| Ok(w.new_object(replicated(), Log::default())?))?;
            if w.node() == NodeId(2) {
                let _waits = w.spawn(on(NodeId(1)), log, op!(waits))?;
                w.work(LATER);
            }
            w.work(LATER);
            w.barrier()?;
            Ok(log.lines(w, 1)?)
        });
        assert_eq!(lines, [1], "seed {seed}");
    }
}

/// Waits at another node for what comes after the crash of its own.
fn waits_elsewhere(w: &mut Worker<'_>, log: Object<Log>) -> Result<()> {
    log.lines(w, 1)?;
    Ok(())
}

/// The program of the node that crashes has the turn then, or waits for a call; behind it waits a
/// process that has given the turn away.
#[test]
fn a_node_crashes_whose_program_has_the_turn_before_a_process_that_waits() {
    for seed in 0..20 {
        for computes in [false, true] {
            let lines = simulate(seed, |w| {
                let log = w.once(|w| Ok(w.new_object(on(NodeId(1)), Log::default())?))?;
                match w.node() {
                    NodeId(0) => {
                        let waits = w.spawn(NodeId(2), log, op!(waits_elsewhere))?;
                        let ended = waits.join(w).expect_err("its node is gone");
                        let went = matches!(ended, ProcessError::Ended { cause, .. }
                            if cause == Refusal::WentWith(NodeId(2)));
                        assert!(went, "seed {seed}");
                    }
                    NodeId(2) => loop {
                        log.lines(w, 0)?;
                        w.pause()?;
                        if computes {
                            w.work(LATER);
                        }
                    },
                    _ => w.work(2 * LATER),
                }
                w.barrier()?;
                log.add(w, 1)?;
                Ok(log.lines(w, 2)?)
            });
            assert_eq!(lines, [1, 1], "seed {seed}");
        }
    }
}
