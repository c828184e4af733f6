//! How rows go from the node that has them to all: blocks of rows, and trees of nodes.

use std::ops::Range;

/// The vertices whose rows a node has: contiguous blocks, which differ by at most one row.
pub fn block(vertices: usize, nodes: usize, node: usize) -> Range<usize> {
    vertices * node / nodes..vertices * (node + 1) / nodes
}

/// The node that has the row of a vertex.
pub fn owner(vertices: usize, nodes: usize, vertex: usize) -> usize {
    let near = vertex * nodes / vertices;
    let has = |node: usize| block(vertices, nodes, node).contains(&vertex);
    (near..nodes).find(|node| has(*node)).unwrap_or(near)
}

/// The node from which `node` gets the rows of `root`, in a binomial tree; none for `root` itself.
pub fn parent(root: usize, node: usize, nodes: usize) -> Option<usize> {
    let rank = (node + nodes - root) % nodes;
    let highest = rank.checked_ilog2()?;
    Some((rank - (1 << highest) + root) % nodes)
}

/// The nodes that get the rows of `root` from `node`.
pub fn children(root: usize, node: usize, nodes: usize) -> impl Iterator<Item = usize> {
    let all = (0..nodes).filter(move |child| *child != root);
    all.filter(move |child| parent(root, *child, nodes) == Some(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_gets_each_row_once_over_few_nodes() {
        for nodes in 1..20_usize {
            for root in 0..nodes {
                for node in 0..nodes {
                    let mut at = node;
                    let mut hops = 0;
                    while let Some(up) = parent(root, at, nodes) {
                        assert!(children(root, up, nodes).any(|child| child == at));
                        (at, hops) = (up, hops + 1);
                    }
                    assert_eq!(at, root);
                    assert!(hops <= nodes.ilog2() + 1, "{hops} of {nodes}");
                }
            }
        }
    }

    #[test]
    fn each_row_is_in_the_block_of_its_owner() {
        for (vertices, nodes) in [(1, 1), (7, 3), (500, 16), (3, 5)] {
            for vertex in 0..vertices {
                let node = owner(vertices, nodes, vertex);
                assert!(block(vertices, nodes, node).contains(&vertex));
            }
        }
    }
}
