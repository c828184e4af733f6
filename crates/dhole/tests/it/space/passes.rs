//! Walks in passes: how many rounds they take, that nothing is read twice where it need not be,
//! and what ends them.

use std::cell::RefCell;

use dhole::sim::Settings;
use dhole::{
    Access, AccessError, Coherence, Config, Error, Lock, NodeId, Optimisations, Ref, Refs, Share,
    Worker,
};

#[derive(Share, Clone, Copy)]
struct Node {
    value: u64,
    below: [Option<Ref<Node>>; 2],
}

/// A balanced tree of so many levels.
fn tree(w: &mut Worker<'_>, levels: u32) -> Option<Ref<Node>> {
    let below = levels.checked_sub(1)?;
    let below = [tree(w, below), tree(w, below)];
    let value = u64::from(levels);
    Some(w.alloc(Node { value, below }))
}

const LEVELS: u32 = 8;
const LEAVES: u32 = 1 << (LEVELS - 1);

/// The sum on the path to a leaf.
fn path<'id>(w: &impl Access<'id>, root: Ref<Node>, leaf: u32) -> u64 {
    let (mut at, mut sum) = (Some(root), 0);
    for level in (0..LEVELS).rev() {
        let Some(node) = at.map(|at| at.get(w)) else {
            break;
        };
        sum += node.value;
        let turn = (leaf >> level.saturating_sub(1)) & 1;
        at = node.below[turn as usize];
    }
    sum
}

/// Objects alone, each by a message of its own.
fn alone() -> Config {
    Config::nodes(2)
        .one_sided(false)
        .optimisations(Optimisations {
            read_aggregation: false,
            learn: false,
            ..Optimisations::default()
        })
}

const OF_ALL: u64 = (LEVELS * (LEVELS + 1) / 2) as u64;

/// A walk takes a round for each of 255 objects. In passes the first two of 128 items take 8, of
/// which the last seven bring two objects each; the next 14 lack six levels; the others three.
#[test]
fn paths_of_a_tree_share_their_rounds() {
    for in_passes in [false, true] {
        let run = alone().simulate(Settings::fixed_cost(2), move |w| {
            let root = w.once(|w| Ok(tree(w, LEVELS)))?.expect("a level");
            if w.node() == NodeId(1) {
                let leaves: Vec<u32> = (0..LEAVES).collect();
                let sums: Vec<u64> = match in_passes {
                    true => w.in_passes(&leaves, |pass, leaf| Ok(path(pass, root, *leaf)))?,
                    false => leaves.iter().map(|leaf| path(&*w, root, *leaf)).collect(),
                };
                assert_eq!(sums, [OF_ALL; LEAVES as usize]);
            }
            Ok(())
        });
        let total = run.expect("a run").report.total();
        let rounds = if in_passes { 8 + 6 + 3 } else { 255 };
        assert_eq!((total.misses, total.fetch_rounds), (255, rounds));
    }
}

fn numbers(w: &mut Worker<'_>, count: usize) -> dhole::Result<Refs<u64>> {
    w.once(|w| Ok(w.alloc_range(count, |i| i as u64)))
}

#[test]
fn an_item_that_goes_on_behind_a_miss_names_all_that_it_lacks() {
    const EACH: usize = 10;
    for (goes_on, rounds) in [(true, 1), (false, EACH as u64)] {
        let run = alone().simulate(Settings::fixed_cost(2), move |w| {
            let numbers = numbers(w, EACH)?;
            if w.node() == NodeId(1) {
                let runs = RefCell::new(0);
                let sums = w.in_passes(&[0], |pass, first| {
                    *runs.borrow_mut() += 1;
                    let mut sum = *first;
                    for number in numbers.iter() {
                        match goes_on {
                            true => sum += number.try_get(pass).copied().unwrap_or(1000),
                            false => sum += number.get(pass),
                        }
                    }
                    Ok(sum)
                })?;
                assert_eq!((sums, runs.into_inner()), (vec![45], rounds + 1));
            }
            Ok(())
        });
        assert_eq!(run.expect("a run").report.total().fetch_rounds, rounds);
    }
}

#[test]
fn elements_come_in_passes_too_and_each_node_is_asked_once() {
    let run = alone().simulate(Settings::fixed_cost(3), |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(3_000)))?;
        let me = w.node().index();
        array.slice_mut(w, me * 1_000..(me + 1) * 1_000).fill(1);
        w.barrier()?;
        if me == 2 {
            let items: Vec<usize> = (0..20).collect();
            let sums = w.in_passes(&items, |pass, item| {
                let at = item * 100;
                Ok(array.slice(pass, at..at + 100).iter().sum::<u64>())
            })?;
            assert_eq!(sums, [100; 20]);
            // One item of the first node, then one of each, then all others.
            assert_eq!(w.counters().fetch_rounds, 3);
        }
        Ok(())
    });
    run.expect("a run");
}

