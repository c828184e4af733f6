//! Two disk galaxies that have just passed each other, as Toomre and Toomre (1972) computed such
//! encounters: two rigid masses fall past each other, and the bodies of the disks, which pull
//! nothing, follow both. The tide draws tails and a bridge out of the disks. The run begins there,
//! and from then on every body pulls every other.

use std::f64::consts::TAU;

use super::body::{Body, Problem};
use super::plummer;
use apps_common::random::SplitMix;
use apps_common::vector::{Vector, dot, minus, plus, times};

/// A galaxy: a sphere of old bodies, a Plummer model, with a thin disk around it.
#[derive(Clone, Copy, Debug)]
struct Galaxy {
    /// Its mass; that of both is 1.
    mass: f64,
    /// The scale radius of the sphere.
    core: f64,
    /// The radius at which the disk ends.
    rim: f64,
    /// The direction of the disk's axis, of length 1.
    axis: Vector,
}

const GALAXIES: [Galaxy; 2] = [
    Galaxy {
        mass: 0.55,
        core: 0.22,
        rim: 1.25,
        axis: [0.28, -0.42, 0.863_25],
    },
    Galaxy {
        mass: 0.45,
        core: 0.18,
        rim: 1.1,
        axis: [-0.36, 0.48, 0.8],
    },
];

/// The part of the bodies that are in the disks, and the part of the mass.
const OF_BODIES: f64 = 0.75;
const OF_MASS: f64 = 0.15;

/// The length over which a disk's density falls by e, as a part of its radius, and its thickness.
const FALL: f64 = 0.5;
const THICKNESS: f64 = 0.02;

/// The smallest distance of the two centres, and the times before and after it that the rigid
/// masses take.
const NEAREST: f64 = 1.25;
const BEFORE: f64 = 6.0;
const AFTER: f64 = 3.4;

/// A step of time for the rigid masses.
const STEP: f64 = 0.04;

/// The angle by which all is turned around the third axis, for the picture.
const TURN: f64 = -1.12;

/// The bodies of `problem` at time 0. Their mass is 1, and their centre rests at the origin.
pub fn model(problem: &Problem) -> Vec<Body> {
    let mut random = SplitMix::new(problem.seed);
    let path = path();
    let first = path[0];
    let in_disks = (problem.bodies as f64 * OF_BODIES) as usize;
    let in_spheres = problem.bodies - in_disks;
    let of_disks = if in_disks > 0 { OF_MASS } else { 0.0 };
    let mut bodies = Vec::with_capacity(problem.bodies);
    for number in 0..in_disks {
        let which = usize::from(number as f64 >= in_disks as f64 * GALAXIES[0].mass);
        let (at, moving) = GALAXIES[which].of_disk(&mut random);
        let (pos, vel) = (plus(first.pos[which], at), plus(first.vel[which], moving));
        bodies.push(follow(&path, pos, vel, of_disks / in_disks as f64));
    }
    let last = path[path.len() - 1];
    for number in 0..in_spheres {
        let which = usize::from(number as f64 >= in_spheres as f64 * GALAXIES[0].mass);
        let Galaxy { mass, core, .. } = GALAXIES[which];
        let (at, moving) = plummer::star(&mut random, core, (mass / core).sqrt());
        bodies.push(Body {
            pos: plus(last.pos[which], at),
            mass: (1.0 - of_disks) / in_spheres as f64,
            vel: plus(last.vel[which], moving),
            cost: 1,
        });
    }
    for body in &mut bodies {
        (body.pos, body.vel) = (turned(body.pos), turned(body.vel));
    }
    let sum = |of: fn(&Body) -> Vector| {
        let all = bodies.iter().map(|body| times(of(body), body.mass));
        all.fold([0.0; 3], plus)
    };
    let (middle, drift) = (sum(|body| body.pos), sum(|body| body.vel));
    for body in &mut bodies {
        body.pos = minus(body.pos, middle);
        body.vel = minus(body.vel, drift);
    }
    bodies
}

