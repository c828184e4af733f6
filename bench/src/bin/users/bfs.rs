//! Breadth-first searches of an R-MAT graph, level by level. The nodes divide each level among
//! themselves and then exchange what they found.

use std::sync::atomic::{AtomicU32, Ordering};

use bench::Outcome;
use dhole::collections::DistGraph;
use dhole::{Array, Ref, Result, Share, Worker};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lap::{self, Lap};
use crate::rmat::Graph;
use crate::{Program, Took};

const SEARCHES: usize = 8;
const UNSEEN: u32 = u32::MAX;

pub const PROGRAM: Program = Program {
    name: "bfs",
    about: "R-MAT, 131,072 vertices, 2,097,152 arcs, 8 searches",
    phases: &["build", "first search", "second", "a later one"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[
        ("arrays", over_arrays),
        ("objects", over_objects),
        ("DistGraph", over_dist_graph),
    ],
};

/// What a search found, as a number: each vertex that was reached counts with its level.
fn sum(levels: &[u32]) -> u64 {
    let reached = levels.iter().filter(|level| **level != UNSEEN);
    reached.map(|level| u64::from(*level) + 1).sum()
}

/// The laps of the phases: the later searches count together.
fn took(build: Lap, searches: &[(u64, Lap)]) -> Took {
    let later = &searches[2..];
    let add = |of: fn(&Lap) -> f64| later.iter().map(|(_, lap)| of(lap)).sum::<f64>();
    let all_later = Lap {
        seconds: add(|lap| lap.seconds),
        processor: add(|lap| lap.processor),
    };
    let later = all_later.shared_by(later.len());
    Took {
        laps: vec![build, searches[0].1, searches[1].1, later],
        found: searches.iter().map(|(found, _)| found).sum(),
    }
}

fn sequential() -> Outcome<Took> {
    let (graph, build) = lap::alone(Graph::new);
    let search = |root: &u32| {
        lap::alone(|| {
            let mut levels = vec![UNSEEN; graph.vertices()];
            levels[*root as usize] = 0;
            let (mut frontier, mut level) = (vec![*root], 0);
            while !frontier.is_empty() {
                level += 1;
                let mut next = Vec::new();
                for &vertex in &frontier {
                    for &to in graph.arcs(vertex) {
                        if levels[to as usize] == UNSEEN {
                            levels[to as usize] = level;
                            next.push(to);
                        }
                    }
                }
                frontier = next;
            }
            sum(&levels)
        })
    };
    let searches: Vec<(u64, Lap)> = graph.roots(SEARCHES).iter().map(search).collect();
    Ok(took(build, &searches))
}

fn with_rayon() -> Outcome<Took> {
    let (graph, build) = lap::by_others(Graph::new);
    let search = |root: &u32| {
        lap::by_others(|| {
            let unseen = || AtomicU32::new(UNSEEN);
            let levels: Vec<AtomicU32> = std::iter::repeat_with(unseen)
                .take(graph.vertices())
                .collect();
            levels[*root as usize].store(0, Ordering::Relaxed);
            let (mut frontier, mut level) = (vec![*root], 0);
            while !frontier.is_empty() {
                level += 1;
                let is_new = |to: &u32| {
                    let seen = &levels[*to as usize];
                    seen.load(Ordering::Relaxed) == UNSEEN
                        && seen
                            .compare_exchange(UNSEEN, level, Ordering::Relaxed, Ordering::Relaxed)
                            .is_ok()
                };
                let arcs = |vertex: &u32| graph.arcs(*vertex).iter().copied();
                frontier = frontier
                    .par_iter()
                    .flat_map_iter(arcs)
                    .filter(is_new)
                    .collect();
            }
            let levels: Vec<u32> = levels.into_iter().map(AtomicU32::into_inner).collect();
            sum(&levels)
        })
    };
    let searches: Vec<(u64, Lap)> = graph.roots(SEARCHES).iter().map(search).collect();
    Ok(took(build, &searches))
}

/// A search that all nodes do: each walks its part of a level by `arcs`, which gives what names
/// the vertices, and their numbers.
fn search<V>(
    w: &mut Worker<'_>,
    vertices: usize,
    root: (u32, V),
    mut arcs: impl FnMut(&Worker<'_>, (u32, V), &mut dyn FnMut(u32, V)),
) -> Result<u64>
where
    V: Copy + Serialize + DeserializeOwned,
{
    let mut levels = vec![UNSEEN; vertices];
    levels[root.0 as usize] = 0;
    let (mut frontier, mut level) = (vec![root], 0);
    while !frontier.is_empty() {
        level += 1;
        let mut found = Vec::new();
        let mine = frontier.iter().skip(w.node().index()).step_by(w.nodes());
        let mut seen_here = levels.clone();
        for &vertex in mine {
            arcs(w, vertex, &mut |to, name| {
                if seen_here[to as usize] == UNSEEN {
                    seen_here[to as usize] = level;
                    found.push((to, name));
                }
            });
        }
        frontier.clear();
        for (to, name) in w.all_gather(found)?.into_iter().flatten() {
            if levels[to as usize] == UNSEEN {
                levels[to as usize] = level;
                frontier.push((to, name));
            }
        }
    }
    Ok(sum(&levels))
}

/// The graph as two shared arrays that node 0 fills.
fn over_arrays(w: &mut Worker<'_>) -> Result<Took> {
    let graph = Graph::new();
    let (arrays, build) = lap::together(w, |w| {
        w.once(|w| {
            let begins = w.alloc_array_with(graph.begins.len(), |at| graph.begins[at]);
            let targets = w.alloc_array_with(graph.targets.len(), |at| graph.targets[at]);
            Ok((begins, targets))
        })
    })?;
    let (begins, targets): (Array<u32>, Array<u32>) = arrays;
    let mut searches = Vec::new();
    for root in graph.roots(SEARCHES) {
        searches.push(lap::together(w, |w| {
            search(w, graph.vertices(), (root, ()), |w, (vertex, ()), visit| {
                let vertex = vertex as usize;
                let row = begins.slice(w, vertex..vertex + 2);
                let row = row[0] as usize..row[1] as usize;
                targets.slice(w, row).iter().for_each(|&to| visit(to, ()));
            })
        })?);
    }
    Ok(took(build, &searches))
}

#[derive(Share, Clone, Copy)]
struct Vertex {
    number: u32,
    arcs: Option<Ref<Arcs>>,
}

/// Some arcs of a vertex.
#[derive(Share, Clone, Copy)]
struct Arcs {
    to: [Option<Ref<Vertex>>; 7],
    next: Option<Ref<Arcs>>,
}

/// The graph as objects. Each node makes the arcs of its part of the vertices.
fn over_objects(w: &mut Worker<'_>) -> Result<Took> {
    let graph = Graph::new();
    let (vertices, build) = lap::together(w, |w| {
        let vertices = w.once(|w| {
            let new = |number| Vertex {
                number: number as u32,
                arcs: None,
            };
            Ok(w.alloc_range(graph.vertices(), new))
        })?;
        let part = |node: usize| node * graph.vertices() / w.nodes();
        for number in part(w.node().index())..part(w.node().index() + 1) {
            let mut arcs = None;
            for some in graph.arcs(number as u32).chunks(7) {
                let mut to = [None; 7];
                for (to, target) in to.iter_mut().zip(some) {
                    *to = Some(vertices.at(*target as usize));
                }
                arcs = Some(w.alloc(Arcs { to, next: arcs }));
            }
            vertices.at(number).get_mut(w).arcs = arcs;
        }
        Ok(vertices)
    })?;
    let mut searches = Vec::new();
    for root in graph.roots(SEARCHES) {
        let root = (root, vertices.at(root as usize));
        searches.push(lap::together(w, |w| {
            search(w, graph.vertices(), root, |w, (_, vertex), visit| {
                let mut next = vertex.get(w).arcs;
                while let Some(arcs) = next {
                    let arcs = arcs.get(w);
                    for to in arcs.to.into_iter().flatten() {
                        visit(to.get(w).number, to);
                    }
                    next = arcs.next;
                }
            })
        })?);
    }
    Ok(took(build, &searches))
}

/// The graph as a `DistGraph`, of edges of which each node has a part. Each node searches among its
/// own vertices, and sends the others those of theirs that it has found.
fn over_dist_graph(w: &mut Worker<'_>) -> Result<Took> {
    let plain = Graph::new();
    let vertices = plain.vertices() as u32;
    let (graph, build) = lap::together(w, |w| {
        let mine = (0..vertices).skip(w.node().index()).step_by(w.nodes());
        let arcs = mine.flat_map(|from| plain.arcs(from).iter().map(move |to| (from, *to)));
        Ok(DistGraph::from_edges(w, vertices, arcs)?)
    })?;
    let mut searches = Vec::new();
    for root in plain.roots(SEARCHES) {
        searches.push(lap::together(w, |w| search_own(w, &graph, root))?);
    }
    Ok(took(build, &searches))
}

fn search_own(w: &mut Worker<'_>, graph: &DistGraph, root: u32) -> Result<u64> {
    let own = graph.own(w.node());
    let owner = |vertex| graph.owner(vertex).expect("an arc leads to a vertex");
    let mut is_seen = vec![false; graph.vertices() as usize];
    let (mut frontier, mut level, mut sum) = (Vec::new(), 0, 0);
    if own.contains(&root) {
        is_seen[root as usize] = true;
        frontier.push(root);
    }
    loop {
        level += 1;
        sum += level * frontier.len() as u64;
        let local = graph.local(w)?;
        let mut next = Vec::new();
        let mut found = vec![Vec::new(); w.nodes()];
        for vertex in &frontier {
            for arc in local.neighbours(*vertex) {
                let seen = &mut is_seen[arc.to as usize];
                if *seen {
                    continue;
                }
                *seen = true;
                match own.contains(&arc.to) {
                    true => next.push(arc.to),
                    false => found[owner(arc.to).index()].push(arc.to),
                }
            }
        }
        let goes_on = !frontier.is_empty();
        let parts = found.into_iter().map(|part| (part, goes_on)).collect();
        let came: Vec<(Vec<u32>, bool)> = w.all_to_all(parts)?;
        if came.iter().all(|(_, goes_on)| !goes_on) {
            return Ok(w.all_reduce(sum, |one, next| one + next)?);
        }
        for vertex in came.into_iter().flat_map(|(part, _)| part) {
            if !std::mem::replace(&mut is_seen[vertex as usize], true) {
                next.push(vertex);
            }
        }
        frontier = next;
    }
}
