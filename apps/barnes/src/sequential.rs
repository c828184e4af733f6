//! Barnes-Hut for one processor.

use std::time::Instant;

use super::body::{UNITS_PER_INTERACTION, UNITS_PER_MOVED_BODY, UNITS_PER_PLACED_BODY};
use super::gravity::{Law, Pull, Target};
use super::leapfrog::{Energy, drift, kick};
use super::place::{Place, Root};
use super::tree::Cube;
use super::{Body, Problem, initial};
use apps_common::vector::extent;

/// All bodies, and what is needed from one step to the next.
#[derive(Debug)]
pub struct Universe {
    problem: Problem,
    bodies: Vec<Body>,
    places: Vec<Place>,
    steps: usize,
    interactions: u64,
}

/// The result of a run, and its cost.
#[derive(Debug)]
pub struct Outcome {
    /// The bodies after the last step.
    pub bodies: Vec<Body>,
    /// The energy before each step's move.
    pub energies: Vec<Energy>,
    /// Interactions of all steps.
    pub interactions: u64,
    /// Wall-clock time of the steps alone, in seconds.
    pub step_seconds: f64,
    /// The cost of the steps in units of `Worker::work`.
    pub units: u64,
}

impl Universe {
    /// The initial state of `problem`.
    pub fn new(problem: Problem) -> Universe {
        let bodies = initial::bodies(&problem);
        let places = (0..problem.bodies as u32)
            .map(|body| Place { key: 0, body })
            .collect();
        Universe {
            problem,
            bodies,
            places,
            steps: 0,
            interactions: 0,
        }
    }

    /// The bodies as they are now.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// The tree over the bodies as they are now, and the cube it divides.
    pub fn tree(&mut self) -> (Root, Cube) {
        let root = Root::around(
            self.bodies
                .iter()
                .map(|body| extent(body.pos))
                .fold(0.0, f64::max),
        );
        for place in &mut self.places {
            place.key = root.key(self.bodies[place.body as usize].pos);
        }
        // The order of the previous step is nearly that of this one, which this sort makes use of.
        self.places.sort();
        let in_leaf = self.problem.leaf_bodies;
        (root, Cube::grow(&self.bodies, &self.places, 0, in_leaf))
    }

    /// The pull of all others on `body`.
    pub fn pull(&self, root: Root, tree: &Cube, body: u32) -> Pull {
        let mut target = Target::new(Law::of(&self.problem), self.bodies[body as usize].pos);
        tree.walk(&self.bodies, body, &mut target, root.side_squared());
        target.pull
    }

    /// Computes all forces, moves all bodies, and returns the energy before the move.
    pub fn step(&mut self) -> Energy {
        let (root, tree) = self.tree();
        let (first, time_step) = (self.steps == 0, self.problem.time_step);
        let mut energy = Energy::default();
        for index in 0..self.places.len() {
            let body = self.places[index].body;
            let pull = self.pull(root, &tree, body);
            let body = &mut self.bodies[body as usize];
            let now = kick(body, pull.acc, first, time_step);
            body.cost = pull.cost();
            energy.count(body.mass, now, pull.phi);
            self.interactions += pull.interactions;
        }
        for body in &mut self.bodies {
            drift(body, time_step);
        }
        self.steps += 1;
        energy
    }

    /// The cost of the steps so far in units of `Worker::work`.
    pub fn units(&self) -> u64 {
        let body_steps = (self.problem.bodies * self.steps) as u64;
        self.interactions * UNITS_PER_INTERACTION
            + body_steps * (UNITS_PER_PLACED_BODY + UNITS_PER_MOVED_BODY)
    }
}

