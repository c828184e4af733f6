use dhole_model::SplitMix64;

use super::*;
use crate::Config;

/// Arcs in no order, some of them twice.
fn arcs(seed: u64, vertices: u32, count: usize) -> Vec<(u32, u32, u16)> {
    let mut random = SplitMix64(seed);
    let mut below = |most: u32| random.below(u64::from(most)) as u32;
    let arc = |at| {
        let most = below(vertices) + 1;
        (below(most), below(vertices), at as u16)
    };
    (0..count).map(arc).collect()
}

#[test]
fn a_graph_has_the_arcs_of_all_nodes_vertex_by_vertex() {
    let shapes = [
        (1, 0),
        (1, 3),
        (2, 1),
        (7, 40),
        (100, 1_000),
        (9_000, 5_000),
    ];
    for (seed, (vertices, count)) in (0..).zip(shapes) {
        for nodes in [1, 2, 3, 5] {
            let all = arcs(seed, vertices, count);
            let given = |node: usize| all.iter().copied().skip(node).step_by(nodes);
            let row = |vertex: u32| -> Vec<GraphArc<u16>> {
                let of_all = (0..nodes).flat_map(given);
                let arcs = of_all.filter(|(from, ..)| *from == vertex);
                arcs.map(|(_, to, weight)| GraphArc { to, weight })
                    .collect()
            };
            Config::nodes(nodes)
                .run(|w| {
                    let me = w.node();
                    let graph = DistGraph::from_weighted(w, vertices, given(me.index()))?;
                    assert_eq!((graph.vertices(), graph.arcs()), (vertices, count as u64));
                    let parts = (0..nodes).flat_map(|node| graph.own(NodeId::at(node)));
                    assert!(parts.eq(0..vertices));
                    let step = (vertices / 300 + 1) as usize;
                    let some: Vec<u32> = (0..vertices).rev().step_by(step).collect();
                    graph.fetch(w, &some)?;
                    graph.fetch(w, &[])?;
                    for vertex in some {
                        assert_eq!(graph.neighbours(w, vertex), row(vertex));
                        assert_eq!(graph.try_neighbours(w, vertex)?, row(vertex));
                        assert_eq!(graph.degree(w, vertex), row(vertex).len());
                        let owner = graph.owner(vertex).expect("there is one");
                        assert!(graph.own(owner).contains(&vertex));
                        if owner == me {
                            assert_eq!(graph.local(w)?.neighbours(vertex), row(vertex));
                        }
                    }
                    assert_eq!(graph.local(w)?.vertices(), graph.own(me));
                    let back = graph.reversed(w)?.reversed(w)?;
                    for vertex in (0..vertices).step_by(step) {
                        let sorted = |mut row: Vec<_>| {
                            row.sort();
                            row
                        };
                        let there = sorted(back.neighbours(w, vertex).to_vec());
                        assert_eq!(there, sorted(row(vertex)));
                    }
                    w.barrier()?;
                    if me == NodeId(0) {
                        back.free(w)?;
                    }
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("{vertices} vertices, {nodes} nodes: {error}"));
        }
    }
}

#[test]
fn vertices_are_divided_so_that_each_node_has_as_many_arcs() {
    let vertices = 1 << 16;
    let weights = |starts: &[u32], degree: fn(u32) -> u64| -> Vec<u64> {
        let part = |ends: &[u32]| (ends[0]..ends[1]).map(|it| 1 + degree(it)).sum();
        starts.windows(2).map(part).collect()
    };
    for degree in [|_| 3, |vertex| u64::from(vertex < 1_000) * 90] {
        for nodes in [1, 2, 3, 8] {
            let making = Making {
                vertices,
                node: NodeId(0),
                site: CallSite::runtime("a test"),
            };
            let mut blocks = vec![0; making.blocks()];
            (0..vertices).for_each(|it| blocks[(it >> making.shift()) as usize] += degree(it));
            let parts = weights(&starts(vertices, making.shift(), &blocks, nodes), degree);
            let (least, most) = (parts.iter().min(), parts.iter().max());
            let (Some(least), Some(most)) = (least, most) else {
                panic!("{parts:?}");
            };
            assert_eq!(parts.len(), nodes);
            assert!(most - least <= 4 * 91 * 32, "{parts:?}");
        }
    }
    assert_eq!(starts(0, 0, &[], 3), [0, 0, 0, 0]);
    assert_eq!(starts(1, 0, &[9], 3).last(), Some(&1));
}

#[test]
fn graphs_that_cannot_be_are_errors_that_say_why() {
    let fail = |program: fn(&mut Worker<'_>) -> Graphed<()>| {
        let run = Config::nodes(2).run(|w| Ok(program(w)?));
        run.expect_err("it fails").to_string()
    };
    let beyond =
        |w: &mut Worker<'_>| DistGraph::from_edges(w, 5, [(0, 1), (4, 4), (1, 5)]).map(drop);
    let words = fail(beyond);
    let arc = "arc 2 of those that this node gives, counted from 0, leads from 1 to 5; the \
               vertices are 0 to 4";
    assert!(words.contains(arc), "{words}");
    assert!(words.contains("tests.rs:"), "{words}");
    let differ = |w: &mut Worker<'_>| {
        let vertices = 4 + w.node().index() as u32;
        DistGraph::from_edges(w, vertices, []).map(drop)
    };
    let words = fail(differ);
    assert!(
        words.contains("a node wants 4 vertices and another 5"),
        "{words}"
    );
    let fetched = |w: &mut Worker<'_>| {
        let graph = DistGraph::from_edges(w, 5, [])?;
        graph
            .try_neighbours(w, 7)
            .map(drop)
            .expect_err("there is none");
        graph.fetch(w, &[0, 5])
    };
    assert!(fail(fetched).contains("vertex 5 of a graph on node"));
    let weighs_more = |w: &mut Worker<'_>| match w.node().index() {
        0 => DistGraph::from_weighted(w, 2, [(0, 1, 1_u8)]).map(drop),
        _ => DistGraph::from_weighted(w, 2, [(0, 1, 1_u16)]).map(drop),
    };
    assert!(fail(weighs_more).contains("all_to_all"));
    let alone = |w: &mut Worker<'_>| match w.node().index() {
        0 => DistGraph::from_edges(w, 2, []).map(drop),
        _ => Ok(()),
    };
    let words = fail(alone);
    assert!(
        words.contains("all_reduce") && words.contains("tests.rs:"),
        "{words}"
    );
}

