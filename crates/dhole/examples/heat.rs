//! Heat in a rod, as a program over MPI has it: each node keeps a part of the rod, and in each step
//! exchanges the numbers at its ends with its neighbours. Node 0 compares the result with that of
//! one node alone.

use dhole::mailbox::Mailboxes;
use dhole::{Config, NodeId};

const CELLS: usize = 120;
const STEPS: usize = 300;

/// One step of the cells between the first and the last one, which stay.
fn step(cells: &[f64]) -> Vec<f64> {
    let inner = cells
        .windows(3)
        .map(|it| it[1] + 0.25 * (it[0] - 2.0 * it[1] + it[2]));
    inner.collect()
}

/// The rod in the beginning: hot at its left end.
fn rod() -> Vec<f64> {
    (0..CELLS)
        .map(|cell| if cell == 0 { 100.0 } else { 0.0 })
        .collect()
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(3).run(|w| {
        let mail = w.once(|w| Ok(Mailboxes::<f64>::new(w)?))?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let (first, end) = (CELLS * me / nodes, CELLS * (me + 1) / nodes);
        let mut cells = rod()[first..end].to_vec();
        let left = (me > 0).then(|| NodeId::at(me - 1));
        let right = (me + 1 < nodes).then(|| NodeId::at(me + 1));
        for _ in 0..STEPS {
            // MPI_Isend to both neighbours: a send goes on at once.
            for (to, cell) in [(left, cells[0]), (right, cells[cells.len() - 1])] {
                if let Some(to) = to {
                    mail.send(w, to, cell)?;
                }
            }
            // MPI_Recv from both.
            let mut with_ends = Vec::with_capacity(cells.len() + 2);
            with_ends.extend(left.map(|left| mail.recv_from(w, left)).transpose()?);
            with_ends.extend(&cells);
            with_ends.extend(right.map(|right| mail.recv_from(w, right)).transpose()?);
            let new = step(&with_ends);
            // The ends of the rod stay.
            let at = usize::from(left.is_none());
            cells[at..at + new.len()].copy_from_slice(&new);
        }
        // MPI_Gather at node 0.
        let parts = w.gather(cells)?;
        Ok(parts.map(|parts| parts.concat()))
    })?;
    let Some(parallel) = run.value else {
        return Ok(()); // another process than that of node 0
    };
    let mut alone = rod();
    for _ in 0..STEPS {
        let new = step(&alone);
        alone[1..CELLS - 1].copy_from_slice(&new);
    }
    assert_eq!(parallel, alone, "equal to the bit");
    println!(
        "after {STEPS} steps cell 10 has {:.3} degrees",
        parallel[10]
    );
    Ok(())
}
