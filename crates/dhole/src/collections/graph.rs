//! A graph whose vertices are divided among the nodes.

mod file;

use std::ops::Range;

use dhole_heap::{Access, Array, ArrayError, Share};
use dhole_model::{CallSite, Counted, NodeId};
use dhole_node::Worker;
use serde::{Deserialize, Serialize};

use super::error::Numbers;
use super::exchange::exchange;
use super::{GraphError, GraphFileError};
use crate::job_queue::ByValue;
pub use file::FileWeight;

type Graphed<T> = Result<T, GraphError>;

/// The vertices are weighed in blocks, of which there are about so many.
const BLOCKS: u32 = 1 << 12;

/// A type of weights of arcs: any that may be shared and travels by value. `()` where arcs have no
/// weights.
pub trait GraphWeight: Share + ByValue + Copy {}

impl<W: Share + ByValue + Copy> GraphWeight for W {}

/// An arc as it is kept with the vertex at which it begins.
#[derive(
    dhole_heap::Share,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
)]
#[share(crate = "dhole_heap")]
pub struct GraphArc<W> {
    /// The vertex to which the arc leads.
    pub to: u32,
    /// Its weight.
    pub weight: W,
}

/// The vertices of one node, and the arcs that begin there.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Part<W: GraphWeight> {
    /// Where the arcs of each vertex begin, and behind the last one where they end.
    begins: Array<u32>,
    arcs: Array<GraphArc<W>>,
}

impl<W: GraphWeight> Clone for Part<W> {
    fn clone(&self) -> Part<W> {
        *self
    }
}

impl<W: GraphWeight> Copy for Part<W> {}

/// A directed graph whose vertices, numbers from 0 on, are divided among the nodes in blocks: as
/// compressed sparse rows over shared arrays. Every node may read all of it; nobody writes it.
///
/// ```
/// use dhole::Config;
/// use dhole::collections::DistGraph;
///
/// let run = Config::nodes(2).run(|w| {
///     // Each node gives the arcs that it has, whichever they are: here a ring of 10 vertices.
///     let mine = (0..10).skip(w.node().index()).step_by(w.nodes());
///     let ring = DistGraph::from_edges(w, 10, mine.map(|it| (it, (it + 1) % 10)))?;
///     let (mut at, mut steps) = (0, 0);
///     while steps == 0 || at != 0 {
///         at = ring.neighbours(w, at)[0].to; // a slice of the arcs that begin there
///         steps += 1;
///     }
///     Ok((steps, ring.arcs()))
/// })?;
/// assert_eq!(run.value, (10, 10));
/// # Ok::<(), dhole::RunError>(())
/// ```
///
/// - **Direction.** An arc `(from, to)` leads from `from` to `to`. It belongs to the node of
///   `from`, and [`neighbours`](DistGraph::neighbours) of `from` has it; those of `to` do not. For
///   an edge that leads both ways give `(a, b)` and `(b, a)`. [`reversed`](DistGraph::reversed) has
///   the arcs that end at a vertex.
/// - The blocks are of different lengths, so that each node has about as many vertices and arcs as
///   each other. [`own`](DistGraph::own) are the vertices of a node.
/// - The arcs of a vertex are in the order of the nodes that gave them, and of one node in the
///   order in which it gave them. Arcs may be given twice, and lead back to their vertex.
/// - The fastest programs have each node work on its own vertices, which lie in its memory
///   ([`local`](DistGraph::local)), and send the others what concerns theirs
///   ([`all_to_all`](Worker::all_to_all)). `cargo run --example components` is one.
/// - A program that goes where arcs lead has the neighbours of many vertices brought at once by
///   [`fetch`](DistGraph::fetch). What was brought stays.
///
/// The handle has 24 bytes for each node. It is cloned, and travels by value.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct DistGraph<W: GraphWeight = ()> {
    /// The first vertex of each node's part, and behind the last one how many there are.
    starts: Vec<u32>,
    parts: Vec<Part<W>>,
    arcs: u64,
}

impl<W: GraphWeight> std::fmt::Debug for DistGraph<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "DistGraph({}, {})",
            Counted(self.vertices().into(), "vertex", "vertices"),
            Counted(self.arcs, "arc", "arcs")
        )
    }
}

/// The part of a graph that a node owns, borrowed: plain slices, without a call of the runtime.
#[derive(Clone, Copy, Debug)]
pub struct LocalGraph<'w, W> {
    first: u32,
    begins: &'w [u32],
    arcs: &'w [GraphArc<W>],
}

