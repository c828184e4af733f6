//! The result of a run, and how the nodes add it up.

use std::time::Duration;

use dhole::{Refs, Share, Worker};
use serde_json::Value;

use super::energy::Energy;
use super::motion::Atoms;
use super::problem::{Pairs, Problem, System};

/// The result of a sequential run, and its cost.
#[derive(Debug)]
pub struct Alone {
    /// The atoms of every molecule after the last step.
    pub atoms: Vec<Atoms>,
    /// The energy before the first step and after each.
    pub energies: Vec<Energy>,
    /// Wall-clock time of the steps alone, in seconds.
    pub step_seconds: f64,
    /// The cost of the steps in units of `Worker::work`.
    pub units: u64,
}

/// The result of a shared run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The energy before the first step.
    pub start: Energy,
    /// The energy after the last step.
    pub end: Energy,
    /// Pairs of molecules, of all force computations.
    pub pairs: Pairs,
    /// How far this is from what it was compared with, if it was.
    pub error: Option<Error>,
    /// Of all steps, on node 0's clock.
    pub steps: Duration,
    /// What is reported of raw memory, if the molecules lie there.
    pub raw: Option<Value>,
}

/// Differences from what is expected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Error {
    /// The largest of a coordinate, over the side of the box.
    pub position: f64,
    /// That of the last energies, over the kinetic energy.
    pub energy: f64,
}

impl Error {
    /// The larger of both.
    pub fn max(self) -> f64 {
        self.position.max(self.energy)
    }
}

/// A node's result for its molecules.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Finding {
    /// Their energy before the first step.
    pub start: Energy,
    /// Their energy after the last step.
    pub end: Energy,
    /// Pairs that were looked at.
    pub seen: u64,
    /// Pairs that act on each other.
    pub near: u64,
    /// The largest difference of a coordinate from what is expected, in angstrom.
    pub distance: f64,
}

impl Finding {
    /// Counts pairs.
    pub fn count(&mut self, pairs: Pairs) {
        self.seen += pairs.seen;
        self.near += pairs.near;
    }

    /// Compares a molecule with what is expected.
    pub fn compare(&mut self, system: &System, found: &Atoms, expected: &Atoms) {
        for (found, expected) in found.iter().zip(expected) {
            self.distance = self.distance.max(system.distance(*found, *expected));
        }
    }

    /// Adds up the results of all nodes; every node calls it. The result is complete on node 0.
    ///
    /// # Errors
    /// Those of the runtime.
    pub fn gather(mut self, w: &mut Worker<'_>, findings: Refs<Finding>) -> dhole::Result<Finding> {
        let node = w.node().index();
        *findings.at(node).get_mut(w) = self;
        w.barrier()?;
        if node == 0 {
            w.prefetch(findings)?;
            for other in findings.iter().skip(1) {
                let other = other.get(w);
                self.start.add(&other.start);
                self.end.add(&other.end);
                self.seen += other.seen;
                self.near += other.near;
                self.distance = self.distance.max(other.distance);
            }
        }
        Ok(self)
    }

    /// The result of all nodes, compared with `solution`.
    pub fn outcome(&self, problem: &Problem, solution: Option<&Alone>, steps: Duration) -> Outcome {
        let side = System::of(problem).side;
        let error = solution.map(|alone| {
            let expected = alone.energies.last().copied().unwrap_or_default();
            Error {
                position: self.distance / side,
                energy: (self.end.total() - expected.total()).abs() / expected.kinetic,
            }
        });
        Outcome {
            start: self.start,
            end: self.end,
            pairs: Pairs {
                seen: self.seen,
                near: self.near,
            },
            error,
            steps,
            raw: None,
        }
    }
}
