//! Objects with operations: what workers see has an order, whatever the schedule.

use conformance::objects::{Planted, Shape, run};
use conformance::seeds;

const SHAPES: [Shape; 7] = [
    Shape {
        nodes: 2,
        objects: 1,
        acts: 6,
        changes: false,
        starts: false,
    },
    Shape {
        nodes: 3,
        objects: 2,
        acts: 5,
        changes: false,
        starts: false,
    },
    Shape {
        nodes: 3,
        objects: 2,
        acts: 5,
        changes: true,
        starts: false,
    },
    Shape {
        nodes: 4,
        objects: 1,
        acts: 4,
        changes: true,
        starts: false,
    },
    Shape {
        nodes: 2,
        objects: 1,
        acts: 6,
        changes: false,
        starts: true,
    },
    Shape {
        nodes: 3,
        objects: 2,
        acts: 4,
        changes: false,
        starts: true,
    },
    Shape {
        nodes: 3,
        objects: 2,
        acts: 4,
        changes: true,
        starts: true,
    },
];

#[test]
fn operations_have_one_order_and_nobody_misses_a_wake_up() {
    for shape in SHAPES {
        for seed in seeds(0..1500) {
            if let Err(wrong) = run(shape, seed, Planted::Nothing) {
                panic!("DHOLE_SEED={seed} {shape:?}: {wrong}");
            }
        }
    }
}

#[test]
fn every_planted_error_is_caught() {
    for planted in Planted::ALL {
        let mut all = SHAPES
            .iter()
            .flat_map(|shape| (0..1500).map(move |seed| (*shape, seed)));
        let caught = all.find_map(|(shape, seed)| {
            let wrong = run(shape, seed, planted).err()?;
            Some((shape, seed, wrong))
        });
        let (_, seed, wrong) = caught.unwrap_or_else(|| panic!("{planted:?} is not caught"));
        println!("{planted:?}, seed {seed}: {wrong}");
        if planted == Planted::NotDeterministic {
            assert!(
                wrong.contains("since operation add") || wrong.contains("order"),
                "{wrong}"
            );
        }
    }
}
