//! The cells, the neighbours of each, and the cells of each node.

use std::ops::Range;

use crate::vector::Vector;
use crate::water::System;

/// The cells of a box: a cube of them, numbered along z first, then y, then x.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Grid {
    per_side: usize,
    side: f64,
}

/// Where the side of a box is a multiple of the cut-off radius but for this share of a cell,
/// rounding does not make the cells larger.
const TOLERANCE: f64 = 1e-5;

impl Grid {
    /// The smallest cells of `system` that are not smaller than its cut-off radius.
    pub fn of(system: &System) -> Grid {
        Grid {
            per_side: ((system.side / system.cutoff + TOLERANCE) as usize).max(1),
            side: system.side,
        }
    }

    /// How many cells there are.
    pub const fn cells(&self) -> usize {
        self.per_side.pow(3)
    }

    /// The cell that a point of the box is in.
    pub fn cell(&self, point: Vector) -> usize {
        let along = |x: f64| {
            let index = (x / self.side * self.per_side as f64) as usize;
            index.min(self.per_side - 1)
        };
        self.number(point.map(along))
    }

    /// The cells that touch `cell`, and itself, each once.
    pub fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        let grid = *self;
        let n = grid.per_side;
        let [x, y, z] = [cell / (n * n), cell / n % n, cell % n].map(|at| {
            // Two cells on a side touch on both sides, a single one touches itself.
            let around = match n {
                1 | 2 => 0..n,
                _ => at + n - 1..at + n + 2,
            };
            around.map(move |at| at % n)
        });
        x.flat_map(move |x| {
            let z = z.clone();
            y.clone()
                .flat_map(move |y| z.clone().map(move |z| grid.number([x, y, z])))
        })
    }

    /// The node of each cell, where `nodes` of them, at most as many as there are cells, have
    /// blocks of about the same size: the longest side is cut, and both parts are divided again.
    pub fn owners(&self, nodes: usize) -> Vec<usize> {
        let mut owners = vec![0; self.cells()];
        let all = [(); 3].map(|()| 0..self.per_side);
        self.divide(all, 0..nodes, &mut owners);
        owners
    }

    /// The node of each cell as SPLASH-2 divides them: as many parts along x as the cube root of
    /// the nodes says, the rest along y and z, all of the same size but for one cell. Along z, in
    /// which molecules follow on each other, parts are not longer than along x. Where there are too
    /// few cells for that, as [`Grid::owners`].
    pub fn splash_owners(&self, nodes: usize) -> Vec<usize> {
        let parts = parts(nodes);
        if parts.iter().any(|parts| *parts > self.per_side) {
            return self.owners(nodes);
        }
        // The first parts have the cells that are over.
        let part = |at: usize, parts: usize| {
            let (least, over) = (self.per_side / parts, self.per_side % parts);
            match at < over * (least + 1) {
                true => at / (least + 1),
                false => (at - over) / least,
            }
        };
        let n = self.per_side;
        let owner = |cell: usize| {
            let at = [cell / (n * n), cell / n % n, cell % n];
            let [x, y, z] = [0, 1, 2].map(|axis| part(at[axis], parts[axis]));
            (x * parts[1] + y) * parts[2] + z
        };
        (0..self.cells()).map(owner).collect()
    }

    /// The cells of other nodes that touch those of `node`, in the order in which one comes upon
    /// them who looks around one of these after the other.
    pub fn around(&self, owners: &[usize], node: usize) -> Vec<usize> {
        let own = (0..self.cells()).filter(|&cell| owners[cell] == node);
        let all = own.flat_map(|cell| self.neighbours(cell));
        let mut found = vec![false; self.cells()];
        all.filter(|&cell| owners[cell] != node && !std::mem::replace(&mut found[cell], true))
            .collect()
    }

    fn divide(&self, block: [Range<usize>; 3], nodes: Range<usize>, owners: &mut [usize]) {
        if nodes.len() <= 1 {
            for x in block[0].clone() {
                for y in block[1].clone() {
                    for z in block[2].clone() {
                        owners[self.number([x, y, z])] = nodes.start;
                    }
                }
            }
            return;
        }
        let longest = (0..3).rev().max_by_key(|&axis| block[axis].len());
        let axis = longest.unwrap_or(0);
        let (length, half) = (block[axis].len(), nodes.len() / 2);
        let nearest = (2 * length * half + nodes.len()) / (2 * nodes.len());
        let cut = block[axis].start + nearest.clamp(1, length - 1);
        let (mut low, mut high) = (block.clone(), block);
        low[axis].end = cut;
        high[axis].start = cut;
        let cells = |block: &[Range<usize>; 3]| block.iter().map(Range::len).product::<usize>();
        // No part gets more nodes than it has cells.
        let fewest = nodes.len().saturating_sub(cells(&high)).max(1);
        let most = cells(&low).min(nodes.len() - 1);
        let middle = nodes.start + half.clamp(fewest, most);
        self.divide(low, nodes.start..middle, owners);
        self.divide(high, middle..nodes.end, owners);
    }

    const fn number(&self, [x, y, z]: [usize; 3]) -> usize {
        (x * self.per_side + y) * self.per_side + z
    }
}

