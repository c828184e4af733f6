//! Programs as new users write them, with the plain calls of dhole: sequential Rust, rayon, and
//! dhole on one node, two threads and two processes.
//!
//! `users NAME [ROUNDS]`, with a name of [`PROGRAMS`]. Every round runs all ways in turn; the
//! fastest of each counts. `users on-nodes NAME FORM` runs one form of it once, on the nodes of
//! `dhole run` or `dhole sim`, beside sequential Rust. Nothing is pinned. For the processes this
//! starts itself under `dhole run`, which must be built beside it with the same profile. Each phase
//! has two numbers: milliseconds by the clock, and of the processor time of the worker that used
//! most (none for rayon, whose threads share the work).
#![forbid(unsafe_code)]

mod bfs;
mod indices;
mod lap;
mod permutation;
mod queens;
mod rmat;
mod toposort;
mod triangles;
mod trie;
mod uts;
mod words;

use std::process::Command;

use bench::Outcome;
use dhole::{Config, Result, Worker};
use rayon::ThreadPoolBuilder;

use lap::Lap;

const WORKERS: usize = 2;
/// By this argument this program is a node that `dhole run` has started.
const AS_NODE: &str = "as-node";
/// By this one it runs a form of a program on the nodes that `dhole run` or `dhole sim` says.
const ON_NODES: &str = "on-nodes";

/// What a program took, phase by phase, and a number that each of its ways must find.
pub struct Took {
    laps: Vec<Lap>,
    found: u64,
}

/// The program over dhole, in one of its forms.
type Shared = fn(&mut Worker<'_>) -> Result<Took>;

/// The program on one thread without dhole.
type Alone = fn() -> Outcome<Took>;

/// A program in all its forms.
struct Program {
    name: &'static str,
    about: &'static str,
    phases: &'static [&'static str],
    sequential: Alone,
    /// Other ways of one thread.
    also_sequential: &'static [(&'static str, Alone)],
    /// Called within a pool of [`WORKERS`] threads.
    rayon: fn() -> Outcome<Took>,
    shared: &'static [(&'static str, Shared)],
}

const PROGRAMS: [Program; 10] = [
    bfs::PROGRAM,
    trie::PROGRAM,
    words::PROGRAM,
    queens::PROGRAM,
    uts::PROGRAM,
    indices::HISTOGRAM,
    indices::GATHER,
    triangles::PROGRAM,
    permutation::PROGRAM,
    toposort::PROGRAM,
];

fn on_threads(nodes: usize, shared: Shared) -> Outcome<Took> {
    Ok(Config::nodes(nodes).run(shared)?.value)
}

fn on_processes(program: &Program, form: &str, transport: &str) -> Outcome<Took> {
    let itself = std::env::current_exe()?;
    let mut command = Command::new(itself.with_file_name("dhole"));
    let nodes = WORKERS.to_string();
    command.args(["run", "-n", &nodes, "--transport", transport, "--"]);
    command.arg(itself).args([AS_NODE, program.name, form]);
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?}: {}: {said}", output.status).into());
    }
    let said = String::from_utf8(output.stdout)?;
    let mut words = said.split_whitespace();
    let found = words.next().ok_or("a node says nothing")?.parse()?;
    let laps: Result<Vec<Lap>, _> = words.map(str::parse).collect();
    Ok(Took { laps: laps?, found })
}

impl Program {
    fn form(&self, form: &str) -> Outcome<Shared> {
        let shared = self.shared.iter().find(|(name, _)| *name == form);
        let (_, shared) = shared.ok_or_else(|| {
            let forms: Vec<&str> = self.shared.iter().map(|(name, _)| *name).collect();
            format!("{} has no form {form}, but {}", self.name, forms.join(", "))
        })?;
        Ok(*shared)
    }
}

/// Runs a form of a program on the nodes that there are, and sequential Rust on the first one
/// afterwards: each phase in milliseconds of both, and their ratio. In a simulation the nodes'
/// clocks are virtual.
fn on_nodes(program: &Program, form: &str) -> Outcome<()> {
    let run = Config::nodes(WORKERS).run(program.form(form)?)?;
    if !run.report.is_first() {
        return Ok(());
    }
    let (alone, shared) = ((program.sequential)()?, run.value);
    if alone.found != shared.found {
        let (is, expected) = (shared.found, alone.found);
        return Err(format!("{}, {form}: found {is}, expected {expected}", program.name).into());
    }
    let (name, nodes) = (program.name, run.report.nodes);
    println!(
        "{name}, {form}: {}; {nodes} nodes over {}",
        program.about, run.report.transport
    );
    println!(
        "{:<18}{:>18}{:>14}{:>9}",
        "ms", "sequential Rust", "the nodes", "ratio"
    );
    for ((phase, alone), shared) in program.phases.iter().zip(alone.laps).zip(shared.laps) {
        let (alone, shared) = (alone.seconds, shared.seconds);
        let ratio = alone / shared;
        println!(
            "{phase:<18}{:>18.3}{:>14.3}{ratio:>9.2}",
            alone * 1e3,
            shared * 1e3
        );
    }
    Ok(())
}

