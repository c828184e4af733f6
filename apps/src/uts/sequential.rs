//! The search alone.

use super::tree::UNITS;
use super::{Counted, Tree};

/// What there is, and the units of work that it took to count it.
pub fn count(tree: &Tree) -> (Counted, u64) {
    let mut counted = Counted::default();
    let mut open = vec![tree.root()];
    while let Some(node) = open.pop() {
        let children = tree.children_of(&node);
        counted = counted.and(Counted::of(&node, children));
        open.extend((0..children).map(|number| node.child(number)));
    }
    (counted, counted.nodes * UNITS)
}
