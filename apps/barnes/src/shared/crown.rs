//! The top tree, node 0's part of a step: the cells above the branches of all nodes, and the next
//! division of space.

use dhole::{Ref, Worker};

use super::grow::Grower;
use super::objects::{Branch, Cube, Cut, Universe};
use super::parts;
use crate::Body;
use crate::body::LEAF_BODIES;
use crate::place::{cube_keys, octant_start};

/// Joins the branches of all nodes to one tree, and writes down the next division of space.
/// Only node 0 calls it.
pub fn join(w: &mut Worker<'_>, universe: &Universe, grower: &mut Grower) -> Cube {
    let (branches, cuts) = gather(w, universe);
    let nodes = w.nodes();
    universe.parts.get_mut(w)[..nodes - 1].copy_from_slice(&parts::divide(&cuts, nodes));
    crown(w, grower, &branches, (0, 0))
}

/// The branches and cuts of all nodes, in the order of keys.
fn gather(w: &Worker<'_>, universe: &Universe) -> (Vec<Branch>, Vec<Cut>) {
    let (mut branches, mut cuts) = (Vec::new(), Vec::new());
    for first in universe.sheaves.iter() {
        let mut next = Some(first);
        while let Some(sheaf) = next {
            let sheaf = sheaf.get(w);
            branches.extend_from_slice(&sheaf.branches[..sheaf.branch_count as usize]);
            cuts.extend_from_slice(&sheaf.cuts[..sheaf.cut_count as usize]);
            next = sheaf.next;
        }
    }
    (branches, cuts)
}

/// The tree over the cube at `(start, level)`, in which these branches lie.
fn crown(
    w: &mut Worker<'_>,
    grower: &mut Grower,
    branches: &[Branch],
    (start, level): (u64, u32),
) -> Cube {
    match branches {
        [] => return Cube::default(),
        // The cube itself, or a leaf that is all there is in it.
        [one] if one.level == level || one.bodies as usize <= LEAF_BODIES => {
            return one.cube;
        }
        _ => (),
    }
    let bodies: u32 = branches.iter().map(|branch| branch.bodies).sum();
    if bodies as usize <= LEAF_BODIES {
        let leaves = branches.iter().filter_map(|branch| branch.cube.leaf);
        let bodies: Vec<Ref<Body>> = leaves.flat_map(|leaf| leaf.get(w).bodies()).collect();
        return grower.leaf(w, bodies.iter().copied());
    }
    let octants = std::array::from_fn(|octant| {
        let start = octant_start(start, level, octant);
        let keys = cube_keys(start, level + 1);
        let first = branches.partition_point(|branch| branch.start < keys.start);
        let last = branches.partition_point(|branch| branch.start < keys.end);
        crown(w, grower, &branches[first..last], (start, level + 1))
    });
    grower.cell(w, octants)
}
