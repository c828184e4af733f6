//! Builds the subtrees in a node's part of space.

use std::ops::Range;

use dhole::{Ref, Worker};

use super::objects::{Branch, Cell, Cube, Leaf, SHEAF, Sheaf, Universe};
use super::parts;
use crate::Body;
use crate::body::LEAF_BODIES;
use crate::moment::Moment;
use crate::place::{LEVELS, Place, cube_keys, octant_start, octants};
use apps_common::pool::Pool;

/// Where this node takes the objects of its trees from.
#[derive(Debug, Default)]
pub struct Grower {
    cells: Pool<Cell>,
    leaves: Pool<Leaf>,
    sheaves: Pool<Sheaf>,
}

impl Grower {
    /// The previous step's tree may be overwritten.
    pub fn reuse(&mut self) {
        self.cells.reuse();
        self.leaves.reuse();
        self.sheaves.reuse();
    }

    /// Builds the subtrees over `places`, the sorted places in `part`, and lists them and the
    /// node's cuts in its sheaves. `total` is the cost of all bodies of all nodes.
    pub fn grow_part(
        &mut self,
        w: &mut Worker<'_>,
        universe: &Universe,
        places: &[Place],
        part: Range<u64>,
        total: u64,
    ) {
        let mut branches = Vec::new();
        self.grow_branches(w, universe, places, &part, (0, 0), &mut branches);
        let priced: Vec<(Place, u64)> = places
            .iter()
            .map(|&place| (place, universe.bodies.at(place.body as usize).get(w).cost))
            .collect();
        let cuts = parts::cuts(&priced, part.start, total, w.nodes());
        let mut next = None;
        for index in (0..branches.len().max(cuts.len()).div_ceil(SHEAF).max(1)).rev() {
            let mut sheaf = Sheaf {
                next,
                ..Sheaf::default()
            };
            sheaf.branch_count = fill(&mut sheaf.branches, &branches, index);
            sheaf.cut_count = fill(&mut sheaf.cuts, &cuts, index);
            if index > 0 {
                next = Some(self.sheaves.take(w, sheaf));
            } else {
                *universe.sheaves.at(w.node().index()).get_mut(w) = sheaf;
            }
        }
    }

    /// Adds the branches of the cube at `(start, level)`: one if it lies in `part`, none if it
    /// lies outside, else those of its octants.
    fn grow_branches(
        &mut self,
        w: &mut Worker<'_>,
        universe: &Universe,
        places: &[Place],
        part: &Range<u64>,
        (start, level): (u64, u32),
        branches: &mut Vec<Branch>,
    ) {
        if places.is_empty() {
            return;
        }
        let keys = cube_keys(start, level);
        if part.start <= keys.start && keys.end <= part.end {
            let cube = self.grow(w, universe, places, level);
            branches.push(Branch {
                start,
                level,
                bodies: places.len() as u32,
                cube,
            });
            return;
        }
        for (octant, range) in octants(places, level).into_iter().enumerate() {
            let cube = (octant_start(start, level, octant), level + 1);
            self.grow_branches(w, universe, &places[range], part, cube, branches);
        }
    }

    /// The tree over sorted `places`, all of which lie in one cube at `level`.
    fn grow(
        &mut self,
        w: &mut Worker<'_>,
        universe: &Universe,
        places: &[Place],
        level: u32,
    ) -> Cube {
        if places.is_empty() {
            return Cube::default();
        }
        if places.len() <= LEAF_BODIES {
            let body = |place: &Place| universe.bodies.at(place.body as usize);
            return self.leaf(w, places.iter().map(body));
        }
        assert!(level < LEVELS, "no two bodies have the same place");
        let octants = octants(places, level);
        let grown = octants.map(|range| self.grow(w, universe, &places[range], level + 1));
        self.cell(w, grown)
    }

    /// A leaf of these bodies, given in the order of their places.
    pub fn leaf(
        &mut self,
        w: &mut Worker<'_>,
        bodies: impl Iterator<Item = Ref<Body>> + Clone,
    ) -> Cube {
        let moment = Moment::of_bodies(bodies.clone().map(|body| body.get(w)));
        let mut leaf = Leaf::default();
        for body in bodies {
            leaf.bodies[leaf.count as usize] = Some(body);
            leaf.count += 1;
        }
        Cube {
            moment,
            cell: None,
            leaf: Some(self.leaves.take(w, leaf)),
        }
    }

    /// A cell of these octants, some of which may be empty.
    pub fn cell(&mut self, w: &mut Worker<'_>, octants: [Cube; 8]) -> Cube {
        let mut cell = Cell::default();
        for cube in octants.into_iter().filter(|cube| cube.moment.mass > 0.0) {
            cell.cubes[cell.count as usize] = cube;
            cell.count += 1;
        }
        let moment = Moment::of(cell.cubes().iter().map(|cube| cube.moment));
        Cube {
            moment,
            cell: Some(self.cells.take(w, cell)),
            leaf: None,
        }
    }
}

/// Copies the `index`-th [`SHEAF`] of `all`, and returns how many they are.
fn fill<T: Copy>(sheaf: &mut [T; SHEAF], all: &[T], index: usize) -> u32 {
    let some = all.chunks(SHEAF).nth(index).unwrap_or(&[]);
    sheaf[..some.len()].copy_from_slice(some);
    some.len() as u32
}
