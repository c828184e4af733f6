//! Pictures of the bodies, as seen along the third axis: the slow ones blue, the fast ones golden.

use std::path::Path;

use dhole::{NodeId, Refs, Share, Worker};

use super::body::Body;
use super::glow::Plate;
use apps_common::picture::{self, Picture};
use apps_common::vector::dot;

/// Columns and rows.
const SIZE: (u32, u32) = (900, 600);
/// The part of the bodies that the picture is large enough for. A few are flung far away.
const INSIDE: f64 = 0.985;
/// The room on each side of those, as a part of what they take.
const MARGIN: f32 = 0.08;
/// The parts of the bodies that are slower than the scale of colours, and not faster.
const SCALE: [f64; 2] = [0.02, 0.97];
/// The colours from the slowest to the fastest.
const COLOURS: [[f32; 3]; 5] = [
    [0.10, 0.22, 1.0],
    [0.25, 0.55, 1.0],
    [0.85, 0.85, 1.0],
    [1.0, 0.72, 0.35],
    [1.0, 0.42, 0.12],
];
/// Objects that are asked for at a time, so that no message is too long.
const AT_A_TIME: usize = 1 << 16;
/// How long each picture of an animation is shown, in milliseconds.
const SHOWN_MS: u16 = 60;

/// What is drawn of a body.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Star {
    /// Where it is along the first two axes.
    pub at: [f32; 2],
    /// How fast it is.
    pub speed: f32,
}

impl From<&Body> for Star {
    fn from(body: &Body) -> Star {
        Star {
            at: [body.pos[0] as f32, body.pos[1] as f32],
            speed: dot(body.vel, body.vel).sqrt() as f32,
        }
    }
}

/// The bodies as they are now, on node 0.
///
/// # Errors
/// Those of the runtime.
pub(super) fn stars<B: Share>(
    w: &Worker<'_>,
    bodies: Refs<B>,
    of: impl Fn(&B) -> &Body,
) -> dhole::Result<Vec<Star>> {
    let mut all = Vec::new();
    if w.node() == NodeId(0) {
        for first in (0..bodies.len()).step_by(AT_A_TIME) {
            let some = bodies.slice(first..bodies.len().min(first + AT_A_TIME));
            w.prefetch(some)?;
            all.extend(some.iter().map(|body| Star::from(of(body.get(w)))));
        }
    }
    Ok(all)
}

/// Writes a PNG of `frames`, an animated one if there are several. One of no frames is black.
///
/// # Errors
/// Those of the file.
pub fn write(frames: &[Vec<Star>], path: &Path) -> Result<(), picture::Unwritten> {
    let view = View::of(frames.iter().flatten());
    match frames {
        [] => view.draw(&[]).write(path),
        [frame] => view.draw(frame).write(path),
        _ => {
            let drawn = frames.iter().map(|frame| view.draw(frame));
            picture::write_animation(drawn, SHOWN_MS, path)
        }
    }
}

/// Which part of space a picture shows, and which speeds its colours tell apart.
#[derive(Clone, Copy, Debug)]
struct View {
    centre: [f32; 2],
    /// From the centre to the upper edge.
    half_height: f32,
    slowest: f32,
    fastest: f32,
}

impl View {
    /// One in which nearly all of these are seen.
    fn of<'a>(stars: impl Iterator<Item = &'a Star> + Clone) -> View {
        let sorted = |of: &dyn Fn(&Star) -> f32| {
            let mut all: Vec<f32> = stars.clone().map(of).collect();
            all.sort_unstable_by(f32::total_cmp);
            all
        };
        let centre = [0, 1].map(|axis| {
            let along = sorted(&|star| star.at[axis]);
            (quantile(&along, 1.0 - INSIDE) + quantile(&along, INSIDE)) / 2.0
        });
        let wide = SIZE.0 as f32 / SIZE.1 as f32;
        let reach = |star: &Star| {
            let [x, y] = [0, 1].map(|axis| (star.at[axis] - centre[axis]).abs());
            (x / wide).max(y)
        };
        let half_height = quantile(&sorted(&reach), INSIDE) * (1.0 + MARGIN);
        let speeds = sorted(&|star| star.speed);
        let [slowest, fastest] = SCALE.map(|part| quantile(&speeds, part));
        View {
            centre,
            // One body alone is in the middle of any picture.
            half_height: half_height.max(f32::MIN_POSITIVE),
            slowest,
            fastest,
        }
    }

    /// Draws these. Those outside are left out.
    fn draw(&self, stars: &[Star]) -> Picture {
        let mut plate = Plate::new(SIZE);
        let (width, height) = (SIZE.0 as f32, SIZE.1 as f32);
        for star in stars {
            let [x, y] = [0, 1].map(|axis| (star.at[axis] - self.centre[axis]) / self.half_height);
            let column = (x * height / width + 1.0) / 2.0 * width;
            let row = (y + 1.0) / 2.0 * height;
            if column >= 0.0 && row >= 0.0 {
                plate.add((column as usize, row as usize), self.colour(star.speed));
            }
        }
        plate.develop()
    }

    fn colour(&self, speed: f32) -> [f32; 3] {
        let range = (self.fastest - self.slowest).max(f32::MIN_POSITIVE);
        let last = COLOURS.len() - 1;
        let place = ((speed - self.slowest) / range).clamp(0.0, 1.0) * last as f32;
        let (from, to) = (place as usize, (place as usize + 1).min(last));
        let part = place.fract();
        std::array::from_fn(|c| COLOURS[from][c] + part * (COLOURS[to][c] - COLOURS[from][c]))
    }
}

