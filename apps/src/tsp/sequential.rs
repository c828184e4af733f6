//! The search on one processor.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::search::{Known, Search, Tour};
use super::stop::Stop;
use super::{Found, Problem};

struct Alone {
    best: Tour,
    units: u64,
    began: Instant,
    stop: Stop,
    stopped: bool,
}

impl Known for Alone {
    type Error = Infallible;

    fn shortest(&self) -> u64 {
        self.best.length
    }

    fn is_shorter(&mut self, length: u64) -> Result<bool, Infallible> {
        let began = self.began;
        self.stopped |= self.stop.is_due(|| began.elapsed());
        Ok(length < self.best.length && !self.stopped)
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
pub fn solve(problem: &Problem) -> (Found, u64) {
    let mut search = Search::with_bound(&problem.instance, problem.bound);
    let mut alone = Alone {
        best: problem.first_tour(&search),
        units: 0,
        began: Instant::now(),
        stop: Stop::after(problem.time_limit, Duration::ZERO),
        stopped: false,
    };
    for job in search.jobs() {
        let Ok(()) = search.run(&job, &mut alone);
        if alone.stopped {
            break;
        }
    }
    let found = Found {
        tour: alone.best,
        nodes_expanded: search.expanded,
        stopped: alone.stopped,
        raw: None,
    };
    (found, alone.units)
}
