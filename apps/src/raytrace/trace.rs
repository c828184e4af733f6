//! Follows rays; both versions share this.

use super::Problem;
use super::scene::{Scene, Surface};
use super::vector::Vector;
use crate::picture::Tile;

/// A ray is reflected so often at most.
const REFLECTIONS: u32 = 5;
/// The least distance of a hit: a nearer one is the point where the ray begins.
const NEAR: f64 = 1e-6;
/// Light that comes from everywhere.
const AMBIENT: f64 = 0.15;

/// Units of work for a ray and a thing that it may meet.
pub const UNITS: u64 = 5;

struct Meeting {
    far: f64,
    normal: Vector,
    surface: Surface,
}

/// The pixels of a tile, and how many rays they took.
pub fn tile(problem: &Problem, tile: Tile) -> (Vec<u8>, u64) {
    let (scene, (width, height)) = (&problem.scene, problem.size);
    let (place, at) = scene.camera;
    let ahead = (at - place).unit();
    let right = Vector(0.0, 1.0, 0.0).cross(ahead).unit();
    let up = ahead.cross(right);
    let half = (scene.view.to_radians() / 2.0).tan();
    let mut pixels = Vec::with_capacity(3 * tile.pixels());
    let mut rays = 0;
    for y in tile.top..tile.top + tile.height {
        for x in tile.left..tile.left + tile.width {
            let across = (2.0 * (f64::from(x) + 0.5) - f64::from(width)) / f64::from(height);
            let down = 1.0 - 2.0 * (f64::from(y) + 0.5) / f64::from(height);
            let along = (ahead + right * (across * half) + up * (down * half)).unit();
            let colour = scene.follow(place, along, REFLECTIONS, &mut rays);
            let byte = |light: f64| (light.clamp(0.0, 1.0).sqrt() * 255.0).round() as u8;
            pixels.extend([colour.0, colour.1, colour.2].map(byte));
        }
    }
    (pixels, rays)
}

impl Scene {
    /// How many things a ray may meet.
    pub fn things(&self) -> u64 {
        self.spheres.len() as u64 + 1
    }

    fn follow(&self, from: Vector, along: Vector, left: u32, rays: &mut u64) -> Vector {
        *rays += 1;
        let Some(met) = self.first(from, along) else {
            return self.sky;
        };
        let at = from + along * met.far;
        let mut light = Vector(AMBIENT, AMBIENT, AMBIENT);
        for &(place, colour) in &self.lights {
            let way = place - at;
            let far = way.dot(way).sqrt();
            let towards = way * (1.0 / far);
            let slant = towards.dot(met.normal);
            if slant > 0.0 {
                *rays += 1;
                let hidden = self.first(at, towards).is_some_and(|it| it.far < far);
                if !hidden {
                    light = light + colour * slant;
                }
            }
        }
        let own = met.surface.colour.filtered(light);
        let mirror = met.surface.mirror;
        if mirror == 0.0 || left == 0 {
            return own;
        }
        let back = along - met.normal * (2.0 * along.dot(met.normal));
        own * (1.0 - mirror) + self.follow(at, back.unit(), left - 1, rays) * mirror
    }

    /// The first thing that a ray meets.
    fn first(&self, from: Vector, along: Vector) -> Option<Meeting> {
        let mut first: Option<Meeting> = None;
        let nearer = |first: &Option<Meeting>, far: f64| {
            far > NEAR && first.as_ref().is_none_or(|first| far < first.far)
        };
        for sphere in &self.spheres {
            let to = from - sphere.centre;
            let (b, c) = (to.dot(along), to.dot(to) - sphere.radius * sphere.radius);
            let inside = b * b - c;
            if inside <= 0.0 {
                continue;
            }
            let root = inside.sqrt();
            let far = if -b - root > NEAR {
                -b - root
            } else {
                -b + root
            };
            if nearer(&first, far) {
                let normal = (to + along * far) * (1.0 / sphere.radius);
                let normal = if normal.dot(along) > 0.0 {
                    -normal
                } else {
                    normal
                };
                let surface = sphere.surface;
                first = Some(Meeting {
                    far,
                    normal,
                    surface,
                });
            }
        }
        if let Some((height, surface)) = self.floor {
            let far = (height - from.1) / along.1;
            if nearer(&first, far) {
                let at = from + along * far;
                let dark = (at.0.floor() + at.2.floor()).rem_euclid(2.0) >= 1.0;
                let colour = surface.colour * if dark { 0.4 } else { 1.0 };
                let upward = if along.1 < 0.0 { 1.0 } else { -1.0 };
                first = Some(Meeting {
                    far,
                    normal: Vector(0.0, upward, 0.0),
                    surface: Surface { colour, ..surface },
                });
            }
        }
        first
    }
}
