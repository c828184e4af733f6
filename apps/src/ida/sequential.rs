//! Iterative deepening alone.

use super::search::{Job, Seen, UNITS};
use super::{Found, Position};

/// The fewest moves, and the units of work that it took to find them.
pub fn solve(position: &Position) -> (Found, u64) {
    let mut bound = position.distance();
    let mut nodes_expanded = 0;
    loop {
        let mut seen = Seen::default();
        seen.look(Job::first(*position), bound);
        nodes_expanded += seen.expanded;
        if seen.solutions > 0 {
            let found = Found {
                moves: bound,
                solutions: seen.solutions,
                nodes_expanded,
            };
            return (found, nodes_expanded * UNITS);
        }
        bound = seen.next;
    }
}