#[test]
fn the_words_of_a_vertex_that_is_not_there_name_the_line_that_asked() {
    let fail = |program: fn(&mut Worker<'_>, &DistGraph)| {
        let run = Config::nodes(2).run(|w| {
            let graph = DistGraph::from_edges(w, 5, [])?;
            program(w, &graph);
            w.barrier()?;
            Ok(())
        });
        run.expect_err("it fails").to_string()
    };
    let not_there = |w: &mut Worker<'_>, graph: &DistGraph| {
        assert_eq!(graph.owner(5), None);
        graph.neighbours(w, 5);
    };
    let words = fail(not_there);
    let line = (1..).zip(include_str!("tests.rs").lines());
    let mut line = line.filter(|(_, line)| line.contains("graph.neighbours(w, 5);"));
    let line = line.next().expect("the line above").0;
    assert!(words.contains(&format!("tests.rs:{line}:")), "{words}");
    let expected = "there is no such vertex; the vertices are 0 to 4";
    assert!(words.contains(expected), "{words}");
    let degree = |w: &mut Worker<'_>, graph: &DistGraph| {
        let _ = graph.degree(w, 9);
    };
    assert!(fail(degree).contains("tests.rs:"));
    let local = |w: &mut Worker<'_>, graph: &DistGraph| {
        // Node 0 has the first of the vertices, and node 1 the last one.
        let others = if w.node() == NodeId(0) { 4 } else { 0 };
        drop(graph.local(w).map(|local| local.neighbours(others)));
    };
    let words = fail(local);
    assert!(words.contains("of the own part of a graph at"), "{words}");
    assert!(words.contains("tests.rs:"), "{words}");
}
