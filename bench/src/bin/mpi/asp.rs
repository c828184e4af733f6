//! All shortest paths as one writes it with MPI: every so-manieth row on each process, which sends
//! each to the others as soon as it is wanted next, and improves the rest of its rows meanwhile.
//! The inner loop is that of dhole's program.

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
    let others: Vec<_> = (0..nodes).filter(|node| *node != me).collect();
    let others = || {
        others
            .iter()
            .map(|node| world.process_at_rank(*node as i32))
    };
    if me == 0 {
        others().for_each(|other| other.send(&rows[0].1[..]));
    }
    let mut outgoing = vec![0_u32; vertices];
    for vertex in 0..vertices {
        let root = vertex % nodes;
        match root == me {
            true => through.copy_from_slice(&rows[vertex / nodes].1),
            false => {
                let from = world.process_at_rank(root as i32);
                from.receive_into(&mut through[..]);
            }
        }
        let next = Some((vertex + 1) / nodes);
        let next = next.filter(|place| (vertex + 1) % nodes == me && *place < rows.len());
        if let Some(place) = next {
            relax(&mut rows[place].1, vertex, &through);
            outgoing.copy_from_slice(&rows[place].1);
        }
        mpi::request::scope(|scope| {
            let send = |to: mpi::topology::Process<'_>| to.immediate_send(scope, &outgoing[..]);
            let sends: Vec<_> = next.map_or(Vec::new(), |_| others().map(send).collect());
            for (place, (_, row)) in rows.iter_mut().enumerate() {
                if Some(place) != next {
                    relax(row, vertex, &through);
                }
            }
            sends
                .into_iter()
                .for_each(|send| send.wait_without_status());
        });
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
