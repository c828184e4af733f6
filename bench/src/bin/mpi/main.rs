//! dhole beside Open MPI and programs written by hand with it: ports against raw messages, a
//! barrier against a barrier, and SOR, shortest paths and the salesman on two processes.
//!
//! Alone this starts all that is to be measured, in turn: itself under `mpirun -n 2 --bind-to
//! core`, and dhole's programs under `dhole run`, which must be built (`cargo build --release`).
#![forbid(unsafe_code)]

mod asp;
mod floors;
mod programs;
mod sor;
mod tsp;

use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["as-floors", what] => floors::measure(what),
        ["as-sor", rows, columns, steps] => {
            sor::run(rows.parse()?, columns.parse()?, steps.parse()?)
        }
        ["as-asp", vertices] => asp::run(vertices.parse()?),
        ["as-tsp", file] => tsp::run(file),
        [] => programs::measure("all"),
        [what] => programs::measure(what),
        _ => Err("mpi [floors|barrier|sor|asp|tsp|crowd]".into()),
    }
}

/// The best and the middle of some rounds.
fn summary(mut rounds: Vec<f64>) -> (f64, f64) {
    rounds.sort_by(f64::total_cmp);
    match rounds.first() {
        Some(best) => (*best, rounds[rounds.len() / 2]),
        None => (f64::NAN, f64::NAN),
    }
}

fn row(name: &str, unit: &str, rounds: Vec<f64>) -> (f64, f64) {
    let (best, middle) = summary(rounds);
    println!("{name:<52} {best:>10.4} {middle:>10.4} {unit}");
    (best, middle)
}

fn ratio(name: &str, of: (f64, f64), to: (f64, f64), goal: &str) {
    let (best, middle) = (of.0 / to.0, of.1 / to.1);
    println!("  {name:<50} {best:>10.3} {middle:>10.3} asked {goal}");
}
