//! The trees of the benchmark: four kinds, whose parameters have the benchmark's letters.

use std::f64::consts::PI;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// No node but the root of a binomial tree has more children.
const MOST_CHILDREN: u32 = 100;

/// Units of work to make a node.
pub(super) const UNITS: u64 = 120;

/// How the expected number of children of a geometric tree goes with the depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// It falls evenly, to 0 at the depth `d`.
    Linear,
    /// It falls exponentially.
    Exponential,
    /// It rises and falls.
    Cyclic,
    /// It is the same down to the depth `d`.
    Fixed,
}

/// The kind of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Each node but the root has `m` children, with the probability `q`, or none.
    Binomial,
    /// The number of children is geometrically distributed.
    Geometric,
    /// Geometric down to a part of the depth `d`, and binomial below.
    Hybrid,
    /// Each node down to the depth `d` has `b` children.
    Balanced,
}

/// A tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tree {
    /// `-t`
    pub kind: Kind,
    /// `-r`: the seed of the root.
    pub seed: u32,
    /// `-b`: the children of the root, or the expected number of a node's children.
    pub branching: f64,
    /// `-a`
    pub shape: Shape,
    /// `-d`
    pub depth: u32,
    /// `-q`
    pub probability: f64,
    /// `-m`
    pub children: u32,
    /// `-f`: down to which part of the depth a hybrid tree is geometric.
    pub shift: f64,
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tree {
            kind,
            seed: r,
            branching: b,
            shape,
            depth: d,
            probability: q,
            children: m,
            shift,
        } = self;
        match kind {
            Kind::Binomial => write!(f, "-t 0 -b {b} -q {q} -m {m} -r {r}"),
            Kind::Geometric => write!(f, "-t 1 -a {} -d {d} -b {b} -r {r}", *shape as u8),
            Kind::Hybrid => write!(
                f,
                "-t 2 -a {} -d {d} -b {b} -q {q} -m {m} -f {shift} -r {r}",
                *shape as u8
            ),
            Kind::Balanced => write!(f, "-t 3 -d {d} -b {b} -r {r}"),
        }
    }
}

/// A node of a tree: its name, and its distance from the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    name: [u8; 20],
    depth: u32,
}

impl Node {
    /// How many steps it is from the root.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Its child of this number.
    #[inline]
    pub fn child(&self, number: u32) -> Node {
        let mut hash = Sha1::new();
        hash.update(self.name);
        hash.update(number.to_be_bytes());
        Node {
            name: hash.finalize().into(),
            depth: self.depth + 1,
        }
    }

    /// A number of at least 0 and less than 1, which its name decides.
    fn chance(&self) -> f64 {
        let [.., a, b, c, d] = self.name;
        let bits = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        f64::from(bits) / f64::from(1_u32 << 31)
    }
}

impl Tree {
    /// The first of the benchmark's published trees: 4,130,071 nodes.
    pub const T1: Tree = Tree {
        kind: Kind::Geometric,
        seed: 19,
        branching: 4.0,
        shape: Shape::Fixed,
        depth: 10,
        probability: 15.0 / 64.0,
        children: 4,
        shift: 0.5,
    };

    /// The root.
    pub fn root(&self) -> Node {
        let mut hash = Sha1::new();
        hash.update([0; 16]);
        hash.update(self.seed.to_be_bytes());
        Node {
            name: hash.finalize().into(),
            depth: 0,
        }
    }

    /// How many children a node has.
    pub fn children_of(&self, node: &Node) -> u32 {
        let is_upper = || f64::from(node.depth) < self.shift * f64::from(self.depth);
        let children = match self.kind {
            Kind::Binomial if node.depth == 0 => return self.branching.ceil() as u32,
            Kind::Binomial => self.binomial(node),
            Kind::Geometric => self.geometric(node),
            Kind::Hybrid if is_upper() => self.geometric(node),
            Kind::Hybrid => self.binomial(node),
            Kind::Balanced if node.depth < self.depth => self.branching as u32,
            Kind::Balanced => 0,
        };
        children.min(MOST_CHILDREN)
    }

    fn binomial(&self, node: &Node) -> u32 {
        if node.chance() < self.probability {
            self.children
        } else {
            0
        }
    }

    fn geometric(&self, node: &Node) -> u32 {
        let (depth, most) = (f64::from(node.depth), f64::from(self.depth));
        let expected = match self.shape {
            _ if node.depth == 0 => self.branching,
            Shape::Linear => self.branching * (1.0 - depth / most),
            Shape::Exponential => self.branching * depth.powf(-self.branching.ln() / most.ln()),
            Shape::Cyclic if depth > 5.0 * most => 0.0,
            Shape::Cyclic => self.branching.powf((2.0 * PI * depth / most).sin()),
            Shape::Fixed if node.depth < self.depth => self.branching,
            Shape::Fixed => 0.0,
        };
        let probability = 1.0 / (1.0 + expected);
        let children = ((1.0 - node.chance()).ln() / (1.0 - probability).ln()).floor();
        // Where none are expected it divides by infinity, and below the depth it may be negative.
        children.max(0.0) as u32
    }
}
