//! Litmus tests: the outcomes that sequential consistency forbids are never seen, though every
//! access is relaxed. Only the compiler is told to keep their order.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence};

use dhole::Worker;
use dhole::memory;

use crate::{cluster, everywhere};

/// A variable in one round. The values of a round lie above those of the round before, so none is
/// set back, which would cost as many faults as the round itself.
#[derive(Clone, Copy)]
struct Variable<'a> {
    cell: &'a AtomicU32,
    /// What counts as 0 in this round, or less.
    zero: u32,
    /// What the node loads instead, where a test breaks the memory.
    stale: Option<u32>,
}

impl Variable<'_> {
    fn load(self) -> u32 {
        compiler_fence(SeqCst);
        let value = self.stale.unwrap_or_else(|| self.cell.load(Relaxed));
        compiler_fence(SeqCst);
        value.saturating_sub(self.zero)
    }

    fn store(self, value: u32) {
        compiler_fence(SeqCst);
        self.cell.store(self.zero + value, Relaxed);
        compiler_fence(SeqCst);
    }
}

/// Most that a program stores.
const MOST: u32 = 2;

/// Of a node with the two variables: what it reads.
type Body = fn(usize, Variable<'_>, Variable<'_>) -> [u32; 2];

/// A program, what of a round counts as its outcome, and the outcome that is forbidden.
struct Litmus {
    name: &'static str,
    nodes: usize,
    body: Body,
    /// Of what the nodes read, and the variables' last values.
    outcome: fn(&[[u32; 2]], [u32; 2]) -> Outcome,
    forbidden: &'static [u32],
}

type Outcome = Vec<u32>;

/// Outcomes, and how often each was seen.
type Seen = BTreeMap<Outcome, u64>;

const ALL: [Litmus; 6] = [
    Litmus {
        name: "store buffering",
        nodes: 2,
        body: |node, x, y| {
            let (mine, other) = if node == 0 { (x, y) } else { (y, x) };
            mine.store(1);
            [other.load(), 0]
        },
        outcome: |read, _| vec![read[0][0], read[1][0]],
        forbidden: &[0, 0],
    },
    Litmus {
        name: "message passing",
        nodes: 2,
        body: |node, x, y| {
            if node == 0 {
                x.store(1);
                y.store(1);
                return [0, 0];
            }
            [y.load(), x.load()]
        },
        outcome: |read, _| read[1].to_vec(),
        forbidden: &[1, 0],
    },
    Litmus {
        name: "load buffering",
        nodes: 2,
        body: |node, x, y| {
            let (mine, other) = if node == 0 { (x, y) } else { (y, x) };
            let read = mine.load();
            other.store(1);
            [read, 0]
        },
        outcome: |read, _| vec![read[0][0], read[1][0]],
        forbidden: &[1, 1],
    },
    Litmus {
        name: "2+2W",
        nodes: 2,
        body: |node, x, y| {
            let (first, second) = if node == 0 { (x, y) } else { (y, x) };
            first.store(1);
            second.store(2);
            [0, 0]
        },
        outcome: |_, last| last.to_vec(),
        forbidden: &[1, 1],
    },
    Litmus {
        name: "IRIW",
        nodes: 4,
        body: |node, x, y| match node {
            0 => {
                x.store(1);
                [0, 0]
            }
            1 => {
                y.store(1);
                [0, 0]
            }
            2 => [x.load(), y.load()],
            _ => [y.load(), x.load()],
        },
        outcome: |read, _| [read[2], read[3]].concat(),
        forbidden: &[1, 0, 1, 0],
    },
    Litmus {
        name: "CoRR",
        nodes: 2,
        body: |node, x, _| {
            if node == 0 {
                x.store(1);
                return [0, 0];
            }
            [x.load(), x.load()]
        },
        outcome: |read, _| read[1].to_vec(),
        forbidden: &[1, 0],
    },
];

/// All programs of so many nodes, for so many rounds each: a line for each outcome, with how often
/// it was seen.
pub fn everything(w: &mut Worker<'_>, rounds: usize) -> dhole::Result<Vec<String>> {
    let (mut said, nodes) = (Vec::new(), w.nodes());
    for litmus in ALL.iter().filter(|it| it.nodes == nodes) {
        let rounds = Rounds {
            all: rounds,
            batch: BATCH,
            threads: THREADS,
        };
        for (outcome, times) in litmus.run(rounds, None, w)? {
            let outcome: Vec<String> = outcome.iter().map(u32::to_string).collect();
            said.push(format!("{}:{}:{times}", litmus.name, outcome.join(" ")));
        }
    }
    Ok(said)
}

