//! A whole run, step by step.

use std::time::Duration;

use dhole::{Access, Ref, Worker};

use super::grow::Grower;
use super::objects::{Cube, Inbox, Sheaf, Tally, Universe};
use super::parts::{self, Parts};
use super::walk::Walk;
use super::{crown, exchange, zone};
use crate::body::{UNITS_PER_INTERACTION, UNITS_PER_MOVED_BODY, UNITS_PER_PLACED_BODY};
use crate::gravity::{Law, Pull, Target};
use crate::leapfrog::{Energy, drift, kick};
use crate::picture::Star;
use crate::place::{Place, Root};
use crate::{Body, Problem, initial, picture};
use apps_common::pool::Pool;
use apps_common::vector::{extent, minus};

/// The result of a run.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    /// The energy before each step's move.
    pub energies: Vec<Energy>,
    /// Interactions of all steps.
    pub interactions: u64,
    /// The largest difference of a coordinate from those to compare with, if there are such.
    pub max_error: Option<f64>,
    /// The pictures that the problem asks for, on node 0.
    pub frames: Vec<Vec<Star>>,
    /// From the end of the initialisation to that of the last step, on node 0's clock.
    pub steps: Duration,
}

impl Outcome {
    /// Counts a step.
    pub(crate) fn count(&mut self, step: &Tally) {
        self.energies.push(step.energy);
        self.interactions += step.interactions;
        self.max_error = Some(step.max_error);
    }
}

/// Solves `problem` on the cluster of `w`. Every node calls it; `after_step` is called with the
/// number of steps done after each. With a `solution`, bodies after the last step, the result is
/// compared with it. The result is complete on every node, but for the pictures.
///
/// # Errors
/// Those of the runtime.
pub fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    solution: Option<&[Body]>,
    after_step: impl Fn(usize),
) -> dhole::Result<Outcome> {
    let universe = w.once(|w| Ok(create(w, problem)))?;
    let node = w.node().index();
    let mut grower = Grower::default();
    let mut parcels = Pool::default();
    let mut found = Outcome::default();
    let mut root = Root::around(universe.extent);
    let mut parts = read_parts(w, &universe, root, root);
    let mut total = problem.bodies as u64;
    let mut staying = Vec::new();
    let mut began = w.now();
    for step in 0..problem.all_steps() {
        let last = step + 1 == problem.all_steps();
        if step == problem.untimed {
            w.begin_measuring()?;
            began = w.now();
            found = Outcome::default();
        }
        let places = exchange::take_in(w, &universe, root, staying, problem.passes)?;
        grower.reuse();
        grower.grow_part(w, &universe, &places, parts.part(node), total);
        w.work(places.len() as u64 * UNITS_PER_PLACED_BODY);
        w.barrier()?;
        let tree = w.once(|w| Ok(crown::join(w, &universe, &mut grower)))?;
        let zone = zone::find(w, &universe, &tree);
        let pulls = pull_all(w, problem, &universe, &tree, root, &zone)?;
        w.barrier()?;
        let (mut tally, places) = move_all(w, problem, &universe, root, (&zone, &pulls), step == 0);
        if let Some(bodies) = solution.filter(|_| last) {
            tally.max_error = error(w, &universe, &zone, bodies);
        }
        *universe.tallies.at(node).get_mut(w) = tally;
        parts = read_parts(w, &universe, root, root);
        staying = match last {
            true => Vec::new(),
            false => exchange::hand_on(w, &universe, &parts, &mut parcels, places)?,
        };
        w.barrier()?;
        let all = w.once(|w| Ok(sum(w, &universe)))?;
        total = all.cost;
        found.count(&all);
        let now = Root::around(all.extent);
        if now != root && !last {
            parts = read_parts(w, &universe, root, now);
            let passes = problem.passes;
            staying = exchange::again(w, &universe, now, &parts, &mut parcels, staying, passes)?;
            root = now;
        }
        if step >= problem.untimed {
            let done = step + 1 - problem.untimed;
            if problem.draws_after(done) && !last {
                found
                    .frames
                    .push(picture::stars(w, universe.bodies, |body| body)?);
            }
            after_step(done);
        }
    }
    w.barrier()?;
    found.steps = w.now().saturating_sub(began);
    w.end_measuring()?;
    if problem.frames > 0 {
        found
            .frames
            .push(picture::stars(w, universe.bodies, |body| body)?);
    }
    found.max_error = found.max_error.filter(|_| solution.is_some());
    Ok(found)
}

