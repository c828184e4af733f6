//! Containers that all nodes share.

use dhole::collections::{DistGraph, DistMap, DistSet, DistVec};
use dhole::{MessageKind, NodeId, Ref, Worker, combine, on, op};

use super::{assert_says, fail, has_member, keeps_pages, succeed};
use crate::Platform;

const THIS_FILE: &str = "collections.rs:";

/// Arcs from each vertex to those of a third of its number, and a weight.
fn arcs_of(vertex: u32, vertices: u32) -> impl Iterator<Item = (u32, u32, u16)> {
    let leads_to = move |place| (vertex, (vertex * 7 + place * 13) % vertices, place as u16);
    (0..vertex / 3).map(leads_to)
}

fn graph(w: &mut Worker<'_>, vertices: u32) -> dhole::Result<DistGraph<u16>> {
    let (me, nodes) = (w.node().index(), w.nodes());
    let mine = (0..vertices).skip(me).step_by(nodes);
    let arcs = mine.flat_map(|vertex| arcs_of(vertex, vertices));
    Ok(DistGraph::from_weighted(w, vertices, arcs)?)
}

fn row(graph: &DistGraph<u16>, w: &Worker<'_>, vertex: u32) -> Vec<(u32, u32, u16)> {
    let arcs = graph.neighbours(w, vertex).iter();
    arcs.map(|arc| (vertex, arc.to, arc.weight)).collect()
}

/// Whichever node gave them, in a graph and in its reverse.
pub fn a_graph_has_the_arcs_that_all_nodes_gave(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5] {
        for vertices in [0, 1, 4, 60] {
            succeed(on, nodes, |w| {
                let graph = graph(w, vertices)?;
                let all: Vec<_> = (0..vertices).flat_map(|it| arcs_of(it, vertices)).collect();
                assert_eq!(graph.arcs(), all.len() as u64);
                for vertex in 0..vertices {
                    assert!(
                        row(&graph, w, vertex)
                            .into_iter()
                            .eq(arcs_of(vertex, vertices))
                    );
                }
                let reverse = graph.reversed(w)?;
                for vertex in 0..vertices {
                    let mut there = row(&reverse, w, vertex);
                    let back = all.iter().filter(|(_, to, _)| *to == vertex);
                    let mut back: Vec<_> = back.map(|it| (it.1, it.0, it.2)).collect();
                    there.sort_unstable();
                    back.sort_unstable();
                    assert_eq!(there, back);
                }
                w.barrier()?;
                if w.node() == NodeId(0) {
                    graph.free(w)?;
                }
                Ok(())
            });
        }
    }
}

/// Where they are in one round, and they in a second; then no more.
pub fn neighbours_of_many_vertices_come_in_two_rounds(on: &dyn Platform) {
    succeed(on, 4, |w| {
        let graph = graph(w, 100)?;
        w.barrier()?;
        let me = w.node();
        let before = w.counters();
        let others: Vec<u32> = (0..100).filter(|it| graph.owner(*it) != Some(me)).collect();
        graph.fetch(w, &others)?;
        let fetched = w.counters();
        if !keeps_pages(on) && !has_member(on) {
            assert!(fetched.fetch_rounds - before.fetch_rounds <= 2);
        }
        assert!(
            others
                .iter()
                .all(|it| row(&graph, w, *it).into_iter().eq(arcs_of(*it, 100)))
        );
        if !keeps_pages(on) {
            assert_eq!(w.counters().misses, fetched.misses, "all is here");
        }
        let local = graph.local(w)?;
        assert_eq!(local.vertices(), graph.own(me));
        w.barrier()?;
        Ok(())
    });
}

/// Each node puts in what it has, and asks for what all have put in.
pub fn entries_are_found_whichever_node_put_them_in(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5] {
        succeed(on, nodes, |w| {
            let (me, nodes) = (w.node().index() as u64, w.nodes() as u64);
            let map = w.once(|w| Ok(DistMap::<u64, Vec<u64>>::new(w)?))?;
            let adds = combine!(|known: &mut Vec<u64>, more| known.extend(more));
            map.insert_all(w, (100 * me..100 * me + 90).map(|it| (it, vec![me])))?;
            w.barrier()?;
            map.update_all(w, (0..100 * nodes).map(|it| (it, vec![10 + me])), adds)?;
            w.barrier()?;
            let keys: Vec<u64> = (0..100 * nodes + 1).rev().collect();
            for (key, value) in keys.iter().zip(map.get_all(w, &keys)?) {
                if *key == 100 * nodes {
                    assert_eq!(value, None);
                    continue;
                }
                let mut value = value.unwrap_or_default();
                let first = (key % 100 < 90).then_some(key / 100);
                assert!(
                    first.is_none_or(|first| value[0] == first),
                    "{key}: {value:?}"
                );
                value.sort_unstable();
                assert!(
                    value
                        .into_iter()
                        .eq(first.into_iter().chain(10..10 + nodes))
                );
            }
            assert_eq!(map.len(w)?, 100 * nodes);
            let longest = map.reduce(w, |_, value| value.len() as u64, u64::max)?;
            assert_eq!(longest, Some(nodes + 1));
            let was = map.remove_all(w, &[100 * me, 100 * me, 100 * me + 1])?;
            assert_eq!(was, 2);
            w.barrier()?;
            let set = w.once(|w| Ok(DistSet::<String>::new(w)?))?;
            assert!(set.insert(w, format!("of {me}"))?);
            w.barrier()?;
            assert_eq!(set.len(w)?, nodes);
            assert!(set.contains(w, &"of 0".to_owned())?);
            w.barrier()?;
            if me == 0 {
                map.free(w)?;
            }
            Ok(())
        });
    }
}