impl Galaxy {
    /// The acceleration at this place relative to its centre.
    fn pull(&self, at: Vector) -> Vector {
        let squared = dot(at, at) + self.core * self.core;
        times(at, -self.mass / (squared * squared.sqrt()))
    }

    /// The place and velocity, relative to the centre, of a body on a circle in the disk.
    fn of_disk(&self, random: &mut SplitMix) -> (Vector, Vector) {
        let radius = loop {
            let radius = random.between(0.02, 1.0);
            // A ring's bodies are as many as it is long; the greatest density is at the fall.
            let density = radius / FALL * (1.0 - radius / FALL).exp();
            if random.between(0.0, 1.0) <= density {
                break radius * self.rim;
            }
        };
        let around = random.between(0.0, TAU);
        let height = THICKNESS * (random.between(-1.0, 1.0) + random.between(-1.0, 1.0));
        let [x, y, z] = self.frame();
        let (sin, cos) = around.sin_cos();
        let outward = plus(times(x, cos), times(y, sin));
        let along = plus(times(y, cos), times(x, -sin));
        let at = plus(times(outward, radius), times(z, height));
        let pull = self.pull(at);
        let speed = (-dot(pull, outward) * radius).sqrt();
        (at, times(along, speed))
    }

    /// Two directions in the plane of the disk, and its axis.
    fn frame(&self) -> [Vector; 3] {
        let z = self.axis;
        let x = [z[2], 0.0, -z[0]];
        let x = times(x, 1.0 / dot(x, x).sqrt());
        let y = [
            z[1] * x[2] - z[2] * x[1],
            z[2] * x[0] - z[0] * x[2],
            z[0] * x[1] - z[1] * x[0],
        ];
        [x, y, z]
    }
}

/// Where the two centres are at a time, and how they move.
#[derive(Clone, Copy, Debug)]
struct Centres {
    pos: [Vector; 2],
    vel: [Vector; 2],
}

impl Centres {
    /// Where they are nearest, with as much energy as lets them part for good.
    fn nearest() -> Centres {
        let [one, other] = GALAXIES.map(|galaxy| galaxy.mass);
        let speed = (2.0 / NEAREST).sqrt() * 0.95;
        Centres {
            pos: [[-NEAREST * other, 0.0, 0.0], [NEAREST * one, 0.0, 0.0]],
            vel: [[0.0, -speed * other, 0.0], [0.0, speed * one, 0.0]],
        }
    }

    /// The next step of `time`, which is negative on the way back.
    fn step(&mut self, time: f64) {
        for which in 0..2 {
            self.pos[which] = plus(self.pos[which], times(self.vel[which], time / 2.0));
        }
        let [one, other] = self.pos;
        let pulls = [
            GALAXIES[1].pull(minus(one, other)),
            GALAXIES[0].pull(minus(other, one)),
        ];
        for (which, pull) in pulls.into_iter().enumerate() {
            self.vel[which] = plus(self.vel[which], times(pull, time));
            self.pos[which] = plus(self.pos[which], times(self.vel[which], time / 2.0));
        }
    }
}

/// The centres from the beginning to the time at which the run begins, half a step apart.
fn path() -> Vec<Centres> {
    let mut centres = Centres::nearest();
    let before = (BEFORE / STEP) as usize;
    let after = (AFTER / STEP) as usize;
    for _ in 0..2 * before {
        centres.step(-STEP / 2.0);
    }
    let mut path = vec![centres];
    for _ in 0..2 * (before + after) {
        centres.step(STEP / 2.0);
        path.push(centres);
    }
    path
}

