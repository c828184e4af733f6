//! Hits and warm misses allocate nothing. On threads a fetch runs both nodes' handlers on the
//! thread that asks, so what that thread allocates is what the whole miss allocates.

use allocation_counter::measure;
use dhole::{Config, Optimisations, Ref, Share};

#[derive(Share, Clone, Copy)]
struct Body {
    at: [f64; 3],
    next: Option<Ref<Body>>,
}

#[test]
fn a_warm_miss_allocates_nothing_and_neither_does_a_hit() {
    // By themselves: the first round makes tables and buffers.
    warm_misses([false, false], 1, 6 * 300, 0);
    // By pages, of which the objects lie on three: what is missed for the first time has no place
    // yet and is fetched by itself, so it is the second round that makes the lists.
    warm_misses([true, false], 2, 300 + 6 * 3, 6 * (300 - 3));
    // In the memory of the node that wrote them.
    warm_misses([true, true], 1, 0, 0);
}

/// Five warm rounds after so many cold ones.
fn warm_misses([read_aggregation, one_sided]: [bool; 2], cold: u32, misses: u64, beside: u64) {
    let optimisations = Optimisations {
        read_aggregation,
        // A miss that reads others ahead makes lists of them.
        learn: false,
        ..Optimisations::default()
    };
    let rounds = cold + 5;
    let config = Config::nodes(2).optimisations(optimisations);
    let run = config.one_sided(one_sided).run(|w| {
        let none = Body {
            at: [0.0; 3],
            next: None,
        };
        let bodies = w.once(|w| Ok(w.alloc_range(300, |_| none)))?;
        let (mut missing, mut hitting) = (0, 0);
        for round in 0..rounds {
            if w.node().index() == 0 {
                bodies.iter().for_each(|body| body.get_mut(w).at[0] += 1.0);
            }
            w.barrier()?;
            if w.node().index() == 1 {
                let read = || bodies.iter().map(|body| body.get(w).at[0]).sum::<f64>();
                let mut sum = 0.0;
                let misses = measure(|| sum = read()).count_total;
                let hits = measure(|| assert_eq!(sum, read())).count_total;
                assert_eq!(sum, 300.0 * f64::from(round + 1));
                if round >= cold {
                    missing += misses;
                    hitting += hits;
                }
            }
            w.barrier()?;
        }
        let seen = w.once(|w| Ok(w.alloc([0_u64; 2])))?;
        if w.node().index() == 1 {
            *seen.get_mut(w) = [missing, hitting];
        }
        w.barrier()?;
        Ok(seen.read(w))
    });
    let run = run.unwrap();
    let total = run.report.total();
    assert_eq!(total.by_type["allocations::warm::Body"].misses, misses);
    assert_eq!(
        total.by_type["allocations::warm::Body"].installed,
        u64::from(rounds) * 300
    );
    assert_eq!(total.asked_beside, beside);
    assert_eq!(
        run.value,
        [0, 0],
        "allocations in warm misses of 1,500 objects and 1,500 hits"
    );
}

#[test]
fn a_warm_miss_of_elements_allocates_nothing_and_neither_does_a_slice() {
    // Each part by itself; of 28 parts in 6 pages two alone, the others read ahead with some.
    for (learn, misses) in [(false, 28), (true, 5)] {
        warm_misses_of_elements(learn, misses);
    }
}

fn warm_misses_of_elements(learn: bool, misses: u64) {
    let optimisations = Optimisations {
        learn,
        ..Optimisations::default()
    };
    let config = Config::nodes(2).one_sided(false);
    let run = config.optimisations(optimisations).run(|w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(3000)))?;
        let (mut missing, mut hitting) = (0, 0);
        for step in 0..6 {
            if w.node().index() == 0 {
                let written = array.slice_mut(w, 100..2900);
                written.iter_mut().for_each(|value| *value += 1);
            }
            w.barrier()?;
            if w.node().index() == 1 {
                let read = |part: usize| array.slice(w, 100 * part..100 * (part + 1))[99];
                let sum = || (0..30).map(read).sum::<u64>();
                let mut seen = 0;
                let misses = measure(|| seen = sum()).count_total;
                let hits = measure(|| assert_eq!(seen, sum())).count_total;
                assert_eq!(seen, 28 * (step + 1));
                // The lists of questions and replies grow in the first two.
                if step > 1 {
                    missing += misses;
                    hitting += hits;
                }
            }
            w.barrier()?;
        }
        let seen = w.once(|w| Ok(w.alloc([0_u64; 2])))?;
        if w.node().index() == 1 {
            *seen.get_mut(w) = [missing, hitting];
        }
        w.barrier()?;
        Ok(seen.read(w))
    });
    let run = run.unwrap();
    assert_eq!(run.report.total().fetch_rounds, 6 * misses + 2);
    assert_eq!(
        run.value,
        [0, 0],
        "allocations in warm misses and in slices"
    );
}
