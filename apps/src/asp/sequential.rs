//! Floyd's algorithm alone.

use super::kernel::{found, relax};
use super::{Found, Graph};

/// All shortest paths, and the units of work that they took.
pub fn solve(graph: &Graph) -> (Found, u64) {
    let mut rows: Vec<Vec<u32>> = graph
        .rows(|_| true)
        .into_iter()
        .map(|(_, row)| row)
        .collect();
    for vertex in 0..graph.vertices {
        let through = rows[vertex].clone();
        for row in &mut rows {
            relax(row, vertex, &through);
        }
    }
    let units = (graph.vertices as u64).pow(3);
    (found(rows.iter().enumerate()), units)
}
