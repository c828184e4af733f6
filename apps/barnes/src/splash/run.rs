//! A whole run, step by step.

use dhole::{Access, Refs, Worker};

use super::grow::Grower;
use super::objects::{Cell, SplashBody, Universe};
use super::walk::Walk;
use super::zone;
use crate::body::{UNITS_PER_INTERACTION, UNITS_PER_MOVED_BODY, UNITS_PER_PLACED_BODY};
use crate::gravity::{Law, Pull, Target};
use crate::leapfrog::{drift, kick};
use crate::place::Root;
use crate::shared::Outcome;
use crate::shared::objects::Tally;
use crate::{Body, Problem, initial, picture};
use apps_common::vector::{extent, minus};

/// Solves `problem`, whose leaves are single bodies, on the cluster of `w`. Every node calls it;
/// `after_step` is called with the number of measured steps done after each. With a `solution`,
/// bodies after the last step, the result is compared with it. The result is complete on every
/// node, but for the pictures.
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
    let mut grower = Grower::new(universe.cells);
    let mut found = Outcome::default();
    let mut largest = universe.extent;
    let mut began = w.now();
    for step in 0..problem.all_steps() {
        if step == problem.untimed {
            w.begin_measuring()?;
            (began, found) = (w.now(), Outcome::default());
        }
        let last = step + 1 == problem.all_steps();
        let root = Root::around(largest);
        let tree = w.once(|w| {
            let cells = grower.grow(w, &universe, root)?;
            w.work(problem.bodies as u64 * UNITS_PER_PLACED_BODY);
            Ok(cells)
        })?;
        let zone = zone::find(w, &universe, tree);
        let pulls = pull_all(w, problem, (&universe, tree), root, &zone)?;
        for (&number, pull) in zone.iter().zip(&pulls) {
            let pulled = universe.shared(number).get_mut(w);
            (pulled.acc, pulled.phi) = (pull.acc, pull.phi);
        }
        w.barrier()?;
        let mut tally = move_all(w, problem, &universe, (&zone, &pulls), step == 0);
        if let Some(bodies) = solution.filter(|_| last) {
            tally.max_error = error(w, &universe, &zone, bodies);
        }
        *universe.tallies.at(w.node().index()).get_mut(w) = tally;
        w.barrier()?;
        let all = w.once(|w| Ok(sum(w, &universe)))?;
        found.count(&all);
        largest = all.extent;
        if step >= problem.untimed {
            let done = step + 1 - problem.untimed;
            if problem.draws_after(done) && !last {
                found
                    .frames
                    .push(picture::stars(w, universe.bodies, |it| &it.body)?);
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
            .push(picture::stars(w, universe.bodies, |it| &it.body)?);
    }
    found.max_error = found.max_error.filter(|_| solution.is_some());
    Ok(found)
}

/// Makes the initial state. Node 0 writes all of it.
fn create(w: &mut Worker<'_>, problem: &Problem) -> Universe {
    let bodies = initial::bodies(problem);
    let extents = bodies.iter().map(|body| extent(body.pos));
    Universe {
        extent: extents.fold(0.0, f64::max),
        bodies: w.alloc_range(bodies.len(), |i| SplashBody::from(bodies[i])),
        cells: w.alloc_range(bodies.len() / 2 + 1, |_| Cell::default()),
        tallies: w.alloc_range(w.nodes(), |_| Tally::default()),
    }
}

/// The pull of all others on each body of `zone`.
fn pull_all(
    w: &mut Worker<'_>,
    problem: &Problem,
    (universe, cells): (&Universe, Refs<Cell>),
    root: Root,
    zone: &[u32],
) -> dhole::Result<Vec<Pull>> {
    let law = Law::of(problem);
    let pulls: Vec<Pull> = match problem.passes {
        true => w.in_passes(zone, |pass, &body| {
            Ok(pull_one(pass, law, (universe, cells), root, body))
        })?,
        false => {
            let pulled = zone.iter();
            let pulled = pulled.map(|&body| pull_one(&*w, law, (universe, cells), root, body));
            pulled.collect()
        }
    };
    let interactions: u64 = pulls.iter().map(|pull| pull.interactions).sum();
    w.work(interactions * UNITS_PER_INTERACTION);
    Ok(pulls)
}

/// The pull of all others on one body.
#[inline(always)]
fn pull_one<'a, 'id: 'a>(
    w: &'a impl Access<'id>,
    law: Law,
    (universe, cells): (&'a Universe, Refs<Cell>),
    root: Root,
    body: u32,
) -> Pull {
    let mut target = Target::new(law, universe.body(w, body).pos);
    let walk = Walk {
        w,
        universe,
        cells,
        body,
    };
    walk.cell(0, &mut target, root.side_squared());
    target.pull
}

/// Moves the bodies of `zone`, which are pulled like this.
fn move_all(
    w: &mut Worker<'_>,
    problem: &Problem,
    universe: &Universe,
    (zone, pulls): (&[u32], &[Pull]),
    first: bool,
) -> Tally {
    let mut tally = Tally::default();
    for (&number, pull) in zone.iter().zip(pulls) {
        let body = &mut universe.shared(number).get_mut(w).body;
        let now = kick(body, pull.acc, first, problem.time_step);
        drift(body, problem.time_step);
        body.cost = pull.cost();
        tally.energy.count(body.mass, now, pull.phi);
        tally.extent = tally.extent.max(extent(body.pos));
        tally.interactions += pull.interactions;
        tally.cost += body.cost;
    }
    w.work(zone.len() as u64 * UNITS_PER_MOVED_BODY);
    tally
}

/// The largest difference between a coordinate of a body of `zone` and that of `solution`.
fn error(w: &Worker<'_>, universe: &Universe, zone: &[u32], solution: &[Body]) -> f64 {
    let errors = zone.iter().map(|&number| {
        let found = universe.body(w, number).pos;
        extent(minus(found, solution[number as usize].pos))
    });
    errors.fold(0.0, f64::max)
}

fn sum(w: &Worker<'_>, universe: &Universe) -> Tally {
    let mut all = Tally::default();
    let tallies = universe.tallies.iter();
    tallies.for_each(|tally| all.add(tally.get(w)));
    all
}
