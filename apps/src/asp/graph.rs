//! Graphs: read from DIMACS's files, or generated.

use crate::input::{BadFile, Lines};
use crate::random::SplitMix;

/// The most vertices: their matrix is 1 GiB.
pub const MOST_VERTICES: usize = 1 << 14;
/// The longest arc, so that no path is longer than a distance can be.
const LONGEST_ARC: u32 = 1 << 16;

/// A directed graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    /// How many vertices there are.
    pub vertices: usize,
    /// From, to, and how far.
    pub arcs: Vec<(usize, usize, u32)>,
}

impl Graph {
    /// Reads a file's lines: `c` for comments, `p sp VERTICES ARCS`, and `a FROM TO LENGTH`.
    ///
    /// # Errors
    /// [`BadFile`] with the line that is wrong.
    pub fn parse(lines: &Lines) -> Result<Graph, BadFile> {
        let mut graph: Option<(Graph, usize)> = None;
        for (line, text) in lines.iter() {
            let mut words = text.split_whitespace();
            match (words.next(), &mut graph) {
                (None | Some("c"), _) => continue,
                (Some("p"), None) => {
                    if words.next() != Some("sp") {
                        return Err(lines.wrong(line, "a problem that is not `p sp`"));
                    }
                    let vertices = lines.parse(line, "the number of vertices", words.next())?;
                    let arcs = lines.parse(line, "the number of arcs", words.next())?;
                    if !(1..=MOST_VERTICES).contains(&vertices) {
                        let what =
                            format!("{vertices} vertices: there can be 1 to {MOST_VERTICES}");
                        return Err(lines.wrong(line, what));
                    }
                    let none = Graph {
                        vertices,
                        arcs: Vec::new(),
                    };
                    graph = Some((none, arcs));
                }
                (Some("p"), Some(_)) => return Err(lines.wrong(line, "a second problem")),
                (Some("a"), Some((graph, _))) => {
                    let mut vertex = |what| {
                        let vertex: usize = lines.parse(line, what, words.next())?;
                        match (1..=graph.vertices).contains(&vertex) {
                            true => Ok(vertex - 1),
                            false => Err(lines.wrong(line, format!("{what} cannot be {vertex}"))),
                        }
                    };
                    let (from, to) = (vertex("where an arc begins")?, vertex("where it ends")?);
                    let length = lines.parse(line, "its length", words.next())?;
                    if length > LONGEST_ARC {
                        let what = format!("an arc of length {length}: at most {LONGEST_ARC}");
                        return Err(lines.wrong(line, what));
                    }
                    graph.arcs.push((from, to, length));
                }
                (Some("a"), None) => return Err(lines.wrong(line, "an arc before `p sp`")),
                (Some(other), _) => {
                    return Err(lines.wrong(line, format!("a line that begins with {other:?}")));
                }
            }
            if let Some(word) = words.next() {
                return Err(lines.wrong(line, format!("{word:?} is left over")));
            }
        }
        let Some((graph, arcs)) = graph else {
            return Err(lines.wrong_as_a_whole("it has no line `p sp VERTICES ARCS`"));
        };
        if graph.arcs.len() != arcs {
            let what = format!("{} arcs, where {arcs} are announced", graph.arcs.len());
            return Err(lines.wrong_as_a_whole(what));
        }
        Ok(graph)
    }

    /// A graph in which eight arcs leave every vertex, of lengths 1 to 100.
    pub fn made(vertices: usize, seed: u64) -> Graph {
        const DEGREE: usize = 8;
        let mut random = SplitMix::new(seed);
        let mut arcs = Vec::with_capacity(vertices * DEGREE);
        for from in 0..vertices {
            for _ in 0..DEGREE {
                let to = (random.bits() % vertices as u64) as usize;
                let length = 1 + (random.bits() % 100) as u32;
                arcs.push((from, to, length));
            }
        }
        Graph { vertices, arcs }
    }

    /// Row `from` of the matrix before anything is computed.
    pub fn rows(&self, mine: impl Fn(usize) -> bool) -> Vec<(usize, Vec<u32>)> {
        let mine = (0..self.vertices).filter(|from| mine(*from));
        let mut rows: Vec<(usize, Vec<u32>)> = mine
            .map(|from| {
                let mut row = vec![super::NO_PATH; self.vertices];
                row[from] = 0;
                (from, row)
            })
            .collect();
        for &(from, to, length) in &self.arcs {
            if let Ok(place) = rows.binary_search_by_key(&from, |(from, _)| *from) {
                let there = &mut rows[place].1[to];
                *there = (*there).min(length);
            }
        }
        rows
    }
}
