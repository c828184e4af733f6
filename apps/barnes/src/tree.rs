//! The tree of the sequential version: cells that own their children.

use super::Body;
use super::body::LEAF_BODIES;
use super::gravity::Target;
use super::moment::Moment;
use super::place::{LEVELS, Place, octants};

/// A cube with bodies in it: its moment, and its contents.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Cube {
    /// Mass, centre and cost of the bodies in it.
    pub moment: Moment,
    /// The bodies.
    pub inside: Inside,
}

/// The contents of a cube.
#[derive(Debug, Default)]
pub enum Inside {
    /// No body.
    #[default]
    Nothing,
    /// Up to [`Problem::leaf_bodies`](super::Problem) bodies.
    Leaf(Box<Leaf>),
    /// More bodies than that.
    Cell(Box<Cell>),
}

/// A cube with more bodies than a leaf may have, divided into its octants. Masses and centres of
/// the octants are here and not in the octants, so that those far away need not be touched.
#[derive(Debug)]
#[repr(C)]
pub struct Cell {
    /// How many octants have bodies.
    pub count: u32,
    /// These octants, in order.
    pub cubes: [Cube; 8],
}

/// A cube with few bodies.
#[derive(Debug)]
#[repr(C)]
pub struct Leaf {
    /// How many bodies there are.
    pub count: u32,
    /// The bodies' numbers, in the order of their places; those past `count` are 0.
    pub bodies: [u32; LEAF_BODIES],
}

impl Cube {
    /// The tree over sorted `places`, all of which lie in one cube at `level` (0 is the root), with
    /// up to `in_leaf` bodies in a leaf.
    ///
    /// # Panics
    /// When two places are equal.
    pub fn grow(bodies: &[Body], places: &[Place], level: u32, in_leaf: usize) -> Cube {
        if places.len() <= in_leaf {
            let leaf = Leaf::new(places);
            let moment = Moment::of_bodies(leaf.bodies().iter().map(|&b| &bodies[b as usize]));
            return Cube {
                moment,
                inside: Inside::Leaf(Box::new(leaf)),
            };
        }
        assert!(level < LEVELS, "no two bodies have the same place");
        let mut cell = Box::new(Cell {
            count: 0,
            cubes: Default::default(),
        });
        for range in octants(places, level) {
            if !range.is_empty() {
                let cube = Cube::grow(bodies, &places[range], level + 1, in_leaf);
                cell.cubes[cell.count as usize] = cube;
                cell.count += 1;
            }
        }
        let moment = Moment::of(cell.cubes().iter().map(|cube| cube.moment));
        Cube {
            moment,
            inside: Inside::Cell(cell),
        }
    }

    /// Adds to the pull on `body`, which is at `target`, that of the bodies in this cube, whose
    /// side squared is `side_squared` (SPLASH-2's `walksub`).
    #[inline]
    pub fn walk(&self, bodies: &[Body], body: u32, target: &mut Target, side_squared: f64) {
        let reach = target.reach(self.moment.pos);
        if !target.opens(reach.1, side_squared) {
            return target.add(reach, self.moment.mass);
        }
        match &self.inside {
            Inside::Nothing => (),
            Inside::Leaf(leaf) => leaf.walk(bodies, body, target),
            Inside::Cell(cell) => cell.walk(bodies, body, target, 0.25 * side_squared),
        }
    }
}

impl Cell {
    /// The octants that have bodies, in order.
    #[inline]
    pub fn cubes(&self) -> &[Cube] {
        &self.cubes[..self.count as usize]
    }

    /// Adds the pull of the octants of an opened cell. A call for each opened cell, none for the
    /// many that are taken as one mass.
    #[inline(never)]
    fn walk(&self, bodies: &[Body], body: u32, target: &mut Target, side_squared: f64) {
        for cube in self.cubes() {
            cube.walk(bodies, body, target, side_squared);
        }
    }
}

impl Leaf {
    fn new(places: &[Place]) -> Leaf {
        let mut bodies = [0; LEAF_BODIES];
        for (slot, place) in bodies.iter_mut().zip(places) {
            *slot = place.body;
        }
        Leaf {
            count: places.len() as u32,
            bodies,
        }
    }

    /// The bodies' numbers.
    #[inline]
    pub fn bodies(&self) -> &[u32] {
        &self.bodies[..self.count as usize]
    }

    /// Adds the pull of the bodies in an opened leaf, `body` itself left out.
    #[inline]
    fn walk(&self, bodies: &[Body], body: u32, target: &mut Target) {
        for &other in self.bodies() {
            if other != body {
                let Body { pos, mass, .. } = bodies[other as usize];
                target.add(target.reach(pos), mass);
            }
        }
    }
}