#[test]
fn where_memory_is_seen_each_item_runs_once_in_its_order() {
    let run = Config::nodes(2).run(|w| {
        let numbers = numbers(w, 200)?;
        if w.node() == NodeId(1) {
            let runs = RefCell::new(Vec::new());
            let items: Vec<usize> = (0..200).collect();
            let values = w.in_passes(&items, |pass, item| {
                runs.borrow_mut().push(*item);
                Ok(*numbers.at(*item).get(pass))
            })?;
            assert!(values.into_iter().eq(0..200));
            assert_eq!(*runs.borrow(), items);
        }
        w.barrier()?;
        Ok(())
    });
    let total = run.expect("a run").report.total();
    assert_eq!((total.one_sided_reads, total.misses), (200, 0));
}

#[test]
fn more_than_a_pass_notes_takes_another() {
    const COUNT: usize = 80_000;
    let run = alone().simulate(Settings::fixed_cost(2), |w| {
        let numbers = numbers(w, COUNT)?;
        if w.node() == NodeId(1) {
            let items: Vec<usize> = (0..COUNT).collect();
            let values = w.in_passes(&items, |pass, item| Ok(*numbers.at(*item).get(pass)))?;
            assert!(values.into_iter().eq(0..COUNT as u64));
            assert_eq!(w.counters().fetch_rounds, 1 + 1 + 2);
        }
        Ok(())
    });
    run.expect("a run");
}

#[test]
fn the_values_are_the_same_under_every_protocol() {
    let all = [
        Coherence::Lazy,
        Coherence::Update,
        Coherence::Home,
        Coherence::TreadMarks,
    ];
    for coherence in all {
        for seed in 0..20 {
            let mut settings = Settings::fixed_cost(3);
            (settings.seed, settings.network.jitter) = (seed, 1.0);
            let config = Config::nodes(3).coherence(coherence);
            let run = config.simulate(settings, |w| {
                let numbers = numbers(w, 60)?;
                let lock = Lock::numbered(3);
                for round in 0..3 {
                    let held = lock.acquire(w)?;
                    let items: Vec<usize> = (0..60).collect();
                    let values = w.in_passes(&items, |pass, at| Ok(*numbers.at(*at).get(pass)))?;
                    for (at, value) in values.into_iter().enumerate().skip(round) {
                        *numbers.at(at).get_mut(w) = value + 1;
                    }
                    held.release(w)?;
                }
                w.barrier()?;
                Ok(numbers.iter().map(|number| *number.get(w)).sum::<u64>())
            });
            let sum = run.unwrap_or_else(|error| panic!("{coherence} {seed}: {error}"));
            assert_eq!(
                sum.value,
                60 * 59 / 2 + 3 * (60 + 59 + 58),
                "{coherence} {seed}"
            );
        }
    }
}

#[test]
fn an_error_a_panic_or_an_object_that_is_gone_ends_the_walk() {
    let run = alone().simulate(Settings::fixed_cost(2), |w| {
        let numbers = numbers(w, 4)?;
        if w.node() == NodeId(1) {
            let mut runs = 0;
            let ended = w.in_passes(&[0, 1, 2, 3], |pass, item| {
                runs += 1;
                match *numbers.at(*item).get(pass) {
                    2 => Err(Error::program("two")),
                    value => Ok(value),
                }
            });
            assert_eq!(ended.unwrap_err().to_string(), "two");
            // Item 0 twice; the others once; item 1 and 2 again.
            assert_eq!(runs, 2 + 3 + 2);
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                w.in_passes(&[0], |_, _| -> dhole::Result<()> {
                    std::panic::resume_unwind(Box::new("three"))
                })
            }));
            assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"three"));
        }
        w.barrier()?;
        let gone = w.once(|w| Ok(w.alloc(7_u64)))?;
        if w.node() == NodeId(0) {
            w.free(gone)?;
        }
        w.barrier()?;
        let ended = w.in_passes(&[gone], |pass, gone| Ok(*gone.get(pass)));
        let Err(Error::Access(AccessError::Freed { site, .. })) = ended else {
            panic!("{ended:?}");
        };
        assert!(site.to_string().contains("passes.rs"), "{site}");
        Ok(())
    });
    run.expect("a run");
}
