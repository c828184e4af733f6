//! The search of all positions within a bound, which both versions share.

use serde::{Deserialize, Serialize};

use super::position::{Move, Position};

/// A job begins so many moves from the first position.
const DEPTH: u32 = 10;

/// A position on the way, with how it was reached.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    position: Position,
    moves: u16,
    last: Option<Move>,
}

impl Job {
    /// The first position.
    pub fn first(position: Position) -> Job {
        Job {
            position,
            moves: 0,
            last: None,
        }
    }

    fn moves(&self) -> u32 {
        u32::from(self.moves)
    }

    fn next(self) -> impl Iterator<Item = Job> {
        let back = self.last.map(Move::back);
        let moves = Move::ALL.into_iter().filter(move |to| Some(*to) != back);
        moves.filter_map(move |to| {
            Some(Job {
                position: self.position.after(to)?,
                moves: self.moves + 1,
                last: Some(to),
            })
        })
    }
}

/// The counts of a search within a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Positions.
    pub expanded: u64,
    /// Solutions.
    pub solutions: u64,
    /// The least bound under which more would be seen.
    pub next: u32,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen {
            expanded: 0,
            solutions: 0,
            next: u32::MAX,
        }
    }
}

impl Seen {
    /// Adds what others have seen.
    pub fn add(&mut self, other: Seen) {
        self.expanded += other.expanded;
        self.solutions += other.solutions;
        self.next = self.next.min(other.next);
    }

    /// Searches everything from a position on.
    pub fn look(&mut self, from: Job, bound: u32) {
        self.look_up_to(from, bound, u32::MAX, &mut |_| ());
    }

    /// Searches everything near the first position, and returns the rest as jobs.
    pub fn jobs(&mut self, first: Position, bound: u32) -> Vec<Job> {
        let mut jobs = Vec::new();
        self.look_up_to(Job::first(first), bound, DEPTH, &mut |job| jobs.push(job));
        jobs
    }

    fn look_up_to(&mut self, at: Job, bound: u32, depth: u32, hand_out: &mut impl FnMut(Job)) {
        let least = at.moves() + at.position.distance();
        if least > bound {
            self.next = self.next.min(least);
            return;
        }
        if at.moves() == depth {
            return hand_out(at);
        }
        self.expanded += 1;
        if at.position.distance() == 0 {
            self.solutions += 1;
            return;
        }
        for next in at.next() {
            self.look_up_to(next, bound, depth, hand_out);
        }
    }
}

/// Units of work for a position.
pub const UNITS: u64 = 10;
