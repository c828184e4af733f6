//! The programs beside their floors, in one run: SOR, Barnes-Hut and both Waters over dhole on one
//! node and on two in-process nodes against plain sequential Rust, and SOR's against C.
//!
//! Every repetition runs all of them in turn; the fastest run of each counts. Nothing is pinned;
//! waiting workers spin while fewer of them wait than there are cores, then yield, then park.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use apps::water::solve::Program;
use apps::water::{self, nsquared, spatial};
use apps::{barnes, sor};
use dhole::{Array2, Config, Rows, RunError};

const REPETITIONS: usize = 9;

/// The fastest of its runs, in seconds.
struct Fastest(f64);

impl Fastest {
    fn none() -> Fastest {
        Fastest(f64::INFINITY)
    }

    fn take(&mut self, seconds: f64) {
        self.0 = self.0.min(seconds);
    }
}

fn main() -> Result<(), RunError> {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|number| number.parse::<usize>());
    let mut next = |usual| match arguments.next() {
        Some(Ok(number)) => number,
        Some(Err(error)) => panic!("usage: programs [SOR_SIZE [BODIES [MOLECULES]]]: {error}"),
        None => usual,
    };
    let (size, bodies, molecules) = (next(2048), next(16384), next(1728));
    solve_sor(size)?;
    solve_barnes(bodies)?;
    solve_water(nsquared::PROGRAM, molecules)?;
    solve_water(spatial::PROGRAM, molecules)
}

fn solve_sor(size: usize) -> Result<(), RunError> {
    let problem = sor::Problem {
        rows: size,
        columns: size,
        steps: 20,
        seed: 1,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    let rows = |nodes| -> Result<f64, RunError> {
        let run = Config::nodes(nodes)
            .run(|w| sor::shared::run::<Rows<f64>>(w, &problem, None, |_| ()))?;
        Ok(run.value.sweeps.as_secs_f64())
    };
    let arrays = |nodes| -> Result<f64, RunError> {
        let run = Config::nodes(nodes)
            .run(|w| sor::shared::run::<Array2<f64>>(w, &problem, None, |_| ()))?;
        Ok(run.value.sweeps.as_secs_f64())
    };
    let c = InC::compile();
    let [mut in_c, mut plain] = [(); 2].map(|()| Fastest::none());
    let [mut one, mut two, mut one_array, mut two_arrays] = [(); 4].map(|()| Fastest::none());
    for _ in 0..REPETITIONS {
        if let Some(seconds) = c.as_ref().and_then(|program| program.run(&problem)) {
            in_c.take(seconds);
        }
        plain.take(sor::sequential::run(problem, |_| ()).sweep_seconds);
        one.take(rows(1)?);
        two.take(rows(2)?);
        one_array.take(arrays(1)?);
        two_arrays.take(arrays(2)?);
    }
    println!("SOR {size}x{size}, 20 steps, fastest of {REPETITIONS}");
    if in_c.0.is_finite() {
        let ratio = plain.0 / in_c.0;
        println!(
            "  sequential C           {:9.4} s   Rust takes {ratio:.3} of it",
            in_c.0
        );
    }
    compare(&plain, &one, &two);
    for (nodes, array, row) in [(1, one_array.0, one.0), (2, two_arrays.0, two.0)] {
        println!(
            "  over arrays, {nodes} node(s) {array:7.4} s   {:.3} of rows",
            array / row
        );
    }
    Ok(())
}

fn solve_barnes(bodies: usize) -> Result<(), RunError> {
    let problem = barnes::Problem::new(bodies, 10, 1);
    let shared = |nodes| -> Result<f64, RunError> {
        let run = Config::nodes(nodes).run(|w| barnes::shared::run(w, &problem, None, |_| ()))?;
        Ok(run.value.steps.as_secs_f64())
    };
    let [mut plain, mut one, mut two] = [(); 3].map(|()| Fastest::none());
    for _ in 0..REPETITIONS {
        plain.take(barnes::sequential::run(problem, |_| ()).step_seconds);
        one.take(shared(1)?);
        two.take(shared(2)?);
    }
    println!("Barnes-Hut, {bodies} bodies, 10 steps, fastest of {REPETITIONS}");
    compare(&plain, &one, &two);
    Ok(())
}

fn solve_water(program: Program, molecules: usize) -> Result<(), RunError> {
    let problem = water::Problem::new(molecules, 10, 1);
    let shared = |nodes| -> Result<f64, RunError> {
        let run = Config::nodes(nodes).run(|w| (program.shared)(w, &problem, None, &|_| ()))?;
        Ok(run.value.steps.as_secs_f64())
    };
    let [mut plain, mut one, mut two] = [(); 3].map(|()| Fastest::none());
    for _ in 0..REPETITIONS {
        plain.take((program.sequential)(problem, &|_| ()).step_seconds);
        one.take(shared(1)?);
        two.take(shared(2)?);
    }
    let name = program.name;
    println!("{name}, {molecules} molecules, 10 steps, fastest of {REPETITIONS}");
    compare(&plain, &one, &two);
    Ok(())
}

fn compare(plain: &Fastest, one: &Fastest, two: &Fastest) {
    println!("  sequential Rust        {:9.4} s", plain.0);
    println!(
        "  dhole, 1 node          {:9.4} s   {:.3} of Rust",
        one.0,
        one.0 / plain.0
    );
    println!(
        "  dhole, 2 nodes         {:9.4} s   speedup {:.2} over Rust",
        two.0,
        plain.0 / two.0
    );
}

/// SOR in C, compiled for the same instruction set as ours.
struct InC(PathBuf);

impl InC {
    /// Nothing where there is no C compiler.
    fn compile() -> Option<InC> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps/c/sor.c");
        let program = std::env::temp_dir().join(format!("dhole-bench-sor-{}", std::process::id()));
        let compiled = Command::new("cc")
            .args(["-O3", "-ffp-contract=off", "-o"])
            .args([&program, &source])
            .status();
        match compiled {
            Ok(status) if status.success() => Some(InC(program)),
            _ => {
                println!("no C compiler: without the C version");
                None
            }
        }
    }

    /// The seconds of its sweeps.
    fn run(&self, problem: &sor::Problem) -> Option<f64> {
        let sor::Problem {
            rows,
            columns,
            steps,
            ..
        } = *problem;
        let sizes = [rows, columns, steps].map(|size| size.to_string());
        let output = Command::new(&self.0).args(sizes).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut words = text
            .split_whitespace()
            .skip_while(|word| *word != "sweep_seconds");
        words.nth(1)?.parse().ok()
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        // A file that cannot be removed is left to whoever cleans that folder.
        let _ = std::fs::remove_file(&self.0);
    }
}
