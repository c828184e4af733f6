//! A k-d tree with an object for each point, built and searched by two workers: plain Rust over
//! boxes, the same with rayon, and the example `kdtree` over dhole on threads and on processes.
//!
//! Every round runs all of them in turn; the fastest of each counts. Nothing is pinned. For the
//! processes this starts itself under `dhole run`, which must be built beside it with the same
//! profile. The arguments are the numbers of points and of searches.
#![forbid(unsafe_code)]

use std::process::Command;
use std::time::Instant;

use bench::Outcome;
use dhole::{Config, RunError};
use rayon::ThreadPoolBuilder;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use kdtree::{At, Found, Owning, Problem, Referring, distance, next, split};

#[expect(dead_code, reason = "its command line is the example's alone")]
#[path = "../../../crates/dhole/examples/kdtree.rs"]
mod kdtree;

const ROUNDS: usize = 7;
const WORKERS: usize = 2;
/// Subtrees of fewer points are built by one thread.
const GRAIN: usize = 1024;
/// By this argument this program is a node that `dhole run` has started.
const AS_NODE: &str = "as-node";

/// A point of the tree, as one would write it for one process.
struct Boxed {
    at: At,
    halves: [Option<Box<Boxed>>; 2],
}

/// Splits the points until none are left, with `both` building two halves.
fn build(points: &mut [At], axis: usize, both: Both) -> Option<Box<Boxed>> {
    let (lower, at, upper) = split(points, axis)?;
    let halves = both(lower, upper, next(axis));
    Some(Box::new(Boxed { at, halves }))
}

type Both = fn(&mut [At], &mut [At], usize) -> [Option<Box<Boxed>>; 2];

fn in_turn(lower: &mut [At], upper: &mut [At], axis: usize) -> [Option<Box<Boxed>>; 2] {
    [lower, upper].map(|half| build(half, axis, in_turn))
}

fn at_once(lower: &mut [At], upper: &mut [At], axis: usize) -> [Option<Box<Boxed>>; 2] {
    if upper.len() < GRAIN {
        return in_turn(lower, upper, axis);
    }
    let half = |points| build(points, axis, at_once);
    let (lower, upper) = rayon::join(|| half(lower), || half(upper));
    [lower, upper]
}

/// The square of the distance to the nearest point of the tree, or `best` where that is less.
fn nearest(point: &Boxed, axis: usize, to: &At, best: f64) -> f64 {
    let mut best = best.min(distance(&point.at, to));
    let beyond = to[axis] - point.at[axis];
    let is_above = beyond >= 0.0;
    let half = |upper: bool| point.halves[usize::from(upper)].as_deref();
    if let Some(near) = half(is_above) {
        best = nearest(near, next(axis), to, best);
    }
    match half(!is_above) {
        Some(far) if beyond * beyond < best => nearest(far, next(axis), to, best),
        _ => best,
    }
}

/// What one run took, in seconds: to build, to search, and to search again; and what it found.
struct Took {
    seconds: [f64; 3],
    mean_distance: f64,
}

impl From<Found> for Took {
    fn from(found: Found) -> Took {
        let [first, second] = found.passes;
        Took {
            seconds: [found.build, first, second].map(|time| time.as_secs_f64()),
            mean_distance: found.mean_distance,
        }
    }
}

/// A run without dhole.
fn over_boxes(
    problem: Problem,
    both: Both,
    search: impl Fn(&[At], &Boxed) -> Vec<f64>,
) -> Outcome<Took> {
    let (mut points, places) = problem.clouds();
    let mut seconds = [0.0; 3];
    let began = Instant::now();
    let tree = build(&mut points, 0, both).ok_or("a tree of no points")?;
    seconds[0] = began.elapsed().as_secs_f64();
    let mut found = Vec::new();
    for seconds in &mut seconds[1..] {
        let began = Instant::now();
        found = search(&places, &tree);
        *seconds = began.elapsed().as_secs_f64();
    }
    let sum: f64 = found.iter().map(|square| square.sqrt()).sum();
    let mean_distance = sum / places.len() as f64;
    Ok(Took {
        seconds,
        mean_distance,
    })
}

fn sequential(problem: Problem) -> Outcome<Took> {
    over_boxes(problem, in_turn, |places, tree| {
        let search = |to: &At| nearest(tree, 0, to, f64::INFINITY);
        places.iter().map(search).collect()
    })
}

fn with_rayon(problem: Problem) -> Outcome<Took> {
    let pool = ThreadPoolBuilder::new().num_threads(WORKERS).build()?;
    pool.install(|| {
        over_boxes(problem, at_once, |places, tree| {
            let search = |to: &At| nearest(tree, 0, to, f64::INFINITY);
            places.par_iter().map(search).collect()
        })
        .map_err(|error| error.to_string())
    })
    .map_err(Into::into)
}

/// The example, on nodes that are threads, or on those that `dhole run` has started.
fn over_dhole(nodes: usize, problem: Problem, own: bool) -> Result<(bool, Took), RunError> {
    let run = Config::nodes(nodes).run(|w| match own {
        true => kdtree::solve::<Owning>(w, problem),
        false => kdtree::solve::<Referring>(w, problem),
    })?;
    Ok((run.report.is_first(), run.value.into()))
}

