//! Graphs: what a program follows from missed objects comes along with them, once that is learned.

use dhole::sim::{Description, Settings};
use dhole::{Coherence, Config, Counters, Optimisations, Own, Ref, Refs, Result, Share, Worker};

#[derive(Share, Clone, Copy)]
struct Node {
    value: u64,
    children: [Option<Ref<Node>>; 2],
    /// A reference that no walk follows.
    aside: Option<Ref<[u64; 16]>>,
}

/// A balanced tree of so many levels.
fn tree(w: &mut Worker<'_>, levels: u32) -> Option<Ref<Node>> {
    let below = levels.checked_sub(1)?;
    let children = [tree(w, below), tree(w, below)];
    let aside = Some(w.alloc([7; 16]));
    Some(w.alloc(Node {
        value: 1,
        children,
        aside,
    }))
}

/// The one line that reads nodes.
fn node<'w>(w: &'w Worker<'_>, node: Ref<Node>) -> &'w Node {
    node.get(w)
}

fn sum(w: &Worker<'_>, root: Ref<Node>) -> u64 {
    let Node {
        value, children, ..
    } = *node(w, root);
    let below = children.into_iter().flatten();
    value + below.map(|child| sum(w, child)).sum::<u64>()
}

/// Objects alone, so that what lies beside a missed object does not come with it.
fn config(nodes: usize, learn: bool) -> Config {
    Config::nodes(nodes)
        .one_sided(false)
        .optimisations(Optimisations {
            read_aggregation: false,
            learn,
            ..Optimisations::default()
        })
}

/// What node 1 did that read many trees of node 0, of so many levels.
fn reads_trees(coherence: Coherence, learn: bool, (trees, levels): (usize, u32)) -> Counters {
    let config = config(2, learn).coherence(coherence);
    let run = config.simulate(Settings::fixed_cost(2), move |w| {
        let roots = w.once(|w| {
            let roots: Vec<_> = (0..trees).map(|_| tree(w, levels)).collect();
            Ok(w.alloc_range(trees, |i| roots[i].expect("a level")))
        })?;
        if w.node().index() == 1 {
            w.prefetch(roots)?;
            let all: u64 = roots.iter().map(|root| sum(w, *root.get(w))).sum();
            assert_eq!(all, trees as u64 * ((1 << levels) - 1));
        }
        Ok(w.barrier()?)
    });
    run.expect("a run").report.per_node[1].clone()
}

#[test]
fn a_tree_comes_with_its_root_once_two_references_were_followed() {
    for coherence in [Coherence::Lazy, Coherence::Update] {
        let off = reads_trees(coherence, false, (20, 3));
        assert_eq!((off.misses, off.came_along), (20 + 140, 0));
        // Of the first tree, the root, a child and a grandchild: then both halves of the tree of
        // the other child come with it.
        let on = reads_trees(coherence, true, (20, 3));
        assert_eq!(on.came_along, on.along_read, "nothing came in vain");
        assert_eq!(on.misses + on.came_along + on.came_ahead, off.misses);
        // Under lazy the roots of trees, and nodes of the first, come ahead too.
        let expected = if coherence == Coherence::Lazy {
            30
        } else {
            20 + 5 + 19
        };
        assert_eq!(on.misses, expected, "{coherence}");
    }
}

#[test]
fn a_large_tree_comes_in_parts_that_grow() {
    let on = reads_trees(Coherence::Lazy, true, (1, 12));
    assert_eq!(on.misses - 1 + on.came_along + on.came_ahead, (1 << 12) - 1);
    assert_eq!(on.along_read, on.came_along);
    assert!(on.misses < 4096 / 6, "{} misses", on.misses);
}

/// Where a one-sided read takes a round trip, objects that are followed come with a message.
#[test]
fn what_is_followed_comes_by_message_where_a_one_sided_read_is_a_round_trip() {
    let network = Description::find("infiniband").unwrap().network;
    let settings = Settings {
        network,
        ..Settings::fixed_cost(2)
    };
    let run = config(2, true).one_sided(true).simulate(settings, |w| {
        let root = w.once(|w| Ok(tree(w, 10).expect("a level")))?;
        if w.node().index() == 1 {
            assert_eq!(sum(w, root), (1 << 10) - 1);
        }
        Ok(w.barrier()?)
    });
    let reader = &run.expect("a run").report.per_node[1];
    // A child and a grandchild are read so, which teaches that children are followed.
    assert_eq!(reader.one_sided_reads, 2);
    let came = reader.came_along + reader.came_ahead;
    assert_eq!(2 + reader.misses + came, (1 << 10) - 1);
    assert!(reader.came_along > 2 * reader.misses, "{reader:?}");
}

