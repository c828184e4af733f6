//! Generates small programs from a seed.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::model::Op::{self, *};
use crate::model::Program;

/// The shape of random programs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: u8,
    /// Objects, and as many locks, of which each guards one object in programs free of races.
    pub objects: u8,
    /// Phases, each of which ends at a barrier.
    pub phases: u8,
    /// The most accesses of a node in one phase.
    pub accesses: u8,
    /// Whether nodes access an object only while they hold its lock.
    pub race_free: bool,
    /// Whether a node may do the same thing under a lock three times in a row.
    pub again: bool,
}

/// The program of a seed: random accesses, some of them under locks, in phases that end at
/// barriers; in the end all nodes read all objects.
pub fn program(seed: u64, shape: Shape) -> Program {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut nodes = vec![Vec::new(); usize::from(shape.nodes)];
    for _ in 0..shape.phases {
        let kind = if random.random_bool(0.2) {
            Once
        } else {
            Barrier
        };
        for ops in &mut nodes {
            for _ in 0..random.random_range(0..=shape.accesses) {
                step(&mut random, shape, ops);
            }
            ops.push(kind);
        }
    }
    for ops in &mut nodes {
        ops.extend((0..shape.objects).map(Read));
    }
    let creator = |_| random.random_range(0..shape.nodes);
    let creators: Vec<u8> = (0..shape.objects).map(creator).collect();
    let zeros = random.random_bool(0.3);
    let program = Program::new("random", nodes);
    let program = match zeros {
        true => program.zeros(creators.len()),
        false => program.objects(&creators),
    };
    Program {
        race_free: shape.race_free,
        ..program
    }
}

fn step(random: &mut Xoshiro256PlusPlus, shape: Shape, ops: &mut Vec<Op>) {
    let object = random.random_range(0..shape.objects);
    let access = |random: &mut Xoshiro256PlusPlus| match random.random_bool(0.5) {
        true => Write(object),
        false => Read(object),
    };
    let nested = object + 1 < shape.objects && random.random_bool(0.2);
    match random.random_range(0..4) {
        0 if !shape.race_free => ops.push(access(random)),
        1 if !shape.race_free => ops.extend([access(random), Pause]),
        // Locks are nested in the order of their numbers, so nobody waits in a circle.
        _ if nested => ops.extend([
            Acquire(object),
            Acquire(object + 1),
            access(random),
            Release(object + 1),
            Release(object),
        ]),
        _ => {
            let times = if shape.again && random.random_bool(0.2) {
                3
            } else {
                1
            };
            let body = [
                Acquire(object),
                Read(object),
                access(random),
                Release(object),
            ];
            ops.extend(body.repeat(times));
        }
    }
}
