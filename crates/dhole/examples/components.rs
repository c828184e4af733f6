//! The connected components of a graph. Each node works on its own vertices, which lie in its
//! memory, and sends the others what concerns theirs: one exchange a round.
//!
//! `components [FILE]`: of a graph in a file in DIMACS or Matrix Market form, or of a random one.

use dhole::collections::DistGraph;
use dhole::{Config, Result, Worker};

const NODES: usize = 4;
const VERTICES: u32 = 20_000;
const EDGES: usize = 15_000;

/// Edges in no order.
fn edges() -> Vec<(u32, u32)> {
    let next = |it: &u64| Some(it.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11));
    let numbers = std::iter::successors(Some(1), next);
    let mut vertices = numbers.map(|it| (it >> 33) as u32 % VERTICES);
    (0..EDGES)
        .map_while(|_| Some((vertices.next()?, vertices.next()?)))
        .collect()
}

/// The least vertex that can be reached from each own vertex, where arcs lead both ways.
fn components(w: &mut Worker<'_>, graph: &DistGraph) -> Result<Vec<u32>> {
    let own = graph.own(w.node());
    let owner = |vertex| graph.owner(vertex).expect("an arc leads to a vertex");
    let mut least: Vec<u32> = own.clone().collect();
    let mut changed: Vec<u32> = own.clone().collect();
    loop {
        let local = graph.local(w)?;
        let mut told = vec![Vec::new(); w.nodes()];
        let (mut next, goes_on) = (Vec::new(), !changed.is_empty());
        while let Some(vertex) = changed.pop() {
            let label = least[(vertex - own.start) as usize];
            for arc in local.neighbours(vertex) {
                match own.contains(&arc.to) {
                    true => next.push((arc.to, label)),
                    false => told[owner(arc.to).index()].push((arc.to, label)),
                }
            }
            for (to, label) in next.drain(..) {
                let known = &mut least[(to - own.start) as usize];
                if label < *known {
                    *known = label;
                    changed.push(to);
                }
            }
        }
        // Each node hears whether any still had something to do.
        let parts = told.into_iter().map(|part| (part, goes_on)).collect();
        let came: Vec<(Vec<(u32, u32)>, bool)> = w.all_to_all(parts)?;
        if came.iter().all(|(_, goes_on)| !goes_on) {
            return Ok(least);
        }
        for (to, label) in came.into_iter().flat_map(|(part, _)| part) {
            let known = &mut least[(to - own.start) as usize];
            if label < *known {
                *known = label;
                changed.push(to);
            }
        }
    }
}

/// How many components there are, found by one thread.
fn alone() -> usize {
    fn root(parents: &mut [u32], mut vertex: u32) -> u32 {
        while parents[vertex as usize] != vertex {
            let parent = parents[vertex as usize];
            parents[vertex as usize] = parents[parent as usize];
            vertex = parent;
        }
        vertex
    }
    let mut parents: Vec<u32> = (0..VERTICES).collect();
    for (one, other) in edges() {
        let (one, other) = (root(&mut parents, one), root(&mut parents, other));
        parents[one as usize] = other;
    }
    (0..VERTICES)
        .filter(|it| parents[*it as usize] == *it)
        .count()
}

fn main() -> std::result::Result<(), dhole::RunError> {
    let file = std::env::args().nth(1);
    let run = Config::nodes(NODES).run(|w| {
        let graph: DistGraph = match &file {
            Some(file) => DistGraph::from_file(w, file)?,
            None => {
                let (me, nodes) = (w.node().index(), w.nodes());
                let mine = edges().into_iter().skip(me).step_by(nodes);
                let both_ways = mine.flat_map(|(one, other)| [(one, other), (other, one)]);
                DistGraph::from_edges(w, VERTICES, both_ways)?
            }
        };
        let least = components(w, &graph)?;
        let own = graph.own(w.node());
        let mine = own
            .zip(least)
            .filter(|(vertex, least)| vertex == least)
            .count();
        let count = w.all_reduce(mine, |one, next| one + next)?;
        Ok((graph.vertices(), graph.arcs(), count))
    })?;
    if run.report.is_first() {
        let (vertices, arcs, count) = run.value;
        if file.is_none() {
            assert_eq!(count, alone());
        }
        println!("{vertices} vertices, {arcs} arcs, {count} components");
    }
    Ok(())
}
