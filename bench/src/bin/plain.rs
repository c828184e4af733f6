//! What a machine lets two cores do, without dhole: Barnes-Hut in plain Rust on one thread and on
//! two, and two such programs at once. Times of a step, by the clock and of the processor.
//!
//! `plain [BODIES [STEPS [UNTIMED]]]`. The same bodies and the same inner loop as dhole's program
//! (`barnes --bodies BODIES --steps STEPS --untimed UNTIMED`). Two threads share arrays: each sorts
//! half of the places, grows half of the tree, and computes and moves the bodies of its zone.
//! Merging, joining the tree and dividing the cost are one thread's.
//!
//! If two programs at once are slower than one alone, no program on two cores is twice as fast.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use apps::barnes::gravity::{Law, Target};
use apps::barnes::leapfrog::{Energy, drift, kick};
use apps::barnes::moment::Moment;
use apps::barnes::place::{Place, Root, octants};
use apps::barnes::tree::{Cell, Cube, Inside};
use apps::barnes::{Body, Problem, initial, sequential};
use apps::vector::extent;
use bench::Outcome;
use bench::table::{head, ratio, row};
use rustix::time::{ClockId, clock_gettime};

/// By this argument this program runs the sequential program once, and prints its times.
const AS_ONE: &str = "as-one";
const ROUNDS: usize = 5;

/// Seconds of the measured steps: by the clock, and of the processor of the busiest thread.
#[derive(Clone, Copy)]
struct Took {
    clock: f64,
    processor: f64,
    /// The energy before the last step.
    energy: f64,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_one = arguments.first().is_some_and(|first| first == AS_ONE);
    let mut numbers = arguments[usize::from(is_one)..].iter();
    let mut next = |usual| numbers.next().map_or(Ok(usual), |number| number.parse());
    let usage = "usage: plain [BODIES [STEPS [UNTIMED]]]";
    let (Ok(bodies), Ok(steps), Ok(untimed)) = (next(131_072), next(12), next(6)) else {
        return Err(usage.into());
    };
    let problem = Problem {
        untimed,
        ..Problem::new(bodies, steps, 1)
    };
    if is_one {
        let one = alone(problem);
        println!("{} {} {}", one.clock, one.processor, one.energy);
        return Ok(());
    }
    println!("Barnes-Hut in plain Rust, {bodies} bodies, {steps} steps after {untimed}, s");
    measure(problem)
}

fn measure(problem: Problem) -> Outcome<()> {
    let [mut one, mut two, mut at_once] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        one.push(Started::new(problem)?.took()?);
        two.push(on_two_threads(problem));
        let both = [Started::new(problem)?, Started::new(problem)?];
        for program in both {
            at_once.push(program.took()?);
        }
    }
    let energy = one[0].energy;
    let is_alike = |took: &Took| (took.energy / energy - 1.0).abs() < 1e-9;
    if !one.iter().chain(&two).chain(&at_once).all(is_alike) {
        return Err("the programs do not find the same energy".into());
    }
    let of = |all: &[Took], which: fn(&Took) -> f64| all.iter().map(which).collect::<Vec<_>>();
    head();
    for (clock, which) in [
        ("clock", (|took| took.clock) as fn(&Took) -> f64),
        ("processor of the busier thread", |took| took.processor),
    ] {
        let alone = row(&format!("one thread, {clock}"), "s", of(&one, which));
        let threads = row(&format!("two threads, {clock}"), "s", of(&two, which));
        ratio("one thread's to two threads'", alone, threads, "-");
        let name = format!("each of two programs at once, {clock}");
        let each = row(&name, "s", of(&at_once, which));
        ratio("to one alone", each, alone, "1 where cores are one's own");
    }
    Ok(())
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The sequential program, in a process of its own.
struct Started(Child);

impl Started {
    fn new(problem: Problem) -> Outcome<Started> {
        let numbers = [problem.bodies, problem.steps, problem.untimed];
        let child = Command::new(std::env::current_exe()?)
            .arg(AS_ONE)
            .args(numbers.map(|number| number.to_string()))
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Started(child))
    }

    fn took(self) -> Outcome<Took> {
        let output = self.0.wait_with_output()?;
        let said = String::from_utf8(output.stdout)?;
        let numbers: Vec<f64> = said
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        match numbers[..] {
            [clock, processor, energy] => Ok(Took {
                clock,
                processor,
                energy,
            }),
            _ => Err(format!("a program said {said:?}").into()),
        }
    }
}

fn alone(problem: Problem) -> Took {
    let mut universe = sequential::Universe::new(problem);
    for _ in 0..problem.untimed {
        universe.step();
    }
    let (began, processor) = (Instant::now(), processor_time());
    let mut energy = Energy::default();
    for _ in 0..problem.steps {
        energy = universe.step();
    }
    Took {
        clock: began.elapsed().as_secs_f64(),
        processor: (processor_time() - processor).as_secs_f64(),
        energy: energy.total(),
    }
}

/// Runs `first` on this thread and `second` on another one. What they return, and the processor
/// time of the one that took more.
fn both<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B, Duration) {
    let began = processor_time();
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let value = second();
            (value, processor_time())
        });
        let value = first();
        let took = processor_time() - began;
        match other.join() {
            Ok((other, other_took)) => (value, other, took.max(other_took)),
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    })
}

fn on_two_threads(problem: Problem) -> Took {
    let mut galaxy = Galaxy::new(problem);
    let mut began = (Instant::now(), Duration::ZERO);
    for step in 0..problem.all_steps() {
        if step == problem.untimed {
            began = (Instant::now(), galaxy.processor);
        }
        galaxy.step(step == 0);
    }
    Took {
        clock: began.0.elapsed().as_secs_f64(),
        processor: (galaxy.processor - began.1).as_secs_f64(),
        energy: galaxy.energy.total(),
    }
}

