//! `sor`: red-black successive over-relaxation over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::cluster::Cluster;
use apps::options::{Common, SorLayout, SorOptions};
use apps::program::{self, Losses};
use apps::progress::Progress;
use apps::report::{Report, sequential_seconds, verified};
use apps::sor::{ByPage, Layout, PointByPoint, Problem, sequential, shared};
use dhole::{Array2, Rows, RunError};
use serde_json::json;

fn main() -> ExitCode {
    let options: SorOptions = program::options();
    let problem = |nodes| options.problem(nodes);
    program::main(
        "sor",
        Losses::End,
        &options.common,
        problem,
        |cluster, problem| {
            let solve = match (options.layout, options.hoist) {
                (SorLayout::Rows, true) => solve::<Rows<f64>>,
                (SorLayout::Arrays, true) => solve::<Array2<f64>>,
                (SorLayout::Rows, false) => solve::<PointByPoint<Rows<f64>>>,
                (SorLayout::Pages, true) => solve::<ByPage>,
                (SorLayout::Pages, false) => solve::<PointByPoint<ByPage>>,
                (SorLayout::Arrays, false) => solve::<PointByPoint<Array2<f64>>>,
            };
            solve(&options.common, cluster, problem)
        },
    )
}

fn solve<L: Layout>(
    common: &Common,
    cluster: Cluster,
    problem: &Problem,
) -> Result<Report, RunError> {
    let alone = (common.verify || cluster.simulated).then(|| {
        let progress = Progress::new("sequential", problem.steps);
        let alone = sequential::run(*problem, |step| progress.done(step));
        progress.finish();
        alone
    });
    let solution = alone
        .as_ref()
        .filter(|_| common.verify)
        .map(|alone| &alone.grid);
    let progress = Progress::new("sor", problem.steps);
    let run = cluster.config(common).run(|w| {
        let first = w.node().index() == 0;
        shared::run::<L>(w, problem, solution, |step| {
            if first {
                progress.done(step);
            }
        })
    })?;
    progress.finish();
    let mut result = json!({
        "rows": problem.rows,
        "columns": problem.columns,
        "steps": problem.steps,
        "digest": format!("{:016x}", run.value.digest),
    });
    verified(&mut result, run.value.max_error, 0.0, &run.report)?;
    let alone =
        alone.map(|alone| sequential_seconds(&run.report, alone.sweep_seconds, alone.units));
    Ok(Report::new(
        "sor",
        &run.report,
        run.value.sweeps,
        alone,
        &result,
    ))
}
