//! The initial state: a Plummer model in virial units (Aarseth, Henon and Wielen 1974), or two of
//! them side by side and three times as large. `testdata` of SPLASH-2's Barnes makes two so: they
//! overlap, so a body's number says little about its place.

use std::f64::consts::PI;

use super::body::{Body, Problem};
use apps_common::random::SplitMix;
use apps_common::vector::{Vector, dot, minus, times};

/// Bodies further out than this many scale radii are drawn again.
const FARTHEST: f64 = 9.0;

/// How far along each axis the second of two models is from the first.
const APART: f64 = 4.0;

/// One model or a pair with the bodies of `problem`. Of one: total mass, gravitational constant and
/// -4 times the total energy are 1, and the centre of mass rests at the origin.
pub fn model(problem: &Problem, pair: bool) -> Vec<Body> {
    let length = match pair {
        true => 9.0 * PI / 16.0,
        false => 3.0 * PI / 16.0,
    };
    let speed = 1.0 / length.sqrt();
    let mass = 1.0 / problem.bodies as f64;
    let mut random = SplitMix::new(problem.seed);
    let mut bodies = Vec::with_capacity(problem.bodies);
    let of_first = match pair {
        true => problem.bodies.div_ceil(2),
        false => problem.bodies,
    };
    for _ in 0..of_first {
        let (pos, vel) = star(&mut random, length, speed);
        bodies.push(Body {
            pos,
            mass,
            vel,
            cost: 1,
        });
    }
    for number in of_first..problem.bodies {
        let alike = bodies[number - of_first];
        let pos = alike.pos.map(|along| along + APART);
        bodies.push(Body { pos, ..alike });
    }
    let middle = mean(bodies.iter().map(|body| body.pos));
    let drift = mean(bodies.iter().map(|body| body.vel));
    for body in &mut bodies {
        body.pos = minus(body.pos, middle);
        body.vel = minus(body.vel, drift);
    }
    bodies
}

/// The place and velocity of a body of a model whose scale radius is `length`, and whose bodies
/// need sqrt(2) times `speed` to leave its centre for good.
pub fn star(random: &mut SplitMix, length: f64, speed: f64) -> (Vector, Vector) {
    let radius = loop {
        let inner_mass = random.between(0.0, 0.999);
        let radius = 1.0 / (inner_mass.powf(-2.0 / 3.0) - 1.0).sqrt();
        if radius <= FARTHEST {
            break radius;
        }
    };
    let of_escape = loop {
        let (x, y) = (random.between(0.0, 1.0), random.between(0.0, 0.1));
        if y <= x * x * (1.0 - x * x).powf(3.5) {
            break x;
        }
    };
    let escape = 2f64.sqrt() / (1.0 + radius * radius).powf(0.25);
    let pos = on_sphere(random, length * radius);
    (pos, on_sphere(random, speed * of_escape * escape))
}

/// A point of the sphere of this radius, evenly distributed.
fn on_sphere(random: &mut SplitMix, radius: f64) -> Vector {
    loop {
        let point: Vector = std::array::from_fn(|_| random.between(-1.0, 1.0));
        let squared = dot(point, point);
        if squared <= 1.0 && squared > 0.0 {
            return times(point, radius / squared.sqrt());
        }
    }
}

fn mean(vectors: impl ExactSizeIterator<Item = Vector>) -> Vector {
    let count = vectors.len() as f64;
    times(
        vectors.fold([0.0; 3], apps_common::vector::plus),
        1.0 / count,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_rests_at_the_origin_with_a_mass_of_one() {
        let bodies = model(&Problem::new(2000, 1, 5), false);
        assert!((bodies.iter().map(|b| b.mass).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(
            mean(bodies.iter().map(|b| b.pos))
                .iter()
                .all(|c| c.abs() < 1e-12)
        );
        assert!(
            mean(bodies.iter().map(|b| b.vel))
                .iter()
                .all(|c| c.abs() < 1e-12)
        );
    }

    #[test]
    fn half_of_the_mass_lies_within_the_half_mass_radius() {
        let bodies = model(&Problem::new(4000, 1, 5), false);
        let inside = bodies
            .iter()
            .filter(|b| dot(b.pos, b.pos) < 0.77 * 0.77)
            .count();
        assert!((1850..2150).contains(&inside), "{inside} of 4000");
    }

    #[test]
    fn the_second_model_is_the_first_elsewhere() {
        let bodies = model(&Problem::new(8001, 1, 5), true);
        let (first, second) = bodies.split_at(4001);
        for (one, other) in first.iter().zip(second) {
            let apart = minus(other.pos, one.pos);
            assert!(apart.iter().all(|along| (along - APART).abs() < 1e-12));
            assert_eq!(one.vel, other.vel);
        }
        let middle = mean(bodies.iter().map(|b| b.pos));
        assert!(middle.iter().all(|c| c.abs() < 1e-12));
        // Half of a model's mass is within 1.3 of its lengths: the two reach into each other.
        let middle = mean_of(first);
        let of_first = first.iter().map(|b| minus(b.pos, middle));
        let inside = of_first.filter(|r| dot(*r, *r) < 2.3 * 2.3).count();
        assert!((1900..2100).contains(&inside), "{inside} of 4001");
    }

    fn mean_of(bodies: &[Body]) -> Vector {
        mean(bodies.iter().map(|b| b.pos))
    }

    #[test]
    fn the_seed_chooses_the_model() {
        let of = |seed| model(&Problem::new(3, 1, seed), false);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