impl<'w, W> LocalGraph<'w, W> {
    /// The vertices.
    pub fn vertices(&self) -> Range<u32> {
        self.first..self.first + self.begins.len().saturating_sub(1) as u32
    }

    /// All arcs that begin here, vertex by vertex.
    pub fn arcs(&self) -> &'w [GraphArc<W>] {
        self.arcs
    }

    /// The arcs that begin at a vertex.
    ///
    /// # Panics
    /// When the vertex is not one of this part, with the line of the caller.
    #[inline]
    #[track_caller]
    pub fn neighbours(&self, vertex: u32) -> &'w [GraphArc<W>] {
        let place = vertex.wrapping_sub(self.first) as usize;
        match self
            .begins
            .get(place..)
            .and_then(|begins| begins.first_chunk())
        {
            Some([begins, ends]) => &self.arcs[*begins as usize..*ends as usize],
            None => not_of_part(vertex, self.vertices()),
        }
    }
}

impl DistGraph {
    /// Makes a graph of the arcs of all nodes. Every node calls it, with the same number of
    /// vertices and with the arcs `(from, to)` that it has, whichever their vertices are. For an
    /// edge that leads both ways give both arcs.
    ///
    /// It takes an [`all_reduce`](Worker::all_reduce), an [`all_gather`](Worker::all_gather) and an
    /// [`all_to_all`](Worker::all_to_all) for each 262,144 arcs that some node has for another.
    ///
    /// # Errors
    /// [`GraphError::NoEnd`] for an arc from or to no vertex, [`GraphError::Differ`] where nodes
    /// pass different numbers of vertices, [`GraphError::TooManyArcs`], and as
    /// [`all_to_all`](Worker::all_to_all).
    #[track_caller]
    pub fn from_edges(
        w: &mut Worker<'_>,
        vertices: u32,
        mine: impl IntoIterator<Item = (u32, u32)>,
    ) -> Graphed<DistGraph> {
        let mine = mine.into_iter().map(|(from, to)| (from, to, ()));
        DistGraph::from_weighted(w, vertices, mine)
    }
}

impl<W: GraphWeight> DistGraph<W> {
    /// The same, with a weight for each arc `(from, to, weight)`.
    ///
    /// # Errors
    /// As [`from_edges`](DistGraph::from_edges); a weight takes 240 bytes at most, serialised.
    #[track_caller]
    pub fn from_weighted(
        w: &mut Worker<'_>,
        vertices: u32,
        mine: impl IntoIterator<Item = (u32, u32, W)>,
    ) -> Graphed<DistGraph<W>> {
        let making = Making::new(w, vertices);
        let shift = making.shift();
        let mut in_blocks = vec![0_u64; making.blocks()];
        let mut checked = Vec::new();
        for (arc, (from, to, weight)) in mine.into_iter().enumerate() {
            if from.max(to) >= vertices {
                return Err(making.no_end(arc, from, to));
            }
            in_blocks[(from >> shift) as usize] += 1;
            checked.push((from, to, weight));
        }
        let starts = making.divide(w, in_blocks)?;
        let mut per_node: Vec<Vec<(u32, u32, W)>> = vec![Vec::new(); w.nodes()];
        for arc in checked {
            per_node[owner(&starts, arc.0)].push(arc);
        }
        let own = &starts[w.node().index()..][..2];
        let came = exchange(w, per_node)?;
        let (begins, arcs) = rows(own[0]..own[1], &came);
        drop(came);
        making.publish(w, starts, begins, &arcs)
    }

