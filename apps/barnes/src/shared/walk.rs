//! The inner loop: the pull of all others on one body, by a walk through shared cells. Nothing
//! is copied: references to cells, leaves and bodies live for as long as the worker only reads.

use dhole::{Access, Ref};

use super::objects::{Cell, Cube, Leaf};
use crate::Body;
use crate::gravity::Target;

/// A walk for one body.
#[derive(Clone, Copy)]
pub struct Walk<'a, W> {
    /// The node's worker, or a pass.
    pub w: &'a W,
    /// The body that is pulled.
    pub body: Ref<Body>,
}

impl<'a, 'id: 'a, W: Access<'id>> Walk<'a, W> {
    /// Adds to the pull on `target` that of the bodies in `cube`, whose side squared is
    /// `side_squared`.
    #[inline(always)]
    pub fn cube(&self, cube: &Cube, target: &mut Target, side_squared: f64) {
        let reach = target.reach(cube.moment.pos);
        if !target.opens(reach.1, side_squared) {
            return target.add(reach, cube.moment.mass);
        }
        if let Some(cell) = cube.cell {
            self.cell(cell.get(self.w), target, 0.25 * side_squared);
        } else if let Some(leaf) = cube.leaf {
            self.leaf(leaf.get(self.w), target);
        }
    }

    /// A call for each opened cell, none for the many that are taken as one mass.
    #[inline(never)]
    fn cell(&self, cell: &Cell, target: &mut Target, side_squared: f64) {
        for cube in cell.cubes() {
            self.cube(cube, target, side_squared);
        }
    }

    #[inline(always)]
    fn leaf(&self, leaf: &Leaf, target: &mut Target) {
        for other in leaf.bodies() {
            if other != self.body {
                let &Body { pos, mass, .. } = other.get(self.w);
                target.add(target.reach(pos), mass);
            }
        }
    }
}