/// What its caller wrote before a value was put in is read by the node that finds it.
pub fn what_was_written_before_an_entry_is_read_by_who_finds_it(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let me = w.node().index() as u32;
        let map = w.once(|w| Ok(DistMap::<u32, Ref<u32>>::new(w)?))?;
        let cell = w.alloc(0);
        for round in 1..5 {
            *cell.get_mut(w) = 100 * round + me;
            match round % 2 {
                0 => drop(map.insert(w, 10 * round + me, cell)?),
                _ => map.insert_all(w, [(10 * round + me, cell)])?,
            }
            let theirs = 10 * round + (me + 1) % 3;
            let found = loop {
                if let Some(found) = map.get(w, &theirs)? {
                    break found;
                }
                w.work(10_000);
                w.pause()?;
            };
            assert_eq!(found.read(w) % 100, (me + 1) % 3);
            assert!(found.read(w) >= 100 * round);
            w.barrier()?;
        }
        Ok(())
    });
}

/// A request and a reply for each other node that has some of the keys.
pub fn calls_of_many_keys_take_two_messages_an_owner(on: &dyn Platform) {
    for nodes in [1, 2, 4] {
        succeed(on, nodes, |w| {
            let others = w.nodes() as u64 - 1;
            let map = w.once(|w| Ok(DistMap::<u32, u32>::new(w)?))?;
            let requests = |w: &Worker<'_>| w.counters().sent(MessageKind::OperationRequest);
            for caller in 0..w.nodes() {
                w.barrier()?;
                if w.node().index() != caller {
                    continue;
                }
                let (me, start) = (w.node(), requests(w));
                let keys: Vec<u32> = (0..1_000).collect();
                let adds = combine!(|sum: &mut u32, more| *sum += more);
                map.insert_all(w, keys.iter().map(|it| (*it, 1)))?;
                map.update_all(w, keys.iter().map(|it| (it % 500, 1)), adds)?;
                map.get_all(w, &keys)?;
                map.contains_all(w, &keys)?;
                map.len(w)?;
                map.remove_all(w, &keys)?;
                assert_eq!(requests(w) - start, 6 * others);
                let is_own = |key: &u32| map.owner(w, key) == me;
                let (own, theirs): (Vec<u32>, Vec<u32>) = keys.into_iter().partition(is_own);
                let start = requests(w);
                map.insert_all(w, own.iter().map(|it| (*it, 1)))?;
                map.get_all(w, &own)?;
                map.get(w, &own[0])?;
                map.update(w, own[0], 1, adds)?;
                map.for_each_own(w, |_, value| assert!(*value > 0))?;
                assert_eq!(requests(w), start);
                if let Some(&key) = theirs.first() {
                    map.get(w, &key)?;
                    map.insert(w, key, 1)?;
                    map.update(w, key, 1, adds)?;
                    map.remove(w, &key)?;
                    assert_eq!(requests(w) - start, 4);
                }
            }
            Ok(())
        });
    }
}

/// All nodes look up what the map was, also after it has changed; without a message where the
/// memory of the others is seen, and without one where all has come.
pub fn a_frozen_map_is_read_as_the_map_was(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5] {
        succeed(on, nodes, |w| {
            let (me, nodes) = (w.node().index() as u64, w.nodes() as u64);
            let map = w.once(|w| Ok(DistMap::<String, Vec<u64>>::new(w)?))?;
            let empty = map.freeze(w)?;
            let key = |it: u64| format!("key {it}");
            let value = |it: u64| vec![it; it as usize % 5];
            let mine = (0..300).skip(me as usize).step_by(nodes as usize);
            map.insert_all(w, mine.map(|it| (key(it), value(it))))?;
            let frozen = map.freeze(w)?;
            if me == 0 {
                map.clear(w)?;
            }
            assert_eq!((empty.len(), empty.get(w, &key(0))?), (0, None));
            assert_eq!(frozen.len(), 300);
            let keys: Vec<String> = (0..310).rev().map(key).collect();
            let values = (0..310).rev().map(|it| (it < 300).then(|| value(it)));
            let values: Vec<_> = values.collect();
            assert_eq!(frozen.get_all(w, &keys)?, values);
            let came = w.counters();
            for (key, value) in keys.iter().zip(&values) {
                assert_eq!(frozen.get(w, key)?, *value);
                assert_eq!(frozen.contains_key(w, key)?, value.is_some());
                assert_eq!(frozen.owner(key), map.owner(w, key));
            }
            if !keeps_pages(on) {
                assert_eq!(w.counters().misses, came.misses, "all is here");
            }
            w.barrier()?;
            if me == 0 {
                frozen.free(w)?;
                empty.free(w)?;
            }
            Ok(())
        });
    }
}