/// The last node loads the first variable, in each round, as it was before the round: as if it kept
/// a copy that should have been taken away.
#[derive(Clone, Copy)]
struct Stale;

/// How rounds are run.
#[derive(Clone, Copy)]
struct Rounds {
    /// How many.
    all: usize,
    /// So many are between two barriers, each with variables of its own.
    batch: usize,
    /// So many threads of a node run them. While one waits for memory the others go on: so nodes
    /// keep in step, access by access, however seldom the system lets their processes run.
    threads: usize,
}

impl Rounds {
    fn few(all: usize, batch: usize) -> Rounds {
        let threads = 1;
        Rounds {
            all,
            batch,
            threads,
        }
    }
}

impl Litmus {
    /// Runs rounds. All nodes have copies of the variables first, in every second batch; the
    /// outcomes, on node 0. Within a batch nodes do not meet.
    fn run(
        &self,
        rounds: Rounds,
        breaks: Option<Stale>,
        w: &mut Worker<'_>,
    ) -> dhole::Result<Seen> {
        let (nodes, batch) = (w.nodes(), rounds.batch);
        let (variables, read) = w.once(|w| {
            let variables = memory::alloc_rows::<u32>(w, 2 * batch, 1)?;
            Ok((variables, memory::alloc_rows::<u32>(w, nodes, 2 * batch)?))
        })?;
        let node = w.node().index();
        let cells: Vec<_> = (0..2 * batch)
            .map(|row| &variables.row(row).cells(w)[0])
            .collect();
        let read: Vec<_> = (0..nodes).map(|node| read.row(node).cells(w)).collect();
        let mut seen = Seen::new();
        for round in 0..rounds.all.div_ceil(batch) {
            if round % 2 == 1 {
                variables.range(..).fetch(w)?;
                w.barrier()?;
            }
            let zero = round as u32 * MOST;
            let is_stale = breaks.is_some() && node == nodes - 1;
            let variable = |row: usize| Variable {
                cell: cells[row],
                zero,
                stale: (is_stale && row.is_multiple_of(2)).then_some(zero),
            };
            let one = |place: usize, spins: u64| {
                // Where work means nothing, nodes differ by their own speed alone.
                for _ in 0..spins % 256 {
                    std::hint::spin_loop();
                }
                let own = (self.body)(node, variable(2 * place), variable(2 * place + 1));
                for (at, value) in own.into_iter().enumerate() {
                    read[node][2 * place + at].store(value, Relaxed);
                }
            };
            let before: Vec<u64> = (0..batch).map(|_| w.random() % 20_000).collect();
            if rounds.threads == 1 {
                for (place, before) in before.iter().enumerate() {
                    w.work(*before);
                    one(place, *before);
                }
            } else {
                memory::threads::scope(w, |_, scope| {
                    let (one, before) = (&one, &before);
                    for thread in 0..rounds.threads {
                        scope.spawn(move || {
                            let own = (thread..batch).step_by(rounds.threads);
                            own.for_each(|place| one(place, before[place]));
                        })?;
                    }
                    Ok::<_, memory::threads::ThreadError>(())
                })??;
            }
            w.barrier()?;
            if node == 0 {
                variables.range(..).fetch(w)?;
                for place in 0..batch {
                    let of =
                        |node: &&[AtomicU32]| [0, 1].map(|at| node[2 * place + at].load(Relaxed));
                    let all: Vec<[u32; 2]> = read.iter().map(of).collect();
                    let last = [0, 1].map(|at| variable(2 * place + at).load());
                    *seen.entry((self.outcome)(&all, last)).or_default() += 1;
                }
            }
            w.barrier()?;
        }
        Ok(seen)
    }
}

#[test]
fn what_sequential_consistency_forbids_is_never_seen() {
    for litmus in &ALL {
        for seed in 0..4 {
            let runs = everywhere(litmus.nodes, seed, |w| {
                litmus.run(Rounds::few(100, 1), None, w)
            });
            for run in runs {
                let wrong = run.value.get(litmus.forbidden);
                assert_eq!(wrong, None, "{} with seed {seed}", litmus.name);
            }
        }
    }
}