/// Solves `problem`; `after_step` is called with the number of steps done after each. Time, units
/// and interactions are those of the measured steps.
pub fn run(problem: Problem, mut after_step: impl FnMut(usize)) -> Outcome {
    let mut universe = Universe::new(problem);
    for _ in 0..problem.untimed {
        universe.step();
    }
    let before = (universe.units(), universe.interactions);
    let stepped_from = Instant::now();
    let mut energies = Vec::with_capacity(problem.steps);
    for step in 0..problem.steps {
        energies.push(universe.step());
        after_step(step + 1);
    }
    Outcome {
        step_seconds: stepped_from.elapsed().as_secs_f64(),
        units: universe.units() - before.0,
        interactions: universe.interactions - before.1,
        energies,
        bodies: universe.bodies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::LEAF_BODIES;
    use crate::moment::Moment;
    use crate::tree::Inside;
    use apps_common::vector::{dot, minus};

    /// The pull of all others on `body`, summed one by one.
    fn direct(problem: &Problem, bodies: &[Body], body: usize) -> Pull {
        let mut target = Target::new(Law::of(problem), bodies[body].pos);
        for (_, other) in bodies
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != body)
        {
            target.add(target.reach(other.pos), other.mass);
        }
        target.pull
    }

    /// The mean over all bodies of the error of the acceleration, relative to the acceleration.
    fn mean_error(problem: Problem) -> f64 {
        let mut universe = Universe::new(problem);
        let (root, tree) = universe.tree();
        let errors = (0..problem.bodies).map(|body| {
            let exact = direct(&problem, &universe.bodies, body).acc;
            let error = minus(universe.pull(root, &tree, body as u32).acc, exact);
            (dot(error, error) / dot(exact, exact)).sqrt()
        });
        errors.sum::<f64>() / problem.bodies as f64
    }

    #[test]
    fn forces_are_those_of_direct_summation_within_the_error_of_the_method() {
        let problem = Problem::new(1500, 1, 3);
        let coarse = mean_error(problem);
        assert!((1e-4..0.02).contains(&coarse), "at theta 1: {coarse}");
        let fine = mean_error(Problem {
            theta: 0.5,
            ..problem
        });
        assert!(fine < coarse / 4.0, "at theta 0.5: {fine} against {coarse}");
        let exact = mean_error(Problem {
            theta: 0.0,
            ..problem
        });
        assert!(exact < 1e-12, "at theta 0: {exact}");
    }

    #[test]
    fn energy_and_momentum_are_conserved() {
        let found = run(Problem::new(1000, 40, 11), |_| ());
        let start = found.energies[0];
        assert!((start.total() + 0.25).abs() < 0.03, "-4E is 1: {start:?}");
        assert!(
            (start.kinetic / -start.potential - 0.5).abs() < 0.05,
            "virial: {start:?}"
        );
        for (step, energy) in found.energies.iter().enumerate() {
            let drift = (energy.total() - start.total()).abs() / start.total().abs();
            assert!(drift < 0.005, "step {step}: {drift}");
            assert!(
                energy.momentum.iter().all(|p| p.abs() < 2e-3),
                "step {step}: {energy:?}"
            );
        }
    }

    /// Checks a subtree and returns the bodies in it, in order.
    fn bodies_of(universe: &Universe, cube: &Cube) -> Vec<u32> {
        let bodies = match &cube.inside {
            Inside::Nothing => panic!("an empty cube in the tree"),
            Inside::Leaf(leaf) => {
                assert!((1..=LEAF_BODIES).contains(&leaf.bodies().len()));
                leaf.bodies().to_vec()
            }
            Inside::Cell(cell) => {
                let parts = cell.cubes().iter().map(|cube| bodies_of(universe, cube));
                let bodies: Vec<u32> = parts.flatten().collect();
                assert!(bodies.len() > LEAF_BODIES, "a cell that could be a leaf");
                bodies
            }
        };
        let sum = |field: fn(&Body) -> f64| {
            bodies
                .iter()
                .map(|body| field(&universe.bodies[*body as usize]))
                .sum::<f64>()
        };
        let Moment { pos, mass, cost } = cube.moment;
        assert!((sum(|body| body.mass) - mass).abs() < 1e-12);
        assert!((sum(|body| body.pos[2] * body.mass) / mass - pos[2]).abs() < 1e-12);
        assert_eq!(sum(|body| body.cost as f64), cost as f64);
        bodies
    }

    #[test]
    fn the_tree_holds_every_body_once_in_the_order_of_places() {
        let mut universe = Universe::new(Problem::new(3000, 1, 2));
        let (_, tree) = universe.tree();
        let found = bodies_of(&universe, &tree);
        assert_eq!(
            found,
            universe.places.iter().map(|p| p.body).collect::<Vec<_>>()
        );
        let mut sorted = found.clone();
        sorted.sort();
        assert_eq!(sorted, (0..3000).collect::<Vec<_>>());
    }

    #[test]
    fn the_tree_does_not_depend_on_the_order_in_which_bodies_come() {
        let mut universe = Universe::new(Problem::new(500, 1, 8));
        let before = format!("{:?}", universe.tree().1);
        universe.places.reverse();
        universe.places.swap(3, 77);
        assert_eq!(format!("{:?}", universe.tree().1), before);
    }

    #[test]
    fn bodies_at_one_point_can_be_told_apart() {
        let mut universe = Universe::new(Problem::new(100, 2, 8));
        universe.bodies[..50]
            .iter_mut()
            .for_each(|body| body.pos = [0.1, 0.2, 0.3]);
        let (_, tree) = universe.tree();
        assert_eq!(bodies_of(&universe, &tree).len(), 100);
        assert!(universe.step().total().is_finite());
    }

    #[test]
    fn one_body_alone_moves_straight_on() {
        let found = run(Problem::new(1, 3, 1), |_| ());
        assert_eq!((found.interactions, found.bodies[0].pos), (0, [0.0; 3]));
    }

    #[test]
    fn work_is_counted_for_every_interaction_and_body() {
        let found = run(Problem::new(200, 2, 1), |_| ());
        assert!(found.interactions > 200 * 2 * 10);
        let of_bodies = 400 * (UNITS_PER_PLACED_BODY + UNITS_PER_MOVED_BODY);
        assert_eq!(
            found.units,
            found.interactions * UNITS_PER_INTERACTION + of_bodies
        );
    }
}