    /// Makes a graph of a file that node 0 reads; the others need not have it. Every node calls it.
    /// The first line that is no comment says in which form the file is:
    ///
    /// - `%%MatrixMarket matrix coordinate` (Matrix Market): an arc leads from the row of each
    ///   entry to its column, and one back if the matrix is `symmetric`. Its weight is the value,
    ///   or 1 in a `pattern`.
    /// - `p sp` (DIMACS, shortest paths): the arcs of the lines `a`, with their weights.
    /// - `p edge` or `p col` (DIMACS, colouring): arcs there and back for each of the lines `e`,
    ///   with the weight 1, or that of the line.
    ///
    /// These forms count vertices from 1, and the graph from 0.
    ///
    /// # Errors
    /// [`GraphError::File`], on all nodes, with file, line and cause: a file that cannot be read,
    /// that ends early, whose lines are of another form, or whose weights are no `W`; and as
    /// [`from_weighted`](DistGraph::from_weighted).
    #[track_caller]
    pub fn from_file(w: &mut Worker<'_>, path: impl AsRef<std::path::Path>) -> Graphed<DistGraph<W>>
    where
        W: FileWeight,
    {
        let mut edges = Vec::new();
        let mut vertices = Ok(0);
        if w.node() == NodeId(0) {
            vertices = file::read(path.as_ref()).map(|list| {
                edges = list.arcs;
                list.vertices
            });
        }
        let vertices: Result<u32, GraphFileError> = w.broadcast(vertices)?;
        DistGraph::from_weighted(w, vertices?, edges)
    }

    /// The graph in which every arc leads the other way, with the same weights. Every node calls
    /// it. It costs what [`from_edges`](DistGraph::from_edges) does.
    ///
    /// # Errors
    /// As [`from_weighted`](DistGraph::from_weighted), and [`GraphError::Access`].
    #[track_caller]
    pub fn reversed(&self, w: &mut Worker<'_>) -> Graphed<DistGraph<W>> {
        let local = self.local(w)?;
        let arcs = local.vertices().flat_map(|from| {
            let arcs = local.neighbours(from).iter();
            arcs.map(move |arc| (arc.to, from, arc.weight))
        });
        let arcs: Vec<_> = arcs.collect();
        DistGraph::from_weighted(w, self.vertices(), arcs)
    }

    /// How many vertices: their numbers are below this.
    pub fn vertices(&self) -> u32 {
        self.starts.last().copied().unwrap_or_default()
    }

    /// How many arcs.
    pub fn arcs(&self) -> u64 {
        self.arcs
    }

    /// The node to which a vertex belongs; `None` where there is no such vertex.
    #[inline]
    pub fn owner(&self, vertex: u32) -> Option<NodeId> {
        (vertex < self.vertices()).then(|| NodeId::at(owner(&self.starts, vertex)))
    }

    /// The vertices that belong to a node; none, where there is no such node.
    pub fn own(&self, node: NodeId) -> Range<u32> {
        match self
            .starts
            .get(node.index()..)
            .and_then(|it| it.first_chunk())
        {
            Some([start, end]) => *start..*end,
            None => 0..0,
        }
    }

    /// The part of the graph that belongs to this node, as plain slices.
    ///
    /// # Errors
    /// [`GraphError::Access`] if the graph is freed, or was made in another run.
    #[track_caller]
    pub fn local<'w>(&self, w: &'w Worker<'_>) -> Graphed<LocalGraph<'w, W>> {
        let node = w.node();
        let Some(part) = self.parts.get(node.index()) else {
            let (begins, arcs, first) = (&[][..], &[][..], 0);
            return Ok(LocalGraph {
                first,
                begins,
                arcs,
            });
        };
        Ok(LocalGraph {
            first: self.own(node).start,
            begins: part.begins.range(..).try_get(w)?,
            arcs: part.arcs.range(..).try_get(w)?,
        })
    }

    /// The arcs that begin at a vertex. Those of another node's vertex are fetched if they are not
    /// here, as elements of an [`Array`]: two messages for where they are and two for them.
    ///
    /// An access that cannot be made unwinds to the node's boundary;
    /// [`try_neighbours`](DistGraph::try_neighbours) returns that error.
    ///
    /// # Panics
    /// When there is no such vertex, like a slice, with the line of the caller.
    #[inline]
    #[track_caller]
    pub fn neighbours<'w, 'id: 'w, A: Access<'id>>(
        &self,
        w: &'w A,
        vertex: u32,
    ) -> &'w [GraphArc<W>] {
        let Some((part, place)) = self.place(vertex) else {
            not_of_graph(vertex, self.vertices());
        };
        let row = part.begins.slice(w, place..place + 2);
        part.arcs.slice(w, row[0] as usize..row[1] as usize)
    }

    /// Like [`neighbours`](DistGraph::neighbours), but returns the error.
    ///
    /// # Errors
    /// [`GraphError::NoVertex`], and [`GraphError::Access`] if the arcs cannot be had.
    #[track_caller]
    pub fn try_neighbours<'w>(&self, w: &'w Worker<'_>, vertex: u32) -> Graphed<&'w [GraphArc<W>]> {
        let Some((part, place)) = self.place(vertex) else {
            return Err(self.no_vertex(w, vertex));
        };
        let row = part
            .begins
            .try_slice(w, place..place + 2)
            .map_err(accessed)?;
        let row = row[0] as usize..row[1] as usize;
        part.arcs.try_slice(w, row).map_err(accessed)
    }

