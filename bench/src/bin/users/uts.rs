//! An unbalanced tree is searched: each of its nodes is a task, and a hash says how many children
//! it has. The tree is T1 of the benchmark UTS.

use apps::uts::{self, Counted, Node, Tree};
use bench::Outcome;
use dhole::{Result, Worker, tasks};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::lap;
use crate::{Program, Took};

const TREE: Tree = Tree::T1;

pub const PROGRAM: Program = Program {
    name: "uts",
    about: "the 4,130,071 nodes of an unbalanced tree",
    phases: &["search"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[("tasks", with_tasks)],
};

fn took((counted, lap): (Counted, lap::Lap)) -> Took {
    Took {
        laps: vec![lap],
        found: counted.nodes,
    }
}

fn sequential() -> Outcome<Took> {
    Ok(took(lap::alone(|| (uts::PROGRAM.sequential)(&TREE).0)))
}

fn below(node: Node) -> Counted {
    let children = TREE.children_of(&node);
    let counted = (0..children)
        .into_par_iter()
        .map(|number| below(node.child(number)));
    Counted::of(&node, children).and(counted.reduce(Counted::default, Counted::and))
}

fn with_rayon() -> Outcome<Took> {
    Ok(took(lap::by_others(|| below(TREE.root()))))
}

fn with_tasks(w: &mut Worker<'_>) -> Result<Took> {
    let root = (w.node().index() == 0).then(|| TREE.root());
    Ok(took(lap::together(w, |w| {
        let counted = tasks::tree(
            w,
            root,
            |_, node, more| {
                let children = TREE.children_of(&node);
                for number in 0..children {
                    more.push(node.child(number))?;
                }
                Ok(Counted::of(&node, children))
            },
            Counted::and,
        )?;
        Ok(counted.unwrap_or_default())
    })?))
}