/// Makes the initial state. Node 0 writes all of it, as in SPLASH-2, and puts every body into
/// the inbox of the node that will build the tree around it.
fn create(w: &mut Worker<'_>, problem: &Problem) -> Universe {
    let bodies = initial::bodies(problem);
    let nodes = w.nodes();
    let extent = bodies
        .iter()
        .map(|body| extent(body.pos))
        .fold(0.0, f64::max);
    let root = Root::around(extent);
    let place = |(body, number): (&Body, u32)| Place {
        key: root.key(body.pos),
        body: number,
    };
    let mut places: Vec<(Place, u64)> = bodies
        .iter()
        .zip(0..)
        .map(|body| (place(body), 1))
        .collect();
    places.sort();
    let starts = parts::divide(&parts::cuts(&places, 0, places.len() as u64, nodes), nodes);
    let division = Parts::new(&starts, root, root);
    let mut first = vec![Vec::new(); nodes];
    for (place, _) in &places {
        first[division.node_of(place.key)].push(place.body);
    }
    let parts = w.alloc_rows(1, nodes).row(0);
    parts.get_mut(w)[..nodes - 1].copy_from_slice(&starts);
    let universe = Universe {
        bodies: w.alloc_range(bodies.len(), |i| bodies[i]),
        inboxes: w.alloc_range(nodes, |_| Inbox::default()),
        sheaves: w.alloc_range(nodes, |_| Sheaf::default()),
        tallies: w.alloc_range(nodes, |_| Tally::default()),
        parts,
        extent,
    };
    // Node 0 hands them on, as it will its own; but these parcels are not used again.
    let mut parcels = Pool::default();
    for (node, bodies) in first.iter().enumerate() {
        let packed = exchange::pack(w, &universe, &mut parcels, bodies);
        universe.inboxes.at(node).get_mut(w).head = packed.map(|(first, _)| first);
    }
    universe
}

/// The parts of space that were chosen in the cube `then`, in the cube `now`.
fn read_parts(w: &Worker<'_>, universe: &Universe, then: Root, now: Root) -> Parts {
    Parts::new(&universe.parts.get(w)[..w.nodes() - 1], then, now)
}

/// The pull of all others on each body of `zone`.
fn pull_all(
    w: &mut Worker<'_>,
    problem: &Problem,
    universe: &Universe,
    tree: &Cube,
    root: Root,
    zone: &[u32],
) -> dhole::Result<Vec<Pull>> {
    let law = Law::of(problem);
    let bodies = universe.bodies;
    if problem.passes {
        return w.in_passes(zone, |pass, &number| {
            let pull = pull_one(pass, law, bodies.at(number as usize), tree, root);
            pass.work(pull.interactions * UNITS_PER_INTERACTION);
            Ok(pull)
        });
    }
    let pulled = zone.iter().map(|&number| {
        let pull = pull_one(&*w, law, bodies.at(number as usize), tree, root);
        w.work(pull.interactions * UNITS_PER_INTERACTION);
        w.poll()?;
        Ok(pull)
    });
    pulled.collect()
}

/// The pull of all others on one body.
#[inline(always)]
fn pull_one<'a, 'id: 'a>(
    w: &'a impl Access<'id>,
    law: Law,
    body: Ref<Body>,
    tree: &Cube,
    root: Root,
) -> Pull {
    let mut target = Target::new(law, body.get(w).pos);
    Walk { w, body }.cube(tree, &mut target, root.side_squared());
    target.pull
}

/// Moves the bodies of `zone`, which are pulled like this, and returns their new places too.
fn move_all(
    w: &mut Worker<'_>,
    problem: &Problem,
    universe: &Universe,
    root: Root,
    pulled: (&[u32], &[Pull]),
    first: bool,
) -> (Tally, Vec<Place>) {
    let (zone, pulls) = pulled;
    // The zone is in the order of the tree, but a body's neighbours in the tables of the runtime
    // are those with neighbouring numbers.
    let mut by_number: Vec<(u32, u32)> = zone.iter().copied().zip(0..).collect();
    by_number.sort_unstable();
    let mut tally = Tally::default();
    let mut places = vec![Place { key: 0, body: 0 }; zone.len()];
    for (number, index) in by_number {
        let pull = &pulls[index as usize];
        let body = universe.bodies.at(number as usize).get_mut(w);
        let now = kick(body, pull.acc, first, problem.time_step);
        drift(body, problem.time_step);
        body.cost = pull.cost();
        tally.energy.count(body.mass, now, pull.phi);
        tally.extent = tally.extent.max(extent(body.pos));
        tally.interactions += pull.interactions;
        tally.cost += body.cost;
        places[index as usize] = Place {
            key: root.key(body.pos),
            body: number,
        };
    }
    w.work(zone.len() as u64 * UNITS_PER_MOVED_BODY);
    (tally, places)
}

/// The largest difference between a coordinate of a body of `zone` and that of `solution`.
fn error(w: &Worker<'_>, universe: &Universe, zone: &[u32], solution: &[Body]) -> f64 {
    let errors = zone.iter().map(|&body| {
        let found = universe.bodies.at(body as usize).get(w).pos;
        extent(minus(found, solution[body as usize].pos))
    });
    errors.fold(0.0, f64::max)
}

fn sum(w: &Worker<'_>, universe: &Universe) -> Tally {
    let mut all = Tally::default();
    universe
        .tallies
        .iter()
        .for_each(|tally| all.add(tally.get(w)));
    all
}
