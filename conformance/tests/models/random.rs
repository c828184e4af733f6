//! Random programs: a seed decides the program, and every run of it is explored.

use std::ops::Range;

use conformance::model::{Cluster, Program, explore, random};

fn all_sound(seeds: Range<u64>, shape: random::Shape) {
    all_sound_where(seeds, shape, |program| program);
}

fn all_sound_where(seeds: Range<u64>, shape: random::Shape, change: fn(Program) -> Program) {
    let (mut states, mut most) = (0, 0);
    for seed in seeds.clone() {
        let program = change(random::program(seed, shape));
        let explored = explore(Cluster::new(program.clone()));
        assert!(
            explored.faults.is_empty(),
            "seed {seed}: {program:?}: {explored}"
        );
        states += explored.states;
        most = most.max(explored.states);
    }
    println!(
        "{} programs, {states} states, at most {most}: {shape:?}",
        seeds.count()
    );
}

const TWO_NODES: random::Shape = random::Shape {
    nodes: 2,
    objects: 2,
    phases: 2,
    accesses: 3,
    race_free: true,
    again: true,
};

const THREE_NODES: random::Shape = random::Shape {
    nodes: 3,
    objects: 2,
    phases: 1,
    accesses: 2,
    race_free: true,
    again: false,
};

#[test]
fn race_free_programs_of_two_nodes_are_sound() {
    all_sound(0..100, TWO_NODES);
}

#[test]
fn racy_programs_of_two_nodes_are_sound() {
    all_sound(
        0..200,
        random::Shape {
            race_free: false,
            ..TWO_NODES
        },
    );
}

#[test]
fn programs_of_two_nodes_whose_barriers_begin_with_rounds_are_sound() {
    for race_free in [false, true] {
        let shape = random::Shape {
            phases: 3,
            accesses: 2,
            race_free,
            again: false,
            ..TWO_NODES
        };
        all_sound_where(0..100, shape, Program::by_rounds);
        all_sound_where(0..100, shape, |program| program.by_rounds_from(0));
    }
}

#[test]
fn race_free_programs_of_three_nodes_are_sound() {
    all_sound(0..40, THREE_NODES);
}

#[test]
fn racy_programs_of_three_nodes_are_sound() {
    all_sound(
        0..60,
        random::Shape {
            race_free: false,
            ..THREE_NODES
        },
    );
}

#[test]
#[ignore = "too long for every change: 5 million states, 43 s in release; \
            cargo test -p conformance --release --test models random:: -- --ignored"]
fn programs_of_three_nodes_in_two_phases_are_sound() {
    for race_free in [false, true] {
        all_sound(
            0..60,
            random::Shape {
                phases: 2,
                race_free,
                ..THREE_NODES
            },
        );
    }
}

#[test]
#[ignore = "too long for every change: 27 million states, 210 s in release; \
            cargo test -p conformance --release --test models random:: -- --ignored"]
fn thousands_of_programs_of_two_nodes_are_sound() {
    for race_free in [false, true] {
        all_sound(
            1000..4000,
            random::Shape {
                race_free,
                ..TWO_NODES
            },
        );
    }
}