/// The body that was here when the path began, where it is at the end.
fn follow(path: &[Centres], mut pos: Vector, mut vel: Vector, mass: f64) -> Body {
    for centres in path.iter().skip(1).step_by(2) {
        pos = plus(pos, times(vel, STEP / 2.0));
        for (galaxy, centre) in GALAXIES.iter().zip(centres.pos) {
            vel = plus(vel, times(galaxy.pull(minus(pos, centre)), STEP));
        }
        pos = plus(pos, times(vel, STEP / 2.0));
    }
    Body {
        pos,
        mass,
        vel,
        cost: 1,
    }
}

/// The vector, turned around the third axis.
fn turned([x, y, z]: Vector) -> Vector {
    let (sin, cos) = TURN.sin_cos();
    [x * cos - y * sin, x * sin + y * cos, z]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Galaxy as Layout, sequential};

    fn problem(bodies: usize, steps: usize) -> Problem {
        Problem {
            galaxy: Layout::Collision,
            theta: 0.5,
            ..Problem::new(bodies, steps, 3)
        }
    }

    #[test]
    fn the_axes_are_of_length_one() {
        for galaxy in GALAXIES {
            assert!((dot(galaxy.axis, galaxy.axis) - 1.0).abs() < 1e-5);
            for direction in galaxy.frame() {
                assert!((dot(direction, direction) - 1.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn there_are_as_many_bodies_as_asked_for_and_they_rest_at_the_origin() {
        for count in [1, 2, 3, 4, 5, 1001] {
            let bodies = model(&problem(count, 1));
            assert_eq!(bodies.len(), count);
            let mass: f64 = bodies.iter().map(|body| body.mass).sum();
            for of in [|body: &Body| body.pos, |body: &Body| body.vel] {
                let all = bodies.iter().map(|body| times(of(body), body.mass));
                let middle = times(all.fold([0.0; 3], plus), 1.0 / mass);
                assert!(middle.iter().all(|along| along.abs() < 1e-12), "{middle:?}");
            }
        }
        let mass: f64 = model(&problem(1001, 1)).iter().map(|b| b.mass).sum();
        assert!((mass - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_body_of_an_undisturbed_disk_stays_on_its_circle() {
        let galaxy = GALAXIES[0];
        let mut random = SplitMix::new(5);
        let (mut at, mut moving) = galaxy.of_disk(&mut random);
        let radius = dot(at, at).sqrt();
        for _ in 0..200 {
            at = plus(at, times(moving, STEP / 2.0));
            moving = plus(moving, times(galaxy.pull(at), STEP));
            at = plus(at, times(moving, STEP / 2.0));
            let now = dot(at, at).sqrt();
            assert!((now / radius - 1.0).abs() < 0.02, "{now} and not {radius}");
        }
    }

    #[test]
    fn the_two_have_passed_each_other_and_tails_reach_out() {
        let path = path();
        let apart = |centres: &Centres| {
            let between = minus(centres.pos[0], centres.pos[1]);
            dot(between, between).sqrt()
        };
        let distances: Vec<f64> = path.iter().map(apart).collect();
        let nearest = distances.iter().copied().fold(f64::MAX, f64::min);
        assert!((nearest - NEAREST).abs() < 0.01, "{nearest}");
        let (first, last) = (distances[0], distances[distances.len() - 1]);
        assert!(first > 3.0 && last > 2.0 * nearest, "{first} and {last}");
        // In a disk nothing is farther from its centre than the rim; a tail is.
        let bodies = model(&problem(4000, 1));
        let far = bodies.iter().filter(|body| dot(body.pos, body.pos) > 9.0);
        assert!((100..2000).contains(&far.count()));
    }

    #[test]
    fn the_energy_of_the_collision_is_conserved() {
        let found = sequential::run(problem(2000, 20), |_| ());
        let start = found.energies[0].total();
        for energy in &found.energies {
            let drift = (energy.total() / start - 1.0).abs();
            assert!(drift < 2e-3, "{drift}");
        }
    }

    #[test]
    fn the_seed_chooses_the_bodies() {
        let of = |seed| {
            model(&Problem {
                seed,
                ..problem(50, 1)
            })
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
