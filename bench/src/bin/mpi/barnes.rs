//! Barnes-Hut as one writes it with MPI: each process has the bodies in a part of space, gives the
//! others the part of its tree that they need (the locally essential tree: Warren and Salmon 1992),
//! and computes the forces on its own bodies. The inner loop is that of dhole's sequential program.

use std::time::Instant;

use apps::barnes::gravity::{Law, Target};
use apps::barnes::leapfrog::{Energy, drift, kick};
use apps::barnes::place::{KEYS, Place, Root};
use apps::barnes::shared::objects::Cut;
use apps::barnes::shared::parts::{Parts, cuts, divide};
use apps::barnes::tree::{Cube, Inside};
use apps::barnes::{Body, Problem, plummer};
use apps::vector::{Vector, extent};
use mpi::collective::SystemOperation;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use bench::Outcome;

/// A body, as numbers: place, mass, velocity, cost.
const OF_BODY: usize = 8;

/// A mass, as numbers: place, mass.
const OF_MASS: usize = 4;

/// Runs it and says how long the steps took behind the untimed ones, and the energy before the
/// last step.
pub fn run(bodies: usize, steps: usize, untimed: usize) -> Outcome<()> {
    let universe = mpi::initialize().ok_or("MPI is there already")?;
    let world = universe.world();
    let (me, nodes) = (world.rank() as usize, world.size() as usize);
    let problem = Problem::new(bodies, steps, 1);
    let mut bodies = plummer::model(&problem, false);
    // Each begins with a run of numbers; the first step sorts them by their places.
    bodies.truncate((me + 1) * problem.bodies / nodes);
    bodies.drain(..me * problem.bodies / nodes);
    let mut energy = Energy::default();
    world.barrier();
    let mut begun = Instant::now();
    for step in 0..untimed + steps {
        if step == untimed {
            world.barrier();
            begun = Instant::now();
        }
        let farthest = bodies
            .iter()
            .map(|body| extent(body.pos))
            .fold(0.0, f64::max);
        let root = Root::around(reduce(&world, [farthest], SystemOperation::max())[0]);
        let mut bodies_now = exchange(&world, root, std::mem::take(&mut bodies));
        let own = bodies_now.len();
        let tree = grow(&problem, root, &bodies_now);
        import(&world, &problem, root, &tree, &mut bodies_now);
        let tree = grow(&problem, root, &bodies_now);
        let mut mine = Energy::default();
        for number in 0..own {
            let mut target = Target::new(Law::of(&problem), bodies_now[number].pos);
            tree.walk(&bodies_now, number as u32, &mut target, root.side_squared());
            let body = &mut bodies_now[number];
            let now = kick(body, target.pull.acc, step == 0, problem.time_step);
            body.cost = target.pull.cost();
            mine.count(body.mass, now, target.pull.phi);
        }
        bodies_now.truncate(own);
        bodies = bodies_now;
        bodies
            .iter_mut()
            .for_each(|body| drift(body, problem.time_step));
        let of_all = [mine.kinetic, mine.potential];
        [energy.kinetic, energy.potential] = reduce(&world, of_all, SystemOperation::sum());
    }
    world.barrier();
    let took = begun.elapsed().as_secs_f64();
    if me == 0 {
        println!("seconds {took} energy {}", energy.total());
    }
    Ok(())
}

/// The places of bodies, sorted.
fn places(root: Root, bodies: &[Body]) -> Vec<Place> {
    let of = |(body, number): (&Body, u32)| Place {
        key: root.key(body.pos),
        body: number,
    };
    let mut places: Vec<Place> = bodies.iter().zip(0..).map(of).collect();
    places.sort_unstable();
    places
}

fn grow(problem: &Problem, root: Root, bodies: &[Body]) -> Cube {
    Cube::grow(bodies, &places(root, bodies), 0, problem.leaf_bodies)
}

/// Divides space anew so that each process has an equal share of the cost, and sends each body to
/// the process in whose part it is.
fn exchange(world: &SimpleCommunicator, root: Root, bodies: Vec<Body>) -> Vec<Body> {
    let nodes = world.size() as usize;
    let of = |place: &Place| (*place, bodies[place.body as usize].cost);
    let priced: Vec<_> = places(root, &bodies).iter().map(of).collect();
    let total: u64 = priced.iter().map(|(_, cost)| cost).sum();
    let total = reduce(world, [total], SystemOperation::sum())[0];
    // In the first step the processes' bodies lie among each other: each cuts all of space.
    let mine: Vec<u64> = cuts(&priced, 0, total, nodes)
        .iter()
        .flat_map(|cut| [cut.start, cut.cost])
        .collect();
    let all = to_all(world, &vec![mine; nodes]).concat();
    let mut all: Vec<Cut> = all
        .chunks_exact(2)
        .map(|cut| Cut {
            start: cut[0],
            cost: cut[1],
        })
        .collect();
    all.sort_unstable_by_key(|cut| cut.start);
    let parts = Parts::new(&divide(&all, nodes), root, root);
    debug_assert!(parts.part(nodes - 1).end == KEYS);
    let mut leaving = vec![Vec::new(); nodes];
    for body in &bodies {
        let numbers = &mut leaving[parts.node_of(root.key(body.pos))];
        numbers.extend_from_slice(&body.pos);
        numbers.push(body.mass);
        numbers.extend_from_slice(&body.vel);
        numbers.push(body.cost as f64);
    }
    let come = to_all(world, &leaving).concat();
    let body = |of: &[f64]| Body {
        cost: of[7] as u64,
        vel: [of[4], of[5], of[6]],
        ..mass(of)
    };
    let mut come: Vec<Body> = come.chunks_exact(OF_BODY).map(body).collect();
    come.sort_by_cached_key(|body| root.key(body.pos));
    come
}

