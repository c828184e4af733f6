//! The shared objects, and the references between them.

use dhole::{Ref, Refs, Row, Share};

use crate::Body;
use crate::body::LEAF_BODIES;
use crate::leapfrog::Energy;
use crate::moment::Moment;

/// A cube with bodies in it: its moment, and its contents.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Cube {
    /// Mass, centre and cost of the bodies in it.
    pub moment: Moment,
    /// More bodies than a leaf may hold,
    pub cell: Option<Ref<Cell>>,
    /// or not.
    pub leaf: Option<Ref<Leaf>>,
}

/// A cube with more than [`LEAF_BODIES`] bodies, divided into its octants. Masses and centres of
/// the octants are here and not in the octants, so that those far away need not be fetched.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Cell {
    /// How many octants have bodies.
    pub count: u32,
    /// These octants, in order.
    pub cubes: [Cube; 8],
}

impl Cell {
    /// The octants that have bodies, in order.
    #[inline]
    pub fn cubes(&self) -> &[Cube] {
        &self.cubes[..self.count as usize]
    }
}

/// A cube with few bodies.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Leaf {
    /// How many bodies there are.
    pub count: u32,
    /// The bodies, in the order of their places; there are none past `count`.
    pub bodies: [Option<Ref<Body>>; LEAF_BODIES],
}

impl Leaf {
    /// The bodies.
    #[inline]
    pub fn bodies(&self) -> impl Iterator<Item = Ref<Body>> {
        self.bodies[..self.count as usize].iter().copied().flatten()
    }
}

/// Bodies in a [`Parcel`].
pub const PARCEL: usize = 31;

/// Some bodies that are handed on to a node; the others follow.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Parcel {
    /// The next parcel for that node.
    pub next: Option<Ref<Parcel>>,
    /// The bodies; those that there are come first.
    pub bodies: [Option<Ref<Body>>; PARCEL],
}

/// Where bodies wait for the node whose part of space they have come to, under the lock of that
/// node's number.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Inbox {
    /// The first parcel.
    pub head: Option<Ref<Parcel>>,
}

/// A subtree that one node built, over a cube that lies wholly in that node's part of space.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Branch {
    /// The first key of the cube.
    pub start: u64,
    /// The level of the cube; the root is 0.
    pub level: u32,
    /// How many bodies are in it, at least 1.
    pub bodies: u32,
    /// The subtree.
    pub cube: Cube,
}

/// Keys from which on a node's bodies cost so much, up to the next cut.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Cut {
    /// The first key.
    pub start: u64,
    /// The cost of the bodies, in interactions.
    pub cost: u64,
}

/// Branches and cuts in a [`Sheaf`].
pub const SHEAF: usize = 16;

/// Some of a node's branches and cuts, in the order of keys; the others follow.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Sheaf {
    /// The next sheaf of the node.
    pub next: Option<Ref<Sheaf>>,
    /// How many of `branches` there are.
    pub branch_count: u32,
    /// How many of `cuts` there are.
    pub cut_count: u32,
    /// The branches.
    pub branches: [Branch; SHEAF],
    /// The cuts.
    pub cuts: [Cut; SHEAF],
}

/// A node's report to the others at the end of a step.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Tally {
    /// The largest coordinate of its bodies, without sign.
    pub extent: f64,
    /// The energy of its bodies.
    pub energy: Energy,
    /// Interactions in this step.
    pub interactions: u64,
    /// The expected cost of its bodies in the next step, in interactions.
    pub cost: u64,
    /// The largest difference of a coordinate of its bodies from what is expected.
    pub max_error: f64,
}

impl Tally {
    /// Counts what another node told.
    pub fn add(&mut self, other: &Tally) {
        self.extent = self.extent.max(other.extent);
        self.energy.add(&other.energy);
        self.interactions += other.interactions;
        self.cost += other.cost;
        self.max_error = self.max_error.max(other.max_error);
    }
}

/// The roots of the shared data: what every node knows from the start.
#[derive(Share, Clone, Copy, Debug)]
pub struct Universe {
    /// The bodies, by their numbers.
    pub bodies: Refs<Body>,
    /// For each node, the bodies handed on to it.
    pub inboxes: Refs<Inbox>,
    /// For each node, the first of its sheaves.
    pub sheaves: Refs<Sheaf>,
    /// For each node, its tally.
    pub tallies: Refs<Tally>,
    /// The first keys of the parts of space of nodes 1, 2, ...
    pub parts: Row<u64>,
    /// The largest coordinate of all bodies at the start.
    pub extent: f64,
}

impl Universe {
    /// The number of a body.
    #[inline]
    pub fn number(&self, body: Ref<Body>) -> u32 {
        (body.oid().0 - self.bodies.at(0).oid().0) as u32
    }
}