/// Into how many parts SPLASH-2 divides each axis among so many nodes.
fn parts(nodes: usize) -> [usize; 3] {
    let divisor = |of: usize, up_to: usize| {
        let mut down = (1..=up_to.max(1)).rev();
        down.find(|n| of.is_multiple_of(*n)).unwrap_or(1)
    };
    let cube_root = (1..=nodes).take_while(|n| n.pow(3) <= nodes).last();
    let x = divisor(nodes, cube_root.unwrap_or(1));
    let y = divisor(nodes / x, (nodes / x).isqrt());
    [x, y, nodes / x / y]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::water::Problem;

    fn grid(per_side: usize) -> Grid {
        let side = 10.0;
        Grid { per_side, side }
    }

    #[test]
    fn the_cells_of_the_published_input_are_64() {
        let cells = |molecules, cutoff| {
            let problem = Problem {
                cutoff,
                ..Problem::new(molecules, 1, 1)
            };
            Grid::of(&System::of(&problem)).cells()
        };
        assert_eq!(cells(512, crate::water::model::CUTOFF), 64);
        assert_eq!(cells(512, 0.0), 8);
        assert_eq!(cells(4096, 0.0), 64);
        assert_eq!(cells(1, 0.0), 8);
    }

    #[test]
    fn neighbours_are_those_that_touch_each_once() {
        for per_side in [1, 2, 3, 5] {
            let grid = grid(per_side);
            for cell in 0..grid.cells() {
                let mut around: Vec<usize> = grid.neighbours(cell).collect();
                assert_eq!(around.len(), per_side.min(3).pow(3));
                assert!(around.contains(&cell));
                assert!(
                    around
                        .iter()
                        .all(|&other| grid.neighbours(other).any(|back| back == cell))
                );
                around.sort_unstable();
                around.dedup();
                assert_eq!(around.len(), per_side.min(3).pow(3));
            }
        }
    }

    #[test]
    fn every_node_has_a_block() {
        for per_side in 1..=4 {
            let grid = grid(per_side);
            for nodes in 1..=grid.cells() {
                let owners = grid.owners(nodes);
                let mut cells = vec![0; nodes];
                owners.iter().for_each(|&owner| cells[owner] += 1);
                assert!(!cells.contains(&0), "{nodes} on {per_side}^3: {cells:?}");
            }
        }
    }

    #[test]
    fn blocks_of_powers_of_two_are_alike() {
        for nodes in [2, 4, 8, 16, 32, 64] {
            let mut cells = vec![0; nodes];
            let owners = grid(4).owners(nodes);
            owners.iter().for_each(|&owner| cells[owner] += 1);
            assert!(cells.iter().all(|&count| count == 64 / nodes), "{cells:?}");
        }
    }

    #[test]
    fn splash_divides_z_most() {
        assert_eq!(parts(32), [2, 4, 4]);
        assert_eq!(parts(16), [2, 2, 4]);
        assert_eq!([parts(1), parts(7), parts(64)], [[1; 3], [1, 1, 7], [4; 3]]);
        for (per_side, nodes) in [(16, 32), (5, 6), (3, 32)] {
            let mut cells = vec![0; nodes];
            let owners = grid(per_side).splash_owners(nodes.min(27));
            owners.iter().for_each(|&owner| cells[owner] += 1);
            assert!(
                !cells[..nodes.min(27)].contains(&0),
                "{per_side}: {cells:?}"
            );
        }
        let owners = grid(16).splash_owners(32);
        assert_eq!(
            [owners[0], owners[4], owners[16 * 4], owners[8 * 256]],
            [0, 1, 4, 16]
        );
    }

    #[test]
    fn a_point_is_in_its_cell() {
        assert_eq!(grid(4).cell([0.0, 2.6, 9.9]), 4 + 3);
        assert_eq!(grid(4).cell([9.9, 0.0, 0.0]), 48);
    }
}
