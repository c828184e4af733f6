//! Fetching what can be reached by references.

use dhole::sim::Settings;
use dhole::{Coherence, Config, Optimisations, Own, Ref, Refs, Row, Share, Worker};

#[derive(Share, Clone, Copy)]
struct Node {
    value: u64,
    children: [Option<Ref<Node>>; 2],
}

/// A balanced tree of so many levels.
fn tree(w: &mut Worker<'_>, levels: u32) -> Option<Ref<Node>> {
    let below = levels.checked_sub(1)?;
    let children = [tree(w, below), tree(w, below)];
    let value = 1;
    Some(w.alloc(Node { value, children }))
}

fn sum(w: &Worker<'_>, node: Ref<Node>) -> u64 {
    let Node { value, children } = *node.get(w);
    let below = children.into_iter().flatten();
    value + below.map(|child| sum(w, child)).sum::<u64>()
}

/// Objects alone, so that what lies beside a missed object does not come with it.
fn config(nodes: usize) -> Config {
    Config::nodes(nodes).optimisations(Optimisations {
        read_aggregation: false,
        ..Optimisations::default()
    })
}

#[test]
fn a_tree_comes_in_as_many_rounds_as_it_has_levels() {
    for (levels, objects) in [(1, 1), (4, 15), (8, 255)] {
        let run = config(2).simulate(Settings::fixed_cost(2), move |w| {
            let root = w.once(|w| Ok(tree(w, levels)))?.expect("a level");
            if w.node().index() == 1 {
                assert_eq!(w.prefetch_reachable(root, usize::MAX)?, objects);
                let rounds = w.counters().fetch_rounds;
                assert_eq!(rounds, u64::from(levels));
                assert_eq!(sum(w, root), objects as u64);
                assert_eq!(w.counters().fetch_rounds, rounds, "all of it is here");
                assert_eq!(w.prefetch_reachable(root, usize::MAX)?, objects);
                assert_eq!(w.counters().fetch_rounds, rounds);
            }
            Ok(())
        });
        let report = run.expect("a run").report;
        assert_eq!(report.total().misses, objects as u64);
    }
}

#[test]
fn each_node_is_asked_once_a_level() {
    let run = config(3).simulate(Settings::fixed_cost(3), |w| {
        let shown = w.once(|w| Ok(w.alloc_range(3, |_| None::<Ref<Node>>)))?;
        let me = w.node().index();
        if me > 0 {
            *shown.at(me).get_mut(w) = tree(w, 5);
        }
        w.barrier()?;
        if me == 0 {
            let parts = [1, 2].map(|node| shown.at(node));
            assert_eq!(w.prefetch_reachable(&parts[..], usize::MAX)?, 2 + 2 * 31);
            assert_eq!(w.counters().fetch_rounds, 6, "both trees side by side");
            let fetches = w.counters().by_kind[&dhole::MessageKind::Fetch];
            assert_eq!(fetches.messages, 2 * 6);
        }
        Ok(())
    });
    run.expect("a run");
}

/// Refers to others in every way there is.
#[derive(Share)]
struct All {
    me: Option<Ref<All>>,
    owned: Own<u64>,
    range: Refs<u32>,
    row: Row<f64>,
    rows: dhole::Rows<f64>,
    array: dhole::Array<u8>,
}

#[test]
fn ranges_rows_and_what_is_owned_are_followed_and_cycles_once() {
    for coherence in [Coherence::Lazy, Coherence::Update, Coherence::Home] {
        let run = config(2)
            .coherence(coherence)
            .simulate(Settings::fixed_cost(2), |w| {
                let all = w.once(|w| {
                    let rows = w.alloc_rows(3, 4);
                    for row in rows.iter() {
                        row.get_mut(w)[0] = 1.0;
                    }
                    let all = All {
                        me: None,
                        owned: w.alloc_own(7),
                        range: w.alloc_range(5, |i| i as u32),
                        row: rows.row(0),
                        rows,
                        array: w.alloc_array(100),
                    };
                    let all = w.alloc(all);
                    all.get_mut(w).me = Some(all);
                    Ok(all)
                })?;
                if w.node().index() == 1 {
                    // Itself, what it owns, five of the range, three rows.
                    assert_eq!(w.prefetch_reachable(all, usize::MAX)?, 10, "{coherence}");
                    let rounds = w.counters().fetch_rounds;
                    let object = all.get(w);
                    let sum: u32 = object.range.iter().map(|number| *number.get(w)).sum();
                    let rows: f64 = object.rows.iter().map(|row| row.get(w)[0]).sum();
                    assert_eq!((sum, rows, *object.owned.get(w)), (10, 3.0, 7));
                    assert_eq!(w.counters().fetch_rounds, rounds, "{coherence}");
                }
                Ok(())
            });
        run.expect("a run");
    }
}

#[test]
fn it_stops_at_the_limit_with_what_is_nearest() {
    let run = config(2).run(|w| {
        let root = w.once(|w| Ok(tree(w, 6)))?.expect("a level");
        if w.node().index() == 1 {
            assert_eq!(w.prefetch_reachable(root, 0)?, 0);
            assert_eq!(w.counters().misses, 0);
            assert_eq!(w.prefetch_reachable(root, 7)?, 7);
            let misses = w.counters().misses;
            for child in root.get(w).children.into_iter().flatten() {
                assert!(
                    child
                        .get(w)
                        .children
                        .iter()
                        .flatten()
                        .all(|child| child.get(w).value == 1)
                );
            }
            assert_eq!(w.counters().misses, misses, "three levels are here");
        }
        Ok(())
    });
    run.expect("a run");
}

#[test]
fn references_to_what_was_freed_are_passed_over() {
    let run = config(2).run(|w| {
        let root = w.once(|w| Ok(tree(w, 3)))?.expect("a level");
        if w.node().index() == 0 {
            let child = root.get(w).children[0].expect("a child");
            w.free(child)?;
        }
        w.barrier()?;
        if w.node().index() == 1 {
            assert_eq!(
                w.prefetch_reachable(root, usize::MAX)?,
                4,
                "the root and one half"
            );
        }
        Ok(())
    });
    run.expect("a run");
}

#[test]
fn a_run_that_keeps_pages_consistent_follows_references_too() {
    let treadmarks = Config::nodes(2).coherence(Coherence::TreadMarks);
    let run = treadmarks.simulate(Settings::fixed_cost(2), |w| {
        let root = w.once(|w| Ok(tree(w, 6)))?.expect("a level");
        if w.node().index() == 1 {
            assert_eq!(w.prefetch_reachable(root, usize::MAX)?, 63);
            let misses = w.counters().misses;
            assert_eq!(sum(w, root), 63);
            assert_eq!(w.counters().misses, misses, "all pages are here");
        }
        Ok(())
    });
    run.expect("a run");
}
