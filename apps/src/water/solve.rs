//! The parts that the two programs' `main` functions share.

use dhole::{Config, Result, RunError, Worker};
use serde_json::{Value, json};

use super::energy::{Energy, thermal_per_atom};
use super::outcome::{Alone, Error, Outcome};
use super::problem::{Problem, System};
use crate::cluster::Cluster;
use crate::options::Common;
use crate::progress::Progress;
use crate::report::{self, Report, count, sequential_seconds, steps, verified};

/// The largest difference from the sequential program that comes of rounding: the nodes add forces
/// up in another order.
const ROUNDING: f64 = 1e-6;

/// A program: its name and its two versions.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The sequential version.
    pub sequential: fn(Problem, &dyn Fn(usize)) -> Alone,
    /// The shared version.
    pub shared: Shared,
}

/// The shared version of a program.
pub type Shared = fn(&mut Worker<'_>, &Problem, Option<&Alone>, &dyn Fn(usize)) -> Result<Outcome>;

impl Program {
    /// Solves `problem` on `cluster`.
    ///
    /// # Errors
    /// Those of the run.
    pub fn solve(
        &self,
        common: &Common,
        cluster: Cluster,
        problem: &Problem,
    ) -> std::result::Result<Report, RunError> {
        let wanted = common.verify || cluster.simulated;
        let (alone, had) = wanted
            .then(|| {
                report::alone(|| {
                    let progress = Progress::new("sequential", problem.steps);
                    let alone = (self.sequential)(*problem, &|step| progress.done(step));
                    progress.finish();
                    alone
                })
            })
            .unzip();
        let solution = alone.as_ref().filter(|_| common.verify);
        let progress = Progress::new(self.name, problem.steps);
        let config = config(cluster, common, problem);
        let run = config.run(|w| {
            let first = w.node().index() == 0;
            (self.shared)(w, problem, solution, &|step| {
                if first {
                    progress.done(step);
                }
            })
        })?;
        progress.finish();
        let mut result = result(problem, &run.value);
        // The result is complete on the first node.
        let error = run.value.error.filter(|_| run.report.is_first());
        let max_error = error.map(Error::max);
        verified(&mut result, max_error, ROUNDING, &run.report)?;
        let alone = alone
            .as_ref()
            .map(|alone| sequential_seconds(&run.report, alone.step_seconds, alone.units));
        let took = run.value.steps;
        let report = Report::new(self.name, &run.report, took, alone, &result);
        let (molecules, steps) = (count(problem.molecules), steps(problem.steps));
        let title = format!("water of {molecules} molecules, {steps}");
        let Outcome { start, end, .. } = &run.value;
        let drift = (end.total() - start.total()) * thermal_per_atom(problem.molecules);
        let found = format!("energy drift {:.0e} kT an atom", drift.abs());
        Ok(report.alone_had(had).titled(title).found(found))
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn config(cluster: Cluster, common: &Common, problem: &Problem) -> Config {
    let config = cluster.config(common);
    match problem.cut {
        Some(_) => config.memory(dhole::memory::MemorySettings::default()),
        None => config,
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn config(cluster: Cluster, common: &Common, _problem: &Problem) -> Config {
    cluster.config(common)
}

/// The result of a run as it is printed: energies for each atom, in units of kT at 298 K.
fn result(problem: &Problem, found: &Outcome) -> Value {
    let unit = thermal_per_atom(problem.molecules);
    let Energy {
        kinetic,
        within,
        between,
        momentum,
    } = found.end;
    let mut result = json!({
        "molecules": problem.molecules,
        "steps": problem.steps,
        "cutoff": System::of(problem).cutoff,
        "pairs": found.pairs.seen,
        "interactions": found.pairs.near,
        "kinetic_energy": kinetic * unit,
        "energy_within_molecules": within * unit,
        "energy_between_molecules": between * unit,
        "energy": found.end.total() * unit,
        "energy_drift": (found.end.total() - found.start.total()) * unit,
        "momentum": momentum,
    });
    for (name, value) in found.raw.iter().filter_map(Value::as_object).flatten() {
        result[name] = value.clone();
    }
    result
}