/// Adds to `bodies` what of the other processes' trees the forces on them need.
fn import(
    world: &SimpleCommunicator,
    problem: &Problem,
    root: Root,
    tree: &Cube,
    bodies: &mut Vec<Body>,
) {
    let nodes = world.size() as usize;
    let mut of_mine = [f64::INFINITY, f64::NEG_INFINITY].map(|far| [far; 3]);
    for body in &*bodies {
        for (axis, at) in body.pos.into_iter().enumerate() {
            of_mine[0][axis] = of_mine[0][axis].min(at);
            of_mine[1][axis] = of_mine[1][axis].max(at);
        }
    }
    let boxes = to_all(world, &vec![of_mine.concat(); nodes]);
    let essential = |(to, bounds): (usize, &Vec<f64>)| {
        let mut masses = Vec::new();
        if to != world.rank() as usize && !bodies.is_empty() {
            let bounds = Bounds {
                low: [bounds[0], bounds[1], bounds[2]],
                high: [bounds[3], bounds[4], bounds[5]],
                theta_squared: problem.theta * problem.theta,
            };
            bounds.essential(tree, bodies, root.side_squared(), &mut masses);
        }
        masses
    };
    let leaving: Vec<Vec<f64>> = boxes.iter().enumerate().map(essential).collect();
    let come = to_all(world, &leaving).concat();
    bodies.extend(come.chunks_exact(OF_MASS).map(mass));
}

/// The box around a process's bodies.
struct Bounds {
    low: Vector,
    high: Vector,
    theta_squared: f64,
}

impl Bounds {
    /// Appends the masses that bodies within the bounds may need of `cube`.
    fn essential(&self, cube: &Cube, bodies: &[Body], side_squared: f64, masses: &mut Vec<f64>) {
        let mut add = |pos: Vector, mass: f64| {
            masses.extend_from_slice(&pos);
            masses.push(mass);
        };
        let pos = cube.moment.pos;
        let way = |axis: usize| (self.low[axis] - pos[axis]).max(pos[axis] - self.high[axis]);
        let squared = (0..3).map(|axis| way(axis).max(0.0).powi(2)).sum::<f64>();
        if self.theta_squared * squared >= side_squared {
            return add(pos, cube.moment.mass);
        }
        match &cube.inside {
            Inside::Nothing => (),
            Inside::Leaf(leaf) => leaf.bodies().iter().for_each(|&number| {
                let body = &bodies[number as usize];
                add(body.pos, body.mass);
            }),
            Inside::Cell(cell) => cell
                .cubes()
                .iter()
                .for_each(|cube| self.essential(cube, bodies, 0.25 * side_squared, masses)),
        }
    }
}

/// A body at rest, of its place and mass.
fn mass(of: &[f64]) -> Body {
    Body {
        pos: [of[0], of[1], of[2]],
        mass: of[3],
        vel: [0.0; 3],
        cost: 1,
    }
}

fn reduce<T: Equivalence + Copy + Default, const N: usize>(
    world: &SimpleCommunicator,
    mine: [T; N],
    how: SystemOperation,
) -> [T; N] {
    let mut all = [T::default(); N];
    world.all_reduce_into(&mine[..], &mut all[..], how);
    all
}

/// Sends a list to each process, and returns what each sent here.
fn to_all<T: Equivalence + Copy + Default>(
    world: &SimpleCommunicator,
    lists: &[Vec<T>],
) -> Vec<Vec<T>> {
    let counts: Vec<i32> = lists.iter().map(|list| list.len() as i32).collect();
    let mut coming = vec![0_i32; lists.len()];
    world.all_to_all_into(&counts[..], &mut coming[..]);
    let starts = |counts: &[i32]| -> Vec<i32> {
        let from = |start: &mut i32, count: &i32| Some(std::mem::replace(start, *start + count));
        counts.iter().scan(0, from).collect()
    };
    let (sent, mut come) = (lists.concat(), vec![T::default(); sum(&coming)]);
    let (starts_sent, starts_come) = (starts(&counts), starts(&coming));
    let from = Partition::new(&sent[..], counts, starts_sent);
    let mut into = PartitionMut::new(&mut come[..], &coming[..], &starts_come[..]);
    world.all_to_all_varcount_into(&from, &mut into);
    let list = |(start, count): (&i32, &i32)| {
        let start = *start as usize;
        come[start..start + *count as usize].to_vec()
    };
    starts_come.iter().zip(&coming).map(list).collect()
}

fn sum(counts: &[i32]) -> usize {
    counts.iter().map(|count| *count as usize).sum()
}
