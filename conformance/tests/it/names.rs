//! Names: one order explains what the nodes get, whatever the schedule.

use conformance::names::{Planted, Shape, run};
use conformance::seeds;

const SHAPES: [Shape; 4] = [
    Shape {
        nodes: 2,
        names: 1,
        calls: 6,
        crashes: 0,
    },
    Shape {
        nodes: 3,
        names: 2,
        calls: 5,
        crashes: 0,
    },
    Shape {
        nodes: 3,
        names: 1,
        calls: 6,
        crashes: 1,
    },
    Shape {
        nodes: 4,
        names: 1,
        calls: 4,
        crashes: 0,
    },
];

#[test]
fn calls_about_names_have_one_order() {
    for shape in SHAPES {
        for seed in seeds(0..1000) {
            if let Err(wrong) = run(shape, seed, Planted::Nothing) {
                panic!("DHOLE_SEED={seed} {shape:?}: {wrong}");
            }
        }
    }
}

#[test]
fn every_bug_planted_in_names_is_caught() {
    for planted in Planted::ALL
        .into_iter()
        .filter(|it| *it != Planted::Nothing)
    {
        let mut all = SHAPES
            .iter()
            .flat_map(|shape| (0..1000).map(move |seed| (*shape, seed)));
        let caught = all.find_map(|(shape, seed)| {
            let wrong = run(shape, seed, planted).err()?;
            Some((shape, seed, wrong))
        });
        let (_, seed, wrong) = caught.unwrap_or_else(|| panic!("{planted:?} is not caught"));
        println!("{planted:?}, seed {seed}: {wrong}");
        assert!(wrong.contains("order"), "{wrong}");
    }
}