/// Processes get the handle by value.
pub fn processes_use_a_map_of_their_programs(on_: &dyn Platform) {
    fn counts(w: &mut Worker<'_>, (map, key): (DistMap<u64, u64>, u64)) -> dhole::Result<u64> {
        let adds = combine!(|sum: &mut u64, more| *sum += more);
        Ok(map.update(w, key, 1, adds)?)
    }
    if keeps_pages(on_) {
        return;
    }
    succeed(on_, 3, |w| {
        let map = w.once(|w| Ok(DistMap::<u64, u64>::new(w)?))?;
        let there = NodeId::at((w.node().index() + 1) % 3);
        for key in 0..6 {
            w.spawn(on(there), (map, key), op!(counts))?.join(w)?;
        }
        let sum = map.reduce(w, |_, count| *count, |one, next| one + next)?;
        assert_eq!(sum, Some(18));
        Ok(())
    });
}

/// Nodes add different numbers of elements, and read and write all.
pub fn a_vector_grows_by_what_all_nodes_add(on: &dyn Platform) {
    for nodes in [1, 2, 3] {
        succeed(on, nodes, |w| {
            let (me, nodes) = (w.node().index(), w.nodes());
            let mut vector = DistVec::<u32>::new();
            let mut plain = Vec::new();
            for round in 0..8_u32 {
                let values = |node: usize| vec![10 * round + node as u32; 60 * node + 40];
                let places = vector.extend(w, &values(me))?;
                plain.extend((0..nodes).flat_map(values));
                assert_eq!(vector.len(), plain.len());
                w.barrier()?;
                assert_eq!(vector.copy(w, 0..plain.len())?, plain);
                assert_eq!(vector.copy(w, places)?, values(me));
                w.barrier()?;
                let mine = (me..plain.len()).step_by(nodes * 50);
                mine.for_each(|place| *vector.get_mut(w, place) += 1);
                (0..nodes).for_each(|node| {
                    let theirs = plain.iter_mut().skip(node).step_by(nodes * 50);
                    theirs.for_each(|it| *it += 1);
                });
            }
            w.barrier()?;
            if me == 0 {
                vector.free(w)?;
            }
            Ok(())
        });
    }
}

/// Errors that name the line, and no node that waits for ever.
pub fn containers_that_cannot_be_are_errors_that_say_why(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        DistGraph::from_edges(w, 5, [(1, 5)]).map(drop)?;
        Ok(())
    });
    assert_says(
        &error,
        &["leads from 1 to 5; the vertices are 0 to 4", THIS_FILE],
    );
    let error = fail(on, 3, |w| {
        DistGraph::from_edges(w, 5 + w.node().index() as u32, []).map(drop)?;
        Ok(())
    });
    assert_says(
        &error,
        &["a node wants 5 vertices and another 7", THIS_FILE],
    );
    let error = fail(on, 2, |w| {
        DistGraph::<f64>::from_file(w, "/no/such/graph").map(drop)?;
        Ok(())
    });
    assert_says(&error, &["reading a graph from /no/such/graph, line 0"]);
    let error = fail(on, 2, |w| {
        if w.node() == NodeId(0) {
            DistGraph::from_edges(w, 5, []).map(drop)?;
        }
        Ok(())
    });
    assert_says(&error, &["all_reduce", THIS_FILE]);
    let error = fail(on, 2, |w| {
        let mut vector = DistVec::<u8>::new();
        vector.extend(w, &[1])?;
        if w.node() == NodeId(1) {
            vector = DistVec::new();
        }
        vector.extend(w, &[1]).map(drop)?;
        Ok(())
    });
    assert_says(&error, &["extending a vector of", THIS_FILE]);
    let error = fail(on, 2, |w| {
        let map = w.once(|w| Ok(DistMap::<u32, u32>::new(w)?))?;
        if w.node() == NodeId(0) {
            map.reduce(w, |_, value| *value, u32::max).map(drop)?;
        }
        Ok(())
    });
    assert_says(&error, &["barrier", THIS_FILE]);
    let error = fail(on, 2, |w| {
        let map = w.once(|w| Ok(DistMap::<u32, u32>::new(w)?))?;
        let fails = combine!(|_: &mut u32, more: u32| assert!(more == 0, "so it is"));
        (0..20).try_for_each(|key| map.insert(w, key, 0).map(drop))?;
        map.update_all(w, (0..20).map(|key| (key, 1)), fails)?;
        Ok(())
    });
    assert_says(&error, &["panicked: so it is", THIS_FILE]);
}