    /// How many arcs begin at a vertex. As [`neighbours`](DistGraph::neighbours), without fetching
    /// the arcs.
    ///
    /// # Panics
    /// When there is no such vertex, like a slice, with the line of the caller.
    #[inline]
    #[track_caller]
    pub fn degree<'w, 'id: 'w, A: Access<'id>>(&self, w: &'w A, vertex: u32) -> usize {
        let Some((part, place)) = self.place(vertex) else {
            not_of_graph(vertex, self.vertices());
        };
        let row = part.begins.slice(w, place..place + 2);
        (row[1] - row[0]) as usize
    }

    /// Brings the arcs that begin at all these vertices, in any order and perhaps repeated, so that
    /// [`neighbours`](DistGraph::neighbours) of them finds them here. One round of messages to each
    /// owner for where they are, and one for them; none to an owner of whom all is here.
    ///
    /// # Errors
    /// [`GraphError::NoVertex`], and [`GraphError::Access`] if they cannot be had.
    #[track_caller]
    pub fn fetch(&self, w: &Worker<'_>, vertices: &[u32]) -> Graphed<()> {
        let own = self.own(w.node());
        let mut absent: Vec<u32> = Vec::new();
        for &vertex in vertices {
            match own.contains(&vertex) {
                _ if vertex >= self.vertices() => return Err(self.no_vertex(w, vertex)),
                true => {}
                false => absent.push(vertex),
            }
        }
        absent.sort_unstable();
        absent.dedup();
        let is_next = |one: &u32, next: &u32| one + 1 == *next && !self.starts.contains(next);
        let runs = absent.chunk_by(is_next).filter_map(|run| {
            let (part, place) = self.place(run[0])?;
            Some((part, part.begins.range(place..place + run.len() + 1)))
        });
        let (parts, rows): (Vec<_>, Vec<_>) = runs.unzip();
        w.prefetch(&rows)?;
        let arcs = parts.iter().zip(rows).map(|(part, row)| {
            let row = row.try_get(w)?;
            let ends = row.last().copied().unwrap_or_default();
            Ok(part.arcs.range(row[0] as usize..ends as usize))
        });
        let arcs: Vec<_> = arcs.collect::<Graphed<_>>()?;
        Ok(w.prefetch(&arcs)?)
    }

    /// Frees the graph. One node calls it, when no node reads the graph any more.
    ///
    /// # Errors
    /// [`GraphError::Access`] if it was freed before.
    #[track_caller]
    pub fn free(self, w: &mut Worker<'_>) -> Graphed<()> {
        for part in self.parts {
            w.free((part.begins, part.arcs))?;
        }
        Ok(())
    }

    /// The part that a vertex is in, and its place there.
    #[inline]
    fn place(&self, vertex: u32) -> Option<(Part<W>, usize)> {
        if vertex >= self.vertices() {
            return None;
        }
        let node = owner(&self.starts, vertex);
        let part = *self.parts.get(node)?;
        Some((part, (vertex - self.starts[node]) as usize))
    }