#[derive(Share, Clone, Copy)]
struct Record {
    number: u64,
    /// So large that no other comes ahead of a miss.
    rest: [[u64; 32]; 17],
    details: Ref<[u64; 32]>,
}

#[test]
fn what_came_in_vain_is_unlearned() {
    const RECORDS: usize = 64;
    let run = config(2, true).simulate(Settings::fixed_cost(2), |w| {
        let records = w.once(|w| {
            let details: Vec<_> = (0..RECORDS).map(|i| w.alloc([i as u64; 32])).collect();
            Ok(w.alloc_range(RECORDS, |i| Record {
                number: 0,
                rest: [[0; 32]; 17],
                details: details[i],
            }))
        })?;
        for round in 0..8 {
            if w.node().index() == 0 {
                for record in records.iter() {
                    record.update(w, |record| record.number += 1);
                    let details = record.get(w).details;
                    details.get_mut(w)[0] += 1;
                }
            }
            w.barrier()?;
            if w.node().index() == 1 {
                for record in records.iter() {
                    let Record {
                        number, details, ..
                    } = *record.get(w);
                    assert_eq!(number, round + 1);
                    if round == 0 {
                        assert!(details.get(w)[0] > 0);
                    }
                }
            }
            w.barrier()?;
        }
        Ok(())
    });
    let reader = &run.expect("a run").report.per_node[1];
    // In the first round two details are missed, and 62 come along and are read. In the second one
    // all come, in vain, of which half are enough to unlearn it when they are invalidated.
    assert_eq!(reader.misses, 8 * 64 + 2);
    assert_eq!((reader.came_along, reader.along_read), (62 + 64, 62));
}

/// An object that is freed is known to be unread, as one that is written.
#[test]
fn what_came_along_and_was_freed_unread_is_unlearned() {
    const ROUNDS: u64 = 200;
    const READ: u64 = 4;
    let run = config(2, true).simulate(Settings::fixed_cost(2), |w| {
        let shown = w.once(|w| Ok(w.alloc(None::<Ref<Record>>)))?;
        for round in 0..ROUNDS {
            if w.node().index() == 0 {
                let details = w.alloc([round; 32]);
                let record = w.alloc(Record {
                    number: round,
                    rest: [[0; 32]; 17],
                    details,
                });
                *shown.get_mut(w) = Some(record);
            }
            w.barrier()?;
            if w.node().index() == 1 {
                let record = shown.read(w).expect("a record");
                let Record {
                    number, details, ..
                } = *record.get(w);
                assert_eq!(number, round);
                if round < READ {
                    assert_eq!(details.get(w)[0], round);
                }
            }
            w.barrier()?;
            if w.node().index() == 0 {
                let record = shown.read(w).expect("a record");
                let details = record.get(w).details;
                w.free(details)?;
                w.free(record)?;
            }
        }
        Ok(())
    });
    let reader = &run.expect("a run").report.per_node[1];
    // All records but two come along with the reference to them, and are read. Of the details,
    // which are read at first, 32 are judged.
    let (records, judged) = (ROUNDS - 2, 32);
    let came = (reader.came_along, reader.along_read);
    assert_eq!(came, (records + judged, records));
}

/// What the nodes read in a random walk over trees that are written between barriers.
fn walk(config: Config, seed: u64) -> Result<u64> {
    let settings = Settings {
        seed,
        ..Settings::fixed_cost(3)
    };
    let run = config.simulate(settings, |w| {
        let me = w.node().index();
        let shown = w.once(|w| Ok(w.alloc_range(3, |_| None::<Ref<Node>>)))?;
        *shown.at(me).get_mut(w) = tree(w, 5);
        w.barrier()?;
        let mut random = seed.wrapping_mul(3) + me as u64;
        let mut next = move || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize
        };
        let mut read = 0_u64;
        for round in 0..6 {
            for _ in 0..4 {
                let mut at = shown.at(next() % 3).read(w).expect("a tree");
                for _ in 0..next() % 6 {
                    let node = at.get(w);
                    read = read.wrapping_mul(31).wrapping_add(node.value);
                    let Some(child) = node.children[next() % 2] else {
                        break;
                    };
                    at = child;
                }
            }
            w.barrier()?;
            // Each node writes some of the tree behind its own.
            let mut at = shown.at((me + 1) % 3).read(w).expect("a tree");
            while let Some(child) = at.get(w).children[next() % 2] {
                at.get_mut(w).value += round + 1;
                at = child;
            }
            w.barrier()?;
        }
        Ok(w.all_reduce(read, |one, other| one ^ other)?)
    })?;
    Ok(run.value)
}

