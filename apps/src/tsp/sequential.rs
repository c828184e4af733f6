//! The search alone.

use std::convert::Infallible;

use super::search::{Known, Search, Tour};
use super::{Found, Instance};

struct Alone {
    best: Tour,
    units: u64,
}

impl Known for Alone {
    type Error = Infallible;

    fn is_shorter(&mut self, length: u64) -> Result<bool, Infallible> {
        Ok(length < self.best.length)
    }

    fn found(&mut self, tour: Tour) -> Result<(), Infallible> {
        self.best = tour;
        Ok(())
    }

    fn worked(&mut self, units: u64) {
        self.units += units;
    }
}

/// The shortest tour, and the units of work that it took to find it.
pub fn solve(instance: &Instance) -> (Found, u64) {
    let mut search = Search::new(instance);
    let mut alone = Alone {
        best: search.greedy(),
        units: 0,
    };
    for job in search.jobs() {
        let Ok(()) = search.run(&job, &mut alone);
    }
    let found = Found {
        tour: alone.best,
        nodes_expanded: search.expanded,
    };
    (found, alone.units)
}
