//! Builds the tree on one node (SPLASH's `maketree` and `hackcofm`).

use dhole::{Refs, Worker};

use super::objects::{Cell, Inside, Kid, Universe};
use crate::moment::Moment;
use crate::place::{LEVELS, Place, Root};

/// Builds the tree of each step on node 0.
#[derive(Debug)]
pub struct Grower {
    cells: Refs<Cell>,
}

impl Grower {
    /// A grower that writes into these cells as long as they are enough.
    pub fn new(cells: Refs<Cell>) -> Grower {
        Grower { cells }
    }

    /// Puts one body after the other into the tree, then computes what the cells are to a body far
    /// away, and writes all cells in the order in which they were made.
    ///
    /// # Errors
    /// Those of the runtime.
    pub fn grow(
        &mut self,
        w: &mut Worker<'_>,
        universe: &Universe,
        root: Root,
    ) -> dhole::Result<Refs<Cell>> {
        let (mut places, mut moments) = (Vec::new(), Vec::new());
        let mut kids = vec![[Kid::default(); 8]];
        for number in 0..universe.bodies.len() as u32 {
            let body = universe.body(w, number);
            moments.push(Moment::of_body(body));
            places.push(Place {
                key: root.key(body.pos),
                body: number,
            });
            insert(&mut kids, &places, number);
        }
        if kids.len() > self.cells.len() {
            w.free(self.cells)?;
            self.cells = w.alloc_range(2 * kids.len(), |_| Cell::default());
        }
        let moments = of_cells(&kids, &moments);
        for (cell, (kids, moment)) in self.cells.iter().zip(kids.into_iter().zip(moments)) {
            *cell.get_mut(w) = Cell { moment, kids };
        }
        Ok(self.cells)
    }
}

/// Puts the body of this number into the tree, with a new cell for each level at which it is
/// together with another one alone.
fn insert(cells: &mut Vec<[Kid; 8]>, places: &[Place], number: u32) {
    let place = places[number as usize];
    let mut cell = 0;
    for level in 0..LEVELS {
        let octant = place.octant(level);
        cell = match cells[cell][octant].inside() {
            Inside::Nothing => {
                cells[cell][octant] = Kid::body(number);
                return;
            }
            Inside::Cell(next) => next as usize,
            Inside::Body(other) => {
                let next = cells.len();
                cells[cell][octant] = Kid::cell(next as u32);
                let mut kids = [Kid::default(); 8];
                kids[places[other as usize].octant(level + 1)] = Kid::body(other);
                cells.push(kids);
                next
            }
        };
    }
    unreachable!("no two bodies have the same place");
}

/// The moments of the cells. Each comes before those in it.
fn of_cells(cells: &[[Kid; 8]], bodies: &[Moment]) -> Vec<Moment> {
    let mut moments = vec![Moment::default(); cells.len()];
    for (number, kids) in cells.iter().enumerate().rev() {
        let of_kid = |kid: &Kid| match kid.inside() {
            Inside::Nothing => None,
            Inside::Body(body) => Some(bodies[body as usize]),
            Inside::Cell(cell) => Some(moments[cell as usize]),
        };
        moments[number] = Moment::of(kids.iter().filter_map(of_kid));
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Problem, initial};

    #[test]
    fn a_tree_whose_leaves_are_bodies_has_half_as_many_cells() {
        let bodies = initial::bodies(&Problem::new(20_000, 1, 3));
        let root = Root::around(100.0);
        let mut cells = vec![[Kid::default(); 8]];
        let mut places = Vec::new();
        for (body, number) in bodies.iter().zip(0..) {
            places.push(Place {
                key: root.key(body.pos),
                body: number,
            });
            insert(&mut cells, &places, number);
        }
        let per_body = cells.len() as f64 / bodies.len() as f64;
        assert!(
            (0.46..0.50).contains(&per_body),
            "{per_body}: 1 / ln 8 is 0.481"
        );
        let moments: Vec<Moment> = bodies.iter().map(Moment::of_body).collect();
        let root = of_cells(&cells, &moments)[0];
        assert!(
            (root.mass - 1.0).abs() < 1e-9 && root.cost == 20_000,
            "{root:?}"
        );
    }
}
