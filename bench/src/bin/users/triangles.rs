//! Triangles of an R-MAT graph are counted, as the kernel *triangle count* of the collection bale
//! does: of each edge the neighbours that both ends have.

use bench::Outcome;
use dhole::collections::{DistGraph, GraphArc};
use dhole::{Result, Worker};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::lap::{self, Lap};
use crate::rmat::Graph;
use crate::{Program, Took};

/// The neighbours of so many vertices are fetched at once.
const FETCHED: usize = 1 << 13;

pub const PROGRAM: Program = Program {
    name: "triangles",
    about: "triangles of an R-MAT graph, 131,072 vertices, 1,048,576 edges",
    phases: &["build", "count", "count again"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[("DistGraph", over_dist_graph)],
};

/// The arcs of a vertex that lead to vertices of more edges, each once, in ascending order. So each
/// triangle has one vertex with arcs to both others.
fn upwards(graph: &Graph, vertex: u32) -> Vec<u32> {
    let rank = |vertex: u32| (graph.arcs(vertex).len(), vertex);
    let arcs = graph.arcs(vertex).iter().copied();
    let mut up: Vec<u32> = arcs.filter(|to| rank(*to) > rank(vertex)).collect();
    up.sort_unstable();
    up.dedup();
    up
}

/// How many of these are in both lists, which ascend.
fn common<T>(one: &[T], other: &[T], number: impl Fn(&T) -> u32) -> u64 {
    let (mut one, mut other) = (one.iter().map(&number), other.iter().map(&number));
    let (mut left, mut right) = (one.next(), other.next());
    let mut count = 0;
    while let (Some(this), Some(that)) = (left, right) {
        count += u64::from(this == that);
        if this <= that {
            left = one.next();
        }
        if that <= this {
            right = other.next();
        }
    }
    count
}

fn took(build: Lap, counts: [(u64, Lap); 2]) -> Took {
    let [(first, lap), (again, lap_again)] = counts;
    assert_eq!(first, again);
    Took {
        laps: vec![build, lap, lap_again],
        found: first,
    }
}

fn sequential() -> Outcome<Took> {
    let graph = Graph::new();
    let vertices = 0..graph.vertices() as u32;
    let (up, build) = lap::alone(|| -> Vec<Vec<u32>> {
        vertices.map(|vertex| upwards(&graph, vertex)).collect()
    });
    let of = |own: &Vec<u32>| -> u64 {
        let both = own
            .iter()
            .map(|to| common(own, &up[*to as usize], |it| *it));
        both.sum()
    };
    let count = || lap::alone(|| up.iter().map(of).sum());
    Ok(took(build, [count(), count()]))
}

fn with_rayon() -> Outcome<Took> {
    let graph = Graph::new();
    let vertices = 0..graph.vertices() as u32;
    let (up, build) = lap::by_others(|| -> Vec<Vec<u32>> {
        let all = vertices.into_par_iter();
        all.map(|vertex| upwards(&graph, vertex)).collect()
    });
    let of = |vertex: usize| -> u64 {
        let own = &up[vertex];
        let both = own
            .iter()
            .map(|to| common(own, &up[*to as usize], |it| *it));
        both.sum()
    };
    let count = || lap::by_others(|| (0..up.len()).into_par_iter().map(of).sum());
    Ok(took(build, [count(), count()]))
}

/// Each node counts the triangles of its own vertices, and fetches the arcs of their neighbours.
fn over_dist_graph(w: &mut Worker<'_>) -> Result<Took> {
    let plain = Graph::new();
    let vertices = plain.vertices() as u32;
    let (graph, build) = lap::together(w, |w| {
        let mine = (0..vertices).skip(w.node().index()).step_by(w.nodes());
        let arcs =
            mine.flat_map(|from| upwards(&plain, from).into_iter().map(move |to| (from, to)));
        Ok(DistGraph::from_edges(w, vertices, arcs)?)
    })?;
    let mut count = || lap::together(w, |w| triangles(w, &graph));
    let counts = [count()?, count()?];
    Ok(took(build, counts))
}

fn triangles(w: &mut Worker<'_>, graph: &DistGraph) -> Result<u64> {
    let number = |arc: &GraphArc<()>| arc.to;
    let mut count = 0;
    let own: Vec<u32> = graph.own(w.node()).collect();
    for some in own.chunks(FETCHED) {
        let local = graph.local(w)?;
        let arcs = some.iter().flat_map(|vertex| local.neighbours(*vertex));
        let ends: Vec<u32> = arcs.map(number).collect();
        graph.fetch(w, &ends)?;
        for vertex in some {
            let arcs = local.neighbours(*vertex);
            for to in arcs {
                count += common(arcs, graph.neighbours(w, to.to), number);
            }
        }
    }
    Ok(w.all_reduce(count, |one, next| one + next)?)
}
