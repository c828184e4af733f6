//! What the programs over objects with operations have in common: run, time, compare, report.

use std::time::{Duration, Instant};

use dhole::{Error, NodeId, Result, RunError, Worker};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::options::Common;
use crate::program::Losses;
use crate::progress::Progress;
use crate::report::{Report, sequential_seconds};

/// A program: its name, its two versions, and what they found.
pub struct Program<P, R> {
    /// Its name.
    pub name: &'static str,
    /// What becomes of it when a node is lost.
    pub losses: Losses,
    /// The sequential version: what it found, and the units of work that took.
    pub sequential: fn(&P) -> (R, u64),
    /// The shared version, whose [result counts](result_counts) on some nodes.
    pub shared: fn(&mut Worker<'_>, &P, &mut Steps) -> Result<R>,
    /// Why the two versions did not find the same, if they did not.
    pub differ: fn(&R, &R) -> Option<String>,
    /// What was found, as it is printed.
    pub result: fn(&P, &R) -> Value,
    /// Keeps what was found where the problem says; on node 0 alone, or the first that is left.
    pub keep: fn(&P, &R) -> Result<()>,
}

/// Where a program's own steps begin and end.
#[derive(Debug, Default)]
pub struct Steps {
    begun: Duration,
    /// How long they took by this node's clock.
    took: Duration,
}

impl Steps {
    /// They begin, on all nodes.
    ///
    /// # Errors
    /// Those of a barrier.
    pub fn begin(&mut self, w: &mut Worker<'_>) -> Result<()> {
        w.begin_measuring()?;
        self.begun = w.now();
        Ok(())
    }

    /// They are over, on all nodes.
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

/// Whether what this node finds is printed: it is node 0, or may be the first that is left.
pub fn result_counts(w: &Worker<'_>) -> bool {
    w.survives() || w.node() == NodeId(0)
}

impl<P: Sync, R: Send + Sync> Program<P, R> {
    /// Solves a problem on a cluster.
    ///
    /// # Errors
    /// Those of the run, and that the versions do not agree.
    pub fn solve(
        &self,
        common: &Common,
        cluster: Cluster,
        problem: &P,
    ) -> std::result::Result<Report, RunError> {
        let alone = (common.verify || cluster.simulated).then(|| {
            let progress = Progress::new("sequential", 1);
            let begun = Instant::now();
            let (found, units) = (self.sequential)(problem);
            progress.finish();
            (found, begun.elapsed().as_secs_f64(), units)
        });
        let solution = alone.as_ref().filter(|_| common.verify);
        let run = cluster.config(common).run(|w| {
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
        Ok(Report::new(self.name, &run.report, took, alone, &result))
    }
}
