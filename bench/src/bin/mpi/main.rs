//! dhole beside Open MPI and programs written by hand with it: ports against raw messages, a
//! barrier against a barrier, and SOR, shortest paths, the salesman and Barnes-Hut on two
//! processes.
//!
//! Alone this starts all that is to be measured, in turn: itself under `mpirun -n 2 --bind-to
//! core`, and dhole's programs under `dhole run`, which must be built (`cargo build --release`).
#![forbid(unsafe_code)]

mod asp;
mod barnes;
mod floors;
mod programs;
mod sor;
mod tsp;

use bench::Outcome;

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
        ["as-barnes", bodies, steps, untimed] => {
            barnes::run(bodies.parse()?, steps.parse()?, untimed.parse()?)
        }
        [] => programs::measure("all"),
        ["barnes", "--untimed", untimed] => programs::barnes(untimed.parse()?),
        [what] => programs::measure(what),
        _ => Err("mpi [floors|barrier|sor|asp|tsp|barnes [--untimed N]|crowd]".into()),
    }
}
