//! Queens on a board, counted by processes that are started where there are the fewest. Each places
//! one more queen; what they find they add to an object.

use dhole::{Config, Object, Result, Worker, anywhere, on, op};
use serde::{Deserialize, Serialize};

const SIZE: usize = 8;
/// From here on a process counts by itself.
const SEQUENTIAL: usize = 3;

#[derive(Serialize, Deserialize, Default)]
struct Found {
    boards: u64,
}

#[dhole::object]
impl Found {
    pub fn add(&mut self, boards: u64) {
        self.boards += boards;
    }

    pub fn boards(&self) -> u64 {
        self.boards
    }
}

/// The columns of the queens in the first rows, with one more.
fn longer(queens: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let safe = |column: u8| {
        let above = queens.iter().rev().zip(1..);
        above
            .clone()
            .all(|(other, rows)| other.abs_diff(column) != rows && *other != column)
    };
    let columns = (0..SIZE as u8).filter(move |column| safe(*column));
    columns.map(move |column| [queens, &[column]].concat())
}

fn count(queens: &[u8]) -> u64 {
    match queens.len() {
        SIZE => 1,
        _ => longer(queens).map(|queens| count(&queens)).sum(),
    }
}

/// Runs on some node, with a worker of its own.
fn place(w: &mut Worker<'_>, (queens, found): (Vec<u8>, Object<Found>)) -> Result<()> {
    if queens.len() == SEQUENTIAL {
        found.add(w, count(&queens))?;
        return Ok(());
    }
    let started = longer(&queens).map(|queens| w.spawn(anywhere(), (queens, found), op!(place)));
    let started: Vec<_> = started.collect::<Result<_, _>>()?;
    started
        .into_iter()
        .try_for_each(|process| process.join(w))?;
    Ok(())
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(4).run(|w| {
        if w.node().index() != 0 {
            return Ok(0);
        }
        let found = w.new_object(on(w.node()), Found::default())?;
        w.spawn(anywhere(), (Vec::new(), found), op!(place))?
            .join(w)?;
        Ok(found.boards(w)?)
    })?;
    println!("{} boards", run.value);
    assert_eq!(run.value, 92);
    Ok(())
}
