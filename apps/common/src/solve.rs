//! The parts that the programs over objects with operations share: run, time, compare, report.

use std::time::{Duration, Instant};

use dhole::{Config, Error, NodeId, Result, RunError, Worker};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::options::Common;
use crate::program::Losses;
use crate::progress::Progress;
use crate::report::{self, Report, sequential_seconds};

/// A program: its name, its two versions, and the functions on their results.
pub struct Program<P, R> {
    /// Its name.
    pub name: &'static str,
    /// What it does when a node is lost.
    pub losses: Losses,
    /// The sequential version, which returns its result and its units of work.
    pub sequential: fn(&P) -> (R, u64),
    /// The shared version. Its [result counts](result_counts) on some nodes only.
    pub shared: fn(&mut Worker<'_>, &P, &mut Steps) -> Result<R>,
    /// The difference between the results of the two versions, if there is one.
    pub differ: fn(&R, &R) -> Option<String>,
    /// What it solves, in a few words: `shortest paths of 256 vertices`.
    pub title: fn(&P) -> String,
    /// What it found, in a few words.
    pub found: fn(&P, &R) -> String,
    /// The result as it is printed.
    pub result: fn(&P, &R) -> Value,
    /// Writes the result where the problem says; on node 0 alone, or the first node that is left.
    pub keep: fn(&P, &R) -> Result<()>,
}

/// The begin and end of a program's own steps.
#[derive(Debug, Default)]
pub struct Steps {
    begun: Duration,
    /// Their time by this node's clock.
    took: Duration,
}

impl Steps {
    /// Begins the steps, on all nodes.
    ///
    /// # Errors
    /// Those of a barrier.
    pub fn begin(&mut self, w: &mut Worker<'_>) -> Result<()> {
        w.begin_measuring()?;
        self.begun = w.now();
        Ok(())
    }

    /// Their time by this node's clock, once they have ended.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Ends the steps, on all nodes.
    ///
    /// # Errors
    /// Those of a barrier.
    pub fn end(&mut self, w: &mut Worker<'_>) -> Result<()> {
        w.barrier()?;
        self.took = w.now().saturating_sub(self.begun);
        w.end_measuring()?;
        Ok(())
    }
}

/// Whether this node's result is printed: it is node 0, or may be the first node that is left.
pub fn result_counts(w: &Worker<'_>) -> bool {
    w.survives() || w.node() == NodeId(0)
}

impl<P: Sync, R: Send + Sync> Program<P, R> {
    /// Solves a problem on a cluster.
    ///
    /// # Errors
    /// Those of the run, or the error that the versions do not agree.
    pub fn solve(
        &self,
        common: &Common,
        cluster: Cluster,
        problem: &P,
    ) -> std::result::Result<Report, RunError> {
        self.solve_on((common, &cluster.config(common)), cluster, problem)
    }

    /// As [`solve`](Program::solve), with a configuration of the program's own.
    ///
    /// # Errors
    /// As there.
    pub fn solve_on(
        &self,
        (common, config): (&Common, &Config),
        cluster: Cluster,
        problem: &P,
    ) -> std::result::Result<Report, RunError> {
        let wanted = common.verify || cluster.simulated;
        let (alone, had) = wanted
            .then(|| {
                report::alone(|| {
                    let progress = Progress::new("sequential", 1);
                    let begun = Instant::now();
                    let (found, units) = (self.sequential)(problem);
                    progress.finish();
                    (found, begun.elapsed().as_secs_f64(), units)
                })
            })
            .unzip();
        let solution = alone.as_ref().filter(|_| common.verify);
        let run = config.run(|w| {
            let mut steps = Steps::default();
            let found = (self.shared)(w, problem, &mut steps)?;
            let differ = solution.and_then(|(alone, ..)| (self.differ)(alone, &found));
            match differ.filter(|_| result_counts(w)) {
                Some(how) => Err(Error::program(format!(
                    "the sequential version disagrees: {how}"
                ))),
                None => Ok((found, steps.took)),
            }
        })?;
        let (found, took) = run.value;
        // A node that serves others may begin long after them.
        let took = run.report.measured_time.unwrap_or(took);
        let node = run.report.node;
        if run.report.is_first() {
            (self.keep)(problem, &found).map_err(|error| RunError::Failed {
                node,
                error: Box::new(error),
                others: Vec::new(),
            })?;
        }
        let mut result = (self.result)(problem, &found);
        if common.verify {
            result["verified"] = Value::Bool(true);
        }
        let alone =
            alone.map(|(_, seconds, units)| sequential_seconds(&run.report, seconds, units));
        let report = Report::new(self.name, &run.report, took, alone, &result);
        let (title, words) = ((self.title)(problem), (self.found)(problem, &found));
        Ok(report.alone_had(had).titled(title).found(words))
    }
}
