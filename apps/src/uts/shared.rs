//! The search on all nodes: each node of the tree is a task.

use dhole::{Result, Worker, tasks};

use super::tree::UNITS;
use super::{Counted, Tree};
use crate::solve::Steps;

/// What there is.
pub fn count(w: &mut Worker<'_>, tree: &Tree, steps: &mut Steps) -> Result<Counted> {
    let root = (w.node().index() == 0).then(|| tree.root());
    steps.begin(w)?;
    let counted = tasks::tree(
        w,
        root,
        |w, node, more| {
            let children = tree.children_of(&node);
            for number in 0..children {
                more.push(node.child(number))?;
            }
            w.work(UNITS);
            Ok(Counted::of(&node, children))
        },
        Counted::and,
    )?;
    steps.end(w)?;
    Ok(counted.unwrap_or_default())
}
