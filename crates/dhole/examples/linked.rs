//! A search tree built by all nodes at once and walked by each: `cargo run --example linked`.

use dhole::{Config, Cursor, Ref, RunError, Share, Worker};

const KEYS: u64 = 1000;

#[derive(Share, Clone, Copy)]
struct Tree {
    key: u64,
    left: Option<Ref<Tree>>,
    right: Option<Ref<Tree>>,
}

/// A balanced tree of the keys `from..to`, allocated on this node.
fn build(w: &mut Worker<'_>, from: u64, to: u64) -> Option<Ref<Tree>> {
    let key = from + (to - from) / 2;
    (from < to).then(|| {
        let (left, right) = (build(w, from, key), build(w, key + 1, to));
        w.alloc(Tree { key, left, right })
    })
}

/// How deep below `at` the key lies.
fn depth(at: Cursor<'_, '_, Tree>, key: u64) -> Option<usize> {
    let path = std::iter::successors(Some(at), |at| {
        at.follow(|tree| {
            if key < tree.key {
                tree.left
            } else {
                tree.right
            }
        })
    });
    path.map(|at| at.key).position(|found| found == key)
}

fn main() -> Result<(), RunError> {
    let run = Config::nodes(3).run(|w| {
        // Each node builds the tree of its own keys, and shows it to the others.
        let (me, nodes) = (w.node().index() as u64, w.nodes() as u64);
        let shown = w.once(|w| Ok(w.alloc_range(nodes as usize, |_| None::<Ref<Tree>>)))?;
        let mine = build(w, KEYS * me / nodes, KEYS * (me + 1) / nodes);
        *shown.at(me as usize).get_mut(w) = mine;
        w.barrier()?;

        let roots = || shown.iter().filter_map(|root| Some((*root.get(w))?.at(w)));
        let depths = (0..KEYS).filter_map(|key| roots().find_map(|root| depth(root, key)));
        let depths: Vec<usize> = depths.collect();
        let deepest = depths.iter().max().copied();
        println!(
            "{}: {} keys, at most {deepest:?} deep",
            w.node(),
            depths.len()
        );
        Ok((depths.len(), deepest))
    })?;
    assert_eq!(run.value, (KEYS as usize, Some(8)));
    Ok(())
}
