//! The inner loop: the pull of all others on one body, by a walk through shared cells.

use dhole::{Access, Refs};

use super::objects::{Cell, Inside, Universe};
use crate::gravity::Target;

/// A walk for one body.
#[derive(Clone, Copy)]
pub struct Walk<'a, W> {
    /// The node's worker, or a pass.
    pub w: &'a W,
    /// Where bodies are.
    pub universe: &'a Universe,
    /// Where cells are.
    pub cells: Refs<Cell>,
    /// The number of the body that is pulled.
    pub body: u32,
}

impl<'a, 'id: 'a, W: Access<'id>> Walk<'a, W> {
    /// Adds to the pull on `target` that of the bodies in a cell, whose side squared is
    /// `side_squared` (SPLASH's `walksub`). What a cell is to a body far away stands in the cell.
    #[inline(always)]
    pub fn cell(&self, number: u32, target: &mut Target, side_squared: f64) {
        let cell = self.cells.at(number as usize).get(self.w);
        let reach = target.reach(cell.moment.pos);
        match target.opens(reach.1, side_squared) {
            true => self.open(cell, target, 0.25 * side_squared),
            false => target.add(reach, cell.moment.mass),
        }
    }

    #[inline(never)]
    fn open(&self, cell: &Cell, target: &mut Target, side_squared: f64) {
        for kid in cell.kids {
            match kid.inside() {
                Inside::Cell(number) => self.cell(number, target, side_squared),
                Inside::Body(number) if number != self.body => {
                    let body = self.universe.body(self.w, number);
                    target.add(target.reach(body.pos), body.mass);
                }
                _ => (),
            }
        }
    }
}
