//! R-MAT graphs (Chakrabarti, Zhan, Faloutsos: *R-MAT: A Recursive Model for Graph Mining*, 2004),
//! with the parameters of Graph500.

use dhole_model::SplitMix64;

const SCALE: u32 = 17;
const EDGES: usize = 1 << 20;

/// A graph whose edges lead both ways, as compressed sparse rows.
pub struct Graph {
    /// Where the arcs of each vertex begin, and behind the last one where they end.
    pub begins: Vec<u32>,
    /// The vertices to which the arcs lead.
    pub targets: Vec<u32>,
}

impl Graph {
    /// 2^17 vertices, 2^20 edges, 2^21 arcs: the same graph always.
    pub fn new() -> Graph {
        let mut random = SplitMix64(17);
        let mut edges = Vec::with_capacity(EDGES);
        for _ in 0..EDGES {
            let (mut from, mut to) = (0_u32, 0_u32);
            for _ in 0..SCALE {
                let (down, right) = match random.below(100) {
                    0..57 => (0, 0),
                    57..76 => (0, 1),
                    76..95 => (1, 0),
                    _ => (1, 1),
                };
                (from, to) = (from << 1 | down, to << 1 | right);
            }
            edges.push((from, to));
        }
        let vertices = 1 << SCALE;
        let mut begins = vec![0_u32; vertices + 1];
        for &(from, to) in &edges {
            begins[from as usize + 1] += 1;
            begins[to as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            begins[vertex + 1] += begins[vertex];
        }
        let mut next = begins.clone();
        let mut targets = vec![0; 2 * EDGES];
        for (from, to) in edges {
            for (from, to) in [(from, to), (to, from)] {
                targets[next[from as usize] as usize] = to;
                next[from as usize] += 1;
            }
        }
        Graph { begins, targets }
    }

    pub fn vertices(&self) -> usize {
        self.begins.len() - 1
    }

    /// The vertices to which the arcs of a vertex lead.
    pub fn arcs(&self, vertex: u32) -> &[u32] {
        let vertex = vertex as usize;
        &self.targets[self.begins[vertex] as usize..self.begins[vertex + 1] as usize]
    }

    /// Where searches begin: vertices with arcs.
    pub fn roots(&self, count: usize) -> Vec<u32> {
        let mut random = SplitMix64(1);
        let draws = std::iter::repeat_with(|| random.below(self.vertices() as u64) as u32);
        let with_arcs = draws.filter(|vertex| !self.arcs(*vertex).is_empty());
        with_arcs.take(count).collect()
    }
}
