//! Floyd's algorithm on all nodes.

use std::collections::VecDeque;

use dhole::{Object, Pending, Result, Worker, replicated};
use serde::{Deserialize, Serialize};

use super::kernel::{found, relax};
use super::row::Row;
use super::{Found, Graph};
use crate::mistake::Mistake;
use crate::solve::Steps;

/// The rows that all nodes work with, one after the other.
#[derive(Serialize, Deserialize)]
struct Rows {
    /// The first that is kept.
    first: usize,
    rows: VecDeque<Row>,
    /// So many are kept. Of as many rows in succession every node writes one, and has by then read
    /// all before it: nobody needs an older one.
    kept: usize,
}

#[dhole::object]
impl Rows {
    pub fn put(&mut self, row: Row) {
        self.rows.push_back(row);
        if self.rows.len() > self.kept {
            self.rows.pop_front();
            self.first += 1;
        }
    }

    #[when(*number < self.first + self.rows.len())]
    pub fn get(&self, number: usize) -> Row {
        let place = number.checked_sub(self.first);
        let row = place.and_then(|place| self.rows.get(place));
        row.cloned().unwrap_or_default()
    }
}

/// All shortest paths.
pub fn solve(w: &mut Worker<'_>, graph: &Graph, steps: &mut Steps) -> Result<Found> {
    solve_with(w, graph, steps, Mistake::Nothing)
}

/// As the program does, but for a mistake.
pub fn solve_with(
    w: &mut Worker<'_>,
    graph: &Graph,
    steps: &mut Steps,
    mistake: Mistake,
) -> Result<Found> {
    let (nodes, me) = (w.nodes(), w.node().index());
    let channel: Object<Rows> = w.once(|w| {
        let rows = Rows {
            first: 0,
            rows: VecDeque::new(),
            kept: nodes,
        };
        Ok(w.new_object(replicated(), rows)?)
    })?;
    let mut rows = graph.rows(|row| row % nodes == me);
    steps.begin(w)?;
    if me == 0
        && let Some((_, first)) = rows.first()
    {
        channel.put(w, Row(first.clone()))?;
    }
    let mut under_way: Option<Pending<()>> = None;
    for vertex in 0..graph.vertices {
        let through = match vertex % nodes == me {
            true => Row(rows[vertex / nodes].1.clone()),
            false => channel.get(w, vertex)?,
        };
        // The row that is wanted next goes first, and is on its way while the others are improved.
        let next = (vertex + 1) % nodes == me;
        let next = Some((vertex + 1) / nodes).filter(|place| next && *place < rows.len());
        if let Some(place) = next {
            let row = &mut rows[place].1;
            let early = (mistake == Mistake::RowTooEarly).then(|| row.clone());
            relax(row, vertex, &through.0);
            let row = Row(early.unwrap_or_else(|| row.clone()));
            let put = channel.start_put(w, row)?;
            if let Some(before) = under_way.replace(put) {
                before.wait(w)?;
            }
        }
        let others = rows.iter_mut().enumerate();
        for (_, (_, row)) in others.filter(|(place, _)| Some(*place) != next) {
            relax(row, vertex, &through.0);
        }
        w.work((rows.len() * graph.vertices) as u64);
    }
    if let Some(last) = under_way {
        last.wait(w)?;
    }
    let mine = found(rows.iter().map(|(from, row)| (*from, row)));
    let all = w.all_reduce(mine, Found::and)?;
    steps.end(w)?;
    Ok(all)
}
