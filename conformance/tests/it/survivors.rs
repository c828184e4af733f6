//! Objects in clusters that lose nodes: one order explains what workers see, and errors name what
//! is lost.

use conformance::seeds;
use conformance::survivors::{Planted, Shape, run};

const SHAPES: [Shape; 4] = [
    Shape {
        nodes: 3,
        objects: 1,
        acts: 5,
        changes: false,
        crashes: 1,
    },
    Shape {
        nodes: 3,
        objects: 2,
        acts: 5,
        changes: true,
        crashes: 1,
    },
    Shape {
        nodes: 5,
        objects: 1,
        acts: 3,
        changes: true,
        crashes: 2,
    },
    Shape {
        nodes: 3,
        objects: 2,
        acts: 5,
        changes: true,
        crashes: 0,
    },
];

#[test]
fn operations_have_one_order_whoever_crashes() {
    for shape in SHAPES {
        for seed in seeds(0..500) {
            if let Err(wrong) = run(shape, seed, Planted::Nothing) {
                panic!("DHOLE_SEED={seed} {shape:?}: {wrong}");
            }
        }
    }
}

#[test]
fn histories_with_a_planted_error_are_caught() {
    for planted in [Planted::AcknowledgedForNothing, Planted::Resurrected] {
        let mut all = SHAPES
            .iter()
            .flat_map(|shape| (0..300).map(move |seed| (*shape, seed)));
        let caught = all.find_map(|(shape, seed)| run(shape, seed, planted).err());
        let wrong = caught.unwrap_or_else(|| panic!("{planted:?} is not caught"));
        let words = ["order", "is back"];
        assert!(words.iter().any(|words| wrong.contains(words)), "{wrong}");
        println!("{planted:?}: {wrong}");
    }
}
