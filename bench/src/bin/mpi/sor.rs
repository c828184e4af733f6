//! SOR as one writes it with MPI: each process has a band of rows, and sends the rows at its edges
//! to its neighbours after each half-sweep. The inner loop is that of dhole's programs.

use std::time::Instant;

use apps::sor::{Colour, Problem, relax};
use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use bench::Outcome;

/// The rows of one colour that a process has, those of its neighbours beside them.
type Band = Vec<Vec<f64>>;

/// Runs it and says how long it took, and what tells the grid from others.
pub fn run(rows: usize, columns: usize, steps: usize) -> Outcome<()> {
    let universe = mpi::initialize().ok_or("MPI is there already")?;
    let world = universe.world();
    let (me, nodes) = (world.rank() as usize, world.size() as usize);
    let problem = Problem {
        rows,
        columns,
        steps,
        seed: 0,
        omega: 1.0,
        setup_measured: false,
        edges_first: false,
    };
    let band = problem.band(me, nodes);
    let first = band.start - 1;
    let mut colours = Colour::BOTH.map(|colour| -> Band {
        let filled = |row| {
            let mut values = vec![0.0; problem.row_len()];
            problem.fill(colour, row, &mut values);
            values
        };
        (first..=band.end).map(filled).collect()
    });
    world.barrier();
    let begun = Instant::now();
    for _ in 0..steps {
        for colour in Colour::BOTH {
            let [red, black] = &mut colours;
            let (out, read) = match colour {
                Colour::Red => (red, &*black),
                Colour::Black => (black, &*red),
            };
            for row in band.clone() {
                let at = row - first;
                let neighbours = [&read[at - 1][..], &read[at + 1], &read[at]];
                let which = colour.columns(row);
                relax(&mut out[at], neighbours, which, columns, problem.omega);
            }
            exchange(&world, out);
        }
    }
    world.barrier();
    let took = begun.elapsed().as_secs_f64();
    let digest = band.clone().fold(0_u64, |sum, row| {
        let of =
            |(colour, values): (Colour, &Band)| problem.digest(colour, row, &values[row - first]);
        let both = Colour::BOTH.into_iter().zip(&colours).map(of);
        both.fold(sum, u64::wrapping_add)
    });
    let mut all = 0_u64;
    world.all_reduce_into(&digest, &mut all, mpi::collective::SystemOperation::sum());
    if me == 0 {
        println!("seconds {took} digest {all:016x}");
    }
    Ok(())
}

/// Sends the rows at the edges, and receives those of the neighbours.
fn exchange(world: &SimpleCommunicator, rows: &mut Band) {
    let (me, nodes, last) = (world.rank(), world.size(), rows.len() - 1);
    if me + 1 < nodes {
        let next = world.process_at_rank(me + 1);
        let (mine, theirs) = rows.split_at_mut(last);
        send_receive_into(&mine[last - 1][..], &next, &mut theirs[0][..], &next);
    }
    if me > 0 {
        let before = world.process_at_rank(me - 1);
        let (theirs, mine) = rows.split_at_mut(1);
        send_receive_into(&mine[0][..], &before, &mut theirs[0][..], &before);
    }
}
