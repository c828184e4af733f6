//! Tracing tiles on all nodes.

use dhole::{NodeId, Object, Result, Worker, on};
use serde::{Deserialize, Serialize};

use super::picture::{Picture, Tile};
use super::trace::{UNITS, tile};
use super::{Found, Problem};
use crate::solve::Steps;

/// The tiles that nobody has taken yet, the last ones first.
#[derive(Serialize, Deserialize)]
struct Tiles(Vec<Tile>);

#[dhole::object]
impl Tiles {
    pub fn take(&mut self) -> Option<Tile> {
        self.0.pop()
    }
}

/// The picture as far as it is drawn.
#[derive(Serialize, Deserialize)]
struct Canvas {
    picture: Picture,
    rays: u64,
}

#[dhole::object]
impl Canvas {
    pub fn put(&mut self, tile: Tile, pixels: Vec<u8>, rays: u64) {
        self.picture.put(tile, &pixels);
        self.rays += rays;
    }

    pub fn picture(&self) -> Picture {
        self.picture.clone()
    }

    pub fn rays(&self) -> u64 {
        self.rays
    }
}

/// The picture, which node 0 has.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let (tiles, canvas): (Object<Tiles>, Object<Canvas>) = w.once(|w| {
        let place = on(NodeId(0));
        let tiles = w.new_object(place, Tiles(Tile::all(problem.size)))?;
        let picture = Picture::black(problem.size);
        let canvas = w.new_object(place, Canvas { picture, rays: 0 })?;
        Ok((tiles, canvas))
    })?;
    steps.begin(w)?;
    while let Some(place) = tiles.take(w)? {
        let (pixels, rays) = tile(problem, place);
        w.work(rays * problem.scene.things() * UNITS);
        canvas.put(w, place, pixels, rays)?;
    }
    steps.end(w)?;
    if w.node() != NodeId(0) {
        let picture = Picture::black((0, 0));
        return Ok(Found { picture, rays: 0 });
    }
    let (picture, rays) = (canvas.picture(w)?, canvas.rays(w)?);
    Ok(Found { picture, rays })
}