/// The bodies, in the order of the tree of the step before.
struct Galaxy {
    problem: Problem,
    bodies: Vec<Body>,
    moved: Vec<Body>,
    places: Vec<Place>,
    /// Where the zone of the second thread begins.
    cut: usize,
    energy: Energy,
    /// Of the thread that took more, phase by phase, and of what one thread does alone.
    processor: Duration,
}

impl Galaxy {
    fn new(problem: Problem) -> Galaxy {
        let bodies = initial::bodies(&problem);
        Galaxy {
            moved: bodies.clone(),
            places: vec![Place { key: 0, body: 0 }; bodies.len()],
            cut: bodies.len() / 2,
            bodies,
            problem,
            energy: Energy::default(),
            processor: Duration::ZERO,
        }
    }

    /// Counts the processor time of what this thread does alone.
    fn by_one<T>(&mut self, work: impl FnOnce(&mut Galaxy) -> T) -> T {
        let began = processor_time();
        let value = work(self);
        self.processor += processor_time() - began;
        value
    }

    fn step(&mut self, first: bool) {
        let root = self.sort();
        let tree = self.grow();
        self.by_one(Galaxy::divide);
        self.pull(root, &tree, first);
        self.by_one(|_| drop(tree));
        std::mem::swap(&mut self.bodies, &mut self.moved);
    }

    /// The places of all bodies, in order.
    fn sort(&mut self) -> Root {
        let (cut, bodies) = (self.cut, &self.bodies);
        let far = |bodies: &[Body]| {
            bodies
                .iter()
                .map(|body| extent(body.pos))
                .fold(0.0, f64::max)
        };
        let (one, other, took) = both(|| far(&bodies[..cut]), || far(&bodies[cut..]));
        self.processor += took;
        let root = Root::around(one.max(other));
        let (low, high) = self.places.split_at_mut(cut);
        let order = |places: &mut [Place], from: usize| {
            for (place, number) in places.iter_mut().zip(from..) {
                place.key = root.key(bodies[number].pos);
                place.body = number as u32;
            }
            places.sort();
        };
        let ((), (), took) = both(|| order(low, 0), || order(high, cut));
        self.processor += took;
        // Two runs in order, which this sort merges.
        self.by_one(|galaxy| galaxy.places.sort());
        root
    }

    /// The tree: each thread grows what lies in its half of the places, two levels down.
    fn grow(&mut self) -> Cube {
        let (bodies, places) = (&self.bodies, &self.places);
        let mut parts = Vec::new();
        for octant in octants(places, 0) {
            let within = octants(&places[octant.clone()], 1);
            let begin = octant.start;
            parts.push(within.map(|part| begin + part.start..begin + part.end));
        }
        let in_leaf = self.problem.leaf_bodies;
        let grown = |is_mine: fn(usize, usize) -> bool| -> Vec<Option<Cube>> {
            let grow = |part: &Range<usize>| {
                let is_mine = is_mine((part.start + part.end) / 2, places.len() / 2);
                let grows = is_mine && !part.is_empty();
                grows.then(|| Cube::grow(bodies, &places[part.clone()], 2, in_leaf))
            };
            parts.iter().flatten().map(grow).collect()
        };
        let (low, high, took) = both(
            || grown(|middle, cut| middle < cut),
            || grown(|middle, cut| middle >= cut),
        );
        self.processor += took;
        self.by_one(|_| {
            let mut cubes = low.into_iter().zip(high).map(|(low, high)| low.or(high));
            let tops = (0..8).filter_map(|_| join(cubes.by_ref().take(8).flatten().collect()));
            join(tops.collect()).unwrap_or_default()
        })
    }

    /// Gives both threads the same cost of the last step.
    fn divide(&mut self) {
        let cost = |place: &Place| self.bodies[place.body as usize].cost;
        let half = self.places.iter().map(cost).sum::<u64>() / 2;
        let mut before = 0;
        let is_low = |place: &&Place| {
            before += cost(place);
            before <= half
        };
        self.cut = self.places.iter().take_while(is_low).count();
    }

    /// Computes the pull on all bodies, and moves them.
    fn pull(&mut self, root: Root, tree: &Cube, first: bool) {
        let (bodies, places, problem) = (&self.bodies, &self.places, &self.problem);
        let (low, high) = self.moved.split_at_mut(self.cut);
        let go = |moved: &mut [Body], from: usize| {
            let mut energy = Energy::default();
            for (moved, place) in moved.iter_mut().zip(&places[from..]) {
                *moved = bodies[place.body as usize];
                let mut target = Target::new(Law::of(problem), moved.pos);
                tree.walk(bodies, place.body, &mut target, root.side_squared());
                let now = kick(moved, target.pull.acc, first, problem.time_step);
                moved.cost = target.pull.cost();
                energy.count(moved.mass, now, target.pull.phi);
                drift(moved, problem.time_step);
            }
            energy
        };
        let cut = self.cut;
        let (mut energy, other, took) = both(|| go(low, 0), || go(high, cut));
        self.processor += took;
        energy.kinetic += other.kinetic;
        energy.potential += other.potential;
        self.energy = energy;
    }
}

/// The cube with these octants; none where there are none.
fn join(octants: Vec<Cube>) -> Option<Cube> {
    if octants.is_empty() {
        return None;
    }
    let mut cell = Box::new(Cell {
        count: octants.len() as u32,
        cubes: Default::default(),
    });
    cell.cubes
        .iter_mut()
        .zip(octants)
        .for_each(|(cube, octant)| *cube = octant);
    let moment = Moment::of(cell.cubes().iter().map(|cube| cube.moment));
    let inside = Inside::Cell(cell);
    Some(Cube { moment, inside })
}
