//! An unbalanced tree is searched: each of its nodes is a task, and a hash says how many children
//! it has. The tree is T1 of the benchmark UTS.

use apps::uts::{self, Counted, Node, Tree};
use bench::Outcome;
use dhole::{JobQueue, Result, Worker, tasks};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::lap;
use crate::{Program, Took};

const TREE: Tree = Tree::T1;
/// The children of nodes above this depth are jobs.
const DEPTH_OF_JOBS: u32 = 5;

pub const PROGRAM: Program = Program {
    name: "uts",
    about: "the 4,130,071 nodes of an unbalanced tree",
    phases: &["search"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[("JobQueue", with_jobs), ("tasks", with_tasks)],
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

/// What is below a node, counted by one worker.
fn searched(top: Node) -> Counted {
    let mut counted = Counted::default();
    let mut open = vec![top];
    while let Some(node) = open.pop() {
        let children = TREE.children_of(&node);
        counted = counted.and(Counted::of(&node, children));
        open.extend((0..children).map(|number| node.child(number)));
    }
    counted
}

fn with_jobs(w: &mut Worker<'_>) -> Result<Took> {
    Ok(took(lap::together(w, |w| {
        let queue = w.once(|w| Ok(JobQueue::<Node, Counted>::of(w, [TREE.root()])?))?;
        queue.work_guided(w, |w, node| {
            if node.depth() >= DEPTH_OF_JOBS {
                return Ok(searched(node));
            }
            let children = TREE.children_of(&node);
            for number in 0..children {
                queue.push(w, node.child(number))?;
            }
            Ok(Counted::of(&node, children))
        })?;
        let counted = queue.results(w)?.into_iter();
        Ok(counted.fold(Counted::default(), Counted::and))
    })?))
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
