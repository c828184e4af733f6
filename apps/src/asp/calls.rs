//! Floyd's algorithm by message passing, as Jackal's paper does with RMI (section 7): each row goes
//! down a tree of nodes, from parents to children.

use std::collections::BTreeMap;

use dhole::{NodeId, Object, Pending, Result, Worker, on};
use serde::{Deserialize, Serialize};

use super::kernel::{found, relax};
use super::row::Row;
use super::tree::{block, children, owner};
use super::{Found, Graph};
use crate::solve::Steps;

/// The rows that have come to a node and were not used yet.
#[derive(Serialize, Deserialize)]
struct Mailbox {
    rows: BTreeMap<usize, Row>,
}

#[dhole::object]
impl Mailbox {
    pub fn put(&mut self, number: usize, row: Row) {
        self.rows.insert(number, row);
    }

    #[when(self.rows.contains_key(number))]
    pub fn take(&mut self, number: usize) -> Row {
        self.rows.remove(&number).unwrap_or_default()
    }
}

/// All shortest paths. Parents go on while their children get a row, unless they are to wait.
///
/// # Errors
/// Those of the runtime.
pub fn solve(w: &mut Worker<'_>, graph: &Graph, steps: &mut Steps, waits: bool) -> Result<Found> {
    let (nodes, me, vertices) = (w.nodes(), w.node().index(), graph.vertices);
    let mailbox = Mailbox {
        rows: BTreeMap::new(),
    };
    let own = w.new_object(on(NodeId::at(me)), mailbox)?;
    let all: Vec<Object<Mailbox>> = w.all_gather(own)?;
    let block = block(vertices, nodes, me);
    let mut rows = graph.rows(|row| block.contains(&row));
    steps.begin(w)?;
    let mut under_way: Vec<Pending<()>> = Vec::new();
    for vertex in 0..vertices {
        let root = owner(vertices, nodes, vertex);
        let through = match root == me {
            true => Row(rows[vertex - block.start].1.clone()),
            false => own.take(w, vertex)?,
        };
        for put in under_way.drain(..) {
            put.wait(w)?;
        }
        for child in children(root, me, nodes) {
            let put = all[child].start_put(w, vertex, through.clone())?;
            match waits {
                true => put.wait(w)?,
                false => under_way.push(put),
            }
        }
        for (_, row) in &mut rows {
            relax(row, vertex, &through.0);
        }
        w.work((rows.len() * vertices) as u64);
    }
    for put in under_way {
        put.wait(w)?;
    }
    let mine = found(rows.iter().map(|(from, row)| (*from, row)));
    steps.end(w)?;
    w.all_reduce(mine, Found::and).map_err(Into::into)
}
