//! Shortest paths between all places of a map (Floyd, Warshall). Each node keeps some rows of the
//! table. In each step all nodes read one row, which its node has just written: fetched, or
//! propagated before they ask.

use dhole::{Config, NodeId, Report, RunError};

const PLACES: usize = 48;
const NODES: usize = 4;

/// The length of the road from one place to another; most have none.
fn road(from: usize, to: usize) -> u32 {
    match (from * 7 + to * 13) % 11 {
        _ if from == to => 0,
        0 => 1 + (from + 3 * to) as u32 % 9,
        _ => 1_000,
    }
}

/// A row of the table after a step: paths by way of the place of `by` may be shorter.
fn step(row: &mut [u32], by: &[u32], place: usize) {
    let there = row[place];
    for (length, on) in row.iter_mut().zip(by) {
        *length = (*length).min(there + on);
    }
}

fn table() -> Vec<Vec<u32>> {
    let row = |from| (0..PLACES).map(move |to| road(from, to)).collect();
    (0..PLACES).map(row).collect()
}

/// The node that keeps a row.
fn owner(row: usize) -> NodeId {
    NodeId::at(row % NODES)
}

fn paths(propagates: bool) -> Result<(Vec<Vec<u32>>, Report), RunError> {
    let run = Config::nodes(NODES).one_sided(false).run(|w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<u32>(PLACES, PLACES)))?;
        let me = w.node();
        let others: Vec<NodeId> = (0..w.nodes())
            .map(NodeId::at)
            .filter(|it| *it != me)
            .collect();
        let own = || (0..PLACES).filter(|row| owner(*row) == me);
        for (row, lengths) in own().zip(own().map(|row| table().swap_remove(row))) {
            rows.row(row).get_mut(w).copy_from_slice(&lengths);
        }
        for place in 0..=PLACES {
            // What comes next goes to all with the barrier.
            if propagates && place < PLACES && owner(place) == me {
                w.propagate(rows.row(place), &others)?;
            }
            w.barrier()?;
            if place < PLACES {
                let by = rows.row(place).get(w).to_vec();
                for row in own() {
                    step(rows.row(row).get_mut(w), &by, place);
                }
            }
        }
        // Node 0 has what is returned.
        let seen = if me == NodeId(0) { 0..PLACES } else { 0..0 };
        Ok(seen.map(|row| rows.row(row).get(w).to_vec()).collect())
    })?;
    Ok((run.value, run.report))
}

fn main() -> Result<(), RunError> {
    let mut alone = table();
    for place in 0..PLACES {
        let by = alone[place].clone();
        alone.iter_mut().for_each(|row| step(row, &by, place));
    }
    for propagates in [false, true] {
        let (paths, report) = paths(propagates)?;
        assert_eq!(paths, alone);
        let total = report.total();
        println!(
            "{}: {} rows fetched, {} pushed, {} of these read",
            if propagates { "propagated" } else { "fetched" },
            total.misses,
            total.pushes,
            total.pushes_read
        );
    }
    Ok(())
}
