//! Cost zones (Singh 1993; SPLASH-2's `find_my_bodies`): each node takes an equal share of the
//! cost, in the order of the tree.

use std::ops::Range;

use dhole::Worker;

use super::objects::{Cube, Universe};
use super::parts::share;

/// The bodies of this node's zone of `tree`, in the order of the tree.
pub fn find(w: &Worker<'_>, universe: &Universe, tree: &Cube) -> Vec<u32> {
    let (node, nodes) = (w.node().index(), w.nodes());
    let cost = tree.moment.cost;
    let mut finder = Finder {
        w,
        universe,
        zone: share(cost, node, nodes)..share(cost, node + 1, nodes),
        before: 0,
        bodies: Vec::new(),
    };
    finder.search(tree);
    finder.bodies
}

struct Finder<'a, 'id> {
    w: &'a Worker<'id>,
    universe: &'a Universe,
    /// The zone: a body is in it if what comes before the body costs this much.
    zone: Range<u64>,
    /// The cost of all bodies before the one that is looked at.
    before: u64,
    bodies: Vec<u32>,
}

impl Finder<'_, '_> {
    fn search(&mut self, cube: &Cube) {
        let after = self.before + cube.moment.cost;
        if after <= self.zone.start || self.before >= self.zone.end {
            self.before = after;
        } else if let Some(cell) = cube.cell {
            cell.get(self.w)
                .cubes()
                .iter()
                .for_each(|cube| self.search(cube));
        } else if let Some(leaf) = cube.leaf {
            let leaf = leaf.get(self.w);
            if self.zone.start <= self.before && after <= self.zone.end {
                let numbers = leaf.bodies().map(|body| self.universe.number(body));
                self.bodies.extend(numbers);
                self.before = after;
                return;
            }
            for body in leaf.bodies() {
                if self.zone.contains(&self.before) {
                    self.bodies.push(self.universe.number(body));
                }
                let cost = body.get(self.w).cost;
                self.before += cost;
            }
        }
    }
}