fn over_processes(problem: Problem, own: bool, transport: &str) -> Outcome<Took> {
    let itself = std::env::current_exe()?;
    let mut command = Command::new(itself.with_file_name("dhole"));
    let nodes = WORKERS.to_string();
    command.args(["run", "-n", &nodes, "--transport", transport, "--"]);
    command.arg(itself).arg(AS_NODE);
    command.args([problem.points, problem.queries].map(|count| count.to_string()));
    command.args([own, problem.prefetch].map(|it| it.to_string()));
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?}: {}: {said}", output.status).into());
    }
    let said = String::from_utf8(output.stdout)?;
    let numbers: Result<Vec<f64>, _> = said.split_whitespace().map(str::parse).collect();
    match numbers?[..] {
        [build, first, second, mean_distance] => Ok(Took {
            seconds: [build, first, second],
            mean_distance,
        }),
        _ => Err(format!("{command:?}: no times: {said}").into()),
    }
}

/// What a node that `dhole run` has started says.
fn as_node(problem: Problem, own: bool) -> Outcome<()> {
    let (is_first, took) = over_dhole(WORKERS, problem, own)?;
    if is_first {
        let [build, first, second] = took.seconds;
        println!("{build} {first} {second} {}", took.mean_distance);
    }
    Ok(())
}

/// One way to build the tree and search it.
type Way = (String, Box<dyn Fn(Problem) -> Outcome<Took>>);

/// The sequential one first: the others stand beside it.
fn ways() -> Vec<Way> {
    let mut ways: Vec<Way> = vec![
        ("sequential".to_owned(), Box::new(sequential)),
        ("rayon".to_owned(), Box::new(with_rayon)),
    ];
    // One node searches what is present: what it takes longer than boxes is what a hit costs.
    let alone = |problem| Ok(over_dhole(1, problem, false)?.1);
    ways.push(("dhole, one node, `Ref`".to_owned(), Box::new(alone)));
    for (own, prefetch, halves) in [
        (false, false, "`Ref`"),
        (true, false, "`Own`"),
        (false, true, "`Ref`, prefetched"),
    ] {
        let with = move |problem| Problem {
            prefetch,
            ..problem
        };
        let threads = move |problem| Ok(over_dhole(WORKERS, with(problem), own)?.1);
        ways.push((format!("dhole, threads, {halves}"), Box::new(threads)));
        for transport in ["shm", "tcp"] {
            let processes = move |problem| over_processes(with(problem), own, transport);
            let name = format!("dhole, processes over {transport}, {halves}");
            ways.push((name, Box::new(processes)));
        }
    }
    ways
}

/// Runs all ways in turn and prints the fastest times of each, and how many times as fast as the
/// sequential way that is.
fn measure(problem: Problem) -> Outcome<()> {
    let ways = ways();
    let mut fastest = vec![[f64::INFINITY; 3]; ways.len()];
    for _ in 0..ROUNDS {
        let mut mean_distance = None;
        for ((name, way), fastest) in ways.iter().zip(&mut fastest) {
            let took = way(problem)?;
            // Each adds the same numbers up, in parts of its own.
            let expected = *mean_distance.get_or_insert(took.mean_distance);
            if (took.mean_distance - expected).abs() > 1e-12 * expected {
                return Err(format!("{name} finds other points than the sequential way").into());
            }
            for (fastest, seconds) in fastest.iter_mut().zip(took.seconds) {
                *fastest = fastest.min(seconds);
            }
        }
    }
    let Problem {
        points, queries, ..
    } = problem;
    println!("{points} points, {queries} searches, twice, {WORKERS} workers; ms, fastest of");
    println!("{ROUNDS}; behind each, how many times as fast as the sequential way");
    let header = ["build", "search", "again"].map(|phase| format!("{phase:>10}        "));
    println!("{:<34}{}", "", header.concat());
    for ((name, _), took) in ways.iter().zip(&fastest) {
        let phases = took.iter().zip(&fastest[0]);
        let cells =
            phases.map(|(took, alone)| format!("{:>10.2} {:>6.2} ", took * 1e3, alone / took));
        println!("{name:<34}{}", cells.collect::<String>());
    }
    println!("asked of `Ref`, the second search: 1.8 times as fast as the sequential way");
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let problem = |points: &str, queries: &str| -> Outcome<Problem> {
        Ok(Problem {
            points: points.parse()?,
            queries: queries.parse()?,
            prefetch: false,
        })
    };
    match arguments[..] {
        [AS_NODE, points, queries, own, prefetch] => {
            let problem = Problem {
                prefetch: prefetch.parse()?,
                ..problem(points, queries)?
            };
            as_node(problem, own.parse()?)
        }
        [] => measure(problem("200000", "50000")?),
        [points, queries] => measure(problem(points, queries)?),
        _ => Err("kdtree [POINTS QUERIES]".into()),
    }
}
