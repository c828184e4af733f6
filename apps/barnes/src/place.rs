//! Places of bodies as integers: the cube that holds all bodies, and each body's place in it along
//! a space-filling curve. A tree over places depends on the set of bodies alone.

use std::ops::Range;

use apps_common::vector::Vector;

/// Levels that a position can tell apart; below them cells are told apart by body numbers.
const POSITION_LEVELS: u32 = 21;

/// One more than the largest key.
pub const KEYS: u64 = 1 << (3 * POSITION_LEVELS);

/// Levels of a tree: three bits of a body's number for each level below those of positions.
pub const LEVELS: u32 = POSITION_LEVELS + u32::BITS.div_ceil(3);

/// The cube that the tree divides: centred at the origin, its side a power of two.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Root {
    half: f64,
}

impl Root {
    /// The smallest cube whose inside holds all points with coordinates up to `extent`.
    ///
    /// # Panics
    /// When `extent` is not a finite number.
    pub fn around(extent: f64) -> Root {
        assert!(extent.is_finite(), "bodies at a distance of {extent}");
        let mut half = 1.0;
        while half <= extent {
            half *= 2.0;
        }
        while half * 0.5 > extent && half > 1e-6 {
            half *= 0.5;
        }
        Root { half }
    }

    /// The square of the cube's side, which the opening criterion starts from.
    #[inline]
    pub fn side_squared(self) -> f64 {
        4.0 * self.half * self.half
    }

    /// The key of a point: the bits of its three coordinates in turn, the highest first, so that
    /// three bits name the octant at each level and keys are in the order of the tree.
    #[inline]
    pub fn key(self, pos: Vector) -> u64 {
        let [x, y, z] = pos.map(|coordinate| {
            let cell = (coordinate / self.half + 1.0) * (0.5 * CELLS);
            spread(cell.clamp(0.0, CELLS - 1.0) as u64)
        });
        x << 2 | y << 1 | z
    }

    /// The point with the lowest coordinates among those that have this key.
    pub fn corner(self, key: u64) -> Vector {
        [key >> 2, key >> 1, key].map(|bits| {
            let cell = gather(bits & 0x1249_2492_4924_9249) as f64;
            (cell / (0.5 * CELLS) - 1.0) * self.half
        })
    }
}

/// Cubes at the last level that a position tells apart, along a side of the root.
const CELLS: f64 = (1u64 << POSITION_LEVELS) as f64;

/// Puts two zero bits before each of the lower 21 bits.
#[inline]
fn spread(bits: u64) -> u64 {
    let mut b = bits & 0x1f_ffff;
    b = (b | b << 32) & 0x001f_0000_0000_ffff;
    b = (b | b << 16) & 0x001f_0000_ff00_00ff;
    b = (b | b << 8) & 0x100f_00f0_0f00_f00f;
    b = (b | b << 4) & 0x10c3_0c30_c30c_30c3;
    (b | b << 2) & 0x1249_2492_4924_9249
}

/// Undoes [`spread`].
fn gather(bits: u64) -> u64 {
    let mut b = bits;
    b = (b | b >> 2) & 0x10c3_0c30_c30c_30c3;
    b = (b | b >> 4) & 0x100f_00f0_0f00_f00f;
    b = (b | b >> 8) & 0x001f_0000_ff00_00ff;
    b = (b | b >> 16) & 0x001f_0000_0000_ffff;
    (b | b >> 32) & 0x1f_ffff
}

/// A body's place. No two bodies have the same one: at the same point they are told apart by their
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The position's key ([`Root::key`]).
    pub key: u64,
    /// The body's number.
    pub body: u32,
}

impl Place {
    /// In which octant, 0 to 7, of the cell at `level` (0 is the root) the place lies.
    #[inline]
    pub fn octant(self, level: u32) -> usize {
        let bits = if level < POSITION_LEVELS {
            self.key >> (3 * (POSITION_LEVELS - 1 - level))
        } else {
            u64::from(self.body) >> (3 * (LEVELS - 1 - level))
        };
        (bits & 7) as usize
    }
}

/// The first key of octant `octant` of the cell at `level` that begins at key `start`.
#[inline]
pub fn octant_start(start: u64, level: u32, octant: usize) -> u64 {
    start | (octant as u64) << (3 * (POSITION_LEVELS - 1 - level))
}

/// The keys of the cube at `level` that begins at key `start`.
#[inline]
pub fn cube_keys(start: u64, level: u32) -> Range<u64> {
    start..start + (1 << (3 * (POSITION_LEVELS - level)))
}

/// Divides sorted places, all of one cell at `level`, among its octants.
pub fn octants(places: &[Place], level: u32) -> [Range<usize>; 8] {
    let mut start = 0;
    std::array::from_fn(|octant| {
        let rest = &places[start..];
        let end = start + rest.partition_point(|place| place.octant(level) <= octant);
        std::mem::replace(&mut start, end)..end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_smallest_power_of_two_around_all() {
        for (extent, half) in [(0.9, 1.0), (1.0, 2.0), (5.3, 8.0), (0.3, 0.5), (8.0, 16.0)] {
            assert_eq!(Root::around(extent), Root { half });
        }
        assert!(Root::around(0.0).half > 0.0);
    }

    #[test]
    fn three_bits_of_a_key_name_the_octant() {
        let root = Root::around(0.9);
        let at = |pos| Place {
            key: root.key(pos),
            body: 0,
        };
        assert_eq!(at([-0.5, -0.5, -0.5]).octant(0), 0);
        assert_eq!(at([0.5, -0.5, -0.5]).octant(0), 4);
        assert_eq!(at([0.5, -0.5, 0.5]).octant(0), 5);
        assert_eq!(at([0.25, -0.75, 0.75]).octant(1), 1);
        assert_eq!(at([0.75, -0.25, 0.25]).octant(1), 6);
    }

    #[test]
    fn a_keys_corner_has_that_key() {
        let root = Root::around(5.0);
        for pos in [[0.0; 3], [-7.5, 3.25, 1e-3], [4.9, -4.9, 0.1]] {
            let key = root.key(pos);
            let corner = root.corner(key);
            assert_eq!(root.key(corner), key);
            assert!((0..3).all(|i| (0.0..1e-5).contains(&(pos[i] - corner[i]))));
        }
    }

    #[test]
    fn places_at_one_point_are_told_apart_by_the_body_number() {
        let (a, b) = (
            Place {
                key: 7,
                body: 1 << 31,
            },
            Place { key: 7, body: 5 },
        );
        assert!((0..POSITION_LEVELS).all(|level| a.octant(level) == b.octant(level)));
        assert!((POSITION_LEVELS..LEVELS).any(|level| a.octant(level) != b.octant(level)));
        assert!(a > b && a.octant(POSITION_LEVELS) > b.octant(POSITION_LEVELS));
    }

    #[test]
    fn octants_divide_sorted_places_at_their_starts() {
        let shift = 3 * (POSITION_LEVELS - 2);
        let places: Vec<Place> = [0, 0, 2, 3, 3, 7]
            .map(|octant| Place {
                key: octant << shift,
                body: 0,
            })
            .to_vec();
        let ranges = octants(&places, 1);
        assert_eq!(ranges.each_ref().map(|r| r.len()), [2, 0, 1, 2, 0, 0, 0, 1]);
        assert_eq!(octant_start(0, 1, 3), places[3].key);
    }
}