/// A test that sees one outcome alone would see nothing forbidden either.
#[test]
fn several_outcomes_are_seen() {
    for litmus in &ALL {
        let [_, simulated] = everywhere(litmus.nodes, 1, |w| {
            litmus.run(Rounds::few(100, 1), None, w)
        });
        let outcomes = simulated.value;
        assert!(outcomes.len() > 1, "{}: {outcomes:?}", litmus.name);
    }
}

/// Nor would one that looks at the wrong thing.
#[test]
fn a_copy_that_stays_is_found() {
    for litmus in &ALL[..2] {
        let runs = everywhere(2, 1, |w| litmus.run(Rounds::few(400, 20), Some(Stale), w));
        let [_, simulated] = runs.map(|run| run.value);
        let wrong = simulated.get(litmus.forbidden);
        assert!(wrong.is_some(), "{}: {simulated:?}", litmus.name);
    }
}

/// Between processes, on a transport; what node 0 has seen of each program of so many nodes.
fn between_processes(nodes: usize, transport: &str, rounds: usize) -> BTreeMap<&'static str, Seen> {
    let also = |_| {
        let transport = ("DHOLE_TRANSPORT".to_owned(), transport.to_owned());
        vec![transport, (ROUNDS.to_owned(), rounds.to_string())]
    };
    let mut all = cluster::run_with(nodes, "litmus", also);
    for ended in &all {
        assert_eq!(ended.code, Some(0), "{}", ended.all);
    }
    let mut seen = BTreeMap::<&str, Seen>::new();
    for line in all.swap_remove(0).said {
        let parts: Vec<&str> = line.split(':').collect();
        let litmus = ALL.iter().find(|it| parts[0] == it.name);
        let litmus = litmus.expect("the name of a program");
        let number = |it: &str| it.parse().expect("a number");
        let outcome = parts[1].split(' ').map(number).collect();
        let times = parts[2].parse().expect("a number");
        seen.entry(litmus.name).or_default().insert(outcome, times);
    }
    seen
}

/// So many rounds are between two barriers there.
const BATCH: usize = 256;

/// And so many threads of a node run them.
const THREADS: usize = 16;

/// How many rounds a started process is to run.
pub const ROUNDS: &str = "DHOLE_TEST_ROUNDS";

/// Runs all programs for so many rounds, of so many nodes, and adds what was seen.
fn adds_all(rounds: usize, nodes: usize, transport: &str, sum: &mut BTreeMap<&'static str, Seen>) {
    let each = between_processes(nodes, transport, rounds);
    assert_eq!(
        each.len(),
        ALL.iter().filter(|it| it.nodes == nodes).count()
    );
    for (name, seen) in each {
        assert_eq!(seen.values().sum::<u64>(), rounds as u64, "{name}");
        for (outcome, times) in seen {
            let sum = sum.entry(name).or_default();
            *sum.entry(outcome).or_default() += times;
        }
    }
    for litmus in &ALL {
        let seen = sum.get(litmus.name).and_then(|it| it.get(litmus.forbidden));
        assert_eq!(seen, None, "{} over {transport}: {sum:?}", litmus.name);
    }
}

#[test]
fn nor_between_processes() {
    for nodes in [2, 4] {
        // Nodes have copies first in every second batch.
        adds_all(4 * BATCH, nodes, "tcp", &mut BTreeMap::new());
    }
}

/// Each part takes seconds. In the idle scheduling class, beside compilers, the processes of one
/// may get no processor for the two minutes after which they are ended.
#[test]
#[ignore = "too long for every change: a million rounds of each program; cargo test -p dhole \
            --release --test memory -- --ignored --nocapture million"]
fn a_million_rounds_between_processes_show_nothing_forbidden() {
    const PART: usize = 10 * BATCH;
    let (mut sum, begins) = (BTreeMap::new(), std::time::Instant::now());
    for part in 1..=1_000_000_usize.div_ceil(PART) {
        for nodes in [2, 4] {
            adds_all(PART, nodes, "shm", &mut sum);
        }
        println!("{} rounds in {:?}: {sum:?}", part * PART, begins.elapsed());
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
