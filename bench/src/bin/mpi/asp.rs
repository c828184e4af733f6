//! All shortest paths as one writes it with MPI: every so-manieth row on each process, and a
//! broadcast of row `k` in step `k`. The inner loop is that of dhole's program.

use std::time::Instant;

use apps::asp::{Graph, found, relax};
use mpi::traits::*;

use crate::Outcome;

/// Runs it and says how long it took, and what tells the distances from others.
pub fn run(vertices: usize) -> Outcome<()> {
    let universe = mpi::initialize().ok_or("MPI is there already")?;
    let world = universe.world();
    let (me, nodes) = (world.rank() as usize, world.size() as usize);
    let graph = Graph::made(vertices, 0);
    let mut rows = graph.rows(|row| row % nodes == me);
    let mut through = vec![0_u32; vertices];
    world.barrier();
    let begun = Instant::now();
    for vertex in 0..vertices {
        let root = vertex % nodes;
        if root == me {
            through.copy_from_slice(&rows[vertex / nodes].1);
        }
        world
            .process_at_rank(root as i32)
            .broadcast_into(&mut through[..]);
        for (_, row) in &mut rows {
            relax(row, vertex, &through);
        }
    }
    let mine = found(rows.iter().map(|(from, row)| (*from, row))).checksum;
    let mut all = 0_u64;
    world.all_reduce_into(&mine, &mut all, mpi::collective::SystemOperation::sum());
    world.barrier();
    let took = begun.elapsed().as_secs_f64();
    if me == 0 {
        println!("seconds {took} digest {all:016x}");
    }
    Ok(())
}
