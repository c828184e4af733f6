//! Sections: one order explains what nodes hear of a counter and a queue, whatever the schedule.

use conformance::sections::{Planted, Shape, run};
use conformance::seeds;

fn shapes() -> impl Iterator<Item = Shape> {
    let sizes = [(2, 8), (3, 6), (4, 5)].into_iter();
    sizes.flat_map(|(nodes, calls)| {
        [true, false].map(|travel| Shape {
            nodes,
            calls,
            travel,
        })
    })
}

#[test]
fn one_order_explains_what_nodes_hear_of_counters_and_queues() {
    for shape in shapes() {
        for seed in seeds(0..500) {
            if let Err(wrong) = run(shape, seed, Planted::Nothing) {
                panic!("DHOLE_SEED={seed} {shape:?}: {wrong}");
            }
        }
    }
}

#[test]
fn every_bug_planted_in_sections_programs_is_caught() {
    let planted = Planted::ALL.into_iter();
    for planted in planted.filter(|it| *it != Planted::Nothing) {
        let mut all = shapes().flat_map(|shape| (0..300).map(move |seed| (shape, seed)));
        let caught = all.find_map(|(shape, seed)| run(shape, seed, planted).err());
        let wrong = caught.unwrap_or_else(|| panic!("{planted:?} is not caught"));
        assert!(
            wrong.starts_with("no order explains"),
            "{planted:?}: {wrong}"
        );
    }
}