    #[cold]
    #[track_caller]
    fn no_vertex(&self, w: &Worker<'_>, vertex: u32) -> GraphError {
        GraphError::NoVertex {
            vertex,
            vertices: self.vertices(),
            node: w.node(),
            site: CallSite::caller(),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn not_of_graph(vertex: u32, vertices: u32) -> ! {
    let (site, numbers) = (CallSite::caller(), Numbers(0..vertices.into()));
    panic!("vertex {vertex} of a graph at {site}: there is no such vertex; {numbers}")
}

#[cold]
#[inline(never)]
#[track_caller]
fn not_of_part(vertex: u32, own: Range<u32>) -> ! {
    let (site, numbers) = (
        CallSite::caller(),
        Numbers(own.start.into()..own.end.into()),
    );
    panic!("vertex {vertex} of the own part of a graph at {site}: it is not there; {numbers}")
}

/// The part that a vertex is in.
#[inline]
fn owner(starts: &[u32], vertex: u32) -> usize {
    let inner = starts
        .get(1..starts.len().saturating_sub(1))
        .unwrap_or_default();
    inner.partition_point(|start| *start <= vertex)
}

fn accessed(error: ArrayError<dhole_node::AccessError>) -> GraphError {
    match error {
        ArrayError::Access(cause) => cause.into(),
        // Rows lie within their part.
        cause => panic!("{cause}"),
    }
}

/// Compressed sparse rows of arcs that begin at these vertices.
fn rows<W: Copy>(own: Range<u32>, came: &[Vec<(u32, u32, W)>]) -> (Vec<u64>, Vec<GraphArc<W>>) {
    let mut begins = vec![0; (own.end - own.start) as usize + 1];
    for (from, ..) in came.iter().flatten() {
        begins[(from - own.start) as usize + 1] += 1;
    }
    for at in 1..begins.len() {
        begins[at] += begins[at - 1];
    }
    let arc = |&(_, to, weight): &(u32, u32, W)| GraphArc { to, weight };
    let first = came.iter().flatten().next().map(arc);
    let mut arcs = Vec::new();
    if let Some(first) = first {
        arcs.resize(came.iter().map(Vec::len).sum(), first);
    }
    let mut next = begins.clone();
    for it in came.iter().flatten() {
        let place = &mut next[(it.0 - own.start) as usize];
        arcs[*place as usize] = arc(it);
        *place += 1;
    }
    (begins, arcs)
}

/// A graph that is being made, and where in the program.
#[derive(Clone, Copy)]
struct Making {
    vertices: u32,
    node: NodeId,
    site: CallSite,
}

impl Making {
    #[track_caller]
    fn new(w: &Worker<'_>, vertices: u32) -> Making {
        Making {
            vertices,
            node: w.node(),
            site: CallSite::caller(),
        }
    }

    #[cold]
    fn no_end(&self, arc: usize, from: u32, to: u32) -> GraphError {
        let Making {
            vertices,
            node,
            site,
        } = *self;
        GraphError::NoEnd {
            arc: arc as u64,
            from,
            to,
            vertices,
            node,
            site,
        }
    }

    /// A block has two to the power of this vertices.
    fn shift(&self) -> u32 {
        (self.vertices / BLOCKS)
            .checked_ilog2()
            .map_or(0, |it| it + 1)
    }

    fn blocks(&self) -> usize {
        (self.vertices as usize).div_ceil(1 << self.shift())
    }

    /// Divides the vertices among the nodes, as all of them find from the arcs of all of them.
    #[track_caller]
    fn divide(&self, w: &mut Worker<'_>, in_blocks: Vec<u64>) -> Graphed<Vec<u32>> {
        let mine = (self.vertices, self.vertices, in_blocks);
        let (least, most, in_blocks) = w.all_reduce(mine, |mut one, next| {
            let sums = one.2.iter_mut().zip(next.2);
            sums.for_each(|(sum, next)| *sum += next);
            (one.0.min(next.0), one.1.max(next.1), one.2)
        })?;
        if least != most {
            let Making { node, site, .. } = *self;
            return Err(GraphError::Differ {
                node,
                site,
                least,
                most,
            });
        }
        Ok(starts(self.vertices, self.shift(), &in_blocks, w.nodes()))
    }

    #[track_caller]
    fn publish<W: GraphWeight>(
        &self,
        w: &mut Worker<'_>,
        starts: Vec<u32>,
        begins: Vec<u64>,
        arcs: &[GraphArc<W>],
    ) -> Graphed<DistGraph<W>> {
        let count = arcs.len() as u64;
        let fits = u32::try_from(count).is_ok();
        let part = fits.then(|| Part {
            begins: w.alloc_array_with(begins.len(), |at| begins[at] as u32),
            arcs: w.alloc_array_with(arcs.len(), |at| arcs[at]),
        });
        let all = w.all_gather((part, count))?;
        let Making { node, site, .. } = *self;
        let (mut parts, mut arcs) = (Vec::with_capacity(all.len()), 0);
        for (part, count) in all {
            let too_many = || GraphError::TooManyArcs {
                node,
                site,
                arcs: count,
            };
            parts.push(part.ok_or_else(too_many)?);
            arcs += count;
        }
        Ok(DistGraph {
            starts,
            parts,
            arcs,
        })
    }
}

/// The first vertex of each node, and behind the last one how many there are, so that each has
/// about as many vertices and arcs together as each other.
fn starts(vertices: u32, shift: u32, in_blocks: &[u64], nodes: usize) -> Vec<u32> {
    let total = in_blocks.iter().sum::<u64>() + u64::from(vertices);
    let place = |block: usize| u64::min((block as u64) << shift, u64::from(vertices));
    let mut starts = vec![0];
    let (mut block, mut before) = (0, 0);
    for node in 1..nodes as u128 {
        let wanted = (u128::from(total) * node / nodes as u128) as u64;
        while let Some(arcs) = in_blocks.get(block) {
            let weight = arcs + place(block + 1) - place(block);
            // The nearer end of the block.
            if before + weight / 2 >= wanted {
                break;
            }
            before += weight;
            block += 1;
        }
        starts.push(place(block) as u32);
    }
    starts.push(vertices);
    starts
}

#[cfg(test)]
mod tests;
