//! Runs that go on when nodes crash, simulated: what was acknowledged is there in the end, and
//! what is lost is named.

use std::sync::Mutex;

use dhole::sim::{Crash, Settings};
use dhole::{Config, NodeId, Run, RunError, replicated};
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
