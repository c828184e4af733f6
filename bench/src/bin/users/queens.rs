//! The ways to place queens on a board so that none attacks another, counted: over a queue of jobs,
//! and over tasks.

use bench::Outcome;
use dhole::{JobQueue, Result, Worker, tasks};
use rayon::iter::{ParallelBridge, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::lap::{self, Lap};
use crate::{Program, Took};

const QUEENS: u32 = 13;
/// A board with fewer rows is divided further.
const DIVIDED: u32 = 3;

pub const PROGRAM: Program = Program {
    name: "queens",
    about: "the 73,712 ways to place 13 queens",
    phases: &["search"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[("JobQueue", with_jobs), ("tasks", with_tasks)],
};

/// The columns and diagonals that the queens of the first rows attack in the next row, as bits.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Board {
    rows: u32,
    columns: u32,
    left: u32,
    right: u32,
}

impl Board {
    /// With one more queen, in each column that is free.
    fn next(self) -> impl Iterator<Item = Board> {
        let free = !(self.columns | self.left | self.right) & ((1 << QUEENS) - 1);
        let columns = (0..QUEENS).map(|column| 1 << column);
        let columns = columns.filter(move |column| free & column != 0);
        columns.map(move |column| Board {
            rows: self.rows + 1,
            columns: self.columns | column,
            left: (self.left | column) << 1,
            right: (self.right | column) >> 1,
        })
    }

    /// The ways to place the queens that are left.
    fn ways(self) -> u64 {
        if self.rows == QUEENS {
            return 1;
        }
        self.next().map(Board::ways).sum()
    }
}

fn took((found, lap): (u64, Lap)) -> Took {
    Took {
        laps: vec![lap],
        found,
    }
}

fn sequential() -> Outcome<Took> {
    Ok(took(lap::alone(|| Board::default().ways())))
}

fn with_rayon() -> Outcome<Took> {
    let boards = Board::default().next().flat_map(Board::next);
    let ways = move || boards.par_bridge().map(Board::ways).sum();
    Ok(took(lap::by_others(ways)))
}

fn with_jobs(w: &mut Worker<'_>) -> Result<Took> {
    Ok(took(lap::together(w, |w| {
        let queue = w.once(|w| Ok(JobQueue::<Board, u64>::of(w, [Board::default()])?))?;
        queue.work(w, |w, board| {
            if board.rows >= DIVIDED {
                return Ok(board.ways());
            }
            for next in board.next() {
                queue.push(w, next)?;
            }
            Ok(0)
        })?;
        Ok(queue.results(w)?.into_iter().sum())
    })?))
}

fn with_tasks(w: &mut Worker<'_>) -> Result<Took> {
    let root = (w.node().index() == 0).then(Board::default);
    Ok(took(lap::together(w, |w| {
        let ways = tasks::tree(
            w,
            root,
            |_, board, more| {
                if board.rows >= DIVIDED {
                    return Ok(board.ways());
                }
                board.next().try_for_each(|next| more.push(next))?;
                Ok(0)
            },
            |one, other| one + other,
        )?;
        Ok(ways.unwrap_or_default())
    })?))
}
