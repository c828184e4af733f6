//! Traces tiles on all nodes.

use dhole::{JobQueue, Result, Worker};

use super::trace::{UNITS, tile};
use super::{Found, Problem};
use crate::picture::{Picture, Tile};
use crate::solve::{Steps, result_counts};

/// The pixels of a tile, and the rays that were traced for it.
type Traced = (Vec<u8>, u64);

/// The picture, where the [result counts](result_counts); black elsewhere.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let all = Tile::all(problem.size);
    let tiles = w.once(|w| Ok(JobQueue::<Tile, Traced>::of(w, all.iter().copied())?))?;
    steps.begin(w)?;
    tiles.work_guided(w, |w, place| {
        let (pixels, rays) = tile(problem, place);
        w.work(rays * problem.scene.things() * UNITS);
        Ok((pixels, rays))
    })?;
    let traced = if result_counts(w) {
        tiles.results(w)?
    } else {
        Vec::new()
    };
    let mut picture = Picture::black(problem.size);
    let mut rays = 0;
    for (place, (pixels, of_tile)) in all.into_iter().zip(traced) {
        picture.put(place, &pixels);
        rays += of_tile;
    }
    steps.end(w)?;
    Ok(Found { picture, rays })
}