/// What a node that `dhole run` has started says: what it found, and its laps.
fn as_node(program: &Program, form: &str) -> Outcome<()> {
    let run = Config::nodes(WORKERS).run(program.form(form)?)?;
    if run.report.is_first() {
        let laps: Vec<String> = run.value.laps.iter().map(Lap::to_string).collect();
        println!("{} {}", run.value.found, laps.join(" "));
    }
    Ok(())
}

/// One way to run a program.
type Way<'a> = (String, Box<dyn Fn() -> Outcome<Took> + 'a>);

/// The sequential one first: the others stand beside it.
fn ways(program: &Program) -> Outcome<Vec<Way<'_>>> {
    let pool = ThreadPoolBuilder::new().num_threads(WORKERS).build()?;
    let with_rayon = move || {
        pool.install(|| (program.rayon)().map_err(|error| error.to_string()))
            .map_err(Into::into)
    };
    let mut ways: Vec<Way<'_>> = vec![("sequential".to_owned(), Box::new(program.sequential))];
    for &(form, alone) in program.also_sequential {
        ways.push((format!("sequential, {form}"), Box::new(alone)));
    }
    ways.push((format!("rayon, {WORKERS} threads"), Box::new(with_rayon)));
    for &(form, shared) in program.shared {
        for (nodes, name) in [(1, "one node"), (WORKERS, "two threads")] {
            let run = move || on_threads(nodes, shared);
            ways.push((format!("dhole {form}, {name}"), Box::new(run)));
        }
        for transport in ["shm", "tcp"] {
            let run = move || on_processes(program, form, transport);
            let name = format!("dhole {form}, two processes over {transport}");
            ways.push((name, Box::new(run)));
        }
    }
    Ok(ways)
}

fn measure(program: &Program, rounds: usize) -> Outcome<()> {
    let ways = ways(program)?;
    let mut fastest = vec![vec![Lap::NONE; program.phases.len()]; ways.len()];
    for _ in 0..rounds {
        let mut found = None;
        for ((name, way), fastest) in ways.iter().zip(&mut fastest) {
            let took = way()?;
            let expected = *found.get_or_insert(took.found);
            if took.found != expected {
                let (is, of) = (took.found, program.name);
                return Err(format!("{of}, {name}: found {is}, expected {expected}").into());
            }
            for (fastest, lap) in fastest.iter_mut().zip(took.laps) {
                *fastest = fastest.least(lap);
            }
        }
    }
    println!(
        "{}: {}; ms, fastest of {rounds}",
        program.name, program.about
    );
    println!("by the clock, processor time of the busier worker, times as fast as sequential Rust");
    let head = program.phases.iter().map(|phase| format!("{phase:>26} "));
    println!("{:<42}{}", "", head.collect::<String>());
    for ((name, _), laps) in ways.iter().zip(&fastest) {
        let cells = laps.iter().zip(&fastest[0]).map(|(lap, alone)| {
            let speed = alone.seconds / lap.seconds;
            let processor = match lap.processor.is_finite() {
                true => format!("{:.1}", lap.processor * 1e3),
                false => "-".to_owned(),
            };
            format!("{:>10.1} {processor:>9} {speed:>6.2}", lap.seconds * 1e3)
        });
        println!("{name:<42}{}", cells.collect::<String>());
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let names = PROGRAMS.map(|program| program.name).join("|");
    let usage = || format!("usage: users {names} [ROUNDS], or users {ON_NODES} NAME FORM");
    let named = |name: &str| {
        let mut all = PROGRAMS.into_iter();
        all.find(|program| program.name == name).ok_or_else(usage)
    };
    match arguments[..] {
        [AS_NODE, name, form] => as_node(&named(name)?, form),
        [ON_NODES, name, form] => on_nodes(&named(name)?, form),
        [name] => measure(&named(name)?, 5),
        [name, rounds] => measure(&named(name)?, rounds.parse()?),
        _ => Err(usage().into()),
    }
}
