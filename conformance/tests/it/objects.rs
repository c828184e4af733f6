//! Objects with operations: one order explains what the workers see, whatever the schedule.

use conformance::objects::{Planted, Shape, run};
use conformance::seeds;

const fn shape(nodes: usize, objects: usize, acts: usize) -> Shape {
    Shape {
        nodes,
        objects,
        acts,
        changes: false,
        starts: false,
        withdraws: false,
        predefined: false,
    }
}

const SHAPES: [Shape; 12] = [
    shape(2, 1, 6),
    shape(3, 2, 5),
    Shape {
        changes: true,
        ..shape(3, 2, 5)
    },
    Shape {
        changes: true,
        ..shape(4, 1, 4)
    },
    Shape {
        starts: true,
        ..shape(2, 1, 6)
    },
    Shape {
        starts: true,
        ..shape(3, 2, 4)
    },
    Shape {
        changes: true,
        starts: true,
        ..shape(3, 2, 4)
    },
    Shape {
        withdraws: true,
        ..shape(3, 1, 6)
    },
    Shape {
        changes: true,
        withdraws: true,
        ..shape(3, 2, 5)
    },
    Shape {
        changes: true,
        starts: true,
        withdraws: true,
        ..shape(3, 1, 5)
    },
    Shape {
        predefined: true,
        ..shape(3, 1, 6)
    },
    Shape {
        predefined: true,
        starts: true,
        ..shape(3, 2, 4)
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
    for planted in Planted::ALL
        .into_iter()
        .filter(|it| *it != Planted::Nothing)
    {
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
