//! Traces all tiles on one processor.

use super::trace::{UNITS, tile};
use super::{Found, Problem};
use crate::picture::{Picture, Tile};

/// The picture, and the units of work that it took.
pub fn solve(problem: &Problem) -> (Found, u64) {
    let mut picture = Picture::black(problem.size);
    let mut rays = 0;
    for place in Tile::all(problem.size) {
        let (pixels, traced) = tile(problem, place);
        picture.put(place, &pixels);
        rays += traced;
    }
    (
        Found { picture, rays },
        rays * problem.scene.things() * UNITS,
    )
}