/// The value below which this part of the sorted values is; 0 if there are none.
fn quantile(sorted: &[f32], part: f64) -> f32 {
    let place = (sorted.len() as f64 * part) as usize;
    let value = sorted.get(place.min(sorted.len().saturating_sub(1)));
    value.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star(x: f32, y: f32) -> Star {
        Star {
            at: [x, y],
            speed: 1.0,
        }
    }

    fn draw(stars: &[Star]) -> Picture {
        View::of(stars.iter()).draw(stars)
    }

    /// The brightest colour of each pixel.
    fn lights(picture: &Picture) -> Vec<u8> {
        let pixels = picture.pixels().chunks(3);
        pixels.map(|pixel| *pixel.iter().max().unwrap()).collect()
    }

    /// Pixels in which there is a body: they are brighter than what it glows.
    fn lit(picture: &Picture) -> usize {
        let bright = |pixel: &&[u8]| pixel[1] > 150;
        picture.pixels().chunks(3).filter(bright).count()
    }

    #[test]
    fn more_bodies_in_a_pixel_are_brighter_and_one_is_seen() {
        let mut stars = vec![star(-1.0, -1.0); 50];
        stars.extend([star(1.0, 1.0); 50]);
        stars.push(star(1.0, -1.0));
        let lights = lights(&draw(&stars));
        let half = lights.split_at(lights.len() / 2);
        let brightest = |part: &[u8]| *part.iter().max().unwrap();
        assert_eq!((brightest(half.0), brightest(half.1)), (252, 252));
        let row = &lights[(SIZE.0 * 22) as usize..(SIZE.0 * 23) as usize];
        let (left, right) = row.split_at(SIZE.0 as usize / 2);
        assert_eq!(brightest(left), 252);
        assert!(
            (40..240).contains(&brightest(right)),
            "{}",
            brightest(right)
        );
    }

    #[test]
    fn a_body_far_away_does_not_make_the_others_small() {
        let mut stars: Vec<Star> = (0..200)
            .map(|i| star((i % 20) as f32 - 9.5, (i / 20) as f32 - 4.5))
            .collect();
        stars.push(star(1e6, 0.0));
        stars.push(star(-1e6, 0.0));
        let lit = lit(&draw(&stars));
        assert!(
            (190..=200).contains(&lit),
            "each has a pixel of its own: {lit}"
        );
    }

    #[test]
    fn the_slow_are_blue_and_the_fast_are_golden() {
        let view = View {
            centre: [0.0; 2],
            half_height: 1.0,
            slowest: 1.0,
            fastest: 3.0,
        };
        for slow in [0.0, 1.0] {
            assert_eq!(view.colour(slow), COLOURS[0]);
        }
        for fast in [3.0, 9.0] {
            assert_eq!(view.colour(fast), COLOURS[4]);
        }
        assert_eq!(view.colour(2.0), COLOURS[2]);
    }

    #[test]
    fn no_bodies_and_one_body_make_a_picture() {
        assert!(draw(&[]).pixels().iter().all(|byte| *byte == 0));
        let lights = lights(&draw(&[star(3.0, 4.0)]));
        assert_eq!(lights[((SIZE.1 / 2) * SIZE.0 + SIZE.0 / 2) as usize], 252);
    }
}
