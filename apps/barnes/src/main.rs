//! `barnes`: Barnes-Hut over dhole.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use apps_common::cluster::Cluster;
use apps_common::options::Record;
use apps_common::program::{self, Losses};
use apps_common::progress::Progress;
use apps_common::report::{self, Report, count, sequential_seconds, steps, verified};
use barnes::options::BarnesOptions;
use barnes::{Problem, picture, sequential, shared, splash};
use dhole::{Error, RunError};
use serde_json::json;

fn main() -> ExitCode {
    let asked: BarnesOptions = program::options();
    let problem = |nodes| asked.problem(nodes);
    program::main(
        "barnes",
        Losses::End,
        &asked.common,
        problem,
        |cluster, problem| solve(&asked, cluster, problem),
    )
}

fn solve(asked: &BarnesOptions, cluster: Cluster, problem: &Problem) -> Result<Report, RunError> {
    let common = &asked.common;
    let wanted = common.verify || cluster.simulated;
    let (alone, had) = wanted
        .then(|| {
            report::alone(|| {
                let progress = Progress::new("sequential", problem.steps);
                let alone = sequential::run(*problem, |step| progress.done(step));
                progress.finish();
                alone
            })
        })
        .unzip();
    let solution = alone
        .as_ref()
        .filter(|_| common.verify)
        .map(|alone| &alone.bodies[..]);
    let progress = Progress::new("barnes", problem.steps);
    let run = cluster.config(common).run(|w| {
        let first = w.node().index() == 0;
        let done = |step| {
            if first {
                progress.done(step);
            }
        };
        match asked.record {
            Record::Split => shared::run(w, problem, solution, done),
            Record::Splash => splash::run(w, problem, solution, done),
        }
    })?;
    progress.finish();
    let found = &run.value;
    if let (Some(path), true) = (&asked.picture, run.report.is_first()) {
        keep(found, path).map_err(|error| RunError::Failed {
            node: run.report.node,
            error: Box::new(error),
            others: Vec::new(),
        })?;
    }
    let end = found.energies.last();
    // Each is from before a step's move: of one step nothing has changed.
    let start = found.energies.first().filter(|_| found.energies.len() > 1);
    let mut result = json!({
        "bodies": problem.bodies,
        "steps": problem.steps,
        "interactions": found.interactions,
        "kinetic_energy": end.map(|energy| energy.kinetic),
        "potential_energy": end.map(|energy| energy.potential),
        "energy": end.map(|energy| energy.total()),
        "momentum": end.map(|energy| energy.momentum),
        "energy_drift": start.zip(end).map(|(start, end)| end.total() - start.total()),
    });
    verified(&mut result, found.max_error, 0.0, &run.report)?;
    if let Some(path) = &asked.picture {
        result["picture"] = json!(path.display().to_string());
    }
    let alone = alone.map(|alone| sequential_seconds(&run.report, alone.step_seconds, alone.units));
    let report = Report::new("barnes", &run.report, found.steps, alone, &result);
    let (bodies, steps) = (count(problem.bodies), steps(problem.steps));
    let report = report
        .alone_had(had)
        .titled(format!("galaxy of {bodies} bodies, {steps}"));
    Ok(match (start, end) {
        (Some(start), Some(end)) => {
            let drift = (end.total() - start.total()) / start.total();
            report.found(format!("energy drift {:.0e}", drift.abs()))
        }
        (None, Some(end)) => report.found(format!("energy {:.4}", end.total())),
        (_, None) => report,
    })
}

/// Draws the bodies, or the frames of the animation.
fn keep(found: &shared::Outcome, path: &Path) -> dhole::Result<()> {
    let written = picture::write(&found.frames, path);
    written.map_err(|cause| Error::program(format!("writing {}: {cause}", path.display())))
}
