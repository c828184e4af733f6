//! Maps: one order explains what nodes hear of single keys, whatever the schedule.

use conformance::maps::{Planted, Shape, run};
use conformance::seeds;

const SHAPES: [Shape; 3] = [shape(2, 1, 8), shape(3, 2, 6), shape(4, 3, 5)];

const fn shape(nodes: usize, keys: u8, calls: usize) -> Shape {
    Shape { nodes, keys, calls }
}

#[test]
fn one_order_explains_what_nodes_hear_of_keys() {
    for shape in SHAPES {
        for seed in seeds(0..1_000) {
            if let Err(wrong) = run(shape, seed, Planted::Nothing) {
                panic!("DHOLE_SEED={seed} {shape:?}: {wrong}");
            }
        }
    }
}

#[test]
fn every_bug_planted_in_maps_is_caught() {
    let planted = Planted::ALL.into_iter();
    for planted in planted.filter(|it| *it != Planted::Nothing) {
        let mut all = SHAPES
            .iter()
            .flat_map(|shape| (0..300).map(move |seed| (*shape, seed)));
        let caught = all.find_map(|(shape, seed)| run(shape, seed, planted).err());
        let wrong = caught.unwrap_or_else(|| panic!("{planted:?} is not caught"));
        assert!(
            wrong.starts_with("no order explains"),
            "{planted:?}: {wrong}"
        );
    }
}
