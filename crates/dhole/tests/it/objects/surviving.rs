//! Runs that go on when nodes crash, simulated: what was acknowledged is there in the end, and
//! what is lost is named.

use std::sync::Mutex;

use dhole::mailbox::{MailboxError, Mailboxes};
use dhole::sim::{Crash, Settings};
use dhole::{
    AccessError, Config, Error, Lock, NodeId, ObjectError, ProtocolError, Refusal, Run, RunError,
    SyncError, on, replicated,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Log(Lines);

#[dhole::object]
impl Log {
    pub fn add(&mut self, node: u16, line: u32) -> usize {
        self.0.push((node, line));
        self.0.len()
    }

    pub fn lines(&self) -> Lines {
        self.0.clone()
    }
}

type Lines = Vec<(u16, u32)>;

const LINES: u32 = 8;

/// A cluster of which some nodes crash.
fn cluster(nodes: usize, seed: u64, crashes: &[(u16, u64)]) -> Settings {
    let mut settings = Settings::fixed_cost(nodes);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings.notice_ns = 20_000 << (seed % 4);
    settings.crashes = crashes
        .iter()
        .map(|(node, at_ns)| Crash {
            node: NodeId(*node),
            at_ns: *at_ns,
        })
        .collect();
    settings
}

/// Every node writes a replicated log; what it was told is written, by node.
fn write_a_log(settings: Settings) -> (Result<Run<Lines>, RunError>, Vec<u32>) {
    let acknowledged = Mutex::new(vec![0; settings.nodes]);
    let run = Config::nodes(1).survive(true).simulate(settings, |w| {
        let log = w.once(|w| Ok(w.new_object(replicated(), Log::default())?))?;
        let me = w.node();
        for line in 0..LINES {
            log.add(w, me.0, line)?;
            acknowledged.lock().unwrap()[me.index()] = line + 1;
            w.work(w.random() % 30_000);
        }
        w.barrier()?;
        Ok(log.lines(w)?)
    });
    (run, acknowledged.into_inner().unwrap())
}

/// That each node's lines are there as far as it was told that they are, once and in order.
fn check(lines: &[(u16, u32)], acknowledged: &[u32], gone: &[u16]) -> Result<(), String> {
    for (node, told) in (0..).zip(acknowledged) {
        let of_node = lines.iter().filter(|(by, _)| *by == node);
        let of_node: Vec<u32> = of_node.map(|(_, line)| *line).collect();
        let there = of_node.len() as u32;
        let in_order = of_node.iter().copied().eq(0..there);
        let all = there == LINES || gone.contains(&node);
        if !in_order || there < *told || !all {
            return Err(format!("node {node} was told of {told} lines: {of_node:?}"));
        }
    }
    Ok(())
}

#[test]
fn what_was_acknowledged_outlives_whoever_dies() {
    for seed in 0..400 {
        let victim = (seed % 3) as u16;
        let at_ns = 30_000 + seed * 1_700;
        let (run, acknowledged) = write_a_log(cluster(3, seed, &[(victim, at_ns)]));
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let checked = check(&run.value, &acknowledged, &[victim]);
        checked.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        let lost: Vec<NodeId> = run.report.lost.iter().map(|lost| lost.node).collect();
        assert!(lost.is_empty() || lost == [NodeId(victim)], "seed {seed}");
        assert_eq!(run.node() == NodeId(1), lost == [NodeId(0)], "seed {seed}");
    }
}

/// Who crashes before half a millisecond is over, and what the others find then.
const CRASH_NS: u64 = 500_000;
/// Long after it, also for whoever hears of it late.
const LATER: u64 = 2 * CRASH_NS;

#[derive(Serialize, Deserialize, Default)]
struct Slot(Option<u64>);

#[dhole::object]
impl Slot {
    pub fn put(&mut self, value: u64) {
        self.0 = Some(value);
    }

    #[when(self.0.is_some())]
    pub fn take(&mut self) -> Option<u64> {
        self.0.take()
    }
}

fn lost<T: std::fmt::Debug>(outcome: Result<T, ObjectError>) -> (&'static str, Refusal) {
    match outcome {
        Err(ObjectError::Refused {
            operation, cause, ..
        }) => (operation, cause),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_waits_at_a_copy_that_dies_is_told_and_whoever_calls_it_later() {
    for seed in 0..50 {
        let settings = cluster(3, seed, &[(2, CRASH_NS)]);
        let run = Config::nodes(1).survive(true).simulate(settings, |w| {
            let only = w.once(|w| Ok(w.new_object(on(NodeId(2)), Slot::default())?))?;
            let everywhere = w.once(|w| Ok(w.new_object(replicated(), Slot::default())?))?;
            match w.node().index() {
                // It waits there when the node dies, beside one that waits for the others.
                0 => assert_eq!(lost(only.take(w)), ("Slot::take", Refusal::Lost(NodeId(2)))),
                1 => {
                    w.work(LATER);
                    everywhere.put(w, 7)?;
                    assert_eq!(
                        lost(only.put(w, 1)),
                        ("Slot::put", Refusal::Lost(NodeId(2)))
                    );
                }
                _ => drop(everywhere.take(w)?),
            }
            // What the dead node waited for is not taken away.
            if w.node() == NodeId(0) {
                assert_eq!(everywhere.take(w)?, Some(7));
            }
            let moved = dhole::Object::strategy(&only, w, replicated());
            assert_eq!(lost(moved).1, Refusal::Lost(NodeId(2)));
            let there = dhole::Object::strategy(&everywhere, w, on(NodeId(2)));
            assert_eq!(lost(there).1, Refusal::NoNode(NodeId(2)));
            w.barrier()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn locks_and_references_of_a_dead_node_are_errors_that_name_it() {
    for seed in 0..50 {
        let settings = cluster(3, seed, &[(2, CRASH_NS)]);
        let run = Config::nodes(1).survive(true).simulate(settings, |w| {
            let lock = Lock::numbered(0);
            let number = w.once(|w| Ok(w.alloc(0_u64)))?;
            if w.node() == NodeId(2) {
                *number.get_mut(w) = 5;
                let _held = lock.acquire(w)?;
                w.barrier()?;
                w.work(LATER);
                w.barrier()?;
            }
            w.barrier()?;
            let is_lost = |cause: &ProtocolError| *cause == ProtocolError::Lost { node: NodeId(2) };
            if w.node() == NodeId(0) {
                // It waits for the lock when the node dies.
                match lock.acquire(w) {
                    Err(SyncError::Protocol { cause, .. }) if is_lost(&cause) => {}
                    other => panic!("{other:?}"),
                }
            }
            w.work(LATER);
            w.barrier()?;
            match number.try_get(w) {
                Err(AccessError::Protocol { oid, cause, .. }) if is_lost(&cause) => {
                    assert!(format!("{oid}").starts_with("object"), "{oid}");
                }
                other => panic!("{other:?}"),
            }
            w.barrier()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn a_lock_that_comes_when_its_waiter_has_been_refused_ends_no_run() {
    for seed in 0..50 {
        let settings = cluster(3, seed, &[(2, CRASH_NS)]);
        let run = Config::nodes(1).survive(true).simulate(settings, |w| {
            let lock = Lock::numbered(0);
            let number = w.once(|w| Ok(w.alloc(0_u64)))?;
            let held = match w.node().index() {
                0 => Some(lock.acquire(w)?),
                _ => None,
            };
            number.read(w);
            w.barrier()?;
            if let Some(held) = held {
                *number.get_mut(w) = 1;
                w.work(LATER);
                // Node 1 is told what this node wrote, and computes.
                held.release(w)?;
            } else if w.node() == NodeId(1) {
                assert!(lock.acquire(w).is_err(), "node 2 dies meanwhile");
                let before = number.read(w);
                w.work(2 * LATER);
                assert_eq!(number.read(w), before);
            } else {
                w.work(LATER);
            }
            w.barrier()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn the_next_node_makes_a_value_whose_maker_dies() {
    for seed in 0..50 {
        let settings = cluster(4, seed, &[(0, CRASH_NS)]);
        let run = Config::nodes(1).survive(true).simulate(settings, |w| {
            let made = w.once(|w| {
                let me = w.node().0;
                if me == 0 {
                    w.work(LATER);
                    w.pause()?;
                }
                Ok(me)
            })?;
            let again = w.once(|w| Ok(w.node().0))?;
            Ok((made, again))
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((run.value, run.node()), ((1, 1), NodeId(1)), "seed {seed}");
        assert!(run.report.is_first());
    }
}

#[test]
fn of_two_nodes_the_first_survives_and_the_second_is_told_that_it_is_out() {
    for seed in 0..50 {
        let program = |w: &mut dhole::Worker<'_>| {
            let it = w.once(|w| Ok(w.new_object(replicated(), Slot::default())?))?;
            for value in 0..50 {
                it.put(w, value)?;
                w.work(LATER / 50);
            }
            Ok(it.take(w)?)
        };
        let config = Config::nodes(1).survive(true);
        let run = config.simulate(cluster(2, seed, &[(1, CRASH_NS)]), program);
        assert_eq!(run.expect("node 0 goes on").value, Some(49), "seed {seed}");
        let run = config.simulate(cluster(2, seed, &[(0, CRASH_NS)]), program);
        let Err(RunError::Failed { node, error, .. }) = run else {
            panic!("seed {seed}: {:?}", run.map(|run| run.value));
        };
        assert_eq!(node, NodeId(1));
        let out = matches!(
            *error,
            Error::Object(ObjectError::Sync(SyncError::Out { .. }))
        );
        assert!(out, "seed {seed}: {error}");
        let words = "out of the run: only 1 of 2 members are left";
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_guard_that_only_the_dead_could_make_true_is_a_deadlock_of_those_left() {
    let settings = cluster(3, 1, &[(1, CRASH_NS)]);
    let run = Config::nodes(1).survive(true).simulate(settings, |w| {
        let it = w.once(|w| Ok(w.new_object(replicated(), Slot::default())?))?;
        match w.node().index() {
            1 => {
                w.work(LATER);
                w.pause()?;
                it.put(w, 1)?;
            }
            _ => drop(it.take(w)?),
        }
        Ok(())
    });
    let words = run.expect_err("nobody puts anything").to_string();
    let named = ["node 0 waits for Slot::take", "node 2 waits for Slot::take"];
    assert!(named.iter().all(|name| words.contains(name)), "{words}");
    assert!(!words.contains("node 1 waits"), "{words}");
}

#[test]
fn a_run_that_does_not_survive_ends_with_the_node_that_crashed() {
    let run = Config::nodes(1).simulate(cluster(3, 1, &[(1, CRASH_NS)]), |w| {
        w.work(LATER);
        Ok(w.barrier()?)
    });
    match run {
        Err(RunError::Lost { lost, .. }) => assert_eq!(lost.node, NodeId(1)),
        other => panic!("{:?}", other.map(|run| run.value)),
    }
    let run = Config::nodes(2).survive(true);
    let run = run.coherence(dhole::Coherence::TreadMarks).run(|_| Ok(()));
    let Err(RunError::Config(refused @ dhole::ConfigError::Conflict { .. })) = run else {
        panic!("nothing survives under treadmarks");
    };
    let words = "survive `on` (Config::survive) contradicts coherence `treadmarks`";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

/// Node 1 sends until it crashes. Node 0 gets a prefix of that, and then an error that names it; so
/// does what it sends there.
#[test]
fn who_waits_for_a_message_of_a_lost_node_gets_what_it_sent_and_then_its_loss() {
    for seed in 0..20 {
        let settings = cluster(3, seed, &[(1, 300_000 + 10_000 * seed)]);
        let run = Config::nodes(1).survive(true).simulate(settings, |w| {
            let mail = w.once(|w| Ok(Mailboxes::<u32>::bounded(w, 4)?))?;
            let (zero, one, two) = (NodeId(0), NodeId(1), NodeId(2));
            let mut next = 0;
            match w.node().0 {
                1 => loop {
                    mail.send(w, zero, next)?;
                    w.work(5_000);
                    next += 1;
                },
                2 => return Ok(mail.recv_from(w, zero)?),
                _ => {}
            }
            let lost = loop {
                match mail.recv_from(w, one) {
                    Ok(number) => assert_eq!(number, next),
                    Err(lost) => break lost,
                }
                next += 1;
            };
            let words = lost.to_string();
            assert!(words.contains("receiving from node 1 on node 0"), "{words}");
            assert!(matches!(lost, MailboxError::Lost { other, .. } if other == one));
            let sent = mail.send(w, one, 0);
            assert!(matches!(sent, Err(MailboxError::Lost { .. })), "{sent:?}");
            mail.send(w, two, next)?;
            Ok(next)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(run.value > 0, "seed {seed}");
    }
}

/// What comes back from a constructor in a run that survives, wherever the object is.
#[test]
fn a_constructor_gives_a_user_half_where_nodes_may_be_lost() {
    #[derive(Serialize, Deserialize)]
    struct Counted(u64);

    #[dhole::object(client = u64)]
    impl Counted {
        #[new]
        pub fn from(first: u64) -> (Self, u64) {
            (Counted(first), first + 1)
        }

        pub fn next(&mut self, last: &mut u64) -> u64 {
            self.0 += *last;
            *last = self.0;
            self.0
        }
    }

    let run = Config::nodes(1)
        .survive(true)
        .simulate(cluster(3, 1, &[]), |w| {
            for place in [on(NodeId(0)), on(NodeId(2)), replicated()] {
                let mut mine = Counted::from_in(w, place, 5)?;
                assert_eq!(*dhole::Client::user(&mine), 6);
                assert_eq!(mine.next(w)?, 11);
                assert_eq!(*dhole::Client::user(&mine), 11);
            }
            Ok(())
        });
    run.unwrap();
}
