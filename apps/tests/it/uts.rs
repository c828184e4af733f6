//! The benchmark's own trees, and that all nodes together find what one finds.

use apps::solve::Steps;
use apps::uts::{Kind, PROGRAM, Shape, Tree};
use dhole::Config;
use dhole::sim::Settings;

const T1: Tree = Tree::T1;

fn has(tree: Tree, nodes: u64, leaves: u64, depth: u32) {
    let (found, _) = (PROGRAM.sequential)(&tree);
    let found = (found.nodes, found.leaves, found.depth);
    assert_eq!(found, (nodes, leaves, depth), "{tree}");
}

#[test]
fn the_first_published_tree_has_as_many_nodes_as_published() {
    has(T1, 4_130_071, 3_305_118, 10);
}

#[test]
#[ignore = "a minute where programs are not optimised; docs/testing.md"]
fn the_other_published_trees_have_as_many_nodes_as_published() {
    let t2 = Tree {
        shape: Shape::Cyclic,
        depth: 16,
        branching: 6.0,
        seed: 502,
        ..T1
    };
    let t3 = Tree {
        kind: Kind::Binomial,
        branching: 2000.0,
        probability: 0.124_875,
        children: 8,
        seed: 42,
        ..T1
    };
    let t4 = Tree {
        kind: Kind::Hybrid,
        shape: Shape::Linear,
        depth: 16,
        branching: 6.0,
        probability: 0.234_375,
        seed: 1,
        ..T1
    };
    let t5 = Tree {
        shape: Shape::Linear,
        depth: 20,
        seed: 34,
        ..T1
    };
    has(t2, 4_117_769, 2_342_762, 81);
    has(t3, 4_112_897, 3_599_034, 1_572);
    has(t4, 4_132_453, 3_108_986, 134);
    has(t5, 4_147_582, 2_181_318, 20);
}

#[test]
fn a_balanced_tree_has_the_nodes_of_its_levels() {
    let tree = Tree {
        kind: Kind::Balanced,
        branching: 3.0,
        depth: 5,
        ..T1
    };
    let (found, _) = (PROGRAM.sequential)(&tree);
    assert_eq!((found.nodes, found.leaves, found.depth), (364, 243, 5));
}

#[test]
fn all_nodes_together_find_what_one_finds() {
    let small = [
        Tree { depth: 6, ..T1 },
        Tree {
            kind: Kind::Binomial,
            branching: 50.0,
            probability: 0.12,
            children: 8,
            ..T1
        },
    ];
    for tree in small {
        let (alone, _) = (PROGRAM.sequential)(&tree);
        for nodes in [1, 2, 3, 7] {
            let program =
                |w: &mut dhole::Worker<'_>| (PROGRAM.shared)(w, &tree, &mut Steps::default());
            let run = Config::nodes(nodes).run(program).unwrap();
            assert_eq!(run.value, alone, "{nodes} threads, {tree}");
            for seed in 0..20 {
                let mut settings = Settings::fixed_cost(nodes);
                (settings.seed, settings.network.jitter) = (seed, 0.9);
                let run = Config::nodes(nodes).simulate(settings, program).unwrap();
                assert_eq!(run.value, alone, "{nodes} simulated nodes, {seed}, {tree}");
            }
        }
    }
}
