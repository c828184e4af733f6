//! All shortest paths as one writes it with MPI: every so-manieth row on each process, which sends
//! each to the others as soon as it is wanted next, and improves the rest of its rows meanwhile.
//! The inner loop is that of dhole's program.

use std::cell::OnceCell;
use std::time::Instant;

use apps::asp::{Graph, found, relax};
use mpi::request::Request;
use mpi::traits::*;

use bench::Outcome;

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
    let to_others = || {
        others
            .iter()
            .map(|node| world.process_at_rank(*node as i32))
    };
    if let Some((_, first)) = rows.first().filter(|_| me == 0) {
        to_others().for_each(|other| other.send(&first[..]));
    }
    // What is sent stays as it was until the row after it is sent, or longer.
    let sent: Vec<OnceCell<Vec<u32>>> = vec![OnceCell::new(); rows.len()];
    mpi::request::scope(|scope| {
        let mut under_way = Vec::new();
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
                let row = sent[place].get_or_init(|| rows[place].1.clone());
                let before = std::mem::take(&mut under_way);
                before.into_iter().for_each(Request::wait_without_status);
                under_way = to_others()
                    .map(|other| other.immediate_send(scope, &row[..]))
                    .collect();
            }
            for (place, (_, row)) in rows.iter_mut().enumerate() {
                if Some(place) != next {
                    relax(row, vertex, &through);
                }
            }
        }
        under_way.into_iter().for_each(Request::wait_without_status);
    });
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