#[test]
fn what_a_program_computes_does_not_depend_on_what_is_learned() {
    for coherence in [Coherence::Lazy, Coherence::Update, Coherence::Home] {
        for seed in 0..20 {
            let run = |learn| walk(config(3, learn).coherence(coherence), seed);
            let (off, on) = (run(false).expect("a run"), run(true).expect("a run"));
            assert_eq!(off, on, "{coherence}, seed {seed}");
        }
    }
}

#[derive(Share)]
struct Holder {
    part: Own<[Option<Ref<u64>>; 4]>,
}

#[test]
fn references_are_followed_from_what_an_object_owns() {
    const HOLDERS: usize = 10;
    let run = config(2, true).simulate(Settings::fixed_cost(2), |w| {
        let holders = w.once(|w| {
            let holders: Vec<_> = (0..HOLDERS)
                .map(|_| {
                    let numbers = [1, 2, 3, 4].map(|number| Some(w.alloc(number)));
                    let part = w.alloc_own(numbers);
                    w.alloc(Holder { part })
                })
                .collect();
            Ok(w.alloc_range(HOLDERS, |i| holders[i]))
        })?;
        if w.node().index() == 1 {
            w.prefetch(holders)?;
            for holder in holders.iter() {
                let numbers = holder.get(w).get(w).part.get(w);
                let sum: u64 = numbers.iter().flatten().map(|number| number.read(w)).sum();
                assert_eq!(sum, 10);
            }
        }
        Ok(w.barrier()?)
    });
    let reader = &run.expect("a run").report.per_node[1];
    // Of the first holder the four numbers are missed; with each other one all comes. One holder
    // comes ahead of another one.
    assert_eq!(reader.misses, HOLDERS as u64 * 2 + 4 - 1);
    assert_eq!(reader.came_ahead, 1);
    assert_eq!(reader.came_along, HOLDERS as u64 + 4 * (HOLDERS as u64 - 1));
    assert_eq!(reader.along_read, reader.came_along);
}

#[test]
fn the_objects_of_a_range_come_along() {
    const BUCKETS: usize = 8;
    let run = config(2, true).simulate(Settings::fixed_cost(2), |w| {
        let buckets = w.once(|w| {
            let buckets: Vec<Refs<u64>> = (0..BUCKETS)
                .map(|_| w.alloc_range(10, |i| i as u64))
                .collect();
            Ok(w.alloc_range(BUCKETS, |i| buckets[i]))
        })?;
        if w.node().index() == 1 {
            for bucket in buckets.iter() {
                let numbers = *bucket.get(w);
                let sum: u64 = numbers.iter().map(|number| number.read(w)).sum();
                assert_eq!(sum, 45);
            }
        }
        Ok(w.barrier()?)
    });
    let reader = &run.expect("a run").report.per_node[1];
    assert_eq!(
        reader.misses + reader.came_along + reader.came_ahead,
        8 * 11
    );
    assert_eq!(reader.along_read, reader.came_along);
    assert!(reader.misses < 30, "{}", reader.misses);
}

#[test]
fn what_came_along_unread_is_not_shown_to_scoped_threads() {
    let run = config(2, true).simulate(Settings::fixed_cost(2), |w| {
        let roots = w.once(|w| {
            let roots: Vec<_> = (0..3).map(|_| tree(w, 2)).collect();
            Ok(w.alloc_range(3, |i| roots[i].expect("a level")))
        })?;
        if w.node().index() == 1 {
            w.prefetch(roots)?;
            let roots: Vec<Ref<Node>> = roots.iter().map(|root| root.read(w)).collect();
            assert_eq!(sum(w, roots[0]), 3);
            let [Some(left), Some(right)] = node(w, roots[1]).children else {
                return Err("two children".into());
            };
            w.prefetch(left)?;
            let seen = w.readers(|present| [left, right].map(|child| present.get(child).is_ok()));
            assert_eq!(seen, [true, false], "the program named one of them");
            assert_eq!(right.get(w).value, 1);
        }
        Ok(w.barrier()?)
    });
    let reader = &run.expect("a run").report.per_node[1];
    assert_eq!((reader.came_along, reader.along_read), (2, 2));
}
