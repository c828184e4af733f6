//! Cost zones (SPLASH's `find_my_bodies`): each node takes an equal share of the cost, in the order
//! of the tree.

use std::ops::Range;

use dhole::{Refs, Worker};

use super::objects::{Cell, Inside, Universe};
use crate::shared::parts::share;

/// The bodies of this node's zone of the tree, in the order of the tree.
pub fn find(w: &Worker<'_>, universe: &Universe, cells: Refs<Cell>) -> Vec<u32> {
    let (node, nodes) = (w.node().index(), w.nodes());
    let root = cells.at(0).get(w);
    let cost = root.moment.cost;
    let mut finder = Finder {
        w,
        universe,
        cells,
        zone: share(cost, node, nodes)..share(cost, node + 1, nodes),
        before: 0,
        bodies: Vec::new(),
    };
    finder.search(root);
    finder.bodies
}

struct Finder<'a, 'id> {
    w: &'a Worker<'id>,
    universe: &'a Universe,
    cells: Refs<Cell>,
    /// The zone: a body is in it if what comes before the body costs this much.
    zone: Range<u64>,
    /// The cost of all bodies before the one that is looked at.
    before: u64,
    bodies: Vec<u32>,
}

impl Finder<'_, '_> {
    /// Looks into a cell, up to the zone's end.
    fn search(&mut self, cell: &Cell) {
        for kid in cell.kids {
            if self.before >= self.zone.end {
                return;
            }
            match kid.inside() {
                Inside::Nothing => (),
                Inside::Body(body) => {
                    if self.zone.contains(&self.before) {
                        self.bodies.push(body);
                    }
                    self.before += self.universe.body(self.w, body).cost;
                }
                Inside::Cell(number) => {
                    let cell = self.cells.at(number as usize).get(self.w);
                    match self.before + cell.moment.cost <= self.zone.start {
                        true => self.before += cell.moment.cost,
                        false => self.search(cell),
                    }
                }
            }
        }
    }
}
