//! Litmus tests: the outcomes that sequential consistency forbids are never seen, though every
//! access is relaxed. Only the compiler is told to keep their order.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence};

use dhole::Worker;
use dhole::memory;

use crate::everywhere;

/// The two variables, and what a node reads.
type Body = fn(usize, &AtomicU32, &AtomicU32) -> [u32; 2];

/// A program, and what is forbidden of what its nodes read, and of the variables' last values.
struct Litmus {
    name: &'static str,
    nodes: usize,
    body: Body,
    forbidden: fn(&[[u32; 2]], [u32; 2]) -> bool,
}

fn load(variable: &AtomicU32) -> u32 {
    compiler_fence(SeqCst);
    let value = variable.load(Relaxed);
    compiler_fence(SeqCst);
    value
}

fn store(variable: &AtomicU32, value: u32) {
    compiler_fence(SeqCst);
    variable.store(value, Relaxed);
    compiler_fence(SeqCst);
}

const ALL: [Litmus; 6] = [
    Litmus {
        name: "store buffering",
        nodes: 2,
        body: |node, x, y| {
            let (mine, other) = if node == 0 { (x, y) } else { (y, x) };
            store(mine, 1);
            [load(other), 0]
        },
        forbidden: |read, _| read[0][0] == 0 && read[1][0] == 0,
    },
    Litmus {
        name: "message passing",
        nodes: 2,
        body: |node, x, y| {
            if node == 0 {
                store(x, 1);
                store(y, 1);
                return [0, 0];
            }
            [load(y), load(x)]
        },
        forbidden: |read, _| read[1] == [1, 0],
    },
    Litmus {
        name: "load buffering",
        nodes: 2,
        body: |node, x, y| {
            let (mine, other) = if node == 0 { (x, y) } else { (y, x) };
            let read = load(mine);
            store(other, 1);
            [read, 0]
        },
        forbidden: |read, _| read[0][0] == 1 && read[1][0] == 1,
    },
    Litmus {
        name: "2+2W",
        nodes: 2,
        body: |node, x, y| {
            let (first, second) = if node == 0 { (x, y) } else { (y, x) };
            store(first, 1);
            store(second, 2);
            [0, 0]
        },
        forbidden: |_, last| last == [1, 1],
    },
    Litmus {
        name: "IRIW",
        nodes: 4,
        body: |node, x, y| match node {
            0 => {
                store(x, 1);
                [0, 0]
            }
            1 => {
                store(y, 1);
                [0, 0]
            }
            2 => [load(x), load(y)],
            _ => [load(y), load(x)],
        },
        forbidden: |read, _| read[2] == [1, 0] && read[3] == [1, 0],
    },
    Litmus {
        name: "CoRR",
        nodes: 2,
        body: |node, x, _| {
            if node == 0 {
                store(x, 1);
                return [0, 0];
            }
            [load(x), load(x)]
        },
        forbidden: |read, _| read[1] == [1, 0],
    },
];

impl Litmus {
    /// Runs so many rounds; the first that shows what is forbidden, and how many outcomes there
    /// were.
    fn run(&self, rounds: usize, w: &mut Worker<'_>) -> dhole::Result<(Option<usize>, usize)> {
        let nodes = w.nodes();
        let (variables, read) = w.once(|w| {
            let variables = memory::alloc_rows::<u32>(w, 2, 1)?;
            Ok((variables, memory::alloc_rows::<u32>(w, nodes, 2)?))
        })?;
        let node = w.node().index();
        let [x, y] = [0, 1].map(|row| &variables.row(row).cells(w)[0]);
        let (mut found, mut outcomes) = (None, Vec::new());
        for round in 0..rounds {
            if node == round % nodes {
                store(x, 0);
                store(y, 0);
            }
            w.barrier()?;
            w.work(w.random() % 20_000);
            let own = (self.body)(node, x, y);
            let cells = read.row(node).cells(w);
            cells
                .iter()
                .zip(own)
                .for_each(|(cell, value)| store(cell, value));
            w.barrier()?;
            if node == 0 {
                let all = (0..nodes).map(|node| read.row(node).cells(w));
                let all: Vec<[u32; 2]> = all.map(|it| [load(&it[0]), load(&it[1])]).collect();
                let last = [load(x), load(y)];
                if (self.forbidden)(&all, last) {
                    found = found.or(Some(round));
                }
                if !outcomes.contains(&(all.clone(), last)) {
                    outcomes.push((all, last));
                }
            }
            w.barrier()?;
        }
        Ok((found, outcomes.len()))
    }
}

#[test]
fn what_sequential_consistency_forbids_is_never_seen() {
    for litmus in &ALL {
        for seed in 0..4 {
            let runs = everywhere(litmus.nodes, seed, |w| litmus.run(100, w));
            for run in runs {
                let (forbidden, _) = run.value;
                assert_eq!(forbidden, None, "{} with seed {seed}", litmus.name);
            }
        }
    }
}

/// A test that sees one outcome alone would see nothing forbidden either.
#[test]
fn several_outcomes_are_seen() {
    for litmus in &ALL {
        let [_, simulated] = everywhere(litmus.nodes, 1, |w| litmus.run(100, w));
        let (_, outcomes) = simulated.value;
        assert!(outcomes > 1, "{}: {outcomes}", litmus.name);
    }
}
