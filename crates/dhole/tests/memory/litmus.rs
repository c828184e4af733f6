//! Litmus tests: the outcomes that sequential consistency forbids are never seen, though every
//! access is relaxed. Only the compiler is told to keep their order.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence};

use dhole::Worker;
use dhole::memory;

use crate::{cluster, everywhere};

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

/// All programs of so many nodes, for so many rounds each: a line for each, with what was seen.
pub fn everything(w: &mut Worker<'_>, rounds: usize) -> dhole::Result<Vec<String>> {
    let (mut said, nodes) = (Vec::new(), w.nodes());
    for litmus in ALL.iter().filter(|it| it.nodes == nodes) {
        let (forbidden, outcomes) = litmus.run((rounds, BATCH), w)?;
        let name = litmus.name;
        said.push(match forbidden {
            None => format!("{name}: right, {outcomes} outcomes"),
            Some(round) => format!("{name}: wrong in round {round}"),
        });
    }
    Ok(said)
}

impl Litmus {
    /// Runs so many rounds, `batch` of them between two barriers, each with variables of its own;
    /// the first batch that shows what is forbidden, and how many outcomes there were.
    fn run(
        &self,
        (rounds, batch): (usize, usize),
        w: &mut Worker<'_>,
    ) -> dhole::Result<(Option<usize>, usize)> {
        let nodes = w.nodes();
        let (variables, read) = w.once(|w| {
            let variables = memory::alloc_rows::<u32>(w, 2 * batch, 1)?;
            Ok((variables, memory::alloc_rows::<u32>(w, nodes, 2 * batch)?))
        })?;
        let node = w.node().index();
        let variable = |row: usize| &variables.row(row).cells(w)[0];
        let pairs: Vec<_> = (0..batch)
            .map(|it| (variable(2 * it), variable(2 * it + 1)))
            .collect();
        let read: Vec<_> = (0..nodes).map(|node| read.row(node).cells(w)).collect();
        let (mut found, mut outcomes) = (None, Vec::new());
        for round in 0..rounds.div_ceil(batch) {
            if node == round % nodes {
                for (x, y) in &pairs {
                    store(x, 0);
                    store(y, 0);
                }
            }
            w.barrier()?;
            for (place, (x, y)) in pairs.iter().enumerate() {
                let before = w.random() % 20_000;
                w.work(before);
                // Where work means nothing, nodes differ by their own speed alone.
                for _ in 0..before % 256 {
                    std::hint::spin_loop();
                }
                let own = (self.body)(node, x, y);
                store(&read[node][2 * place], own[0]);
                store(&read[node][2 * place + 1], own[1]);
            }
            w.barrier()?;
            for (place, (x, y)) in pairs.iter().enumerate().filter(|_| node == 0) {
                let of = |node: &&[AtomicU32]| [load(&node[2 * place]), load(&node[2 * place + 1])];
                let all: Vec<[u32; 2]> = read.iter().map(of).collect();
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
            let runs = everywhere(litmus.nodes, seed, |w| litmus.run((100, 1), w));
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
        let [_, simulated] = everywhere(litmus.nodes, 1, |w| litmus.run((100, 1), w));
        let (_, outcomes) = simulated.value;
        assert!(outcomes > 1, "{}: {outcomes}", litmus.name);
    }
}

/// Between processes, on a transport; what node 0 says of each program of so many nodes.
fn between_processes(nodes: usize, transport: &str, rounds: usize) -> Vec<String> {
    let also = |_| {
        let transport = ("DHOLE_TRANSPORT".to_owned(), transport.to_owned());
        vec![transport, (ROUNDS.to_owned(), rounds.to_string())]
    };
    let mut all = cluster::run_with(nodes, "litmus", also);
    for ended in &all {
        assert_eq!(ended.code, Some(0), "{}", ended.all);
    }
    all.swap_remove(0).said
}

/// So many rounds are between two barriers there.
const BATCH: usize = 50;

/// How many rounds a started process is to run.
pub const ROUNDS: &str = "DHOLE_TEST_ROUNDS";

fn finds_all_right(rounds: usize, transports: &[&str]) {
    for transport in transports {
        for nodes in [2, 4] {
            let said = between_processes(nodes, transport, rounds);
            let programs = ALL.iter().filter(|it| it.nodes == nodes);
            assert_eq!(said.len(), programs.count(), "{said:?}");
            for line in said {
                println!("{transport}: {line}");
                assert!(line.contains("right"), "{transport}: {line}");
            }
        }
    }
}

#[test]
fn nor_between_processes() {
    finds_all_right(150, &["tcp"]);
}

#[test]
#[ignore = "too long for every change: a million rounds of each program; cargo test -p dhole \
            --release --test memory -- --ignored --nocapture million; hours"]
fn a_million_rounds_between_processes_show_nothing_forbidden() {
    for part in 1..=500 {
        finds_all_right(2_000, &["shm"]);
        println!("{} rounds", part * 2_000);
    }
}

/// Store buffering between two threads of one node: the processor's order, and so only accesses
/// that ask for more are in one order.
#[test]
fn threads_of_a_node_are_in_one_order_where_they_ask_for_it() {
    let run = crate::config(2).run(|w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 2, 1)?))?;
        let [x, y] = [0, 1].map(|row| &rows.row(row).cells(w)[0]);
        let begins = [const { AtomicU32::new(0) }; 2];
        let mut both = 0;
        for round in 1..=if w.node().index() == 0 { 500 } else { 0 } {
            x.store(0, SeqCst);
            y.store(0, SeqCst);
            let body = |own: usize, mine: &AtomicU32, other: &AtomicU32| {
                begins[own].store(round, SeqCst);
                while begins[1 - own].load(SeqCst) < round {
                    std::thread::yield_now();
                }
                mine.store(1, SeqCst);
                other.load(SeqCst)
            };
            let read = memory::threads::scope(w, |_, scope| {
                let other = scope.spawn(|| body(1, y, x))?;
                let own = body(0, x, y);
                Ok::<_, memory::threads::ThreadError>((own, other.join().expect("it ends")))
            })??;
            both += u32::from(read == (0, 0));
        }
        w.barrier()?;
        Ok(both)
    });
    assert_eq!(run.expect("a run").value, 0);
}
